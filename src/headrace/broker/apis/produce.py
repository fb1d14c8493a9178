"""Produce: batches into logs."""

from __future__ import annotations

from headrace.broker.apis.transactions import verification_code
from headrace.broker.cluster import ApiCall
from headrace.broker.coordinators.transactional_ids import ProducerIdAndEpoch
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.catalog import Topic
from headrace.broker.storage.partition import MAX_CONVERTED_BYTES, ApiError, Appended, Partition, RecordsRefusedError
from headrace.errors import CorruptRecordError, KafkaError
from headrace.records.legacy.conversion import upgrade
from headrace.wire.messages.producer.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceLeaderIdAndEpoch,
    ProduceNodeEndpoint,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

__all__ = ["SERVES", "produce"]

_ALL = -1
_BATCHES_FROM = 3
_IDS_FROM = 13
_LEADERS_FROM = 10
_ZSTD_FROM = 7
_OF_SEQUENCE = (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError.INVALID_PRODUCER_EPOCH,
                KafkaError.INVALID_TXN_STATE)
"""Errors of a partition's log: the reply then says where the log starts."""
_ZSTD = 4
_ATTRIBUTES_AT = 22
_TRANSACTIONAL = 0x10
_PRODUCER_ID = slice(43, 51)
_NO_PRODUCER = b"\xff" * 8
_ABORTABLE_FROM = 11
_OWN_EPOCHS_FROM = 12


def produce(call: ApiCall, request: ProduceRequest) -> ProduceResponse | None:
    """Store every partition's batch; there is one copy of the log, so acks 1 and -1 are the same.

    Returns:
        The reply; None for acks=0, which gets none.

    Raises:
        ApiError: a batch of an acks=0 request was refused. No reply can say so: the connection must be closed.
    """
    error = _transactional_error(call, request)
    reply = ProduceResponse(responses=[_produce_topic(call, request, data, error) for data in request.topic_data])
    errors = [part for topic in reply.responses for part in topic.partition_responses if part.error_code]
    if request.acks == 0:
        if errors:
            raise ApiError(errors[0].error_code)
        return None
    if call.version >= _LEADERS_FROM and any(part.error_code == KafkaError.NOT_LEADER_FOR_PARTITION for part in errors):
        reply.node_endpoints = [ProduceNodeEndpoint(node_id=node.id, host=node.host, port=node.port)
                                for node in call.cluster.up_nodes]
    return reply


def _transactional_error(call: ApiCall, request: ProduceRequest) -> ApiError | None:
    """Why a request with batches of transactions is refused as a whole."""
    if call.version < _BATCHES_FROM:
        return None
    producers = {bytes(part.records[_PRODUCER_ID]) for topic in request.topic_data for part in topic.partition_data
                 if part.records and len(part.records) > _ATTRIBUTES_AT
                 and part.records[_ATTRIBUTES_AT] & _TRANSACTIONAL}
    if producers and request.transactional_id is None:
        return ApiError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Batches of a transaction need its name")
    if len(producers - {_NO_PRODUCER}) > 1:
        return ApiError(KafkaError.INVALID_PRODUCER_ID_MAPPING, "A request can have one producer's transaction only")
    return None


class _NotAdmittedError(ApiError):
    """The coordinator refused; the partition's log was not asked."""


class _Gate:
    """Asks the coordinator before a partition takes the first batch of a transaction; from version 12 on the partition
    is added by that.
    """

    def __init__(self, call: ApiCall, transactional_id: str, topic: str, index: int) -> None:
        self.own_epochs = call.version >= _OWN_EPOCHS_FROM
        self._call = call
        self._id = transactional_id
        self._place = topic, index

    def admit(self, producer_id: int, epoch: int) -> None:
        transactions, who = self._call.cluster.transactions, ProducerIdAndEpoch(producer_id, epoch)
        try:
            if self.own_epochs:
                transactions.add(self._id, who, [self._place], [], 2, self._call.now)
            else:
                transactions.verify(self._id, who, self._call.now).check_has(self._place)
        except ApiError as error:
            code = verification_code(error, knows_abortable=self._call.version >= _ABORTABLE_FROM)
            if code == KafkaError.CONCURRENT_TRANSACTIONS and not self.own_epochs:
                code = KafkaError.NOT_ENOUGH_REPLICAS  # which clients of that time send again
            raise _NotAdmittedError(code) from None


