"""Share groups: many consumers of one partition, each record acknowledged by itself (KIP-932).

Read next: `wire.messages.groups.consumer_groups`.
"""

from __future__ import annotations

from headrace.wire.messages.groups.consumer_groups import (
    DescribedAssignment,
    HeartbeatAssignment,
)
from headrace.wire.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    field,
)

__all__ = [
    "AcknowledgeLeaderIdAndEpoch",
    "AcknowledgeNodeEndpoint",
    "AcknowledgePartition",
    "AcknowledgePartitionData",
    "AcknowledgeTopic",
    "AcknowledgementBatch",
    "AcquiredRecords",
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsRequestPartition",
    "AlterShareGroupOffsetsRequestTopic",
    "AlterShareGroupOffsetsResponse",
    "AlterShareGroupOffsetsResponsePartition",
    "AlterShareGroupOffsetsResponseTopic",
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsRequestTopic",
    "DeleteShareGroupOffsetsResponse",
    "DeleteShareGroupOffsetsResponseTopic",
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsRequestGroup",
    "DescribeShareGroupOffsetsRequestTopic",
    "DescribeShareGroupOffsetsResponse",
    "DescribeShareGroupOffsetsResponseGroup",
    "DescribeShareGroupOffsetsResponsePartition",
    "DescribeShareGroupOffsetsResponseTopic",
    "DescribedShareGroup",
    "DescribedShareMember",
    "FetchAcknowledgementBatch",
    "FetchLeaderIdAndEpoch",
    "FetchNodeEndpoint",
    "ShareAcknowledgeRequest",
    "ShareAcknowledgeResponse",
    "ShareAcknowledgeTopicResponse",
    "ShareFetchPartition",
    "ShareFetchPartitionData",
    "ShareFetchRequest",
    "ShareFetchResponse",
    "ShareFetchTopic",
    "ShareFetchableTopicResponse",
    "ShareForgottenTopic",
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "ShareGroupHeartbeatRequest",
    "ShareGroupHeartbeatResponse",
]


class ShareGroupHeartbeatRequest(Request, key=76, versions="1", flexible="0+"):
    """Join, stay in or leave a share group."""

    group_id: String = field()
    """Name of the group."""
    member_id: String = field()
    """Id of the member, which it made itself."""
    member_epoch: Int32 = field()
    """Epoch of the member; 0 joins, -1 leaves."""
    rack_id: String | None = field(default=None)
    """Rack of the client."""
    subscribed_topic_names: Array[String] | None = field(default=None)
    """Names of the topics; null when unchanged."""


class ShareGroupHeartbeatResponse(Response, to=ShareGroupHeartbeatRequest):
    """The member's epoch, and its assignment when that has changed."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    member_id: String | None = field(default=None)
    """Id of the member; null unless the coordinator made it."""
    member_epoch: Int32 = field()
    """Epoch of the member from now on."""
    heartbeat_interval_ms: Int32 = field()
    """Milliseconds until the next heartbeat."""
    assignment: HeartbeatAssignment | None = field(default=None)
    """Partitions that the member shall have; null when unchanged."""


class FetchAcknowledgementBatch(Struct):
    """Records that are acknowledged together."""

    first_offset: Int64 = field()
    """Offset of the first record."""
    last_offset: Int64 = field()
    """Offset of the last record."""
    acknowledge_types: Array[Int8] = field()
    """What became of the records, one for all or one for each: 0 gap, 1 accept, 2 release, 3 reject, 4 renew."""


class ShareFetchPartition(Struct):
    """A partition to read, and what is acknowledged there."""

    partition_index: Int32 = field()
    """Partition number."""
    acknowledgement_batches: Array[FetchAcknowledgementBatch] = field()
    """What is acknowledged."""


class ShareFetchTopic(Struct):
    """A topic to read."""

    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    partitions: Array[ShareFetchPartition] = field()
    """One entry for each partition."""


class ShareForgottenTopic(Struct):
    """Partitions to leave out of the share session from now on."""

    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class ShareFetchRequest(Request, key=78, versions="1-2", flexible="0+"):
    """Read records and acknowledge earlier ones. v2: how records are acquired (KIP-1206), renewing (KIP-1222)."""

    group_id: String | None = field(default=None)
    """Name of the group."""
    member_id: String | None = field()
    """Id of the member."""
    share_session_epoch: Int32 = field()
    """Number of the request in its session: 0 opens one, -1 closes it."""
    max_wait_ms: Int32 = field()
    """Most milliseconds to wait at the broker for `min_bytes`."""
    min_bytes: Int32 = field()
    """Fewest bytes to answer with before the wait is over."""
    max_bytes: Int32 = field(default=2**31 - 1)
    """Most bytes to answer with; one batch is answered even when it is larger."""
    max_records: Int32 = field()
    """Most records to answer with, up to whole batches."""
    batch_size: Int32 = field()
    """Best number of records to acquire together."""
    share_acquire_mode: Int8 = field("2+", ignorable=True)
    """What to acquire: 0 whole batches, 1 no more than `max_records` records."""
    is_renew_ack: Bool = field("2+")
    """Some acknowledgements renew."""
    topics: Array[ShareFetchTopic] = field()
    """One entry for each topic."""
    forgotten_topics_data: Array[ShareForgottenTopic] = field()
    """Partitions to drop from the session."""


class FetchLeaderIdAndEpoch(Struct):
    """The leader to fetch from instead."""

    leader_id: Int32 = field()
    """Node id of the leader; -1 when there is none."""
    leader_epoch: Int32 = field()
    """Leader epoch; -1 when not known."""


class AcquiredRecords(Struct):
    """Records that this member holds until it acknowledges them."""

    first_offset: Int64 = field()
    """Offset of the first record."""
    last_offset: Int64 = field()
    """Offset of the last record."""
    delivery_count: Int16 = field()
    """How often the records were delivered, this time included."""


class ShareFetchPartitionData(Struct):
    """What was read from one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    acknowledge_error_code: Int16 = field()
    """Error code of the acknowledgements; 0 when they hold."""
    acknowledge_error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    current_leader: FetchLeaderIdAndEpoch = field()
    """Who leads now, when this broker does not."""
    records: Records = field()
    """Record batches."""
    acquired_records: Array[AcquiredRecords] = field()
    """Records that the member holds now."""


