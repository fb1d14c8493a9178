"""Transactions: taking partitions and offsets into one, ending it, and looking at those of others.

Read next: `wire.messages.producer.produce` for the producer id that a transaction belongs to.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Int8, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

__all__ = [
    "AddOffsetsToTxnRequest", "AddOffsetsToTxnResponse", "AddPartitionsToTxnPartitionResult",
    "AddPartitionsToTxnRequest", "AddPartitionsToTxnResponse", "AddPartitionsToTxnResult", "AddPartitionsToTxnTopic",
    "AddPartitionsToTxnTopicResult", "AddPartitionsToTxnTransaction", "DescribeProducersRequest",
    "DescribeProducersResponse", "DescribeTransactionsRequest", "DescribeTransactionsResponse", "DescribedTransaction",
    "EndTxnRequest", "EndTxnResponse", "ListTransactionsRequest", "ListTransactionsResponse", "ListedTransaction",
    "ProducerState", "ProducersPartitionResponse", "ProducersTopicRequest", "ProducersTopicResponse",
    "TransactionTopic", "TxnOffsetCommitRequest", "TxnOffsetCommitRequestPartition", "TxnOffsetCommitRequestTopic",
    "TxnOffsetCommitResponse", "TxnOffsetCommitResponsePartition", "TxnOffsetCommitResponseTopic", "WritableTxnMarker",
    "WritableTxnMarkerPartitionResult", "WritableTxnMarkerResult", "WritableTxnMarkerTopic",
    "WritableTxnMarkerTopicResult", "WriteTxnMarkersRequest", "WriteTxnMarkersResponse",
]


class AddPartitionsToTxnTopic(Struct):
    """Partitions of a topic to take into the transaction."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class AddPartitionsToTxnTransaction(Struct):
    """A transaction to take partitions into; only brokers send several."""

    transactional_id: String = field("4+")
    """Name of the transaction."""
    producer_id: Int64 = field("4+")
    """Producer id."""
    producer_epoch: Int16 = field("4+")
    """Epoch of the producer id."""
    verify_only: Bool = field("4+")
    """Only ask whether the partitions are in the transaction."""
    topics: Array[AddPartitionsToTxnTopic] = field("4+")
    """One entry for each topic."""


class AddPartitionsToTxnRequest(Request, key=24, versions="0-5", flexible="3+"):
    """Take partitions into a transaction (KIP-98).

    Clients use versions 0-3; v4 is for brokers (KIP-890). Not needed when the cluster finalizes transaction.version
    2.
    """

    transactions: Array[AddPartitionsToTxnTransaction] = field("4+")
    """One entry for each transaction."""
    v3_and_below_transactional_id: String = field("0-3")
    """Name of the transaction, up to version 3."""
    v3_and_below_producer_id: Int64 = field("0-3")
    """Producer id, up to version 3."""
    v3_and_below_producer_epoch: Int16 = field("0-3")
    """Epoch of the producer id, up to version 3."""
    v3_and_below_topics: Array[AddPartitionsToTxnTopic] = field("0-3")
    """Partitions to add by topic, up to version 3."""


class AddPartitionsToTxnPartitionResult(Struct):
    """Whether one partition is in the transaction."""

    partition_index: Int32 = field()
    """Partition number."""
    partition_error_code: Int16 = field()
    """Error code; 0 when all went well."""


class AddPartitionsToTxnTopicResult(Struct):
    """Whether the partitions of one topic are in the transaction."""

    name: String = field()
    """Name of the topic."""
    results_by_partition: Array[AddPartitionsToTxnPartitionResult] = field()
    """One entry for each partition."""


class AddPartitionsToTxnResult(Struct):
    """The results of one transaction."""

    transactional_id: String = field("4+")
    """Name of the transaction."""
    topic_results: Array[AddPartitionsToTxnTopicResult] = field("4+")
    """One entry for each topic."""


