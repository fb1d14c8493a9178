"""Messages to bytes and back. The codec of a message and version is compiled on first use and kept.

Every failure to read is a `ProtocolError`; every failure to write is one too when a value is wrong, and a
`KafkaException` (unsupported feature) when the version cannot carry a field that is set.

This module knows no headers and no frames: read next `wire.frame`. The generated source is made by `wire.writing` and
`wire.reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct as Packer
from struct import error as StructError  # noqa: N812  it is a class
from typing import Any, TypeVar

from headrace.compiled import function_of
from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.interpreter import uncollected
from headrace.wire.primitives import as_view
from headrace.wire.reading import ArrayReader, decoder_source
from headrace.wire.schema import ApiMessage, Struct
from headrace.wire.writing import encoder_source

__all__ = [
    "Part", "Reader", "assemble", "compile_reader", "compile_writer", "decode", "decode_from", "decode_prefixed",
    "encode", "encode_into", "encode_parts", "encode_prefixed", "read_message",
]

Part = bytes | memoryview
Cuts = list[tuple[int, memoryview]]
"""Where in the written bytes which records belong; none are empty."""

AnyMessage = TypeVar("AnyMessage", bound=ApiMessage)
Writer = Callable[[ApiMessage, bytearray, Cuts], None]
_PREFIX = Packer(">h")
_MANY_OBJECTS = 128 * 1024
"""Bytes of a message that may become so many objects that the collector would run several times."""

Reader = Callable[[bytes | memoryview, memoryview, int], tuple[Any, int]]

_writers: dict[tuple[type[ApiMessage], int], Writer] = {}
_readers: dict[tuple[type[ApiMessage], int], Reader] = {}


def encode(message: ApiMessage, version: int) -> bytes:
    """The bytes of a message, records included.

    Raises:
        ProtocolError: a value does not fit its field, or the version does not exist.
        KafkaException: a field is set that this version does not carry.
    """
    return b"".join(encode_parts(message, version))


def encode_parts(message: ApiMessage, version: int) -> list[Part]:
    """Like `encode`, in parts to be sent one after the other: records stay where they are and are not copied."""
    out = bytearray()
    return assemble(out, encode_into(out, message, version))


def encode_into(out: bytearray, message: ApiMessage, version: int) -> Cuts:
    """Append a message to `out` without its records, and return where those belong."""
    cls = type(message)
    writer = _writers.get((cls, version)) or compile_writer(cls, version)
    cuts: Cuts = []
    try:
        writer(message, out, cuts)
    except LookupError as error:
        text = f"{cls.__name__} v{version}: {error.args[0]}; the broker is too old for this, or leave it out"
        raise KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE, text)) from None
    except (StructError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"{cls.__name__} v{version} cannot be written: {error}") from error
    return cuts


def assemble(out: bytearray, cuts: Cuts) -> list[Part]:
    """Put records between the written bytes."""
    if not cuts:
        return [bytes(out)]
    view, start = memoryview(out), 0
    parts: list[Part] = []
    for position, records in cuts:
        if position > start:
            parts.append(view[start:position])
            start = position
        parts.append(records)
    if start < len(out):
        parts.append(view[start:])
    return parts


def decode(cls: type[AnyMessage], data: bytes | bytearray | memoryview, version: int) -> AnyMessage:
    """Read one message that fills `data`. Records in it are views of `data`; everything else is copied out.

    Raises:
        ProtocolError: the bytes are not such a message, or bytes are left over.
    """
    return decode_from(cls, data, version, 0)


def decode_from(
    cls: type[AnyMessage], data: bytes | bytearray | memoryview, version: int, start: int, *, to_the_end: bool = True
) -> AnyMessage:
    """Like `decode`, for a message that begins at byte `start`; bytes behind it may be allowed."""
    reader = _readers.get((cls, version)) or _kept_reader(cls, version)
    return read_message(cls, version, reader, data, start, to_the_end=to_the_end)


def read_message(
    cls: type[AnyMessage], version: int, reader: Reader, data: bytes | bytearray | memoryview, start: int, *,
    to_the_end: bool = True,
) -> AnyMessage:
    """As `decode_from`, with what `compile_reader` has made of the class."""
    try:
        view = memoryview(data) if type(data) is bytes else as_view(data)
        if len(view) >= _MANY_OBJECTS:
            reader = uncollected(reader)
        message, position = reader(data if type(data) is bytes else view, view, start)
    except ProtocolError as error:
        raise ProtocolError(f"{cls.__name__} v{version} cannot be read: {error.error.str()}") from None
    except (StructError, IndexError, ValueError, TypeError) as error:
        raise ProtocolError(f"{cls.__name__} v{version} cannot be read: {error}") from None
    if to_the_end and position != len(view):
        raise ProtocolError(f"{cls.__name__} v{version} ends at byte {position}, but {len(view)} bytes were received")
    return message  # type: ignore[no-any-return]


def encode_prefixed(message: ApiMessage, version: int) -> bytes:
    """The bytes of a message behind its version as an int16, as parts of other messages and control records travel.

    Source: Java's `MessageUtil.toVersionPrefixedBytes`.
    """
    return _PREFIX.pack(version) + encode(message, version)


def decode_prefixed(cls: type[AnyMessage], data: bytes | bytearray | memoryview) -> tuple[int, AnyMessage]:
    """Read a message behind its version. A newer version is read as far as the newest known one goes, as Java does.

    Returns:
        The version as it was sent, and the message.

    Raises:
        ProtocolError: the bytes are not such a message, or bytes of a known version are left over.
    """
    if len(data) < _PREFIX.size:
        raise ProtocolError(f"{len(data)} bytes are too short for {cls.__name__} with its version")
    version: int = _PREFIX.unpack_from(data)[0]
    message = decode_from(cls, data, min(version, cls.max_version), _PREFIX.size, to_the_end=version <= cls.max_version)
    return version, message


def compile_writer(cls: type[ApiMessage], version: int) -> Writer:
    """Make a function that writes a message, and keep it.

    Raises:
        ProtocolError: the version does not exist.
    """
    _check_version(cls, version)
    writer: Writer = function_of("write", *encoder_source(cls, version), f"write {cls.__name__} v{version}")
    _writers[cls, version] = writer
    return writer


def _kept_reader(cls: type[ApiMessage], version: int) -> Reader:
    reader = _readers[cls, version] = compile_reader(cls, version)
    return reader


def compile_reader(
    cls: type[ApiMessage], version: int, *, part: type[Struct] | None = None,
    arrays: Mapping[type[Struct], ArrayReader] | None = None,
) -> Reader:
    """Make a function that reads a message, or with `part` a structure of it; `arrays` as of `decoder_source`.

    Raises:
        ProtocolError: the version does not exist.
    """
    _check_version(cls, version)
    which = f", {part.__name__}" if part else "".join(f" but {each.__name__}" for each in arrays or ())
    title = f"read {cls.__name__} v{version}{which}"
    reader: Reader = function_of("read", *decoder_source(cls, version, part, arrays or {}), title)
    return reader


def _check_version(cls: type[ApiMessage], version: int) -> None:
    if not cls.min_version <= version <= cls.max_version:
        raise ProtocolError(f"{cls.__name__} has no version {version}; it has {cls.min_version}-{cls.max_version}")
