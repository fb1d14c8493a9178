"""What ends a call that waits: `wakeup()`, from a thread or a signal handler, and Ctrl-C; and what comes of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.broker.faults import Action, Fault
from headrace.client.consumer.aio_consumer import AIOConsumer
from headrace.client.consumer.consumer import Consumer
from headrace.client.consumer.deserializing_consumers import DeserializingConsumer
from headrace.client.producer.producer import Producer
from headrace.client.share.share_consumer import ShareConsumer
from headrace.errors import KafkaError, KafkaException, WakeupError
from headrace.testing import EmbeddedBroker
from headrace.types.records import TopicPartition
from headrace.wire.messages.consumer.offsets import OffsetCommitRequest
from tests.support.later import later

AT_ONCE_S = 20.0
"""Waits do not look by themselves whether they are to end: who is not told waits longer, mostly for ever."""
WAITS_S = 0.05
"""So long a call has waited when it is ended; one that does not wait yet would be ended as well."""

Call = Callable[[Any], object]
CALLS: dict[str, Call] = {
    "poll": lambda c: c.poll(), "poll for long": lambda c: c.poll(60), "consume": lambda c: c.consume(10),
    "consume_arrow": lambda c: c.consume_arrow(10, None), "iteration": lambda c: next(iter(c)),
    "commit": lambda c: c.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False),
    "committed": lambda c: c.committed([TopicPartition("t", 0)]),
    "offsets_for_times": lambda c: c.offsets_for_times([TopicPartition("t", 0, 1)]),
    "watermarks": lambda c: c.get_watermark_offsets(TopicPartition("t", 0)),
    "list_topics": lambda c: c.list_topics(), "cluster_id": lambda c: c.cluster_id(),
}
by_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """The address of a broker that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def waiting(silent: str) -> Iterator[Consumer]:
    with Consumer({"bootstrap.servers": silent, "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        yield consumer


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(5):
                producer.produce("t", str(number))
            assert producer.flush(10) == 0
        yield broker


def reader(broker: EmbeddedBroker, **more: Any) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest",
                     "fetch.wait.max.ms": 50, **more})


class Ending:
    """Does something a moment after a call has begun; the call must end at once, and with which error."""

    def __init__(self, act: Callable[[], object], error: type[BaseException], waits_s: float = WAITS_S) -> None:
        self._act, self._error, self._waits_s = act, error, waits_s
        self._at = 0.0

    def _end(self) -> None:
        self._at = time.monotonic()
        self._act()

    def __call__(self, call: Callable[[], object]) -> None:
        with pytest.raises(self._error), later(self._waits_s, self._end):
            call()
        assert time.monotonic() - self._at < AT_ONCE_S


def woken(consumer: Any) -> Ending:
    return Ending(consumer.wakeup, WakeupError)


@by_call
def test_a_wakeup_from_another_thread_ends_any_wait(waiting: Consumer, call: Call) -> None:
    woken(waiting)(lambda: call(waiting))
    assert waiting.poll(0) is None, "it was one wakeup"


@by_call
def test_a_wakeup_in_a_signal_handler_ends_any_wait(waiting: Consumer, call: Call) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: waiting.wakeup())
    try:
        Ending(lambda: os.kill(os.getpid(), signal.SIGUSR1), WakeupError)(lambda: call(waiting))
    finally:
        signal.signal(signal.SIGUSR1, before)


@by_call
def test_ctrl_c_ends_any_wait(waiting: Consumer, call: Call) -> None:
    Ending(lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt)(lambda: call(waiting))


@by_call
def test_a_wakeup_while_nothing_waits_ends_the_next_wait_and_no_other(waiting: Consumer, call: Call) -> None:
    waiting.wakeup()
    waiting.wakeup()
    waiting.pause([TopicPartition("t", 0)])
    waiting.position([TopicPartition("t", 0)])
    with pytest.raises(WakeupError) as raised:
        call(waiting)
    assert raised.value.error == KafkaError._INTR
    assert waiting.poll(0) is None


def test_a_wakeup_ends_the_next_poll_although_records_are_there_and_none_is_lost(broker: EmbeddedBroker) -> None:
    with reader(broker) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        first = consumer.poll(10)
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(0)
        rest = consumer.consume(4, 10)
        assert [message.value() for message in (first, *rest) if message] == [b"0", b"1", b"2", b"3", b"4"]


