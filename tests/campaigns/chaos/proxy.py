"""A TCP proxy in front of brokers that hurts what goes through it. One thread with an event loop of its own.

Each broker has a port here. Faults hold for all connections to one broker, or for the next bytes that come along.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from .garble import Exchange, garbled, phase_of

_CHUNK: Final = 65_536
_HOST: Final = "127.0.0.1"
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER of no time: closing sends RST


class Way(Enum):
    """A direction."""

    OUT = "requests"
    BACK = "replies"


class Frames:
    """Follows the length prefixes in one direction of a connection."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0  # bytes of the frame that are still to come

    def feed(self, data: bytes) -> list[int]:
        """Take the next bytes; returns where frames end in them."""
        ends, at = [], 0
        while at < len(data):
            if not self._left:
                taken = min(4 - len(self._head), len(data) - at)
                self._head += data[at:at + taken]
                at += taken
                if len(self._head) < 4:
                    break
                self._left, self._head = int.from_bytes(self._head, "big"), b""
            step = min(self._left, len(data) - at)
            self._left -= step
            at += step
            if not self._left:
                ends.append(at)
        return ends


class Door:
    """What happens to the bytes for one broker in one direction."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.delay_s = 0.0
        self.cut: Callable[[], None] | None = None  # called when it has happened


class Link:
    """A client's connection, and the one to the broker that belongs to it."""

    def __init__(self, writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]) -> None:
        self._writers = writers

    def end(self, *, reset: bool) -> None:
        """Close both sides, with RST or in good order."""
        for writer in self._writers:
            sock: socket.socket | None = writer.get_extra_info("socket")
            if reset and sock is not None and not writer.is_closing():
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()
            writer.close()


class Proxy:
    """Ports in front of brokers, as a context manager.

    Args:
        ports: for each broker the port to listen on, and the broker's own.
        seed: of all that is left to chance.

    Attributes:
        counts: what was done, by name.
        garbling: answers can be garbled on connections that are opened from now on. They go through whole then.
    """

    def __init__(self, ports: Mapping[int, tuple[int, int]], seed: object = None) -> None:
        self.counts: Counter[str] = Counter()
        self.garbling = False
        self._garbles: dict[tuple[int, str], list[str]] = {}
        self._ports = ports
        self._random = random.Random(f"proxy {seed}")
        self._links: dict[int, set[Link]] = {node: set() for node in ports}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._doors: dict[tuple[int, Way], Door] = {}
        self._servers: list[asyncio.Server] = []

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._do(self._listen)
        return self

    def __exit__(self, *exception: object) -> None:
        self._do(self._stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # Faults; from any thread.

    def end_links(self, node: int, *, reset: bool) -> None:
        """End all connections to a broker."""
        self._do(self._end_links, node, reset)

    def cut(self, node: int, way: Way) -> None:
        """Let the next frame through in part only; then its connection ends, half of the time with RST."""
        self._do(self._cut, node, way)

    def delay(self, node: int, seconds: float) -> None:
        """Let everything wait for so long, in both directions; 0 for no longer."""
        self._do(self._delay, node, seconds)

    def shut(self, node: int, *ways: Way) -> None:
        """Let nothing through until `reopen`."""
        self._do(self._shut, node, ways)

    def reopen(self, node: int, *, lose: bool) -> None:
        """Let through what has waited, or lose it and end the connections with RST."""
        self._do(self._reopen, node, lose)

    def garble(self, node: int, phase: str, *kinds: str) -> None:
        """Garble the next answers of a broker in a phase of `PHASES`, in these ways of `KINDS`; in none for no more."""
        self._do(self._garbles.__setitem__, (node, phase), list(kinds))

    # On the loop

    def _do(self, action: Callable[..., Any], *arguments: Any) -> None:
        async def run() -> None:
            result = action(*arguments)
            if asyncio.iscoroutine(result):
                await result

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)

    async def _listen(self) -> None:
        for node, (port, _) in self._ports.items():
            for way in Way:
                self._doors[node, way] = Door()
            self._servers.append(await asyncio.start_server(self._serving(node), _HOST, port))

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        for node in self._links:
            self._end_links(node, True)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end_links(self, node: int, reset: bool) -> None:
        for link in list(self._links[node]):
            self.counts["connections reset" if reset else "connections dropped"] += 1
            link.end(reset=reset)

    def _cut(self, node: int, way: Way) -> None:
        def done() -> None:
            self._doors[node, way].cut = None
            self.counts[f"{way.value} cut"] += 1

        self._doors[node, way].cut = done

    def _delay(self, node: int, seconds: float) -> None:
        self.counts["delays"] += seconds > 0
        for way in Way:
            self._doors[node, way].delay_s = seconds

    def _shut(self, node: int, ways: tuple[Way, ...]) -> None:
        self.counts["black holes"] += 1
        for way in ways:
            self._doors[node, way].open.clear()

    def _reopen(self, node: int, lose: bool) -> None:
        if lose:
            self._end_links(node, True)
        for way in Way:
            self._doors[node, way].open.set()

    def _serving(self, node: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                there, back = await asyncio.open_connection(_HOST, self._ports[node][1])
            except OSError:  # the broker is down: so it looks from outside
                Link((writer, writer)).end(reset=True)
                return
            link, exchange = Link((writer, back)), Exchange() if self.garbling else None
            self._links[node].add(link)
            try:
                await asyncio.gather(
                    self._pump(link, reader, back, self._doors[node, Way.OUT], lambda data: self._sent(exchange, data)),
                    self._pump(link, there, writer, self._doors[node, Way.BACK],
                               lambda data: self._answered(node, exchange, data)))
            finally:
                self._links[node].discard(link)
                link.end(reset=False)

        return serve

    def _sent(self, exchange: Exchange | None, data: bytes) -> tuple[bytes, bool]:
        if exchange is not None:
            exchange.sent(data)
        return data, False

    def _answered(self, node: int, exchange: Exchange | None, data: bytes) -> tuple[bytes, bool]:
        """The answers as they go on, and whether the connection ends behind them."""
        if exchange is None:
            return data, False
        parts, over = [], False
        for api_key, answer in exchange.answered(data):
            phase = phase_of(api_key)
            kinds = self._garbles.get((node, phase))
            if kinds:
                self.counts[f"garbled of {phase}"] += 1
                answer, over = garbled(kinds.pop(), answer, self._random)
            parts.append(answer)
            if over:
                break
        return b"".join(parts), over

    async def _pump(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, door: Door,
        change: Callable[[bytes], tuple[bytes, bool]],
    ) -> None:
        frames, reset = Frames(), False
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                if door.delay_s:
                    await asyncio.sleep(door.delay_s)
                await door.open.wait()
                data, over = change(data)
                ends = frames.feed(data)
                if door.cut is not None and len(data) > 1:
                    door.cut()
                    writer.write(data[:_within(data, ends, self._random)])
                    await writer.drain()
                    reset = self._random.random() < 0.5
                    break
                writer.write(data)
                await writer.drain()
                if over:
                    break
        link.end(reset=reset)


def _within(data: bytes, ends: list[int], chance: random.Random) -> int:
    """A place inside of a frame."""
    taken = set(ends)
    return chance.choice([at for at in range(1, len(data)) if at not in taken] or [1])
