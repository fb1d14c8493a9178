"""The embedded broker as a test holds it: not begun, running, ended."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from headrace import Consumer, Producer
from headrace.testing import EmbeddedBroker

CALLS: dict[str, Callable[[EmbeddedBroker], Any]] = {
    "create_topic": lambda broker: broker.create_topic("t"),
    "end_offsets": lambda broker: broker.end_offsets("t"),
    "clear_faults": lambda broker: broker.clear_faults(),
    "stop_node": lambda broker: broker.stop_node(1),
}


@pytest.mark.parametrize("name", ["bootstrap_servers", "registry_url"])
def test_a_broker_that_was_not_started_has_no_address(name: str) -> None:
    broker = EmbeddedBroker(registry=True)
    with pytest.raises(RuntimeError, match=r"does not run: use it in a with block, or call start\(\) first"):
        getattr(broker, name)
    with broker:
        address = getattr(broker, name)
    assert getattr(broker, name) == address  # for who looks what its clients make of that


@pytest.mark.parametrize("name", CALLS)
def test_a_broker_that_does_not_run_refuses_calls_before_and_after(name: str) -> None:
    broker = EmbeddedBroker(topics={"t": 1})
    for _ in range(2):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match="the embedded broker does not run"):
                CALLS[name](broker)
            gc.collect()
        assert not [warning for warning in told if "never awaited" in str(warning.message)]
        if broker._thread.ident is None:
            broker.start()
            broker.stop()


def test_a_broker_is_stopped_as_often_as_one_likes_also_when_it_was_never_started() -> None:
    never, once = EmbeddedBroker(), EmbeddedBroker()
    once.start()
    for broker in (never, once, never, once):
        broker.stop()


def test_a_broker_whose_port_is_taken_says_so_and_leaves_nothing() -> None:
    with EmbeddedBroker() as first:
        second = EmbeddedBroker(port=int(first.bootstrap_servers.rpartition(":")[2]))
        with pytest.raises(OSError, match="in use"):
            second.start()
        second.stop()
        assert not second._thread.is_alive()


def test_a_broker_serves_threads_and_loops_at_once() -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}

        async def offsets() -> list[int]:
            with Producer(servers) as producer:
                producer.produce("t", b"v")
            return await asyncio.to_thread(broker.end_offsets, "t")

        assert asyncio.run(offsets()) == [1]
        with Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
            consumer.subscribe(["t"])
            message = consumer.poll(30)
            assert message is not None
            assert message.value() == b"v"
