"""ApiVersions: what this broker serves, told to every client that connects."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.broker.cluster import Call
from headrace.errors import KafkaError
from headrace.wire.messages.session import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

__all__ = ["api_versions", "unsupported_api_versions"]

_PRODUCE = 0

Ranges = Mapping[int, tuple[int, int]]


def api_versions(call: Call, request: ApiVersionsRequest, served: Ranges) -> ApiVersionsResponse:
    """The versions of every API; the cluster and node ids of version 5 are checked as KIP-1242 asks."""
    error = 0
    if request.cluster_id is not None and (request.cluster_id != call.cluster.catalog.cluster_id
                                           or request.node_id not in (-1, call.node_id)):
        error = KafkaError.REBOOTSTRAP_REQUIRED
    return ApiVersionsResponse(error_code=error, api_keys=_ranges(served))


def unsupported_api_versions(served: Ranges) -> ApiVersionsResponse:
    """The answer, in version 0, to an ApiVersions request of an unknown version (KIP-511)."""
    return ApiVersionsResponse(error_code=KafkaError.UNSUPPORTED_VERSION, api_keys=_ranges(served))


def _ranges(served: Ranges) -> list[ApiVersion]:
    # Produce is listed from 0 although 3 is the first that is served, as Kafka 4 does: old librdkafka releases would
    # otherwise turn off record batches and compression (KAFKA-18659).
    return [ApiVersion(api_key=key, min_version=0 if key == _PRODUCE else low, max_version=high)
            for key, (low, high) in sorted(served.items())]
