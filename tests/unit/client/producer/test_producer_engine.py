"""The producer's engine, apart from its faces: records in, reports out, on the loop that it was made on."""

from __future__ import annotations

import asyncio
import errno
import glob
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from headrace.broker.settings import BrokerSettings
from headrace.buffers import Alarm
from headrace.client.producer.producer_engine import ProducerEngine
from headrace.config import PRODUCER, Config
from headrace.errors import BufferFullError, ClientClosedError, KafkaError, KafkaException
from headrace.machines.producer.sender import Limits
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest

PATIENCE_S = 10
NOBODY = "127.0.0.1:1"
Told = list[tuple[KafkaError | None, Any]]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker(topics={"one": 1}, settings=BrokerSettings(auto_create_topics=False)) as broker:
        yield broker.bootstrap_servers


class Around:
    """An engine and those who serve its reports."""

    def __init__(self, servers: str, **properties: Any) -> None:
        config = Config(PRODUCER, {"bootstrap.servers": servers, "error_cb": lambda error: None, **properties})
        self.changed = asyncio.Event()
        self.engine = ProducerEngine(config, self.changed.set)
        self.told: Told = []

    def produce(self, value: bytes = b"v", topic: str = "one", partition: int = -1) -> None:
        self.engine.produce(topic, value, None, partition, 0, None, lambda error, m: self.told.append((error, m)))

    async def served(self, count: int) -> Told:
        """Serve until so many records were reported."""
        async with asyncio.timeout(PATIENCE_S):
            while self.engine.deliveries.serve() is not None and len(self.told) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.told

    @property
    def errors(self) -> list[KafkaError | None]:
        return [error for error, _ in self.told]


def run(servers: str, work: Callable[[Around], Awaitable[None]], **properties: Any) -> None:
    async def main() -> None:
        around = Around(servers, **properties)
        try:
            await work(around)
        finally:
            await around.engine.close()

    asyncio.run(main())


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_record_is_counted_until_its_report_is_served(servers: str, codec: str) -> None:
    async def work(around: Around) -> None:
        around.produce(b"a")
        around.produce(b"b")
        assert len(around.engine) == 2
        told = await around.served(2)
        assert [(error, m.value()) for error, m in told] == [(None, b"a"), (None, b"b")]
        assert told[1][1].offset() == told[0][1].offset() + 1
        assert (len(around.engine), around.engine.buffer_pool.bytes) == (0, 0)

    run(servers, work, **{"compression.type": codec})


def test_a_record_whose_callback_is_still_to_be_called_counts_although_its_batch_is_done(servers: str) -> None:
    async def work(around: Around) -> None:
        left: list[int] = []
        for _ in range(3):
            around.engine.produce("one", b"v", None, -1, 0, None, lambda error, m: left.append(len(around.engine)))
        async with asyncio.timeout(PATIENCE_S):
            while around.engine.deliveries.serve() is not None and len(left) < 3:
                await asyncio.sleep(0.01)
        assert left == [2, 1, 0]

    run(servers, work)


def test_a_topic_that_is_known_is_open_to_whoever_appends(servers: str) -> None:
    async def work(around: Around) -> None:
        assert around.engine.accumulators.open == {}
        around.produce()
        await around.served(1)
        buffer = around.engine.accumulators.open["one"]
        if buffer.append(b"v", None, -1, 0, None, lambda error, m: around.told.append((error, m))):
            around.engine.wake()
        await around.served(2)

    run(servers, work, **{"linger.ms": 0})


def test_batches_linger_unless_a_flush_has_begun(servers: str) -> None:
    async def work(around: Around) -> None:
        around.produce()
        await asyncio.sleep(0.3)
        around.engine.deliveries.serve()
        assert around.told == []
        around.engine.flushes["a flush"] = None
        around.engine.wake()
        await around.served(1)
        around.engine.flushes.clear()
        around.produce()
        await asyncio.sleep(0.1)
        around.engine.deliveries.serve()
        assert len(around.told) == 1

    run(servers, work, **{"linger.ms": 60_000})


def no_file(*arguments: Any) -> None:
    raise OSError(errno.EMFILE, "Too many open files")


def watches_no_files(*arguments: Any) -> None:
    raise NotImplementedError


@pytest.mark.parametrize("fails", [None, no_file, watches_no_files])
def test_records_now_and_then_linger_alone_and_come_in_order(
    servers: str, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., None] | None
) -> None:
    async def work(around: Around) -> None:
        assert around.engine.accumulators.open_batches.rings == (Alarm.exists and fails is None)
        for number in range(30):
            before = time.monotonic()
            around.produce(b"%d" % number)
            await around.served(number + 1)
            assert time.monotonic() - before >= (0.02 if number else 0)
        assert {error for error, _ in around.told} == {None}
        assert [message.value() for _, message in around.told] == [b"%d" % number for number in range(30)]
        first = around.told[0][1].offset()
        assert [message.offset() for _, message in around.told] == list(range(first, first + 30))

    if fails is not None:
        monkeypatch.setattr("headrace.client.producer.producer_engine.LoopAlarm", fails)
    run(servers, work, **{"linger.ms": 20})


