"""Every API by its key, and the choice of a version that both sides know.

Read next: `wire.messages`, one module for each group of APIs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from headrace.errors import KafkaError, KafkaException
from headrace.wire.messages import admin_configs, admin_topics, fetch, groups, metadata, offsets, produce, session
from headrace.wire.schema import Request, Response

__all__ = ["API", "Api", "negotiate"]

_MODULES: Final = (session, metadata, produce, fetch, offsets, groups, admin_topics, admin_configs)
_PRODUCE: Final = 0
_FIRST_PRODUCE_OF_KAFKA_4: Final = 12
_LOWEST_PRODUCE_OF_KAFKA_4: Final = 3


@dataclass(slots=True, frozen=True)
class Api:
    """One API: its key, Kafka's name for it, its two messages and the versions known here."""

    key: int
    name: str
    request: type[Request]
    response: type[Response]
    min_version: int
    max_version: int


def _apis(module: ModuleType) -> dict[int, Api]:
    requests = (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Request))
    return {
        cls.api_key: Api(cls.api_key, cls.__name__.removesuffix("Request"), cls, cls.response_type,
                         cls.min_version, cls.max_version)
        for cls in requests if cls is not Request
    }


API: Final[dict[int, Api]] = dict(sorted(item for module in _MODULES for item in _apis(module).items()))
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
