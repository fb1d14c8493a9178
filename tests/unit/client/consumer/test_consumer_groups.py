"""Consumers in groups against the embedded broker: sharing, callbacks, commits, coming back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from headrace.admin import AdminClient, NewPartitions
from headrace.broker.settings import BrokerSettings
from headrace.client.consumer.consumer import Consumer
from headrace.errors import KafkaError, KafkaException
from headrace.testing import EmbeddedBroker
from headrace.types.records import OFFSET_INVALID, TopicPartition
from tests.support.group_members import consumer, fill, held, numbers, poll_until

STRATEGIES = ["range", "roundrobin", "cooperative-sticky"]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 4}) as broker:
        fill(broker, "t", 5)
        yield broker


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    return f"group of {request.node.name}"


def committed(broker: EmbeddedBroker, group: str) -> list[int]:
    """What the group has committed of the four partitions, as a consumer that is no member sees it."""
    with consumer(broker, group) as observer:
        return [tp.offset for tp in observer.committed([TopicPartition("t", p) for p in range(4)], timeout=5)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_share_the_partitions_and_take_over_from_one_that_leaves(
    broker: EmbeddedBroker, group: str, strategy: str
) -> None:
    properties = {"partition.assignment.strategy": strategy}
    first, second = consumer(broker, group, **properties), consumer(broker, group, **properties)
    first.subscribe(["t"])
    poll_until(lambda: held(first) == [4], first)
    second.subscribe(["t"])
    poll_until(lambda: held(first, second) == [2, 2], first, second)
    together = numbers(first.assignment()) + numbers(second.assignment())
    assert sorted(together) == [0, 1, 2, 3]
    second.close()
    poll_until(lambda: held(first) == [4], first)
    first.close()


def test_a_cooperative_member_keeps_what_does_not_move(broker: EmbeddedBroker, group: str) -> None:
    revoked: list[list[int]] = []
    properties = {"partition.assignment.strategy": "cooperative-sticky"}
    first, second = consumer(broker, group, **properties), consumer(broker, group, **properties)
    first.subscribe(["t"], on_revoke=lambda _, partitions: revoked.append(numbers(partitions)))
    poll_until(lambda: held(first) == [4], first)
    second.subscribe(["t"])
    poll_until(lambda: held(first, second) == [2, 2], first, second)
    assert [len(partitions) for partitions in revoked] == [2]
    first.close()
    second.close()


def test_callbacks_run_in_poll_and_choose_where_to_start(broker: EmbeddedBroker, group: str) -> None:
    seen: list[tuple[str, list[int]]] = []

    def on_assign(member: Consumer, partitions: list[TopicPartition]) -> None:
        seen.append(("assign", numbers(partitions)))
        member.assign([TopicPartition(tp.topic, tp.partition, 4) for tp in partitions])

    def on_revoke(member: Consumer, partitions: list[TopicPartition]) -> None:
        seen.append(("revoke", numbers(partitions)))

    member = consumer(broker, group)
    member.subscribe(["t"], on_assign=on_assign, on_revoke=on_revoke)
    time.sleep(0.2)
    assert seen == []
    assert [m.offset() for m in member.consume(4, 10)] == [4] * 4
    member.close()
    assert seen == [("assign", [0, 1, 2, 3]), ("revoke", [0, 1, 2, 3])]


def test_an_exception_in_a_callback_comes_out_of_poll_and_the_group_goes_on(
    broker: EmbeddedBroker, group: str
) -> None:
    def on_assign(member: Consumer, partitions: list[TopicPartition]) -> None:
        raise ZeroDivisionError

    member = consumer(broker, group)
    member.subscribe(["t"], on_assign=on_assign)
    with pytest.raises(ZeroDivisionError):
        member.poll(10)
    assert len(member.consume(20, 10)) == 20
    member.close()


def test_what_was_read_is_committed_on_close_and_not_read_again(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group) as member:
        member.subscribe(["t"])
        assert len(member.consume(12, 10)) == 12
    with consumer(broker, group) as member:
        member.subscribe(["t"])
        assert len(member.consume(8, 10)) == 8
        assert member.consume(1, 0.3) == []


def test_without_automatic_commits_everything_is_read_again(broker: EmbeddedBroker, group: str) -> None:
    for _ in range(2):
        with consumer(broker, group, **{"enable.auto.commit": False}) as member:
            member.subscribe(["t"])
            assert len(member.consume(20, 10)) == 20


def test_a_synchronous_commit_returns_what_the_group_has_now(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group, **{"enable.auto.commit": False}) as member:
        partitions = [TopicPartition("t", 0)]
        assert [tp.offset for tp in member.committed(partitions, timeout=5)] == [OFFSET_INVALID]
        result = member.commit(offsets=[TopicPartition("t", 0, 3, "why")], asynchronous=False)
        assert result is not None
        assert [(tp.offset, tp.error) for tp in result] == [(3, None)]
        [found] = member.committed(partitions, timeout=5)
        assert (found.offset, found.metadata) == (3, "why")


def test_committing_a_message_covers_it(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group, **{"enable.auto.commit": False}) as member:
        member.assign([TopicPartition("t", 1, 2)])
        message = member.poll(10)
        assert message is not None
        result = member.commit(message, asynchronous=False)
        assert result is not None
        assert [(tp.partition, tp.offset) for tp in result] == [(1, 3)]


def test_an_asynchronous_commit_is_told_to_on_commit_from_poll(broker: EmbeddedBroker, group: str) -> None:
    told: list[tuple[KafkaError | None, list[int]]] = []
    properties = {"enable.auto.commit": False,
                  "on_commit": lambda error, partitions: told.append((error, [tp.offset for tp in partitions]))}
    with consumer(broker, group, **properties) as member:
        assert member.commit(offsets=[TopicPartition("t", 0, 1)]) is None
        poll_until(lambda: bool(told), member)
    assert told == [(None, [1])]


def test_there_is_nothing_to_commit_before_something_was_read(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group) as member, pytest.raises(KafkaException) as nothing:
        member.commit(asynchronous=False)
    assert nothing.value.error == KafkaError._NO_OFFSET


def test_only_stored_offsets_are_committed_when_the_application_stores_them(
    broker: EmbeddedBroker, group: str
) -> None:
    with consumer(broker, group, **{"enable.auto.offset.store": False}) as member:
        member.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
        messages = [m for m in member.consume(10, 10) if m.partition() == 0]
        member.store_offsets(messages[2])
    with consumer(broker, group) as member:
        found = member.committed([TopicPartition("t", p) for p in (0, 1)], timeout=5)
    assert [tp.offset for tp in found] == [3, OFFSET_INVALID]


def test_storing_by_hand_is_refused_while_it_is_automatic(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group) as member, pytest.raises(KafkaException, match=r"enable\.auto\.offset\.store"):
        member.store_offsets(offsets=[TopicPartition("t", 0, 1)])


def test_offsets_are_committed_in_the_background(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group, **{"auto.commit.interval.ms": 100}) as member:
        member.subscribe(["t"])
        assert len(member.consume(20, 10)) == 20
        partitions = [TopicPartition("t", p) for p in range(4)]
        poll_until(lambda: [tp.offset for tp in member.committed(partitions, timeout=5)] == [5] * 4, member)


@pytest.mark.parametrize("name", ["enable.auto.commit", "auto.commit.enable"])
def test_automatic_commits_can_be_switched_off_under_both_names(broker: EmbeddedBroker, group: str, name: str) -> None:
    with consumer(broker, group, **{name: "false", "auto.commit.interval.ms": 1}) as member:
        member.subscribe(["t"])
        assert len(member.consume(20, 10)) == 20
        member.poll(0.2)
    assert committed(broker, group) == [OFFSET_INVALID] * 4


def test_an_interval_of_0_commits_on_close_only(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group, **{"auto.commit.interval.ms": 0}) as member:
        member.subscribe(["t"])
        assert len(member.consume(20, 10)) == 20
        member.poll(0.2)
        assert committed(broker, group) == [OFFSET_INVALID] * 4
    assert committed(broker, group) == [5] * 4


def test_unsubscribing_leaves_the_group_and_the_consumer_can_come_back(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group) as member:
        member.subscribe(["t"])
        assert len(member.consume(20, 10)) == 20
        member.unsubscribe()
        assert (member.assignment(), member.memberid()) == ([], None)
        member.subscribe(["t"])
        poll_until(lambda: held(member) == [4], member)


def test_a_pattern_picks_topics(broker: EmbeddedBroker, group: str) -> None:
    for name in ("pick-1", "pick-2"):
        broker.create_topic(name, 1)
    with consumer(broker, group) as member:
        member.subscribe(["^pick-.*"])
        poll_until(lambda: {tp.topic for tp in member.assignment()} == {"pick-1", "pick-2"}, member)


def test_another_pattern_finds_topics_that_came_meanwhile(broker: EmbeddedBroker, group: str) -> None:
    broker.create_topic("zfoo", 1)
    with consumer(broker, group) as member:
        member.subscribe(["^z.*o.*"])
        poll_until(lambda: {tp.topic for tp in member.assignment()} == {"zfoo"}, member)
        time.sleep(0.5)  # what is still under way would tell of it
        broker.create_topic("zbar", 1)
        member.subscribe(["^z...$"])
        poll_until(lambda: {tp.topic for tp in member.assignment()} == {"zfoo", "zbar"}, member)


def test_an_application_that_stops_polling_is_told_and_comes_back(broker: EmbeddedBroker, group: str) -> None:
    lost: list[list[int]] = []
    member = consumer(broker, group, **{"max.poll.interval.ms": 2000, "session.timeout.ms": 6000})
    member.subscribe(["t"], on_lost=lambda _, partitions: lost.append(numbers(partitions)))
    assert len(member.consume(20, 10)) == 20
    time.sleep(2.5)
    message = None
    deadline = time.monotonic() + 10
    while message is None and time.monotonic() < deadline:
        message = member.poll(0.1)
    assert message is not None
    assert message.error() == KafkaError._MAX_POLL_EXCEEDED
    assert lost == []  # the next call is told of them
    poll_until(lambda: lost == [[0, 1, 2, 3]], member)
    poll_until(lambda: held(member) == [4], member)
    member.close()


def test_a_member_that_dies_is_replaced_after_its_session() -> None:
    settings = BrokerSettings()
    with EmbeddedBroker(topics={"t": 4}, settings=settings) as broker:
        properties = {"session.timeout.ms": 1500, "heartbeat.interval.ms": 100}
        first, second = consumer(broker, "g", **properties), consumer(broker, "g", **properties)
        for member in (first, second):
            member.subscribe(["t"])
        poll_until(lambda: held(first, second) == [2, 2], first, second)
        first._waits.call(first._engine.machines.client.close())  # its connections are gone, and it says no goodbye
        poll_until(lambda: held(second) == [4], second, timeout_s=20)
        second.close()


@pytest.mark.parametrize("leads", [False, True], ids=["follower", "leader"])
def test_a_static_member_finds_its_partitions_again_without_a_rebalance(
    broker: EmbeddedBroker, group: str, leads: bool
) -> None:
    changes: list[str] = []
    other = consumer(broker, group, **{"group.instance.id": "one"})
    static = consumer(broker, group, **{"group.instance.id": "two"})
    joined: list[Consumer] = []
    for member in (static, other) if leads else (other, static):
        member.subscribe(["t"], on_revoke=lambda *_: changes.append("revoke"))
        joined.append(member)
        poll_until(lambda: sum(held(*joined)) == 4, *joined)
    poll_until(lambda: held(other, static) == [2, 2], other, static)
    had = numbers(static.assignment())
    static.close()
    changes.clear()
    back = consumer(broker, group, **{"group.instance.id": "two"})
    back.subscribe(["t"])
    poll_until(lambda: held(back) == [2], other, back)
    assert (numbers(back.assignment()), changes) == (had, [])
    back.close()
    other.close()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("leads", [False, True], ids=["follower", "leader"])
def test_a_static_member_that_comes_back_for_another_topic_reads_that_and_no_other(
    group: str, strategy: str, leads: bool
) -> None:
    given: set[str] = set()
    with EmbeddedBroker(topics={"t": 4, "u": 2}) as broker:
        other, static = (consumer(broker, group, **{
            "group.instance.id": name, "partition.assignment.strategy": strategy}) for name in ("one", "two"))
        joined: list[Consumer] = []
        for member in (static, other) if leads else (other, static):
            member.subscribe(["t"])
            joined.append(member)
            poll_until(lambda: sum(held(*joined)) == 4, *joined)
        poll_until(lambda: held(other, static) == [2, 2], other, static)
        static.close()
        back = consumer(broker, group, **{"group.instance.id": "two", "partition.assignment.strategy": strategy})
        back.subscribe(["u"], on_assign=lambda _, partitions: given.update(tp.topic for tp in partitions))
        poll_until(lambda: held(other, back) == [4, 2], other, back)
        assert given == {"u"}
        back.close()
        other.close()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_static_member_that_comes_back_alone_finds_the_partitions_that_were_made_meanwhile(
    group: str, strategy: str
) -> None:
    properties = {"group.instance.id": "one", "partition.assignment.strategy": strategy}
    with EmbeddedBroker(topics={"t": 1}) as broker, \
            AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        with consumer(broker, group, **properties) as static:
            static.subscribe(["t"])
            poll_until(lambda: held(static) == [1], static)
        admin.create_partitions([NewPartitions("t", 3)])["t"].result(10)
        with consumer(broker, group, **properties) as back:
            back.subscribe(["t"])
            poll_until(lambda: held(back) == [3], back)


def test_an_enforced_rebalance_brings_a_new_generation_and_gives_the_partitions_back(
    broker: EmbeddedBroker, group: str
) -> None:
    seen: list[str] = []
    with consumer(broker, group) as member:
        member.subscribe(["t"], on_assign=lambda *_: seen.append("assign"), on_revoke=lambda *_: seen.append("revoke"))
        poll_until(lambda: held(member) == [4], member)
        before = member.consumer_group_metadata()
        assert before is not None
        member.enforce_rebalance("the weather")
        poll_until(lambda: seen == ["assign", "revoke", "assign"], member)
        after = member.consumer_group_metadata()
        assert after is not None
        assert (after.generation, after.member_id) == (before.generation + 1, before.member_id)
        with pytest.raises(TypeError):
            member.enforce_rebalance(7)  # type: ignore[arg-type]
    with Consumer({"bootstrap.servers": broker.bootstrap_servers}) as alone, pytest.raises(KafkaException):
        alone.enforce_rebalance()


def test_a_consumer_may_be_closed_where_its_partitions_are_revoked(broker: EmbeddedBroker, group: str) -> None:
    revoked: list[list[int]] = []

    def on_revoke(member: Consumer, partitions: list[TopicPartition]) -> None:
        revoked.append(numbers(partitions))
        member.close()

    member = consumer(broker, group)
    member.subscribe(["t"], on_revoke=on_revoke)
    poll_until(lambda: held(member) == [4], member)
    member.close()
    assert revoked == [[0, 1, 2, 3]]
    with pytest.raises(RuntimeError, match="closed"):
        member.poll(0)


def test_a_topic_that_is_missing_beside_a_pattern_is_told(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group, **{"topic.metadata.refresh.interval.ms": 1000}) as member:
        member.subscribe(["^zz.*", "zzb"])
        deadline, told = time.monotonic() + 15, None
        while told is None and time.monotonic() < deadline:
            told = member.poll(0.1)
        assert told is not None
        error = told.error()
        assert error is not None
        assert (told.topic(), error) == ("zzb", KafkaError.UNKNOWN_TOPIC_OR_PART)
        assert '"zzb"' in error.str()
        broker.create_topic("zzb", 1)
        poll_until(lambda: {tp.topic for tp in member.assignment()} == {"zzb"}, member)


def test_a_pattern_of_another_dialect_is_refused(broker: EmbeddedBroker, group: str) -> None:
    with consumer(broker, group) as member, pytest.raises(KafkaException, match="no POSIX classes"):
        member.subscribe(["^P_[[:alpha:]]$"])
