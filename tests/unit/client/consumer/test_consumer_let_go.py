"""Consumers that nobody holds any more and nobody has closed: they end, whatever still leads back to them."""

from __future__ import annotations

import asyncio
import gc
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from headrace.admin import AdminClient
from headrace.buffers import implementation
from headrace.client.consumer.aio_consumer import AIOConsumer
from headrace.client.consumer.consumer import Consumer
from headrace.client.producer.producer import Producer
from headrace.errors import KafkaError, KafkaException
from headrace.net.thread import loop_thread
from headrace.testing import EmbeddedBroker
from headrace.types.records import OFFSET_BEGINNING, OFFSET_INVALID, TopicPartition
from tests.support.let_go import SOON_S, is_gone, until

RECORDS = 5


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(RECORDS):
                producer.produce("t", b"%d" % number)
            assert producer.flush(10) == 0
        yield broker


@pytest.fixture
def conf(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Properties of a member of a group that would keep its partitions for a long time if nobody told the group."""
    return {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"group of {request.node.name}",
            "auto.offset.reset": "earliest", "session.timeout.ms": 60_000, "fetch.wait.max.ms": 50}


def members(conf: dict[str, Any]) -> int:
    with AdminClient({"bootstrap.servers": conf["bootstrap.servers"]}) as admin:
        group = admin.describe_consumer_groups([conf["group.id"]])[conf["group.id"]]
        try:
            return len(group.result(SOON_S).members)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return 0
            raise


def sockets() -> int:
    found = 0
    for file in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # it was closed meanwhile
            found += os.readlink(f"/proc/self/fd/{file}").startswith("socket:")
    return found


def tasks_and_timers() -> tuple[int, int]:
    async def count() -> tuple[int, int]:
        loop: Any = asyncio.get_running_loop()
        return len(asyncio.all_tasks()), sum(not timer.cancelled() for timer in loop._scheduled)

    return loop_thread().call(count())


def joined(reader: Consumer) -> Consumer:
    """A member that has read a record."""
    message = reader.poll(10)
    assert message is not None
    assert message.error() is None
    return reader


def reader_of(conf: dict[str, Any]) -> Consumer:
    reader = Consumer(conf)
    reader.subscribe(["t"])
    return joined(reader)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_consumer_that_is_let_go_leaves_its_group_and_no_connection_task_or_timer(conf: dict[str, Any]) -> None:
    reader_of(conf).close()
    before, running = sockets(), tasks_and_timers()
    reader = reader_of(conf)
    assert members(conf) == 1
    del reader  # nothing leads back to it: no collection is needed
    until(lambda: members(conf) == 0)
    until(lambda: sockets() <= before)
    until(lambda: tasks_and_timers() <= running)


def test_another_member_has_the_partitions_of_one_that_was_let_go_at_once(conf: dict[str, Any]) -> None:
    first, second = reader_of(conf), Consumer({**conf, "heartbeat.interval.ms": 50})
    second.subscribe(["t"])
    del first
    until(lambda: (second.poll(0.05), len(second.assignment()) == 1)[1])
    second.close()


def test_what_a_consumer_that_is_let_go_has_read_is_not_committed(conf: dict[str, Any]) -> None:
    """Whoever let it go may have failed in the middle of its work: as after a crash, the records come again."""
    reader = reader_of(conf)
    del reader
    until(lambda: members(conf) == 0)
    with Consumer(conf) as other:
        assert other.committed([TopicPartition("t", 0)], SOON_S)[0].offset == OFFSET_INVALID


class Worker:
    """An application that owns a consumer and gives it its own methods to call."""

    def __init__(self, conf: dict[str, Any]) -> None:
        told: dict[str, Any] = {
            "error_cb": self.told, "stats_cb": self.told, "throttle_cb": self.told, "on_commit": self.told,
            "statistics.interval.ms": 20, "auto.commit.interval.ms": 50}
        self.count = 0
        self.faces: list[Any] = []
        self.reader = Consumer({**conf, **told})
        self.reader.subscribe(["t"], on_assign=self.rebalanced, on_revoke=self.rebalanced, on_lost=self.rebalanced)

    def told(self, *arguments: Any) -> None:
        self.count += 1

    def rebalanced(self, reader: Consumer, partitions: list[TopicPartition]) -> None:
        self.faces.append(reader)


def test_callbacks_that_lead_back_to_a_consumer_do_not_keep_it(conf: dict[str, Any]) -> None:
    def used() -> weakref.ref[Consumer]:
        worker = Worker(conf)
        joined(worker.reader)
        until(lambda: (worker.reader.poll(0.02), worker.count > 3)[1])
        assert worker.faces == [worker.reader], "and they are called with the consumer itself"
        return weakref.ref(worker.reader)

    gone = used()
    gc.collect()
    assert gone() is None
    until(lambda: members(conf) == 0)


@pytest.mark.skipif(implementation == "plain", reason="the collector sees the plain twin of what a client ends with")
def test_who_closes_in_a_del_method_is_told_and_commits_also_in_a_circle(conf: dict[str, Any]) -> None:
    revoked: list[int] = []

    class Owner:
        def __init__(self) -> None:
            self.reader = Consumer({**conf, "error_cb": self.told})
            self.reader.subscribe(["t"], on_revoke=self.revoked)

        def told(self, error: KafkaError) -> None:
            pass

        def revoked(self, reader: Consumer, partitions: list[TopicPartition]) -> None:
            assert reader is self.reader
            revoked.append(len(partitions))

        def __del__(self) -> None:
            self.reader.close()

    joined(Owner().reader)
    gc.collect()
    assert revoked == [1]
    with Consumer(conf) as other:
        assert other.committed([TopicPartition("t", 0)], SOON_S)[0].offset == 1


def test_callbacks_that_wait_to_be_called_do_not_keep_a_consumer(conf: dict[str, Any]) -> None:
    def used() -> weakref.ref[Consumer]:
        worker = Worker(conf)
        until(lambda: len(worker.reader._engine.callbacks) >= 2)  # the assignment, statistics: nobody polls for them
        return weakref.ref(worker.reader)

    gone = used()
    gc.collect()
    assert gone() is None
    until(lambda: members(conf) == 0)


def test_a_consumer_without_a_group_is_gone_when_it_is_let_go(conf: dict[str, Any]) -> None:
    before = sockets()
    reader = Consumer({**conf, "group.id": ""})
    reader.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
    joined(reader)
    gone = weakref.ref(reader)
    del reader
    assert gone() is None
    until(lambda: sockets() <= before)


def test_a_consumer_whose_brokers_are_away_is_gone_when_it_is_let_go(conf: dict[str, Any]) -> None:
    reader = Consumer({**conf, "bootstrap.servers": "127.0.0.1:1"})
    reader.subscribe(["t"])
    assert reader.poll(0.1) is None
    driver = weakref.ref(reader._engine._client.driver)  # the loop's timers and tasks lead to it, and to no other's
    del reader
    until(lambda: is_gone(driver))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_that_lets_a_consumer_go_leaves_the_parents_alone(conf: dict[str, Any]) -> None:
    reader = reader_of(conf)
    child = os.fork()
    if child == 0:
        del reader
        gc.collect()
        time.sleep(0.2)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert members(conf) == 1
    rest = reader.consume(RECORDS - 1, SOON_S)
    assert [message.error() for message in rest] == [None] * (RECORDS - 1)
    reader.close()


async def aio_until(happened: Callable[[], Any]) -> None:
    async with asyncio.timeout(SOON_S):
        while not await asyncio.to_thread(happened):
            await asyncio.sleep(0.01)


async def aio_reader(conf: dict[str, Any]) -> AIOConsumer:
    reader = AIOConsumer(conf)
    await reader.subscribe(["t"])
    message = await reader.poll(10)
    assert message is not None
    assert message.error() is None
    return reader


@pytest.mark.parametrize("collect", [gc.collect, lambda: asyncio.to_thread(gc.collect)],
                         ids=["on the loop", "on another thread"])
def test_an_asyncio_consumer_that_is_let_go_leaves_its_group_and_nothing_on_the_loop(
    conf: dict[str, Any], collect: Callable[[], Any]
) -> None:
    async def main() -> None:
        before = await asyncio.to_thread(sockets)
        reader = await aio_reader(conf)
        reader.own = reader  # type: ignore[attr-defined]  # only a collection finds it
        assert await asyncio.to_thread(members, conf) == 1
        del reader
        collected = collect()
        if asyncio.iscoroutine(collected):
            await collected
        await aio_until(lambda: members(conf) == 0)
        await aio_until(lambda: sockets() <= before)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_coroutine_callbacks_that_lead_back_to_an_asyncio_consumer_do_not_keep_it(conf: dict[str, Any]) -> None:
    async def used() -> weakref.ref[AIOConsumer]:
        faces: list[AIOConsumer] = []

        async def on_assign(reader: AIOConsumer, partitions: list[TopicPartition]) -> None:
            faces.append(reader)

        async def told(*arguments: Any) -> None:
            assert faces is not None

        reader = AIOConsumer({**conf, "stats_cb": told, "statistics.interval.ms": 20})
        await reader.subscribe(["t"], on_assign=on_assign)
        while not faces:
            await reader.poll(0.05)
        assert faces == [reader]
        return weakref.ref(reader)

    async def main() -> None:
        gone = await used()
        await aio_until(lambda: is_gone(gone))  # the loop may be in the middle of a callback
        await aio_until(lambda: members(conf) == 0)

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # asyncio's own, about its transports
@pytest.mark.parametrize("is_held", [False, True], ids=["with the task", "after the loop"])
def test_an_asyncio_consumer_that_ends_with_its_loop_raises_nothing(
    conf: dict[str, Any], is_held: bool, caplog: pytest.LogCaptureFixture
) -> None:
    held: list[AIOConsumer] = []

    async def main() -> None:
        reader = await aio_reader(conf)
        if is_held:
            held.append(reader)

    asyncio.run(main())
    gone = [weakref.ref(reader) for reader in held]
    held.clear()
    gc.collect()
    assert [reader() for reader in gone] == [None] * len(gone)
    assert [record for record in caplog.records if record.name == "asyncio"] == []
