"""Transactions through both faces of the producer, on the embedded broker, in both versions."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace import Consumer, KafkaError, KafkaException, Producer, ProducerRecord, TopicPartition
from headrace.aio import AIOProducer
from headrace.errors import ClientClosedError
from headrace.machines.producer.transactions import ConsumerGroupMetadata, TxnState
from headrace.testing import Action, BrokerSettings, EmbeddedBroker, Fault
from headrace.types.records import OFFSET_BEGINNING
from headrace.wire.messages.producer.produce import ProduceRequest
from headrace.wire.messages.producer.transactions import EndTxnRequest, TxnOffsetCommitRequest
from tests.support.ctrl_c import ctrl_c_after

MEMBER = ConsumerGroupMetadata("g")


@pytest.fixture(params=[1, 2], ids=["version-1", "version-2"])
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    settings = BrokerSettings(transaction_version=request.param)
    with EmbeddedBroker(topics={"t": 2, "in": 1}, settings=settings) as made:
        yield made


def make(broker: EmbeddedBroker, **more: Any) -> Producer:
    made = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x", **more})
    made.init_transactions(10)
    return made


@pytest.fixture
def producer(broker: EmbeddedBroker) -> Iterator[Producer]:
    with make(broker) as made:
        yield made


def read(broker: EmbeddedBroker, topic: str = "t", isolation: str = "read_committed") -> list[bytes]:
    """All values of a topic that a reader gets to see, partition by partition."""
    partitions = len(broker.end_offsets(topic))
    found: dict[int, list[bytes]] = {partition: [] for partition in range(partitions)}
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False,
                   "isolation.level": isolation, "enable.partition.eof": True, "fetch.wait.max.ms": 50}) as consumer:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
        ends = 0
        while ends < partitions:
            message = consumer.poll(5)
            assert message is not None
            if message.error() is not None:
                assert message.error() == KafkaError._PARTITION_EOF
                ends += 1
            else:
                found[message.partition()].append(message.value())
    return [value for values in found.values() for value in values]


def committed(broker: EmbeddedBroker) -> int:
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
        return consumer.committed([TopicPartition("in", 0)], 5)[0].offset


def refused(call: Callable[..., Any], *arguments: Any) -> KafkaError:
    with pytest.raises(KafkaException) as raised:
        call(*arguments)
    return raised.value.error


def write(
    producer: Producer, value: bytes, *, timeout: float = -1, then: Callable[[], object] = lambda: None
) -> None:
    """One record in a transaction of its own."""
    with producer.transaction(timeout):
        producer.produce("t", value, partition=0)
        producer.flush()
        then()


def epoch(producer: Producer) -> int:
    assert producer._engine.transactions is not None
    return producer._engine.transactions.machine.epoch


# The usual way


def test_what_is_committed_is_seen_whole_and_what_is_aborted_never(broker, producer):
    for number in range(4):
        producer.begin_transaction()
        for partition in range(2):
            producer.produce("t", f"{number}", partition=partition)
        if number % 2:
            producer.flush()
            producer.abort_transaction(10)
        else:
            producer.commit_transaction(10)
    assert read(broker) == [b"0", b"2", b"0", b"2"]
    assert read(broker, isolation="read_uncommitted") == [b"0", b"1", b"2", b"3"] * 2


def test_reports_are_served_before_the_commit_returns_and_those_of_an_abort_say_purged(producer):
    reports: list[KafkaError | None] = []
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce("t", b"v", on_delivery=lambda error, message: reports.append(error))
        end(10)
    assert reports[0] is None
    assert reports[1] in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


def test_a_block_commits_at_its_end_and_aborts_when_it_raises(broker, producer):
    with producer.transaction():
        producer.produce("t", b"kept", partition=0)
    with pytest.raises(ZeroDivisionError):
        write(producer, b"dropped", then=lambda: 1 / 0)
    with producer.transaction():
        pass
    with producer.transaction() as transaction:
        transaction.send_offsets([TopicPartition("in", 0, 3)], MEMBER)
    assert read(broker) == [b"kept"]
    assert committed(broker) == 3


def test_offsets_are_committed_with_the_records_or_not_at_all(broker, producer):
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition("in", 0, 5)], MEMBER, 10)
    producer.send_offsets_to_transaction([], MEMBER)
    producer.send_offsets_to_transaction([TopicPartition("in", 0, -1001)], MEMBER)
    producer.send_offsets_to_transaction([TopicPartition("in", 0, 6)], MEMBER, 10)
    producer.commit_transaction(10)
    assert committed(broker) == 6
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition("in", 0, 7)], MEMBER, 10)
    producer.abort_transaction(10)
    assert committed(broker) == 6


def test_a_consumer_tells_its_place_in_the_group_as_of_its_last_read(broker, producer):
    producer.begin_transaction()
    for number in range(3):
        producer.produce("in", f"{number}")
    producer.commit_transaction(10)
    properties = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest",
                  "enable.auto.commit": False}
    with Consumer({"bootstrap.servers": broker.bootstrap_servers}) as alone:
        assert alone.consumer_group_metadata() is None
    with Consumer(properties) as consumer:
        assert consumer.consumer_group_metadata() == ConsumerGroupMetadata("g")
        consumer.subscribe(["in"])
        assert len(consumer.consume(3, 10)) == 3
        place = consumer.consumer_group_metadata()
        assert place == ConsumerGroupMetadata("g", 1, consumer.memberid(), None)
        with producer.transaction() as transaction:
            transaction.send_offsets(consumer.position(consumer.assignment()), place)
        assert committed(broker) == consumer.position(consumer.assignment())[0].offset
    producer.begin_transaction()
    error = refused(producer.send_offsets_to_transaction, [TopicPartition("in", 0, 1)], place, 10)
    assert error in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION)
    assert error.txn_requires_abort()
    producer.abort_transaction(10)
    assert committed(broker) >= 3


def test_a_consumer_that_was_thrown_out_does_not_pass_as_one_without_a_group(broker):
    """A broker takes offsets of nobody in particular unchecked."""
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
        consumer.subscribe(["in"])
        deadline = time.monotonic() + 10
        while consumer.memberid() is None or not consumer.assignment():
            consumer.poll(0.1)
            assert time.monotonic() < deadline
        consumer.poll(0)
        place = consumer.consumer_group_metadata()
        assert place.member_id == consumer.memberid()
        group = consumer._engine.group
        assert group is not None
        generation, group.generation = group.generation, -1  # in the background
        consumer.poll(0)
        assert consumer.consumer_group_metadata() == place
        group.generation = generation


# The wrong way


def test_calls_at_the_wrong_time_say_so(producer):
    calls = (producer.commit_transaction, producer.abort_transaction, producer.init_transactions)
    assert {refused(call).code() for call in calls} == {KafkaError._STATE}
    assert refused(producer.send_offsets_to_transaction, [TopicPartition("in", 0, 1)], MEMBER) == KafkaError._STATE
    assert refused(producer.produce, "t", b"v") == KafkaError._STATE
    producer.begin_transaction()
    assert refused(producer.begin_transaction) == KafkaError._STATE
    producer.produce("t", b"v")
    producer.commit_transaction(10)
    assert refused(producer.produce, "t", b"v") == KafkaError._STATE


def test_a_producer_without_a_transactional_id_says_what_it_needs(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as plain:
        for call in (plain.init_transactions, plain.begin_transaction, plain.commit_transaction):
            error = refused(call)
            assert error == KafkaError._NOT_CONFIGURED
            assert "transactional.id" in error.str()


def test_offsets_need_a_consumers_own_word_for_its_group(producer):
    producer.begin_transaction()
    with pytest.raises(TypeError, match="consumer_group_metadata"):
        producer.send_offsets_to_transaction([TopicPartition("in", 0, 1)], "g")
    producer.abort_transaction(10)


def test_an_older_producer_is_fenced_for_good(broker, producer):
    producer.begin_transaction()
    producer.produce("t", b"zombie", partition=0)
    producer.flush()
    with make(broker) as successor:
        successor.begin_transaction()
        successor.produce("t", b"successor", partition=0)
        successor.flush()
        error = refused(producer.commit_transaction, 10)
        if not error.fatal():
            error = refused(producer.abort_transaction, 10)
        assert (error.code(), error.fatal()) == (KafkaError._FENCED, True)
        for call in (producer.begin_transaction, producer.abort_transaction):
            assert refused(call).fatal()
        assert refused(producer.produce, "t", b"v").fatal()
        successor.commit_transaction(10)
    assert read(broker) == [b"successor"]


def test_a_block_does_not_abort_what_a_fenced_producer_had_open(broker, producer):
    with pytest.raises(KafkaException) as raised:
        write(producer, b"zombie", then=lambda: make(broker).close())
    assert raised.value.error.code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
    assert read(broker) == []


# Records that fail


def test_a_record_that_fails_makes_the_commit_fail_at_once(broker, producer):
    broker.create_topic("small", 1, configs={"max.message.bytes": "500"})
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.produce("small", b"v" * 1000)
    started = time.monotonic()
    error = refused(producer.commit_transaction)
    assert error == KafkaError.MSG_SIZE_TOO_LARGE
    assert error.txn_requires_abort()
    assert time.monotonic() - started < 10
    assert refused(producer.produce, "t", b"v").txn_requires_abort()
    assert refused(producer.commit_transaction).txn_requires_abort()
    producer.abort_transaction(10)
    with producer.transaction():
        producer.produce("t", b"after", partition=0)
    assert read(broker) == [b"after"]


def test_a_record_without_a_topic_makes_the_commit_fail(broker, producer):
    producer.begin_transaction()
    producer.produce("t", b"v", partition=7)
    assert refused(producer.commit_transaction, 10).txn_requires_abort()
    producer.abort_transaction(10)


@pytest.mark.parametrize(("queued", "flying"), [(True, False), (False, True)])
def test_a_purged_record_makes_the_commit_fail(broker, queued, flying):
    if flying:
        broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=ProduceRequest))
    with make(broker, **{"linger.ms": 60_000}) as producer:
        producer.begin_transaction()
        producer.produce("t", b"v", partition=0)
        if flying:
            producer._engine.flushes["a flush"] = None
            producer._engine.wake()
            while not producer._engine._batch_queues.in_flight():
                time.sleep(0.01)
        producer.purge(in_queue=queued, in_flight=flying)
        broker.clear_faults()
        assert refused(producer.commit_transaction, 10).txn_requires_abort()
        producer.abort_transaction(10)
    assert read(broker) == []


def test_an_uncertain_record_that_is_repeated_is_there_once(broker, producer):
    broker.add_fault(Fault(action=Action.LOSE_REPLY, request=ProduceRequest))
    with producer.transaction():
        producer.produce("t", b"v", partition=0)
    assert read(broker) == [b"v"]


# Answers that are lost or late


@pytest.mark.parametrize("action", [Action.DROP, Action.LOSE_REPLY, Action.CUT])
@pytest.mark.parametrize("call", ["commit_transaction", "abort_transaction"])
def test_an_end_whose_answer_is_lost_is_asked_for_again(broker, producer, call, action):
    first = epoch(producer)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.flush()
    broker.add_fault(Fault(action=action, request=EndTxnRequest))
    getattr(producer, call)(10)
    with producer.transaction():
        producer.produce("t", b"next", partition=0)
    assert epoch(producer) > first  # nothing late can end the next transaction
    assert read(broker) == ([b"v"] if call == "commit_transaction" else []) + [b"next"]


def test_a_commit_that_ran_out_of_time_is_waited_for_by_the_next_call(broker):
    with make(broker) as producer:
        producer.begin_transaction()
        producer.produce("t", b"v", partition=0)
        producer.flush()
        broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=EndTxnRequest))
        error = refused(producer.commit_transaction, 0.2)
        assert (error.code(), error.retriable()) == (KafkaError._TIMED_OUT, True)
        assert refused(producer.abort_transaction, 5) == KafkaError._CONFLICT
        broker.clear_faults()
        producer.commit_transaction(10)
        assert refused(producer.commit_transaction) == KafkaError._STATE
    assert read(broker) == [b"v"]


def test_a_block_out_of_time_leaves_the_commit_to_go_on(broker, producer):
    broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=EndTxnRequest))
    with pytest.raises(KafkaException) as raised:
        write(producer, b"v", timeout=0.2)
    assert raised.value.error == KafkaError._TIMED_OUT
    broker.clear_faults()
    producer.commit_transaction(10)
    assert read(broker) == [b"v"]


def test_ctrl_c_interrupts_a_commit_which_goes_on(broker, producer):
    broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=EndTxnRequest))
    with contextlib.ExitStack() as during, pytest.raises(KeyboardInterrupt):
        write(producer, b"v", then=lambda: during.enter_context(ctrl_c_after(0.3)))
    broker.clear_faults()
    producer.commit_transaction(10)
    assert read(broker) == [b"v"]


def test_ctrl_c_just_when_the_commit_has_ended_loses_no_word_of_it(broker, producer, monkeypatch):
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    call = producer._waits.thread.call

    class Interrupted:
        """The loop's thread, from which Ctrl-C takes the first answer."""

        def __init__(self, thread: Any) -> None:
            self.call, self._thread = self._interrupted, thread

        def _interrupted(self, work: Any) -> Any:
            call(work)
            self.call = call
            raise KeyboardInterrupt

        def __getattr__(self, name: str) -> Any:
            return getattr(self._thread, name)

    monkeypatch.setattr(producer._waits, "thread", Interrupted(producer._waits.thread))
    with pytest.raises(KeyboardInterrupt):
        producer.commit_transaction(10)
    assert producer.commit_transaction(10) is None
    assert refused(producer.commit_transaction, 10) == KafkaError._STATE
    assert read(broker) == [b"v"]


