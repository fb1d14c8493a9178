"""Share groups on real Kafka (KIP-932): acknowledging, delivery counts, several members, also of other clients."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from headrace import (
    AcknowledgeType,
    ConcurrentModificationException,
    IllegalStateException,
    KafkaError,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from headrace.aio import AIOShareConsumer
from tests.support.configuration import OLDER, Configuration
from tests.support.real_kafka import make_topic, running, until
from tests.support.share_groups import fill, places, prepare, settings, start_offsets, take
from tools.kafka import KafkaCluster

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
QUIET_S = 1.5
"""After so long without another record a new member has got all that a group hands out."""
WORKER = """
import sys, time
from headrace import ShareConsumer
consumer = ShareConsumer(eval(sys.argv[1]))
consumer.subscribe([sys.argv[2]])
found = []
while not found:
    found = list(consumer.poll(1))
print(len(found), flush=True)
time.sleep(100)
"""


@pytest.fixture
def queues(kafka: KafkaCluster, configured: Configuration) -> KafkaCluster:
    """The shared cluster, where it has share groups."""
    if configured.version == OLDER:
        pytest.skip(f"Kafka {OLDER} has no share groups")
    return kafka


def rest_of(cluster: KafkaCluster, group: str, topic: str, expected: int = 0) -> dict[tuple[Any, Any], int]:
    """What the group hands out to a new member, with its first delivery counts; nothing of it is accepted.

    Waits for as many records as are expected, and then whether more come.
    """
    found: dict[tuple[Any, Any], int] = {}
    with ShareConsumer(settings(cluster, group, mode="explicit")) as consumer:
        consumer.subscribe([topic])
        began = last = time.monotonic()
        while (now := time.monotonic()) < last + QUIET_S or (len(found) < expected and now < began + 60):
            for message in consumer.poll(0.3):
                consumer.acknowledge(message, RENEW)
                place = (message.partition(), message.offset())
                if place not in found:
                    found[place], last = message.delivery_count(), time.monotonic()
    return found


def test_what_is_polled_is_accepted_by_the_next_poll(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 30)
    with ShareConsumer(settings(queues, topic)) as consumer:
        consumer.subscribe([topic])
        found = take(consumer, 30)
        assert consumer.poll(1).is_empty()
    assert {int(message.value()) for message in found} == set(range(30))
    assert {message.delivery_count() for message in found} == {1}
    assert rest_of(queues, topic, topic) == {}


def test_what_was_polled_last_comes_again_after_close(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 10, 1)
    with ShareConsumer(settings(queues, topic)) as consumer:
        consumer.subscribe([topic])
        take(consumer, 10)
    assert rest_of(queues, topic, topic, 10) == {(0, offset): 2 for offset in range(10)}


def test_commit_sync_accepts_and_tells_each_partition(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 30)
    answers: list[Any] = []
    with ShareConsumer(settings(queues, topic)) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda *answer: answers.append(answer))
        consumer.subscribe([topic])
        take(consumer, 30)
        consumer.commit_sync()
        assert consumer.commit_sync() == {}
    acknowledged = Counter((partition.partition, offset) for offsets, error in answers
                           for partition, those in offsets.items() for offset in those if error is None)
    assert acknowledged == Counter({(p, offset): 1 for p in range(3) for offset in range(10)})
    assert rest_of(queues, topic, topic) == {}


def test_each_word_about_a_record_does_what_it_says(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 8, 1)
    words = [ACCEPT, RELEASE, REJECT, RELEASE, ACCEPT, ACCEPT, REJECT, RELEASE]
    with ShareConsumer(settings(queues, topic, mode="explicit")) as consumer:
        consumer.subscribe([topic])
        for message, word in zip(take(consumer, 8), words, strict=True):
            consumer.acknowledge(message, word)
        assert consumer.commit_sync() == {TopicPartition(topic, 0): None}
    assert rest_of(queues, topic, topic, 3) == {(0, 1): 2, (0, 3): 2, (0, 7): 2}


def test_the_last_word_before_a_commit_counts(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 2, 1)
    with ShareConsumer(settings(queues, topic, mode="explicit")) as consumer:
        consumer.subscribe([topic])
        for message in take(consumer, 2):
            consumer.acknowledge(message, REJECT)
            consumer.acknowledge(message, RELEASE)
    assert rest_of(queues, topic, topic, 2) == {(0, 0): 2, (0, 1): 2}


def test_explicit_acknowledgement_wants_a_word_about_each_record(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 3, 1)
    with ShareConsumer(settings(queues, topic, mode="explicit")) as consumer:
        consumer.subscribe([topic])
        first, second, third = take(consumer, 3)
        consumer.acknowledge(first)
        with pytest.raises(IllegalStateException, match="2 records from previous poll have not been acknowledged"):
            consumer.poll(0)
        consumer.acknowledge_offset(topic, 0, 1)
        consumer.acknowledge(third, REJECT)
        assert consumer.poll(0).is_empty()
        with pytest.raises(IllegalStateException, match="not held"):
            consumer.acknowledge(second)
    assert rest_of(queues, topic, topic) == {}


def test_a_record_is_given_up_after_as_many_deliveries_as_the_group_allows(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 1, 1)
    counts = []
    with ShareConsumer(settings(queues, topic, mode="explicit")) as consumer:
        consumer.subscribe([topic])
        for message in (take(consumer, 1)[0] for _ in range(5)):
            counts.append(message.delivery_count())
            consumer.acknowledge(message, RELEASE)
        consumer.commit_sync()
        assert consumer.poll(1).is_empty()
    assert counts == [1, 2, 3, 4, 5]


def test_a_record_that_is_renewed_is_held_beyond_its_lock(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic, record_lock_duration_ms="5000")
    fill(queues, topic, 2, 1)
    with ShareConsumer(settings(queues, topic, mode="explicit")) as consumer:
        consumer.subscribe([topic])
        kept, lost = take(consumer, 2)
        assert consumer.acquisition_lock_timeout_ms() == 5000
        for _ in range(4):  # longer than the lock in all, and each time so much less that a machine may stop besides
            consumer.acknowledge(kept, RENEW)
            assert consumer.commit_sync() == {TopicPartition(topic, 0): None}
            time.sleep(1.5)
        consumer.acknowledge(lost)
        [error] = consumer.commit_sync().values()
        assert isinstance(error, KafkaException)
        assert error.args[0].code() == KafkaError.INVALID_RECORD_STATE
        consumer.acknowledge(kept)
        assert consumer.commit_sync() == {TopicPartition(topic, 0): None}
    assert rest_of(queues, topic, topic, 1) == {(0, 1): 2}


def test_other_records_are_read_while_one_is_renewed(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 1, 1)
    with ShareConsumer(settings(queues, topic, mode="explicit")) as consumer:
        consumer.subscribe([topic])
        [slow] = take(consumer, 1)
        consumer.acknowledge(slow, RENEW)
        fill(queues, topic, 1, 1)
        [quick] = take(consumer, 1)
        assert quick.offset() == 1
        consumer.acknowledge(quick)
        consumer.acknowledge(slow)
        consumer.commit_sync()
    assert rest_of(queues, topic, topic) == {}


def test_offsets_without_a_record_are_acknowledged_too(queues: KafkaCluster, topic: str) -> None:
    """Markers of transactions have offsets, which a share group hands out: they must not hold the group up."""
    prepare(queues, topic)
    with Producer({**queues.connection, "transactional.id": topic}) as producer:
        producer.init_transactions(30)
        for i in range(5):
            producer.begin_transaction()
            producer.produce(topic, str(i).encode(), partition=0)
            producer.commit_transaction(30)
    with ShareConsumer(settings(queues, topic)) as consumer:
        consumer.subscribe([topic])
        assert [int(message.value()) for message in take(consumer, 5)] == [0, 1, 2, 3, 4]
        consumer.commit_sync()
        fill(queues, topic, 1, 1)  # brokers write down where a group stands with the next acknowledgement
        take(consumer, 1)
        consumer.commit_sync()
        assert start_offsets(queues, topic)[0] == 10


def test_no_more_records_than_the_limit_are_taken_where_the_limit_is_strict(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 60)
    with ShareConsumer(settings(queues, topic, **{"share.acquire.mode": "record_limit", "max.poll.records": 7})) as one:
        one.subscribe([topic])
        first = list(one.poll(10))
    assert 0 < len(first) <= 7
    assert Counter(rest_of(queues, topic, topic, 60).values()) == {1: 60 - len(first), 2: len(first)}


def test_a_large_batch_comes_whole_and_once_to_who_works_slowly(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic, record_lock_duration_ms="8000")
    with Producer({**queues.connection, "linger.ms": 1000}) as producer:
        for i in range(800):
            producer.produce(topic, str(i).encode(), partition=0)
        assert producer.flush(30) == 0
    found: list[Any] = []
    with ShareConsumer(settings(queues, topic, **{"max.poll.records": 50})) as consumer:
        consumer.subscribe([topic])
        while len(found) < 800:
            messages = list(consumer.poll(10))
            found += messages
            time.sleep(len(messages) * 0.001)  # less than the lock, all in all; 16 times 50 took longer than their lock
            time.sleep(0.6 if messages else 0)
        consumer.commit_sync()
    assert len(found) == len(places(found)) == 800
    assert {message.delivery_count() for message in found} == {1}
    assert rest_of(queues, topic, topic) == {}


def test_a_member_that_is_killed_holds_nothing_any_more(queues: KafkaCluster) -> None:
    topic = make_topic(queues, 1)  # of several, some would be left to the member that is gone
    prepare(queues, topic)
    fill(queues, topic, 10, 1)
    with subprocess.Popen([sys.executable, "-c", WORKER, repr(settings(queues, topic)), topic],
                          stdout=subprocess.PIPE, env=os.environ) as worker:
        assert worker.stdout is not None
        held = int(worker.stdout.readline())
        worker.kill()
    rest = rest_of(queues, topic, topic, 10)
    assert rest.keys() == {(0, offset) for offset in range(10)}
    assert Counter(rest.values())[2] == held


def test_the_records_of_a_member_that_is_frozen_come_again_after_their_lock(queues: KafkaCluster) -> None:
    topic = make_topic(queues, 1)  # of several, some would be left to the member that is gone
    prepare(queues, topic, record_lock_duration_ms="2000")
    fill(queues, topic, 10, 1)
    with subprocess.Popen([sys.executable, "-c", WORKER, repr(settings(queues, topic)), topic],
                          stdout=subprocess.PIPE, env=os.environ) as worker:
        assert worker.stdout is not None
        held = int(worker.stdout.readline())
        worker.send_signal(signal.SIGSTOP)
        try:
            rest = rest_of(queues, topic, topic, 10)
        finally:
            worker.kill()
    assert rest.keys() == {(0, offset) for offset in range(10)}
    assert Counter(rest.values())[2] == held


def test_a_late_acceptance_is_confirmed_where_the_group_is_done_with_the_record(queues: KafkaCluster) -> None:
    """As Kafka does it: what lies before the first record that is not done with is not looked at any more."""
    topic = make_topic(queues, 1)
    prepare(queues, topic, record_lock_duration_ms="1000")
    fill(queues, topic, 2, 1)
    config = settings(queues, topic, mode="explicit")
    with ShareConsumer(config) as slow, ShareConsumer(config) as quick:
        slow.subscribe([topic])
        late = take(slow, 2)
        quick.subscribe([topic])

        def is_done() -> bool:
            for message in take(quick, 2):  # as soon as the locks are over
                quick.acknowledge(message)
            return quick.commit_sync() == {TopicPartition(topic, 0): None}

        until(is_done)  # a machine may stop for as long as a lock
        for message in late:
            slow.acknowledge(message)
        assert slow.commit_sync() == {TopicPartition(topic, 0): None}
    assert rest_of(queues, topic, topic) == {}


def test_a_member_that_does_not_poll_leaves_and_comes_back(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    with ShareConsumer(settings(queues, topic, **{"max.poll.interval.ms": 3000})) as consumer:
        consumer.subscribe([topic])
        assert consumer.poll(1).is_empty()
        time.sleep(4.5)
        fill(queues, topic, 10)
        found: list[Any] = []
        with pytest.raises(KafkaException) as raised:  # as librdkafka's does
            until(lambda: found.extend(consumer.poll(0.2)))
        assert raised.value.args[0].code() == KafkaError._MAX_POLL_EXCEEDED
        until(lambda: found.extend(consumer.poll(0.2)) or len(found) == 10)
    assert [message.error() for message in found] == [None] * 10


def test_unsubscribe_gives_back_what_is_held_and_subscribe_begins_again(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 10, 1)
    with ShareConsumer(settings(queues, topic)) as consumer:
        consumer.subscribe([topic])
        take(consumer, 10)
        consumer.unsubscribe()
        assert consumer.subscription() == []
        with pytest.raises(IllegalStateException, match="not subscribed"):
            consumer.poll(0)
        consumer.subscribe([topic])
        again = take(consumer, 10)
        assert {message.delivery_count() for message in again} == {2}


def test_calls_do_not_meet(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    with ShareConsumer(settings(queues, topic)) as consumer:
        consumer.subscribe([topic])
        reader = threading.Thread(target=consumer.poll, args=(2,))
        reader.start()
        time.sleep(0.3)
        with pytest.raises(ConcurrentModificationException, match="a call to this share consumer goes on"):
            consumer.commit_sync()
        reader.join()
        assert consumer.commit_sync() == {}


def test_asyncio_members_share(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    fill(queues, topic, 30)

    async def read() -> list[Any]:
        found: list[Any] = []
        async with AIOShareConsumer(settings(queues, topic, mode="explicit")) as one:
            await one.subscribe([topic])
            while len(found) < 30:
                for message in await one.poll(1):
                    await one.acknowledge(message)
                    found.append(message)
            await one.commit_sync()
        return found

    assert len(places(asyncio.run(read()))) == 30
    assert rest_of(queues, topic, topic) == {}


@pytest.fixture
def three_queues(configured: Configuration) -> Iterator[KafkaCluster]:
    """Three brokers for one test, which may kill them, where they have share groups."""
    if configured.version == OLDER:
        pytest.skip(f"Kafka {OLDER} has no share groups")
    yield from running(configured.cluster(brokers=3))


def test_a_leader_that_moves_takes_the_member_along(three_queues: KafkaCluster) -> None:
    cluster = three_queues
    topic = make_topic(cluster, 3)
    prepare(cluster, topic)
    fill(cluster, topic, 300)
    with ShareConsumer(settings(cluster, topic, **{"max.poll.records": 10})) as consumer:
        consumer.subscribe([topic])
        found = take(consumer, 30)
        cluster.kill(2)
        fill(cluster, topic, 300, first=300)

        def read() -> bool:
            found.extend(message for message in consumer.poll(0.5) if message.error() is None)
            return len({message.value() for message in found}) == 600

        until(read, 90)


Member = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize("other", [ShareConsumer, confluent_kafka.ShareConsumer], ids=["ours", "librdkafka's"])
def test_each_record_goes_to_one_member(queues: KafkaCluster, topic: str, other: Member) -> None:
    prepare(queues, topic)
    fill(queues, topic, 3)
    with ShareConsumer(settings(queues, topic)) as first, other(settings(queues, topic)) as second:
        first.subscribe([topic])
        second.subscribe([topic])
        found: tuple[list[Any], list[Any]] = ([], [])
        written = 3

        def read() -> int:
            for consumer, own in zip((first, second), found, strict=True):
                own.extend(message for message in consumer.poll(0.3) if message.error() is None)
            return len(found[0]) + len(found[1])

        while not (found[0] and found[1]) or written < 300:
            fill(queues, topic, 30)
            written += 30
            read()
        until(lambda: read() >= written, 60)
        first.commit_sync(10)
        second.commit_sync(10)
    counts = Counter((message.partition(), message.offset()) for own in found for message in own)
    assert set(counts.values()) == {1}
    assert len(counts) == written


@pytest.mark.slow
def test_javas_member_and_ours_share(queues: KafkaCluster, topic: str) -> None:
    prepare(queues, topic)
    found: list[Any] = []
    done = threading.Event()

    def read() -> None:
        with ShareConsumer(settings(queues, topic)) as consumer:
            consumer.subscribe([topic])
            while not done.is_set():
                found.extend(message for message in consumer.poll(0.2) if message.error() is None)
            consumer.commit_sync()

    reader = threading.Thread(target=read)
    reader.start()
    java: list[bytes] = []
    java_said = ""

    def console() -> None:
        nonlocal java_said
        run = queues.java_tool("org.apache.kafka.tools.consumer.ConsoleShareConsumer", "--topic", topic, "--group",
                               topic, "--timeout-ms", "20000", timeout_s=100)
        java.extend(line for line in run.stdout.split(b"\n") if line.isdigit())  # it logs there, too
        java_said = run.stderr.decode()

    other = threading.Thread(target=console)
    other.start()
    for number in range(60):
        fill(queues, topic, 30, first=30 * number)
        time.sleep(0.2)
    other.join()
    time.sleep(1)
    done.set()
    reader.join()
    ours = {message.value() for message in found}
    assert ours | set(java) == {str(number).encode() for number in range(1800)}
    assert len(ours) == len(found)
    assert java, java_said
    assert found
    again = {message.value() for message in found if message.value() in set(java)}  # as what Java read last may be
    assert {message.delivery_count() for message in found if message.value() in again} <= {2}


@pytest.fixture
def older(configured: Configuration) -> Iterator[KafkaCluster]:
    """A cluster without share groups."""
    yield from running(configured.cluster(version=OLDER, brokers=1))


def test_brokers_without_share_groups_are_told_clearly(older: KafkaCluster) -> None:
    with ShareConsumer(settings(older, "group")) as consumer:
        consumer.subscribe(["topic"])
        with pytest.raises(KafkaException, match="the brokers have no share groups: they need Kafka") as error:
            until(lambda: consumer.poll(1) is None)  # the topic, which is not there, may be reported before
        assert error.value.args[0].fatal()
