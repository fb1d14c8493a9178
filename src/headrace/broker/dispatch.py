"""The table of what is served: request type to handler, and the versions of each.

All versions from 0 on are served, those too that Kafka 4 took away (KIP-896): message sets of old producers become
record batches, and old consumers get message sets. Settings can narrow this down to what an older broker offered.
SASL, the new consumer protocol and share groups are not listed, so clients know before they try.

Read next: any `broker.handlers_*` module; `broker.profiles` for the versions of Kafka's releases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.broker.apis.configs import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from headrace.broker.apis.fetch import fetch
from headrace.broker.apis.groups import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from headrace.broker.apis.list_offsets import list_offsets, offset_for_leader_epoch
from headrace.broker.apis.metadata import describe_cluster, describe_topic_partitions, metadata
from headrace.broker.apis.nodes import (
    create_acls,
    delete_acls,
    describe_acls,
    describe_log_dirs,
    describe_producers,
    elect_leaders,
    list_partition_reassignments,
)
from headrace.broker.apis.produce import produce
from headrace.broker.apis.session import api_versions
from headrace.broker.apis.topics import create_partitions, create_topics, delete_records, delete_topics
from headrace.broker.apis.transactions import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    txn_offset_commit,
    write_txn_markers,
)
from headrace.broker.cluster import ApiCall
from headrace.broker.settings import BrokerSettings
from headrace.wire.messages.admin.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from headrace.wire.messages.admin.replicas import (
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from headrace.wire.messages.admin.security import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from headrace.wire.messages.admin.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
)
from headrace.wire.messages.cluster.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.messages.consumer.fetch import FetchRequest, OffsetForLeaderEpochRequest
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from headrace.wire.messages.groups.classic_groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    SyncGroupRequest,
)
from headrace.wire.messages.producer.produce import InitProducerIdRequest, ProduceRequest
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from headrace.wire.schema import Request

__all__ = ["GENERAL_LIMITS", "LIMITS", "SERVED", "SERVICES", "served_by"]

Handler = Callable[[ApiCall, Any], Any]
"""Answers with a response, with an awaitable of one where it must wait, or with None where there is none."""

SERVICES: dict[type[Request], Handler] = {
    ApiVersionsRequest: api_versions,
    MetadataRequest: metadata,
    DescribeClusterRequest: describe_cluster,
    DescribeTopicPartitionsRequest: describe_topic_partitions,
    ProduceRequest: produce,
    InitProducerIdRequest: init_producer_id,
    AddPartitionsToTxnRequest: add_partitions_to_txn,
    AddOffsetsToTxnRequest: add_offsets_to_txn,
    TxnOffsetCommitRequest: txn_offset_commit,
    EndTxnRequest: end_txn,
    WriteTxnMarkersRequest: write_txn_markers,
    DescribeTransactionsRequest: describe_transactions,
    ListTransactionsRequest: list_transactions,
    FetchRequest: fetch,
    ListOffsetsRequest: list_offsets,
    OffsetForLeaderEpochRequest: offset_for_leader_epoch,
    FindCoordinatorRequest: find_coordinator,
    JoinGroupRequest: join_group,
    SyncGroupRequest: sync_group,
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: leave_group,
    OffsetCommitRequest: offset_commit,
    OffsetFetchRequest: offset_fetch,
    DescribeGroupsRequest: describe_groups,
    ListGroupsRequest: list_groups,
    DeleteGroupsRequest: delete_groups,
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    CreatePartitionsRequest: create_partitions,
    DeleteRecordsRequest: delete_records,
    DescribeConfigsRequest: describe_configs,
    AlterConfigsRequest: alter_configs,
    IncrementalAlterConfigsRequest: incremental_alter_configs,
    ListConfigResourcesRequest: list_config_resources,
    OffsetDeleteRequest: offset_delete,
    DescribeProducersRequest: describe_producers,
    DescribeLogDirsRequest: describe_log_dirs,
    ElectLeadersRequest: elect_leaders,
    ListPartitionReassignmentsRequest: list_partition_reassignments,
    DescribeAclsRequest: describe_acls,
    CreateAclsRequest: create_acls,
    DeleteAclsRequest: delete_acls,
}

GENERAL_LIMITS = (
    "There is one copy of the data, whatever the replication factor: all replicas of a partition are in one process, "
    "share one log and are always in sync. `acks=1` and `acks=all` are the same.",
    "There is no authentication, no TLS, no access rules and no quotas; throttle times are 0.",
    "Settings of topics other than `max.message.bytes`, `message.timestamp.type`, `cleanup.policy` (for DeleteRecords) "
    "and `compression.type` (only whether it is `zstd`) are checked, kept and shown, but nothing follows from them: "
    "nothing is compacted, and nothing is deleted because of its age or size.",
    "The consumer protocol of KIP-848, share groups, Streams groups, SASL, delegation tokens, quotas, "
    "features, moving replicas and telemetry are not offered.",
    "Record batches of format 2 are checked by header and checksum and stored as they are; their records are not "
    "looked into. Message sets of formats 0 and 1 are read whole. What is converted from one to the other may have "
    "64 MiB uncompressed.",
    "Error messages are in this broker's own words, and there may be one where Kafka has none.",
)
"""What this broker does not do, or does otherwise than Kafka, whatever the request."""

LIMITS: dict[type[Request], str] = {
    ProduceRequest: "Versions 0-2 carry message sets; each becomes one batch of format 2.",
    FetchRequest: "Every fetch is answered in full: no sessions are kept (KIP-227 leaves that to the broker). Versions "
                  "0 and 1 get messages of format 0, versions 2 and 3 of format 1, at most 8 MiB of batches in one "
                  "reply; zstd batches are refused there, as are zstd topics before version 10.",
    ListOffsetsRequest: "Nothing is ever in remote storage.",
    MetadataRequest: "A topic that is made because it was asked for is there in the first reply.",
    JoinGroupRequest: "Sessions may be as short as 100 ms, unless the broker's settings say otherwise.",
    OffsetCommitRequest: "Version 0 commits to the group, not to ZooKeeper. Commits never expire.",
    CreateTopicsRequest: "At most 10,000 partitions.",
    DescribeConfigsRequest: "Of a broker, only what this one can be started with. Broker loggers, client metrics and "
                            "groups have no settings.",
    AlterConfigsRequest: "Topics only.",
    IncrementalAlterConfigsRequest: "Topics only.",
    ListConfigResourcesRequest: "Topics and brokers only.",
    DescribeLogDirsRequest: "One directory, or `memory`.",
    ElectLeadersRequest: "No election is unclean: all replicas are in sync.",
    ListPartitionReassignmentsRequest: "Always empty.",
    EndTxnRequest: "Markers are written before the reply, unless the broker's settings say otherwise or a partition "
                   "has no leader: then they are written when it has one.",
    WriteTxnMarkersRequest: "Into topics only: offsets of groups have no partition of their own.",
    DescribeTransactionsRequest: "Offsets of groups are shown as partitions of `__consumer_offsets`, which is no topic "
                                 "here.",
    ListTransactionsRequest: "Patterns are RE2's, without flags, word boundaries and Unicode classes.",
    DescribeProducersRequest: "Producers never expire.",
    DescribeAclsRequest: "Always SECURITY_DISABLED, as in Kafka without an authorizer.",
    CreateAclsRequest: "Always SECURITY_DISABLED.",
    DeleteAclsRequest: "Always SECURITY_DISABLED.",
    ApiVersionsRequest: "`transaction.version` is the only feature that is named. Cluster and node ids are checked as "
                        "in KIP-1242.",
}
"""What this broker does not do, or does otherwise than Kafka, by request."""

SERVED: dict[int, tuple[int, int]] = {
    request.api_key: (request.min_version, request.max_version) for request in SERVICES
}
"""Lowest and highest version served, by key."""


def served_by(settings: BrokerSettings) -> dict[int, tuple[int, int]]:
    """Lowest and highest version that a broker of these settings offers, by key.

    Raises:
        ValueError: the settings name an API or versions that are not served.
    """
    named = {request.__name__.removesuffix("Request"): request.api_key for request in SERVICES}
    served = dict(SERVED)
    for name, wanted in (settings.api_versions or {}).items():
        if name not in named:
            raise ValueError(f"api_versions names {name!r}, which is not served; there are {', '.join(sorted(named))}")
        key = named[name]
        if wanted is None:
            del served[key]
            continue
        low, high = SERVED[key]
        if not low <= wanted[0] <= wanted[1] <= high:
            raise ValueError(f"api_versions asks for {name} {wanted[0]} to {wanted[1]}; {low} to {high} are served")
        served[key] = wanted
    return served
