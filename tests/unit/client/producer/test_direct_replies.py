"""Threads that poll take the replies to their records by themselves, and nothing else is different."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import KafkaError, Message, ProducerRecord
from headrace.broker.faults import Action, Fault
from headrace.buffers import implementation
from headrace.client.producer import direct_sends
from headrace.client.waits import threads_may_receive
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.produce import ProduceRequest
from tests.support.later import later

from .test_direct_sends import TOPIC, Sent, cut_all, noticed_in_time, stored, until

pytestmark = pytest.mark.skipif(
    implementation == "plain" or not threads_may_receive(), reason="replies are all the loop's here")


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(nodes=2, topics={TOPIC: 3}) as started:
        yield started


@pytest.fixture
def sent(broker: EmbeddedBroker, by_loop: list[int]) -> Iterator[Sent]:
    made = Sent(broker)
    warm(made)
    by_loop.clear()
    yield made
    made.producer.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a thread its replies also where it is stopped for a while."""
    monkeypatch.setattr(direct_sends, "_LOOK_S", 20.0)
    monkeypatch.setattr(direct_sends, "_IDLE_S", 20.0)


def warm(made: Sent, *partitions: int) -> None:
    """Have replies lent."""
    for number in range(8):
        for partition in partitions or (0,):
            made.one(b"first %d" % number, partition)
    made.reports.clear()


def replies_are_lent(made: Sent) -> bool:
    replies = made.producer._engine.replies
    return replies is not None and replies.ready


def served(made: Sent, count: int) -> None:
    """Poll until so many reports were served."""

    def polled() -> bool:
        made.producer.poll(0.1)
        return len(made.reports) >= count

    until(polled)


def in_threads(count: int, work: Callable[[], object]) -> float:
    """Do the same in so many threads at a time; seconds that it took."""
    workers = [threading.Thread(target=work) for _ in range(count)]
    began = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    return time.monotonic() - began


def names(made: Sent) -> list[tuple[bytes | None, int | None]]:
    return [(value, code) for value, code, _ in made.reports]


def test_a_thread_that_waits_for_each_report_takes_each_reply(sent: Sent, by_loop: list[int]) -> None:
    for number in range(50):
        sent.one(b"%d" % number)
    assert sent.reports == [(b"%d" % number, None, 8 + number) for number in range(50)]
    assert sum(by_loop) < 10


def test_a_thread_that_only_looks_takes_them_too(sent: Sent, by_loop: list[int]) -> None:
    for number in range(50):
        sent.send(b"%d" % number)
        time.sleep(0.002)
        sent.producer.poll(0)
    served(sent, 50)
    assert names(sent) == [(b"%d" % number, None) for number in range(50)]
    assert sum(by_loop) < 10


def test_a_flush_behind_each_record_takes_its_reply(sent: Sent, by_loop: list[int]) -> None:
    for number in range(50):
        sent.send(b"%d" % number)
        assert sent.producer.flush(10) == 0
        assert len(sent.reports) == number + 1
    assert sum(by_loop) < 10


@pytest.mark.parametrize("linger_ms", [0, 5, 5_000])
@pytest.mark.parametrize("called_back", [True, False])
def test_who_flushes_behind_each_record_sends_and_receives_in_one_thread(
    broker: EmbeddedBroker, by_loop: list[int], polls: list[float], linger_ms: int, called_back: bool
) -> None:
    made = Sent(broker, **{"linger.ms": linger_ms})

    def one(number: int) -> None:
        made.producer.produce(TOPIC, b"%d" % number, partition=0, on_delivery=made.report if called_back else None)
        assert made.producer.flush(10) == 0
        assert len(made.producer) == 0

    for number in range(20):
        one(number)
    by_loop.clear()
    polls.clear()
    for number in range(20, 70):
        one(number)
    assert sum(by_loop) < 10  # not one of them where nobody else needs the machine
    assert len(polls) < (130 if linger_ms == 5 else 30)  # the loop is told of records that are slower than they linger
    made.producer.close()
    assert stored(broker)[0] == [b"%d" % number for number in range(70)]
    assert len(made.reports) == (70 if called_back else 0)


