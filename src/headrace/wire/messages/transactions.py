"""Transactions: taking partitions and offsets into one, ending it, and looking at those of others.

Read next: `wire.messages.produce` for the producer id that a transaction belongs to.
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

    name: String = field()  # name of the topic
    partitions: Array[Int32] = field()  # partition numbers


class AddPartitionsToTxnTransaction(Struct):
    """A transaction to take partitions into; only brokers send several."""

    transactional_id: String = field("4+")  # name of the transaction
    producer_id: Int64 = field("4+")
    producer_epoch: Int16 = field("4+")  # epoch of the producer id
    verify_only: Bool = field("4+")  # only ask whether the partitions are in the transaction
    topics: Array[AddPartitionsToTxnTopic] = field("4+")  # one for each topic


class AddPartitionsToTxnRequest(Request, key=24, versions="0-5", flexible="3+"):
    """Take partitions into a transaction (KIP-98).

    Clients use versions 0-3; v4 is for brokers (KIP-890). Not needed when the cluster finalizes transaction.version
    2.
    """

    transactions: Array[AddPartitionsToTxnTransaction] = field("4+")  # one for each transaction
    v3_and_below_transactional_id: String = field("0-3")  # up to version 3
    v3_and_below_producer_id: Int64 = field("0-3")  # up to version 3
    v3_and_below_producer_epoch: Int16 = field("0-3")  # up to version 3
    v3_and_below_topics: Array[AddPartitionsToTxnTopic] = field("0-3")  # up to version 3


class AddPartitionsToTxnPartitionResult(Struct):
    """Whether one partition is in the transaction."""

    partition_index: Int32 = field()  # partition number
    partition_error_code: Int16 = field()  # 0 when all went well


class AddPartitionsToTxnTopicResult(Struct):
    """Whether the partitions of one topic are in the transaction."""

    name: String = field()  # name of the topic
    results_by_partition: Array[AddPartitionsToTxnPartitionResult] = field()  # one for each partition


class AddPartitionsToTxnResult(Struct):
    """The results of one transaction."""

    transactional_id: String = field("4+")  # name of the transaction
    topic_results: Array[AddPartitionsToTxnTopicResult] = field("4+")  # one for each topic


class AddPartitionsToTxnResponse(Response, to=AddPartitionsToTxnRequest):
    """Whether each partition is in the transaction."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field("4+", ignorable=True)  # 0 when all went well
    results_by_transaction: Array[AddPartitionsToTxnResult] = field("4+")  # from version 4 on
    results_by_topic_v3_and_below: Array[AddPartitionsToTxnTopicResult] = field("0-3")  # up to version 3


class AddOffsetsToTxnRequest(Request, key=25, versions="0-4", flexible="3+"):
    """Take a group's offsets into a transaction (KIP-98).

    Not needed when the cluster finalizes transaction.version 2.
    """

    transactional_id: String = field()  # name of the transaction
    producer_id: Int64 = field()
    producer_epoch: Int16 = field()  # epoch of the producer id
    group_id: String = field()  # name of the group


class AddOffsetsToTxnResponse(Response, to=AddOffsetsToTxnRequest):
    """Whether the group's offsets are in the transaction."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well


class EndTxnRequest(Request, key=26, versions="0-5", flexible="3+"):
    """Commit or abort a transaction (KIP-98). v5: the answer brings the next epoch (KIP-890)."""

    transactional_id: String = field()  # name of the transaction
    producer_id: Int64 = field()
    producer_epoch: Int16 = field()  # epoch of the producer id
    committed: Bool = field()  # true commits, false aborts


class EndTxnResponse(Response, to=EndTxnRequest):
    """Whether the transaction is being ended. v5: the producer id and epoch to go on with."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    producer_id: Int64 = field("5+", default=-1, ignorable=True)
    producer_epoch: Int16 = field("5+", default=-1, ignorable=True)  # epoch of the producer id


class TxnOffsetCommitRequestPartition(Struct):
    """The position to keep for one partition."""

    partition_index: Int32 = field()  # partition number
    committed_offset: Int64 = field()  # next offset to read; -1 when there is none
    # epoch of the leader that the position was read from, -1 unknown
    committed_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: String | None = field()  # text kept with the position


class TxnOffsetCommitRequestTopic(Struct):
    """Positions to keep for one topic."""

    name: String = field("0-5", ignorable=True)  # name of the topic
    topic_id: Uuid = field("6+", ignorable=True)  # zero when it is not known
    partitions: Array[TxnOffsetCommitRequestPartition] = field()  # one for each partition


class TxnOffsetCommitRequest(Request, key=28, versions="0-6", flexible="3+"):
    """Keep a group's positions if the transaction commits (KIP-98).

    v3: the member is checked (KIP-447). v5: the group joins the transaction by itself (KIP-890). v6: topic ids
    (KIP-1319).
    """

    transactional_id: String = field()  # name of the transaction
    group_id: String = field()  # name of the group
    producer_id: Int64 = field()
    producer_epoch: Int16 = field()  # epoch of the producer id
    # generation of a classic group, member epoch of a KIP-848 group, -1 outside of any
    generation_id_or_member_epoch: Int32 = field("3+", default=-1)
    member_id: String = field("3+")  # id that the coordinator gave the member; empty for a new one
    group_instance_id: String | None = field("3+", default=None)  # name of a static member, null for others
    topics: Array[TxnOffsetCommitRequestTopic] = field()  # one for each topic


class TxnOffsetCommitResponsePartition(Struct):
    """Whether one position was taken."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well


class TxnOffsetCommitResponseTopic(Struct):
    """Whether the positions of one topic were taken."""

    name: String = field("0-5", ignorable=True)  # name of the topic
    topic_id: Uuid = field("6+", ignorable=True)  # zero when it is not known
    partitions: Array[TxnOffsetCommitResponsePartition] = field()  # one for each partition


class TxnOffsetCommitResponse(Response, to=TxnOffsetCommitRequest):
    """Whether each position was taken."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    topics: Array[TxnOffsetCommitResponseTopic] = field()  # one for each topic


