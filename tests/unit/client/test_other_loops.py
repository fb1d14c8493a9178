"""The asyncio clients on a loop that is not asyncio's own: uvloop, whose transports are none of asyncio's classes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator

import pytest

from headrace.aio import AIOAdminClient, AIOConsumer, AIOProducer, AIOShareConsumer
from headrace.errors import KafkaError, KafkaException
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest
from tests.support.async_reading import read_values

if sys.platform == "win32":
    pytest.skip("uvloop is not for Windows", allow_module_level=True)
import uvloop

LARGE, COUNT = 900_000, 30


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        yield broker


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def timed() -> None:
        assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
        await asyncio.wait_for(work(), 60)

    uvloop.run(timed())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_records_are_written_read_and_committed(broker: EmbeddedBroker, host: str) -> None:
    port = broker.bootstrap_servers.partition(":")[2]
    properties = {"bootstrap.servers": f"{host}:{port}"}

    async def work() -> None:
        async with AIOProducer(properties) as producer:
            sent = [await producer.produce("t", b"%d" % number) for number in range(1_000)]
            assert await producer.flush(30) == 0
            assert [(await each).offset() for each in sent] == list(range(1_000))
        async with AIOConsumer({**properties, "group.id": "g", "auto.offset.reset": "earliest",
                                "enable.auto.commit": False}) as consumer:
            await consumer.subscribe(["t"])
            assert await read_values(consumer, 1_000) == [b"%d" % number for number in range(1_000)]
            [committed] = await consumer.commit(asynchronous=False)
            assert committed.offset == 1_000
            waiting = asyncio.create_task(consumer.poll(30))
            await asyncio.sleep(0.1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    run(work)


def test_what_the_kernel_has_no_room_for_goes_out_in_order(broker: EmbeddedBroker) -> None:
    """The broker does not read for a while: then a frame goes out in pieces, by ours and by the loop's hands."""
    properties = {"bootstrap.servers": broker.bootstrap_servers}

    async def work() -> None:
        async with AIOProducer({**properties, "queue.buffering.max.kbytes": 100_000}) as producer:
            await (await producer.produce("t", b"first"))
            broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.5))
            sent = [await producer.produce("t", bytes([number]) * LARGE) for number in range(COUNT)]
            await producer.flush(30)
            assert [(await each).offset() for each in sent] == list(range(1, COUNT + 1))
        async with AIOConsumer({**properties, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
            await consumer.subscribe(["t"])
            values = await read_values(consumer, COUNT + 1)
            assert values[1:] == [bytes([number]) * LARGE for number in range(COUNT)]

    run(work)


def test_the_other_clients_work_as_well_and_failures_are_told(broker: EmbeddedBroker) -> None:
    properties = {"bootstrap.servers": broker.bootstrap_servers}

    async def work() -> None:
        async with AIOAdminClient(properties) as admin, AIOProducer(properties) as producer:
            assert "t" in (await admin.list_topics(timeout=10)).topics
            async with AIOShareConsumer({**properties, "group.id": "s"}) as consumer:
                await consumer.subscribe(["t"])
                assert list(await consumer.poll(0.2)) == []
                await (await producer.produce("t", b"shared"))
                [message] = await consumer.poll(20)
                assert message.value() == b"shared"
        async with AIOAdminClient({"bootstrap.servers": "127.0.0.1:1"}) as nowhere:
            with pytest.raises(KafkaException) as failed:
                await nowhere.list_topics(timeout=0.5)
            assert failed.value.error == KafkaError._TRANSPORT
            assert "connection refused" in str(failed.value)

    run(work)