def test_offsets_that_ran_out_of_time_are_waited_for_by_the_same_call_only(broker, producer):
    producer.begin_transaction()
    broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=TxnOffsetCommitRequest))
    position = [TopicPartition("in", 0, 5)]
    assert refused(producer.send_offsets_to_transaction, position, MEMBER, 0.1) == KafkaError._TIMED_OUT
    other = [TopicPartition("in", 0, 6)]
    assert refused(producer.send_offsets_to_transaction, other, MEMBER, 5) == KafkaError._CONFLICT
    broker.clear_faults()
    producer.send_offsets_to_transaction(position, MEMBER, 10)
    producer.commit_transaction(10)
    assert committed(broker) == 5


def test_an_abort_ends_offsets_that_are_under_way(broker, producer):
    broker.add_fault(Fault(action=Action.ERROR, times=None, request=TxnOffsetCommitRequest,
                           error_code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
    producer.begin_transaction()
    assert refused(producer.send_offsets_to_transaction, [TopicPartition("in", 0, 5)], MEMBER, 0.2) == (
        KafkaError._TIMED_OUT)
    producer.abort_transaction(10)
    broker.clear_faults()
    with producer.transaction() as transaction:
        transaction.send_offsets([TopicPartition("in", 0, 6)], MEMBER)
    assert committed(broker) == 6


def test_the_coordinator_moves_between_and_within_transactions():
    with EmbeddedBroker(nodes=3, topics={"t": 2}) as broker, make(broker) as producer:
        for number in range(6):
            producer.begin_transaction()
            producer.produce("t", f"{number}", partition=0)
            if number == 2:
                broker.stop_node(1)
            if number == 4:
                broker.start_node(1)
                broker.stop_node(2)
            producer.flush()
            producer.commit_transaction(20)
        broker.start_node(2)
        assert read(broker) == [b"%d" % number for number in range(6)]


# Threads, forks, closing


def test_while_a_thread_waits_for_its_commit_others_can_neither_commit_nor_abort(broker, producer):
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.flush()
    broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=EndTxnRequest))
    committing = threading.Thread(target=producer.commit_transaction, args=(10,))
    committing.start()
    while producer._engine.transactions.machine.state is not TxnState.COMMITTING:
        time.sleep(0.01)
    assert refused(producer.commit_transaction, 5) == KafkaError._PREV_IN_PROGRESS
    assert refused(producer.abort_transaction, 5) == KafkaError._CONFLICT
    broker.clear_faults()
    committing.join()
    assert read(broker) == [b"v"]


