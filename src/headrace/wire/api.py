"""Every API by its key, and the choice of a version that both sides know.

Read next: `wire.messages`, one module for each group of APIs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

from headrace.errors import KafkaError, KafkaException
from headrace.wire.schema import Request, Response

__all__ = ["API", "Api", "negotiate"]

_PACKAGE: Final = "headrace.wire.messages"
_MODULES: Final = (
    "session", "metadata", "produce", "fetch", "offsets", "groups", "groups_next", "share", "transactions",
    "admin_topics", "admin_configs", "admin_security", "admin_cluster", "admin_nodes", "telemetry", "streams",
    "share_state", "quorum", "brokers", "brokers_before_4",
)
_PRODUCE: Final = 0
_FIRST_PRODUCE_OF_KAFKA_4: Final = 12
_LOWEST_PRODUCE_OF_KAFKA_4: Final = 3


class Api(NamedTuple):
    """One API: its key, Kafka's name for it, its two messages and the versions known here."""

    key: int
    name: str
    request: type[Request]
    response: type[Response]
    min_version: int
    max_version: int


class Apis(Mapping[int, Api]):
    """The APIs by key. All messages are imported on first use: a client that only sends needs few of them."""

    @cached_property
    def _table(self) -> dict[int, Api]:
        modules = (import_module(f"{_PACKAGE}.{name}") for name in _MODULES)
        return dict(sorted((api.key, api) for module in modules for api in _apis(module)))

    def __getitem__(self, key: int) -> Api:
        return self._table[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def _apis(module: ModuleType) -> Iterator[Api]:
    for cls in vars(module).values():
        if isinstance(cls, type) and issubclass(cls, Request) and cls is not Request:
            name = cls.__name__.removesuffix("Request")
            yield Api(cls.api_key, name, cls, cls.response_type, cls.min_version, cls.max_version)


API: Final[Mapping[int, Api]] = Apis()
"""Every API known here, by key."""


def negotiate(
    request_type: type[Request], broker_ranges: Mapping[int, tuple[int, int]], max_version: int | None = None
) -> int:
    """The highest version that the broker and we both know.

    Kafka 4 advertises Produce from version 0 for the sake of old librdkafka but takes 3 and above (KAFKA-18659).

    Args:
        request_type: class of the request.
        broker_ranges: lowest and highest version of each API key, from the broker's ApiVersions response.
        max_version: highest version that the caller wants.

    Raises:
        KafkaException: there is no such version (`KafkaError._UNSUPPORTED_FEATURE`).
    """
    key, name = request_type.api_key, request_type.__name__.removesuffix("Request")
    ours = f"this client knows versions {request_type.min_version}-{request_type.max_version}"
    if key not in broker_ranges:
        raise _unsupported(f"the broker does not offer {name} (API key {key}); {ours}. Is the broker too old, or the "
                           "feature switched off there?")
    low, high = broker_ranges[key]
    if key == _PRODUCE and high >= _FIRST_PRODUCE_OF_KAFKA_4:
        low = max(low, _LOWEST_PRODUCE_OF_KAFKA_4)
    limit = request_type.max_version if max_version is None else min(max_version, request_type.max_version)
    version = min(high, limit)
    if version < max(low, request_type.min_version):
        wanted = ours if max_version is None else f"{ours} and may use up to {limit} here"
        raise _unsupported(f"the broker offers {name} in versions {low}-{high}; {wanted}")
    return version


def _unsupported(text: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE, text))