def alarms() -> int:
    """How many alarms this process has."""
    return [os.readlink(link) for link in glob.glob("/proc/self/fd/*") if os.path.islink(link)].count(
        "anon_inode:[timerfd]")


def test_the_alarm_of_an_engine_is_closed_with_it(servers: str) -> None:
    async def work(around: Around) -> None:
        around.produce()
        await around.served(1)
        before = alarms()
        await around.engine.close()
        assert alarms() == before - Alarm.exists

    run(servers, work)


def test_what_callbacks_produce_while_somebody_flushes_does_not_linger(servers: str) -> None:
    async def work(around: Around) -> None:
        def again(error: KafkaError | None, message: Any) -> None:
            around.told.append((error, message))
            if len(around.told) < 20:
                around.engine.produce("one", b"v", None, -1, 0, None, again)

        around.produce()
        await around.served(1)
        around.engine.produce("one", b"v", None, -1, 0, None, again)
        around.engine.flushes[around] = None
        around.engine.wake()
        before = time.monotonic()
        await around.served(20)
        assert time.monotonic() - before < 5

    run(servers, work, **{"linger.ms": 1000})


def test_a_full_buffer_is_an_error_and_what_is_in_it_does_not_linger(servers: str) -> None:
    async def work(around: Around) -> None:
        around.engine.flushes["a flush"] = None
        around.engine.wake()
        around.produce()
        await around.served(1)  # the topic is known
        around.engine.flushes.clear()
        around.produce()
        around.produce()
        with pytest.raises(BufferFullError):
            around.produce()
        await around.served(3)
        around.produce()

    run(servers, work, **{"linger.ms": 60_000, "queue.buffering.max.messages": 2})


def test_a_record_for_a_partition_that_does_not_exist_fails_alone(servers: str) -> None:
    async def work(around: Around) -> None:
        around.produce(b"bad", partition=7)  # the topic is not known yet: its report says it
        around.produce(b"good")
        told = await around.served(2)
        assert {m.value(): error for error, m in told} == {
            b"bad": KafkaError(KafkaError._UNKNOWN_PARTITION), b"good": None}
        with pytest.raises(KafkaException):
            around.produce(partition=7)
        assert len(around.engine) == 0

    run(servers, work)


def test_a_topic_that_brokers_do_not_have_fails_its_records_in_time(servers: str) -> None:
    async def work(around: Around) -> None:
        around.produce(topic="nope")
        await around.served(1)
        assert around.errors == [KafkaError._UNKNOWN_TOPIC]

    run(servers, work, **{"topic.metadata.propagation.max.ms": 50})


def test_purging_reports_every_record_once() -> None:
    async def work(around: Around) -> None:
        around.produce(b"a")
        around.produce(b"b", topic="other")
        around.engine.purge(False, True)
        assert (around.engine.deliveries.serve(), len(around.engine)) == (0, 2)
        around.engine.purge(True, False)
        await around.served(2)
        around.engine.purge(True, True)
        around.engine.deliveries.serve()
        assert around.errors == [KafkaError._PURGE_QUEUE] * 2
        assert len(around.engine) == 0

    run(NOBODY, work)


def test_what_was_sent_is_purged_by_itself_and_may_be_stored() -> None:
    async def work(around: Around) -> None:
        around.produce()
        async with asyncio.timeout(PATIENCE_S):
            while not around.engine._batch_queues.in_flight():
                await asyncio.sleep(0.01)
        around.engine.purge(True, False)
        assert around.engine.deliveries.serve() == 0
        around.engine.purge(False, True)
        assert around.engine.deliveries.serve() == 1
        (error,) = around.errors
        assert error == KafkaError._PURGE_INFLIGHT
        assert error.maybe_applied
        broker.clear_faults()

    with EmbeddedBroker(topics={"one": 1}) as broker:
        broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=ProduceRequest))
        run(broker.bootstrap_servers, work)


def test_who_refuses_takes_no_more_records_but_delivers_those_it_has(servers: str) -> None:
    async def work(around: Around) -> None:
        around.produce()
        around.engine.refuse()
        assert around.engine.closed
        with pytest.raises(ClientClosedError, match="make a new one"):
            around.produce()
        await around.served(1)
        assert around.errors == [None]

    run(servers, work)


