"""One task's rows on their way: how soon it ends, what it waits for, and what its producer leaves to the next task."""

import asyncio
import itertools
import signal
import threading
import time

import pytest

pyarrow = pytest.importorskip("pyarrow")

from headrace import Consumer, KafkaError, KafkaException, TopicPartition  # noqa: E402
from headrace.broker.faults import Action, Fault  # noqa: E402
from headrace.broker.settings import BrokerSettings  # noqa: E402
from headrace.client import waits  # noqa: E402
from headrace.client.producer.kept_producers import KeptProducers  # noqa: E402
from headrace.errors import ConfigError  # noqa: E402
from headrace.machines.cluster import metadata  # noqa: E402
from headrace.net import thread  # noqa: E402
from headrace.spark.column_writer import ColumnWriter  # noqa: E402
from headrace.testing import EmbeddedBroker  # noqa: E402
from headrace.wire.messages.producer.produce import InitProducerIdRequest, ProduceRequest  # noqa: E402
from tests.support.later import later  # noqa: E402
from tests.support.quickest import assert_quick  # noqa: E402

VALUES = pyarrow.array([f"v{number}" for number in range(500)])
AT_ONCE_S = 0.8
"""Waiting for nothing took a second; what is measured here takes a few milliseconds."""


@pytest.fixture(autouse=True)
def _long_slices(monkeypatch):
    """No wait relies on the slice after which it would look again by itself."""
    for module in (waits, thread):
        monkeypatch.setattr(module, "SLICE_S", 30.0)


@pytest.fixture(autouse=True)
def _own_producers(monkeypatch):
    """What a test leaves open is closed with it."""
    kept = KeptProducers()
    monkeypatch.setattr("headrace.spark.column_writer._PRODUCERS", kept)
    yield
    kept.close()


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"four": 4, "one": 1, "other": 1, "large": 1}) as made:
        yield made


@pytest.fixture
def conf(broker):
    return {"bootstrap.servers": broker.bootstrap_servers}


def write(conf, topic="four", values=VALUES, **columns):
    with ColumnWriter(conf) as writer:
        writer.append(topic, None, values, **columns)
        writer.finish()


def test_records_are_as_large_as_those_of_spark_s_connector_may_be(broker, conf):
    size = 1_048_400
    write(conf, "large", pyarrow.array(["x" * size]))
    assert [len(value) for value in values_of(broker, "large")] == [size]
    with pytest.raises(KafkaException, match=r"larger than message.max.bytes \(1048576\)"):
        write(conf, "large", pyarrow.array(["x" * 1_048_600]))


@pytest.mark.parametrize(("name", "value", "largest"), [
    ("max.request.size", "2000", 2000), ("queue.buffering.max.ms", "3", 1_048_576),
])
def test_a_property_may_be_given_by_another_name_than_the_writer_s_own_default(conf, name, value, largest):
    write(conf | {name: value})
    with pytest.raises(KafkaException, match=rf"larger than message.max.bytes \({largest}\)"):
        write(conf | {name: value}, values=pyarrow.array(["x" * (largest + 100)]))


def count_requests(broker, kind):
    """A list that grows by one with each request of a kind."""
    seen = []
    broker.add_fault(Fault(action=Action.PASS, request=kind, times=None, effect=seen.append))
    return seen


def values_of(broker, topic):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    ends = broker.end_offsets(topic)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(len(ends))])
    found = consumer.consume(sum(ends), 10)
    consumer.close()
    return sorted(message.value().decode() for message in found)


def test_a_partition_that_the_topic_does_not_have_is_refused_by_the_column_it_stands_in(broker, conf):
    with pytest.raises(KafkaException, match=r"column partition: four has no partition 4: it has 4; null leaves it to"):
        write(conf, values=VALUES[:2], partition=pyarrow.array([None, 4], pyarrow.int32()))


def test_a_negative_partition_is_refused_and_is_no_other_word_for_null(broker, conf):
    with pytest.raises(ConfigError, match="partition -1, which is negative"):
        write(conf, values=VALUES[:3], partition=pyarrow.array([None, 2, -1], pyarrow.int32()))
    write(conf, values=VALUES[:3], partition=pyarrow.array([None, 2, None], pyarrow.int32()))
    write(conf, values=VALUES[:1], partition=pyarrow.array([None], pyarrow.int32()))
    assert sum(broker.end_offsets("four")) == 4


@pytest.mark.parametrize("topic", ["one", "four"])
def test_a_task_of_few_rows_ends_as_soon_as_they_are_acknowledged(broker, conf, topic):
    write(conf, topic)
    for _ in range(3):
        assert_quick(lambda: write(conf, topic), AT_ONCE_S)
    assert sum(broker.end_offsets(topic)) >= 4 * len(VALUES)


def test_the_first_task_of_a_process_waits_for_nothing_either(broker, conf):
    names = map(str, itertools.count())
    assert_quick(lambda: write({**conf, "client.id": next(names)}), AT_ONCE_S)


def test_rows_of_many_topics_end_as_soon(broker, conf):
    times = []

    def write_all() -> None:
        times.append(1)
        with ColumnWriter(conf) as writer:
            for topic in ("one", "four", "other", "one"):
                writer.append(topic, None, VALUES)
            writer.finish()

    assert_quick(write_all, AT_ONCE_S)
    assert [sum(broker.end_offsets(topic)) for topic in ("one", "four", "other")] == [
        1000 * len(times), 500 * len(times), 500 * len(times)]