class AddPartitionsToTxnResponse(Response, to=AddPartitionsToTxnRequest):
    """Whether each partition is in the transaction."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field("4+", ignorable=True)
    """Error code; 0 when all went well."""
    results_by_transaction: Array[AddPartitionsToTxnResult] = field("4+")
    """One entry for each transaction, from version 4 on."""
    results_by_topic_v3_and_below: Array[AddPartitionsToTxnTopicResult] = field("0-3")
    """One entry for each topic, up to version 3."""


class AddOffsetsToTxnRequest(Request, key=25, versions="0-4", flexible="3+"):
    """Take a group's offsets into a transaction (KIP-98).

    Not needed when the cluster finalizes transaction.version 2.
    """

    transactional_id: String = field()
    """Name of the transaction."""
    producer_id: Int64 = field()
    """Producer id."""
    producer_epoch: Int16 = field()
    """Epoch of the producer id."""
    group_id: String = field()
    """Name of the group."""


class AddOffsetsToTxnResponse(Response, to=AddOffsetsToTxnRequest):
    """Whether the group's offsets are in the transaction."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class EndTxnRequest(Request, key=26, versions="0-5", flexible="3+"):
    """Commit or abort a transaction (KIP-98). v5: the answer brings the next epoch (KIP-890)."""

    transactional_id: String = field()
    """Name of the transaction."""
    producer_id: Int64 = field()
    """Producer id."""
    producer_epoch: Int16 = field()
    """Epoch of the producer id."""
    committed: Bool = field()
    """True commits, false aborts."""


class EndTxnResponse(Response, to=EndTxnRequest):
    """Whether the transaction is being ended. v5: the producer id and epoch to go on with."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    producer_id: Int64 = field("5+", default=-1, ignorable=True)
    """Producer id."""
    producer_epoch: Int16 = field("5+", default=-1, ignorable=True)
    """Epoch of the producer id."""


class TxnOffsetCommitRequestPartition(Struct):
    """The position to keep for one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    committed_offset: Int64 = field()
    """Offset of the next record to read."""
    committed_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    """Leader epoch of the last record read; -1 when not known."""
    committed_metadata: String | None = field()
    """Text kept with the position."""


