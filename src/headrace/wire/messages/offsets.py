"""TODO"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Int8, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

__all__ = [
    "ListOffsetsPartition", "ListOffsetsPartitionResponse", "ListOffsetsRequest", "ListOffsetsResponse",
    "ListOffsetsTopic", "ListOffsetsTopicResponse", "OffsetCommitRequest", "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic", "OffsetCommitResponse", "OffsetCommitResponsePartition", "OffsetCommitResponseTopic",
    "OffsetFetchRequest", "OffsetFetchRequestGroup", "OffsetFetchRequestTopic", "OffsetFetchRequestTopics",
    "OffsetFetchResponse", "OffsetFetchResponseGroup", "OffsetFetchResponsePartition", "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic", "OffsetFetchResponseTopics",
]


class ListOffsetsPartition(Struct):
    """TODO ListOffsetsPartition"""

    partition_index: Int32 = field()
    current_leader_epoch: Int32 = field("4+", default=-1, ignorable=True)
    timestamp: Int64 = field()
    max_num_offsets: Int32 = field("0", default=1)


class ListOffsetsTopic(Struct):
    """TODO ListOffsetsTopic"""

    name: String = field()
    partitions: Array[ListOffsetsPartition] = field()


class ListOffsetsRequest(Request, key=2, versions="0-11", flexible="6+"):
    """TODO ListOffsetsRequest"""

    replica_id: Int32 = field()
    isolation_level: Int8 = field("2+")
    topics: Array[ListOffsetsTopic] = field()
    timeout_ms: Int32 = field("10+", ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    """TODO ListOffsetsPartitionResponse"""

    partition_index: Int32 = field()
    error_code: Int16 = field()
    old_style_offsets: Array[Int64] = field("0")
    timestamp: Int64 = field("1+", default=-1)
    offset: Int64 = field("1+", default=-1)
    leader_epoch: Int32 = field("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    """TODO ListOffsetsTopicResponse"""

    name: String = field()
    partitions: Array[ListOffsetsPartitionResponse] = field()


class ListOffsetsResponse(Response, to=ListOffsetsRequest):
    """TODO ListOffsetsResponse"""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: Array[ListOffsetsTopicResponse] = field()


class OffsetCommitRequestPartition(Struct):
    """TODO OffsetCommitRequestPartition"""

    partition_index: Int32 = field()
    committed_offset: Int64 = field()
    committed_leader_epoch: Int32 = field("6+", default=-1, ignorable=True)
    commit_timestamp: Int64 = field("1", default=-1)
    committed_metadata: String | None = field()


class OffsetCommitRequestTopic(Struct):
    """TODO OffsetCommitRequestTopic"""

    name: String = field("0-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: Array[OffsetCommitRequestPartition] = field()


class OffsetCommitRequest(Request, key=8, versions="0-10", flexible="8+"):
    """TODO OffsetCommitRequest"""

    group_id: String = field()
    generation_id_or_member_epoch: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String = field("1+", ignorable=True)
    group_instance_id: String | None = field("7+", default=None)
    retention_time_ms: Int64 = field("2-4", default=-1, ignorable=True)
    topics: Array[OffsetCommitRequestTopic] = field()


class OffsetCommitResponsePartition(Struct):
    """TODO OffsetCommitResponsePartition"""

    partition_index: Int32 = field()
    error_code: Int16 = field()


class OffsetCommitResponseTopic(Struct):
    """TODO OffsetCommitResponseTopic"""

    name: String = field("0-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: Array[OffsetCommitResponsePartition] = field()


class OffsetCommitResponse(Response, to=OffsetCommitRequest):
    """TODO OffsetCommitResponse"""

    throttle_time_ms: Int32 = field("3+", ignorable=True)
    topics: Array[OffsetCommitResponseTopic] = field()


class OffsetFetchRequestTopic(Struct):
    """TODO OffsetFetchRequestTopic"""

    name: String = field("0-7")
    partition_indexes: Array[Int32] = field("0-7")


class OffsetFetchRequestTopics(Struct):
    """TODO OffsetFetchRequestTopics"""

    name: String = field("8-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partition_indexes: Array[Int32] = field("8+")


class OffsetFetchRequestGroup(Struct):
    """TODO OffsetFetchRequestGroup"""

    group_id: String = field("8+")
    member_id: String | None = field("9+", default=None, ignorable=True)
    member_epoch: Int32 = field("9+", default=-1, ignorable=True)
    topics: Array[OffsetFetchRequestTopics] | None = field("8+")


class OffsetFetchRequest(Request, key=9, versions="0-10", flexible="6+"):
    """TODO OffsetFetchRequest"""

    group_id: String = field("0-7")
    topics: Array[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7")
    groups: Array[OffsetFetchRequestGroup] = field("8+")
    require_stable: Bool = field("7+")


class OffsetFetchResponsePartition(Struct):
    """TODO OffsetFetchResponsePartition"""

    partition_index: Int32 = field("0-7")
    committed_offset: Int64 = field("0-7")
    committed_leader_epoch: Int32 = field("5-7", default=-1, ignorable=True)
    metadata: String | None = field("0-7")
    error_code: Int16 = field("0-7")


class OffsetFetchResponseTopic(Struct):
    """TODO OffsetFetchResponseTopic"""

    name: String = field("0-7")
    partitions: Array[OffsetFetchResponsePartition] = field("0-7")


class OffsetFetchResponsePartitions(Struct):
    """TODO OffsetFetchResponsePartitions"""

    partition_index: Int32 = field("8+")
    committed_offset: Int64 = field("8+")
    committed_leader_epoch: Int32 = field("8+", default=-1, ignorable=True)
    metadata: String | None = field("8+")
    error_code: Int16 = field("8+")


class OffsetFetchResponseTopics(Struct):
    """TODO OffsetFetchResponseTopics"""

    name: String = field("8-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: Array[OffsetFetchResponsePartitions] = field("8+")


class OffsetFetchResponseGroup(Struct):
    """TODO OffsetFetchResponseGroup"""

    group_id: String = field("8+")
    topics: Array[OffsetFetchResponseTopics] = field("8+")
    error_code: Int16 = field("8+")


class OffsetFetchResponse(Response, to=OffsetFetchRequest):
    """TODO OffsetFetchResponse"""

    throttle_time_ms: Int32 = field("3+", ignorable=True)
    topics: Array[OffsetFetchResponseTopic] = field("0-7")
    error_code: Int16 = field("2-7", ignorable=True)
    groups: Array[OffsetFetchResponseGroup] = field("8+")
