"""Sending record batches, and the producer id that makes sending them twice harmless.

Read next: `machines.producer.sender`.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Int16, Int32, Int64, Records, Request, Response, String, Struct, Uuid, field

__all__ = [
    "BatchIndexAndErrorMessage",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "ProduceLeaderIdAndEpoch",
    "ProduceNodeEndpoint",
    "PartitionProduceData",
    "PartitionProduceResponse",
    "ProduceRequest",
    "ProduceResponse",
    "TopicProduceData",
    "TopicProduceResponse",
]


class PartitionProduceData(Struct):
    """The record batches for one partition."""

    index: Int32 = field()
    """Partition number."""
    records: Records | None = field()
    """One record batch (format 2) from version 3 on; message sets of format 1 in version 2, of format 0 or 1 before."""


class TopicProduceData(Struct):
    """The record batches for one topic."""

    name: String = field("0-12", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("13+", ignorable=True)
    """Id of the topic, in place of its name: a topic that was deleted and made anew has another one (KIP-516)."""
    partition_data: Array[PartitionProduceData] = field()
    """One entry for each partition."""


class ProduceRequest(Request, key=0, versions="0-13", flexible="9+"):
    """Append record batches. A client id of ``__admin_client`` may write to Kafka's internal topics too.

    v2: message format 1 (KIP-32). v3: batch format 2, transactions (KIP-98). v4: KAFKA_STORAGE_ERROR (KIP-112). v6:
    throttling after the answer (KIP-219). v7: zstd (KIP-110). v8: errors of single records (KIP-467). v9: compact
    lengths, tagged fields (KIP-482). v10: the new leader in the answer (KIP-951). v11: TRANSACTION_ABORTABLE, v12: the
    partition joins the transaction by itself (KIP-890). v13: topic ids (KIP-516). Kafka 4 takes version 3 and above,
    whatever it advertises.
    """

    transactional_id: String | None = field("3+", default=None)
    """Name of the transaction that the records belong to; null outside of transactions."""
    acks: Int16 = field()
    """Who must have the records before the answer: 0 nobody, 1 the leader, -1 all replicas that are in sync.

    There is no answer to 0, not even an error: when a partition cannot take its records the broker closes the
    connection, so that the client asks for metadata anew.
    """
    timeout_ms: Int32 = field()
    """Milliseconds that the leader may wait for the replicas, with acks -1; then it answers REQUEST_TIMED_OUT."""
    topic_data: Array[TopicProduceData] = field()
    """One entry for each topic."""


class BatchIndexAndErrorMessage(Struct):
    """A record that made the broker refuse its batch (KIP-467)."""

    batch_index: Int32 = field("8+")
    """Position of the record in its batch, from 0 on."""
    batch_index_error_message: String | None = field("8+", default=None)
    """Why the record was refused; null when only `PartitionProduceResponse.error_message` says it."""


class ProduceLeaderIdAndEpoch(Struct):
    """The leader to send to instead (KIP-951)."""

    leader_id: Int32 = field("10+", default=-1)
    """Node id of the leader; -1 when it is not known."""
    leader_epoch: Int32 = field("10+", default=-1)
    """Leader epoch; -1 when it is not known. Older than what the client knows, the hint is of no use."""


class PartitionProduceResponse(Struct):
    """What became of the batch of one partition."""

    index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well.

    For all topics of the request: TRANSACTIONAL_ID_AUTHORIZATION_FAILED (the client may not use the transactional id),
    CLUSTER_AUTHORIZATION_FAILED (it may not produce idempotently), INVALID_REQUIRED_ACKS (acks is not -1, 0 or 1).

    The batch is at fault: TOPIC_AUTHORIZATION_FAILED, CORRUPT_MESSAGE (checksum, size, format), MESSAGE_TOO_LARGE
    (max.message.bytes), RECORD_LIST_TOO_LARGE (segment.bytes), INVALID_TIMESTAMP (too far from the broker's clock, or
    a time from the client where the topic is on LogAppendTime), UNSUPPORTED_FOR_MESSAGE_FORMAT (idempotence or
    transactions in an old message format), INVALID_RECORD (`record_errors` names the records).

    The partition is somewhere else or not well, so send again: NOT_LEADER_OR_FOLLOWER (`current_leader` may say who
    leads), UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (v13), KAFKA_STORAGE_ERROR (the log directory is offline),
    NOT_ENOUGH_REPLICAS (nothing is written), NOT_ENOUGH_REPLICAS_AFTER_APPEND (it is written, but too few replicas
    have it), REQUEST_TIMED_OUT.

    Of idempotent and transactional producers: DUPLICATE_SEQUENCE_NUMBER (the batch is there already; newer brokers
    answer 0 with its offset), OUT_OF_ORDER_SEQUENCE_NUMBER (the first sequence is not the one after the last: batches
    were lost), UNKNOWN_PRODUCER_ID (the broker has forgotten the producer; see `log_start_offset`),
    INVALID_PRODUCER_EPOCH (a newer producer uses the transactional id, or the transaction took too long),
    TRANSACTION_ABORTABLE (v11: abort and begin anew).
    """
    base_offset: Int64 = field()
    """Offset that the first record got; -1 after an error."""
    log_append_time_ms: Int64 = field("2+", default=-1, ignorable=True)
    """Time at which the broker appended the batch, in milliseconds since 1970, when the topic is on LogAppendTime.

    -1 when the records keep the timestamps that the client gave them.
    """
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    """First offset of the log; -1 when not known.

    After UNKNOWN_PRODUCER_ID it shows what happened: above the last acknowledged offset the producer's records were
    only deleted by retention, and it may go on with sequence 0; otherwise acknowledged records were lost (KAFKA-5793).
    As even that is not certain, KIP-360 makes the producer raise its epoch instead.
    """
    record_errors: Array[BatchIndexAndErrorMessage] = field("8+", ignorable=True)
    """The records that made the broker refuse the whole batch; none when they are not known."""
    error_message: String | None = field("8+", default=None, ignorable=True)
    """What is wrong with the batch, in words; null when the error code says it all."""
    current_leader: ProduceLeaderIdAndEpoch = field("10+", tag=0)
    """Who leads now, with NOT_LEADER_OR_FOLLOWER: the client may send there without asking for metadata (KIP-951)."""


