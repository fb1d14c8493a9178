"""The APIs of transactions: take an id, add partitions and offsets, end, look at those of others (KIP-98, KIP-890)."""

from __future__ import annotations

from headrace.broker.apis.groups import MAX_METADATA_BYTES
from headrace.broker.cluster import ApiCall
from headrace.broker.coordinators.committed_offsets import Committed
from headrace.broker.coordinators.transactional_ids import (
    NO_EPOCH,
    NO_ID,
    OngoingTransaction,
    ProducerIdAndEpoch,
    TransactionState,
)
from headrace.broker.pattern_re2 import Pattern, PatternError
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.partition import ApiError
from headrace.broker.storage.producer_state import Marker
from headrace.errors import KafkaError
from headrace.wire.messages.producer.produce import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from headrace.wire.schema import ZERO_UUID, Request

__all__ = ["SERVES", "add_offsets_to_txn", "add_partitions_to_txn", "describe_transactions", "end_txn",
           "init_producer_id", "list_transactions", "txn_offset_commit", "verification_code", "write_txn_markers"]

_FENCED_FROM = {InitProducerIdRequest: 4, AddPartitionsToTxnRequest: 2, AddOffsetsToTxnRequest: 2, EndTxnRequest: 2}
"""Versions from which on PRODUCER_FENCED is known (KIP-588)."""
_BATCHED_FROM = 4
_OWN_EPOCHS_FROM = 5
_ABORTABLE_FROM = 4
_IDS_FROM = 6
_NO_IDS = 1 << 15
_OFFSETS_TOPIC, _OFFSETS_PARTITIONS = "__consumer_offsets", 50


def init_producer_id(call: ApiCall, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A new producer id; with a transactional id, that one's, with a higher epoch."""
    try:
        found = _init(call, request)
    except ApiError as error:
        return InitProducerIdResponse(error_code=_code(call, request, error), producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(error_code=0, producer_id=found.producer_id, producer_epoch=found.epoch)


def _init(call: ApiCall, request: InitProducerIdRequest) -> ProducerIdAndEpoch:
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH):
        raise ApiError(KafkaError.INVALID_REQUEST)
    if request.transactional_id is None:
        return ProducerIdAndEpoch(call.cluster.catalog.new_producer_id(), 0)
    if request.transactional_id:
        call.check_coordinator(request.transactional_id)
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if request.producer_id != NO_ID else None
    return call.cluster.transactions.initialise(request.transactional_id, request.transaction_timeout_ms, expected,
                                                call.now)


def _code(call: ApiCall, request: Request, error: ApiError) -> int:
    """The code for a fenced client: old ones do not know PRODUCER_FENCED."""
    if error.code == KafkaError.PRODUCER_FENCED and call.version < _FENCED_FROM[type(request)]:
        return KafkaError.INVALID_PRODUCER_EPOCH
    return error.code


def verification_code(error: ApiError, *, knows_abortable: bool) -> int:
    """The code for a producer whose transaction is not open; the codes are those of old brokers."""
    if error.code == KafkaError.PRODUCER_FENCED:
        return KafkaError.INVALID_PRODUCER_EPOCH
    if error.code == KafkaError.TRANSACTION_ABORTABLE and not knows_abortable:
        return KafkaError.INVALID_TXN_STATE
    return error.code


def add_partitions_to_txn(call: ApiCall, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    """Take partitions into a transaction, all or none; from version 4 on several transactions, or only ask."""
    if call.version >= _BATCHED_FROM:
        return AddPartitionsToTxnResponse(error_code=0, results_by_transaction=[
            AddPartitionsToTxnResult(transactional_id=each.transactional_id,
                                     topic_results=[topic for topic in _added(call, request, each)
                                                    if topic.results_by_partition or not each.verify_only])
            for each in request.transactions])
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id, producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch, topics=request.v3_and_below_topics)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_added(call, request, only))


def _added(
    call: ApiCall, request: AddPartitionsToTxnRequest, wanted: AddPartitionsToTxnTransaction
) -> list[AddPartitionsToTxnTopicResult]:
    places = [(topic.name, index) for topic in wanted.topics for index in topic.partitions]
    codes = dict.fromkeys(places, 0)
    try:
        missing = [each for each in places if not _exists(call, *each)]
        if missing:
            codes = dict.fromkeys(places, KafkaError.OPERATION_NOT_ATTEMPTED)
            codes |= dict.fromkeys(missing, KafkaError.UNKNOWN_TOPIC_OR_PART)
        else:
            codes |= _add(call, wanted, places)
    except ApiError as error:
        codes = dict.fromkeys(places, _code(call, request, error))
    return [AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=[
        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=codes[topic.name, index])
        for index in topic.partitions]) for topic in wanted.topics]