class ShareFetchableTopicResponse(Struct):
    """What was read from one topic."""

    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    partitions: Array[ShareFetchPartitionData] = field()
    """One entry for each partition."""


class FetchNodeEndpoint(Struct):
    """Where a leader named in this response listens."""

    node_id: Int32 = field()
    """Node id of the leader."""
    host: String = field()
    """Name or address."""
    port: Int32 = field()
    """TCP port."""
    rack: String | None = field(default=None)
    """Rack of the broker; null when it has none."""


class ShareFetchResponse(Response, to=ShareFetchRequest):
    """Records, and which of them this member holds."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    acquisition_lock_timeout_ms: Int32 = field()
    """Milliseconds that the member may hold records."""
    responses: Array[ShareFetchableTopicResponse] = field()
    """One entry for each topic."""
    node_endpoints: Array[FetchNodeEndpoint] = field()
    """Where the leaders named above listen."""


class AcknowledgementBatch(Struct):
    """Records that are acknowledged together."""

    first_offset: Int64 = field()
    """Offset of the first record."""
    last_offset: Int64 = field()
    """Offset of the last record."""
    acknowledge_types: Array[Int8] = field()
    """What became of the records, one for all or one for each: 0 gap, 1 accept, 2 release, 3 reject, 4 renew."""


class AcknowledgePartition(Struct):
    """What is acknowledged in one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    acknowledgement_batches: Array[AcknowledgementBatch] = field()
    """What is acknowledged."""


class AcknowledgeTopic(Struct):
    """What is acknowledged in one topic."""

    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    partitions: Array[AcknowledgePartition] = field()
    """One entry for each partition."""


class ShareAcknowledgeRequest(Request, key=79, versions="1-2", flexible="0+"):
    """Acknowledge records without reading more. v2: renewing (KIP-1222)."""

    group_id: String | None = field(default=None)
    """Name of the group."""
    member_id: String | None = field()
    """Id of the member."""
    share_session_epoch: Int32 = field()
    """Number of the request in its session: 0 opens one, -1 closes it."""
    is_renew_ack: Bool = field("2+")
    """Some acknowledgements renew."""
    topics: Array[AcknowledgeTopic] = field()
    """One entry for each topic."""


class AcknowledgeLeaderIdAndEpoch(Struct):
    """The leader to acknowledge at instead."""

    leader_id: Int32 = field()
    """Node id of the leader; -1 when there is none."""
    leader_epoch: Int32 = field()
    """Leader epoch; -1 when not known."""


class AcknowledgePartitionData(Struct):
    """Whether the acknowledgements of one partition hold."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    current_leader: AcknowledgeLeaderIdAndEpoch = field()
    """Who leads now, when this broker does not."""


class ShareAcknowledgeTopicResponse(Struct):
    """Whether the acknowledgements of one topic hold."""

    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    partitions: Array[AcknowledgePartitionData] = field()
    """One entry for each partition."""


class AcknowledgeNodeEndpoint(Struct):
    """Where a leader named in this response listens."""

    node_id: Int32 = field()
    """Node id of the leader."""
    host: String = field()
    """Name or address."""
    port: Int32 = field()
    """TCP port."""
    rack: String | None = field(default=None)
    """Rack of the broker; null when it has none."""


class ShareAcknowledgeResponse(Response, to=ShareAcknowledgeRequest):
    """Whether each acknowledgement holds."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    acquisition_lock_timeout_ms: Int32 = field("2+", ignorable=True)
    """Milliseconds that the member may hold records."""
    responses: Array[ShareAcknowledgeTopicResponse] = field()
    """One entry for each topic."""
    node_endpoints: Array[AcknowledgeNodeEndpoint] = field()
    """Where the leaders named above listen."""


class ShareGroupDescribeRequest(Request, key=77, versions="1", flexible="0+"):
    """Ask about share groups."""

    group_ids: Array[String] = field()
    """Names of the groups."""
    include_authorized_operations: Bool = field()
    """Ask for the allowed operations."""


