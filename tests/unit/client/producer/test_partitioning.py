"""Partitioners that are Python functions, `round_robin`, and what brokers do to records without a key."""

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import KafkaError, KafkaException, KafkaSyncProducer, Producer, ProducerRecord
from headrace.aio import AIOProducer
from headrace.broker.faults import Action, Fault
from headrace.buffers import OpenBatches
from headrace.client.producer.partitioning import balance_of, choice_of
from headrace.config import PRODUCER, Config
from headrace.errors import ConfigError
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.producer.batch_queue import BatchQueues
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.produce import ProduceRequest


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"four": 4, "three": 3}) as made:
        yield made


def making(broker, partitioner, **properties):
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": partitioner,
                     "on_delivery": lambda error, message: None, **properties})


def test_a_function_gets_topic_key_and_value_as_bytes_and_the_number_of_partitions(broker):
    seen = []

    def choose(topic, key, value, partition_count):
        seen.append((topic, key, value, partition_count, threading.current_thread() is threading.main_thread()))
        return partition_count - 1

    with making(broker, choose) as producer:
        assert producer.send(ProducerRecord("four", "v", "k")).result(10).partition == 3
        assert producer.send(ProducerRecord("three", bytearray(b"w"))).result(10).partition == 2
        assert producer.send(ProducerRecord("four", None, partition=0)).result(10).partition == 0  # not asked
        got = []
        producer.produce("four", b"x", callback=lambda error, message: got.append(message.partition()))
        producer.flush(10)
    assert seen == [("four", b"k", b"v", 4, True), ("three", None, b"w", 3, True), ("four", None, b"x", 4, True)]
    assert got == [3]


def test_records_that_wait_for_their_topic_are_asked_about_when_it_is_known(broker):
    got, counts = [], []

    def choose(topic, key, value, partition_count):
        counts.append(partition_count)
        return int(value)

    with making(broker, choose) as producer:
        for value in ("1", "3", "2"):
            producer.produce("four", value, callback=lambda error, message: got.append(message.partition()))
        assert counts == []
    assert sorted(got) == [1, 2, 3]
    assert counts == [4, 4, 4]


class Chooser:
    def __init__(self, result):
        self.result = result

    def __call__(self, topic, key, value, partition_count):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(("result", "code", "text"), [
    (4, KafkaError._UNKNOWN_PARTITION, r'the partitioner Chooser returned 4, where 0 to 3 exist \(topic "four"\)'),
    (-1, KafkaError._UNKNOWN_PARTITION, "returned -1"),
    ("1", KafkaError._INVALID_ARG, "the partitioner Chooser returned '1', not the number of a partition"),
    (None, KafkaError._INVALID_ARG, "returned None"),
    (1.0, KafkaError._INVALID_ARG, r"returned 1\.0"),
    (ZeroDivisionError("mine"), KafkaError._FAIL, "the partitioner Chooser raised ZeroDivisionError: mine"),
])
def test_its_mistakes_are_raised_by_produce_and_name_it(broker, result, code, text):
    reports = []
    with making(broker, Chooser(result)) as producer:
        producer.produce("four", b"v", callback=lambda error, message: reports.append(error))
        producer.flush(10)  # the topic was not known: the report says it
        for call in (lambda: producer.produce("four", b"v"), lambda: producer.send(ProducerRecord("four", b"v"))):
            with pytest.raises(KafkaException, match=text) as caught:
                call()
            assert caught.value.error == code
        assert len(producer) == 0
        assert producer.send(ProducerRecord("four", b"v", partition=1)).result(10).has_offset()
    assert reports == [code]


def test_the_names_of_functions_are_told(broker):
    def by_region(topic, key, value, partition_count):
        return 99

    with making(broker, by_region) as producer, pytest.raises(KafkaException, match=r"the partitioner .*by_region"):
        producer.send(ProducerRecord("four", b"v"))


def test_round_robin_takes_turns_whatever_the_key(broker):
    got = []
    with making(broker, "round_robin") as producer:
        for number in range(12):
            producer.produce("four", str(number), "same", callback=lambda e, m: got.append((m.value(), m.partition())))
            producer.produce("three", b"-")
    assert sorted((int(value), partition) for value, partition in got) == [(n, n % 4) for n in range(12)]


def test_a_producer_with_a_function_keeps_order_refuses_and_closes_as_any_other(broker):
    got = []
    producer = making(broker, lambda topic, key, value, partition_count: 1, **{"queue.buffering.max.messages": 50})
    for number in range(200):
        while True:
            try:
                producer.produce("four", str(number), callback=lambda error, message: got.append(int(message.value())))
                break
            except BufferError:
                producer.poll(1)
    producer.close()
    assert got == list(range(200))
    with pytest.raises(RuntimeError, match="closed"):
        producer.produce("four", b"v")


def test_the_other_faces_use_it_as_well(broker):
    conf = {"bootstrap.servers": broker.bootstrap_servers, "partitioner": lambda *of: 2}
    with KafkaSyncProducer(conf) as producer:
        assert producer.send(ProducerRecord("four", b"v")).partition == 2

    async def main():
        async with AIOProducer(conf) as producer:
            return (await (await producer.produce("four", b"v"))).partition()

    assert asyncio.run(main()) == 2


