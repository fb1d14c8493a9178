"""The way out of a socket: bytes keep their order, whatever the kernel takes at a time."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headrace.net.stream import FrameWriter


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


def test_a_large_frame_to_a_peer_that_went_away_unnoticed_is_tried_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with pair() as (sender, far):
            far.close()
            sender.outlet.write([b"x" * 500_000])
            assert sender.outlet._rest == []
            assert not sender.outlet.full
    asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == []
