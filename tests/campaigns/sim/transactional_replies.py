"""What the model cluster answers to each request of a transactional producer, trouble included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import KafkaError as K
from headrace.machines.cluster.coordinator import TRANSACTION
from headrace.machines.machine import Send
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
from headrace.wire.messages.producer.produce import (
    BatchIndexAndErrorMessage,
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

from .transactional_producer import TOPIC, TOPIC_ID, Producer

if TYPE_CHECKING:
    from .transactions import Simulation

NEWEST = {ProduceRequest: 13, EndTxnRequest: 5, TxnOffsetCommitRequest: 5, InitProducerIdRequest: 5}
OLDER = {ProduceRequest: 11, EndTxnRequest: 4, TxnOffsetCommitRequest: 4, InitProducerIdRequest: 5}
"""Highest versions of brokers with transactions version 2, and before."""
_PASSING = (K.COORDINATOR_LOAD_IN_PROGRESS, K.NOT_COORDINATOR, K.COORDINATOR_NOT_AVAILABLE, K.CONCURRENT_TRANSACTIONS)
_BEFORE_APPEND = (K.NOT_ENOUGH_REPLICAS, K.KAFKA_STORAGE_ERROR, K.CONCURRENT_TRANSACTIONS)
_AFTER_APPEND = (K.REQUEST_TIMED_OUT, K.NOT_ENOUGH_REPLICAS_AFTER_APPEND, K.NOT_LEADER_FOR_PARTITION)
_DOOM = (K.TOPIC_AUTHORIZATION_FAILED, K.TRANSACTION_ABORTABLE)
_DOOM_OFFSETS = (K.GROUP_AUTHORIZATION_FAILED, K.TRANSACTION_ABORTABLE)
_OTHER_MEMBER = (K.ILLEGAL_GENERATION, K.UNKNOWN_MEMBER_ID, K.FENCED_INSTANCE_ID, K.STALE_MEMBER_EPOCH)
_FENCED = (K.PRODUCER_FENCED, K.INVALID_PRODUCER_EPOCH)


def says_fenced(reply: Any) -> bool:
    """Did a coordinator say that another producer took over?"""
    if isinstance(reply, AddPartitionsToTxnResponse):
        return any(part.partition_error_code in _FENCED
                   for topic in reply.results_by_topic_v3_and_below for part in topic.results_by_partition)
    if isinstance(reply, TxnOffsetCommitResponse):
        return any(part.error_code in _FENCED for topic in reply.topics for part in topic.partitions)
    return getattr(reply, "error_code", 0) in _FENCED


def ends_well(reply: Any) -> bool:
    """Did a coordinator end a transaction as it was asked to?"""
    return isinstance(reply, EndTxnResponse) and not reply.error_code


def answer(sim: Simulation, producer: Producer, node: int, send: Send, *, late: bool) -> Any:
    """Carry a request out and give the reply. `late`: the producer has given it up."""
    request: Any = send.request
    newest = sim.newest.get(type(request))
    if newest is not None:
        send.version = newest if send.max_version is None else min(newest, send.max_version)
    if isinstance(request, FindCoordinatorRequest):
        return _find(sim, request)
    if isinstance(request, ProduceRequest):
        return _produce(sim, node, request, send.version)
    if isinstance(request, TxnOffsetCommitRequest):
        return _commit_offsets(sim, node, request, send.version)
    code = _fatal(sim)
    if node != sim.cluster.coordinator:
        code = K.NOT_COORDINATOR
    elif sim.faulty:
        code = sim.random.choice(_PASSING)
    return _ask_coordinator(sim, producer, request, send.version, code, late)


def _fatal(sim: Simulation) -> int:
    if not sim.refuses(0.02):
        return 0
    sim.cluster.fences.append("not allowed")
    sim.counts["refused for good"] += 1
    return sim.random.choice((K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, K.CLUSTER_AUTHORIZATION_FAILED))


def _doom(sim: Simulation, codes: tuple[int, ...]) -> int:
    if not sim.refuses(0.1):
        return 0
    sim.counts["refused for this transaction"] += 1
    return sim.random.choice(codes)


def _find(sim: Simulation, request: Any) -> FindCoordinatorResponse:
    if request.key_type != TRANSACTION and sim.refuses(0.1):
        return FindCoordinatorResponse(error_code=K.GROUP_AUTHORIZATION_FAILED)
    if sim.faulty:
        return FindCoordinatorResponse(error_code=K.COORDINATOR_NOT_AVAILABLE)
    if request.key_type == TRANSACTION:
        return FindCoordinatorResponse(node_id=sim.cluster.coordinator)
    return FindCoordinatorResponse(node_id=sim.cluster.partitions["offsets", request.key].leader)


def _ask_coordinator(sim: Simulation, producer: Producer, request: Any, version: int, code: int, late: bool) -> Any:
    cluster = sim.cluster
    applied_at_last = lambda code: code or (K.COORDINATOR_NOT_AVAILABLE if sim.faulty else 0)
    if isinstance(request, InitProducerIdRequest):
        if late and not code:
            cluster.fences.append("a late InitProducerId")
        code = code or cluster.init(request.producer_id, request.producer_epoch)
        if not code and request.producer_epoch < 0:
            sim.owner = producer
        code = applied_at_last(code)
        producer_id, epoch = cluster.numbers() if not code else (-1, -1)
        return InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)
    if isinstance(request, EndTxnRequest):
        if not code and request.committed and (code := _doom(sim, _DOOM)):
            cluster.fences.append("a commit was refused")
        code = applied_at_last(
            code or cluster.end(request.producer_id, request.producer_epoch, request.committed, version))
        producer_id, epoch = cluster.numbers() if not code and version >= 5 else (-1, -1)
        return EndTxnResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)
    if isinstance(request, AddOffsetsToTxnRequest):
        code = code or _doom(sim, _DOOM_OFFSETS)
        code = code or cluster.add(request.producer_id, request.producer_epoch, [("offsets", request.group_id)])
        return AddOffsetsToTxnResponse(error_code=applied_at_last(code))
    assert isinstance(request, AddPartitionsToTxnRequest)
    wanted = [index for topic in request.v3_and_below_topics for index in topic.partitions]
    if not code and (code := _doom(sim, _DOOM)) == K.TOPIC_AUTHORIZATION_FAILED:
        return _partitions_answer(dict.fromkeys(wanted, K.OPERATION_NOT_ATTEMPTED) | {sim.random.choice(wanted): code})
    code = applied_at_last(code or cluster.add(
        request.v3_and_below_producer_id, request.v3_and_below_producer_epoch, [(TOPIC, index) for index in wanted]))
    return _partitions_answer(dict.fromkeys(wanted, code))


def _partitions_answer(codes: dict[int, int]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult(
        name=TOPIC, results_by_partition=[AddPartitionsToTxnPartitionResult(
            partition_index=index, partition_error_code=code) for index, code in codes.items()])])


def _produce(sim: Simulation, node: int, request: Any, version: int) -> ProduceResponse:
    answers = []
    for data in request.topic_data[0].partition_data:
        producer_id, epoch, sequence, records = data.records
        if sim.faulty:
            sim.counts["errors before the append"] += 1
            code, offset = sim.random.choice(_BEFORE_APPEND), -1
        elif code := _doom(sim, _DOOM) or _fatal(sim):
            offset = -1
        else:
            code, offset = sim.cluster.write(
                node, (TOPIC, data.index), (producer_id, epoch, sequence), records, adds=version >= 12)
            if not code and sim.faulty:
                sim.counts["errors after the append"] += 1
                code, offset = sim.random.choice(_AFTER_APPEND), -1
        answers.append(PartitionProduceResponse(
            index=data.index, error_code=code, base_offset=offset,
            log_start_offset=sim.cluster.partitions[TOPIC, data.index].log_start))
        if code == K.INVALID_RECORD:
            answers[-1].record_errors = [
                BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=None)
                for place, record in enumerate(records) if record in sim.cluster.poison]
    if sim.faulty:
        sim.counts["partitions missing in answers"] += 1
        answers.pop()
    pause_ms = sim.random.choice([1, 50, 200]) if sim.faulty else 0
    return ProduceResponse(throttle_time_ms=pause_ms, responses=[
        TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=answers)])


def _commit_offsets(sim: Simulation, node: int, request: Any, version: int) -> TxnOffsetCommitResponse:
    offsets = tuple(part.committed_offset for topic in request.topics for part in topic.partitions)
    numbers = (request.producer_id, request.producer_epoch, -1)
    code = _doom(sim, _DOOM_OFFSETS)
    if request.generation_id_or_member_epoch not in (-1, sim.cluster.generations[request.group_id]):
        sim.counts["offsets of a member that was replaced"] += 1
        code = sim.random.choice(_OTHER_MEMBER)
    if not code:
        code, _ = sim.cluster.write(node, ("offsets", request.group_id), numbers, offsets, adds=version >= 5)
    code = {K.CONCURRENT_TRANSACTIONS: K.COORDINATOR_NOT_AVAILABLE, K.NOT_ENOUGH_REPLICAS: K.COORDINATOR_NOT_AVAILABLE,
            K.INVALID_TXN_STATE: K.INVALID_TXN_STATE}.get(code, code)
    if not code and sim.faulty:
        code = sim.random.choice((K.COORDINATOR_NOT_AVAILABLE, K.REQUEST_TIMED_OUT))
    return TxnOffsetCommitResponse(topics=[
        TxnOffsetCommitResponseTopic(name=topic.name, partitions=[
            TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions])
        for topic in request.topics])