class WritableTxnMarkerTopic(Struct):
    """Partitions of a topic that get the marker."""

    name: String = field()  # name of the topic
    partition_indexes: Array[Int32] = field()  # partition numbers


class WritableTxnMarker(Struct):
    """The end of one producer's transaction."""

    producer_id: Int64 = field()
    producer_epoch: Int16 = field()  # epoch of the producer id
    transaction_result: Bool = field()  # true for committed, false for aborted
    topics: Array[WritableTxnMarkerTopic] = field()  # one for each topic
    coordinator_epoch: Int32 = field()  # epoch of the coordinator, -1 for an administrator
    transaction_version: Int8 = field("2+", ignorable=True)  # 0 and 1 the old protocol, 2 that of KIP-890


class WriteTxnMarkersRequest(Request, key=27, versions="0-2", flexible="1+"):
    """Write the end of transactions into partitions: from the coordinator, or from an administrator who aborts a
    hanging one (KIP-664).
    """

    markers: Array[WritableTxnMarker] = field()  # one for each transaction


class WritableTxnMarkerPartitionResult(Struct):
    """Whether one partition got the marker."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well


class WritableTxnMarkerTopicResult(Struct):
    """Whether the partitions of one topic got the marker."""

    name: String = field()  # name of the topic
    partitions: Array[WritableTxnMarkerPartitionResult] = field()  # one for each partition


class WritableTxnMarkerResult(Struct):
    """The results of one producer's marker."""

    producer_id: Int64 = field()
    topics: Array[WritableTxnMarkerTopicResult] = field()  # one for each topic


class WriteTxnMarkersResponse(Response, to=WriteTxnMarkersRequest):
    """Whether each partition got its marker."""

    markers: Array[WritableTxnMarkerResult] = field()  # one for each transaction


class ProducersTopicRequest(Struct):
    """A topic whose producers are asked for."""

    name: String = field()  # name of the topic
    partition_indexes: Array[Int32] = field()  # partition numbers


class DescribeProducersRequest(Request, key=61, versions="0", flexible="0+"):
    """Ask which idempotent producers write to partitions (KIP-664)."""

    topics: Array[ProducersTopicRequest] = field()  # one for each topic


class ProducerState(Struct):
    """What a partition knows of one producer."""

    producer_id: Int64 = field()
    producer_epoch: Int32 = field()  # epoch of the producer id
    last_sequence: Int32 = field(default=-1)  # sequence of its last record
    last_timestamp: Int64 = field(default=-1)  # timestamp of its last record
    coordinator_epoch: Int32 = field()  # epoch of the coordinator, -1 for an administrator
    current_txn_start_offset: Int64 = field(default=-1)  # where its open transaction begins, -1 for none


class ProducersPartitionResponse(Struct):
    """The producers of one partition."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    active_producers: Array[ProducerState] = field()  # producers that the partition knows


class ProducersTopicResponse(Struct):
    """The producers of one topic."""

    name: String = field()  # name of the topic
    partitions: Array[ProducersPartitionResponse] = field()  # one for each partition


class DescribeProducersResponse(Response, to=DescribeProducersRequest):
    """The producers of each partition."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    topics: Array[ProducersTopicResponse] = field()  # one for each topic


class DescribeTransactionsRequest(Request, key=65, versions="0", flexible="0+"):
    """Ask for the state of transactions (KIP-664)."""

    transactional_ids: Array[String] = field()  # names of the transactions


class TransactionTopic(Struct):
    """Partitions of a topic that are in the transaction."""

    topic: String = field()
    partitions: Array[Int32] = field()  # partition numbers


class DescribedTransaction(Struct):
    """One transaction."""

    error_code: Int16 = field()  # 0 when all went well
    transactional_id: String = field()  # name of the transaction
    transaction_state: String = field()  # for example Ongoing or CompleteCommit
    transaction_timeout_ms: Int32 = field()  # the coordinator aborts a transaction that stays open longer
    transaction_start_time_ms: Int64 = field()  # milliseconds since the epoch
    producer_id: Int64 = field()
    producer_epoch: Int16 = field()  # epoch of the producer id
    topics: Array[TransactionTopic] = field()  # one for each topic


class DescribeTransactionsResponse(Response, to=DescribeTransactionsRequest):
    """The transactions asked for."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    transaction_states: Array[DescribedTransaction] = field()  # one for each transaction


class ListTransactionsRequest(Request, key=66, versions="0-2", flexible="0+"):
    """Ask for the transactions that this broker coordinates (KIP-664).

    v1: by duration (KIP-994). v2: by pattern (KIP-1152).
    """

    state_filters: Array[String] = field()  # only in these states; empty for all
    producer_id_filters: Array[Int64] = field()  # only of these producers; empty for all
    # only those open for longer, in milliseconds; below 0 for all
    duration_filter: Int64 = field("1+", default=-1)
    # only names that fit this RE2 pattern; null for all
    transactional_id_pattern: String | None = field("2+", default=None)


class ListedTransaction(Struct):
    """A transaction in short."""

    transactional_id: String = field()  # name of the transaction
    producer_id: Int64 = field()
    transaction_state: String = field()  # for example Ongoing or CompleteCommit


class ListTransactionsResponse(Response, to=ListTransactionsRequest):
    """The transactions that this broker coordinates."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    unknown_state_filters: Array[String] = field()  # states in the request that the broker does not know
    transaction_states: Array[ListedTransaction] = field()  # the transactions found
