"""Every API by its key, and the choice of a version that both sides know.

Read next: `wire.messages`, one module for each group of APIs.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `headrace`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from headrace.errors import KafkaException
    from headrace.wire.schema import Request, Response

__all__ = ["API", "Api", "negotiate"]

_PACKAGE: Final = "headrace.wire.messages"
_NAMES: Final[dict[str, dict[int, str]]] = {
    "cluster.session": {17: "SaslHandshake", 18: "ApiVersions", 36: "SaslAuthenticate"},
    "cluster.metadata": {3: "Metadata", 60: "DescribeCluster", 75: "DescribeTopicPartitions"},
    "producer.produce": {0: "Produce", 22: "InitProducerId"},
    "consumer.fetch": {1: "Fetch", 23: "OffsetForLeaderEpoch"},
    "consumer.offsets": {2: "ListOffsets", 8: "OffsetCommit", 9: "OffsetFetch", 47: "OffsetDelete"},
    "groups.classic_groups": {
        10: "FindCoordinator",
        11: "JoinGroup",
        12: "Heartbeat",
        13: "LeaveGroup",
        14: "SyncGroup",
        15: "DescribeGroups",
        16: "ListGroups",
        42: "DeleteGroups",
    },
    "groups.consumer_groups": {68: "ConsumerGroupHeartbeat", 69: "ConsumerGroupDescribe"},
    "groups.share_groups": {
        76: "ShareGroupHeartbeat",
        77: "ShareGroupDescribe",
        78: "ShareFetch",
        79: "ShareAcknowledge",
        90: "DescribeShareGroupOffsets",
        91: "AlterShareGroupOffsets",
        92: "DeleteShareGroupOffsets",
    },
    "producer.transactions": {
        24: "AddPartitionsToTxn",
        25: "AddOffsetsToTxn",
        26: "EndTxn",
        27: "WriteTxnMarkers",
        28: "TxnOffsetCommit",
        61: "DescribeProducers",
        65: "DescribeTransactions",
        66: "ListTransactions",
    },
    "admin.topics": {19: "CreateTopics", 20: "DeleteTopics", 21: "DeleteRecords", 37: "CreatePartitions"},
    "admin.configs": {
        32: "DescribeConfigs",
        33: "AlterConfigs",
        44: "IncrementalAlterConfigs",
        74: "ListConfigResources",
    },
    "admin.security": {
        29: "DescribeAcls",
        30: "CreateAcls",
        31: "DeleteAcls",
        38: "CreateDelegationToken",
        39: "RenewDelegationToken",
        40: "ExpireDelegationToken",
        41: "DescribeDelegationToken",
        50: "DescribeUserScramCredentials",
        51: "AlterUserScramCredentials",
    },
    "admin.replicas": {
        34: "AlterReplicaLogDirs",
        35: "DescribeLogDirs",
        43: "ElectLeaders",
        45: "AlterPartitionReassignments",
        46: "ListPartitionReassignments",
    },
    "admin.quotas": {48: "DescribeClientQuotas", 49: "AlterClientQuotas"},
    "admin.nodes": {
        55: "DescribeQuorum",
        57: "UpdateFeatures",
        64: "UnregisterBroker",
        80: "AddRaftVoter",
        81: "RemoveRaftVoter",
        94: "UnregisterController",
    },
    "cluster.telemetry": {71: "GetTelemetrySubscriptions", 72: "PushTelemetry"},
    "groups.streams_groups": {
        88: "StreamsGroupHeartbeat",
        89: "StreamsGroupDescribe",
        93: "StreamsGroupTopologyDescriptionUpdate",
    },
    "groups.share_state": {
        83: "InitializeShareGroupState",
        84: "ReadShareGroupState",
        85: "WriteShareGroupState",
        86: "DeleteShareGroupState",
        87: "ReadShareGroupStateSummary",
    },
    "controllers.quorum": {
        52: "Vote",
        53: "BeginQuorumEpoch",
        54: "EndQuorumEpoch",
        59: "FetchSnapshot",
        82: "UpdateRaftVoter",
    },
    "controllers.brokers": {
        56: "AlterPartition",
        58: "Envelope",
        62: "BrokerRegistration",
        63: "BrokerHeartbeat",
        67: "AllocateProducerIds",
        70: "ControllerRegistration",
        73: "AssignReplicasToDirs",
    },
    "controllers.brokers_before_4": {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata", 7: "ControlledShutdown"},
}
"""Kafka's names of the APIs by key, for each module of `wire.messages`."""

_PRODUCE: Final = 0
_FIRST_PRODUCE_OF_KAFKA_4: Final = 12
_LOWEST_PRODUCE_OF_KAFKA_4: Final = 3


class Api:
    """One API. Its messages are imported when they are asked for, or the versions: a client needs few of them.

    Attributes:
        key: Kafka's number of it.
        name: Kafka's name for it.
    """

    __slots__ = ("_module", "_request", "key", "name")

    def __init__(self, key: int, name: str, module: str) -> None:
        self.key = key
        self.name = name
        self._module = module
        self._request: type[Request] | None = None

    @property
    def request(self) -> type[Request]:
        """Class of the request."""
        if self._request is None:
            from importlib import import_module

            self._request = getattr(import_module(f"{_PACKAGE}.{self._module}"), f"{self.name}Request")
        return self._request

    @property
    def response(self) -> type[Response]:
        """Class of the response."""
        return self.request.response_type

    @property
    def min_version(self) -> int:
        """Lowest version that is known here."""
        return self.request.min_version

    @property
    def max_version(self) -> int:
        """Highest version that is known here."""
        return self.request.max_version

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name!r})"


API: Final[Mapping[int, Api]] = dict(sorted(
    (key, Api(key, name, module)) for module, names in _NAMES.items() for key, name in names.items()))
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
    from headrace.errors import KafkaError, KafkaException  # the table of errors costs a tenth of all messages

    return KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE, text))