def _add(
    call: ApiCall, wanted: AddPartitionsToTxnTransaction, places: list[tuple[str, int]]
) -> dict[tuple[str, int], int]:
    """Add partitions, or ask whether they are in; the codes of those that are not."""
    transactions, name = call.cluster.transactions, wanted.transactional_id
    who = ProducerIdAndEpoch(wanted.producer_id, wanted.producer_epoch)
    if name:
        call.check_coordinator(name)
    if not wanted.verify_only:
        transactions.add(name, who, places, [], 2 if call.version >= _BATCHED_FROM else 0, call.now)
        return {}
    found = transactions.verify(name, who, call.now)
    return {each: KafkaError.TRANSACTION_ABORTABLE for each in places if each not in found.partitions}


def _exists(call: ApiCall, name: str, index: int) -> bool:
    topic = call.cluster.catalog.topics.get(name)
    return topic is not None and 0 <= index < len(topic.partitions)


def add_offsets_to_txn(call: ApiCall, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Take a group's offsets into a transaction."""
    try:
        if request.transactional_id:
            call.check_coordinator(request.transactional_id)
        call.cluster.transactions.add(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            [],
            [request.group_id],
            0,
            call.now,
        )
    except ApiError as error:
        return AddOffsetsToTxnResponse(error_code=_code(call, request, error))
    return AddOffsetsToTxnResponse(error_code=0)


def txn_offset_commit(call: ApiCall, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Keep a group's offsets until its transaction ends."""
    reply = TxnOffsetCommitResponse(topics=[])
    entries: list[tuple[tuple[str, int], Committed]] = []
    stored: list[TxnOffsetCommitResponsePartition] = []
    for topic in request.topics:
        parts = [_staged(call, topic, part, entries) for part in topic.partitions]
        stored += [part for part in parts if part.error_code in (0, KafkaError.OFFSET_METADATA_TOO_LARGE)]
        reply.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=parts))
    if not stored:
        return reply
    try:
        _check_commit(call, request)
        call.cluster.offsets.stage(request.producer_id, request.group_id, entries)
    except ApiError as error:
        for part in stored:
            part.error_code = error.code
    return reply


def _staged(
    call: ApiCall, data: TxnOffsetCommitRequestTopic, part: TxnOffsetCommitRequestPartition,
    entries: list[tuple[tuple[str, int], Committed]]
) -> TxnOffsetCommitResponsePartition:
    code, metadata = 0, part.committed_metadata or ""
    try:
        topic = call.topic(data.name, data.topic_id, _IDS_FROM)
        if not 0 <= part.partition_index < len(topic.partitions):
            code = KafkaError.UNKNOWN_TOPIC_OR_PART
        elif len(metadata) > MAX_METADATA_BYTES:
            code = KafkaError.OFFSET_METADATA_TOO_LARGE
        else:
            entries.append(((topic.name, part.partition_index),
                            Committed(part.committed_offset, part.committed_leader_epoch, metadata)))
    except ApiError as error:
        code = error.code
    return TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)


def _check_commit(call: ApiCall, request: TxnOffsetCommitRequest) -> None:
    """Refuse offsets that are not the transaction's, or not the group's."""
    if not request.group_id:
        raise ApiError(KafkaError.INVALID_GROUP_ID)
    call.check_coordinator(request.group_id)
    transactions, who = call.cluster.transactions, ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        if call.version >= _OWN_EPOCHS_FROM:
            transactions.add(request.transactional_id, who, [], [request.group_id], 2, call.now)
        else:
            transactions.verify(request.transactional_id, who, call.now).check_has(group=request.group_id)
    except ApiError as error:
        raise ApiError(verification_code(error, knows_abortable=call.version >= _ABORTABLE_FROM)) from None
    group, generation = call.cluster.groups.get(request.group_id), request.generation_id_or_member_epoch
    planned = call.cluster.planned_groups.get(request.group_id)
    if planned is not None:
        planned.check_transactional_commit(request.member_id, request.group_instance_id, generation)
    elif group is not None:
        group.check_transactional_commit(request.member_id, request.group_instance_id, generation)
    elif generation >= 0 and call.cluster.offsets.knows(request.group_id):
        raise ApiError(KafkaError.UNKNOWN_MEMBER_ID)
    elif generation >= 0:
        raise ApiError(KafkaError.GROUP_ID_NOT_FOUND if call.version >= _IDS_FROM else KafkaError.ILLEGAL_GENERATION)


def end_txn(call: ApiCall, request: EndTxnRequest) -> EndTxnResponse:
    """Commit or abort a transaction; from version 5 on the producer gets its next epoch."""
    try:
        if request.transactional_id:
            call.check_coordinator(request.transactional_id)
        after = call.cluster.transactions.end(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            request.committed,
            2 if call.version >= _OWN_EPOCHS_FROM else 0,
            call.now,
        )
    except ApiError as error:
        return EndTxnResponse(error_code=_code(call, request, error), producer_id=-1, producer_epoch=-1)
    return EndTxnResponse(error_code=0, producer_id=after.producer_id, producer_epoch=after.epoch)