def test_a_commit_that_nobody_waits_for_any_more_can_be_waited_for_by_another_thread(broker, producer):
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.flush()
    broker.add_fault(Fault(action=Action.DELAY, delay_s=0.5, request=EndTxnRequest))
    assert refused(producer.commit_transaction, 0.1) == KafkaError._TIMED_OUT
    with ThreadPoolExecutor() as threads:
        assert threads.submit(producer.commit_transaction, 10).result() is None
    assert read(broker) == [b"v"]


def test_closing_waits_for_the_commit_that_another_thread_waits_for(broker):
    producer = make(broker)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.flush()
    broker.add_fault(Fault(action=Action.DELAY, delay_s=0.5, request=EndTxnRequest))
    with ThreadPoolExecutor() as threads:
        committing = threads.submit(producer.commit_transaction, 10)
        while producer._engine.transactions.machine.state is not TxnState.COMMITTING:
            time.sleep(0.01)
        producer.close()
        assert committing.result(10) is None
    assert read(broker) == [b"v"]


def test_closing_aborts_what_is_open_and_readers_need_not_wait(broker):
    with make(broker) as producer:
        producer.begin_transaction()
        producer.produce("t", b"v", partition=0)
        producer.flush()
    with make(broker, **{"transactional.id": "y"}) as other, other.transaction():
        other.produce("t", b"w", partition=0)
    assert read(broker) == [b"w"]
    for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(ClientClosedError):
            call()


