"""Frames that are written and read over and over with few differences: the bytes that stay are made once, by the codec.

Nothing here knows how a message is laid out. The codec writes it, twice where numbers change: with zeros and with other
values, and where the bytes differ is the place of the numbers. So a template cannot drift from the codec; what it does
not cover is left to the codec itself.

Read next: `machines.producer.lone_batch`, which has a template for each partition; `machines.cluster.in_flight`, which
uses them.
"""

from __future__ import annotations

from struct import Struct as Packer
from typing import Any, Final

from headrace.wire.codec import Part
from headrace.wire.frame import encode_request, encode_response
from headrace.wire.layout import is_flexible
from headrace.wire.primitives import write_uvarint
from headrace.wire.schema import Request, Response

__all__ = ["ExchangeTemplate", "ReplyTemplate", "RequestTemplate"]

_LENGTH_BYTES: Final = 4
_START = Packer(">ihhi")  # length, API, version, correlation id
_ID = Packer(">i")
_INT64_BYTES: Final = 8
_MARKER: Final = memoryview(b"records")


class RequestTemplate:
    """A request in which only the records of one partition change.

    Args:
        request: the message.
        part: the structure in it that has the records, in a field of that name.

    Attributes:
        request, part: the same. The records are changed in place, also before each `frame`.
    """

    __slots__ = ("_client_id", "_flexible", "_length", "_middle", "_size", "_stem", "_tail", "_version", "part",
                 "request")

    def __init__(self, request: Request, part: Any) -> None:
        self.request, self.part = request, part
        self._version = self._size = -1
        self._client_id: str | None = None
        self._stem = self._middle = self._tail = b""  # what stands before the length of the records, with it, behind
        self._length = 0
        self._flexible = False

    def frame(self, version: int, correlation_id: int, client_id: str | None) -> list[Part]:
        """What `wire.frame.encode_request` makes of the request as it is now, in parts.

        Raises:
            ProtocolError, KafkaException: as there.
        """
        if version != self._version or client_id != self._client_id:
            self._make(version, client_id)
        records = self.part.records
        size = len(records)
        if size != self._size:
            self._measure(size)
        head = _START.pack(self._length, self.request.api_key, version, correlation_id) + self._middle
        return [head, records, self._tail] if self._tail else [head, records]

    def _make(self, version: int, client_id: str | None) -> None:
        """Have the codec write the request around a marker; the length of that stands right before it."""
        records, self.part.records = self.part.records, _MARKER
        try:
            head, _, *tail = encode_request(self.request, version, 0, client_id)
        finally:
            self.part.records = records
        self._flexible = is_flexible(type(self.request), version)
        end = len(head) - len(self._length_of(len(_MARKER)))
        self._stem, self._tail = bytes(head[_START.size:end]), b"".join(tail)
        self._version, self._client_id, self._size = version, client_id, -1

    def _measure(self, size: int) -> None:
        self._middle = self._stem + self._length_of(size)
        self._length = _START.size - _LENGTH_BYTES + len(self._middle) + size + len(self._tail)
        self._size = size

    def _length_of(self, size: int) -> bytes:
        return write_uvarint(size + 1) if self._flexible else _ID.pack(size)


class ReplyTemplate:
    """A reply in which only some numbers change.

    Args:
        reply: the message, as it is expected.
        part: the structure in it that has the numbers.
        names: the fields with them: int64, in the order in which they travel, without another field in between.

    Attributes:
        reply, part: the same; `read` changes the numbers in place.
    """

    __slots__ = ("_after", "_before", "_end", "_first", "_names", "_numbers", "_size", "_version", "part", "reply")

    def __init__(self, reply: Response, part: Any, names: tuple[str, ...]) -> None:
        self.reply, self.part = reply, part
        self._names, self._numbers = names, Packer(f">{len(names)}q")
        self._version = self._size = -1
        self._first = self._end = 0
        self._before = self._after = b""

    def read(self, frame: bytes | bytearray | memoryview, version: int, correlation_id: int) -> Response | None:
        """`reply` with the frame's numbers, if the frame is as expected; None where the codec has to read it.

        Args:
            frame: what has come, without its length.
            version: of the request.
            correlation_id: of the request.
        """
        if version != self._version:
            self._make(version)
        first, end = self._first, self._end
        if (len(frame) != self._size or frame[_LENGTH_BYTES:first] != self._before or frame[end:] != self._after
                or _ID.unpack_from(frame)[0] != correlation_id):
            return None
        part = self.part
        for name, number in zip(self._names, self._numbers.unpack_from(frame, first), strict=True):
            setattr(part, name, number)
        return self.reply

    def _make(self, version: int) -> None:
        """Have the codec write the reply twice. Where it has not all of the numbers side by side, nothing is read."""
        self._version = version
        zeros, others = self._written(version, 0), self._written(version, -1)
        places = [place for place, (zero, other) in enumerate(zip(zeros, others, strict=True)) if zero != other]
        count = len(self._names) * _INT64_BYTES
        if len(places) != count or places[-1] - places[0] + 1 != count:
            self._size = -1
            return
        self._size, self._first, self._end = len(zeros), places[0], places[-1] + 1
        self._before, self._after = zeros[_LENGTH_BYTES:self._first], zeros[self._end:]

    def _written(self, version: int, number: int) -> bytes:
        for name in self._names:
            setattr(self.part, name, number)
        return b"".join(encode_response(self.reply, version, 0))[_LENGTH_BYTES:]


class ExchangeTemplate:
    """A request that is made again and again, and the reply that nearly always comes.

    Args:
        said: the request.
        heard: the reply.
        first_version: in older ones both are left to the codec.
    """

    __slots__ = ("first_version", "heard", "said")

    def __init__(self, said: RequestTemplate, heard: ReplyTemplate, first_version: int) -> None:
        self.said, self.heard, self.first_version = said, heard, first_version
