"""How a broker keeps the progress of share groups with the share coordinator (KIP-932). Only between brokers.

Read next: `wire.messages.groups.share_groups`, what consumers see of it.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Int8, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

__all__ = [
    "DeleteShareGroupStateRequest", "DeleteShareGroupStateResponse", "DeleteStateData", "DeleteStatePartition",
    "DeleteStateResult", "InitializeShareGroupStateRequest", "InitializeShareGroupStateResponse",
    "InitializeStateData", "InitializeStatePartition", "InitializeStateResult", "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse", "ReadShareGroupStateSummaryRequest", "ReadShareGroupStateSummaryResponse",
    "ReadStateData", "ReadStatePartition", "ReadStatePartitionResult", "ReadStateResult",
    "ReadStateSummaryData", "ReadStateSummaryPartitionResult", "ReadStateSummaryResult", "StateBatch",
    "StatePartitionResult", "WriteShareGroupStateRequest", "WriteShareGroupStateResponse", "WriteStateData",
    "WriteStatePartition", "WriteStateResult",
]


class InitializeStatePartition(Struct):
    """Where the state of a partition begins."""

    partition: Int32 = field()
    """Partition number."""
    state_epoch: Int32 = field()
    """Epoch of the state; an outdated one is fenced."""
    start_offset: Int64 = field()
    """Offset to begin with; -1 to leave it open."""


class InitializeStateData(Struct):
    """The partitions of one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[InitializeStatePartition] = field()
    """One entry for each partition."""


class InitializeShareGroupStateRequest(Request, key=83, versions="0", flexible="0+"):
    """Begin to keep the state of a share group for partitions (KIP-932)."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[InitializeStateData] = field()
    """One entry for each topic."""


class StatePartitionResult(Struct):
    """What became of one partition."""

    partition: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""


class InitializeStateResult(Struct):
    """The results for one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[StatePartitionResult] = field()
    """One entry for each partition."""


class InitializeShareGroupStateResponse(Response, to=InitializeShareGroupStateRequest):
    """What became of each partition."""

    results: Array[InitializeStateResult] = field()
    """One entry for each topic."""


class ReadStatePartition(Struct):
    """A partition to read the state of."""

    partition: Int32 = field()
    """Partition number."""
    leader_epoch: Int32 = field()
    """Leader epoch."""


class ReadStateData(Struct):
    """The partitions of one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[ReadStatePartition] = field()
    """One entry for each partition."""


class ReadShareGroupStateRequest(Request, key=84, versions="0", flexible="0+"):
    """Read the state of a share group for partitions (KIP-932)."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[ReadStateData] = field()
    """One entry for each topic."""


class StateBatch(Struct):
    """Records in a row that are in the same state."""

    first_offset: Int64 = field()
    """First offset of the batch."""
    last_offset: Int64 = field()
    """Last offset of the batch."""
    delivery_state: Int8 = field()
    """0 available, 2 acknowledged, 4 archived."""
    delivery_count: Int16 = field()
    """How often the records were handed out."""


class ReadStatePartitionResult(Struct):
    """The state of one partition."""

    partition: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    state_epoch: Int32 = field()
    """Epoch of the state; an outdated one is fenced."""
    start_offset: Int64 = field()
    """Offset that the state begins with; -1 when it is not decided."""
    state_batches: Array[StateBatch] = field()
    """States of the records from the start offset on."""


class ReadStateResult(Struct):
    """The states for one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[ReadStatePartitionResult] = field()
    """One entry for each partition."""


class ReadShareGroupStateResponse(Response, to=ReadShareGroupStateRequest):
    """The state of each partition."""

    results: Array[ReadStateResult] = field()
    """One entry for each topic."""


class WriteStatePartition(Struct):
    """The new state of one partition."""

    partition: Int32 = field()
    """Partition number."""
    state_epoch: Int32 = field()
    """Epoch of the state; an outdated one is fenced."""
    leader_epoch: Int32 = field()
    """Leader epoch."""
    start_offset: Int64 = field()
    """Offset that the state begins with; -1 to leave it as it is."""
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)
    """Records at or behind the start offset that are done with; -1 when not known."""
    state_batches: Array[StateBatch] = field()
    """States of the records from the start offset on."""


class WriteStateData(Struct):
    """The partitions of one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[WriteStatePartition] = field()
    """One entry for each partition."""


class WriteShareGroupStateRequest(Request, key=85, versions="0-1", flexible="0+"):
    """Keep a new state of a share group for partitions (KIP-932). v1: count of delivered records (KIP-1226)."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[WriteStateData] = field()
    """One entry for each topic."""


class WriteStateResult(Struct):
    """The results for one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[StatePartitionResult] = field()
    """One entry for each partition."""


class WriteShareGroupStateResponse(Response, to=WriteShareGroupStateRequest):
    """What became of each partition."""

    results: Array[WriteStateResult] = field()
    """One entry for each topic."""


class DeleteStatePartition(Struct):
    """A partition whose state is to be forgotten."""

    partition: Int32 = field()
    """Partition number."""


class DeleteStateData(Struct):
    """The partitions of one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[DeleteStatePartition] = field()
    """One entry for each partition."""


class DeleteShareGroupStateRequest(Request, key=86, versions="0", flexible="0+"):
    """Forget the state of a share group for partitions (KIP-932)."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[DeleteStateData] = field()
    """One entry for each topic."""


class DeleteStateResult(Struct):
    """The results for one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[StatePartitionResult] = field()
    """One entry for each partition."""


class DeleteShareGroupStateResponse(Response, to=DeleteShareGroupStateRequest):
    """What became of each partition."""

    results: Array[DeleteStateResult] = field()
    """One entry for each topic."""


class ReadStateSummaryData(Struct):
    """The partitions of one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[ReadStatePartition] = field()
    """One entry for each partition."""


class ReadShareGroupStateSummaryRequest(Request, key=87, versions="0-1", flexible="0+"):
    """Read the state of a share group without its batches (KIP-932). v1: count of delivered records (KIP-1226)."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[ReadStateSummaryData] = field()
    """One entry for each topic."""


class ReadStateSummaryPartitionResult(Struct):
    """The state of one partition, in short."""

    partition: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    state_epoch: Int32 = field()
    """Epoch of the state; an outdated one is fenced."""
    leader_epoch: Int32 = field()
    """Leader epoch."""
    start_offset: Int64 = field()
    """Offset that the state begins with."""
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)
    """Records at or behind the start offset that are done with; -1 when not known."""


class ReadStateSummaryResult(Struct):
    """The states for one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[ReadStateSummaryPartitionResult] = field()
    """One entry for each partition."""


class ReadShareGroupStateSummaryResponse(Response, to=ReadShareGroupStateSummaryRequest):
    """The state of each partition, in short."""

    results: Array[ReadStateSummaryResult] = field()
    """One entry for each topic."""
