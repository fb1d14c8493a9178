"""Share groups: many consumers of one partition, each record acknowledged by itself (KIP-932).

Read next: `wire.messages.groups_next`.
"""

from __future__ import annotations

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
    "AcknowledgeLeaderIdAndEpoch", "AcknowledgeNodeEndpoint", "AcknowledgePartition", "AcknowledgePartitionData",
    "AcknowledgeTopic", "AcknowledgementBatch", "AcquiredRecords", "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsRequestPartition", "AlterShareGroupOffsetsRequestTopic", "AlterShareGroupOffsetsResponse",
    "AlterShareGroupOffsetsResponsePartition", "AlterShareGroupOffsetsResponseTopic", "AssignedTopicPartitions",
    "DeleteShareGroupOffsetsRequest", "DeleteShareGroupOffsetsRequestTopic", "DeleteShareGroupOffsetsResponse",
    "DeleteShareGroupOffsetsResponseTopic", "DescribeShareGroupOffsetsRequest", "DescribeShareGroupOffsetsRequestGroup",
    "DescribeShareGroupOffsetsRequestTopic", "DescribeShareGroupOffsetsResponse",
    "DescribeShareGroupOffsetsResponseGroup", "DescribeShareGroupOffsetsResponsePartition",
    "DescribeShareGroupOffsetsResponseTopic", "DescribedAssignment", "DescribedShareGroup", "DescribedShareMember",
    "DescribedTopicPartitions", "FetchAcknowledgementBatch", "FetchLeaderIdAndEpoch", "FetchNodeEndpoint",
    "MemberAssignment", "ShareAcknowledgeRequest", "ShareAcknowledgeResponse", "ShareAcknowledgeTopicResponse",
    "ShareFetchPartition", "ShareFetchPartitionData", "ShareFetchRequest", "ShareFetchResponse", "ShareFetchTopic",
    "ShareFetchableTopicResponse", "ShareForgottenTopic", "ShareGroupDescribeRequest", "ShareGroupDescribeResponse",
    "ShareGroupHeartbeatRequest", "ShareGroupHeartbeatResponse",
]


class ShareGroupHeartbeatRequest(Request, key=76, versions="1", flexible="0+"):
    """Join, stay in or leave a share group."""

    group_id: String = field()  # name of the group
    member_id: String = field()  # id that the coordinator gave the member; empty for a new one
    member_epoch: Int32 = field()  # epoch of the member; 0 joins, -1 leaves
    rack_id: String | None = field(default=None)  # rack of the client
    # names of the topics; null when unchanged
    subscribed_topic_names: Array[String] | None = field(default=None)


class AssignedTopicPartitions(Struct):
    """Partitions of a topic that the member is given."""

    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[Int32] = field()  # partition numbers


class MemberAssignment(Struct):
    """What the member is given."""

    topic_partitions: Array[AssignedTopicPartitions] = field()  # one for each topic


