"""Commits that nobody waits for are done before a consumer ends, and `on_commit` is told: as in confluent_kafka."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

import headrace
from headrace.aio import AIOConsumer
from headrace.broker.faults import Action, Fault
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.consumer.offsets import OffsetCommitRequest

TOPIC, RECORDS, PATIENCE_S = "t", 30, 20.0
groups = itertools.count()

End = Callable[[Any, list[object]], None]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={TOPIC: 1}) as started:
        with headrace.Producer({"bootstrap.servers": started.bootstrap_servers}) as producer:
            for _ in range(RECORDS):
                producer.produce(TOPIC, b"x")
        yield started


def close(consumer: Any, told: list[object]) -> None:
    consumer.close()


def leave_a_block(consumer: Any, told: list[object]) -> None:
    with consumer:
        pass


def unsubscribe(consumer: Any, told: list[object]) -> None:
    expected = told.count("commit")
    consumer.unsubscribe()
    end = time.monotonic() + PATIENCE_S
    while len(told) - expected < expected and time.monotonic() < end:
        consumer.poll(0.05)
    consumer.close()


def consumer_of(package: Any, broker: EmbeddedBroker, told: list[object], **properties: object) -> Any:
    return package.Consumer({
        "bootstrap.servers": broker.bootstrap_servers, "group.id": f"g{next(groups)}",
        "auto.offset.reset": "earliest", "on_commit": lambda error, offsets: told.append((error, offsets[0].offset)),
        **properties})


def committed(broker: EmbeddedBroker, group: str) -> int:
    with headrace.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group}) as other:
        return other.committed([headrace.TopicPartition(TOPIC, 0)], PATIENCE_S)[0].offset


@pytest.mark.parametrize("package", [headrace, confluent_kafka])
@pytest.mark.parametrize("is_assigned", [False, True])
@pytest.mark.parametrize("end", [close, leave_a_block, unsubscribe])
@pytest.mark.parametrize("count", [1, 3, 20])
def test_what_is_being_committed_is_committed_when_the_consumer_ends(
    broker: EmbeddedBroker, package: Any, is_assigned: bool, end: End, count: int
) -> None:
    told: list[object] = []
    consumer = consumer_of(package, broker, told, **{"enable.auto.commit": False})
    group = f"g{next(groups) - 1}"
    if is_assigned:
        consumer.assign([package.TopicPartition(TOPIC, 0)])
    else:
        consumer.subscribe([TOPIC])
    for _ in range(count):
        consumer.commit(consumer.poll(PATIENCE_S))
        told.append("commit")
    end(consumer, told)
    assert [each for each in told if each != "commit"] == [(None, number + 1) for number in range(count)]
    assert committed(broker, group) == count


@pytest.mark.parametrize("package", [headrace, confluent_kafka])
def test_on_commit_is_told_of_the_last_commit_by_the_clock_behind_the_revocation(
    broker: EmbeddedBroker, package: Any
) -> None:
    told: list[object] = []
    consumer = consumer_of(package, broker, told)
    consumer.subscribe([TOPIC], on_revoke=lambda consumer, partitions: told.append("revoked"))
    for _ in range(3):
        consumer.poll(PATIENCE_S)
    consumer.close()
    assert told == ["revoked", (None, 3)]


def test_an_on_commit_that_raises_does_so_from_close_behind_the_others(broker: EmbeddedBroker) -> None:
    told: list[object] = []

    def on_commit(error: object, offsets: list[headrace.TopicPartition]) -> None:
        told.append(offsets[0].offset)
        raise ValueError(str(offsets[0].offset))

    consumer = consumer_of(headrace, broker, told, **{"enable.auto.commit": False, "on_commit": on_commit})
    consumer.subscribe([TOPIC])
    for message in [consumer.poll(PATIENCE_S) for _ in range(3)]:
        consumer.commit(message)
    with pytest.raises(ValueError, match="1"):
        consumer.close()
    assert told == [1, 2, 3]
    with pytest.raises(RuntimeError, match="closed"):
        consumer.poll(0)


def test_an_asyncio_consumer_commits_what_it_began_before_it_ends(broker: EmbeddedBroker) -> None:
    told: list[object] = []

    async def on_commit(error: object, offsets: list[headrace.TopicPartition]) -> None:
        told.append((error, offsets[0].offset))

    async def run() -> None:
        async with AIOConsumer({
            "bootstrap.servers": broker.bootstrap_servers, "group.id": "asyncio", "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "on_commit": on_commit,
        }) as consumer:
            await consumer.subscribe([TOPIC])
            for _ in range(3):
                await consumer.commit(message=await consumer.poll(PATIENCE_S), asynchronous=True)

    asyncio.run(run())
    assert told == [(None, 1), (None, 2), (None, 3)]
    assert committed(broker, "asyncio") == 3


@pytest.mark.parametrize("is_by_itself", [False, True])
def test_what_no_coordinator_takes_is_waited_for_a_while_and_told(
    broker: EmbeddedBroker, is_by_itself: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.client.consumer.consumer_offsets._LAST_COMMIT_TIMEOUT_S", 0.3)
    told: list[Any] = []
    consumer = consumer_of(headrace, broker, told, **{"enable.auto.commit": is_by_itself,
                                                      "auto.commit.interval.ms": 600_000})
    consumer.subscribe([TOPIC])
    broker.add_fault(Fault(action=Action.ERROR, request=OffsetCommitRequest, times=None,
                           error_code=headrace.KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
    try:
        for _ in range(3):
            message = consumer.poll(PATIENCE_S)
            if not is_by_itself:
                consumer.commit(message)
        began = time.monotonic()
        consumer.close()
        assert time.monotonic() - began < 5
    finally:
        broker.clear_faults()
    assert [offset for _, offset in told] == ([3] if is_by_itself else [1, 2, 3])
    assert {error.code() for error, _ in told} == {headrace.KafkaError._TIMED_OUT}


def test_a_rebalance_waits_longer_for_the_last_commit_and_nothing_is_read_twice(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.client.consumer.consumer_offsets._LAST_COMMIT_TIMEOUT_S", 0.3)
    told: list[Any] = []
    consumer = consumer_of(headrace, broker, told, **{"auto.commit.interval.ms": 600_000})
    consumer.subscribe([TOPIC])
    read = [consumer.poll(PATIENCE_S).offset() for _ in range(3)]
    broker.add_fault(Fault(action=Action.ERROR, request=OffsetCommitRequest, times=None,
                           error_code=headrace.KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
    recovers = threading.Timer(1.5, broker.clear_faults)
    recovers.start()
    try:
        consumer.enforce_rebalance()
        while len(read) < RECORDS and (message := consumer.poll(PATIENCE_S)) is not None:
            read.append(message.offset())
    finally:
        recovers.join()
        consumer.close()
    assert read == [*range(RECORDS)]
    assert (told[0][0], told[-1]) == (None, (None, RECORDS))


@pytest.mark.parametrize("package", [headrace, confluent_kafka])
@pytest.mark.parametrize("is_by_itself", [False, True])
def test_when_the_coordinator_stands_still_the_next_one_is_asked_once_more(
    broker: EmbeddedBroker, package: Any, is_by_itself: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.client.consumer.consumer_offsets._LAST_COMMIT_TIMEOUT_S", 0.3)
    told: list[Any] = []
    consumer = consumer_of(package, broker, told, **{"enable.auto.commit": is_by_itself,
                                                     "auto.commit.interval.ms": 600_000,
                                                     "socket.timeout.ms": 1000, "fetch.wait.max.ms": 100})
    group = f"g{next(groups) - 1}"
    consumer.subscribe([TOPIC])
    for _ in range(3):
        message = consumer.poll(PATIENCE_S)
    broker.add_fault(Fault(action=Action.SILENCE, request=OffsetCommitRequest))
    try:
        if not is_by_itself:
            consumer.commit(message)
        consumer.close()
    finally:
        broker.clear_faults()
    assert told == [(None, 3)]
    assert committed(broker, group) == 3


GIVE_UP: dict[str, Callable[[Any, Any], object]] = {
    "unassign": lambda consumer, partitions: consumer.unassign(),
    "assign": lambda consumer, partitions: consumer.assign([]),
    "incremental unassign": lambda consumer, partitions: consumer.incremental_unassign(partitions),
}


@pytest.mark.parametrize("give_up", GIVE_UP)
@pytest.mark.parametrize("kind", [
    {"partition.assignment.strategy": "range"}, {"partition.assignment.strategy": "cooperative-sticky"},
    {"group.protocol": "consumer"}], ids=str)
@pytest.mark.parametrize("package", [headrace, confluent_kafka], ids=["headrace", "confluent_kafka"])
def test_what_on_revoke_gives_up_by_itself_is_committed_when_the_consumer_is_closed(
    broker: EmbeddedBroker, package: Any, kind: dict[str, str], give_up: str
) -> None:
    revoked: list[int] = []
    reader = consumer_of(package, broker, [], **kind, **{"auto.commit.interval.ms": 600_000})
    group = f"g{next(groups) - 1}"

    def on_revoke(consumer: Any, partitions: Any) -> None:
        GIVE_UP[give_up](consumer, partitions)
        try:
            kept = consumer.assignment()
        except confluent_kafka.KafkaException as error:  # a peer that is slow to come here has none any more
            if error.args[0].code() != confluent_kafka.KafkaError._DESTROY:
                raise
            kept = []
        revoked.append(len(partitions) - len(kept))

    reader.subscribe([TOPIC], on_revoke=on_revoke)
    assert len(reader.consume(10, PATIENCE_S)) == 10
    reader.close()
    assert revoked == [1]
    assert committed(broker, group) == 10


def test_what_error_cb_raises_while_the_consumer_is_closed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    def on_error(error: headrace.KafkaError) -> None:
        told.append(error.name())
        raise ValueError("mine")

    reader = headrace.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "error_cb": on_error})
    reader.subscribe([TOPIC])
    with pytest.raises(ValueError, match="mine"):
        reader.poll(5)
    machines = reader._engine.machines
    machines.notify(machines.config["error_cb"], headrace.KafkaError(headrace.KafkaError._ALL_BROKERS_DOWN))
    reader.close()
    assert told[-1] == "_ALL_BROKERS_DOWN"
    assert "error_cb raised while the consumer was closed" in caplog.text
