"""Finds the connections of a capture, who is the client in each, and which of them speak Kafka.

The client is the side that opens the connection (SYN). In a connection that is older than the capture it is the side
that sends something that reads as a request. What speaks neither Kafka nor TLS is passed over.

Read next: `exchange`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from headrace.decode.capture.captures import Packet
from headrace.decode.capture.packets import ACK, FIN, RST, SYN, Address, Skipped, TcpSegment, read_packet
from headrace.decode.capture.tcp import Piece, Stamp, Stream
from headrace.decode.messages.bodies import looks_like_request
from headrace.decode.stream.exchange import Event, Exchange, Trouble, find_request

__all__ = ["Connections"]

_HEAD_BYTES = 14
_DECIDED_WITHIN = 64 << 10
_LOOKED_THROUGH = 32 << 10
_TLS_HANDSHAKE, _TLS_MAJOR = 0x16, 3
_MAX_CONNECTIONS = 20_000
_MAX_BYTES = 256 << 20


class Connections:
    """All connections of a capture.

    At most 20,000 are kept, and of all of them 256 MiB; the oldest is given up for a new one, as if it had ended.

    Args:
        ports: ports of brokers; connections with none of these are passed over. None takes any.

    Attributes:
        skipped: packets that were not read, by reason.
        foreign: connections that were passed over, by reason.
    """

    def __init__(self, ports: Collection[int] = ()) -> None:
        self._ports = frozenset(ports)
        self._open: dict[tuple[Address, Address], _Connection] = {}
        self._bytes = 0
        self.skipped: Counter[str] = Counter()
        self.foreign: Counter[str] = Counter()

    def push(self, packet: Packet) -> Iterator[Event]:
        """Take a packet and give what it completes."""
        segment = read_packet(packet.link, packet.data)
        if isinstance(segment, Skipped):
            self.skipped.update([segment.reason] if segment.reason else [])
            return
        if self._ports and not self._ports & {segment.source.port, segment.target.port}:
            return
        stamp = Stamp(packet.time, packet.number, packet.position)
        key = (min(segment.source, segment.target), max(segment.source, segment.target))
        connection = self._open.get(key)
        if connection is not None and connection.is_reopened_by(segment):
            yield from self._end(key)
            connection = None
        if connection is not None and connection.is_closed:
            return  # what comes after the end was sent again; the connection is remembered for that
        if connection is None:
            if segment.flags & RST or not (segment.data or segment.missing or segment.flags & SYN):
                return
            while len(self._open) >= _MAX_CONNECTIONS:
                yield from self._end(next(iter(self._open)))
            connection = self._open[key] = _Connection(*key, self._ports)
        before = connection.buffered
        yield from connection.push(segment, stamp)
        self._bytes += connection.buffered - before
        if connection.is_closed:
            yield from self._finish(connection)
        while self._bytes > _MAX_BYTES:
            yield from self._end(next(iter(self._open)))

    def flush(self) -> Iterator[Event]:
        """The capture has ended."""
        for key in list(self._open):
            yield from self._end(key)

    def _end(self, key: tuple[Address, Address]) -> Iterator[Event]:
        connection = self._open.pop(key)
        if not connection.is_closed:
            yield from self._finish(connection)

    def _finish(self, connection: _Connection) -> Iterator[Event]:
        before = connection.buffered
        yield from connection.flush()
        self._bytes += connection.buffered - before
        if connection.foreign:
            self.foreign[connection.foreign] += 1


class _Connection:
    """One connection: two streams, and an exchange as soon as the roles are known."""

    def __init__(self, one: Address, other: Address, ports: Collection[int]) -> None:
        self._streams = {one: Stream(), other: Stream()}
        self._opened: dict[Address, int] = {}  # first sequence numbers, as far as they were seen
        self._ends: dict[Address, int] = {}  # sequence numbers behind the last bytes, as far as they were seen
        self._early: list[tuple[Address, Piece]] = []
        self._early_bytes = 0
        self._exchange: Exchange | None = None
        self._is_forced = bool(ports)
        self._client: Address | None = None
        if (one.port in ports) != (other.port in ports):
            self._client = other if one.port in ports else one
        self.foreign = ""
        self.is_closed = False

    @property
    def buffered(self) -> int:
        """Bytes that are kept for later."""
        waiting = sum(stream.waiting for stream in self._streams.values())
        return waiting + (self._early_bytes if self._exchange is None else self._exchange.buffered)

    def is_reopened_by(self, segment: TcpSegment) -> bool:
        """True when a segment begins another connection between the same two ports."""
        first = self._opened.get(segment.source)
        if not segment.flags & SYN or first == segment.sequence:
            return False
        return first is not None or self.is_closed

    def push(self, segment: TcpSegment, stamp: Stamp) -> Iterator[Event]:
        """Take a segment and give what it completes."""
        if segment.flags & SYN:
            self._open_stream(segment)
        pieces = [(segment.source, piece) for piece in self._pieces(segment, stamp)]
        if segment.flags & ACK:
            acknowledged = self._streams[segment.target].acknowledge(segment.acknowledged, stamp.time)
            pieces += [(segment.target, piece) for piece in acknowledged]
        yield from self._deliver(pieces)
        if segment.flags & FIN:
            self._ends[segment.source] = segment.sequence + len(segment.data) + segment.missing
        has_ended = len(self._ends) == 2 and all(self._streams[one].has_all(end) for one, end in self._ends.items())
        self.is_closed = has_ended or bool(segment.flags & RST)

    def flush(self) -> Iterator[Event]:
        """No more segments come."""
        for source, stream in self._streams.items():
            yield from self._deliver([(source, piece) for piece in stream.flush()])
        if self._exchange is not None:
            yield from self._exchange.flush()
        elif not self.foreign and self._early:
            self.foreign = "that are not Kafka's"
        self._early, self._early_bytes = [], 0

    def _open_stream(self, segment: TcpSegment) -> None:
        if segment.source not in self._opened:
            self._opened[segment.source] = segment.sequence
            self._streams[segment.source] = Stream((segment.sequence + 1) % (1 << 32))
        self._client = segment.target if segment.flags & ACK else segment.source

    def _pieces(self, segment: TcpSegment, stamp: Stamp) -> list[Piece]:
        if self.foreign or not (segment.data or segment.missing):
            return []
        sequence = segment.sequence + bool(segment.flags & SYN)
        return self._streams[segment.source].push(sequence, segment.data, segment.missing, stamp)

    def _deliver(self, pieces: list[tuple[Address, Piece]]) -> Iterator[Event]:
        for source, piece in pieces:
            if self.foreign:
                return
            if self._exchange is not None:
                yield from self._exchange.push(source == self._client, piece)
                continue
            self._early.append((source, piece))
            self._early_bytes += len(piece.data or b"")
            yield from self._decide()

    def _decide(self) -> Iterator[Event]:
        """Find out who the client is and whether this is Kafka, with as little as is there."""
        if self._client is None:
            source, piece = self._early[-1]
            if piece.data is not None and _holds_request(piece.data):
                self._client = source
        if self._client is not None:
            yield from self._decide_by(self._head())
        if self._exchange is None and self._early_bytes > _DECIDED_WITHIN:
            self.foreign = self.foreign or "that are not Kafka's"
        if self.foreign:
            self._early.clear()
            self._early_bytes = 0
            self._streams = {address: Stream() for address in self._streams}

    def _decide_by(self, head: bytes) -> Iterator[Event]:
        own = [piece.data for source, piece in self._early if source == self._client]
        is_whole = self._client in self._opened and None not in own
        if len(head) >= 3 and head[0] == _TLS_HANDSHAKE and head[1] == _TLS_MAJOR:
            self.foreign = "encrypted with TLS, which cannot be read"
            yield self._trouble("this connection is encrypted with TLS and cannot be read")
        elif looks_like_request(head) or (self._is_forced and len(head) >= _HEAD_BYTES) or (
                not is_whole and _holds_request(b"".join(data or b"" for data in own)[-_LOOKED_THROUGH:])):
            yield from self._begin()
        elif is_whole and len(head) >= _HEAD_BYTES:
            self.foreign = "that are not Kafka's"

    def _head(self) -> bytes:
        """The client's first bytes."""
        head = b""
        for source, piece in self._early:
            if source == self._client and piece.data is not None and len(head) < 2048:
                head += piece.data[:2048]
        return head

    def _begin(self) -> Iterator[Event]:
        assert self._client is not None
        broker = next(address for address in self._streams if address != self._client)
        # Seen from its first byte: frames begin there. A broker's first byte answers a client's first request.
        in_step = self._client in self._opened
        self._exchange = Exchange(str(self._client), str(broker), in_step=in_step)
        early, self._early = self._early, []
        for source, piece in early:
            yield from self._exchange.push(source == self._client, piece)

    def _trouble(self, text: str) -> Trouble:
        assert self._client is not None
        broker = next(address for address in self._streams if address != self._client)
        return Trouble(text, str(self._client), str(broker), self._early[-1][1].stamp, is_damage=False)


def _holds_request(data: bytes) -> bool:
    """True when a whole request is somewhere in the bytes, or the first part of one begins them."""
    place, found = find_request(bytearray(data), 0)
    return found or (place == 0 and looks_like_request(data, known_only=True))