class ShareGroupHeartbeatResponse(Response, to=ShareGroupHeartbeatRequest):
    """The member's epoch, and its assignment when that has changed."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    # id that the coordinator gave the member; empty for a new one
    member_id: String | None = field(default=None)
    member_epoch: Int32 = field()  # epoch of a member of a KIP-848 group
    heartbeat_interval_ms: Int32 = field()  # send the next heartbeat after this time
    # bytes of a `ConsumerProtocolAssignment` with its version before it
    assignment: MemberAssignment | None = field(default=None)


class FetchAcknowledgementBatch(Struct):
    """Records that are acknowledged together."""

    first_offset: Int64 = field()  # offset of the first record of the transaction
    last_offset: Int64 = field()  # last record, included
    # 0 gap, 1 accept, 2 release, 3 reject, 4 renew: one for all, or one for each record
    acknowledge_types: Array[Int8] = field()


class ShareFetchPartition(Struct):
    """A partition to read, and what is acknowledged there."""

    partition_index: Int32 = field()  # partition number
    acknowledgement_batches: Array[FetchAcknowledgementBatch] = field()  # what is acknowledged


class ShareFetchTopic(Struct):
    """A topic to read."""

    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[ShareFetchPartition] = field()  # one for each partition


class ShareForgottenTopic(Struct):
    """Partitions to leave out of the share session from now on."""

    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[Int32] = field()  # partition numbers


class ShareFetchRequest(Request, key=78, versions="1-2", flexible="0+"):
    """Read records and acknowledge earlier ones. v2: how records are acquired (KIP-1206), renewing (KIP-1222)."""

    group_id: String | None = field(default=None)  # name of the group
    member_id: String | None = field()  # id that the coordinator gave the member; empty for a new one
    share_session_epoch: Int32 = field()  # 0 opens a session, -1 closes it, else one more each time
    max_wait_ms: Int32 = field()  # longest wait at the broker
    min_bytes: Int32 = field()  # fewest bytes to answer with before the wait is over
    # most bytes to answer with; one batch is answered even when it is larger
    max_bytes: Int32 = field(default=2**31 - 1)
    max_records: Int32 = field()  # most records to answer with, up to whole batches
    batch_size: Int32 = field()  # best number of records to acquire together
    share_acquire_mode: Int8 = field("2+", ignorable=True)  # 0 whole batches, 1 no more than `max_records`
    is_renew_ack: Bool = field("2+")  # some acknowledgements renew
    topics: Array[ShareFetchTopic] = field()  # one for each topic
    forgotten_topics_data: Array[ShareForgottenTopic] = field()  # partitions to drop from the session


class FetchLeaderIdAndEpoch(Struct):
    """The leader to fetch from instead."""

    leader_id: Int32 = field()  # node id of the leader, -1 when there is none
    leader_epoch: Int32 = field()  # leader epoch, -1 when not known


class AcquiredRecords(Struct):
    """Records that this member holds until it acknowledges them."""

    first_offset: Int64 = field()  # offset of the first record of the transaction
    last_offset: Int64 = field()  # last record, included
    delivery_count: Int16 = field()  # how often the records were delivered, this time included


class ShareFetchPartitionData(Struct):
    """What was read from one partition."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    acknowledge_error_code: Int16 = field()  # 0 when the acknowledgements hold
    # the error in words, null when there is none
    acknowledge_error_message: String | None = field(default=None)
    current_leader: FetchLeaderIdAndEpoch = field()  # who leads now, when this broker does not
    records: Records = field()  # record batches
    acquired_records: Array[AcquiredRecords] = field()  # records that the member holds now


class ShareFetchableTopicResponse(Struct):
    """What was read from one topic."""

    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[ShareFetchPartitionData] = field()  # one for each partition


class FetchNodeEndpoint(Struct):
    """Where a leader named in this response listens."""

    node_id: Int32 = field()
    host: String = field()  # name or address
    port: Int32 = field()
    rack: String | None = field(default=None)  # rack of the broker, null when it has none


