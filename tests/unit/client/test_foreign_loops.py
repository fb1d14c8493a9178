"""An asyncio client lives on one loop: what is awaited elsewhere is refused at once, and does no harm."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import TopicPartition
from headrace.admin import NewTopic, OffsetSpec
from headrace.aio import AIOAdminClient, AIOConsumer, AIOProducer, AIOShareConsumer
from headrace.testing import EmbeddedBroker

LONG_S = 60.0
FOREIGN = r"lives on another event loop, .* make a client on each loop"
NUMBERS = itertools.count()
AT = TopicPartition("t", 0, 0)
PRODUCER: dict[str, Callable[[AIOProducer], Awaitable[Any]]] = {
    "produce": lambda producer: producer.produce("t", b"v"),
    "list_topics": lambda producer: producer.list_topics(timeout=LONG_S),
    "cluster_id": lambda producer: producer.cluster_id(LONG_S),
    "poll": lambda producer: producer.poll(0),
    "purge": lambda producer: producer.purge(),
    "metrics": lambda producer: producer.metrics(),
}
CONSUMER: dict[str, Callable[[AIOConsumer], Awaitable[Any]]] = {
    "list_topics": lambda consumer: consumer.list_topics(timeout=LONG_S),
    "subscribe": lambda consumer: consumer.subscribe(["t"]),
    "assign": lambda consumer: consumer.assign([AT]),
    "seek": lambda consumer: consumer.seek(AT),
    "committed": lambda consumer: consumer.committed([AT], LONG_S),
    "commit": lambda consumer: consumer.commit(offsets=[AT], asynchronous=False),
    "consume": lambda consumer: consumer.consume(10, 0),
    "lag": lambda consumer: consumer.lag(),
}
SHARE_CONSUMER: dict[str, Callable[[AIOShareConsumer], Awaitable[Any]]] = {
    "poll": lambda consumer: consumer.poll(0),
    "subscription": lambda consumer: consumer.subscription(),
}


async def created(admin: AIOAdminClient) -> None:
    await admin.create_topics([NewTopic("new", 1)])["new"]


async def listed(admin: AIOAdminClient) -> None:
    await admin.list_offsets({AT: OffsetSpec.latest()})[AT]


async def described(admin: AIOAdminClient) -> None:
    await admin.list_topics(timeout=LONG_S)


ADMIN: dict[str, Callable[[AIOAdminClient], Awaitable[Any]]] = {
    "create_topics": created, "list_offsets": listed, "list_topics": described}
CALLS = [pytest.param(make, call, id=f"{kind}-{name}") for kind, make, calls in (
    ("producer", AIOProducer, PRODUCER), ("consumer", AIOConsumer, CONSUMER), ("share consumer", AIOShareConsumer,
     SHARE_CONSUMER), ("admin client", AIOAdminClient, ADMIN)) for name, call in calls.items()]


class Loop:
    """A loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, LONG_S), self._loop).result()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.end()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}) as made:
        yield made


async def in_use(make: Any, broker: EmbeddedBroker) -> Any:
    """A client that has been used."""
    properties = {"bootstrap.servers": broker.bootstrap_servers}
    if make in (AIOConsumer, AIOShareConsumer):
        client = make({**properties, "group.id": f"group {next(NUMBERS)}"})
        await client.subscribe(["t"])
    else:
        client = make(properties)
        await (await client.produce("t", b"first") if make is AIOProducer else client.list_topics())
    return client


async def tried(call: Callable[[Any], Awaitable[Any]], client: Any) -> None:
    with pytest.raises(RuntimeError, match=FOREIGN):
        await call(client)


@pytest.mark.parametrize(("make", "call"), CALLS)
def test_a_call_from_another_loop_is_refused_and_the_client_goes_on(
        broker: EmbeddedBroker, loop: Loop, make: Any, call: Callable[[Any], Awaitable[Any]]) -> None:
    client = loop.run(in_use(make, broker))
    asyncio.run(tried(call, client))
    if make is not AIOShareConsumer:
        assert "t" in loop.run(topics(client))
    loop.run(client.close())


async def topics(client: Any) -> Any:
    return (await client.list_topics(timeout=LONG_S)).topics


def all_behind_the_end() -> None:
    """Each call once the loop of its client has ended, by itself: nobody closes what such a loop leaves."""
    with EmbeddedBroker(topics={"t": 1}) as broker:
        for make, call in (param.values for param in CALLS):
            ended = Loop()
            client = ended.run(in_use(make, broker))
            ended.end()
            asyncio.run(tried(call, client))
    print("all refused")


def test_a_call_behind_the_end_of_the_clients_loop_says_what_to_do() -> None:
    command = f"import {__name__} as these; these.all_behind_the_end()"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", command], cwd=Path(__file__).parents[3],
                          capture_output=True, text=True, check=False, timeout=110)
    assert done.stdout == "all refused\n", done.stderr


@pytest.mark.parametrize("make", [AIOConsumer, AIOShareConsumer, AIOAdminClient])
def test_a_client_that_is_made_where_no_loop_runs_is_told_where_to_be_made(make: Any) -> None:
    with pytest.raises(RuntimeError, match=r"no running event loop: .* as asyncio.run\(main\(\)\) does"):
        make({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"} if make is not AIOAdminClient else {})


def test_a_producer_that_is_used_where_no_loop_runs_is_told_where_to_be_used() -> None:
    producing = AIOProducer({"bootstrap.servers": "127.0.0.1:1"}).produce("t", b"v")
    with pytest.raises(RuntimeError, match=r"no running event loop: .* coroutines that asyncio runs"):
        producing.send(None)
