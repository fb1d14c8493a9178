"""How a message says which schema it was written with: before the payload, or in a header.

Before the payload stand a 0 byte and the schema's id, or a 1 byte and its GUID; in a header, a 1 byte and the GUID.
Protobuf adds which message of the file it is. confluent_kafka's functions. Read next: `client.registry.subject_names`.
"""

from __future__ import annotations

import io
import struct
import uuid

from headrace.client.serdes import MessageField, SerializationContext
from headrace.errors import SerializationError
from headrace.types.records import Headers

__all__ = [
    "KEY_SCHEMA_ID_HEADER",
    "VALUE_SCHEMA_ID_HEADER",
    "SchemaId",
    "dual_schema_id_deserializer",
    "header_schema_id_serializer",
    "prefix_schema_id_deserializer",
    "prefix_schema_id_serializer",
]

KEY_SCHEMA_ID_HEADER = "__key_schema_id"
VALUE_SCHEMA_ID_HEADER = "__value_schema_id"
_ID = struct.Struct(">BI")
_ID_FOLLOWS, _GUID_FOLLOWS = 0, 1
_GUID_SIZE = 16
_LONGEST_VARINT = 5
"""Bytes of the largest index that Protobuf's tools write, an int of 32 bits."""
_MOST_INDEXES = 1000
"""Messages within messages, of which Protobuf's own parser takes no more than a hundred."""


class SchemaId:
    """Which schema a payload was written with.

    Args:
        schema_type: AVRO, JSON or PROTOBUF.
        schema_id: number in the registry.
        guid: number in all registries, as a text.
        message_indexes: for Protobuf, the place of the message's type in its file: first of the outermost type, and
            then of each one within.

    Attributes:
        id: as `schema_id`.
        guid: as given, a `uuid.UUID`.
    """

    __slots__ = ("guid", "id", "message_indexes", "schema_type")

    def __init__(self, schema_type: str, schema_id: int | None = None, guid: str | None = None,
                 message_indexes: list[int] | None = None) -> None:
        self.schema_type = schema_type
        self.id = schema_id
        self.guid = None if guid is None else uuid.UUID(guid)
        self.message_indexes = message_indexes

    def from_bytes(self, payload: io.BytesIO) -> io.BytesIO:
        """Take the id, or the GUID, from the front.

        Args:
            payload: where to read.

        Returns:
            The same, where the rest begins.

        Raises:
            SerializationError: there is none.
        """
        magic = payload.read(1)
        if magic == b"\0":
            self.id = int.from_bytes(_exactly(payload, 4, "a schema id"), "big")
        elif magic == b"\1":
            self.guid = uuid.UUID(bytes=_exactly(payload, _GUID_SIZE, "a schema GUID"))
        else:
            found = f"the first byte is {magic[0]}" if magic else "it is empty"
            raise SerializationError(f"Invalid magic byte: {found}, and a message of a Schema Registry's schema begins "
                                     "with 0 or 1")
        if self.schema_type == "PROTOBUF":
            self.message_indexes = _read_indexes(payload)
        return payload

    def id_to_bytes(self) -> bytes:
        """What stands before a payload.

        Raises:
            SerializationError: the id is not known, or too large.
        """
        if self.id is None:
            raise SerializationError("Schema ID is not set")
        try:
            return _ID.pack(_ID_FOLLOWS, self.id) + self._indexes()
        except struct.error:
            raise SerializationError(f"Schema ID {self.id!r} is no number of 32 bits") from None

    def guid_to_bytes(self) -> bytes:
        """What stands in a header.

        Raises:
            SerializationError: the GUID is not known.
        """
        if self.guid is None:
            raise SerializationError("Schema GUID is not set")
        return bytes((_GUID_FOLLOWS,)) + self.guid.bytes + self._indexes()

    def _indexes(self) -> bytes:
        if self.message_indexes is None:
            return b""
        if self.message_indexes == [0]:  # the first type of a file, which is usual
            return b"\0"
        return b"".join(map(_varint, (len(self.message_indexes), *self.message_indexes)))


