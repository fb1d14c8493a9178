"""Sending record batches, and the producer id that makes sending them twice harmless.

Read next: `machines.sender`.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Int16, Int32, Int64, Records, Request, Response, String, Struct, Uuid, field

__all__ = [
    "BatchIndexAndErrorMessage", "InitProducerIdRequest", "InitProducerIdResponse", "LeaderIdAndEpoch", "NodeEndpoint",
    "PartitionProduceData", "PartitionProduceResponse", "ProduceRequest", "ProduceResponse", "TopicProduceData",
    "TopicProduceResponse",
]


class PartitionProduceData(Struct):
    """The record batches for one partition."""

    index: Int32 = field()  # partition number
    records: Records | None = field()  # record batches


class TopicProduceData(Struct):
    """The record batches for one topic."""

    name: String = field("0-12", ignorable=True)  # name of the topic
    topic_id: Uuid = field("13+", ignorable=True)  # zero when it is not known
    partition_data: Array[PartitionProduceData] = field()  # one for each partition


class ProduceRequest(Request, key=0, versions="0-13", flexible="9+"):
    """Append record batches (KIP-98 and others).

    v3: batch format 2, transactions. v7: zstd. v8: errors per record (KIP-467). v10: the new leader in the answer
    (KIP-951). v12: the partition joins the transaction by itself (KIP-890). v13: topic ids (KIP-516). Kafka 4 takes
    version 3 and above, whatever it advertises.
    """

    transactional_id: String | None = field("3+", default=None)  # null outside of transactions
    acks: Int16 = field()  # 0 none, 1 the leader, -1 all in-sync replicas
    timeout_ms: Int32 = field()  # how long the broker may take
    topic_data: Array[TopicProduceData] = field()  # one for each topic


class BatchIndexAndErrorMessage(Struct):
    """A record that made the broker refuse its batch (KIP-467)."""

    batch_index: Int32 = field("8+")  # position of the record in its batch
    batch_index_error_message: String | None = field("8+", default=None)  # why the record was refused


class LeaderIdAndEpoch(Struct):
    """The leader to send to instead (KIP-951)."""

    leader_id: Int32 = field("10+", default=-1)  # node id of the leader, -1 when there is none
    leader_epoch: Int32 = field("10+", default=-1)  # leader epoch, -1 when not known


class PartitionProduceResponse(Struct):
    """What became of the batch of one partition."""

    index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well
    base_offset: Int64 = field()  # offset that the first record got
    # time of the broker, when the topic is on LogAppendTime; else -1
    log_append_time_ms: Int64 = field("2+", default=-1, ignorable=True)
    # first offset of the log, -1 when not known
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    # the records that made the broker refuse the batch
    record_errors: Array[BatchIndexAndErrorMessage] = field("8+", ignorable=True)
    # the error in words, null when there is none
    error_message: String | None = field("8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field("10+", tag=0)  # who leads now, when this broker does not


class TopicProduceResponse(Struct):
    """What became of the batches of one topic."""

    name: String = field("0-12", ignorable=True)  # name of the topic
    topic_id: Uuid = field("13+", ignorable=True)  # zero when it is not known
    partition_responses: Array[PartitionProduceResponse] = field()  # one for each partition


class NodeEndpoint(Struct):
    """Where a leader named in this response listens (KIP-951)."""

    node_id: Int32 = field("10+")
    host: String = field("10+")  # name or address
    port: Int32 = field("10+")
    rack: String | None = field("10+", default=None)  # rack of the broker, null when it has none


class ProduceResponse(Response, to=ProduceRequest):
    """What became of each batch. There is no response at all to acks=0."""

    responses: Array[TopicProduceResponse] = field()  # one for each topic
    # how long a quota held the answer back, or asks to wait
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    node_endpoints: Array[NodeEndpoint] = field("10+", tag=0)  # where the leaders named above listen


class InitProducerIdRequest(Request, key=22, versions="0-5", flexible="2+"):
    """Ask for a producer id and epoch (KIP-98).

    v3: keep the id and raise the epoch (KIP-360). v4: PRODUCER_FENCED (KIP-588). v5: TRANSACTION_ABORTABLE
    (KIP-890).
    """

    transactional_id: String | None = field()  # null outside of transactions
    transaction_timeout_ms: Int32 = field()  # the coordinator aborts a transaction that stays open longer
    producer_id: Int64 = field("3+", default=-1)  # id to keep, -1 for a new one
    producer_epoch: Int16 = field("3+", default=-1)  # epoch to raise, -1 for a new id


class InitProducerIdResponse(Response, to=InitProducerIdRequest):
    """A producer id and epoch."""

    throttle_time_ms: Int32 = field(ignorable=True)  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    producer_id: Int64 = field(default=-1)
    producer_epoch: Int16 = field()  # epoch of the producer id
