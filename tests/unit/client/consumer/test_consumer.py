"""The blocking consumer against the embedded broker: reading, moving, stopping, and what it says when things fail."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from headrace.client.consumer.consumer import Consumer
from headrace.client.producer.producer import Producer
from headrace.errors import ClientClosedError, ConfigError, KafkaError, KafkaException
from headrace.records import Message
from headrace.testing import EmbeddedBroker
from headrace.types.records import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, TopicPartition
from tests.support.later import later
from tests.support.quickest import assert_quick

PARTITIONS = 2


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"read": PARTITIONS, "empty": 1}) as broker:
        fill(broker, "read", 10)
        yield broker


def fill(broker: EmbeddedBroker, topic: str, count: int, first: int = 0) -> None:
    """Write so many records to each of the topic's two partitions, at timestamps 1000, 1001, ..."""
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for partition in range(PARTITIONS):
            for i in range(first, first + count):
                producer.produce(topic, value=b"%d" % i, key=b"k", partition=partition, timestamp=1000 + i,
                                 headers={"h": b"1"})
        assert producer.flush(10) == 0


def consumer(broker: EmbeddedBroker, **properties: object) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest",
                     "fetch.wait.max.ms": 50, **properties})


def at(topic: str, partition: int, offset: int = OFFSET_INVALID) -> TopicPartition:
    return TopicPartition(topic, partition, offset)


def offsets(messages: list[Message]) -> list[int | None]:
    assert [message.error() for message in messages] == [None] * len(messages)
    return [message.offset() for message in messages]


def test_a_message_has_all_that_was_produced(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 1, 3)])
        message = reader.poll(5)
    assert message is not None
    assert message.error() is None
    assert (message.topic(), message.partition(), message.offset()) == ("read", 1, 3)
    assert (message.key(), message.value(), message.headers()) == (b"k", b"3", [("h", b"1")])
    assert message.timestamp() == (1, 1003)


def test_every_record_comes_once_and_in_the_order_of_its_partition(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
        messages = reader.consume(20, 5)
    for partition in range(PARTITIONS):
        assert offsets([m for m in messages if m.partition() == partition]) == list(range(10))


def test_consume_returns_what_there_is_when_time_is_up(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 0, 7)])
        started = time.monotonic()
        assert offsets(reader.consume(100, 0.5)) == [7, 8, 9]
        assert 0.4 < time.monotonic() - started < 20
        assert reader.consume(100, 0) == []
        assert reader.poll(0) is None


def test_consume_takes_no_more_than_it_was_asked_for(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 0, 0)])
        assert offsets(reader.consume(4, 5)) == [0, 1, 2, 3]
        assert offsets(reader.consume(4, 5)) == [4, 5, 6, 7]
        for bad in (-1, 1_000_001):
            with pytest.raises(ValueError, match="num_messages"):
                reader.consume(bad)


def test_iterating_gives_one_message_after_the_other(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 0, 0)])
        found = [message.offset() for message, _ in zip(reader, range(3), strict=False)]
    assert found == [0, 1, 2]


def test_seek_goes_anywhere_and_position_follows(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 0, 0)])
        assert offsets(reader.consume(2, 5)) == [0, 1]
        assert reader.position([at("read", 0)])[0].offset == 2
        reader.seek(at("read", 0, 8))
        assert offsets(reader.consume(2, 5)) == [8, 9]
        reader.seek(at("read", 0, OFFSET_BEGINNING))
        assert offsets(reader.consume(1, 5)) == [0]
        with pytest.raises(KafkaException) as refused:
            reader.seek(at("read", 1, 0))
        assert refused.value.error == KafkaError._STATE


def test_a_paused_partition_gives_nothing_until_it_is_resumed(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 0, 0), at("read", 1, 0)])
        [first] = reader.consume(1, 5)
        reader.pause([at("read", 0)])
        got = reader.consume(20, 0.5)
        assert {m.partition() for m in got} == {1}
        reader.resume([at("read", 0)])
        rest = reader.consume(20 - len(got) - 1, 10)
        assert {m.partition() for m in rest} == {0}
        assert len(rest) == (10 if first.partition() == 1 else 9)


def test_the_assignment_can_grow_and_shrink(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 0, 9)])
        reader.incremental_assign([at("read", 1, 9)])
        assert {m.partition() for m in reader.consume(2, 5)} == {0, 1}
        reader.incremental_unassign([at("read", 0)])
        assert [tp.partition for tp in reader.assignment()] == [1]
        reader.unassign()
        assert reader.assignment() == []


