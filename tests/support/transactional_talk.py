"""What conversations about transactions are made of: the requests, and waiting until a transaction is over.

Real brokers write markers a moment after the reply.
"""

import time
from collections.abc import Set
from typing import Any

from headrace.errors import KafkaError
from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from headrace.wire.messages.producer.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ProducersTopicRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.schema import ZERO_UUID, Request, Struct
from tests.support.conversations_records import fetch, list_offsets
from tests.support.raw_client import batch_of
from tests.support.talk import Talk

START_MS = int(time.time() * 1000) - 60_000
"""Close to the brokers' clocks: a marker that is a week younger than the records before it begins a new segment."""
INIT, ADD, OFFSETS, COMMIT, END, STORE = 4, 3, 3, 3, 3, 9
"""Versions that every broker here has, and in which transactions need every request."""
OWN_EPOCHS_PRODUCE, OWN_EPOCHS_END = 12, 5

Producer = tuple[int, int]


def init(talk: Talk, name: str | None = None, *, timeout_ms: int = 60_000,
         had: Producer = (-1, -1)) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=talk.name if name is None else name, producer_id=had[0],
                                 transaction_timeout_ms=timeout_ms, producer_epoch=had[1])


def add(talk: Talk, who: Producer, partitions: list[int] | None = None, *, name: str | None = None,
        topic: str | None = None, verify: bool = False) -> AddPartitionsToTxnRequest:
    name = talk.name if name is None else name
    topics = [AddPartitionsToTxnTopic(name=topic or talk.name, partitions=[0] if partitions is None else partitions)]
    if talk.version >= 4:
        return AddPartitionsToTxnRequest(v3_and_below_transactional_id="", v3_and_below_topics=[], transactions=[
            AddPartitionsToTxnTransaction(transactional_id=name, producer_id=who[0], producer_epoch=who[1],
                                          verify_only=verify, topics=topics)])
    return AddPartitionsToTxnRequest(
        transactions=[], v3_and_below_transactional_id=name, v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1], v3_and_below_topics=topics)


def old_add(talk: Talk, who: Producer, partitions: list[int], name: str | None = None) -> None:
    """Add partitions as version 1 of transactions needs it."""
    request = AddPartitionsToTxnRequest(
        transactions=[], v3_and_below_transactional_id=name or talk.name, v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=talk.name, partitions=partitions)])
    reply = when_it_is_over(talk, request, ADD)
    codes = {part.partition_error_code for part in reply.results_by_topic_v3_and_below[0].results_by_partition}
    assert codes == {0}, reply


def add_offsets(talk: Talk, who: Producer, group: str | None = None, name: str | None = None) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=talk.name if name is None else name, producer_id=who[0], producer_epoch=who[1],
        group_id=talk.name if group is None else group)


def offsets_of(talk: Talk, who: Producer, *offsets: int, group: str | None = None, name: str | None = None,
               topic: str | None = None, member: str = "", generation: int = -1, instance: str | None = None,
               note: str = "a note") -> TxnOffsetCommitRequest:
    known = topic is None
    return TxnOffsetCommitRequest(
        transactional_id=talk.name if name is None else name, producer_id=who[0], producer_epoch=who[1],
        group_id=talk.name if group is None else group, member_id=member, group_instance_id=instance,
        generation_id_or_member_epoch=generation, topics=[TxnOffsetCommitRequestTopic(
            name=topic or talk.name, topic_id=talk.id_of(talk.name) if known else ZERO_UUID,
            partitions=[TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset,
                                                        committed_leader_epoch=0, committed_metadata=note)
                        for index, offset in enumerate(offsets)])])


def end(talk: Talk, who: Producer, commit: bool, name: str | None = None) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=talk.name if name is None else name, producer_id=who[0],
                         producer_epoch=who[1], committed=commit)


def send(talk: Talk, batch: bytes, *, partition: int = 0, name: str | None = "") -> ProduceRequest:
    return ProduceRequest(transactional_id=talk.name if name == "" else name, acks=-1, timeout_ms=3000, topic_data=[
        TopicProduceData(name=talk.name, topic_id=talk.id_of(talk.name),
                         partition_data=[PartitionProduceData(index=partition, records=batch)])])


