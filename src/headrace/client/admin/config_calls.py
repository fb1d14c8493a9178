"""Calls that read and change configurations.

It must not know the faces. Read next: `machines.admin.config_requests`.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from headrace.arguments import instance_of, list_of
from headrace.client.admin.admin_area import AdminArea, ByKey, Single, flag, without_duplicates
from headrace.client.admin.admin_engine import ANY_NODE
from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import config_requests as requests
from headrace.machines.machine import ForVersion
from headrace.types.acls import ResourceType
from headrace.types.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from headrace.wire.schema import Request

__all__ = ["ConfigCalls"]

_V = TypeVar("_V")
_OF_A_BROKER = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)


class ConfigCalls(AdminArea):
    """Configurations."""

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, broker: int = -1
    ) -> ByKey[ConfigResource, dict[str, ConfigEntry]]:
        """Read configurations. Futures by resource; each resolves to its entries by name.

        Args:
            resources: topics, brokers, groups.
            request_timeout: seconds for the whole call.
            broker: id of the broker to ask; -1 asks a broker for its own, and any broker for the rest.
        """
        given = _resources(resources)
        return self._by_broker(given, request_timeout, broker, requests.describe_configs,
                               requests.read_described_configs, repeatable=True,
                               for_version=requests.describe_configs_for_version)

    def alter_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, validate_only: bool = False,
        broker: int = -1,
    ) -> ByKey[ConfigResource, None]:
        """Replace whole configurations: what is not given goes back to its default. Futures by resource.

        `incremental_alter_configs` changes single properties.

        Args:
            resources: with the values of `set_config`.
            request_timeout: seconds for the whole call.
            validate_only: check whether it could be done, and do nothing.
            broker: as of `describe_configs`.
        """
        given, only = _resources(resources), flag(validate_only, "validate_only")
        return self._by_broker(given, request_timeout, broker, lambda part: requests.alter_configs(part, only),
                               requests.read_altered, repeatable=True)

    def incremental_alter_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, validate_only: bool = False,
        broker: int = -1,
    ) -> ByKey[ConfigResource, None]:
        """Change single properties. Futures by resource; arguments as of `alter_configs`.

        What happens is in the resources' `incremental_configs`, each entry with its `incremental_operation`.
        """
        given, only = _resources(resources), flag(validate_only, "validate_only")
        for resource in given:
            _check_changes(resource)
        return self._by_broker(given, request_timeout, broker,
                               lambda part: requests.incremental_alter_configs(part, only), requests.read_altered,
                               repeatable=False, unique=True)

    def list_config_resources(
        self, types: Iterable[ResourceType] = (), *, request_timeout: float | None = None
    ) -> Single[list[ConfigResource]]:
        """Find which resources have a configuration of their own, of some types or of all (KIP-1142).

        The result is the list of them, in the order of types and names.
        """
        kinds = [instance_of(ResourceType, kind, "type") for kind in types]
        limit_s = self.limit(request_timeout)
        return self.engine.single(ANY_NODE, requests.list_config_resources(kinds), limit_s,
                                  requests.read_config_resources)

    def _by_broker(
        self, resources: list[ConfigResource], request_timeout: float | None, broker: int,
        ask: Callable[[list[ConfigResource]], Request],
        read: Callable[[Any], dict[ConfigResource, _V | KafkaError]], *, repeatable: bool, unique: bool = False,
        for_version: ForVersion | None = None,
    ) -> ByKey[ConfigResource, _V]:
        """A broker's own configuration is known to that broker only; any broker knows the rest."""
        if operator.index(broker) < -1:
            raise ValueError(f"broker is {broker}: expected the id of a broker, or -1")
        limit_s = self.limit(request_timeout)
        groups: dict[int, list[ConfigResource]] = defaultdict(list)
        for resource in dict.fromkeys(resources):
            own = resource.restype in _OF_A_BROKER and resource.name.isdecimal()
            groups[broker if broker >= 0 else int(resource.name) if own else ANY_NODE].append(resource)

        async def work(node_id: int, part: list[ConfigResource]) -> dict[ConfigResource, _V | KafkaError]:
            _check_brokers(resources)
            if unique:
                _check_duplicates(resources)
            try:
                return await self.engine.at(node_id, ask(part), limit_s, read, repeatable=repeatable,
                                            for_version=for_version)
            except KafkaException as failed:
                return dict.fromkeys(part, failed.error)

        return ByKey(dict.fromkeys(resources), *(partial(work, *each) for each in groups.items()))


def _resources(given: list[ConfigResource]) -> list[ConfigResource]:
    resources = list_of(ConfigResource, given, "resources", filled=True)
    for resource in resources:
        instance_of(str, resource.name, "the name of a resource")
        if resource.restype not in requests.CONFIGURABLE:
            known = ", ".join(kind.name for kind in requests.CONFIGURABLE)
            raise ValueError(f"{resource!r} has no configuration: expected one of {known}")
        if not resource.name and resource.restype not in _OF_A_BROKER:
            raise ValueError(f"{resource!r} has no name")
    return resources


def _check_brokers(resources: list[ConfigResource]) -> None:
    for resource in resources:
        if resource.restype in _OF_A_BROKER and resource.name and not resource.name.isdecimal():
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG,
                                            f"{resource!r}: expected the id of a broker, or an empty name"))


def _check_duplicates(resources: list[ConfigResource]) -> None:
    without_duplicates(resources, "resources")
    for resource in resources:
        without_duplicates((entry.name for entry in resource.incremental_configs), f"properties of {resource!r}")


def _check_changes(resource: ConfigResource) -> None:
    """Each entry must say what happens, and to what."""
    if not resource.incremental_configs:
        raise ValueError(f"{resource!r} has no change: give incremental_configs, or call add_incremental_config()")
    for entry in resource.incremental_configs:
        instance_of(ConfigEntry, entry, "each of incremental_configs")
        instance_of(str, entry.name, "the name of a ConfigEntry")
        instance_of(AlterConfigOpType, entry.incremental_operation, "incremental_operation")
        if entry.incremental_operation is not AlterConfigOpType.DELETE:
            instance_of(str, entry.value, f"the value of {entry.name}")