def test_closing_without_a_broker_ends():
    with EmbeddedBroker(topics={"t": 1}) as broker:
        producer = make(broker, **{"transaction.timeout.ms": 1000})
        producer.begin_transaction()
        producer.produce("t", b"v")
        producer.flush()
    started = time.monotonic()
    assert producer.close()
    assert time.monotonic() - started < 10


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_that_it_has_no_transaction(broker, producer):
    producer.begin_transaction()
    child = os.fork()
    if child == 0:
        told = 0
        for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
            try:
                call()
            except ClientClosedError:
                told += 1
        os._exit(0 if told == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
    producer.produce("t", b"v", partition=0)
    producer.commit_transaction(10)
    assert read(broker) == [b"v"]


# asyncio


def in_asyncio(broker: EmbeddedBroker, use: Callable[[AIOProducer], Any]) -> None:
    async def run() -> None:
        async with AIOProducer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"}) as producer:
            await producer.init_transactions(10)
            await use(producer)

    asyncio.run(run())


async def failing(producer: AIOProducer) -> None:
    async with producer.transaction():
        await producer.produce("t", b"dropped", partition=0)
        await producer.flush()
        raise ZeroDivisionError


def test_asyncio_commits_and_aborts(broker):
    async def use(producer: AIOProducer) -> None:
        async with producer.transaction() as transaction:
            delivered = await producer.produce("t", b"kept", partition=0)
            await transaction.send_offsets([TopicPartition("in", 0, 4)], MEMBER)
        assert (await delivered).error() is None
        with pytest.raises(ZeroDivisionError):
            await failing(producer)
        await producer.begin_transaction()
        purged = await producer.produce("t", b"purged", partition=0)
        await producer.abort_transaction(10)
        with pytest.raises(KafkaException):
            await purged
        await producer.begin_transaction()
        await producer.produce("t", b"left open", partition=0)
        await producer.flush()

    in_asyncio(broker, use)
    assert read(broker) == [b"kept"]
    assert committed(broker) == 4


def test_asyncio_says_the_same_at_the_wrong_time(broker):
    async def use(producer: AIOProducer) -> None:
        for call in (producer.commit_transaction, producer.abort_transaction, producer.init_transactions):
            with pytest.raises(KafkaException) as raised:
                await call()
            assert raised.value.error == KafkaError._STATE
        with pytest.raises(KafkaException):
            await producer.produce("t", b"v")

    in_asyncio(broker, use)

    async def plain() -> None:
        async with AIOProducer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            with pytest.raises(KafkaException, match=r"transactional\.id"):
                await producer.begin_transaction()

    asyncio.run(plain())


@pytest.mark.parametrize("how", ["cancelled", "out of time"])
def test_a_commit_under_asyncio_goes_on_when_nobody_waits_any_more(broker, how):
    async def use(producer: AIOProducer) -> None:
        await producer.begin_transaction()
        await producer.produce("t", b"v", partition=0)
        await producer.flush()
        broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=EndTxnRequest))
        if how == "cancelled":
            commit = asyncio.create_task(producer.commit_transaction())
            await asyncio.sleep(0.2)
            commit.cancel()
            with pytest.raises(asyncio.CancelledError):
                await commit
        else:
            with pytest.raises(KafkaException) as raised:
                await producer.commit_transaction(0.2)
            assert raised.value.error == KafkaError._TIMED_OUT
        with pytest.raises(KafkaException) as raised:
            await producer.abort_transaction()
        assert raised.value.error == KafkaError._CONFLICT
        broker.clear_faults()
        await producer.commit_transaction(10)

    in_asyncio(broker, use)
    assert read(broker) == [b"v"]