def records(who: Producer, *values: bytes, sequence: int = 0) -> bytes:
    return batch_of(list(values), *who, sequence, timestamp_ms=START_MS, transactional=True)


_OVER = frozenset({KafkaError.CONCURRENT_TRANSACTIONS})
_BEGINNING = frozenset({
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR})
"""What a real broker says while it takes over a part of the transactions."""


def producer(talk: Talk, name: str | None = None) -> Producer:
    """The conversation's transactional producer, begun anew, or another one."""
    reply = when_it_is_over(talk, init(talk, name), INIT, _OVER | _BEGINNING)
    assert reply.error_code == 0, reply
    return reply.producer_id, reply.producer_epoch


def when_it_is_over(talk: Talk, request: Request, version: int, passing: Set[int] = _OVER) -> Any:
    """Ask until no earlier transaction is in the way, or whatever else the passing codes say."""
    for _ in range(500):
        reply = talk.call(request, version)
        if passing.isdisjoint(codes_in(reply)):
            return reply
        time.sleep(0.01)
    raise AssertionError("the transaction before does not end")


def codes_in(value: Any) -> set[int]:
    """Every error code in a reply."""
    if isinstance(value, list):
        return {code for each in value for code in codes_in(each)}
    if not isinstance(value, Struct):
        return set()
    found = {getattr(value, name) for name in value.fields if name.endswith("error_code")}
    return found.union(*(codes_in(getattr(value, name)) for name in value.fields))


def ask_when_over(talk: Talk, request: Request) -> Any:
    reply = when_it_is_over(talk, request, talk.version)
    talk.note(reply, talk.version)
    return reply


def state(talk: Talk, name: str | None = None) -> Any:
    """Note the transaction's state, once it is one that stays."""
    for _ in range(500):
        reply = talk.call(DescribeTransactionsRequest(transactional_ids=[name or talk.name]), 0)
        if not reply.transaction_states[0].transaction_state.startswith("Prepare"):
            talk.note(reply, 0)
            return reply
        time.sleep(0.01)
    raise AssertionError("the transaction does not end")


def store_in_transaction(talk: Talk, who: Producer, *values: bytes, partition: int = 0, sequence: int = 0,
                         commit: bool | None = None) -> None:
    """Records in a transaction of version 1, ended or not."""
    old_add(talk, who, [partition])
    reply = talk.call(send(talk, records(who, *values, sequence=sequence), partition=partition), STORE)
    assert codes_in(reply) == {0}, reply
    if commit is not None:
        finish(talk, who, commit)


def finish(talk: Talk, who: Producer, commit: bool) -> None:
    assert talk.call(end(talk, who, commit), END).error_code == 0
    state(talk)


def committed(talk: Talk) -> None:
    """Note what readers of committed records get, and where their log ends."""
    request = fetch(talk)
    request.isolation_level = 1
    talk.note(talk.call(request, 11), 11)
    talk.note(talk.call(list_offsets(talk, -1, isolation=1), 5), 5)


def described(talk: Talk) -> None:
    """Note what the conversation's first partition knows of producers."""
    talk.note(talk.call(DescribeProducersRequest(topics=[ProducersTopicRequest(name=talk.name, partition_indexes=[0])]),
                        0), 0)


def commit_plainly(talk: Talk, offset: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(group_id=talk.name, topics=[OffsetCommitRequestTopic(name=talk.name, partitions=[
        OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")])])


def committed_offsets(talk: Talk) -> None:
    """Note the group's offsets, for whoever takes what may change and for who does not."""
    for stable in (False, True):
        reply = talk.call(OffsetFetchRequest(group_id=talk.name, require_stable=stable, groups=[], topics=[
            OffsetFetchRequestTopic(name=talk.name, partition_indexes=[0, 1, 9])]), 7)
        talk.note(reply, 7)
        talk.note(talk.call(OffsetFetchRequest(group_id=talk.name, require_stable=stable, topics=None, groups=[]), 7),
                  7)
