"""A consumer's calls on real Kafka: what confluent_kafka's answer to them, and what is newer than its library."""

import time
from typing import Any

import pytest

import headrace
from tests.support.real_kafka import make_topic
from tests.support.same_as_confluent import QUIET, by_name, outcome, same
from tools.kafka import KafkaCluster

PAST_MS, RECORDS = 60 * 60 * 1000, 10
"""Half of the records are one hour old."""


@pytest.fixture(scope="module")
def filled(kafka: KafkaCluster) -> str:
    topic = make_topic(kafka, 3)
    now_ms = int(time.time() * 1000)
    with headrace.Producer(kafka.connection) as producer:
        for number in range(RECORDS):
            producer.produce(topic, str(number), partition=0, timestamp=now_ms - (PAST_MS if number < 5 else 0))
        assert producer.flush(30) == 0
    return topic


def of(kafka: Any, cluster: KafkaCluster, **properties: Any) -> Any:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return kafka.Consumer({**cluster.connection, "group.id": f"{kafka.__name__}{time.monotonic_ns()}", "logger": QUIET,
                           "auto.offset.reset": "earliest", "enable.auto.commit": False, **named})


def read(consumer: Any) -> Any:
    return next(message for message in (consumer.poll(1) for _ in range(30)) if message is not None)


def plain(partitions: Any) -> Any:
    return [(tp.partition, tp.offset, tp.leader_epoch, tp.error and tp.error.code()) for tp in partitions]


@by_name({
    "commit to no topic": lambda c, tp: c.commit(offsets=[tp(0, 3, "nope")], asynchronous=False),
    "commit to no partition": lambda c, tp: c.commit(offsets=[tp(99, 3)], asynchronous=False),
    "commit to one that is not there": lambda c, tp: c.commit(offsets=[tp(0, 3), tp(99, 3)], asynchronous=False),
    "commit without an offset": lambda c, tp: plain(c.commit(offsets=[tp(0, 3), tp(1)], asynchronous=False)),
    "commit what was read": lambda c, tp: (
        c.assign([tp(0, 2)]), read(c).offset(), plain(c.commit(asynchronous=False)), plain(c.committed([tp(0)], 30)),
        plain(c.position([tp(0)]))),
    "watermarks": lambda c, tp: c.get_watermark_offsets(tp(0), 30),
    "watermarks of no topic": lambda c, tp: c.get_watermark_offsets(tp(0, 0, "nope"), 30),
    "watermarks of no partition": lambda c, tp: c.get_watermark_offsets(tp(99), 30),
    "times of no partition": lambda c, tp: c.offsets_for_times([tp(99, 0)], 30),
    "the last three": lambda c, tp: (c.assign([tp(0, -2003)]), [m.offset() for m in c.consume(3, 30)]),
    "the last of more than there are": lambda c, tp: (c.assign([tp(0, -2099)]), read(c).offset()),
})
def test_a_call_answers_as_the_peers(case: Any, kafka: KafkaCluster, filled: str) -> None:
    def called(package: Any) -> Any:
        def place(partition: int, offset: int = -1001, topic: str = filled) -> Any:
            return package.TopicPartition(topic, partition, offset)

        consumer, started = of(package, kafka), time.monotonic()
        try:
            said = outcome(lambda _: case(consumer, place), package)
            return said, time.monotonic() - started < 20
        finally:
            consumer.close()

    assert same(called)[1]


@pytest.mark.parametrize(("duration", "start"), [("PT30M", 5), ("PT2H", 0), ("PT0S", RECORDS)])
def test_a_reset_by_duration_starts_with_the_first_record_that_is_young_enough(
    duration: str, start: int, kafka: KafkaCluster, filled: str
) -> None:
    with of(headrace, kafka, auto_offset_reset=f"by_duration:{duration}", enable_partition_eof=True) as consumer:
        consumer.assign([headrace.TopicPartition(filled, 0)])
        assert read(consumer).offset() == start


def test_objects_are_read(kafka: KafkaCluster, filled: str) -> None:
    def values(package: Any) -> Any:
        with package.DeserializingConsumer({
                **kafka.connection, "group.id": f"{package.__name__}{time.monotonic_ns()}", "logger": QUIET,
                "value.deserializer": package.serialization.StringDeserializer()}) as consumer:
            consumer.assign([package.TopicPartition(filled, 0, 7)])
            return [read(consumer).value() for _ in range(3)]

    assert same(values) == ["7", "8", "9"]