def test_a_block_that_is_cancelled_before_its_commit_is_aborted(broker):
    async def use(producer: AIOProducer) -> None:
        async def block() -> None:
            async with producer.transaction():
                await producer.produce("t", b"v", partition=0)
                await producer.flush()
                await asyncio.sleep(60)

        task = asyncio.create_task(block())
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with producer.transaction():
            await producer.produce("t", b"next", partition=0)

    in_asyncio(broker, use)
    assert read(broker) == [b"next"]


def test_a_commit_reaches_a_coordinator_that_was_away_when_metadata_was_asked_for() -> None:
    """Nothing is sent but the commit then, so nothing else finds out that there is a broker more."""
    name = next(name for name in map("x-{}".format, range(99)) if zlib.crc32(name.encode()) % 2)  # the second of two
    with EmbeddedBroker(nodes=2, topics={"t": 1}) as broker:
        broker.move_leader("t", 0, 1)
        broker.stop_node(2)
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name}) as producer:
            producer.init_transactions(10)
            producer.begin_transaction()
            producer.produce("t", b"v")
            producer.flush(10)
            broker.start_node(2)
            assert broker.apply(lambda cluster: cluster.coordinator(name)).id == 2
            producer.commit_transaction(10)
        assert read(broker) == [b"v"]


