"""Offsets: of a log by time, and those that groups have committed."""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    field,
)

__all__ = [
    "ListOffsetsPartition",
    "ListOffsetsPartitionResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListOffsetsTopic",
    "ListOffsetsTopicResponse",
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopic",
    "OffsetFetchRequestTopics",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic",
    "OffsetFetchResponseTopics",
]


class ListOffsetsPartition(Struct):
    """One entry: list offsets partition."""

    partition_index: Int32 = field()
    current_leader_epoch: Int32 = field("4+", default=-1, ignorable=True)
    timestamp: Int64 = field()
    max_num_offsets: Int32 = field("0", default=1)


class ListOffsetsTopic(Struct):
    """One entry: list offsets topic."""

    name: String = field()
    partitions: Array[ListOffsetsPartition] = field()


class ListOffsetsRequest(Request, key=2, versions="0-11", flexible="6+"):
    """Ask for the offset at a time, or at the start or end of a partition (KIP-79)."""

    replica_id: Int32 = field()
    isolation_level: Int8 = field("2+")
    topics: Array[ListOffsetsTopic] = field()
    timeout_ms: Int32 = field("10+", ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    """One entry: list offsets partition response."""

    partition_index: Int32 = field()
    error_code: Int16 = field()
    old_style_offsets: Array[Int64] = field("0")
    timestamp: Int64 = field("1+", default=-1)
    offset: Int64 = field("1+", default=-1)
    leader_epoch: Int32 = field("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    """One entry: list offsets topic response."""

    name: String = field()
    partitions: Array[ListOffsetsPartitionResponse] = field()


class ListOffsetsResponse(Response, key=2, versions="0-11", flexible="6+"):
    """Answer to `ListOffsetsRequest`."""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: Array[ListOffsetsTopicResponse] = field()


ListOffsetsRequest.response_type = ListOffsetsResponse


class OffsetCommitRequestPartition(Struct):
    """One entry: offset commit request partition."""

    partition_index: Int32 = field()
    committed_offset: Int64 = field()
    committed_leader_epoch: Int32 = field("6+", default=-1, ignorable=True)
    commit_timestamp: Int64 = field("1", default=-1)
    committed_metadata: String | None = field(nullable="0+")


class OffsetCommitRequestTopic(Struct):
    """One entry: offset commit request topic."""

    name: String = field("0-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: Array[OffsetCommitRequestPartition] = field()


class OffsetCommitRequest(Request, key=8, versions="0-10", flexible="8+"):
    """Store a group's offsets; v10 uses topic ids."""

    group_id: String = field()
    generation_id_or_member_epoch: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String = field("1+", ignorable=True)
    group_instance_id: String | None = field("7+", default=None, nullable="7+")
    retention_time_ms: Int64 = field("2-4", default=-1, ignorable=True)
    topics: Array[OffsetCommitRequestTopic] = field()


class OffsetCommitResponsePartition(Struct):
    """One entry: offset commit response partition."""

    partition_index: Int32 = field()
    error_code: Int16 = field()


class OffsetCommitResponseTopic(Struct):
    """One entry: offset commit response topic."""

    name: String = field("0-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: Array[OffsetCommitResponsePartition] = field()


class OffsetCommitResponse(Response, key=8, versions="0-10", flexible="8+"):
    """Answer to `OffsetCommitRequest`."""

    throttle_time_ms: Int32 = field("3+", ignorable=True)
    topics: Array[OffsetCommitResponseTopic] = field()


OffsetCommitRequest.response_type = OffsetCommitResponse


class OffsetFetchRequestTopic(Struct):
    """One entry: offset fetch request topic."""

    name: String = field("0-7")
    partition_indexes: Array[Int32] = field("0-7")


class OffsetFetchRequestTopics(Struct):
    """One entry: offset fetch request topics."""

    name: String = field("8-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partition_indexes: Array[Int32] = field("8+")


class OffsetFetchRequestGroup(Struct):
    """One entry: offset fetch request group."""

    group_id: String = field("8+")
    member_id: String | None = field("9+", default=None, nullable="9+", ignorable=True)
    member_epoch: Int32 = field("9+", default=-1, ignorable=True)
    topics: Array[OffsetFetchRequestTopics] | None = field("8+", nullable="8+")


class OffsetFetchRequest(Request, key=9, versions="0-10", flexible="6+"):
    """Read a group's offsets; v8 takes several groups (KIP-709), v10 topic ids."""

    group_id: String = field("0-7")
    topics: Array[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7")
    groups: Array[OffsetFetchRequestGroup] = field("8+")
    require_stable: Bool = field("7+")


class OffsetFetchResponsePartition(Struct):
    """One entry: offset fetch response partition."""

    partition_index: Int32 = field("0-7")
    committed_offset: Int64 = field("0-7")
    committed_leader_epoch: Int32 = field("5-7", default=-1, ignorable=True)
    metadata: String | None = field("0-7", nullable="0-7")
    error_code: Int16 = field("0-7")


class OffsetFetchResponseTopic(Struct):
    """One entry: offset fetch response topic."""

    name: String = field("0-7")
    partitions: Array[OffsetFetchResponsePartition] = field("0-7")


class OffsetFetchResponsePartitions(Struct):
    """One entry: offset fetch response partitions."""

    partition_index: Int32 = field("8+")
    committed_offset: Int64 = field("8+")
    committed_leader_epoch: Int32 = field("8+", default=-1, ignorable=True)
    metadata: String | None = field("8+", nullable="8+")
    error_code: Int16 = field("8+")


class OffsetFetchResponseTopics(Struct):
    """One entry: offset fetch response topics."""

    name: String = field("8-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: Array[OffsetFetchResponsePartitions] = field("8+")


class OffsetFetchResponseGroup(Struct):
    """One entry: offset fetch response group."""

    group_id: String = field("8+")
    topics: Array[OffsetFetchResponseTopics] = field("8+")
    error_code: Int16 = field("8+", default=0)


class OffsetFetchResponse(Response, key=9, versions="0-10", flexible="6+"):
    """Answer to `OffsetFetchRequest`."""

    throttle_time_ms: Int32 = field("3+", ignorable=True)
    topics: Array[OffsetFetchResponseTopic] = field("0-7")
    error_code: Int16 = field("2-7", default=0, ignorable=True)
    groups: Array[OffsetFetchResponseGroup] = field("8+")


OffsetFetchRequest.response_type = OffsetFetchResponse
