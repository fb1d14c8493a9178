"""Requests that read and change configurations, and what their replies mean: pure functions.

A reply is read into a dict from what was asked for to its result, or to the `KafkaError` that it ended with.
Read next: `client.admin.config_calls`, which sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from headrace.errors import KafkaError
from headrace.machines.admin.admin_results import failure, raise_failure
from headrace.slotted import later
from headrace.types.acls import ResourceType
from headrace.types.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from headrace.wire.messages.admin import configs as wire
from headrace.wire.schema import Request

__all__ = [
    "CONFIGURABLE",
    "alter_configs",
    "describe_configs",
    "describe_configs_for_version",
    "incremental_alter_configs",
    "list_config_resources",
    "read_altered",
    "read_config_resources",
    "read_described_configs",
]

CONFIGURABLE = {ResourceType.TOPIC: 2, ResourceType.BROKER: 4, ResourceType.BROKER_LOGGER: 8,
                ResourceType.CLIENT_METRICS: 16, ResourceType.GROUP: 32}
"""The wire's numbers of resources that have a configuration: for groups it differs from that of access rules."""
_SYNONYMS_FROM = 1
"""From this version of DescribeConfigs on it is told where a value comes from (KIP-226)."""
_BY_WIRE_TYPE = {number: kind for kind, number in CONFIGURABLE.items()}
_SOURCES = {source.value: source for source in ConfigSource}
_ON = {ResourceType.TOPIC: 'topic "{}"', ResourceType.GROUP: 'group "{}"'}


def describe_configs(resources: Iterable[ConfigResource]) -> wire.DescribeConfigsRequest:
    """Ask for all properties of some resources, with the values that each property hides."""
    return wire.DescribeConfigsRequest(
        resources=[
            wire.DescribeConfigsResource(
                resource_type=CONFIGURABLE[r.restype], resource_name=r.name, configuration_keys=None
            )
            for r in resources
        ],
        include_synonyms=True,
        include_documentation=False,
    )


def describe_configs_for_version(request: Request, version: int) -> Request:
    """Brokers before Kafka 1.1 do not tell what a property hides, and are not asked."""
    assert isinstance(request, wire.DescribeConfigsRequest)
    return request if version >= _SYNONYMS_FROM else wire.DescribeConfigsRequest(resources=request.resources)


def read_described_configs(
    reply: wire.DescribeConfigsResponse,
) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
    """The entries of each resource by name."""
    found: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
    for result in reply.results:
        resource = _resource(result)
        error = _ended(result, "DESCRIBE_CONFIGS")
        found[resource] = error or {config.name: _entry(config) for config in result.configs}
    return found


def _entry(config: wire.DescribeConfigsResourceResult) -> ConfigEntry:
    made = object.__new__(ConfigEntry)  # a topic has forty, and few look into what each hides (decision 0047)
    made.name, made.value = config.name, config.value
    made.source = source = _SOURCES.get(config.config_source, ConfigSource.UNKNOWN_CONFIG)
    made.is_read_only, made.is_sensitive = config.read_only, config.is_sensitive
    made.is_default = source is ConfigSource.DEFAULT_CONFIG or config.is_default
    made.is_synonym, made.incremental_operation = False, None
    later(made, _MAKERS, config.synonyms)
    return made


def _synonyms(hidden: Iterable[wire.DescribeConfigsSynonym]) -> dict[str, ConfigEntry]:
    return {
        s.name: ConfigEntry(s.name, s.value, _SOURCES.get(s.source, ConfigSource.UNKNOWN_CONFIG), is_synonym=True)
        for s in hidden
    }


_MAKERS: Final = {"synonyms": _synonyms}


def alter_configs(resources: Iterable[ConfigResource], validate_only: bool) -> wire.AlterConfigsRequest:
    """Ask to replace the whole configuration of some resources."""
    return wire.AlterConfigsRequest(
        resources=[
            wire.AlterConfigsResource(
                resource_type=CONFIGURABLE[r.restype],
                resource_name=r.name,
                configs=[wire.AlterableConfig(name=name, value=_text(value))
                         for name, value in r.set_config_dict.items()],
            )
            for r in resources
        ],
        validate_only=validate_only,
    )


def incremental_alter_configs(
    resources: Iterable[ConfigResource], validate_only: bool
) -> wire.IncrementalAlterConfigsRequest:
    """Ask to change single properties of some resources (KIP-339)."""
    return wire.IncrementalAlterConfigsRequest(
        resources=[
            wire.IncrementalAlterConfigsResource(
                resource_type=CONFIGURABLE[r.restype],
                resource_name=r.name,
                configs=[
                    wire.IncrementalAlterableConfig(
                        name=change.name,
                        config_operation=change.incremental_operation.value if change.incremental_operation else 0,
                        value=None if change.incremental_operation is AlterConfigOpType.DELETE else change.value,
                    )
                    for change in r.incremental_configs
                ],
            )
            for r in resources
        ],
        validate_only=validate_only,
    )


def read_altered(
    reply: wire.AlterConfigsResponse | wire.IncrementalAlterConfigsResponse,
) -> dict[ConfigResource, KafkaError | None]:
    """How the change of each resource ended."""
    responses: Sequence[Any] = reply.responses
    return {_resource(result): _ended(result, "ALTER_CONFIGS") for result in responses}


def _ended(result: Any, operation: str) -> KafkaError | None:
    resource = _resource(result)
    on = _ON.get(resource.restype, "the cluster").format(resource.name)
    return failure(repr(resource), result.error_code, result.error_message, f"{operation} on {on}")


def _resource(result: Any) -> ConfigResource:
    return ConfigResource(_BY_WIRE_TYPE.get(result.resource_type, ResourceType.UNKNOWN), result.resource_name)


def _text(value: Any) -> str:
    """A value as the broker reads it; of None a text that it refuses, as confluent_kafka sends it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def list_config_resources(kinds: Iterable[ResourceType]) -> wire.ListConfigResourcesRequest:
    """Ask which resources have a configuration of their own; without kinds, of all kinds."""
    return wire.ListConfigResourcesRequest(resource_types=[CONFIGURABLE[kind] for kind in kinds])


def read_config_resources(reply: wire.ListConfigResourcesResponse) -> list[ConfigResource]:
    """The resources, in order.

    Raises:
        KafkaException: there are none because of an error.
    """
    raise_failure("the list of configurations", reply.error_code, None, "DESCRIBE_CONFIGS on the cluster")
    return sorted(_resource(each) for each in reply.config_resources)
