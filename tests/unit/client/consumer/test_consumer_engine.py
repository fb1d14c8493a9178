"""The consumer's engine, apart from its faces: it works with any kind of group, and names none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace.client
from headrace import Consumer
from headrace.aio import AIOConsumer
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.consumer.consumer_engine import ConsumerEngine
from headrace.client.waits import LoopWaits
from headrace.machines.groups.group_protocols import membership_of
from headrace.machines.groups.membership import Membership, MembershipFactory
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from headrace.net.thread import LoopCall
from headrace.records import PollFastPath
from headrace.testing import EmbeddedBroker
from headrace.types.records import TopicPartition
from tests.support.group_members import fill, numbers
from tests.support.static_membership import StaticMembership

CLIENT = Path(headrace.client.__file__).parent
STATIC: MembershipFactory = StaticMembership


class Reader(AIOConsumer):
    """A consumer in a group of another kind."""

    def __init__(self, config: dict[str, Any], membership: MembershipFactory) -> None:
        self._waits = LoopWaits()
        self._running, self._fast_path = 0, PollFastPath(AIOConsumer._next)
        self._given = ApplicationCallbacks(self)
        self._consumer = ConsumerEngine(config, self._given, self._waits.notify, awaits=True, membership=membership)

    @property
    def group(self) -> Membership | None:
        return self._engine.group


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 4}) as broker:
        fill(broker, "t", 5)
        yield broker


def properties(broker: EmbeddedBroker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "group.id": "alone", "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50, **more}


def test_a_member_of_another_kind_of_group_is_assigned_reads_commits_and_leaves(broker: EmbeddedBroker) -> None:
    told: list[tuple[str, list[int]]] = []

    async def main() -> None:
        async with Reader(properties(broker), STATIC) as reader:
            assert isinstance(reader.group, StaticMembership)
            await reader.subscribe(["t"], on_assign=lambda _, given: told.append(("assigned", numbers(given))),
                                   on_revoke=lambda _, gone: told.append(("revoked", numbers(gone))))
            messages = await reader.consume(20, 10)
            assert sorted((m.partition(), m.offset()) for m in messages) == [(p, o) for p in range(4) for o in range(5)]
            assert await reader.consumer_group_metadata() == ConsumerGroupMetadata("alone")
            assert await reader.memberid() is None
            done = await reader.commit(asynchronous=False)
            assert done is not None
            assert {tp.offset for tp in done} == {5}
            await reader.unsubscribe()
            assert await reader.assignment() == []
            assert reader.group.called == ["subscribe", "callback_done", "leave"]

    asyncio.run(main())
    assert told == [("assigned", [0, 1, 2, 3]), ("revoked", [0, 1, 2, 3])]


def test_what_is_stored_is_committed_by_itself_and_at_the_end_in_every_kind_of_group(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        async with Reader(properties(broker, **{"auto.commit.interval.ms": 50}), STATIC) as reader:
            await reader.subscribe(["t"])
            assert len(await reader.consume(10, 10)) == 10
            partitions = [TopicPartition("t", number) for number in range(4)]
            async with asyncio.timeout(10):
                while sum(max(tp.offset, 0) for tp in await reader.committed(partitions, 5)) < 10:
                    await asyncio.sleep(0.02)
            assert len(await reader.consume(10, 10)) == 10
        async with Reader(properties(broker), STATIC) as reader:
            assert [tp.offset for tp in await reader.committed(partitions, 5)] == [5, 5, 5, 5]

    asyncio.run(main())


def test_the_client_tells_a_membership_when_the_application_is_inside(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        async with Reader(properties(broker), STATIC) as reader:
            group = reader.group
            assert group is not None
            assert group.application_at == float("inf"), "nothing is late before the subscription"
            await reader.subscribe(["t"])
            assert group.application_at < float("inf")
            reading = asyncio.create_task(reader.consume(1000, 0.3))
            await asyncio.sleep(0.1)
            assert group.application_at == float("inf")
            await reading
            assert group.application_at < float("inf")

    asyncio.run(main())


def test_who_takes_what_is_there_is_not_late(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker)) as reader:
        reader.subscribe(["t"])
        assert len(reader.consume(1, 20)) == 1
        engine, group = reader._engine, reader._engine.group
        assert group is not None
        before = group.application_at
        assert engine.take_one() is not None
        assert group.application_at > before


def test_a_call_that_asks_for_no_messages_runs_callbacks(broker: EmbeddedBroker) -> None:
    told: list[list[int]] = []

    async def main() -> None:
        async with Reader(properties(broker), STATIC) as reader:
            await reader.subscribe(["t"], on_assign=lambda _, given: told.append(numbers(given)))
            async with asyncio.timeout(10):
                while not told:
                    assert await reader.consume(0) == [], "it does not wait"
                    await asyncio.sleep(0.01)

    asyncio.run(main())
    assert told == [[0, 1, 2, 3]]


def test_what_was_taken_before_a_callback_raised_comes_again(broker: EmbeddedBroker) -> None:
    class Broken(Exception):
        """Raised by a callback."""

    def fail(*_: object) -> None:
        raise Broken

    config = properties(broker, **{"on_commit": fail, "enable.auto.commit": False})
    with Consumer(config) as reader:
        reader.assign([TopicPartition("t", 0, 0)])
        threading.Timer(0.3, reader.commit).start()
        with pytest.raises(Broken):
            reader.consume(1000, 10)
        assert [message.offset() for message in reader.consume(5, 10)] == [0, 1, 2, 3, 4]


def test_a_thread_goes_to_the_loop_for_a_rebalance_and_not_for_records(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    went: list[str] = []
    start = LoopCall.start

    def counted(self: LoopCall[Any]) -> None:
        went.append(self._work.__qualname__.rpartition(".")[2])
        start(self)

    with Consumer(properties(broker, **{"enable.auto.commit": False})) as reader:
        monkeypatch.setattr(LoopCall, "start", counted)
        reader.subscribe(["t"])
        read = [reader.poll(10), *reader.consume(9, 10), *(reader.poll(10) for _ in range(10))]
        assert [message.error() for message in read if message is not None] == [None] * 20
        assert reader.poll(0) is None
        reader.position([TopicPartition("t", 0)])
        reader.consumer_group_metadata()
        assert went == ["subscribe", "_complete"]
        reader.commit(asynchronous=False)
        reader.unsubscribe()
        assert went == ["subscribe", "_complete", "commit", "leave_group"]


def test_no_module_of_the_clients_names_a_kind_of_group() -> None:
    for path in CLIENT.rglob("*.py"):
        source = path.read_text()
        assert "ClassicGroup" not in source, path
        assert "from headrace.machines.groups.classic" not in source, path
        assert "JoinState" not in source, path


def test_its_waits_are_spread_by_the_clients_jitter() -> None:
    async def work() -> None:
        reader = Reader({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, membership_of)
        machines = reader._engine.machines
        assert machines.finder.retries is machines.client.retries
        assert len({machines.finder.retries.wait_s(1) for _ in range(100)}) > 1
        await reader.close()

    asyncio.run(work())