def test_batches_of_several_records_and_partitions_are_flushed_in_one_thread(
    broker: EmbeddedBroker, by_loop: list[int]
) -> None:
    made = Sent(broker, **{"linger.ms": 5_000})
    began = time.monotonic()
    for number in range(40):
        for partition in range(3):
            for place in range(4):
                made.send(b"%d %d" % (number, place), partition)
        assert made.producer.flush(10) == 0
        assert len(made.reports) == (number + 1) * 12
    assert time.monotonic() - began < 5
    made.producer.close()
    assert set(map(tuple, stored(broker).values())) == {
        tuple(b"%d %d" % (number, place) for number in range(40) for place in range(4))}


def test_what_lingers_behind_a_flush_is_sent_when_its_time_is_over(broker: EmbeddedBroker) -> None:
    made = Sent(broker, **{"linger.ms": 100})
    for _ in range(20):
        made.send(b"flushed")
        assert made.producer.flush(10) == 0
    began = time.monotonic()
    made.one(b"lingers")
    assert 0.08 < time.monotonic() - began < 15
    made.producer.close()


def test_threads_that_flush_are_told_of_records_without_callbacks_that_others_received(sent: Sent) -> None:
    def work() -> None:
        for _ in range(100):
            sent.producer.produce(TOPIC, b"x", partition=0)
            assert sent.producer.flush(20) == 0

    assert in_threads(5, work) < 15


def test_several_brokers_are_waited_for(broker: EmbeddedBroker, by_loop: list[int]) -> None:
    made = Sent(broker)
    assert len({broker.leader(TOPIC, partition) for partition in range(3)}) == 2
    warm(made, 0, 1, 2)
    by_loop.clear()
    for number in range(60):
        made.send(b"%d" % number, number % 3)
        if number % 3 == 2:
            served(made, number + 1)
    assert len(made.reports) == 60
    assert sum(by_loop) < 10
    made.producer.close()


def test_replies_that_nobody_looks_for_are_the_loops_after_a_moment(sent: Sent, by_loop: list[int]) -> None:
    assert replies_are_lent(sent)
    sent.send(b"one")
    until(lambda: by_loop == [1])
    assert not replies_are_lent(sent)
    assert sent.reports == []
    sent.producer.poll(0)
    assert names(sent) == [(b"one", None)]


def test_a_failure_that_nobody_looks_for_is_retried_all_the_same(sent: Sent, broker: EmbeddedBroker) -> None:
    broker.add_fault(Fault(
        action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.NOT_ENOUGH_REPLICAS))
    sent.send(b"one")
    before = broker.end_offsets(TOPIC)[0]
    until(lambda: broker.end_offsets(TOPIC)[0] == before + 1)
    assert sent.producer.flush(10) == 0
    assert names(sent) == [(b"one", None)]


def test_a_thread_that_waits_for_a_slow_reply_takes_it_itself(
    patient: None, sent: Sent, broker: EmbeddedBroker, by_loop: list[int]
) -> None:
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.4))
    sent.one(b"one")
    assert (names(sent), by_loop) == ([(b"one", None)], [])


def test_who_does_not_poll_is_lent_no_replies(broker: EmbeddedBroker, by_loop: list[int]) -> None:
    made = Sent(broker)
    made.warm()
    by_loop.clear()
    for number in range(20):
        made.send(b"%d" % number)
        until(lambda seen=number: sum(by_loop) > seen)
    assert not replies_are_lent(made)
    assert made.producer.flush(10) == 0
    made.producer.close()


@pytest.mark.parametrize("size", [5, 20_000])
def test_batches_that_the_loop_sends_later_go_on_with_the_next_sequence(
    sent: Sent, broker: EmbeddedBroker, size: int
) -> None:
    for number in range(10):
        sent.one(b"%d" % number)
    for letter in (b"a", b"b", b"c", b"d", b"e", b"f", b"g"):
        sent.send(letter * size)
    served(sent, 17)
    for number in range(10):
        sent.one(b"%d" % number)
    assert {code for _, code, _ in sent.reports} == {None}
    assert [offset for _, _, offset in sent.reports] == list(range(8, 35))
    assert stored(broker)[0][8:] == [value for value, _, _ in sent.reports]


