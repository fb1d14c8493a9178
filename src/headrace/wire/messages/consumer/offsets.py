"""Offsets: those of the log by time, and those a group has committed.

Read next: `machines.consumer.offsets`.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Int8, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

__all__ = [
    "ListOffsetsPartition", "ListOffsetsPartitionResponse", "ListOffsetsRequest", "ListOffsetsResponse",
    "ListOffsetsTopic", "ListOffsetsTopicResponse", "OffsetCommitRequest", "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic", "OffsetCommitResponse", "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic", "OffsetDeleteRequest", "OffsetDeleteRequestPartition", "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse", "OffsetDeleteResponsePartition", "OffsetDeleteResponseTopic", "OffsetFetchRequest",
    "OffsetFetchRequestGroup", "OffsetFetchRequestTopic", "OffsetFetchRequestTopics", "OffsetFetchResponse",
    "OffsetFetchResponseGroup", "OffsetFetchResponsePartition", "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic", "OffsetFetchResponseTopics",
]


class ListOffsetsPartition(Struct):
    """A partition and the time to look up."""

    partition_index: Int32 = field()
    """Partition number."""
    current_leader_epoch: Int32 = field("4+", default=-1, ignorable=True)
    """Leader epoch that the client knows; -1 for none; an outdated one is fenced."""
    timestamp: Int64 = field()
    """Milliseconds since 1970, or: -1 the end, -2 the start, -3 the largest timestamp, -4 the start of what is kept
    locally, -5 the end of what is in tiered storage, -6 the start of what is not there yet.
    """
    max_num_offsets: Int32 = field("0", default=1)
    """Most offsets to answer with."""


class ListOffsetsTopic(Struct):
    """A topic to look up."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[ListOffsetsPartition] = field()
    """One entry for each partition."""


class ListOffsetsRequest(Request, key=2, versions="0-11", flexible="6+"):
    """Ask for offsets by time (KIP-79), or by name: -1 latest, -2 earliest, -3 of the largest timestamp (v7), -4
    earliest local (v8), -5 latest tiered (v9), -6 earliest not yet uploaded (v11).
    """

    replica_id: Int32 = field()
    """Node id of a broker that asks; -1 for a client."""
    isolation_level: Int8 = field("2+")
    """Where the end is: 0 at the high watermark, 1 at the last stable offset (read_committed)."""
    topics: Array[ListOffsetsTopic] = field()
    """One entry for each topic."""
    timeout_ms: Int32 = field("10+", ignorable=True)
    """Milliseconds that the broker may take."""


class ListOffsetsPartitionResponse(Struct):
    """The offset found in one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    old_style_offsets: Array[Int64] = field("0")
    """Offsets of segments, the newest first."""
    timestamp: Int64 = field("1+", default=-1)
    """Timestamp of the record found; -1 for none."""
    offset: Int64 = field("1+", default=-1)
    """Offset that was found; -1 when there is none."""
    leader_epoch: Int32 = field("4+", default=-1)
    """Leader epoch; -1 when not known."""


class ListOffsetsTopicResponse(Struct):
    """The offsets found in one topic."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[ListOffsetsPartitionResponse] = field()
    """One entry for each partition."""


class ListOffsetsResponse(Response, to=ListOffsetsRequest):
    """The offsets found."""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[ListOffsetsTopicResponse] = field()
    """One entry for each topic."""


class OffsetCommitRequestPartition(Struct):
    """The position to keep for one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    committed_offset: Int64 = field()
    """Offset of the next record to read."""
    committed_leader_epoch: Int32 = field("6+", default=-1, ignorable=True)
    """Leader epoch of the last record read; -1 when not known."""
    commit_timestamp: Int64 = field("1", default=-1)
    """Time of the commit; -1 for the time of arrival."""
    committed_metadata: String | None = field()
    """Text kept with the position."""


class OffsetCommitRequestTopic(Struct):
    """Positions to keep for one topic."""

    name: String = field("0-9", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("10+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    partitions: Array[OffsetCommitRequestPartition] = field()
    """One entry for each partition."""


class OffsetCommitRequest(Request, key=8, versions="0-10", flexible="8+"):
    """Keep a group's positions. v7: static membership (KIP-345). v9: member epochs (KIP-848). v10: topic ids."""

    group_id: String = field()
    """Name of the group."""
    generation_id_or_member_epoch: Int32 = field("1+", default=-1, ignorable=True)
    """Generation of a classic group, member epoch of a KIP-848 group; -1 outside of any."""
    member_id: String = field("1+", ignorable=True)
    """Id of the member; empty outside of a group."""
    group_instance_id: String | None = field("7+", default=None)
    """Name of a static member; null for others."""
    retention_time_ms: Int64 = field("2-4", default=-1, ignorable=True)
    """Milliseconds to keep the positions; -1 for the broker's own limit."""
    topics: Array[OffsetCommitRequestTopic] = field()
    """One entry for each topic."""