def test_rows_that_find_no_room_go_on_as_soon_as_there_is_some(broker, conf):
    times = []

    def write_all() -> None:
        times.append(1)
        write({**conf, "queue.buffering.max.messages": "50"}, "one")

    assert_quick(write_all, AT_ONCE_S)
    assert values_of(broker, "one") == sorted(VALUES.to_pylist() * len(times))


def test_nothing_is_sent_for_no_rows(broker, conf):
    write(conf, values=pyarrow.array([], pyarrow.string()))
    assert sum(broker.end_offsets("four")) == 0


def test_a_row_that_is_lost_fails_the_task(broker, conf):
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, times=None,
                           error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with ColumnWriter(conf) as writer:
        writer.append("one", None, VALUES)
        with pytest.raises(KafkaException, match="500 of 500 rows for one were not stored") as lost:
            writer.finish()
    assert lost.value.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_rows_behind_one_that_is_lost_are_not_read_any_more(broker, conf):
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, times=None,
                           error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED))

    def keep_appending(writer):
        for _ in range(1000):
            writer.append("one", None, VALUES)
            time.sleep(0.01)

    with ColumnWriter({**conf, "linger.ms": "0"}) as writer, pytest.raises(KafkaException, match="not stored"):
        keep_appending(writer)


def test_a_topic_that_does_not_exist_is_named(conf):
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False)) as broker:
        given = {"bootstrap.servers": broker.bootstrap_servers, "topic.metadata.propagation.max.ms": "200"}
        with ColumnWriter(given) as writer, pytest.raises(KafkaException, match='topic "nowhere" is not known'):
            writer.append("nowhere", None, VALUES)


def test_hosts_that_nobody_knows_are_named_long_before_the_time_is_over(monkeypatch):
    monkeypatch.setattr(metadata, "UNKNOWN_HOSTS_S", 0.5)
    servers = {"bootstrap.servers": "one.invalid:9092,two.invalid:9092"}
    with pytest.raises(KafkaException, match=r"\.invalid:9092: the host name cannot be resolved") as caught:
        write(servers)
    assert caught.value.error == KafkaError._RESOLVE


def test_the_next_task_of_a_process_finds_its_producer_open(broker, conf):
    asked = count_requests(broker, InitProducerIdRequest)
    for _ in range(3):
        write(conf)
    assert len(asked) == 1
    assert sum(broker.end_offsets("four")) == 3 * len(VALUES)


def test_other_properties_are_another_producer(broker, conf):
    asked = count_requests(broker, InitProducerIdRequest)
    for compression in ("none", "gzip", "none"):
        write({**conf, "compression.type": compression})
    assert len(asked) == 2


def test_tasks_of_one_process_at_the_same_time_have_producers_of_their_own(broker, conf):
    with ColumnWriter(conf) as one, ColumnWriter(conf) as other:
        assert one._producer is not other._producer
        for writer in (one, other):
            writer.append("four", None, VALUES)
            writer.finish()
    assert sum(broker.end_offsets("four")) == 2 * len(VALUES)


@pytest.mark.parametrize("failure", ["lost", "refused", "given up"])
def test_a_task_that_fails_leaves_nothing_to_the_next_one(broker, conf, failure):
    write(conf)
    asked = count_requests(broker, InitProducerIdRequest)
    if failure == "lost":
        broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, times=4,
                               error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED))

    def fail():
        with ColumnWriter(conf) as writer:
            writer.append("four", None, VALUES)
            if failure == "refused":
                writer.append("four", None, VALUES, pyarrow.array([9] * len(VALUES), pyarrow.int32()))
            if failure == "given up":
                raise ZeroDivisionError  # Spark's own iterator failed, or the task was killed
            writer.finish()

    with pytest.raises((KafkaException, ZeroDivisionError)):
        fail()
    broker.clear_faults()
    asked = count_requests(broker, InitProducerIdRequest)
    before = sum(broker.end_offsets("four"))
    write(conf)
    assert sum(broker.end_offsets("four")) == before + len(VALUES)
    assert len(asked) == 1


def test_a_task_that_fails_gives_up_its_rows_at_once(broker, conf):
    def closed_after_s() -> float:
        write(conf, "one")
        broker.add_fault(Fault(action=Action.SILENCE, request=ProduceRequest))
        writer = ColumnWriter(conf)
        writer.append("one", None, VALUES)
        began_at = time.monotonic()
        writer.close()
        return time.monotonic() - began_at

    assert_quick(closed_after_s, AT_ONCE_S)


def test_a_task_that_the_collector_ends_on_the_loop_holds_nobody_up(broker, conf, caplog):
    write(conf, "one")
    broker.add_fault(Fault(action=Action.SILENCE, request=ProduceRequest))
    writer = ColumnWriter(conf)
    writer.append("one", None, VALUES)

    async def end():
        writer.close()

    asyncio.run_coroutine_threadsafe(end(), thread.loop_thread().loop).result(30)
    broker.clear_faults()
    write(conf, "one")  # the loop goes on
    assert "nobody asked" not in caplog.text


def test_ctrl_c_ends_the_wait_for_acknowledgements(broker, conf):
    write(conf, "one")
    broker.add_fault(Fault(action=Action.SILENCE, request=ProduceRequest))
    with ColumnWriter(conf) as writer:
        writer.append("one", None, VALUES)
        began_at, me = time.monotonic(), threading.get_ident()
        with pytest.raises(KeyboardInterrupt), later(0.2, lambda: signal.pthread_kill(me, signal.SIGINT)):
            writer.finish()
        assert time.monotonic() - began_at < 20