def test_a_thread_goes_on_with_one_broker_where_another_has_failed(broker: EmbeddedBroker, by_loop: list[int]) -> None:
    made = Sent(broker, **{"retry.backoff.ms": 4_000, "retry.backoff.max.ms": 4_000})
    first, second = sorted(range(2), key=lambda partition: broker.leader(TOPIC, partition))
    warm(made, first, second)
    by_loop.clear()
    broker.add_fault(Fault(
        action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.NOT_ENOUGH_REPLICAS))
    made.send(b"refused", first)
    waiting = threading.Thread(target=lambda: served(made, 1))
    waiting.start()
    time.sleep(0.1)  # it waits, and the loop reads from the first broker
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.6))
    made.send(b"slow", second)
    waiting.join(10)
    assert (names(made), sum(by_loop)) == ([(b"slow", None)], 0)
    served(made, 2)
    assert names(made) == [(b"slow", None), (b"refused", None)]
    made.producer.close()


def test_an_idle_producer_gives_the_replies_back(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_sends, "_IDLE_S", 0.1)
    until(lambda: not replies_are_lent(sent))
    timers: Any = sent.producer._engine._direct_sends
    until(lambda: timers._looking is None)
    sent.one(b"one")
    assert names(sent) == [(b"one", None)]


@pytest.mark.parametrize("action", [Action.DROP, Action.LOSE_REPLY, Action.CUT])
def test_a_connection_that_is_lost_under_a_thread_that_waits_loses_and_doubles_nothing(
    sent: Sent, broker: EmbeddedBroker, action: Action
) -> None:
    broker.add_fault(Fault(action=action, request=ProduceRequest))
    sent.send(b"one")
    sent.send(b"two")
    served(sent, 2)
    assert names(sent) == [(b"one", None), (b"two", None)]
    assert stored(broker)[0][8:] == [b"one", b"two"]


def test_an_error_in_a_reply_is_reported_by_the_loop(patient: None, sent: Sent, broker: EmbeddedBroker) -> None:
    broker.add_fault(Fault(
        action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED))
    sent.one(b"refused")
    for _ in range(10):
        sent.one(b"accepted")
        assert not replies_are_lent(sent)
    for _ in range(20):
        sent.one(b"accepted")
    assert replies_are_lent(sent)
    assert names(sent) == [(b"refused", KafkaError.TOPIC_AUTHORIZATION_FAILED), *[(b"accepted", None)] * 30]


def test_a_reply_that_never_comes_is_noticed_in_time_while_a_thread_waits_for_it(broker: EmbeddedBroker) -> None:
    def lent(made: Sent) -> None:
        warm(made)
        assert replies_are_lent(made)

    noticed_in_time(broker, lent)


def test_records_without_a_callback_are_done_though_nobody_looks(sent: Sent) -> None:
    for _ in range(5):
        sent.producer.produce(TOPIC, b"one", partition=0)
        until(lambda: len(sent.producer) == 0)


def test_futures_are_resolved_though_nobody_looks(sent: Sent) -> None:
    for number in range(5):
        assert sent.producer.send(ProducerRecord(TOPIC, b"one", partition=0)).result(10).offset == 8 + number
    sent.one(b"two")
    assert names(sent) == [(b"two", None)]


def test_a_record_of_another_thread_is_reported_to_the_thread_that_waits(sent: Sent, by_loop: list[int]) -> None:
    served: list[int] = []
    waiting = threading.Thread(target=lambda: served.append(sent.producer.poll(10)))
    waiting.start()
    until(lambda: sent.producer._engine.replies.waiting)
    sent.send(b"one")
    waiting.join(15)
    assert (served, names(sent), by_loop) == ([1], [(b"one", None)], [])