def test_what_was_read_by_a_call_that_is_woken_comes_again(broker: EmbeddedBroker) -> None:
    with reader(broker) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        woken(consumer)(lambda: consumer.consume(100))
        assert [message.value() for message in consumer.consume(5, 10)] == [b"0", b"1", b"2", b"3", b"4"]
        assert consumer.commit(asynchronous=False) is not None


def test_a_commit_that_is_woken_may_have_happened_and_can_be_repeated(broker: EmbeddedBroker) -> None:
    with reader(broker, **{"enable.auto.commit": False}) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        assert len(consumer.consume(5, 10)) == 5
        broker.add_fault(Fault(action=Action.DROP, request=OffsetCommitRequest, times=None))
        woken(consumer)(lambda: consumer.commit(asynchronous=False))
        broker.clear_faults()
        consumer.commit(asynchronous=False)
        assert consumer.committed([TopicPartition("t", 0)], 10)[0].offset == 5


@pytest.mark.parametrize("how", ["wakeup", "ctrl-c"])
def test_a_close_that_waits_is_ended_and_everything_is_closed(broker: EmbeddedBroker, how: str) -> None:
    consumer = reader(broker)
    consumer.subscribe(["t"])
    assert len(consumer.consume(5, 20)) == 5
    broker.add_fault(Fault(action=Action.DROP, request=OffsetCommitRequest, times=None))
    if how == "wakeup":
        Ending(consumer.wakeup, WakeupError, 1.0)(consumer.close)  # a wakeup before it does not end it
    else:
        Ending(lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt)(consumer.close)
    consumer.close()
    with pytest.raises(KafkaException, match="closed"):
        consumer.poll(0)
    consumer.wakeup()


def test_a_wakeup_before_close_does_not_keep_it_from_committing(broker: EmbeddedBroker) -> None:
    with reader(broker) as consumer:
        consumer.subscribe(["t"])
        assert len(consumer.consume(5, 20)) == 5
        consumer.wakeup()
    with reader(broker) as consumer:
        assert consumer.committed([TopicPartition("t", 0)], 10)[0].offset == 5


def test_a_wakeup_in_the_middle_of_a_rebalance_leaves_it_whole(broker: EmbeddedBroker) -> None:
    seen: list[str] = []

    def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        seen.append("assigned")
        consumer.wakeup()

    with reader(broker) as consumer:
        consumer.subscribe(["t"], on_assign=assigned, on_revoke=lambda *_: seen.append("revoked"))
        with pytest.raises(WakeupError):
            consumer.poll(20)
        assert len(consumer.consume(5, 20)) == 5
        assert [tp.partition for tp in consumer.assignment()] == [0]
    assert seen == ["assigned", "revoked"]


def test_a_reader_of_objects_is_woken(silent: str) -> None:
    with DeserializingConsumer({"bootstrap.servers": silent, "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        woken(consumer)(consumer.poll)


@pytest.mark.parametrize("call", [lambda c: c.poll(), lambda c: c.poll(60), lambda c: next(iter(c))])
def test_a_member_of_a_share_group_is_woken_once(silent: str, call: Call) -> None:
    with ShareConsumer({"bootstrap.servers": silent, "group.id": "g"}) as consumer:
        consumer.subscribe(["t"])
        woken(consumer)(lambda: call(consumer))
        assert list(consumer.poll(0)) == []
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(0)


@pytest.mark.parametrize("call", [
    lambda c: c.poll(), lambda c: c.consume(10), lambda c: c.consume_arrow(10, None), lambda c: anext(aiter(c))])
def test_a_task_is_woken_once(silent: str, call: Any) -> None:
    async def run() -> None:
        async with AIOConsumer({"bootstrap.servers": silent, "group.id": "g"}) as consumer:
            await consumer.assign([TopicPartition("t", 0, 0)])
            timer = threading.Timer(WAITS_S, consumer.wakeup)
            timer.start()
            with pytest.raises(WakeupError):
                await call(consumer)
            timer.join()
            assert await consumer.poll(0) is None
            consumer.wakeup()
            await asyncio.sleep(0)
            with pytest.raises(WakeupError):
                await consumer.poll(0)
        consumer.wakeup()

    asyncio.run(run())
