"""TODO"""

from __future__ import annotations

from headrace.wire.schema import Array, Int16, Int32, Int64, Records, Request, Response, String, Struct, Uuid, field

__all__ = [
    "BatchIndexAndErrorMessage", "InitProducerIdRequest", "InitProducerIdResponse", "LeaderIdAndEpoch", "NodeEndpoint",
    "PartitionProduceData", "PartitionProduceResponse", "ProduceRequest", "ProduceResponse", "TopicProduceData",
    "TopicProduceResponse",
]


class PartitionProduceData(Struct):
    """TODO PartitionProduceData"""

    index: Int32 = field()
    records: Records | None = field()


class TopicProduceData(Struct):
    """TODO TopicProduceData"""

    name: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partition_data: Array[PartitionProduceData] = field()


class ProduceRequest(Request, key=0, versions="0-13", flexible="9+"):
    """TODO ProduceRequest"""

    transactional_id: String | None = field("3+", default=None)
    acks: Int16 = field()
    timeout_ms: Int32 = field()
    topic_data: Array[TopicProduceData] = field()


class BatchIndexAndErrorMessage(Struct):
    """TODO BatchIndexAndErrorMessage"""

    batch_index: Int32 = field("8+")
    batch_index_error_message: String | None = field("8+", default=None)


class LeaderIdAndEpoch(Struct):
    """TODO LeaderIdAndEpoch"""

    leader_id: Int32 = field("10+", default=-1)
    leader_epoch: Int32 = field("10+", default=-1)


class PartitionProduceResponse(Struct):
    """TODO PartitionProduceResponse"""

    index: Int32 = field()
    error_code: Int16 = field()
    base_offset: Int64 = field()
    log_append_time_ms: Int64 = field("2+", default=-1, ignorable=True)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    record_errors: Array[BatchIndexAndErrorMessage] = field("8+", ignorable=True)
    error_message: String | None = field("8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field("10+", tag=0)


class TopicProduceResponse(Struct):
    """TODO TopicProduceResponse"""

    name: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partition_responses: Array[PartitionProduceResponse] = field()


class NodeEndpoint(Struct):
    """TODO NodeEndpoint"""

    node_id: Int32 = field("10+")
    host: String = field("10+")
    port: Int32 = field("10+")
    rack: String | None = field("10+", default=None)


class ProduceResponse(Response, to=ProduceRequest):
    """TODO ProduceResponse"""

    responses: Array[TopicProduceResponse] = field()
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    node_endpoints: Array[NodeEndpoint] = field("10+", tag=0)


class InitProducerIdRequest(Request, key=22, versions="0-5", flexible="2+"):
    """TODO InitProducerIdRequest"""

    transactional_id: String | None = field()
    transaction_timeout_ms: Int32 = field()
    producer_id: Int64 = field("3+", default=-1)
    producer_epoch: Int16 = field("3+", default=-1)


class InitProducerIdResponse(Response, to=InitProducerIdRequest):
    """TODO InitProducerIdResponse"""

    throttle_time_ms: Int32 = field(ignorable=True)
    error_code: Int16 = field()
    producer_id: Int64 = field(default=-1)
    producer_epoch: Int16 = field()
    ongoing_txn_producer_id: Int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: Int16 = field("6+", default=-1)