class ShareFetchResponse(Response, to=ShareFetchRequest):
    """Records, and which of them this member holds."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    acquisition_lock_timeout_ms: Int32 = field()  # how long the member may hold records
    responses: Array[ShareFetchableTopicResponse] = field()  # one for each topic
    node_endpoints: Array[FetchNodeEndpoint] = field()  # where the leaders named above listen


class AcknowledgementBatch(Struct):
    """Records that are acknowledged together."""

    first_offset: Int64 = field()  # offset of the first record of the transaction
    last_offset: Int64 = field()  # last record, included
    # 0 gap, 1 accept, 2 release, 3 reject, 4 renew: one for all, or one for each record
    acknowledge_types: Array[Int8] = field()


class AcknowledgePartition(Struct):
    """What is acknowledged in one partition."""

    partition_index: Int32 = field()  # partition number
    acknowledgement_batches: Array[AcknowledgementBatch] = field()  # what is acknowledged


class AcknowledgeTopic(Struct):
    """What is acknowledged in one topic."""

    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[AcknowledgePartition] = field()  # one for each partition


class ShareAcknowledgeRequest(Request, key=79, versions="1-2", flexible="0+"):
    """Acknowledge records without reading more. v2: renewing (KIP-1222)."""

    group_id: String | None = field(default=None)  # name of the group
    member_id: String | None = field()  # id that the coordinator gave the member; empty for a new one
    share_session_epoch: Int32 = field()  # 0 opens a session, -1 closes it, else one more each time
    is_renew_ack: Bool = field("2+")  # some acknowledgements renew
    topics: Array[AcknowledgeTopic] = field()  # one for each topic


class AcknowledgeLeaderIdAndEpoch(Struct):
    """The leader to acknowledge at instead."""

    leader_id: Int32 = field()  # node id of the leader, -1 when there is none
    leader_epoch: Int32 = field()  # leader epoch, -1 when not known


class AcknowledgePartitionData(Struct):
    """Whether the acknowledgements of one partition hold."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    current_leader: AcknowledgeLeaderIdAndEpoch = field()  # who leads now, when this broker does not


class ShareAcknowledgeTopicResponse(Struct):
    """Whether the acknowledgements of one topic hold."""

    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[AcknowledgePartitionData] = field()  # one for each partition


class AcknowledgeNodeEndpoint(Struct):
    """Where a leader named in this response listens."""

    node_id: Int32 = field()
    host: String = field()  # name or address
    port: Int32 = field()
    rack: String | None = field(default=None)  # rack of the broker, null when it has none


class ShareAcknowledgeResponse(Response, to=ShareAcknowledgeRequest):
    """Whether each acknowledgement holds."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    acquisition_lock_timeout_ms: Int32 = field("2+", ignorable=True)  # how long the member may hold records
    responses: Array[ShareAcknowledgeTopicResponse] = field()  # one for each topic
    node_endpoints: Array[AcknowledgeNodeEndpoint] = field()  # where the leaders named above listen


class ShareGroupDescribeRequest(Request, key=77, versions="1", flexible="0+"):
    """Ask about share groups."""

    group_ids: Array[String] = field()  # names of the groups
    include_authorized_operations: Bool = field()  # ask for the allowed operations


class DescribedTopicPartitions(Struct):
    """Partitions of a topic."""

    topic_id: Uuid = field()  # zero when it is not known
    topic_name: String = field()  # topic to begin with
    partitions: Array[Int32] = field()  # partition numbers


class DescribedAssignment(Struct):
    """Partitions that a member has, or shall have."""

    topic_partitions: Array[DescribedTopicPartitions] = field()  # one for each topic


class DescribedShareMember(Struct):
    """A member of a share group."""

    member_id: String = field()  # id that the coordinator gave the member; empty for a new one
    rack_id: String | None = field(default=None)  # rack of the client
    member_epoch: Int32 = field()  # epoch of a member of a KIP-848 group
    client_id: String = field()  # name that the member gives itself
    client_host: String = field()  # address that the member connects from
    subscribed_topic_names: Array[String] = field()  # names of the topics; null when unchanged
    # bytes of a `ConsumerProtocolAssignment` with its version before it
    assignment: DescribedAssignment = field()


class DescribedShareGroup(Struct):
    """One share group."""

    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    group_id: String = field()  # name of the group
    group_state: String = field()  # for example Stable or Empty
    group_epoch: Int32 = field()  # grows when members or topics change
    assignment_epoch: Int32 = field()  # group epoch that the plan was made for
    assignor_name: String = field()  # the chosen strategy
    members: Array[DescribedShareMember] = field()  # members of the group
    # bits of the allowed operations; the lowest number when they were not asked for
    authorized_operations: Int32 = field(default=-(2**31))


class ShareGroupDescribeResponse(Response, to=ShareGroupDescribeRequest):
    """The groups asked for."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    groups: Array[DescribedShareGroup] = field()  # one for each group


