"""Consumers with "group.protocol": "consumer" against the embedded broker: sharing, fencing, commits, lost answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

import headrace
from headrace import Producer
from headrace.aio import AIOConsumer
from headrace.broker.settings import BrokerSettings
from headrace.client.consumer.consumer import Consumer
from headrace.errors import KafkaError, KafkaException
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.types.records import TopicPartition
from headrace.wire.messages.consumer.offsets import OffsetCommitRequest, OffsetFetchRequest
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
from tests.support.group_members import fill, held, numbers, poll_until

INTERVAL_MS = 50
ALL = [TopicPartition("t", p) for p in range(4)]
Seen = list[tuple[str, list[int]]]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    settings = BrokerSettings(consumer_heartbeat_interval_ms=INTERVAL_MS)
    with EmbeddedBroker(topics={"t": 4}, settings=settings) as broker:
        fill(broker, "t", 5)
        yield broker


def properties(broker: EmbeddedBroker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest",
            "group.protocol": "consumer", "fetch.wait.max.ms": 50, "retry.backoff.ms": 20, **more}


@pytest.fixture
def members(broker: EmbeddedBroker) -> Iterator[Callable[..., Consumer]]:
    """Makes members of the group, which are closed after the test."""
    made: list[Consumer] = []

    def make(**more: Any) -> Consumer:
        made.append(Consumer(properties(broker, **more)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def follow(member: Consumer, seen: Seen, *topics: str) -> None:
    """Subscribe, and note the callbacks."""
    def note(what: str) -> Callable[[Any, list[TopicPartition]], None]:
        return lambda _, partitions: seen.append((what, numbers(partitions)))

    member.subscribe(list(topics) or ["t"], on_assign=note("assign"), on_revoke=note("revoke"), on_lost=note("lost"))


def fault(broker: EmbeddedBroker, code: int, **more: Any) -> None:
    broker.add_fault(Fault(**{"action": Action.ERROR, "request": ConsumerGroupHeartbeatRequest, "error_code": code,
                              **more}))


@pytest.mark.parametrize("package", [headrace, confluent_kafka], ids=["ours", "librdkafka's"])
def test_a_member_has_its_id_from_the_beginning_and_keeps_it(broker: EmbeddedBroker, package: Any) -> None:
    member = package.Consumer(properties(broker))
    try:
        given = member.memberid()
        assert given
        member.subscribe(["t"])
        poll_until(lambda: len(member.assignment()) == 4, member, timeout_s=30)
        assert member.memberid() == given
    finally:
        member.close()


def next_error(member: Consumer) -> KafkaError:
    errors: list[KafkaError] = []
    for _ in range(500):
        message = member.poll(0.02)
        if message is not None and message.error() is not None:
            errors.append(message.error())
            break
    assert errors, "nothing was reported"
    return errors[0]


def test_members_share_and_callbacks_are_of_what_changes(
    broker: EmbeddedBroker, members: Callable[..., Consumer]
) -> None:
    seen: tuple[Seen, Seen] = ([], [])
    first, second = members(), members()
    follow(first, seen[0])
    poll_until(lambda: held(first) == [4], first)
    follow(second, seen[1])
    poll_until(lambda: held(first, second) == [2, 2], first, second)
    second.close()
    poll_until(lambda: held(first) == [4], first)
    assert seen[0] == [("assign", [0, 1, 2, 3]), ("revoke", [2, 3]), ("assign", []), ("assign", [2, 3])]
    assert seen[1] == [("assign", [2, 3]), ("revoke", [2, 3])]


def test_the_assignment_is_changed_in_steps_by_the_application_too(members: Callable[..., Consumer]) -> None:
    refused: list[KafkaError] = []

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with pytest.raises(KafkaException) as error:
            consumer.assign(partitions)
        refused.append(error.value.error)
        consumer.incremental_assign([TopicPartition(tp.topic, tp.partition, 4) for tp in partitions])

    member = members()
    member.subscribe(["t"], on_assign=on_assign)
    found: list[Any] = []
    while len(found) < 4:
        found += member.consume(4, 0.1)
    assert {message.offset() for message in found} == {4}
    assert refused == [KafkaError._STATE]


def test_what_is_given_up_is_committed_before_it_is_anothers(members: Callable[..., Consumer]) -> None:
    first, second = members(), members()
    first.subscribe(["t"])
    read: list[tuple[int | None, int | None]] = []
    while len(read) < 12:
        read += [(m.partition(), m.offset()) for m in first.consume(12 - len(read), 0.1)]
    second.subscribe(["t"])
    for _ in range(300):
        for each in (first, second):
            read += [(m.partition(), m.offset()) for m in each.consume(3, 0.01)]
        if len(read) >= 20:
            break
    assert sorted(read) == [(p, offset) for p in range(4) for offset in range(5)]


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH])
@pytest.mark.parametrize("instance", ["", "i"])
def test_a_fenced_member_loses_its_partitions_and_joins_anew(
    broker: EmbeddedBroker, members: Callable[..., Consumer], code: int, instance: str
) -> None:
    seen: Seen = []
    member = members(**({"group.instance.id": instance} if instance else {}))
    follow(member, seen)
    poll_until(lambda: held(member) == [4], member)
    fault(broker, code)
    poll_until(lambda: len(seen) == 3 and held(member) == [4], member)
    assert seen == [("assign", [0, 1, 2, 3]), ("lost", [0, 1, 2, 3]), ("assign", [0, 1, 2, 3])]


@pytest.mark.parametrize("action", [Action.DROP, Action.CUT, Action.LOSE_REPLY])
@pytest.mark.parametrize("instance", ["", "i"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_heartbeat_that_is_lost_changes_nothing(
    broker: EmbeddedBroker, members: Callable[..., Consumer], action: Action, instance: str, at: int
) -> None:
    seen: Seen = []
    fault(broker, 0, action=action, after=at)
    member = members(**{"socket.timeout.ms": 1000, **({"group.instance.id": instance} if instance else {})})
    follow(member, seen)
    poll_until(lambda: held(member) == [4] and not broker_faults(broker), member)
    assert seen == [("assign", [0, 1, 2, 3])]


def broker_faults(broker: EmbeddedBroker) -> list[Fault]:
    return broker.apply(lambda cluster: list(cluster.faults.armed))


@pytest.mark.parametrize("code", [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_is_not_ready_is_waited_for_in_silence(
    broker: EmbeddedBroker, members: Callable[..., Consumer], code: int
) -> None:
    fault(broker, code, times=3)
    member = members()
    member.subscribe(["t"])
    found = []
    while len(found) < 20:
        found += member.consume(20, 0.1)
    assert [message.error() for message in found] == [None] * 20


def test_a_commit_with_an_outdated_epoch_is_repeated(broker: EmbeddedBroker, members: Callable[..., Consumer]) -> None:
    member = members(**{"enable.auto.commit": False})
    member.subscribe(["t"])
    poll_until(lambda: held(member) == [4], member)
    fault(broker, KafkaError.STALE_MEMBER_EPOCH, request=OffsetCommitRequest, times=2)
    [done] = member.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False) or ()
    assert done.error is None
    fault(broker, KafkaError.STALE_MEMBER_EPOCH, request=OffsetFetchRequest, times=2)
    assert [tp.offset for tp in member.committed(ALL[:1], 5)] == [3]


def test_a_commit_of_a_newer_epoch_needs_no_callback(broker: EmbeddedBroker, members: Callable[..., Consumer]) -> None:
    """A topic that grows is a new epoch; the partitions that a member has stay its own."""
    member, other = members(**{"enable.auto.commit": False}), members()
    member.subscribe(["t"])
    poll_until(lambda: held(member) == [4], member)
    before = member.consumer_group_metadata()
    other.subscribe(["u"])
    for _ in range(100):
        other.poll(0.02)
        now = member.consumer_group_metadata()
        if now != before:
            break
    assert before is not None
    assert now is not None
    assert (now.member_id, now.generation > before.generation) == (before.member_id, True)
    [done] = member.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False) or ()
    assert done.error is None


def test_offsets_of_a_transaction_are_refused_from_an_epoch_that_was_replaced(
    broker: EmbeddedBroker, members: Callable[..., Consumer]
) -> None:
    member = members(**{"enable.auto.commit": False})
    member.subscribe(["t"])
    poll_until(lambda: held(member) == [4], member)
    present = member.consumer_group_metadata()
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition("t", 0, 2)], present)
        producer.commit_transaction()
        member.unsubscribe()
        producer.begin_transaction()
        with pytest.raises(KafkaException) as refused:
            producer.send_offsets_to_transaction([TopicPartition("t", 0, 1)], present)
        assert refused.value.error.txn_requires_abort()
        producer.abort_transaction()
    assert [tp.offset for tp in member.committed(ALL[:1], 5)] == [2]


def test_an_application_that_does_not_poll_leaves_and_comes_back(
    broker: EmbeddedBroker, members: Callable[..., Consumer]
) -> None:
    seen: Seen = []
    late, other = members(**{"max.poll.interval.ms": 2000}), members()
    follow(late, seen)
    poll_until(lambda: held(late) == [4], late)
    time.sleep(2.2)
    other.subscribe(["t"])
    poll_until(lambda: held(other) == [4], other)
    assert next_error(late) == KafkaError._MAX_POLL_EXCEEDED
    poll_until(lambda: held(late, other) == [2, 2], late, other)
    assert seen[:2] == [("assign", [0, 1, 2, 3]), ("lost", [0, 1, 2, 3])]


def test_a_refusal_that_is_final_is_fatal_and_takes_the_partitions(
    broker: EmbeddedBroker, members: Callable[..., Consumer]
) -> None:
    seen: Seen = []
    member = members()
    follow(member, seen)
    poll_until(lambda: held(member) == [4], member)
    fault(broker, KafkaError.FENCED_INSTANCE_ID)
    error = next_error(member)
    assert (error, error.fatal()) == (KafkaError.FENCED_INSTANCE_ID, True)
    poll_until(lambda: held(member) == [0], member)
    assert seen[-1] == ("lost", [0, 1, 2, 3])


@pytest.mark.parametrize("release", ["2.8", "3.9"])
def test_brokers_without_the_protocol_are_a_fatal_error_that_names_version_and_remedy(release: str) -> None:
    with EmbeddedBroker(topics={"t": 1}, settings=BrokerSettings.of_kafka(release)) as broker, \
            Consumer(properties(broker)) as member:
        member.subscribe(["t"])
        error = next_error(member)
        assert error.fatal()
        assert "Apache Kafka 4.0" in error.str()
        assert 'set "group.protocol" to "classic"' in error.str()


def test_a_pattern_is_the_coordinators_and_topics_are_named_as_they_come(
    broker: EmbeddedBroker, members: Callable[..., Consumer]
) -> None:
    broker.create_topic("new-1", 1)
    member = members()
    member.subscribe(["^new-.*"])
    poll_until(lambda: {tp.topic for tp in member.assignment()} == {"new-1"}, member)
    broker.create_topic("new-2", 1)
    poll_until(lambda: {tp.topic for tp in member.assignment()} == {"new-1", "new-2"}, member)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("new-2", b"value")
    message = None
    while message is None:
        message = member.poll(0.1)
    assert (message.topic(), message.value()) == ("new-2", b"value")


def test_a_consumer_for_asyncio_is_a_member_too(broker: EmbeddedBroker) -> None:
    async def read() -> list[bytes | None]:
        async with AIOConsumer(properties(broker)) as consumer:
            await consumer.subscribe(["t"])
            found: list[Any] = []
            while len(found) < 20:
                found += await consumer.consume(20, 0.1)
            return [message.value() for message in found]

    assert len(asyncio.run(read())) == 20
