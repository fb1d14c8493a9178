"""Templates of frames that differ little from one to the next: the codec makes the bytes that stay, once.

Nothing here knows how a message is laid out. The codec writes it, twice where numbers change: with zeros and with other
values, and where the bytes differ is the place of the numbers. So a template cannot drift from the codec; what it does
not cover is left to the codec itself.

Read next: `machines.producer.lone_batch`, which has a template for each partition; `machines.cluster.in_flight`, which
uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Packer
from typing import Any, Final

from headrace.errors import ProtocolError
from headrace.wire.codec import Part
from headrace.wire.frame import encode_request, encode_response
from headrace.wire.layout import is_flexible
from headrace.wire.primitives import write_uvarint
from headrace.wire.schema import Request, Response

__all__ = ["ExchangeTemplate", "RecordsReplyTemplate", "ReplyTemplate", "RequestTemplate"]

_LENGTH_BYTES: Final = 4
_START = Packer(">ihhi")  # length, API, version, correlation id
_INT32 = Packer(">i")
_INTEGERS = {4: _INT32, 8: Packer(">q")}
_MARKER: Final = memoryview(b"records")


class RequestTemplate:
    """A request in which only the records of one partition change, or some numbers.

    Args:
        request: the message.
        part: the structure in it that has the records, in a field of that name; None where it has none.
        numbers: structures in it, each with the name of a field that holds an int32 or int64. No records stand before
            them.

    Attributes:
        request, part: as given. What changes is changed in place before `frame`.
    """

    __slots__ = ("_client_id", "_flexible", "_length", "_middle", "_numbers", "_places", "_size", "_stem", "_tail",
                 "_version", "part", "request")

    def __init__(self, request: Request, part: Any = None, numbers: Sequence[tuple[Any, str]] = ()) -> None:
        self.request, self.part, self._numbers = request, part, numbers
        self._version = self._size = -1
        self._client_id: str | None = None
        self._stem = self._middle = self._tail = b""  # what stands before the length of the records, with it, behind
        self._places: list[tuple[Packer, int, Any, str]] = []  # in all three: of which format, where, from where
        self._length = 0
        self._flexible = False

    def frame(self, version: int, correlation_id: int, client_id: str | None) -> list[Part]:
        """What `wire.frame.encode_request` makes of the request as it is now, in parts.

        Raises:
            ProtocolError, KafkaException: as there.
        """
        if version != self._version or client_id != self._client_id:
            self._make(version, client_id)
        records: Any = b"" if self.part is None else self.part.records
        size = len(records)
        if size != self._size:
            self._measure(size)
        head: Any = _START.pack(self._length, self.request.api_key, version, correlation_id) + self._middle
        if self._places:
            head = bytearray(head)
            for packer, place, owner, name in self._places:
                packer.pack_into(head, place, getattr(owner, name))
        if self.part is None:
            return [head]
        return [head, records, self._tail] if self._tail else [head, records]

    def around(self, version: int, client_id: str | None) -> tuple[bytes, bytes, bool]:
        """What stands around the records and their length, behind the correlation id; and how the length is written.

        Returns:
            The bytes before the length, those behind the records, and whether the length is a varint and one more.
        """
        if version != self._version or client_id != self._client_id:
            self._make(version, client_id)
        return self._stem, self._tail, self._flexible

    def whole(self, version: int, client_id: str | None) -> tuple[bytes, tuple[int, ...]]:
        """A frame without records, with the correlation id 0, and the places of `numbers` in it."""
        frame = b"".join(self.frame(version, 0, client_id))
        return frame, tuple(place for _, place, _, _ in self._places)

    def _make(self, version: int, client_id: str | None) -> None:
        """Have the codec write the request, around a marker if it has records; their length stands right before it."""
        records = None if self.part is None else self.part.records
        if self.part is not None:
            self.part.records = _MARKER
        try:
            head, *rest = encode_request(self.request, version, 0, client_id)
            self._flexible = is_flexible(type(self.request), version)
            self._places = [self._place(owner, name, version, client_id) for owner, name in self._numbers]
        finally:
            if self.part is not None:
                self.part.records = records
        end = len(head) - len(self._length_of(len(_MARKER)))
        self._stem, self._tail = bytes(head[_START.size:end]), b"".join(rest[1:])
        self._version, self._client_id, self._size = version, client_id, -1

    def _place(self, owner: Any, name: str, version: int, client_id: str | None) -> tuple[Packer, int, Any, str]:
        """Where a number travels."""
        kept, heads = getattr(owner, name), []
        try:
            for number in (0, -1):
                setattr(owner, name, number)
                heads.append(bytes(encode_request(self.request, version, 0, client_id)[0]))
        finally:
            setattr(owner, name, kept)
        first, end = _difference(*heads)
        return _INTEGERS[end - first], first, owner, name

    def _measure(self, size: int) -> None:
        self._middle = self._stem + self._length_of(size)
        self._length = _START.size - _LENGTH_BYTES + len(self._middle) + size + len(self._tail)
        self._size = size

    def _length_of(self, size: int) -> bytes:
        if self.part is None:
            return b""
        return write_uvarint(size + 1) if self._flexible else _INT32.pack(size)


class ReplyTemplate:
    """A reply in which only some numbers change.

    Args:
        reply: the message, as it is expected.
        part: the structure in it that has the numbers.
        names: the fields with them: int64, in the order in which they travel, without another field in between.
        known: an int32 in front of them that the reply must have; set it in `part` before the reply can come. Empty for
            none.

    Attributes:
        reply, part: as given; `read` changes the numbers in place.
    """

    __slots__ = ("_after", "_before", "_end", "_first", "_known_as", "_known_at", "_known_name", "_names", "_numbers",
                 "_size", "_version", "part", "reply")

    def __init__(self, reply: Response, part: Any, names: tuple[str, ...], known: str = "") -> None:
        self.reply, self.part = reply, part
        self._names, self._numbers = names, Packer(f">{len(names)}q")
        self._known_name, self._known_as, self._known_at = known, 0, 0
        self._version = self._size = -1
        self._first = self._end = 0
        self._before = self._after = b""

    def read(self, frame: bytes | bytearray | memoryview, version: int, correlation_id: int) -> Response | None:
        """`reply` with the frame's numbers, if the frame is as expected; None where the codec has to read it.

        Args:
            frame: what has come, without its length.
            version: version of the request.
            correlation_id: number of the request.
        """
        if version != self._version:
            self._make(version)
        if self._known_name and (known := getattr(self.part, self._known_name)) != self._known_as:
            self._expect(known)
        first, end = self._first, self._end
        if (len(frame) != self._size or frame[_LENGTH_BYTES:first] != self._before or frame[end:] != self._after
                or _INT32.unpack_from(frame)[0] != correlation_id):
            return None
        part = self.part
        for name, number in zip(self._names, self._numbers.unpack_from(frame, first), strict=True):
            setattr(part, name, number)
        return self.reply

    def around(self, version: int) -> tuple[bytes, bytes] | None:
        """The bytes between the correlation id and the numbers, and those behind the numbers; None if nothing is read
        in this version.
        """
        if version != self._version:
            self._make(version)
        return (self._before, self._after) if self._size >= 0 else None

    def _expect(self, known: int) -> None:
        self._known_as, at, before = known, self._known_at, self._before
        self._before = before[:at] + _INT32.pack(known) + before[at + _INT32.size:]

    def _make(self, version: int) -> None:
        """Have the codec write the reply twice. Where it has not all of the numbers side by side, nothing is read."""
        self._version = version
        zeros, others = self._written(version, 0), self._written(version, -1)
        if self._known_name:
            self._known_as = getattr(self.part, self._known_name)
            setattr(self.part, self._known_name, ~self._known_as)
            self._known_at = _difference(zeros, self._written(version, 0))[0] - _LENGTH_BYTES
            setattr(self.part, self._known_name, self._known_as)
        first, end = _difference(zeros, others)
        self._first, self._end = first, end
        self._size = len(zeros) if end - first == self._numbers.size else -1  # else one is not in this version
        self._before, self._after = zeros[_LENGTH_BYTES:first], zeros[end:]

    def _written(self, version: int, number: int) -> bytes:
        for name in self._names:
            setattr(self.part, name, number)
        return b"".join(encode_response(self.reply, version, 0))[_LENGTH_BYTES:]


class RecordsReplyTemplate(ReplyTemplate):
    """A reply template whose `part` has records as well, behind the numbers; `read` makes them views of the frame."""

    __slots__ = ("_fixed", "_flexible", "_known_size", "_length", "_start", "_tail")

    def __init__(self, reply: Response, part: Any, names: tuple[str, ...], known: str = "") -> None:
        super().__init__(reply, part, names, known)
        self._start = self._fixed = 0  # where the length of the records stands; bytes besides that and the records
        self._flexible = False
        self._tail = self._length = b""
        self._known_size = -1

    def read(self, frame: bytes | bytearray | memoryview, version: int, correlation_id: int) -> Response | None:
        """As `ReplyTemplate.read`; only whole frames of bytes, as small ones are."""
        if version != self._version:
            self._make(version)
        rest = len(frame) - self._fixed  # the length of the records, and them
        size = rest - 4 if not self._flexible else rest - 1 if rest < 128 else rest - 2 if rest <= 16_384 else rest - 3
        if size <= 0 or type(frame) is not bytes or self._size < 0:
            return None
        if self._known_name and (known := getattr(self.part, self._known_name)) != self._known_as:
            self._expect(known)
        if size != self._known_size:
            self._known_size = size
            self._length = write_uvarint(size + 1) if self._flexible else _INT32.pack(size)
        first, end, start, tail = self._first, self._end, self._start, self._start + rest
        begin = tail - size
        if (frame[_LENGTH_BYTES:first] != self._before or frame[end:start] != self._after
                or frame[start:begin] != self._length or frame[tail:] != self._tail
                or _INT32.unpack_from(frame)[0] != correlation_id):
            return None
        part = self.part
        for name, number in zip(self._names, self._numbers.unpack_from(frame, first), strict=True):
            setattr(part, name, number)
        part.records = memoryview(frame)[begin:tail]
        return self.reply

    def shape(self, version: int) -> tuple[bytes, int, bytes, bool, bytes] | None:
        """What stands around the numbers and the records, behind the correlation id.

        Returns:
            The bytes before the numbers, the place of the known int32 in them, the bytes between the numbers and the
            length of the records, whether that is a varint and one more, and the bytes behind the records. None if
            nothing is read in this version.
        """
        if version != self._version:
            self._make(version)
        if self._size < 0:
            return None
        return self._before, self._known_at, self._after, self._flexible, self._tail

    def _make(self, version: int) -> None:
        self.part.records = _MARKER
        try:
            super()._make(version)
            head, _, *tail = encode_response(self.reply, version, 0)
        finally:
            self.part.records = None
        self._flexible, self._known_size = is_flexible(type(self.reply), version), -1
        self._tail = b"".join(tail)
        length = len(write_uvarint(len(_MARKER) + 1)) if self._flexible else _INT32.size
        self._start = len(head) - _LENGTH_BYTES - length
        self._after = bytes(head[_LENGTH_BYTES + self._end:_LENGTH_BYTES + self._start])
        self._fixed = self._start + len(self._tail)


def _difference(one: bytes, other: bytes) -> tuple[int, int]:
    """Where the only piece begins and ends in which two frames differ.

    Raises:
        ProtocolError: there is none, or more than one.
    """
    places = [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if not places or places[-1] - places[0] + 1 != len(places):
        raise ProtocolError("numbers that change do not travel side by side")
    return places[0], places[-1] + 1


class ExchangeTemplate:
    """A request that is made again and again, and the reply that nearly always comes.

    Args:
        request: writes the request.
        reply: reads the reply.
        first_version: in older ones both are left to the codec.
    """

    __slots__ = ("first_version", "reply", "request")

    def __init__(self, request: RequestTemplate, reply: ReplyTemplate, first_version: int) -> None:
        self.request, self.reply, self.first_version = request, reply, first_version
