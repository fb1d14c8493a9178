"""Reads a message field by field, as far as it goes: for frames that are damaged or were not captured whole.

The codec of `headrace.wire` takes a message or refuses it, and is what reads every frame first. This reader is asked
after it has refused: it keeps what stands before the damage and names the field and the byte at which it stopped.

Read next: `bodies`.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from headrace.errors import ProtocolError
from headrace.wire.layout import FIXED, FieldColumn, Type, columns, is_flexible, min_size
from headrace.wire.primitives import read_uuid, read_uvarint
from headrace.wire.schema import ApiMessage

__all__ = ["Partial", "read_partly"]


class Partial(NamedTuple):
    """What could be read of a message.

    Attributes:
        message: fields that were not reached are not set.
        position: byte of the frame behind what was read.
        problem: why reading stopped; empty when the message is whole.
    """

    message: ApiMessage
    position: int
    problem: str


class _Stop(Exception):
    pass


def read_partly(cls: type[ApiMessage], data: memoryview, version: int, start: int) -> Partial:
    """Read as much of a message as there is.

    Args:
        cls: class of the message.
        data: the frame.
        version: version of the message.
        start: byte of the frame at which the message begins.
    """
    reader = _Reader(data, version, is_flexible(cls, version), start)
    message: ApiMessage = _blank(cls)
    problem = ""
    try:
        reader.fill(message)
    except _Stop as stop:
        where = "".join(reader.path).lstrip(".")
        problem = f"{stop} (at byte {reader.position} of the frame, in {where or cls.__name__})"
    return Partial(message, reader.position, problem)


def _blank(cls: type[Any]) -> Any:
    """A structure none of whose fields is set yet."""
    made = object.__new__(cls)
    made.unknown_tags = None
    return made


class _Reader:
    def __init__(self, data: memoryview, version: int, flexible: bool, start: int) -> None:
        self.path: list[str] = []
        self.position = start
        self._data = data
        self._version = version
        self._flexible = flexible

    def fill(self, target: Any) -> None:
        """Read the fields of a structure into it, each as soon as it is known."""
        tagged: dict[int, FieldColumn] = {}
        for column in columns(type(target)):
            if not column.versions.holds(self._version):
                continue
            if column.is_tagged(self._version):
                assert column.tag is not None
                tagged[column.tag] = column
            else:
                self._field(target, column)
        if self._flexible:
            self.path.append(".tags")
            for _ in range(self._uvarint()):
                self._tag(target, tagged)
            self.path.pop()

    def _tag(self, target: Any, tagged: dict[int, FieldColumn]) -> None:
        tag, size = self._uvarint(), self._uvarint()
        stop = self.position + size
        self._need(size)
        if tag in tagged:
            self._field(target, tagged[tag])
            if self.position != stop:
                raise _Stop(f"a tagged field ends at byte {self.position} and should end at {stop}")
        else:
            target.unknown_tags = target.unknown_tags or {}
            target.unknown_tags[tag] = self._take(size)

    def _field(self, target: Any, column: FieldColumn) -> None:
        self.path.append(f".{column.name}")
        nullable = column.nullable.holds(self._version)
        if column.type.is_array:
            self._array(target, column, nullable)
        elif column.type.struct is not None:
            self._struct(target, column, nullable)
        elif column.type.name == "Records":
            self._records(target, column, nullable)
        else:
            setattr(target, column.name, self._primitive(column.type, nullable))
        self.path.pop()

    def _array(self, target: Any, column: FieldColumn, nullable: bool) -> None:
        count = self._length("i", nullable, self._flexible)
        if count is None:
            setattr(target, column.name, None)
            return
        least = max(1, min_size(column.type.item, self._version, self._flexible))
        if count * least > len(self._data) - self.position:
            setattr(target, column.name, [])
        found: list[Any] = []
        setattr(target, column.name, found)
        for index in range(count):
            self.path.append(f"[{index}]")
            if column.type.struct is None:
                found.append(self._primitive(column.type.item, nullable=False))
            else:
                # Kept before it is read: what there is of it shall be seen.
                self._need(least)
                found.append(_blank(column.type.struct))
                self.fill(found[-1])
            self.path.pop()

    def _struct(self, target: Any, column: FieldColumn, nullable: bool) -> None:
        assert column.type.struct is not None
        if nullable and self._fixed("b") < 0:
            setattr(target, column.name, None)
            return
        inner = _blank(column.type.struct)
        setattr(target, column.name, inner)
        self.fill(inner)

    def _records(self, target: Any, column: FieldColumn, nullable: bool) -> None:
        size = self._length("i", nullable, self._flexible)
        end = None if size is None else self.position + size
        setattr(target, column.name, None if end is None else self._data[self.position:end])
        if size is not None:
            self._need(size)
            self.position += size

    def _primitive(self, type_: Type, nullable: bool) -> Any:
        if type_.name in FIXED:
            return self._fixed(FIXED[type_.name])
        if type_.name == "Uuid":
            return read_uuid(self._take(16))
        is_text = type_.name.endswith("String")
        size = self._length("h" if is_text else "i", nullable, self._flexible and type_.name != "ShortString")
        if size is None:
            return None
        content = self._take(size)
        try:
            return content.decode() if is_text else content
        except UnicodeDecodeError:
            raise _Stop("a text is not UTF-8") from None

    def _length(self, letter: str, nullable: bool, compact: bool) -> int | None:
        size: int = self._uvarint() - 1 if compact else self._fixed(letter)
        if size >= 0:
            return size
        if nullable and size == -1:
            return None
        raise _Stop(f"a length is {size}")

    def _uvarint(self) -> int:
        try:
            number, self.position = read_uvarint(self._data, self.position)
        except (IndexError, ProtocolError):
            raise _Stop("a length cannot be read") from None
        return number

    def _fixed(self, letter: str) -> Any:
        size = struct.calcsize(">" + letter)
        return struct.unpack(">" + letter, self._take(size))[0]

    def _take(self, size: int) -> bytes:
        self._need(size)
        found = bytes(self._data[self.position:self.position + size])
        self.position += size
        return found

    def _need(self, size: int) -> None:
        left = len(self._data) - self.position
        if size > left:
            raise _Stop(f"{size} bytes should follow and {left} are there")