def test_the_end_of_a_partition_is_an_event_when_asked_for(broker: EmbeddedBroker) -> None:
    with consumer(broker, **{"enable.partition.eof": True}) as reader:
        reader.assign([at("read", 0, 8)])
        messages = reader.consume(3, 5)
    assert [m.error() for m in messages] == [None, None, KafkaError._PARTITION_EOF]
    assert messages[2].offset() == 10


def test_watermarks_and_offsets_by_time(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        assert reader.get_watermark_offsets(at("read", 0), timeout=5) == (0, 10)
        assert reader.get_watermark_offsets(at("empty", 0), timeout=5) == (0, 0)
        found = reader.offsets_for_times([at("read", 0, 1004), at("read", 1, 99_999)], timeout=5)
        assert [tp.offset for tp in found] == [4, OFFSET_END]
        reader.assign([at("read", 0, 0)])
        assert len(reader.consume(1, 5)) == 1
        assert reader.get_watermark_offsets(at("read", 0), cached=True) == (0, 10)


def test_an_offset_out_of_range_starts_again_by_the_policy(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 0, 5000)])
        assert offsets(reader.consume(1, 5)) == [0]


def test_an_offset_out_of_range_is_told_when_the_policy_is_error(broker: EmbeddedBroker) -> None:
    with consumer(broker, **{"auto.offset.reset": "error"}) as reader:
        reader.assign([at("read", 0, 5000)])
        message = reader.poll(5)
    assert message is not None
    error = message.error()
    assert error is not None
    assert error == KafkaError._AUTO_OFFSET_RESET
    assert "5000" in error.str()


def test_an_unknown_topic_is_told_in_one_line(broker: EmbeddedBroker) -> None:
    with consumer(broker, **{"group.id": "lost"}) as reader:
        reader.subscribe(["nowhere"])
        message = reader.poll(5)
    assert message is not None
    error = message.error()
    assert error is not None
    assert error == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert "nowhere" in error.str()
    assert "\n" not in error.str()


