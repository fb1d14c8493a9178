"""The requests and replies of one connection, each reply with the request that it answers.

Nothing of a frame that cannot be read is ever shown: it could be a password. Frames of the raw exchange that follows
SaslHandshake version 0 have no header at all; only their size is shown.

Read next: `connections`, which finds the connections in a capture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.decode.capture.tcp import Piece, Stamp
from headrace.decode.messages.bodies import (
    MAX_FRAME_BYTES,
    Body,
    api_name,
    is_request,
    looks_like_request,
    read_reply,
    read_request,
    whole_reply,
)
from headrace.decode.messages.names import topics_of
from headrace.decode.stream.framing import Framer, Lost, RawFrame
from headrace.wire.messages.producer.produce import ProduceRequest

__all__ = ["Event", "Exchange", "Frame", "Trouble", "find_request"]

_SASL_HANDSHAKE: Final = 17
_MAX_PENDING: Final = 10_000
_MAX_HELD: Final = 16
_MAX_HELD_BACK_BYTES: Final = 4 << 20
_SEARCHED_IDS: Final = 256
_REQUEST: Final = re.compile(rb"[\x00-\x08].{3}\x00[\x00-\x7f]\x00[\x00-\x1f].{4}(?:\xff\xff|[\x00-\x04].)", re.DOTALL)
"""Size, API key, version, correlation id and size of the client id, roughly: what is left is looked at closely."""
_REQUEST_HEAD, _REPLY_HEAD = 14, 8


@dataclass(frozen=True, slots=True)
class Frame:
    """A request, a reply, or a token of the raw SASL exchange.

    Attributes:
        kind: "request", "reply" or "token".
        source: who sent it; empty when that is not known.
        target: whom it was sent to.
        latency_ns: of a reply, since its request.
        topics: names and ids of the topics that it and the request which it answers speak of.
    """

    kind: str
    source: str
    target: str
    stamp: Stamp
    size: int
    body: Body
    latency_ns: int | None = None
    topics: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The API's name."""
        return "SASL token" if self.kind == "token" else api_name(self.body.api_key)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something about a connection that is no frame.

    Attributes:
        is_damage: bytes are missing or cannot be read.
    """

    text: str
    source: str
    target: str
    stamp: Stamp
    is_damage: bool = True


Event = Frame | Trouble


class _Asked(NamedTuple):
    api_key: int
    version: int
    client_id: str | None
    time: int | None
    topics: frozenset[str]  # not the request, whose records may be large


@dataclass(slots=True)
class _Pending:
    by_id: dict[int, _Asked] = field(default_factory=dict)

    def find(self, buffer: bytearray, start: int) -> tuple[int, bool]:
        """Where the reply to a pending request begins; a `Finder`."""
        candidates: set[int] = set()
        for number in list(self.by_id)[-_SEARCHED_IDS:]:
            packed = number.to_bytes(4, "big", signed=True)
            at = buffer.find(packed, start + 4)
            while at >= 0 and len(candidates) < _MAX_PENDING:
                candidates.add(at - 4)
                at = buffer.find(packed, at + 1)
        held_back = max(start, len(buffer) - _REPLY_HEAD + 1)
        for at in sorted(candidates, reverse=True):
            size = int.from_bytes(buffer[at:at + 4], "big", signed=True)
            if 4 <= size <= _MAX_HELD_BACK_BYTES and at + 4 + size > len(buffer):
                held_back = at
        for at in sorted(candidates):
            size = int.from_bytes(buffer[at:at + 4], "big", signed=True)
            if size < 4 or at + 4 + size > len(buffer):
                continue
            frame = bytes(buffer[at + 4:at + 4 + size])
            asked = self.by_id[int.from_bytes(frame[:4], "big", signed=True)]
            if whole_reply(asked.api_key, asked.version, frame) is not None:
                return at, True
        return held_back, False


def find_request(buffer: bytearray, start: int) -> tuple[int, bool]:
    """Where a request begins that can be read; a `Finder`."""
    at, held_back = start, -1
    while (match := _REQUEST.search(buffer, at)) is not None:
        at = match.start()
        if looks_like_request(buffer, at, known_only=True):
            size = int.from_bytes(buffer[at:at + 4], "big")
            if at + 4 + size <= len(buffer):
                if is_request(bytes(buffer[at + 4:at + 4 + size])):
                    return at, True
            elif size <= _MAX_HELD_BACK_BYTES and held_back < 0:
                held_back = at  # it may be one when the rest has come; one that is there already is better
        at += 1
    return held_back if held_back >= 0 else max(start, len(buffer) - _REQUEST_HEAD + 1), False


def _cut(raw: RawFrame, body: Body) -> Body:
    """The end of the connection, or of the capture, is no damage."""
    note = f"only the first {len(raw.data)} of {raw.size} bytes had come at the end"
    return body._replace(damage="", note=note) if raw.is_last else body


class Exchange:
    """One connection between a client and a broker.

    Args:
        client: the client's address as text.
        broker: the broker's.
        in_step: its first bytes are known, and so where frames begin.
    """

    def __init__(self, client: str, broker: str, *, in_step: bool) -> None:
        self._client = client
        self._broker = broker
        self._pending = _Pending()
        self._requests = Framer(find_request, in_step=in_step)
        self._replies = Framer(self._pending.find, in_step=in_step)
        self._held: list[RawFrame] = []
        self._raw_tokens = False

    @property
    def buffered(self) -> int:
        """Bytes that are kept for later."""
        held = sum(len(raw.data) for raw in self._held)
        return self._requests.buffered + self._replies.buffered + held

    def push(self, from_client: bool, piece: Piece) -> Iterator[Event]:
        """Take the next bytes of one direction."""
        found = (self._requests if from_client else self._replies).push(piece)
        yield from self._events(from_client, found)

    def flush(self) -> Iterator[Event]:
        """The connection, or the capture, has ended."""
        yield from self._events(True, self._requests.flush())
        yield from self._events(False, self._replies.flush())
        while self._held:
            yield self._orphan(self._held.pop(0))

    def _events(self, from_client: bool, found: list[RawFrame | Lost]) -> Iterator[Event]:
        for one in found:
            if isinstance(one, Lost):
                yield Trouble(one.reason, *self._ends(from_client), one.stamp, one.is_damage)
            elif from_client:
                yield from self._request(one)
            else:
                yield from self._reply(one)

    def _ends(self, from_client: bool) -> tuple[str, str]:
        return (self._client, self._broker) if from_client else (self._broker, self._client)

    def _request(self, raw: RawFrame) -> Iterator[Event]:
        if self._raw_tokens and not looks_like_request(raw.size.to_bytes(4, "big") + raw.data[:2048], known_only=True):
            yield self._token(True, raw)
            return
        self._raw_tokens = False
        body = _cut(raw, read_request(raw.data, raw.size - len(raw.data)))
        topics = topics_of(body.message)
        yield Frame("request", *self._ends(True), raw.stamp, raw.size, body, topics=topics)
        if body.api_key is None or body.version is None or body.correlation_id is None:
            return
        self._raw_tokens = (body.api_key, body.version) == (_SASL_HANDSHAKE, 0)
        if isinstance(body.message, ProduceRequest) and getattr(body.message, "acks", 1) == 0:
            return  # there is no reply to it
        self._remember(body.correlation_id, _Asked(body.api_key, body.version, body.client_id, raw.stamp.time,
                                                   topics))
        yield from self._held_for(body.correlation_id)

    def _remember(self, correlation_id: int, asked: _Asked) -> None:
        pending = self._pending.by_id
        pending[correlation_id] = asked
        if len(pending) > _MAX_PENDING:
            del pending[next(iter(pending))]

    def _held_for(self, correlation_id: int) -> Iterator[Event]:
        """The reply to a request, when it was captured before it."""
        wanted = correlation_id.to_bytes(4, "big", signed=True)
        for raw in self._held:
            if raw.data[:4] == wanted:
                self._held.remove(raw)
                yield from self._reply(raw)
                return

    def _reply(self, raw: RawFrame) -> Iterator[Event]:
        correlation_id = int.from_bytes(raw.data[:4], "big", signed=True)
        asked = self._pending.by_id.pop(correlation_id, None) if len(raw.data) >= 4 else None
        if asked is None:
            if self._raw_tokens:
                yield self._token(False, raw)
                return
            self._held.append(raw)
            if len(self._held) > _MAX_HELD:
                yield self._orphan(self._held.pop(0))
            return
        body = _cut(raw, read_reply(asked.api_key, asked.version, raw.data, raw.size - len(raw.data)))
        then, now = asked.time, raw.stamp.time
        latency = now - then if then is not None and now is not None else None
        yield Frame("reply", *self._ends(False), raw.stamp, raw.size, body._replace(client_id=asked.client_id),
                    latency, topics_of(body.message) | asked.topics)

    def _token(self, from_client: bool, raw: RawFrame) -> Frame:
        return Frame("token", *self._ends(from_client), raw.stamp, raw.size, Body(None, None, None, None, None))

    def _orphan(self, raw: RawFrame) -> Frame:
        correlation_id = int.from_bytes(raw.data[:4], "big", signed=True) if len(raw.data) >= 4 else None
        note = "its request was not captured, so nobody knows what it says"
        if raw.size > MAX_FRAME_BYTES or correlation_id is None:
            note = "it is too short for a reply"
        return Frame("reply", *self._ends(False), raw.stamp, raw.size,
                     Body(None, None, correlation_id, None, None, note=note))
