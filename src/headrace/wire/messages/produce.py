"""Writing records, and the producer ids that make it idempotent."""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
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
    "BatchIndexAndErrorMessage",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionProduceData",
    "PartitionProduceResponse",
    "ProduceRequest",
    "ProduceResponse",
    "TopicProduceData",
    "TopicProduceResponse",
]


class PartitionProduceData(Struct):
    """One entry: partition produce data."""

    index: Int32 = field()
    records: Records | None = field(nullable="0+")


class TopicProduceData(Struct):
    """One entry: topic produce data."""

    name: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partition_data: Array[PartitionProduceData] = field()


class ProduceRequest(Request, key=0, versions="0-13", flexible="9+"):
    """Write record batches to partitions. v3 batch format 2, v7 zstd, v8 errors of single records (KIP-467), v10
    new leader (KIP-951), v13 topic ids (KIP-516).
    """

    transactional_id: String | None = field("3+", default=None, nullable="3+")
    acks: Int16 = field()
    timeout_ms: Int32 = field()
    topic_data: Array[TopicProduceData] = field()


class BatchIndexAndErrorMessage(Struct):
    """One entry: batch index and error message."""

    batch_index: Int32 = field("8+")
    batch_index_error_message: String | None = field("8+", default=None, nullable="8+")


class LeaderIdAndEpoch(Struct):
    """One entry: leader id and epoch."""

    leader_id: Int32 = field("10+", default=-1)
    leader_epoch: Int32 = field("10+", default=-1)


class PartitionProduceResponse(Struct):
    """One entry: partition produce response."""

    index: Int32 = field()
    error_code: Int16 = field()
    base_offset: Int64 = field()
    log_append_time_ms: Int64 = field("2+", default=-1, ignorable=True)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    record_errors: Array[BatchIndexAndErrorMessage] = field("8+", ignorable=True)
    error_message: String | None = field("8+", default=None, nullable="8+", ignorable=True)
    current_leader: LeaderIdAndEpoch = field("10+", tag=0, tagged="10+")


class TopicProduceResponse(Struct):
    """One entry: topic produce response."""

    name: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partition_responses: Array[PartitionProduceResponse] = field()


class NodeEndpoint(Struct):
    """One entry: node endpoint."""

    node_id: Int32 = field("10+")
    host: String = field("10+")
    port: Int32 = field("10+")
    rack: String | None = field("10+", default=None, nullable="10+")


class ProduceResponse(Response, key=0, versions="0-13", flexible="9+"):
    """Answer to `ProduceRequest`."""

    responses: Array[TopicProduceResponse] = field()
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    node_endpoints: Array[NodeEndpoint] = field("10+", tag=0, tagged="10+")


ProduceRequest.response_type = ProduceResponse


class InitProducerIdRequest(Request, key=22, versions="0-5", flexible="2+"):
    """Ask for a producer id and epoch (KIP-98); v3 keeps the id and raises the epoch (KIP-360)."""

    transactional_id: String | None = field(nullable="0+")
    transaction_timeout_ms: Int32 = field()
    producer_id: Int64 = field("3+", default=-1)
    producer_epoch: Int16 = field("3+", default=-1)
    enable2_pc: Bool = field("6+")
    keep_prepared_txn: Bool = field("6+")


class InitProducerIdResponse(Response, key=22, versions="0-6", flexible="2+"):
    """Answer to `InitProducerIdRequest`."""

    throttle_time_ms: Int32 = field(ignorable=True)
    error_code: Int16 = field()
    producer_id: Int64 = field(default=-1)
    producer_epoch: Int16 = field()
    ongoing_txn_producer_id: Int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: Int16 = field("6+", default=-1)


InitProducerIdRequest.response_type = InitProducerIdResponse
