"""The table of what is served: request type to handler, and the versions of each.

Versions are those of Kafka 4 (KIP-896 removed the older ones): record batches of format 2 only. Transactions, ACLs,
SASL, the new consumer protocol and share groups are not listed, so clients know before they try.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.broker.cluster import Call
from headrace.broker.handlers_configs import alter_configs, describe_configs, incremental_alter_configs
from headrace.broker.handlers_fetch import fetch
from headrace.broker.handlers_groups import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_fetch,
    sync_group,
)
from headrace.broker.handlers_metadata import describe_cluster, describe_topic_partitions, metadata
from headrace.broker.handlers_offsets import list_offsets, offset_for_leader_epoch
from headrace.broker.handlers_produce import init_producer_id, produce
from headrace.broker.handlers_session import api_versions
from headrace.broker.handlers_topics import create_partitions, create_topics, delete_records, delete_topics
from headrace.wire.messages.admin_configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from headrace.wire.messages.admin_topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
)
from headrace.wire.messages.fetch import FetchRequest, OffsetForLeaderEpochRequest
from headrace.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    SyncGroupRequest,
)
from headrace.wire.messages.metadata import DescribeClusterRequest, DescribeTopicPartitionsRequest, MetadataRequest
from headrace.wire.messages.offsets import ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest
from headrace.wire.messages.produce import InitProducerIdRequest, ProduceRequest
from headrace.wire.messages.session import ApiVersionsRequest
from headrace.wire.schema import Request

__all__ = ["SERVED", "SERVICES"]

Handler = Callable[[Call, Any], Any]
"""Answers with a response, with an awaitable of one where it must wait, or with None where there is none."""

SERVICES: dict[type[Request], Handler] = {
    ApiVersionsRequest: lambda call, request: api_versions(call, request, SERVED),
    MetadataRequest: metadata,
    DescribeClusterRequest: describe_cluster,
    DescribeTopicPartitionsRequest: describe_topic_partitions,
    ProduceRequest: produce,
    InitProducerIdRequest: init_producer_id,
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
}

_OLDEST: dict[type[Request], int] = {
    ProduceRequest: 3,
    FetchRequest: 4,
    ListOffsetsRequest: 1,
    OffsetCommitRequest: 2,
    OffsetFetchRequest: 1,
    OffsetForLeaderEpochRequest: 2,
    CreateTopicsRequest: 2,
    DeleteTopicsRequest: 1,
    DescribeConfigsRequest: 1,
}
"""First version served, where it is not the first that the wire knows."""

SERVED: dict[int, tuple[int, int]] = {
    request.api_key: (_OLDEST.get(request, request.min_version), request.max_version) for request in SERVICES
}
"""Lowest and highest version served, by key."""
