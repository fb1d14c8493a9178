"""The table of APIs: which request and response belong to a key, and which version to speak with a broker.

Read next: `wire.messages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headrace.errors import KafkaError, KafkaException
from headrace.wire.messages import ALL
from headrace.wire.schema import Request, Response

__all__ = ["API", "Api", "negotiate"]


class Api(NamedTuple):
    """One row: everything that this package knows of an API."""

    key: int
    name: str
    request: type[Request]
    response: type[Response]
    min_version: int
    max_version: int


API: dict[int, Api] = {
    request.api_key: Api(request.api_key, request.__name__.removesuffix("Request"), request, request.response_type,
                         request.min_version, request.max_version)
    for request in sorted(ALL, key=lambda r: r.api_key)
}

_PRODUCE = 0
_OLDEST_PRODUCE_OF_KAFKA_4 = 3


def negotiate(
    request_type: type[Request], broker_ranges: Mapping[int, tuple[int, int]], max_version: int | None = None
) -> int:
    """The highest version that both sides know.

    Args:
        request_type: class of the request.
        broker_ranges: lowest and highest version of each key, as the broker's ApiVersions answer says.
        max_version: the highest version that the caller can use.

    Raises:
        KafkaException: `_UNSUPPORTED_FEATURE`: there is none; the text says which side is older.
    """
    name = request_type.__name__.removesuffix("Request")
    low, high = request_type.min_version, request_type.max_version
    if max_version is not None:
        high = min(high, max_version)
    theirs = broker_ranges.get(request_type.api_key)
    if theirs is None:
        raise KafkaException(KafkaError(
            KafkaError._UNSUPPORTED_FEATURE, f"The broker does not serve {name} (key {request_type.api_key}): it is "
            "older than this feature, or does not offer it on this listener"))
    their_low = theirs[0]
    if request_type.api_key == _PRODUCE and theirs[1] >= 12:
        their_low = max(their_low, _OLDEST_PRODUCE_OF_KAFKA_4)  # Kafka 4 lists 0-2 and refuses them (KAFKA-18659)
    best = min(high, theirs[1])
    if best < max(low, their_low):
        raise KafkaException(KafkaError(
            KafkaError._UNSUPPORTED_FEATURE, f"No common version of {name}: the broker serves {theirs[0]} to "
            f"{theirs[1]}, this client can use {low} to {high}"))
    return best