class DescribedShareMember(Struct):
    """A member of a share group."""

    member_id: String = field()
    """Id of the member."""
    rack_id: String | None = field(default=None)
    """Rack of the client."""
    member_epoch: Int32 = field()
    """Epoch of the member."""
    client_id: String = field()
    """Name that the member gives itself."""
    client_host: String = field()
    """Address that the member connects from."""
    subscribed_topic_names: Array[String] = field()
    """Names of the topics that the member wants."""
    assignment: DescribedAssignment = field()
    """Partitions that the member has."""


class DescribedShareGroup(Struct):
    """One share group."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    group_id: String = field()
    """Name of the group."""
    group_state: String = field()
    """State of the group, for example Stable or Empty."""
    group_epoch: Int32 = field()
    """Grows when members or topics change."""
    assignment_epoch: Int32 = field()
    """Group epoch that the plan was made for."""
    assignor_name: String = field()
    """Name of the chosen strategy."""
    members: Array[DescribedShareMember] = field()
    """Members of the group."""
    authorized_operations: Int32 = field(default=-(2**31))
    """Bits of the operations that the client may do; the lowest number when they were not asked for."""


class ShareGroupDescribeResponse(Response, to=ShareGroupDescribeRequest):
    """The groups asked for."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    groups: Array[DescribedShareGroup] = field()
    """One entry for each group."""


class DescribeShareGroupOffsetsRequestTopic(Struct):
    """Partitions of a topic to look up."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """A group to look up."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[DescribeShareGroupOffsetsRequestTopic] | None = field()
    """Topics and partitions; null for all."""


class DescribeShareGroupOffsetsRequest(Request, key=90, versions="0-1", flexible="0+"):
    """Ask where share groups begin in their partitions. v1: how much is left to read (KIP-1226)."""

    groups: Array[DescribeShareGroupOffsetsRequestGroup] = field()
    """One entry for each group."""


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """Where a group begins in one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    start_offset: Int64 = field()
    """First record that is not done with; -1 when not known."""
    leader_epoch: Int32 = field()
    """Leader epoch; -1 when not known."""
    lag: Int64 = field("1+", default=-1, ignorable=True)
    """Records left to read; -1 when not known."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""


class DescribeShareGroupOffsetsResponseTopic(Struct):
    """Where a group begins in the partitions of one topic."""

    topic_name: String = field()
    """Name of the topic."""
    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    partitions: Array[DescribeShareGroupOffsetsResponsePartition] = field()
    """One entry for each partition."""


class DescribeShareGroupOffsetsResponseGroup(Struct):
    """Where one group begins."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[DescribeShareGroupOffsetsResponseTopic] = field()
    """One entry for each topic."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""


class DescribeShareGroupOffsetsResponse(Response, to=DescribeShareGroupOffsetsRequest):
    """Where each group begins."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    groups: Array[DescribeShareGroupOffsetsResponseGroup] = field()
    """One entry for each group."""


class AlterShareGroupOffsetsRequestPartition(Struct):
    """Where the group shall begin in one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    start_offset: Int64 = field()
    """Offset to go on from."""


class AlterShareGroupOffsetsRequestTopic(Struct):
    """Where the group shall begin in the partitions of one topic."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[AlterShareGroupOffsetsRequestPartition] = field()
    """One entry for each partition."""


class AlterShareGroupOffsetsRequest(Request, key=91, versions="0", flexible="0+"):
    """Set where an empty share group begins."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[AlterShareGroupOffsetsRequestTopic] = field()
    """One entry for each topic."""


class AlterShareGroupOffsetsResponsePartition(Struct):
    """Whether one partition was set."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""


class AlterShareGroupOffsetsResponseTopic(Struct):
    """Whether the partitions of one topic were set."""

    topic_name: String = field()
    """Name of the topic."""
    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    partitions: Array[AlterShareGroupOffsetsResponsePartition] = field()
    """One entry for each partition."""


class AlterShareGroupOffsetsResponse(Response, to=AlterShareGroupOffsetsRequest):
    """Whether each partition was set."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    responses: Array[AlterShareGroupOffsetsResponseTopic] = field()
    """One entry for each topic."""


class DeleteShareGroupOffsetsRequestTopic(Struct):
    """A topic that the group forgets."""

    topic_name: String = field()
    """Name of the topic."""


class DeleteShareGroupOffsetsRequest(Request, key=92, versions="0", flexible="0+"):
    """Make an empty share group forget topics."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[DeleteShareGroupOffsetsRequestTopic] = field()
    """One entry for each topic."""


class DeleteShareGroupOffsetsResponseTopic(Struct):
    """Whether one topic was forgotten."""

    topic_name: String = field()
    """Name of the topic."""
    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""


class DeleteShareGroupOffsetsResponse(Response, to=DeleteShareGroupOffsetsRequest):
    """Whether each topic was forgotten."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    responses: Array[DeleteShareGroupOffsetsResponseTopic] = field()
    """One entry for each topic."""