class OffsetCommitResponsePartition(Struct):
    """Whether one position was kept."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class OffsetCommitResponseTopic(Struct):
    """Whether the positions of one topic were kept."""

    name: String = field("0-9", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("10+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    partitions: Array[OffsetCommitResponsePartition] = field()
    """One entry for each partition."""


class OffsetCommitResponse(Response, to=OffsetCommitRequest):
    """Whether each position was kept."""

    throttle_time_ms: Int32 = field("3+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[OffsetCommitResponseTopic] = field()
    """One entry for each topic."""


class OffsetFetchRequestTopic(Struct):
    """Partitions of one topic to look up, up to version 7."""

    name: String = field("0-7")
    """Name of the topic."""
    partition_indexes: Array[Int32] = field("0-7")
    """Partition numbers."""


class OffsetFetchRequestTopics(Struct):
    """Partitions of one topic to look up, from version 8 on."""

    name: String = field("8-9", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("10+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    partition_indexes: Array[Int32] = field("8+")
    """Partition numbers."""


class OffsetFetchRequestGroup(Struct):
    """A group to look up."""

    group_id: String = field("8+")
    """Name of the group."""
    member_id: String | None = field("9+", default=None, ignorable=True)
    """Id of the member in a KIP-848 group; null for others."""
    member_epoch: Int32 = field("9+", default=-1, ignorable=True)
    """Epoch of the member in a KIP-848 group; -1 for others."""
    topics: Array[OffsetFetchRequestTopics] | None = field("8+")
    """Topics to look up; null for every topic that has positions."""


class OffsetFetchRequest(Request, key=9, versions="0-10", flexible="6+"):
    """Ask for a group's committed positions.

    v7: wait for transactions (KIP-447). v8: several groups in `groups`, which takes the place of `group_id` and
    `topics` (KIP-709). v9: member epochs (KIP-848). v10: topic ids.
    """

    group_id: String = field("0-7")
    """Name of the group."""
    topics: Array[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7")
    """Topics to look up; null for every topic that has positions."""
    groups: Array[OffsetFetchRequestGroup] = field("8+")
    """One entry for each group."""
    require_stable: Bool = field("7+")
    """Wait for open transactions that hold positions (KIP-447)."""


class OffsetFetchResponsePartition(Struct):
    """The committed position of one partition, up to version 7."""

    partition_index: Int32 = field("0-7")
    """Partition number."""
    committed_offset: Int64 = field("0-7")
    """Offset of the next record to read; -1 when none is kept."""
    committed_leader_epoch: Int32 = field("5-7", default=-1, ignorable=True)
    """Leader epoch of the last record read; -1 when not known."""
    metadata: String | None = field("0-7")
    """Text kept with the position."""
    error_code: Int16 = field("0-7")
    """Error code; 0 when all went well."""


class OffsetFetchResponseTopic(Struct):
    """The committed positions of one topic, up to version 7."""

    name: String = field("0-7")
    """Name of the topic."""
    partitions: Array[OffsetFetchResponsePartition] = field("0-7")
    """One entry for each partition."""


class OffsetFetchResponsePartitions(Struct):
    """The committed position of one partition, from version 8 on."""

    partition_index: Int32 = field("8+")
    """Partition number."""
    committed_offset: Int64 = field("8+")
    """Offset of the next record to read; -1 when none is kept."""
    committed_leader_epoch: Int32 = field("8+", default=-1, ignorable=True)
    """Leader epoch of the last record read; -1 when not known."""
    metadata: String | None = field("8+")
    """Text kept with the position."""
    error_code: Int16 = field("8+")
    """Error code; 0 when all went well."""


class OffsetFetchResponseTopics(Struct):
    """The committed positions of one topic, from version 8 on."""

    name: String = field("8-9", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("10+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    partitions: Array[OffsetFetchResponsePartitions] = field("8+")
    """One entry for each partition."""


class OffsetFetchResponseGroup(Struct):
    """The committed positions of one group."""

    group_id: String = field("8+")
    """Name of the group."""
    topics: Array[OffsetFetchResponseTopics] = field("8+")
    """One entry for each topic."""
    error_code: Int16 = field("8+")
    """Error code; 0 when all went well."""


class OffsetFetchResponse(Response, to=OffsetFetchRequest):
    """Committed positions, in `topics` up to version 7 and in `groups` from version 8 on."""

    throttle_time_ms: Int32 = field("3+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[OffsetFetchResponseTopic] = field("0-7")
    """One entry for each topic."""
    error_code: Int16 = field("2-7", ignorable=True)
    """Error code; 0 when all went well."""
    groups: Array[OffsetFetchResponseGroup] = field("8+")
    """One entry for each group."""


class OffsetDeleteRequestPartition(Struct):
    """A partition whose position goes."""

    partition_index: Int32 = field()
    """Partition number."""


class OffsetDeleteRequestTopic(Struct):
    """A topic whose positions go."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[OffsetDeleteRequestPartition] = field()
    """One entry for each partition."""


class OffsetDeleteRequest(Request, key=47, versions="0"):
    """Delete a group's committed positions for topics that it does not read (KIP-496)."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[OffsetDeleteRequestTopic] = field()
    """One entry for each topic."""


class OffsetDeleteResponsePartition(Struct):
    """Whether one position is gone."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class OffsetDeleteResponseTopic(Struct):
    """Whether the positions of one topic are gone."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[OffsetDeleteResponsePartition] = field()
    """One entry for each partition."""


class OffsetDeleteResponse(Response, to=OffsetDeleteRequest):
    """Whether each position is gone."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    throttle_time_ms: Int32 = field(ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[OffsetDeleteResponseTopic] = field()
    """One entry for each topic."""