def test_callbacks_may_still_produce_when_they_are_spared(servers: str) -> None:
    async def work(around: Around) -> None:
        around.engine.produce("one", b"first", None, -1, 0, None, lambda error, m: around.produce(b"second"))
        around.engine.refuse(spare_callbacks=True)
        with pytest.raises(ClientClosedError):
            around.produce()
        told = await around.served(1)
        assert [m.value() for _, m in told] == [b"second"]

    run(servers, work)


def test_what_is_not_delivered_when_it_ends_is_reported_as_purged() -> None:
    async def work(around: Around) -> None:
        around.produce()
        await around.engine.close()
        around.engine.deliveries.serve()
        assert around.errors == [KafkaError._PURGE_QUEUE]
        assert around.engine.client.closed
        with pytest.raises(ClientClosedError):
            around.produce()
        await around.engine.close()

    run(NOBODY, work)


def test_an_engine_that_nobody_holds_any_more_closes_by_itself(servers: str) -> None:
    async def work(around: Around) -> None:
        around.produce()
        await around.served(1)
        around.engine.client.abandon()
        async with asyncio.timeout(PATIENCE_S):
            while not around.engine.client.closed:
                await asyncio.sleep(0.01)

    run(servers, work)


def test_a_child_process_is_told_to_make_a_producer_of_its_own() -> None:
    async def work(around: Around) -> None:
        around.engine.after_fork()
        assert (around.engine.closed, around.engine.forked) == (True, True)
        with pytest.raises(ClientClosedError, match="before this process was forked"):
            around.produce()

    run(NOBODY, work)


def test_errors_of_no_record_wait_to_be_served_with_the_reports() -> None:
    heard: list[KafkaError] = []

    async def work(around: Around) -> None:
        around.produce()
        async with asyncio.timeout(PATIENCE_S):
            while not around.engine.deliveries.pending:
                await asyncio.sleep(0.01)
        assert heard == []
        around.engine.deliveries.serve()
        assert heard

    run(NOBODY, work, error_cb=heard.append)


def test_what_the_properties_say_is_what_its_parts_are_told() -> None:
    async def told(around: Around) -> None:
        engine, queues = around.engine, around.engine._batch_queues
        limits, backoff_s = engine._limits()
        assert limits == Limits(1, 3, 5_000, 4.0, 7, 9.0)
        assert [0.8 <= backoff_s(attempt) / wait_s <= 1.2 for attempt, wait_s in ((0, 0.04), (1, 0.08), (5, 0.1))] == [
            True] * 3
        assert (engine.buffer_pool.max_messages, engine.buffer_pool.max_bytes) == (12, 34 * 1024)
        assert (queues.linger_s, queues.message_timeout_s, queues.codec, queues.level) == (0.25, 9.0, 1, 3)
        assert engine.deliveries.only_errors
        assert not engine._sender._sequences.enabled

    run(NOBODY, told, **{
        "acks": 1, "max.in.flight.requests.per.connection": 3, "message.max.bytes": 5_000, "request.timeout.ms": 4_000,
        "retries": 7, "message.timeout.ms": 9_000, "retry.backoff.ms": 40, "retry.backoff.max.ms": 100,
        "queue.buffering.max.messages": 12, "queue.buffering.max.kbytes": 34, "linger.ms": 250,
        "compression.type": "gzip", "compression.level": 3, "delivery.report.only.error": True})

    async def told_of_no_limit(around: Around) -> None:
        assert around.engine._limits()[0].message_timeout_s == math.inf
        assert around.engine._batch_queues.message_timeout_s == math.inf
        assert around.engine._sender._sequences.enabled

    run(NOBODY, told_of_no_limit, **{"message.timeout.ms": 0})


@pytest.mark.parametrize("transactional_id", ["", "tx"])
def test_only_a_producer_with_an_id_for_them_has_transactions(servers: str, transactional_id: str) -> None:
    async def work(around: Around) -> None:
        assert (around.engine.transactions is not None) == bool(transactional_id)
        if transactional_id:
            with pytest.raises(KafkaException, match="begin_transaction") as outside:
                around.produce()
            assert outside.value.error == KafkaError._STATE

    run(servers, work, **({"transactional.id": transactional_id} if transactional_id else {}))


def test_topics_that_become_wanted_at_once_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time, all records that wait are looked at: with two thousand topics that took 20 seconds."""
    looks: list[None] = []
    open_topics = ProducerEngine._open_topics

    def looked(self: ProducerEngine) -> None:
        looks.append(None)
        open_topics(self)

    async def work(around: Around) -> None:
        wanted = {f"t{number}" for number in range(200)}
        for topic in wanted:
            around.produce(topic=topic)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(looks) == 1
        assert wanted <= around.engine.client.metadata._topics

    monkeypatch.setattr(ProducerEngine, "_open_topics", looked)
    run(NOBODY, work)