class TxnOffsetCommitRequestTopic(Struct):
    """Positions to keep for one topic."""

    name: String = field("0-5", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("6+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    partitions: Array[TxnOffsetCommitRequestPartition] = field()
    """One entry for each partition."""


class TxnOffsetCommitRequest(Request, key=28, versions="0-6", flexible="3+"):
    """Keep a group's positions if the transaction commits (KIP-98).

    v3: the member is checked (KIP-447). v5: the group joins the transaction by itself (KIP-890). v6: topic ids
    (KIP-1319).
    """

    transactional_id: String = field()
    """Name of the transaction."""
    group_id: String = field()
    """Name of the group."""
    producer_id: Int64 = field()
    """Producer id."""
    producer_epoch: Int16 = field()
    """Epoch of the producer id."""
    generation_id_or_member_epoch: Int32 = field("3+", default=-1)
    """Generation of a classic group, member epoch of a KIP-848 group; -1 outside of any."""
    member_id: String = field("3+")
    """Id of the member; empty outside of a group."""
    group_instance_id: String | None = field("3+", default=None)
    """Name of a static member; null for others."""
    topics: Array[TxnOffsetCommitRequestTopic] = field()
    """One entry for each topic."""


class TxnOffsetCommitResponsePartition(Struct):
    """Whether one position was taken."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class TxnOffsetCommitResponseTopic(Struct):
    """Whether the positions of one topic were taken."""

    name: String = field("0-5", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("6+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    partitions: Array[TxnOffsetCommitResponsePartition] = field()
    """One entry for each partition."""


class TxnOffsetCommitResponse(Response, to=TxnOffsetCommitRequest):
    """Whether each position was taken."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[TxnOffsetCommitResponseTopic] = field()
    """One entry for each topic."""


class WritableTxnMarkerTopic(Struct):
    """Partitions of a topic that get the marker."""

    name: String = field()
    """Name of the topic."""
    partition_indexes: Array[Int32] = field()
    """Partition numbers."""


class WritableTxnMarker(Struct):
    """The end of one producer's transaction."""

    producer_id: Int64 = field()
    """Producer id."""
    producer_epoch: Int16 = field()
    """Epoch of the producer id."""
    transaction_result: Bool = field()
    """True for committed, false for aborted."""
    topics: Array[WritableTxnMarkerTopic] = field()
    """One entry for each topic."""
    coordinator_epoch: Int32 = field()
    """Epoch of the coordinator; -1 for an administrator."""
    transaction_version: Int8 = field("2+", ignorable=True)
    """Protocol of the transaction: 0 and 1 the old one, 2 that of KIP-890."""


class WriteTxnMarkersRequest(Request, key=27, versions="0-2", flexible="1+"):
    """Write the end of transactions into partitions: from the coordinator, or from an administrator who aborts a
    hanging one (KIP-664).
    """

    markers: Array[WritableTxnMarker] = field()
    """One entry for each transaction."""


class WritableTxnMarkerPartitionResult(Struct):
    """Whether one partition got the marker."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class WritableTxnMarkerTopicResult(Struct):
    """Whether the partitions of one topic got the marker."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[WritableTxnMarkerPartitionResult] = field()
    """One entry for each partition."""


class WritableTxnMarkerResult(Struct):
    """The results of one producer's marker."""

    producer_id: Int64 = field()
    """Producer id."""
    topics: Array[WritableTxnMarkerTopicResult] = field()
    """One entry for each topic."""


class WriteTxnMarkersResponse(Response, to=WriteTxnMarkersRequest):
    """Whether each partition got its marker."""

    markers: Array[WritableTxnMarkerResult] = field()
    """One entry for each transaction."""


class ProducersTopicRequest(Struct):
    """A topic whose producers are asked for."""

    name: String = field()
    """Name of the topic."""
    partition_indexes: Array[Int32] = field()
    """Partition numbers."""


class DescribeProducersRequest(Request, key=61, versions="0", flexible="0+"):
    """Ask which idempotent producers write to partitions (KIP-664)."""

    topics: Array[ProducersTopicRequest] = field()
    """One entry for each topic."""


class ProducerState(Struct):
    """What a partition knows of one producer."""

    producer_id: Int64 = field()
    """Producer id."""
    producer_epoch: Int32 = field()
    """Epoch of the producer id."""
    last_sequence: Int32 = field(default=-1)
    """Sequence of its last record."""
    last_timestamp: Int64 = field(default=-1)
    """Timestamp of its last record."""
    coordinator_epoch: Int32 = field()
    """Epoch of the coordinator that ended its last transaction; -1 for none."""
    current_txn_start_offset: Int64 = field(default=-1)
    """Where its open transaction begins; -1 for none."""


class ProducersPartitionResponse(Struct):
    """The producers of one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    active_producers: Array[ProducerState] = field()
    """Producers that the partition knows."""


class ProducersTopicResponse(Struct):
    """The producers of one topic."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[ProducersPartitionResponse] = field()
    """One entry for each partition."""


class DescribeProducersResponse(Response, to=DescribeProducersRequest):
    """The producers of each partition."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[ProducersTopicResponse] = field()
    """One entry for each topic."""


class DescribeTransactionsRequest(Request, key=65, versions="0", flexible="0+"):
    """Ask for the state of transactions (KIP-664)."""

    transactional_ids: Array[String] = field()
    """Names of the transactions."""


class TransactionTopic(Struct):
    """Partitions of a topic that are in the transaction."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class DescribedTransaction(Struct):
    """One transaction."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    transactional_id: String = field()
    """Name of the transaction."""
    transaction_state: String = field()
    """State of the transaction, for example Ongoing or CompleteCommit."""
    transaction_timeout_ms: Int32 = field()
    """Milliseconds after which the coordinator aborts an open transaction."""
    transaction_start_time_ms: Int64 = field()
    """When it began, in milliseconds since 1970; -1 when it is not open."""
    producer_id: Int64 = field()
    """Producer id."""
    producer_epoch: Int16 = field()
    """Epoch of the producer id."""
    topics: Array[TransactionTopic] = field()
    """One entry for each topic."""


class DescribeTransactionsResponse(Response, to=DescribeTransactionsRequest):
    """The transactions asked for."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    transaction_states: Array[DescribedTransaction] = field()
    """One entry for each transaction."""


class ListTransactionsRequest(Request, key=66, versions="0-2", flexible="0+"):
    """Ask for the transactions that this broker coordinates (KIP-664).

    v1: by duration (KIP-994). v2: by pattern (KIP-1152).
    """

    state_filters: Array[String] = field()
    """Only in these states; empty for all."""
    producer_id_filters: Array[Int64] = field()
    """Only of these producers; empty for all."""
    duration_filter: Int64 = field("1+", default=-1)
    """Only those open for longer, in milliseconds; below 0 for all."""
    transactional_id_pattern: String | None = field("2+", default=None)
    """Only names that fit this RE2 pattern; null for all."""


class ListedTransaction(Struct):
    """A transaction in short."""

    transactional_id: String = field()
    """Name of the transaction."""
    producer_id: Int64 = field()
    """Producer id."""
    transaction_state: String = field()
    """State of the transaction, for example Ongoing or CompleteCommit."""


class ListTransactionsResponse(Response, to=ListTransactionsRequest):
    """The transactions that this broker coordinates."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    unknown_state_filters: Array[String] = field()
    """States in the request that the broker does not know."""
    transaction_states: Array[ListedTransaction] = field()
    """The transactions found."""