class DescribeShareGroupOffsetsRequestTopic(Struct):
    """Partitions of a topic to look up."""

    topic_name: String = field()  # topic to begin with
    partitions: Array[Int32] = field()  # partition numbers


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """A group to look up."""

    group_id: String = field()  # name of the group
    topics: Array[DescribeShareGroupOffsetsRequestTopic] | None = field()  # null for all


class DescribeShareGroupOffsetsRequest(Request, key=90, versions="0-1", flexible="0+"):
    """Ask where share groups begin in their partitions. v1: how much is left to read (KIP-1226)."""

    groups: Array[DescribeShareGroupOffsetsRequestGroup] = field()  # one for each group


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """Where a group begins in one partition."""

    partition_index: Int32 = field()  # partition number
    start_offset: Int64 = field()  # first record that is not done with
    leader_epoch: Int32 = field()  # leader epoch, -1 when not known
    lag: Int64 = field("1+", default=-1, ignorable=True)  # records left to read, -1 when not known
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none


class DescribeShareGroupOffsetsResponseTopic(Struct):
    """Where a group begins in the partitions of one topic."""

    topic_name: String = field()  # topic to begin with
    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[DescribeShareGroupOffsetsResponsePartition] = field()  # one for each partition


class DescribeShareGroupOffsetsResponseGroup(Struct):
    """Where one group begins."""

    group_id: String = field()  # name of the group
    topics: Array[DescribeShareGroupOffsetsResponseTopic] = field()  # one for each topic
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none


class DescribeShareGroupOffsetsResponse(Response, to=DescribeShareGroupOffsetsRequest):
    """Where each group begins."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    groups: Array[DescribeShareGroupOffsetsResponseGroup] = field()  # one for each group


class AlterShareGroupOffsetsRequestPartition(Struct):
    """Where the group shall begin in one partition."""

    partition_index: Int32 = field()  # partition number
    start_offset: Int64 = field()  # first record that is not done with


class AlterShareGroupOffsetsRequestTopic(Struct):
    """Where the group shall begin in the partitions of one topic."""

    topic_name: String = field()  # topic to begin with
    partitions: Array[AlterShareGroupOffsetsRequestPartition] = field()  # one for each partition


class AlterShareGroupOffsetsRequest(Request, key=91, versions="0", flexible="0+"):
    """Set where an empty share group begins."""

    group_id: String = field()  # name of the group
    topics: Array[AlterShareGroupOffsetsRequestTopic] = field()  # one for each topic


class AlterShareGroupOffsetsResponsePartition(Struct):
    """Whether one partition was set."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none


class AlterShareGroupOffsetsResponseTopic(Struct):
    """Whether the partitions of one topic were set."""

    topic_name: String = field()  # topic to begin with
    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[AlterShareGroupOffsetsResponsePartition] = field()  # one for each partition


class AlterShareGroupOffsetsResponse(Response, to=AlterShareGroupOffsetsRequest):
    """Whether each partition was set."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    responses: Array[AlterShareGroupOffsetsResponseTopic] = field()  # one for each topic


class DeleteShareGroupOffsetsRequestTopic(Struct):
    """A topic that the group forgets."""

    topic_name: String = field()  # topic to begin with


class DeleteShareGroupOffsetsRequest(Request, key=92, versions="0", flexible="0+"):
    """Make an empty share group forget topics."""

    group_id: String = field()  # name of the group
    topics: Array[DeleteShareGroupOffsetsRequestTopic] = field()  # one for each topic


class DeleteShareGroupOffsetsResponseTopic(Struct):
    """Whether one topic was forgotten."""

    topic_name: String = field()  # topic to begin with
    topic_id: Uuid = field()  # zero when it is not known
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none


class DeleteShareGroupOffsetsResponse(Response, to=DeleteShareGroupOffsetsRequest):
    """Whether each topic was forgotten."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    responses: Array[DeleteShareGroupOffsetsResponseTopic] = field()  # one for each topic
