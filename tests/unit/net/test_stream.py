"""A socket's bytes: on the way out they keep their order, and on the way in many wake the loop once."""

from __future__ import annotations

import asyncio
import random
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.net.stream import FrameWriter, Inlet, reply_reader


class Sender(asyncio.Protocol):
    """A protocol as a connection is one: it waits while the outlet is full."""

    def __init__(self) -> None:
        self.room = asyncio.Event()
        self.room.set()
        self.pauses = 0
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.outlet = FrameWriter(transport)

    def pause_writing(self) -> None:
        self.pauses += 1
        self.room.clear()

    def resume_writing(self) -> None:
        if self.outlet.resume():
            self.room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.room.set()


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Sender, socket.socket]]:
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    far.setblocking(False)
    _, sender = await asyncio.get_running_loop().create_connection(Sender, sock=near)
    try:
        yield sender, far
    finally:
        sender.outlet.abort()
        far.close()
        await asyncio.sleep(0)


async def read(far: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += await asyncio.get_running_loop().sock_recv(far, 30_000)
    return data


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_any_size_arrive_in_order(seed: int) -> None:
    chance = random.Random(seed)
    frames = [[chance.randbytes(chance.choice((0, 1, 50, 900, 70_000, 300_000))) for _ in range(chance.randint(1, 5))]
              for _ in range(30)]
    expected = b"".join(part for frame in frames for part in frame)

    async def main() -> None:
        async with pair() as (sender, far):
            reading = asyncio.create_task(read(far, len(expected)))
            for frame in frames:
                await sender.room.wait()
                sender.outlet.write([part if chance.random() < 0.5 else memoryview(part) for part in frame])
            assert await asyncio.wait_for(reading, 20) == expected
            assert sender.pauses > 0
            await asyncio.wait_for(sender.room.wait(), 5)
            assert not sender.outlet.full
    asyncio.run(main())


def test_what_is_written_while_the_kernel_has_no_room_comes_behind_what_waits() -> None:
    async def main() -> None:
        async with pair() as (sender, far):
            sender.outlet.write([b"a", b"b" * 500_000, b"c"])
            assert sender.outlet.full
            sender.outlet.write([b"d" * 10])
            sender.outlet.write([b"e" * 100_000, b"f"])
            expected = b"a" + b"b" * 500_000 + b"c" + b"d" * 10 + b"e" * 100_000 + b"f"
            assert await asyncio.wait_for(read(far, len(expected)), 20) == expected
    asyncio.run(main())


def test_what_asyncio_still_has_is_not_overtaken_and_nobody_else_writes_meanwhile() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        given: list[bytes] = []
        transport: Any = SimpleNamespace(
            get_extra_info={"socket": near}.get, set_write_buffer_limits=lambda **_: None, is_closing=lambda: False,
            write=lambda data: given.append(bytes(data)), get_write_buffer_size=lambda: len(b"".join(given)))
        outlet = FrameWriter(transport)
        assert outlet.lendable == near.fileno()
        with suppress(BlockingIOError):
            while True:
                near.send(bytes(100_000))
        outlet.write([b"first"])
        assert (given, outlet.full, outlet.lendable) == ([b"first"], True, None)
        with suppress(BlockingIOError):
            while far.recv(1_000_000):
                pass
        outlet.write([b"second"])  # the kernel has room again, and asyncio does not know it yet
        assert given == [b"first", b"second"]
        given.clear()
        assert outlet.resume()
        outlet.write([b"third"])
        assert (given, far.recv(100)) == ([], b"third")
        assert outlet.lendable == near.fileno()


def test_a_frame_of_more_parts_than_one_system_call_takes_arrives_whole() -> None:
    async def main() -> None:
        async with pair() as (sender, far):
            parts = [b"%05d" % number + bytes(70_000 if number % 500 == 0 else 0) for number in range(3_000)]
            sender.outlet.write(parts)
            expected = b"".join(parts)
            assert await asyncio.wait_for(read(far, len(expected)), 20) == expected
    asyncio.run(main())


def test_writing_to_a_peer_that_is_gone_ends_the_connection_and_raises_nothing() -> None:
    async def main() -> None:
        async with pair() as (sender, far):
            sender.outlet.write([b"x", b"y" * 500_000])
            far.close()
            for _ in range(200):
                if sender.lost:
                    break
                await asyncio.sleep(0.01)
            assert sender.lost
            sender.outlet.write([b"z", b"z" * 500_000])
            sender.outlet.resume()
            assert sender.outlet._rest == []
    asyncio.run(main())


@pytest.mark.parametrize("known", [False, True])
def test_a_port_that_begins_with_tls_may_be_a_plaintext_broker_later(known: bool) -> None:
    reader, alert = reply_reader(1_000_000, known), b"\x15\x03\x03\0\x02\x02\x28"
    reader.buffer()[:len(alert)] = alert
    with pytest.raises(KafkaException, match="the port speaks TLS") as refused:
        list(reader.advance(len(alert)))
    assert isinstance(refused.value, ProtocolError) == known
    if not known:
        assert (refused.value.error.code(), refused.value.error.retriable()) == (KafkaError._SSL, True)


class Receiver(asyncio.BufferedProtocol):
    """Reads frames as a connection does."""

    def __init__(self) -> None:
        self.reader, self.frames, self.wake_ups = reply_reader(10_000_000), list[bytes](), 0
        self.came, self.lost = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.inlet = transport, Inlet(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.wake_ups += 1
        self.frames += map(bytes, self.reader.advance(nbytes))
        self.inlet.follow(self.reader.left)
        if self.frames:
            self.came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


@asynccontextmanager
async def receiving() -> AsyncIterator[tuple[Receiver, asyncio.StreamWriter]]:
    """What reads, and what writes to it over TCP."""
    writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: writers.put_nowait(writer), "127.0.0.1", 0)
    _, receiver = await asyncio.get_running_loop().create_connection(Receiver, *server.sockets[0].getsockname())
    writer = await writers.get()
    try:
        yield receiver, writer
    finally:
        receiver.transport.abort()
        writer.close()
        server.close()
        await asyncio.sleep(0)


def mark(receiver: Receiver) -> int:
    return int(receiver.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT))


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux waits for more bytes")


