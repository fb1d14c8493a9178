"""Records that come one by one are sent by the threads that produce them, and nothing else is different."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import Consumer, KafkaError, Message, Producer, TopicPartition
from headrace.broker.faults import Action, Fault
from headrace.buffers import Alarm, implementation
from headrace.client.producer.direct_sends import _LentConnection, _Way
from headrace.net.thread import loop_thread
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.produce import ProduceRequest

pytestmark = pytest.mark.skipif(implementation == "plain", reason="the plain twin lends nothing")

TOPIC, PARTITIONS = "direct", 3


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(nodes=2, topics={TOPIC: PARTITIONS}) as started:
        yield started


class Sent:
    """A producer without lingering, and what it was told."""

    def __init__(self, broker: EmbeddedBroker, **properties: Any) -> None:
        self.reports: list[tuple[bytes | None, int | None, int | None]] = []
        self.producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, **properties})

    def report(self, error: KafkaError | None, message: Message) -> None:
        self.reports.append((message.value(), error and error.code(), message.offset()))

    def send(self, value: bytes, partition: int = 0) -> None:
        self.producer.produce(TOPIC, value, partition=partition, on_delivery=self.report)

    def one(self, value: bytes, partition: int = 0) -> None:
        """Send a record and wait for its report."""
        self.send(value, partition)
        before = len(self.reports)
        until(lambda: self.producer.poll(0.1) or len(self.reports) > before)

    def warm(self, *partitions: int) -> None:
        """Have the partitions lent: all but the first records of each go the short way."""
        for partition in partitions or (0,):
            for _ in range(3):
                self.one(b"first", partition)
        self.reports.clear()


def until(happened: Callable[[], Any], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"


@pytest.fixture
def sent(broker: EmbeddedBroker, polls: list[float]) -> Iterator[Sent]:
    made = Sent(broker)
    yield made
    made.producer.close()


def stored(broker: EmbeddedBroker, topic: str = TOPIC) -> dict[int, list[bytes | None]]:
    """The values of each partition, read back."""
    ends = broker.end_offsets(topic)
    found: dict[int, list[bytes | None]] = {partition: [] for partition in range(len(ends))}
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"}) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in found])
        while sum(map(len, found.values())) < sum(ends):
            message = consumer.poll(10)
            assert message is not None
            found[message.partition() or 0].append(message.value())
    return found


def cut_all(producer: Producer) -> None:
    """Break the connections, as a network does."""
    connections: Any = producer._engine.client.driver._connections

    def cut() -> None:
        for connection in list(connections.values()):
            if connection._outlet is not None:
                connection._outlet.abort()

    loop_thread().call_soon(cut)


def test_records_that_come_one_by_one_need_no_turn_of_the_sender(sent: Sent, polls: list[float]) -> None:
    sent.warm(0, 1)
    polls.clear()
    for number in range(50):
        sent.one(b"%d" % number, number % 2)
    assert [(value, code) for value, code, _ in sent.reports] == [(b"%d" % n, None) for n in range(50)]
    assert [offset for _, _, offset in sent.reports] == [3 + n // 2 for n in range(50)]
    assert len(polls) < 10


def test_a_way_that_has_ended_is_nobodys_any_more_and_what_is_in_flight_there_is_taken_back() -> None:
    told: list[Any] = []
    queue = SimpleNamespace(partition=2, end_direct=lambda: told.append("end"))
    exchange = SimpleNamespace(request=SimpleNamespace(request=ProduceRequest()))
    lane: Any = SimpleNamespace(queue=queue, exchange=exchange)
    connection: Any = SimpleNamespace(take_back=lambda: told.append("take back"))
    sends: Any = SimpleNamespace(call_soon=None, forget=lambda which: told.append(which is connection))
    accumulator: Any = SimpleNamespace(lend=lambda partition, way=None: told.append((partition, way)))
    effect: Any = SimpleNamespace(most=5, lane=lane)
    lent = _LentConnection(effect, sends, connection)
    way = _Way(lane, 13, accumulator, lent)
    lent.ways[way] = None
    way.take_back()
    assert told == [], "nothing is in flight"
    for in_flight, is_read in ((1, False), (0, True)):
        lent.lane = SimpleNamespace(in_flight=in_flight, is_read=is_read)  # type: ignore[assignment]
        way.take_back()
        assert (told, lent.writes) == (["take back"], True)
        told.clear()
    way.end()
    assert (told, lent.writes) == ([(2, None), "take back"], False)
    told.clear()
    lent.ways[way] = None
    lent.end()
    assert told == [True, "end"]


@pytest.mark.skipif(not Alarm.exists, reason="elsewhere the loop is woken to wait for the end of lingering")
@pytest.mark.parametrize("lonely", [True, False])
def test_records_that_linger_one_by_one_need_no_turn_of_the_sender(
    broker: EmbeddedBroker, polls: list[float], lonely: bool
) -> None:
    made = Sent(broker, **{"linger.ms": 10})
    made.warm(0)
    for _ in range(3):  # a busy machine only adds turns
        first = broker.end_offsets(TOPIC)[0]
        polls.clear()
        made.reports.clear()
        for number in range(30):
            if lonely:
                made.one(b"%d" % number)
            else:
                made.send(b"%d" % number)
                made.producer.poll(0.004)
        until(lambda: made.producer.poll(0.1) or len(made.reports) >= 30)
        assert [(value, code) for value, code, _ in made.reports] == [(b"%d" % n, None) for n in range(30)]
        assert [offset for _, _, offset in made.reports] == list(range(first, first + 30))
        if len(polls) < 10:
            break
    assert len(polls) < 10
    made.producer.close()


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("linger_ms", [1, 5])
def test_records_that_come_in_twos_and_threes_leave_by_themselves_when_they_have_lingered(
    broker: EmbeddedBroker, compression: str, linger_ms: int
) -> None:
    made, chance = Sent(broker, **{"linger.ms": linger_ms, "compression.type": compression}), random.Random(5)
    number = 0
    for _ in range(150):
        for _ in range(chance.choice((1, 1, 2, 3))):
            made.send(b"%d" % number, partition=chance.randrange(PARTITIONS))
            number += 1
            until_then = time.perf_counter() + chance.random() * 4e-5
            while time.perf_counter() < until_then:
                pass
        made.producer.poll(0)
        time.sleep(chance.random() * 0.008)
    until(lambda: made.producer.poll(0.05) or len(made.reports) == number, seconds=5)
    assert {code for _, code, _ in made.reports} == {None}
    made.producer.close()


def test_a_record_behind_another_need_not_wait_for_its_report(sent: Sent, polls: list[float]) -> None:
    sent.warm()
    polls.clear()
    for _ in range(20):
        for number in range(4):
            sent.send(b"%d" % number)
        assert sent.producer.flush(10) == 0
    assert len(sent.reports) == 80
    assert len(polls) < 40


def test_more_than_a_few_are_sent_by_the_loop_in_their_order(sent: Sent, broker: EmbeddedBroker) -> None:
    sent.warm()
    for number in range(2_000):
        sent.send(b"%d" % number)
    assert sent.producer.flush(20) == 0
    assert [value for value, _, _ in sent.reports] == [b"%d" % number for number in range(2_000)]
    assert stored(broker)[0][3:] == [b"%d" % number for number in range(2_000)]


def test_an_error_in_the_reply_is_reported_as_ever(sent: Sent, broker: EmbeddedBroker) -> None:
    sent.warm()
    broker.add_fault(Fault(
        action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED))
    sent.one(b"refused")
    sent.one(b"accepted")
    assert [(value, code) for value, code, _ in sent.reports] == [
        (b"refused", KafkaError.TOPIC_AUTHORIZATION_FAILED), (b"accepted", None)]


@pytest.mark.parametrize("action", [Action.DROP, Action.LOSE_REPLY, Action.CUT])
def test_a_connection_that_is_lost_under_a_direct_request_loses_and_doubles_nothing(
    sent: Sent, broker: EmbeddedBroker, action: Action
) -> None:
    sent.warm()
    broker.add_fault(Fault(action=action, request=ProduceRequest))
    sent.send(b"one")
    sent.send(b"two")
    assert sent.producer.flush(20) == 0
    assert [(value, code) for value, code, _ in sent.reports] == [(b"one", None), (b"two", None)]
    assert stored(broker)[0][3:] == [b"one", b"two"]


def test_a_leader_that_has_moved_is_followed(sent: Sent, broker: EmbeddedBroker) -> None:
    sent.warm()
    broker.move_leader(TOPIC, 0, 3 - broker.leader(TOPIC, 0))
    for number in range(5):
        sent.one(b"%d" % number)
    assert {code for _, code, _ in sent.reports} == {None}
    assert stored(broker)[0][3:] == [b"%d" % number for number in range(5)]


def noticed_in_time(broker: EmbeddedBroker, warm: Callable[[Sent], object]) -> None:
    """A reply that never comes is noticed when it is due."""
    made = Sent(broker, **{"message.timeout.ms": 2_500, "request.timeout.ms": 1_000})
    warm(made)
    broker.add_fault(Fault(action=Action.SILENCE, request=ProduceRequest, times=None))
    began = time.monotonic()
    made.one(b"lost")
    assert [code for _, code, _ in made.reports] == [KafkaError._MSG_TIMED_OUT]
    assert 2.0 < time.monotonic() - began < 15
    broker.clear_faults()
    made.producer.close()


def test_a_reply_that_never_comes_is_noticed_in_time(broker: EmbeddedBroker) -> None:
    noticed_in_time(broker, Sent.warm)


def test_purging_reports_what_was_sent_directly(sent: Sent, broker: EmbeddedBroker) -> None:
    sent.warm()
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.5))
    sent.send(b"under way")
    sent.producer.purge(in_queue=False)
    assert sent.producer.flush(10) == 0
    sent.one(b"next")
    assert [(value, code) for value, code, _ in sent.reports] == [
        (b"under way", KafkaError._PURGE_INFLIGHT), (b"next", None)]
    assert stored(broker)[0][3:] == [b"under way", b"next"]


def test_closing_waits_for_what_was_sent_directly(broker: EmbeddedBroker) -> None:
    made = Sent(broker)
    made.warm()
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.3))
    made.send(b"last")
    made.producer.close()
    assert [(value, code) for value, code, _ in made.reports] == [(b"last", None)]


def test_other_requests_on_the_connection_keep_their_replies(sent: Sent) -> None:
    sent.warm()
    for number in range(30):
        sent.send(b"%d" % number)
        assert TOPIC in sent.producer.list_topics(TOPIC, 10).topics
    assert sent.producer.flush(10) == 0
    assert {code for _, code, _ in sent.reports} == {None}


def test_requests_that_were_sent_directly_are_counted(broker: EmbeddedBroker) -> None:
    told: list[Any] = []
    received: list[Any] = []
    broker.add_fault(Fault(action=Action.PASS, request=ProduceRequest, times=None, effect=received.append))
    made = Sent(broker, **{"statistics.interval.ms": 100, "stats_cb": lambda text: told.append(json.loads(text))})
    made.warm()
    for number in range(20):
        made.one(b"%d" % number)
    made.reports.clear()
    seen = len(told)
    until(lambda: made.producer.poll(0.1) or len(told) > seen + 1)
    counted = [each["req"].get("Produce", 0) for each in told[-1]["brokers"].values()]
    assert sum(counted) == len(received) > 20
    assert all(each["tx"] == each["rx"] for each in told[-1]["brokers"].values())
    made.producer.close()


@pytest.mark.parametrize("properties", [
    {"compression.type": "lz4"}, {"acks": 0, "enable.idempotence": False},
    {"request.timeout.ms": 30_000, "message.timeout.ms": 20_000},
])
def test_producers_that_need_the_loop_for_each_batch_use_it(
    broker: EmbeddedBroker, polls: list[float], properties: dict[str, Any]
) -> None:
    made = Sent(broker, **properties)
    made.warm()
    polls.clear()
    for number in range(10):
        made.one(b"%d" % number)
    assert len(polls) >= 10
    made.producer.close()


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("linger_ms", [0, 1000])
def test_records_that_are_flushed_one_by_one_need_no_turn_of_the_sender(
    broker: EmbeddedBroker, polls: list[float], compression: str, linger_ms: int
) -> None:
    made = Sent(broker, **{"linger.ms": linger_ms, "compression.type": compression})
    for number in range(60):
        if number == 10:
            polls.clear()
        made.send(b"%d" % number * 30)
        assert made.producer.flush(10) == 0
    assert [(value, code) for value, code, _ in made.reports] == [(b"%d" % n * 30, None) for n in range(60)]
    assert len(polls) < 25 or (linger_ms == 0 and compression != "none")  # who produces wakes the loop then
    made.producer.close()
    assert stored(broker)[0] == [b"%d" % n * 30 for n in range(60)]


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("linger_ms", [0, 1])
@pytest.mark.parametrize("idempotent", [True, False])
def test_threads_cuts_and_moves_lose_double_and_reorder_nothing(
    broker: EmbeddedBroker, idempotent: bool, linger_ms: float, compression: str
) -> None:
    chance, threads, each = random.Random(7), 3, 250
    made = Sent(broker, **{"linger.ms": linger_ms, "enable.idempotence": idempotent, "compression.type": compression,
                           "retry.backoff.ms": 10, "reconnect.backoff.ms": 1,
                           "max.in.flight.requests.per.connection": 5 if idempotent else 1})
    made.warm(*range(PARTITIONS))
    before = broker.end_offsets(TOPIC)

    def produce(thread: int) -> None:
        wait = random.Random(thread)
        for number in range(each):
            made.send(b"%d %d" % (thread, number), partition=thread)
            if wait.random() < 0.7:
                time.sleep(wait.random() * 0.002)
            if wait.random() < 0.2:
                made.producer.flush()
            made.producer.poll(0)

    workers = [threading.Thread(target=produce, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        time.sleep(chance.random() * 0.08)
        if chance.random() < 0.7:
            cut_all(made.producer)
        else:
            broker.move_leader(TOPIC, partition := chance.randrange(PARTITIONS), 3 - broker.leader(TOPIC, partition))
    assert made.producer.flush(30) == 0
    assert Counter(value for value, _, _ in made.reports) == Counter(
        b"%d %d" % (thread, number) for thread in range(threads) for number in range(each))
    assert {code for _, code, _ in made.reports} == {None}
    made.producer.close()
    for thread, values in stored(broker).items():
        ours, expected = values[before[thread]:], [b"%d %d" % (thread, number) for number in range(each)]
        assert (ours if idempotent else list(dict.fromkeys(ours))) == expected