def prefix_schema_id_serializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> bytes:
    """Put the schema's id before the payload.

    Args:
        payload: the serialized value.
        ctx: where it goes to; not used.
        schema_id: the schema.

    Returns:
        A zero byte, the id in four bytes (and, for Protobuf, which type of the file it is), the payload.

    Raises:
        SerializationError: the id is not known.
    """
    return schema_id.id_to_bytes() + payload


def header_schema_id_serializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> bytes:
    """Put the schema's GUID into a header of the message, and leave the payload alone.

    Args:
        payload: the serialized value.
        ctx: where it goes to; its headers get one more.
        schema_id: the schema.

    Returns:
        The payload, as it was given.

    Raises:
        SerializationError: the GUID is not known, or there are no headers to add to.
    """
    if ctx is None:
        raise SerializationError("SerializationContext is required for header_schema_id_serializer")
    name, value = _header_name(ctx), schema_id.guid_to_bytes()
    if isinstance(ctx.headers, list):
        ctx.headers.append((name, value))
    elif isinstance(ctx.headers, dict):
        ctx.headers[name] = value
    elif ctx.headers is None:
        raise SerializationError("Missing headers: give the message a list of headers, which may be empty")
    else:
        raise SerializationError(f"Invalid headers type: {type(ctx.headers).__name__}, not list or dict")
    return payload


def prefix_schema_id_deserializer(
    payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId
) -> io.BytesIO:
    """Read which schema it is from the front of the payload.

    Args:
        payload: of the message.
        ctx: where it comes from; not used.
        schema_id: gets what is found.

    Returns:
        What is left of the payload.

    Raises:
        SerializationError: there is no id in front.
    """
    return schema_id.from_bytes(io.BytesIO(payload))


def dual_schema_id_deserializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> io.BytesIO:
    """Read which schema it is from the header, or where there is none from the front of the payload.

    Args:
        payload: of the message.
        ctx: where it comes from, with the message's headers.
        schema_id: gets what is found.

    Returns:
        What is left of the payload.

    Raises:
        SerializationError: there is no id in either.
    """
    value = None if ctx is None else _header(ctx.headers, _header_name(ctx))
    if value is None:
        return schema_id.from_bytes(io.BytesIO(payload))
    schema_id.from_bytes(io.BytesIO(value))
    return io.BytesIO(payload)


def _header_name(ctx: SerializationContext) -> str:
    return KEY_SCHEMA_ID_HEADER if ctx.field == MessageField.KEY else VALUE_SCHEMA_ID_HEADER


def _header(headers: Headers | None, name: str) -> bytes | None:
    """The first header of a name."""
    found: object = None
    if isinstance(headers, dict):
        found = headers.get(name)
    elif isinstance(headers, list | tuple):
        found = next((value for header, value in headers if header == name), None)
    return found.encode() if isinstance(found, str) else found  # type: ignore[return-value]


def _exactly(payload: io.BytesIO, size: int, what: str) -> bytes:
    found = payload.read(size)
    if len(found) < size:
        raise SerializationError(f"the message ends within {what}: {len(found)} of {size} bytes are there")
    return found


def _varint(value: int) -> bytes:
    """An int as Protobuf's sint: zigzag, seven bits a byte."""
    left, made = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    made.append(left)
    return bytes(made)


def _read_varint(payload: io.BytesIO) -> int:
    value = 0
    for place in range(_LONGEST_VARINT):
        byte = _exactly(payload, 1, "its message indexes")[0]
        value |= (byte & 0x7F) << (7 * place)
        if byte <= 0x7F:
            return (value >> 1) ^ -(value & 1)
    raise SerializationError("Invalid message index: a number of more than five bytes")


def _read_indexes(payload: io.BytesIO) -> list[int]:
    size = _read_varint(payload)
    if not 0 <= size <= _MOST_INDEXES:
        raise SerializationError(f"Invalid msgidx array length: {size}")
    return [_read_varint(payload) for _ in range(size)] or [0]