class TopicProduceResponse(Struct):
    """What became of the batches of one topic."""

    name: String = field("0-12", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("13+", ignorable=True)
    """Id of the topic, in place of its name."""
    partition_responses: Array[PartitionProduceResponse] = field()
    """One entry for each partition."""


class ProduceNodeEndpoint(Struct):
    """Where a leader named in this response listens (KIP-951)."""

    node_id: Int32 = field("10+")
    """Node id of the leader."""
    host: String = field("10+")
    """Name or address."""
    port: Int32 = field("10+")
    """TCP port."""
    rack: String | None = field("10+", default=None)
    """Rack of the broker; null when it has none."""


class ProduceResponse(Response, to=ProduceRequest):
    """What became of each batch. There is no response at all to acks=0."""

    responses: Array[TopicProduceResponse] = field()
    """One entry for each topic."""
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds of throttling, because a quota was exceeded; 0 for none.

    Up to version 5 the broker has held the answer back so long; from version 6 on it answers at once and the client is
    to stay silent so long (KIP-219).
    """
    node_endpoints: Array[ProduceNodeEndpoint] = field("10+", tag=0)
    """Where the leaders named in `current_leader` listen."""


class InitProducerIdRequest(Request, key=22, versions="0-5", flexible="2+"):
    """Ask for a producer id and epoch (KIP-98).

    v3: keep the id and raise the epoch (KIP-360). v4: PRODUCER_FENCED (KIP-588). v5: TRANSACTION_ABORTABLE
    (KIP-890).
    """

    transactional_id: String | None = field()
    """Name of the transaction; null outside of transactions."""
    transaction_timeout_ms: Int32 = field()
    """Milliseconds after which the coordinator aborts an open transaction."""
    producer_id: Int64 = field("3+", default=-1)
    """Producer id to keep; -1 for a new one."""
    producer_epoch: Int16 = field("3+", default=-1)
    """Epoch to raise; -1 for a new id."""


class InitProducerIdResponse(Response, to=InitProducerIdRequest):
    """A producer id and epoch."""

    throttle_time_ms: Int32 = field(ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    producer_id: Int64 = field(default=-1)
    """Producer id."""
    producer_epoch: Int16 = field()
    """Epoch of the producer id."""