def test_an_assigned_topic_that_was_made_just_now_has_a_while_to_turn_up(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in confluent_kafka, which does not tell at all: a broker may hear of a topic later than who made it."""
    with consumer(broker) as reader:
        reader.assign([at("late", 0, 0)])
        assert reader.poll(0.5) is None
        broker.create_topic("late")
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            producer.produce("late", b"here")
        message = reader.poll(10)
        assert message is not None
        assert (message.error(), message.value()) == (None, b"here")
    monkeypatch.setattr("headrace.client.consumer.consumer_machines._PROPAGATION_S", 0.3)
    with consumer(broker) as reader:
        reader.assign([at("never", 0, 0)])
        message = reader.poll(5)
        assert message is not None
        assert message.error() == KafkaError.UNKNOWN_TOPIC_OR_PART
        assert reader.poll(0.5) is None, "once"


def test_list_topics_names_them(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        topics = reader.list_topics(timeout=5).topics
        assert len(topics["read"].partitions) == PARTITIONS
        assert list(reader.list_topics("empty", timeout=5).topics) == ["empty"]


def test_a_group_is_needed_for_what_groups_do(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        for call in (lambda: reader.subscribe(["read"]), lambda: reader.committed([at("read", 0)]), reader.commit):
            with pytest.raises(KafkaException, match=r"group\.id"):
                call()


def test_a_closed_consumer_says_so_whatever_is_called(broker: EmbeddedBroker) -> None:
    reader = consumer(broker, **{"group.id": "closed"})
    reader.close()
    reader.close()
    calls = {
        "poll": (), "consume": (), "subscribe": (["read"],), "unsubscribe": (), "assign": ([],), "unassign": (),
        "assignment": (), "pause": ([],), "resume": ([],), "seek": (at("read", 0, 0),), "commit": (),
        "committed": ([],), "position": ([],), "store_offsets": (), "get_watermark_offsets": (at("read", 0),),
        "offsets_for_times": ([],), "memberid": (), "list_topics": (), "incremental_assign": ([],),
        "incremental_unassign": ([],),
    }
    for name, arguments in calls.items():
        with pytest.raises(RuntimeError) as closed:
            getattr(reader, name)(*arguments)
        assert isinstance(closed.value, ClientClosedError), name


def test_a_consumer_leaves_no_connection_behind(broker: EmbeddedBroker) -> None:
    def sockets() -> int:
        found = 0
        for fd in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # it was closed meanwhile, by what another test has left
                found += os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
        return found

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    consumer(broker).close()
    before, threads = sockets(), threading.active_count()
    for _ in range(3):
        with consumer(broker, **{"group.id": "leak", "enable.auto.commit": False}) as reader:
            reader.subscribe(["read"])
            assert len(reader.consume(20, 10)) == 20
    deadline = time.monotonic() + 20
    while sockets() > before and time.monotonic() < deadline:
        time.sleep(0.02)  # the broker closes its ends a moment later
    assert sockets() <= before
    assert threading.active_count() <= threads


def test_an_interrupt_ends_a_wait_within_a_tenth_of_a_second(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 0, 4)])
        sent: list[float] = []

        def interrupt() -> None:
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        def interrupted_after_s() -> float:
            with pytest.raises(KeyboardInterrupt), later(0.3, interrupt):
                reader.consume(1000)
            return time.monotonic() - sent[-1]

        assert_quick(interrupted_after_s, 0.1)
        assert offsets(reader.consume(6, 5)) == [4, 5, 6, 7, 8, 9], "what was taken and not returned comes again"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told_to_make_its_own_consumer(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("read", 0, 0)])
        assert len(reader.consume(1, 5)) == 1
        child = os.fork()
        if child == 0:
            try:
                reader.poll(5)
            except ClientClosedError as error:
                os._exit(0 if "fork" in str(error) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(reader.consume(9, 5)) == 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("call", [
    lambda c: c.commit(asynchronous=False), lambda c: c.committed([at("read", 0)]), lambda c: c.seek(at("read", 0, 0)),
    lambda c: c.get_watermark_offsets(at("read", 0)), lambda c: c.offsets_for_times([at("read", 0, 1)]),
    lambda c: c.pause([]), lambda c: c.resume([]), lambda c: c.assign([]), lambda c: c.unassign(),
    lambda c: c.incremental_assign([]), lambda c: c.subscribe(["read"]), lambda c: c.unsubscribe(),
    lambda c: c.list_topics(), lambda c: c.cluster_id(), lambda c: c.metrics(), lambda c: c.enforce_rebalance(),
])
def test_no_call_of_a_forked_child_waits_for_the_thread_of_its_parent(
    broker: EmbeddedBroker, call: Callable[[Consumer], object]
) -> None:
    def ends_in_child(reader: Consumer) -> bool:
        try:
            call(reader)
        except ClientClosedError as error:
            reader.close()  # does no harm
            return "fork" in str(error)
        return False

    with consumer(broker, **{"group.id": "forked"}) as reader:
        reader.assign([at("read", 0, 0)])
        assert len(reader.consume(1, 5)) == 1
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10)
            try:
                os._exit(0 if ends_in_child(reader) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(reader.consume(9, 5)) == 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_while_a_thread_reads_is_told_so_too(broker: EmbeddedBroker) -> None:
    with consumer(broker) as reader:
        reader.assign([at("empty", 0)])
        thread = threading.Thread(target=reader.poll, args=(60,))
        thread.start()
        while reader._reading.acquire(blocking=False):
            reader._reading.release()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10)
            try:
                reader.poll(5)
            except ClientClosedError as error:
                os._exit(0 if "fork" in str(error) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        reader.close()
        thread.join(10)
        assert not thread.is_alive()


def test_a_dead_broker_is_told_to_error_cb_from_poll() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        errors: list[tuple[KafkaError, str]] = []
        reader = Consumer({"bootstrap.servers": f"127.0.0.1:{port}",
                           "error_cb": lambda error: errors.append((error, threading.current_thread().name))})
        reader.assign([at("read", 0, 0)])
        deadline = time.monotonic() + 20
        while not any(error == KafkaError._ALL_BROKERS_DOWN for error, _ in errors) and time.monotonic() < deadline:
            assert reader.poll(0.1) is None
        reader.close()
        assert any(error == KafkaError._ALL_BROKERS_DOWN for error, _ in errors)
        assert {name for _, name in errors} == {threading.current_thread().name}
        assert all(str(port) in error.str() and "\n" not in error.str() for error, _ in errors)


def test_an_unknown_property_is_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset"):
        Consumer({"bootstrap.servers": "h:1", "auto.ofset.reset": "earliest"})


def test_records_written_later_arrive_while_the_consumer_waits(broker: EmbeddedBroker) -> None:
    broker.create_topic("later", PARTITIONS)
    with consumer(broker) as reader:
        reader.assign([at("later", 0, OFFSET_BEGINNING)])
        assert reader.poll(0.3) is None
        timer = threading.Timer(0.2, fill, (broker, "later", 2))
        timer.start()
        assert offsets(reader.consume(2, 10)) == [0, 1]
        timer.join()