@linux
def test_of_a_large_frame_the_kernel_gathers_much_before_it_wakes_the_loop_and_then_again_one_byte() -> None:
    async def main() -> None:
        async with receiving() as (receiver, writer):
            frame = random.Random(1).randbytes(3_000_000)
            assert mark(receiver) == 1
            writer.write(len(frame).to_bytes(4, "big") + frame[:50_000])
            while not receiver.reader.left:
                await asyncio.sleep(0.001)
            assert mark(receiver) == 2_000_000
            for at in range(50_000, len(frame), 50_000):
                writer.write(frame[at:at + 50_000])
                await asyncio.sleep(0.001)
            await asyncio.wait_for(receiver.came.wait(), 10)
            assert receiver.frames == [frame]
            assert receiver.wake_ups < 30  # 60 pieces came one by one
            assert mark(receiver) == 1
            receiver.came.clear()
            writer.write(b"\0\0\0\1x")
            await asyncio.wait_for(receiver.came.wait(), 10)
            assert receiver.frames[1:] == [b"x"]

    asyncio.run(main())


@linux
def test_each_piece_of_a_large_frame_is_acknowledged_at_once() -> None:
    said: list[tuple[int, int]] = []
    recording = SimpleNamespace(setsockopt=lambda level, option, value: said.append((option, value)))
    transport: Any = SimpleNamespace(get_extra_info={"socket": recording}.get)
    inlet = Inlet(transport)
    for left in (0, 5_000_000, 3_500_000, 1_500_000, 0, 0, 3_000_000, 0):
        inlet.follow(left)
    lowat, at_once = socket.SO_RCVLOWAT, (socket.TCP_QUICKACK, 1)
    assert said == [
        (lowat, 4_000_000), (lowat, 2_000_000), at_once, at_once, (lowat, 1_500_000), at_once, (lowat, 1),
        (lowat, 2_000_000), at_once, (lowat, 1)]


def test_an_end_amid_a_large_frame_is_seen_at_once() -> None:
    async def main() -> None:
        async with receiving() as (receiver, writer):
            writer.write((3_000_000).to_bytes(4, "big") + bytes(200_000))
            await writer.drain()
            writer.close()
            await asyncio.wait_for(receiver.lost.wait(), 10)
            assert not receiver.frames

    asyncio.run(main())


@linux
def test_under_tls_nothing_waits_for_more_than_a_byte() -> None:
    near, far = socket.socketpair()
    transport: Any = SimpleNamespace(get_extra_info={"socket": near, "ssl_object": object()}.get)
    Inlet(transport).follow(1_000_000)
    assert near.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
    near.close()
    far.close()


def test_a_large_frame_to_a_peer_that_went_away_unnoticed_is_tried_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with pair() as (sender, far):
            far.close()
            sender.outlet.write([b"x" * 500_000])
            assert sender.outlet._rest == []
            assert not sender.outlet.full
    asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == []
