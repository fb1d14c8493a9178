"""Transactional calls that ran out of time and ended in the background: the same call made again hears how."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import pytest

from headrace import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from headrace.aio import AIOProducer
from headrace.broker.settings import BrokerSettings
from headrace.client.producer.producer_engine import ProducerEngine
from headrace.client.producer.transaction_calls import TransactionCalls, _raised, not_configured
from headrace.config import PRODUCER, Config
from headrace.errors import FatalError
from headrace.machines.producer.transactions import ConsumerGroupMetadata, Operation, Transactions, TxnState
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import InitProducerIdRequest, ProduceRequest
from headrace.wire.messages.producer.transactions import EndTxnRequest, TxnOffsetCommitRequest

MEMBER = ConsumerGroupMetadata("g")
FIVE, SIX = [TopicPartition("in", 0, 5)], [TopicPartition("in", 0, 6)]

Call = Callable[..., Awaitable[Any]]
Use = Callable[[Call, Transactions], Coroutine[Any, Any, None]]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1, "in": 1}) as made:
        yield made


@pytest.fixture(params=[Producer, AIOProducer], ids=["sync", "asyncio"])
def through(request: pytest.FixtureRequest, broker: EmbeddedBroker) -> Callable[[Use], None]:
    """Runs a coroutine function that is given a way to make calls of a face of the producer, and the machine behind."""

    def run(use: Use) -> None:
        asyncio.run(within(use))

    async def within(use: Use) -> None:
        producer = request.param({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"})

        async def call(name: str, *arguments: Any) -> Any:
            made = getattr(producer, name)(*arguments)
            return await made if inspect.isawaitable(made) else made

        try:
            await use(call, producer._engine.transactions.machine)
        finally:
            await call("close")

    return run


async def refused(call: Call, *arguments: Any) -> KafkaError:
    with pytest.raises(KafkaException) as raised:
        await call(*arguments)
    return raised.value.error


async def until(machine: Transactions, ended: TxnState | Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not (ended() if callable(ended) else machine.state is ended):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def begun(call: Call) -> None:
    """A transaction with one record in it."""
    await call("init_transactions", 10)
    await call("begin_transaction")
    await call("produce", "t", b"v")
    await call("flush")


async def too_late(
    broker: EmbeddedBroker, request: type[Any], call: Call, *arguments: Any, timeout: float = 0.1
) -> None:
    """A call whose answer comes when nobody waits for it any more."""
    broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=request))
    assert await refused(call, *arguments, timeout) == KafkaError._TIMED_OUT
    broker.clear_faults()


def committed(broker: EmbeddedBroker) -> int:
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
        return consumer.committed([TopicPartition("in", 0)], 5)[0].offset


@pytest.mark.parametrize(("name", "others"), [
    ("commit_transaction", ("abort_transaction", "init_transactions")),
    ("abort_transaction", ("commit_transaction", "init_transactions")),
    ("init_transactions", ("commit_transaction", "abort_transaction")),
])
def test_a_call_that_ended_when_nobody_waited_is_heard_by_the_same_call_and_by_no_other(broker, through, name, others):
    async def use(call: Call, machine: Transactions) -> None:
        if name != "init_transactions":
            await begun(call)
        await too_late(broker, InitProducerIdRequest if name == "init_transactions" else EndTxnRequest, call, name)
        await until(machine, TxnState.READY)
        for other in others:
            error = await refused(call, other, 5)
            assert (error.code(), error.retriable()) == (KafkaError._CONFLICT, True)
            assert name in error.str()
        assert await refused(call, "send_offsets_to_transaction", FIVE, MEMBER, 5) == KafkaError._CONFLICT
        await call(name, 5)
        assert await refused(call, name, 5) == KafkaError._STATE
        await call("begin_transaction")
        await call("commit_transaction", 5)

    through(use)


@pytest.mark.parametrize("name", ["commit_transaction", "abort_transaction", "init_transactions"])
def test_begin_transaction_forgets_a_call_that_ended_when_nobody_waited(broker, through, name):
    async def use(call: Call, machine: Transactions) -> None:
        if name != "init_transactions":
            await begun(call)
        await too_late(broker, InitProducerIdRequest if name == "init_transactions" else EndTxnRequest, call, name)
        await until(machine, TxnState.READY)
        await call("begin_transaction")
        await call("produce", "t", b"v")
        await call("flush")
        await too_late(broker, EndTxnRequest, call, "commit_transaction")  # this one, not one before
        await call("commit_transaction", 5)

    through(use)


async def failed_unheard(broker: EmbeddedBroker, call: Call, machine: Transactions) -> None:
    """A commit ran out of time and failed afterwards."""
    await begun(call)
    broker.add_fault(Fault(action=Action.ERROR, request=EndTxnRequest, error_code=KafkaError.TRANSACTION_ABORTABLE,
                           effect=lambda cluster: time.sleep(0.3)))
    assert await refused(call, "commit_transaction", 0.1) == KafkaError._TIMED_OUT
    await until(machine, TxnState.ABORTABLE_ERROR)


def test_a_commit_that_failed_when_nobody_waited_says_so_before_it_can_be_aborted(broker, through):
    async def use(call: Call, machine: Transactions) -> None:
        await failed_unheard(broker, call, machine)
        assert await refused(call, "abort_transaction", 5) == KafkaError._CONFLICT
        error = await refused(call, "commit_transaction", 5)
        assert (error.code(), error.txn_requires_abort()) == (KafkaError.TRANSACTION_ABORTABLE, True)
        await call("abort_transaction", 5)
        await call("begin_transaction")
        await call("commit_transaction", 5)

    through(use)


def test_closing_waits_for_a_commit_that_nobody_waits_for_any_more(broker: EmbeddedBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("t", b"v")
    broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=EndTxnRequest))
    with pytest.raises(KafkaException, match="is not done yet"):
        producer.commit_transaction(0.5)
    machine = producer._engine.transactions.machine  # type: ignore[union-attr]
    assert machine.state is TxnState.COMMITTING
    threading.Timer(0.3, broker.clear_faults).start()
    producer.close()
    assert machine.state is TxnState.READY


def test_only_errors_that_end_the_producer_are_raised_as_fatal() -> None:
    for fatal in (False, True):
        raised = _raised(KafkaError(KafkaError.PRODUCER_FENCED, fatal=fatal))
        assert isinstance(raised, FatalError) == fatal


def test_closing_aborts_what_a_commit_left_that_failed_when_nobody_waited(broker, through):
    async def use(call: Call, machine: Transactions) -> None:
        await failed_unheard(broker, call, machine)
        await call("close")
        assert machine.state is TxnState.READY

    through(use)


def test_a_commit_that_was_done_before_the_producer_failed_is_heard(broker, through):
    async def use(call: Call, machine: Transactions) -> None:
        await begun(call)
        await too_late(broker, EndTxnRequest, call, "commit_transaction")
        await until(machine, TxnState.READY)
        machine.on_fatal(KafkaError(KafkaError._FENCED))
        await call("commit_transaction", 5)
        assert (await refused(call, "commit_transaction", 5)).fatal()

    through(use)


@pytest.mark.parametrize("name", ["commit_transaction", "abort_transaction"])
def test_a_call_without_time_to_wait_begins_and_may_be_made_until_it_is_done(broker, through, name):
    async def use(call: Call, machine: Transactions) -> None:
        await begun(call)
        await too_late(broker, EndTxnRequest, call, name, timeout=0)
        await until(machine, TxnState.READY)
        await call(name, 0)

    through(use)


def test_offsets_that_arrived_when_nobody_waited_are_not_sent_again_by_the_same_call(broker, through):
    sent: list[int] = []

    async def ended(call: Call, machine: Transactions) -> None:
        await too_late(broker, TxnOffsetCommitRequest, call, "send_offsets_to_transaction", FIVE, MEMBER)
        await until(machine, lambda: machine._offsets is None)

    async def use(call: Call, machine: Transactions) -> None:
        await begun(call)
        await ended(call, machine)
        broker.add_fault(Fault(action=Action.PASS, times=None, request=TxnOffsetCommitRequest,
                               effect=lambda cluster: sent.append(1)))
        await call("send_offsets_to_transaction", FIVE, MEMBER, 5)
        assert sent == []
        await call("send_offsets_to_transaction", FIVE, MEMBER, 5)
        assert sent == [1]
        broker.clear_faults()
        await ended(call, machine)
        await call("send_offsets_to_transaction", SIX, MEMBER, 5)  # as librdkafka, which keeps nothing of offsets
        await call("send_offsets_to_transaction", FIVE, MEMBER, 5)
        await call("commit_transaction", 5)
        assert committed(broker) == 5

    through(use)


def test_offset_0_is_an_offset_and_a_position_without_one_is_left_out(broker, through):
    async def use(call: Call, machine: Transactions) -> None:
        await begun(call)
        await call("send_offsets_to_transaction", [TopicPartition("in", 0, 0), TopicPartition("t", 0)], MEMBER, 5)
        await call("commit_transaction", 5)
        assert committed(broker) == 0

    through(use)


def test_offsets_that_arrived_in_an_aborted_transaction_are_sent_in_the_next(broker, through):
    async def use(call: Call, machine: Transactions) -> None:
        await begun(call)
        await too_late(broker, TxnOffsetCommitRequest, call, "send_offsets_to_transaction", FIVE, MEMBER)
        await until(machine, lambda: machine._offsets is None)
        await call("abort_transaction", 5)
        assert await refused(call, "send_offsets_to_transaction", FIVE, MEMBER, 5) == KafkaError._STATE
        await call("begin_transaction")
        await call("send_offsets_to_transaction", FIVE, MEMBER, 5)
        await call("commit_transaction", 5)
        assert committed(broker) == 5

    through(use)


def test_a_call_of_transactions_without_an_id_for_them_names_the_property() -> None:
    error = not_configured("commit_transaction")
    assert error == KafkaError._NOT_CONFIGURED
    assert 'commit_transaction() needs the property "transactional.id"' in error.str()


def engine_of(servers: str, **properties: Any) -> ProducerEngine:
    config = Config(PRODUCER, {"bootstrap.servers": servers, "transactional.id": "x", **properties})
    return ProducerEngine(config, lambda: None)


def with_calls(
    servers: str, use: Callable[[TransactionCalls, ProducerEngine], Coroutine[Any, Any, None]], **properties: Any
) -> None:
    async def main() -> None:
        engine = engine_of(servers, **properties)
        assert engine.transactions is not None
        try:
            await use(engine.transactions, engine)
        finally:
            await engine.close()

    asyncio.run(main())


def test_records_are_taken_between_the_beginning_and_the_end_of_a_transaction_only(broker: EmbeddedBroker) -> None:
    async def use(calls: TransactionCalls, engine: ProducerEngine) -> None:
        await calls.run(Operation.INIT, 10)
        assert not engine.accumulators.is_taking
        for end in (Operation.COMMIT, Operation.ABORT):
            await calls.begin()
            assert engine.accumulators.is_taking
            if end is Operation.COMMIT:
                calls.stop_taking()
                assert not engine.accumulators.is_taking
            await calls.run(end, 10)
            assert not engine.accumulators.is_taking

    with_calls(broker.bootstrap_servers, use)


def test_an_abort_reports_at_once_also_what_is_on_its_way(broker: EmbeddedBroker) -> None:
    told: list[KafkaError | None] = []
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"}) as producer:
        producer.init_transactions(10)
        producer.begin_transaction()
        broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=ProduceRequest))
        producer.produce("t", b"v", on_delivery=lambda error, message: told.append(error))
        deadline = time.monotonic() + 10
        while not producer._engine._batch_queues.in_flight():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(KafkaException) as late:
            producer.abort_transaction(0.1)  # what was sent may be stored still: that is waited for
        assert (type(late.value), late.value.error.code()) == (KafkaException, KafkaError._TIMED_OUT)
        assert told == [KafkaError._PURGE_INFLIGHT]
        broker.clear_faults()
        producer.abort_transaction(10)
    assert told == [KafkaError._PURGE_INFLIGHT]


def test_an_abort_gives_up_records_whose_topic_is_not_known_yet() -> None:
    told: list[KafkaError | None] = []
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False)) as broker, Producer({
            "bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"}) as producer:
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("not there", b"v", on_delivery=lambda error, message: told.append(error))
        producer.abort_transaction(10)
        assert told == [KafkaError._PURGE_QUEUE]


def test_times_of_a_transaction_are_those_of_the_properties() -> None:
    async def use(calls: TransactionCalls, engine: ProducerEngine) -> None:
        machine = calls.machine
        assert (machine.transactional_id, machine._timeout_ms, machine._request_timeout_s) == ("x", 7_000, 3.0)
        assert calls._timeout_s == 7.0
        for attempt, wait_s in ((0, 0.04), (1, 0.08), (5, 0.1)):
            assert 0.8 <= machine._backoff_s(attempt) / wait_s <= 1.2

    with_calls("127.0.0.1:1", use, **{"transaction.timeout.ms": 7_000, "socket.timeout.ms": 3_000,
                                      "retry.backoff.ms": 40, "retry.backoff.max.ms": 100})


def test_an_operation_is_waited_for_by_one_caller_at_a_time() -> None:
    async def use(calls: TransactionCalls, engine: ProducerEngine) -> None:
        first = asyncio.create_task(calls.run(Operation.INIT, 30))
        await asyncio.sleep(0)
        with pytest.raises(KafkaException, match="another thread or task waits for it") as refused:
            await calls.run(Operation.INIT, 30)
        assert refused.value.error == KafkaError._PREV_IN_PROGRESS
        assert refused.value.error.retriable()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        with pytest.raises(KafkaException, match="call it again to go on waiting") as late:
            await calls.run(Operation.INIT, 0.05)
        assert late.value.error == KafkaError._TIMED_OUT
        assert late.value.error.retriable()

    with_calls("127.0.0.1:1", use)


def test_what_is_under_way_when_the_producer_ends_ends_with_it() -> None:
    async def use(calls: TransactionCalls, engine: ProducerEngine) -> None:
        waiting = asyncio.create_task(calls.run(Operation.INIT, 30))
        await asyncio.sleep(0)
        await engine.close()
        with pytest.raises(KafkaException) as ended:
            await waiting
        assert ended.value.error == KafkaError._DESTROY

    with_calls("127.0.0.1:1", use)


def test_no_offsets_are_nothing_to_do(broker: EmbeddedBroker) -> None:
    async def use(calls: TransactionCalls, engine: ProducerEngine) -> None:
        await calls.run(Operation.INIT, 10)
        await calls.begin()
        await calls.add_offsets([TopicPartition("in", 0)], MEMBER, 0)  # it would run out of time if it asked anybody
        await calls.add_offsets(FIVE, MEMBER, 10)
        await calls.run(Operation.COMMIT, 10)

    with_calls(broker.bootstrap_servers, use)
