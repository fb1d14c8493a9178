"""Produce and InitProducerId: batches into logs, ids for idempotent producers."""

from __future__ import annotations

from headrace.broker.catalog import Topic
from headrace.broker.cluster import Call
from headrace.broker.partition import MAX_CONVERTED_BYTES, Appended, Refused
from headrace.errors import CorruptRecordError, KafkaError
from headrace.records.conversion import upgrade
from headrace.wire.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

__all__ = ["init_producer_id", "produce"]

_BATCHES_FROM = 3
_IDS_FROM = 13
_LEADERS_FROM = 10
_ZSTD_FROM = 7
_OF_SEQUENCE = (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError.INVALID_PRODUCER_EPOCH,
                KafkaError.INVALID_TXN_STATE)
"""Errors that are found when the log was looked at, so that the reply says where it starts."""
_ZSTD = 4
_ATTRIBUTES_AT = 22


def produce(call: Call, request: ProduceRequest) -> ProduceResponse | None:
    """Store every partition's batch; there is one copy of the log, so acks 1 and -1 are the same.

    Returns:
        The reply; None for acks=0, which gets none.

    Raises:
        Refused: a batch of an acks=0 request was refused, which only closing the connection can tell.
    """
    reply = ProduceResponse(responses=[_produce_topic(call, request, data) for data in request.topic_data])
    errors = [part for topic in reply.responses for part in topic.partition_responses if part.error_code]
    if request.acks == 0:
        if errors:
            raise Refused(errors[0].error_code)
        return None
    if call.version >= _LEADERS_FROM and any(part.error_code == KafkaError.NOT_LEADER_FOR_PARTITION for part in errors):
        reply.node_endpoints = [NodeEndpoint(node_id=node.id, host=node.host, port=node.port)
                                for node in call.cluster.up_nodes]
    return reply


def _produce_topic(call: Call, request: ProduceRequest, data: TopicProduceData) -> TopicProduceResponse:
    try:
        topic = call.topic(data.name, data.topic_id, _IDS_FROM)
        if request.acks not in (-1, 0, 1):
            raise Refused(KafkaError.INVALID_REQUIRED_ACKS)
    except Refused as refused:
        parts = [_refusal(part.index, refused) for part in data.partition_data]
    else:
        parts = [_produce_partition(call, topic, part) for part in data.partition_data]
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=parts)


def _produce_partition(call: Call, topic: Topic, data: PartitionProduceData) -> PartitionProduceResponse:
    try:
        partition = call.led_partition(topic, data.index)
        stored = _append(call, topic, data)
    except Refused as refused:
        refusal = _refusal(data.index, refused)
        if refused.code in _OF_SEQUENCE:
            refusal.log_start_offset = topic.partitions[data.index].log.start_offset
        return _led_elsewhere(topic, refusal) if call.version >= _LEADERS_FROM else refusal
    return PartitionProduceResponse(index=data.index, error_code=0, base_offset=stored.base_offset,
                                    log_append_time_ms=stored.log_append_time_ms,
                                    log_start_offset=partition.log.start_offset, record_errors=[])


def _append(call: Call, topic: Topic, data: PartitionProduceData) -> Appended:
    if call.version < _BATCHES_FROM:
        return _append_message_set(call, topic, data)
    if not data.records:
        raise Refused(KafkaError.INVALID_RECORD, "A partition without records")
    batch = memoryview(data.records)
    if call.version < _ZSTD_FROM and len(batch) > _ATTRIBUTES_AT and batch[_ATTRIBUTES_AT] & 7 == _ZSTD:
        raise Refused(KafkaError.UNSUPPORTED_COMPRESSION_TYPE)
    return topic.partitions[data.index].append(batch, topic.configs, call.now_ms())


def _append_message_set(call: Call, topic: Topic, data: PartitionProduceData) -> Appended:
    """Store what a client from before Kafka 0.11 sends; as there, nothing is no error."""
    if not data.records:
        return Appended(-1, -1)
    now_ms = call.now_ms()
    by_broker = topic.configs["message.timestamp.type"] == "LogAppendTime"
    try:
        batch = bytearray(upgrade(data.records, now_ms=now_ms, log_append_time=by_broker,
                                  max_decompressed_bytes=MAX_CONVERTED_BYTES))
    except CorruptRecordError as error:
        raise Refused(KafkaError.INVALID_MSG, str(error)) from None
    return topic.partitions[data.index].append(memoryview(batch), topic.configs, now_ms)


def _refusal(index: int, refused: Refused) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=refused.code, base_offset=-1, record_errors=[],
                                    error_message=refused.reason)


def _led_elsewhere(topic: Topic, part: PartitionProduceResponse) -> PartitionProduceResponse:
    """Tell a client that came to the wrong node where to go (KIP-951)."""
    if part.error_code == KafkaError.NOT_LEADER_FOR_PARTITION:
        partition = topic.partitions[part.index]
        part.current_leader = LeaderIdAndEpoch(leader_id=partition.leader_id, leader_epoch=partition.leader_epoch)
    return part


def init_producer_id(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A new producer id. Transactional ids are not served."""
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=KafkaError.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(error_code=0, producer_id=call.cluster.catalog.new_producer_id(), producer_epoch=0)