def _produce_topic(
    call: ApiCall, request: ProduceRequest, data: TopicProduceData, error: ApiError | None
) -> TopicProduceResponse:
    try:
        if error is not None:
            raise error
        topic = call.topic(data.name, data.topic_id, _IDS_FROM)
        if request.acks not in (-1, 0, 1):
            raise ApiError(KafkaError.INVALID_REQUIRED_ACKS)
    except ApiError as error:
        parts = [_error_response(part.index, error) for part in data.partition_data]
    else:
        parts = [_produce_partition(call, request, topic, part) for part in data.partition_data]
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=parts)


def _produce_partition(
    call: ApiCall, request: ProduceRequest, topic: Topic, data: PartitionProduceData
) -> PartitionProduceResponse:
    try:
        partition = call.led_partition(topic, data.index)
        if request.acks == _ALL:
            _check_in_sync(call, topic, partition)
        name = request.transactional_id
        stored = _append(call, topic, data, None if name is None else _Gate(call, name, topic.name, data.index))
    except ApiError as error:
        response = _error_response(data.index, error)
        if isinstance(error, RecordsRefusedError) or (
                error.code in _OF_SEQUENCE and not isinstance(error, _NotAdmittedError)):
            response.log_start_offset = topic.partitions[data.index].log.start_offset
        return _led_elsewhere(topic, response) if call.version >= _LEADERS_FROM else response
    return PartitionProduceResponse(index=data.index, error_code=0, base_offset=stored.base_offset,
                                    log_append_time_ms=stored.log_append_time_ms,
                                    log_start_offset=partition.log.start_offset, record_errors=[])


def _check_in_sync(call: ApiCall, topic: Topic, partition: Partition) -> None:
    """Refuse acks=all where fewer replicas are up than `min.insync.replicas`, of which no more than all can be.

    Raises:
        ApiError: too few are up.
    """
    up = sum(map(call.cluster.is_up, partition.replicas))
    needed = min(int(topic.configs["min.insync.replicas"]), len(partition.replicas))
    if up < needed:
        raise ApiError(KafkaError.NOT_ENOUGH_REPLICAS, f"{up} replica(s) are in sync; min.insync.replicas asks for "
                       f"{needed}")


def _append(call: ApiCall, topic: Topic, data: PartitionProduceData, gate: _Gate | None) -> Appended:
    if call.version < _BATCHES_FROM:
        return _append_message_set(call, topic, data)
    if not data.records:
        raise ApiError(KafkaError.INVALID_RECORD, "A partition without records")
    batch = memoryview(data.records)
    if call.version < _ZSTD_FROM and len(batch) > _ATTRIBUTES_AT and batch[_ATTRIBUTES_AT] & 7 == _ZSTD:
        raise ApiError(KafkaError.UNSUPPORTED_COMPRESSION_TYPE)
    return topic.partitions[data.index].append(batch, topic.configs, call.now.ms, gate)


def _append_message_set(call: ApiCall, topic: Topic, data: PartitionProduceData) -> Appended:
    """Store what a client from before Kafka 0.11 sends; as there, an empty message set is no error."""
    if not data.records:
        return Appended(-1, -1)
    now_ms = call.now.ms
    by_broker = topic.configs["message.timestamp.type"] == "LogAppendTime"
    try:
        batch = bytearray(upgrade(data.records, now_ms=now_ms, log_append_time=by_broker,
                                  max_decompressed_bytes=MAX_CONVERTED_BYTES))
    except CorruptRecordError as error:
        raise ApiError(KafkaError.INVALID_MSG, str(error)) from None
    return topic.partitions[data.index].append(memoryview(batch), topic.configs, now_ms)


def _error_response(index: int, error: ApiError) -> PartitionProduceResponse:
    refused = error.indexes if isinstance(error, RecordsRefusedError) else []
    return PartitionProduceResponse(index=index, error_code=error.code, base_offset=-1, error_message=error.reason,
                                    record_errors=[BatchIndexAndErrorMessage(
                                        batch_index=position, batch_index_error_message=error.reason)
                                        for position in refused])


def _led_elsewhere(topic: Topic, part: PartitionProduceResponse) -> PartitionProduceResponse:
    """Name the leader to a client that asked the wrong node (KIP-951)."""
    if part.error_code == KafkaError.NOT_LEADER_FOR_PARTITION:
        partition = topic.partitions[part.index]
        part.current_leader = ProduceLeaderIdAndEpoch(
            leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
        )
    return part


SERVES = (
    ServedApi(ProduceRequest, produce, "Versions 0-2 carry message sets; each becomes one batch of format 2."),
)