def test_a_record_that_was_not_accepted_leaves_the_transaction_as_it_is() -> None:
    with EmbeddedBroker(topics={"t": 1}, settings=BrokerSettings(auto_create_topics=False)) as broker:
        given = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x", "max.block.ms": 300,
                 "topic.metadata.propagation.max.ms": 600}
        for pause_s in (0, 1):  # so long that what waited for the topic is given up
            with Producer(given) as producer:
                producer.init_transactions(10)
                producer.begin_transaction()
                producer.send(ProducerRecord("t", b"v")).result(10)
                with pytest.raises(KafkaException, match="missing") as refused:
                    producer.send(ProducerRecord("missing", b"v"))
                assert refused.value.error == KafkaError._UNKNOWN_TOPIC
                time.sleep(pause_s)
                producer.commit_transaction(10)


def test_a_send_that_waits_for_its_topic_when_the_transaction_fails_ends_with_it_and_costs_nothing() -> None:
    with EmbeddedBroker(topics={"t": 1}, settings=BrokerSettings(auto_create_topics=False)) as broker:
        given = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x", "max.block.ms": 20_000,
                 "topic.metadata.propagation.max.ms": 700}
        with Producer(given) as producer:
            producer.init_transactions(10)
            producer.begin_transaction()
            producer.produce("missing", b"v")  # is given up first, and then the transaction cannot be committed
            time.sleep(0.3)
            began, cpu = time.monotonic(), time.process_time()
            with pytest.raises(KafkaException) as refused:
                producer.send(ProducerRecord("missing", b"v"))
            assert refused.value.error == KafkaError._UNKNOWN_TOPIC
            assert time.monotonic() - began < 10
            assert time.process_time() - cpu < 0.5
            assert len(traceback.extract_tb(refused.value.__traceback__)) < 20
            with pytest.raises(KafkaException):
                producer.commit_transaction(10)
            producer.abort_transaction(10)


def test_close_waits_for_an_abort_no_longer_than_the_transaction_may_last():
    with EmbeddedBroker(topics={"t": 1}) as gone:
        producer = Producer({"bootstrap.servers": gone.bootstrap_servers, "transactional.id": "left-open",
                             "transaction.timeout.ms": 1_000})
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce("t", b"1")
        assert producer.flush(20) == 0
        producer.produce("t", b"2")
    producer.close()  # there is no broker any more, and no other limit
    with pytest.raises(ClientClosedError):
        producer.flush(0)