def test_many_threads_that_produce_and_flush_are_all_woken(sent: Sent) -> None:
    def work() -> None:
        for _ in range(150):
            sent.send(b"x")
            assert sent.producer.flush(60) == 0

    assert in_threads(6, work) < 50  # nobody waited for the end of a time
    assert len(sent.reports) == 900


def test_closing_ends_the_wait_of_another_thread(sent: Sent) -> None:
    ended: list[Any] = []
    waiting = threading.Thread(target=lambda: ended.append(sent.producer.poll(30)))
    waiting.start()
    time.sleep(0.05)
    began = time.monotonic()
    sent.producer.close()
    waiting.join(15)
    assert (ended, time.monotonic() - began < 15) == ([0], True)


def test_ctrl_c_ends_a_wait_at_once_and_no_report_is_lost(sent: Sent, broker: EmbeddedBroker) -> None:
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=60.0))
    sent.send(b"one")
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), later(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)):
        sent.producer.poll(60)
    assert time.monotonic() - began < 20
    broker.clear_faults()
    assert sent.producer.flush(10) == 0
    assert names(sent) == [(b"one", None)]


def test_a_callback_that_produces_and_waits_is_served(sent: Sent) -> None:
    inner: list[bytes | None] = []

    def again(error: KafkaError | None, message: Message) -> None:
        sent.producer.produce(TOPIC, b"inner", partition=0, on_delivery=lambda _e, m: inner.append(m.value()))
        until(lambda: sent.producer.poll(0.1) or inner)

    for _ in range(5):
        inner.clear()
        sent.producer.produce(TOPIC, b"outer", partition=0, on_delivery=again)
        until(lambda: sent.producer.poll(0.1) or inner)
        assert inner == [b"inner"]


def test_all_that_threads_took_is_in_the_figures(sent: Sent) -> None:
    for number in range(20):
        sent.one(b"%d" % number)
    metrics = sent.producer.metrics()
    assert metrics["txmsgs"] == 28
    partition = metrics["topics"][TOPIC]["partitions"]["0"]
    assert (partition["txmsgs"], metrics["topics"][TOPIC]["batchcnt"]["sum"]) == (28, 28)
    brokers = metrics["brokers"].values()
    assert sum(each["req"].get("Produce", 0) for each in brokers) == 28
    assert all(each["tx"] == each["rx"] for each in brokers)
    assert sum(each["rtt"]["cnt"] for each in brokers) >= 28


def test_a_child_process_reads_nothing_of_its_parents_connections(
    patient: None, sent: Sent, broker: EmbeddedBroker
) -> None:
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.04))
    sent.send(b"one")
    assert replies_are_lent(sent)
    child = os.fork()
    if child == 0:
        status, end = int(replies_are_lent(sent)), time.monotonic() + 0.3
        while time.monotonic() < end:
            with contextlib.suppress(BaseException):
                sent.producer.poll(0)
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    served(sent, 1)
    assert names(sent) == [(b"one", None)]


def test_threads_that_produce_poll_and_flush_while_connections_break_lose_double_and_reorder_nothing(
    broker: EmbeddedBroker
) -> None:
    made = Sent(broker, **{"retry.backoff.ms": 10, "reconnect.backoff.ms": 1})
    warm(made, 0, 1, 2)
    before = broker.end_offsets(TOPIC)

    def produce(thread: int) -> None:
        for number in range(300):
            made.send(b"%d %d" % (thread, number), partition=thread)
            made.producer.flush(0.01) if number % 7 == 0 else made.producer.poll(0.001 * (number % 3))

    workers = [threading.Thread(target=produce, args=(thread,)) for thread in range(3)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        time.sleep(0.03)
        cut_all(made.producer)
    assert made.producer.flush(30) == 0
    expected = [[b"%d %d" % (thread, number) for number in range(300)] for thread in range(3)]
    assert {code for _, code, _ in made.reports} == {None}
    assert sorted(value or b"" for value, _, _ in made.reports) == sorted(v for values in expected for v in values)
    made.producer.close()
    assert [stored(broker)[thread][before[thread]:] for thread in range(3)] == expected