def write_txn_markers(call: ApiCall, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Write the end of transactions into partitions: how an administrator aborts one that hangs (KIP-664)."""
    return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=each.producer_id, topics=[
        WritableTxnMarkerTopicResult(name=topic.name, partitions=[
            WritableTxnMarkerPartitionResult(partition_index=index, error_code=_marked(call, each, topic.name, index))
            for index in topic.partition_indexes])
        for topic in each.topics]) for each in request.markers])


def _marked(call: ApiCall, wanted: WritableTxnMarker, name: str, index: int) -> int:
    marker = Marker(wanted.producer_id, wanted.producer_epoch, wanted.transaction_result, wanted.coordinator_epoch,
                    wanted.transaction_version)
    try:
        partition = call.led_partition(call.topic(name, ZERO_UUID, _NO_IDS), index)
        if marker.producer_id < 0 or marker.epoch < 0:
            raise ApiError(KafkaError.UNKNOWN)
        partition.end_transaction(marker, call.now.ms)
    except ApiError as error:
        return error.code
    return 0


def describe_transactions(call: ApiCall, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """The state of transactional ids (KIP-664)."""
    return DescribeTransactionsResponse(transaction_states=[_described(call, name)
                                                            for name in request.transactional_ids])


def _described(call: ApiCall, name: str) -> DescribedTransaction:
    reply = DescribedTransaction(
        error_code=0, transactional_id=name, transaction_state="", transaction_timeout_ms=0,
        transaction_start_time_ms=0, producer_id=0, producer_epoch=0, topics=[])
    try:
        if not name:
            raise ApiError(KafkaError.INVALID_REQUEST)
        call.check_coordinator(name)
        found = call.cluster.transactions.get(name, call.now)
        if found is None:
            raise ApiError(KafkaError.TRANSACTIONAL_ID_NOT_FOUND)
    except ApiError as error:
        reply.error_code = error.code
        return reply
    topics: dict[str, list[int]] = {}
    for topic, index in (*found.partitions, *dict.fromkeys(map(_offsets_partition, found.groups))):
        topics.setdefault(topic, []).append(index)
    reply.transaction_state, reply.transaction_timeout_ms = found.state.value, found.timeout_ms
    reply.transaction_start_time_ms = found.started_ms
    reply.producer_id, reply.producer_epoch = found.producer_id, found.epoch
    reply.topics = [TransactionTopic(topic=topic, partitions=indexes) for topic, indexes in topics.items()]
    return reply


def _offsets_partition(group: str) -> tuple[str, int]:
    """Where Kafka keeps a group's offsets; here it is only a name for them."""
    number = 0
    units = group.encode("utf-16-be")
    for unit in (int.from_bytes(units[at:at + 2]) for at in range(0, len(units), 2)):
        number = (31 * number + unit) & 0xFFFFFFFF
    signed = number - (1 << 32) if number >> 31 else number
    return _OFFSETS_TOPIC, (0 if number == 1 << 31 else abs(signed)) % _OFFSETS_PARTITIONS


def list_transactions(call: ApiCall, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """The transactional ids that this node coordinates and that fit all filters."""
    names = {state.value for state in TransactionState}
    reply = ListTransactionsResponse(
        error_code=0, transaction_states=[],
        unknown_state_filters=[each for each in request.state_filters if each not in names])
    states = set(request.state_filters) & names
    if request.state_filters and not states:
        return reply  # none of the states is known
    try:
        pattern = Pattern(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except PatternError:
        reply.error_code = KafkaError.INVALID_REGULAR_EXPRESSION
        return reply
    reply.transaction_states = [
        ListedTransaction(transactional_id=each.id, producer_id=each.producer_id, transaction_state=each.state.value)
        for each in call.cluster.transactions.all(call.now)
        if _is_here(call, each.id) and (not states or each.state.value in states)
        and (not request.producer_id_filters or each.producer_id in request.producer_id_filters)
        and _is_open_for(each, request.duration_filter, call.now.ms)
        and (pattern is None or pattern.matches(each.id))]
    return reply


def _is_here(call: ApiCall, name: str) -> bool:
    node = call.cluster.coordinator(name)
    return node is not None and node.id == call.node_id


def _is_open_for(transaction: OngoingTransaction, at_least_ms: int, now_ms: int) -> bool:
    return at_least_ms < 0 or now_ms - transaction.started_ms > at_least_ms


SERVES = (
    ServedApi(InitProducerIdRequest, init_producer_id),
    ServedApi(AddPartitionsToTxnRequest, add_partitions_to_txn),
    ServedApi(AddOffsetsToTxnRequest, add_offsets_to_txn),
    ServedApi(TxnOffsetCommitRequest, txn_offset_commit),
    ServedApi(EndTxnRequest, end_txn,
              "Markers are written before the reply, unless the broker's settings say otherwise or a partition has no "
              "leader: then they are written when it has one."),
    ServedApi(WriteTxnMarkersRequest, write_txn_markers,
              "Into topics only: offsets of groups have no partition of their own."),
    ServedApi(DescribeTransactionsRequest, describe_transactions,
              "Offsets of groups are shown as partitions of `__consumer_offsets`, which is no topic here."),
    ServedApi(ListTransactionsRequest, list_transactions,
              "Patterns are RE2's, without flags, word boundaries and Unicode classes."),
)