def test_what_is_neither_a_name_nor_a_function_is_refused(broker):
    with pytest.raises(ConfigError, match=r'"partitioner": randon: expected one of .*; did you mean "random"'):
        making(broker, "randon")
    with pytest.raises(ConfigError, match='"partitioner"'):
        making(broker, 5)


def test_a_partitioner_of_java_is_refused_with_what_there_is_instead():
    for name, said in (
        ("com.example.MyPartitioner", "other classes of Java cannot run here: say each record's partition"),
        ("DefaultPartitoner", 'did you mean "defaultpartitioner"'),
    ):
        with pytest.raises(ConfigError, match=rf'"partitioner\.class": {name}: expected one of defaultp.*{said}'):
            Config(PRODUCER, {"bootstrap.servers": "b:1", "partitioner.class": name})


def without_a_key(broker, seconds, **properties):
    """Produce for so long; how many records went to each leader of the topic "six", and what was wrong with one."""
    got, errors = Counter(), []

    def report(error, message):
        if error is None:
            got[broker.leader("six", message.partition())] += 1
        else:
            errors.append(error)

    with Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.size": 2000, "linger.ms": 1,
                   "sticky.partitioning.linger.ms": 2, "on_delivery": report, **properties}) as producer:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            for _ in range(20):
                producer.produce("six", bytes(200))
            time.sleep(0.005)
        broker.clear_faults()
    return got, errors


def assert_gets_fewer(share, fault, **properties):
    """Assert that a broker gets less than this share of what others get, in one of several tries.

    All are slow at times, where the machine is.
    """
    tries = []
    with EmbeddedBroker(nodes=3, topics={"six": 6}) as broker:
        node = broker.leader("six", 0)
        for _ in range(5):
            broker.add_fault(Fault(request=ProduceRequest, node_id=node, times=None, **fault))
            got, errors = without_a_key(broker, 2, **properties)
            assert errors == []
            others = [got[other] for other in range(1, 4) if other != node]
            tries.append((got[node], others))
            if got[node] < share * min(others):
                return
    raise AssertionError(tries)


def test_a_slow_broker_gets_fewer_records_without_a_key():
    assert_gets_fewer(0.75, {"action": Action.DELAY, "delay_s": 0.1})


def test_a_broker_that_does_not_answer_gets_no_more_records_without_a_key():
    assert_gets_fewer(0.4, {"action": Action.SILENCE}, **{"partitioner.availability.timeout.ms": 100,
                                                          "request.timeout.ms": 1000})


def test_names_of_hashes_and_lots_need_no_function():
    for name in ("random", "consistent", "murmur2_random", "fnv1a", "uniform_sticky"):
        assert choice_of(name) is None


def test_round_robin_takes_turns_in_each_topic_and_follows_new_partitions():
    choose = choice_of("round_robin")
    assert [choose("a", b"key", b"", 3) for _ in range(4)] == [0, 1, 2, 0]
    assert [choose("b", None, b"", 3) for _ in range(2)] == [0, 1]
    assert [choose("a", None, b"", 5) for _ in range(3)] == [4, 0, 1]


@given(st.integers(1, 1000), st.integers(-5, 1005))
def test_a_choice_is_a_partition_that_exists_or_an_error(count, chosen):
    choose = choice_of(lambda topic, key, value, partition_count: chosen)
    if 0 <= chosen < count:
        assert choose("t", "k", "v", count) == chosen
    else:
        with pytest.raises(KafkaException, match=f"returned {chosen}, where 0 to {count - 1} exist"):
            choose("t", "k", "v", count)


def test_whatever_counts_as_a_whole_number_is_a_choice():
    class Third:
        def __index__(self):
            return 2

    assert choice_of(lambda *of: Third())("t", None, None, 3) == 2
    assert choice_of(lambda *of: True)("t", None, None, 3) == 1


def test_partitions_are_weighed_only_where_lots_are_drawn():
    def machines(**properties):
        config = Config(PRODUCER, {"bootstrap.servers": "localhost:1", **properties})
        return balance_of(config, {}, BatchQueues(OpenBatches(), 0.0, 60.0), Metadata([("localhost", 1)]))

    (usual,) = machines(**{"client.rack": "a"})
    assert (usual._adaptive, usual._patience_s, usual._rack) == (True, math.inf, "")
    (aware,) = machines(**{"client.rack": "a", "partitioner.rack.aware": True,
                           "partitioner.availability.timeout.ms": 2_500})
    assert (aware._adaptive, aware._patience_s, aware._rack) == (True, 2.5, "a")
    (plain,) = machines(**{"partitioner.adaptive.partitioning.enable": False})
    assert not plain._adaptive
    assert len(machines(partitioner="uniform_sticky")) == 1
    assert len(machines(partitioner="consistent_random")) == 1  # records without a key are left to chance
    assert machines(partitioner="consistent") == machines(partitioner="round_robin") == []
    assert machines(partitioner=lambda *of: 0) == []
