"""Bytes that are no requests close their own connection and nothing else; slow and greedy clients hurt no one."""

import asyncio
import os
import random
import struct
import uuid

import pytest

from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.testing.memory_network import MemoryNetwork, MemoryTransport
from headrace.testing.simulated_clock import SimulatedLoop
from headrace.types.records import NodeAddress
from headrace.wire.frame import encode_request
from headrace.wire.frame_reader import FrameReader
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.raw_client import ASK_VERSIONS, RawClient, batch_of, produce_request


def still_serves(broker: EmbeddedBroker) -> bool:
    with RawClient(broker) as client:
        return bool(client.call(ASK_VERSIONS).error_code == 0)


@pytest.mark.parametrize("data", [
    struct.pack(">i", -1),
    struct.pack(">i", 0x7FFFFFFF),
    struct.pack(">i", 0),
    struct.pack(">i", 3) + b"abc",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    struct.pack(">ihhih", 10, 9999, 0, 1, -1),
    struct.pack(">ihhih", 10, 3, 999, 1, -1),
    struct.pack(">ihhih", 10, 0, 2, 1, -1),
    struct.pack(">ihhih", 12, 3, 1, 1, 30000) + b"xy",
    struct.pack(">ihhihi", 14, 3, 1, 1, -1, 0x7FFFFFF0),
])
def test_what_is_no_request_closes_the_connection_only(broker: EmbeddedBroker, data: bytes) -> None:
    with RawClient(broker) as bystander, RawClient(broker) as client:
        client.socket.sendall(data)
        assert client.is_closed()
        assert bystander.call(MetadataRequest(topics=None)).controller_id == 1


def test_mutated_requests_never_harm_others(broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    broker.create_topic("t")
    dice = random.Random(20)
    requests = [
        b"".join(encode_request(produce_request("t", 0, batch_of([b"v"] * 3)), 9, 1, "me")),
        b"".join(encode_request(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=99)])]),
            12, 1, "me")),
        b"".join(encode_request(MetadataRequest(topics=None), 12, 1, "me")),
    ]
    with RawClient(broker) as bystander:
        for _ in range(600):
            data = bytearray(dice.choice(requests))
            for _ in range(dice.randint(1, 4)):
                data[dice.randrange(4, len(data))] = dice.randrange(256)
            with RawClient(broker) as client:
                client.socket.sendall(bytes(data))
            assert bystander.call(ASK_VERSIONS).error_code == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_random_noise_never_harms_others(broker: EmbeddedBroker) -> None:
    for size in (1, 3, 4, 5, 100, 70_000):
        with RawClient(broker) as client:
            client.socket.sendall(os.urandom(size))
    assert still_serves(broker)


def test_a_length_alone_does_not_take_memory() -> None:
    with EmbeddedBroker(settings=BrokerSettings(max_request_bytes=1 << 30)) as broker:
        before = resident_bytes()
        clients = [RawClient(broker) for _ in range(20)]
        for client in clients:
            client.socket.sendall(struct.pack(">i", 1 << 30) + b"x" * 100)
        assert still_serves(broker)
        assert resident_bytes() - before < 100 << 20
        for client in clients:
            client.socket.close()


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_request_may_come_byte_by_byte(broker: EmbeddedBroker) -> None:
    data = b"".join(encode_request(MetadataRequest(topics=None), 9, 1, "slow"))
    with RawClient(broker) as client:
        for position in range(len(data)):
            client.socket.sendall(data[position:position + 1])
        assert client.read_frame()[:4] == struct.pack(">i", 1)


def test_many_requests_at_once_are_answered_in_order(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", configs={"max.message.bytes": "10000000"})
    sizes = [10, 70_000, 5, 300_000, 1_200_000, 1, 65_530]
    with RawClient(broker) as client:
        for size in sizes:
            client.send(produce_request("t", 0, batch_of([b"x" * size])), 9)
        order = [struct.unpack(">i", client.read_frame()[:4])[0] for _ in sizes]
    assert order == list(range(1, len(sizes) + 1))
    assert broker.end_offsets("t") == [len(sizes)]


class Heard(asyncio.BufferedProtocol):
    """A client's end, which keeps the correlation ids of what it is told."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self._reader = FrameReader(1 << 20)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.order += [struct.unpack(">i", frame[:4])[0] for frame in self._reader.advance(nbytes)]


def test_no_more_is_received_behind_a_request_that_waits_than_a_few_large_ones() -> None:
    batch = batch_of([b"x" * 900_000])
    frames = [b"".join(encode_request(produce_request("t", 0, batch), 9, number, "greedy")) for number in range(2, 42)]
    waits = FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[
        FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=99)])])

    async def work() -> None:
        network = MemoryNetwork(1, random.Random(1), BrokerSettings(), uuid.uuid4)
        network.cluster.catalog.create("t", 1, 1)
        client = Heard()
        await network.way_of("greedy")(client, NodeAddress(1, "node-1", 9001))
        client.transport.write(b"".join(encode_request(waits, 11, 1, "greedy")))
        for frame in frames:
            client.transport.write(frame)
        await asyncio.sleep(1)
        assert client.transport.peer.is_held
        network.append("t", 0, bytearray(batch))
        await asyncio.sleep(1)
        assert client.order == list(range(1, 42))
        assert not client.transport.peer.is_held

    SimulatedLoop().run(work())


def test_a_client_that_does_not_read_is_served_no_further(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with RawClient(broker) as client:
        client.produce("t", 0, batch_of([b"x" * 900_000]))
        fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="t", partitions=[
            FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)])])
        before = resident_bytes()
        for _ in range(200):
            client.send(fetch, 11)
        assert still_serves(broker)
        assert resident_bytes() - before < 60 << 20
