"""ApiVersions: which requests this broker serves, in which versions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headrace.broker.cluster import ApiCall, BrokerCluster
from headrace.broker.served_api import ServedApi
from headrace.errors import KafkaError
from headrace.wire.messages.cluster.session import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
from headrace.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest

__all__ = ["SERVES", "api_versions", "unsupported_api_versions"]

_PRODUCE = 0
_LOWEST_PRODUCE_OF_KAFKA_4 = 3
_RANGE_IN_ERROR_FROM = 3
_NAMES_FROM = 3
_FROM_ZERO_FROM = 4
"""Version from which on clients can read of a feature that begins with 0 (KIP-1022)."""
_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""What a client may call itself (KIP-511)."""

Ranges = Mapping[int, tuple[int, int]]


def api_versions(call: ApiCall, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """The versions of every API; the cluster and node ids of version 5 are checked as KIP-1242 asks."""
    if call.version >= _NAMES_FROM and not (_NAME.fullmatch(request.client_software_name)
                                            and _NAME.fullmatch(request.client_software_version)):
        return ApiVersionsResponse(error_code=KafkaError.INVALID_REQUEST, api_keys=[])
    error = 0
    if request.cluster_id is not None and (request.cluster_id != call.cluster.catalog.cluster_id
                                           or request.node_id not in (-1, call.node_id)):
        error = KafkaError.REBOOTSTRAP_REQUIRED
    reply = ApiVersionsResponse(error_code=error, api_keys=_ranges(call.cluster.served))
    if features := _features(call.cluster):
        reply.finalized_features_epoch = 0
        reply.finalized_features = [FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                                    for name, (level, _) in features.items()]
        if call.version >= _FROM_ZERO_FROM:
            reply.supported_features = [SupportedFeatureKey(name=name, min_version=0, max_version=highest)
                                        for name, (_, highest) in features.items()]
    return reply


def _features(cluster: BrokerCluster) -> dict[str, tuple[int, int]]:
    """Level, and highest level there is, of each feature that is on."""
    settings, served = cluster.settings, cluster.served
    levels = {
        "transaction.version": (cluster.transaction_version, 2),
        "group.version": (settings.group_version if ConsumerGroupHeartbeatRequest.api_key in served else 0, 1),
        "share.version": (settings.share_version if ShareGroupHeartbeatRequest.api_key in served else 0, 1),
    }
    return {name: each for name, each in levels.items() if each[0] > 0}


def unsupported_api_versions(served: Ranges) -> ApiVersionsResponse:
    """The answer, in version 0, to an ApiVersions request of an unknown version.

    It names the versions of ApiVersions alone, so that the client asks again at once (KIP-511); brokers before that,
    which know no version 3, name none.
    """
    key = ApiVersionsRequest.api_key
    known = {key: served[key]} if served[key][1] >= _RANGE_IN_ERROR_FROM else {}
    return ApiVersionsResponse(error_code=KafkaError.UNSUPPORTED_VERSION, api_keys=_ranges(known))


def _ranges(served: Ranges) -> list[ApiVersion]:
    # A broker that begins with 3 lists Produce from 0 all the same, as Kafka 4 does: old librdkafka releases would
    # otherwise turn off record batches and compression (KAFKA-18659).
    return [ApiVersion(api_key=key, min_version=0 if (key, low) == (_PRODUCE, _LOWEST_PRODUCE_OF_KAFKA_4) else low,
                       max_version=high)
            for key, (low, high) in sorted(served.items())]


SERVES = (
    ServedApi(ApiVersionsRequest, api_versions,
              "Of features `transaction.version`, `group.version` and `share.version` are named. Cluster and node "
              "ids are checked as in KIP-1242."),
)
