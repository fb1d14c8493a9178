"""Partitions come and go for the application only where it comes in to read, and it commits as whom it read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import confluent_kafka
import pytest

import headrace
from headrace.aio import AIOConsumer
from headrace.broker.faults import Action, Fault
from headrace.broker.settings import BrokerSettings
from headrace.client.consumer.consumer import Consumer
from headrace.errors import ClientClosedError, CommitError, KafkaError, KafkaException
from headrace.machines.groups.classic import ClassicGroup, JoinState
from headrace.machines.groups.membership import Left, Rebalance
from headrace.records import Message
from headrace.testing import EmbeddedBroker
from headrace.types.records import TopicPartition
from headrace.wire.messages.consumer.offsets import OffsetCommitRequest
from headrace.wire.messages.groups.classic_groups import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
from tests.support.group_members import consumer, fill, held, numbers, poll_until
from tests.support.raw_client import RawClient

STRATEGIES = ["range", "cooperative-sticky"]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 4}) as broker:
        fill(broker, "t", 5)
        yield broker


def places(messages: list[Message]) -> list[tuple[int | None, int | None]]:
    return [(message.partition(), message.offset()) for message in messages]


def read_twice(messages: list[Message]) -> list[tuple[int | None, int | None]]:
    seen = places(messages)
    return [place for place in set(seen) if seen.count(place) > 1]


def generation(member: Consumer) -> int:
    metadata = member.consumer_group_metadata()
    assert metadata is not None
    return metadata.generation


def moved_on(member: Consumer, beyond: int) -> Callable[[], bool]:
    """Whether the group has gone on to a later generation, which the application has not met yet."""
    group = member._engine.group
    assert isinstance(group, ClassicGroup)
    return lambda: group.generation > beyond and group.state is not JoinState.STABLE


def wait_until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    give_up_at = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_rebalance_ends_a_waiting_call_with_what_was_read_before(broker: EmbeddedBroker, strategy: str) -> None:
    properties = {"partition.assignment.strategy": strategy, "enable.auto.commit": False}
    with consumer(broker, "g", **properties) as first, ThreadPoolExecutor() as pool:
        first.subscribe(["t"])
        waiting = pool.submit(first.consume, 1000, 60)
        wait_until(lambda: sum(tp.offset for tp in first.assignment()) == 20)
        read_as = generation(first)
        with consumer(broker, "g", **properties) as second:
            second.subscribe(["t"])
            messages = waiting.result(timeout=20)
            assert read_twice(messages) == []
            assert len(messages) == 20
            assert generation(first) == read_as or strategy == "cooperative-sticky"
            poll_until(lambda: held(first, second) == [2, 2], first, second)
            assert generation(first) > read_as


def test_asyncio_calls_end_with_a_rebalance_too(broker: EmbeddedBroker) -> None:
    config: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 100, "fetch.wait.max.ms": 50, "enable.auto.commit": False}

    async def read() -> None:
        first, second = AIOConsumer(config), AIOConsumer(config)
        await first.subscribe(["t"])
        waiting = asyncio.create_task(first.consume(1000, 60))
        while sum(tp.offset for tp in await first.assignment()) < 20:
            await asyncio.sleep(0.01)
        await second.subscribe(["t"])
        joining = asyncio.create_task(second.consume(1, 30))
        messages = await asyncio.wait_for(waiting, 20)
        assert (len(messages), read_twice(messages)) == (20, [])
        reading = asyncio.create_task(first.consume(1000, 30))
        assert len(await asyncio.wait_for(joining, 20)) == 1
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await first.close()
        await second.close()

    asyncio.run(read())


@pytest.mark.parametrize("call", [lambda member: member.poll(60), lambda member: member.unsubscribe()],
                         ids=["poll", "unsubscribe"])
def test_who_is_cancelled_while_offsets_are_committed_waits_for_them_no_longer(
    broker: EmbeddedBroker, call: Callable[[Any], Any]
) -> None:
    async def run() -> None:
        async with AIOConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g",
                                "auto.offset.reset": "earliest", "auto.commit.interval.ms": 600_000}) as member:
            await member.subscribe(["t"])
            assert len(await member.consume(20, 20)) == 20
            broker.add_fault(Fault(action=Action.SILENCE, request=OffsetCommitRequest, times=None))
            try:
                await member.enforce_rebalance()
                calling = asyncio.create_task(call(member))
                while not member._engine.machines.group_offsets.is_committing:
                    await asyncio.sleep(0.01)
                calling.cancel()
                done, _ = await asyncio.wait([calling], timeout=10)
                assert [each.cancelled() for each in done] == [True]
            finally:
                broker.clear_faults()

    asyncio.run(run())


def test_a_call_that_is_cancelled_in_the_moment_in_which_the_group_is_left_ends_as_cancelled(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leave() -> None:
        async with AIOConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g",
                                "auto.offset.reset": "earliest"}) as member:
            await member.subscribe(["t"])
            assert len(await member.consume(1, 10)) == 1
            rebalances = member._engine.rebalances
            on_event, leaving = rebalances.on_event, asyncio.create_task(member.unsubscribe())

            def then_cancelled(event: Rebalance | Left) -> None:
                on_event(event)
                leaving.cancel()

            monkeypatch.setattr(rebalances, "on_event", then_cancelled)
            with pytest.raises(asyncio.CancelledError):
                await leaving

    asyncio.run(leave())


def rebalance(member: Consumer, broker: EmbeddedBroker, told: list[int]) -> None:
    with consumer(broker, "g") as other:
        other.subscribe(["t"])
        poll_until(lambda: bool(told), member, other)


@pytest.mark.parametrize("calls", [Consumer.unsubscribe, Consumer.close])
@pytest.mark.parametrize("ends", [
    lambda member, broker, told: member.unsubscribe(), lambda member, broker, told: member.close(), rebalance,
], ids=["unsubscribe", "close", "a rebalance"])
def test_an_on_revoke_that_leaves_the_group_hears_of_its_partitions_once(
    broker: EmbeddedBroker, calls: Callable[[Consumer], None], ends: Callable[..., None]
) -> None:
    told: list[int] = []

    def on_revoke(member: Consumer, partitions: list[TopicPartition]) -> None:
        told.extend(numbers(partitions))
        calls(member)

    with consumer(broker, "g") as member:
        member.subscribe(["t"], on_revoke=on_revoke)
        poll_until(lambda: held(member) == [4], member)
        try:
            ends(member, broker, told)
        except ClientClosedError:  # of a poll() behind the callback
            assert calls is Consumer.close
    assert sorted(told) == [0, 1, 2, 3]


@pytest.mark.parametrize("package", [headrace, confluent_kafka], ids=["ours", "librdkafka's"])
@pytest.mark.parametrize(("strategy", "stops"), [
    ("range", lambda member: member.unassign()),
    ("range", lambda member: member.assign(member.assignment()[:1])),
    ("cooperative-sticky", lambda member: member.incremental_unassign(member.assignment()[:1]))])
def test_on_revoke_hears_at_the_end_of_what_the_application_has_stopped_reading_by_itself(
    broker: EmbeddedBroker, package: Any, strategy: str, stops: Callable[[Any], None]
) -> None:
    told: list[tuple[int, int]] = []
    member = package.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g",
                               "partition.assignment.strategy": strategy})
    member.subscribe(["t"], on_revoke=lambda _, partitions: told.extend((tp.partition, tp.offset) for tp in partitions))
    poll_until(lambda: held(member) == [4], member)
    stops(member)
    member.close()
    assert sorted(told) == [(partition, headrace.OFFSET_INVALID) for partition in range(4)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("calls", [Consumer.unsubscribe, Consumer.close])
def test_on_revoke_hears_of_what_on_assign_was_told_when_that_leaves_the_group(
    broker: EmbeddedBroker, calls: Callable[[Consumer], None], strategy: str
) -> None:
    gained: list[int] = []
    told: list[int] = []

    def on_assign(member: Consumer, partitions: list[TopicPartition]) -> None:
        gained.extend(numbers(partitions))
        calls(member)

    with consumer(broker, "g", **{"partition.assignment.strategy": strategy}) as member:
        member.subscribe(["t"], on_assign=on_assign, on_revoke=lambda _, partitions: told.extend(numbers(partitions)))
        with pytest.raises(ClientClosedError) if calls is Consumer.close else nullcontext():
            poll_until(lambda: bool(gained), member)
            member.assignment()
    assert sorted(told) == sorted(gained) == [0, 1, 2, 3]


def test_nothing_of_a_partition_that_is_to_be_given_up_is_handed_out_after_the_rebalance_began(
    broker: EmbeddedBroker
) -> None:
    told: list[str] = []
    with consumer(broker, "g") as first, consumer(broker, "g") as second:
        first.subscribe(["t"], on_revoke=lambda _, partitions: told.append("revoked"))
        assert len(first.consume(4, 10)) == 4
        second.subscribe(["t"])
        wait_until(lambda: bool(first._engine.callbacks))
        assert first.consume(16, 0) == []
        assert told == ["revoked"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_partitions_stay_with_the_application_until_it_comes_in(broker: EmbeddedBroker, strategy: str) -> None:
    properties = {"partition.assignment.strategy": strategy}
    with consumer(broker, "g", **properties) as first, consumer(broker, "g", **properties) as second:
        first.subscribe(["t"])
        poll_until(lambda: held(first) == [4], first)
        second.subscribe(["t"])
        for _ in range(20):
            second.poll(0.05)
        assert held(first, second) == [4, 0]
        poll_until(lambda: held(first, second) == [2, 2], first, second)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_commit_does_not_set_back_a_partition_that_moved(broker: EmbeddedBroker, strategy: str) -> None:
    properties = {"partition.assignment.strategy": strategy, "enable.auto.commit": False}
    with consumer(broker, "g", **properties) as first, consumer(broker, "g", **properties) as second:
        first.subscribe(["t"])
        poll_until(lambda: held(first) == [4], first)
        second.subscribe(["t"])
        poll_until(lambda: held(first, second) == [2, 2], first, second)
        poll_until(lambda: len({generation(first), generation(second)}) == 1, first, second)
        moved, kept = numbers(second.assignment())[0], numbers(first.assignment())[0]
        second.commit(offsets=[TopicPartition("t", moved, 900)], asynchronous=False)
        with pytest.raises(KafkaException) as refused:
            first.commit(offsets=[TopicPartition("t", moved, 5)], asynchronous=False)
        assert refused.value.error == KafkaError.ILLEGAL_GENERATION
        with pytest.raises(CommitError) as partly:
            first.commit(offsets=[TopicPartition("t", moved, 5), TopicPartition("t", kept, 3)], asynchronous=False)
        told = {tp.partition: tp.error for tp in partly.value.partitions}
        assert told == {moved: KafkaError.ILLEGAL_GENERATION, kept: None}
        found = second.committed([TopicPartition("t", moved), TopicPartition("t", kept)], timeout=5)
        assert [tp.offset for tp in found] == [900, 3]


def test_what_was_read_before_a_rebalance_of_a_cooperative_group_is_committed_within_it(
    broker: EmbeddedBroker
) -> None:
    properties = {"partition.assignment.strategy": "cooperative-sticky", "enable.auto.commit": False}
    with consumer(broker, "g", **properties) as first, consumer(broker, "g", **properties) as second:
        first.subscribe(["t"])
        assert len(first.consume(20, 10)) == 20
        read_as = generation(first)
        second.subscribe(["t"])
        wait_until(lambda: second.poll(0.01) is None and moved_on(first, read_as)())
        committed = first.commit(asynchronous=False)
        assert committed is not None
        assert sorted((tp.partition, tp.offset, tp.error) for tp in committed) == [(p, 5, None) for p in range(4)]
        assert len(first.assignment()) == 4, "the application has not met the rebalance"
        poll_until(lambda: held(first, second) == [2, 2], first, second)
        assert {tp.offset for tp in second.committed(second.assignment(), timeout=5)} == {5}


def test_what_is_committed_in_on_revoke_is_taken(broker: EmbeddedBroker) -> None:
    committed: list[int] = []

    def on_revoke(member: Consumer, partitions: list[TopicPartition]) -> None:
        done = member.commit(offsets=[TopicPartition(tp.topic, tp.partition, 2) for tp in partitions],
                             asynchronous=False)
        assert done is not None
        committed.extend(tp.partition for tp in done if tp.error is None)

    for strategy in STRATEGIES:
        committed.clear()
        properties = {"partition.assignment.strategy": strategy, "enable.auto.commit": False}
        with consumer(broker, strategy, **properties) as first, consumer(broker, strategy, **properties) as second:
            first.subscribe(["t"], on_revoke=on_revoke)
            poll_until(lambda: held(first) == [4], first)
            second.subscribe(["t"])
            poll_until(lambda: held(first, second) == [2, 2], first, second)
            assert len(committed) == (4 if strategy == "range" else 2)


def test_what_is_committed_in_on_revoke_while_closing_carries_the_newest_generation(broker: EmbeddedBroker) -> None:
    committed: list[int] = []

    def on_revoke(member: Consumer, partitions: list[TopicPartition]) -> None:
        done = member.commit(asynchronous=False)
        assert done is not None
        committed.extend(tp.partition for tp in done if tp.error is None)

    properties = {"partition.assignment.strategy": "cooperative-sticky", "enable.auto.commit": False}
    with consumer(broker, "g", **properties) as second:
        with consumer(broker, "g", **properties) as first:
            first.subscribe(["t"], on_revoke=on_revoke)
            assert len(first.consume(20, 10)) == 20
            read_as = generation(first)
            second.subscribe(["t"])
            moved, waiting = moved_on(first, read_as), first._engine.callbacks
            wait_until(lambda: second.poll(0.01) is None and moved() and bool(waiting))
        assert sorted(committed) == [0, 1, 2, 3]


def test_the_automatic_commit_waits_for_the_application_to_meet_a_rebalance(broker: EmbeddedBroker) -> None:
    failures: list[KafkaError] = []
    properties = {"partition.assignment.strategy": "cooperative-sticky", "auto.commit.interval.ms": 50,
                  "on_commit": lambda error, _: failures.append(error) if error is not None else None}
    with consumer(broker, "g", **properties) as first, consumer(broker, "g", **properties) as second:
        first.subscribe(["t"])
        assert len(first.consume(20, 10)) == 20
        read_as = generation(first)
        second.subscribe(["t"])
        wait_until(lambda: second.poll(0.01) is None and moved_on(first, read_as)())
        time.sleep(0.3)
        poll_until(lambda: held(first, second) == [2, 2], first, second)
        assert failures == []


def test_a_replaced_static_member_is_told_that_its_partitions_are_lost(broker: EmbeddedBroker) -> None:
    lost: list[list[int]] = []
    properties = {"group.instance.id": "one", "enable.auto.commit": False}
    with consumer(broker, "g", **properties) as first, consumer(broker, "g", **properties) as second:
        first.subscribe(["t"], on_lost=lambda _, partitions: lost.append(numbers(partitions)))
        assert len(first.consume(4, 10)) == 4
        second.subscribe(["t"])
        poll_until(lambda: held(second) == [4], second)
        wait_until(lambda: bool(first._engine.callbacks))
        [fenced] = first.consume(1, 5)
        assert fenced.error() == KafkaError.FENCED_INSTANCE_ID
        assert lost == [[0, 1, 2, 3]]
        assert held(first) == [0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_whose_commit_is_refused_hears_at_once_that_it_is_none_any_more(protocol: str) -> None:
    settings = BrokerSettings(consumer_heartbeat_interval_ms=600_000)
    seen: list[str] = []
    properties: dict[str, Any] = {"group.id": "g", "enable.auto.commit": False, "group.protocol": protocol}
    if protocol == "classic":
        properties |= {"heartbeat.interval.ms": 600_000, "session.timeout.ms": 1_200_000}
    with EmbeddedBroker(topics={"t": 1}, settings=settings) as broker, \
            Consumer({**properties, "bootstrap.servers": broker.bootstrap_servers}) as member:
        member.subscribe(["t"], on_assign=lambda *_: seen.append("assign"), on_lost=lambda *_: seen.append("lost"))
        poll_until(lambda: bool(seen), member)
        member.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        with RawClient(broker) as other:
            member_id = member.memberid() or ""
            other.call(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)])
                       if protocol == "classic" else
                       ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=-1))
        with pytest.raises(KafkaException) as raised:
            member.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
        assert raised.value.error == KafkaError.UNKNOWN_MEMBER_ID
        poll_until(lambda: len(seen) == 3, member)
        assert seen == ["assign", "lost", "assign"]
        member.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)


def test_what_is_lost_is_told_on_close(broker: EmbeddedBroker) -> None:
    lost: list[list[int]] = []
    properties = {"group.instance.id": "one", "enable.auto.commit": False}
    with consumer(broker, "g", **properties) as second:
        with consumer(broker, "g", **properties) as first:
            first.subscribe(["t"], on_lost=lambda _, partitions: lost.append(numbers(partitions)))
            assert len(first.consume(4, 10)) == 4
            second.subscribe(["t"])
            poll_until(lambda: held(second) == [4], second)
            wait_until(lambda: bool(first._engine.callbacks))
        assert lost == [[0, 1, 2, 3]]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_on_revoke_gives_up_by_itself_is_committed_before_another_member_reads_it(
    broker: EmbeddedBroker, strategy: str
) -> None:
    def on_revoke(member: Consumer, partitions: list[TopicPartition]) -> None:
        if strategy == "range":
            member.unassign()
        else:
            member.incremental_unassign(partitions)

    properties = {"partition.assignment.strategy": strategy, "auto.commit.interval.ms": 600_000}
    with consumer(broker, "g", **properties) as first, consumer(broker, "g", **properties) as second:
        first.subscribe(["t"], on_revoke=on_revoke)
        assert len(first.consume(20, 10)) == 20
        second.subscribe(["t"])
        poll_until(lambda: held(first, second) == [2, 2], first, second)
        assert second.consume(1, 0.5) == []
        assert {tp.offset for tp in second.committed([TopicPartition("t", p) for p in range(4)], timeout=5)} >= {5}
        assert {tp.offset for tp in second.committed(second.assignment(), timeout=5)} == {5}


def test_what_is_given_up_outside_of_a_group_is_committed_and_told(broker: EmbeddedBroker) -> None:
    told: list[tuple[KafkaError | None, list[int]]] = []
    properties = {"auto.commit.interval.ms": 600_000, "on_commit": lambda error, partitions: told.append(
        (error, [tp.offset for tp in partitions]))}
    with consumer(broker, "g", **properties) as reader:
        reader.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
        assert len(reader.consume(10, 10)) == 10
        reader.incremental_unassign([TopicPartition("t", 1)])
        wait_until(lambda: reader.poll(0.01) is None and bool(told))
        assert told == [(None, [5])]
        reader.assign([TopicPartition("t", 0)])
        assert reader.consume(1, 0.5) == [], "it is read from where it was committed"
        assert told == [(None, [5]), (None, [5])]


@pytest.mark.parametrize("by_itself", [True, False])
def test_what_is_lost_is_not_committed_although_on_lost_gives_it_up(broker: EmbeddedBroker, by_itself: bool) -> None:
    lost: list[list[int]] = []

    def on_lost(member: Consumer, partitions: list[TopicPartition]) -> None:
        lost.append(numbers(partitions))
        if by_itself:
            member.unassign()

    failures: list[KafkaError] = []
    properties = {"group.instance.id": "one", "auto.commit.interval.ms": 600_000,
                  "on_commit": lambda error, _: failures.append(error)}
    with consumer(broker, "g", **properties) as first, consumer(broker, "g", **properties) as second:
        first.subscribe(["t"], on_lost=on_lost)
        assert len(first.consume(20, 10)) == 20
        second.subscribe(["t"])
        poll_until(lambda: held(second) == [4], second)
        wait_until(lambda: bool(first._engine.callbacks))
        first.consume(1, 5)
        assert lost == [[0, 1, 2, 3]]
        first.poll(0.2)
        assert failures == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_had_no_partitions_is_not_told_that_they_are_lost(protocol: str) -> None:
    lost: list[list[int]] = []
    given: list[list[int]] = []
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False)) as broker:
        properties: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g",
                                      "group.protocol": protocol, "max.poll.interval.ms": 1500}
        if protocol == "classic":
            properties |= {"session.timeout.ms": 1500, "heartbeat.interval.ms": 100}
        with Consumer(properties) as member:
            member.subscribe(["missing"], on_assign=lambda _, partitions: given.append(numbers(partitions)),
                             on_lost=lambda _, partitions: lost.append(numbers(partitions)))
            poll_until(lambda: member.health().group_state == "stable", member)
            time.sleep(2)
            poll_until(lambda: (message := member.poll(0)) is not None
                       and message.error() == KafkaError._MAX_POLL_EXCEEDED)
            poll_until(lambda: member.health().group_state == "stable", member)
            assert lost == []
            assert given[:1] == ([[]] if protocol == "classic" else []), "who gets a plan is told also of an empty one"


@pytest.mark.parametrize("package", [headrace, confluent_kafka])
def test_who_subscribes_again_in_an_eager_group_gets_back_what_it_gave_up_by_itself(
    broker: EmbeddedBroker, package: Any
) -> None:
    properties = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    member = package.Consumer(properties)
    member.subscribe(["t"])
    assert len(member.consume(20, 10)) == 20
    member.unassign()
    assert member.assignment() == []
    member.subscribe(["t"])
    poll_until(lambda: held(member) == [4], member)
    member.close()


@pytest.mark.parametrize(("package", "then_held"), [(headrace, 2), (confluent_kafka, 4)])
def test_a_static_member_that_unsubscribes_keeps_its_place_for_a_session_as_in_java(
    broker: EmbeddedBroker, package: Any, then_held: int
) -> None:
    first, second = (package.Consumer({
        "bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "group.instance.id": name,
        "heartbeat.interval.ms": 100}) for name in "ab")
    for member in first, second:
        member.subscribe(["t"])
    poll_until(lambda: held(first, second) == [2, 2], first, second)
    first.unsubscribe()
    give_up_at = time.monotonic() + (10 if then_held == 4 else 2)
    while held(second) != [4] and time.monotonic() < give_up_at:
        first.poll(0.02)
        second.poll(0.02)
    assert held(second) == [then_held]
    first.subscribe(["t"])
    poll_until(lambda: held(first, second) == [2, 2], first, second)
    first.close()
    second.close()


@pytest.mark.parametrize("properties", [
    {"partition.assignment.strategy": "cooperative-sticky"}, {"group.protocol": "consumer"}], ids=["classic", "planned"]
)
def test_what_the_group_gives_a_member_that_is_leaving_is_not_taken_up(properties: dict[str, Any]) -> None:
    given: list[list[int]] = []
    with EmbeddedBroker(topics={"t": 4}, settings=BrokerSettings(consumer_heartbeat_interval_ms=100)) as broker:
        properties |= {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}
        if "group.protocol" not in properties:
            properties["heartbeat.interval.ms"] = 100
        first, second = Consumer(properties), Consumer(properties)

        def on_revoke(member: Consumer, _: list[TopicPartition]) -> None:
            second.close()
            wait_until(lambda: any(waiting.rebalance is not None for waiting in member._engine.callbacks))

        first.subscribe(["t"])
        second.subscribe(["t"])
        poll_until(lambda: held(first, second) == [2, 2] and all(
            member.health().group_state == "stable" for member in (first, second)), first, second)
        first.subscribe(["t"], lambda _, partitions: given.append(numbers(partitions)), on_revoke)
        first.unsubscribe()
        assert first.poll(0.1) is None
        assert (given, first.assignment()) == ([], [])
        first.subscribe(["t"], lambda _, partitions: given.append(numbers(partitions)))
        poll_until(lambda: held(first) == [4], first)
        assert given == [[0, 1, 2, 3]]
        first.close()
