"""Serializers: what turns the application's objects into bytes and back, and how a client is given them.

`headrace.serialization` is the public face. It must not know clients. Read next:
`client.producer.serializing_producers`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from headrace.errors import SerializationError
from headrace.types.records import Headers

__all__ = [
    "CLUSTER_ID_TIMEOUT_S",
    "Deserializer",
    "DeserializerBuilder",
    "DoubleDeserializer",
    "DoubleSerializer",
    "IntegerDeserializer",
    "IntegerSerializer",
    "MessageField",
    "SerializedPart",
    "SerializationContext",
    "Serializer",
    "SerializerBuilder",
    "StringDeserializer",
    "StringSerializer",
    "all_built",
    "all_built_async",
    "built",
    "close_all",
    "close_all_async",
    "offer_cluster_id",
    "offer_cluster_id_async",
    "parts_of",
    "rest_of",
    "settled",
]

CLUSTER_ID_TIMEOUT_S = 60.0
"""Longest that a serializer that asks for the cluster's id waits for a broker."""


class MessageField(StrEnum):
    """The part of a message that is converted."""

    NONE = "none"
    KEY = "key"
    VALUE = "value"


class SerializationContext:
    """What a serializer gets besides the object.

    Args:
        topic: where the message goes to, or comes from.
        field: the part of the message.
        headers: the message's headers, None without any. A serializer may add to them.
    """

    def __init__(self, topic: str, field: MessageField, headers: Headers | None = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers


class _Serde:
    """What serializers and deserializers have in common: a life of their own, if they need one."""

    __slots__: tuple[str, ...] = ()

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Take a function that asks for the cluster's id, to be called when it is needed; it may wait for a broker."""

    def close(self) -> None:
        """Give back what was opened. Clients call it for those that they have had built."""


class Serializer(_Serde):
    """Base class of what turns objects into bytes. A client may be given any function of the same arguments."""

    __slots__: tuple[str, ...] = ()

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Convert an object.

        Args:
            obj: what to convert; None stays None, which is a tombstone.
            ctx: where it goes to.

        Raises:
            SerializationError: it cannot be converted.
        """
        raise NotImplementedError


class Deserializer(_Serde):
    """Base class of what turns bytes into objects. A client may be given any function of the same arguments."""

    __slots__: tuple[str, ...] = ()

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Convert bytes.

        Args:
            value: what to convert; None stays None.
            ctx: where it comes from.

        Raises:
            SerializationError: it cannot be converted.
        """
        raise NotImplementedError


class SerializerBuilder:
    """Base class of what makes a serializer from the properties of the client that will use it, and close it."""

    __slots__: tuple[str, ...] = ()

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Serializer, dict[str, Any]]:
        """Make the serializer.

        Args:
            conf: the client's properties.
            is_key: it is for keys.

        Returns:
            The serializer, and the properties that are left for the client.
        """
        raise NotImplementedError


class DeserializerBuilder:
    """Base class of what makes a deserializer from the properties of the client that will use it, and close it."""

    __slots__: tuple[str, ...] = ()

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Deserializer, dict[str, Any]]:
        """Make the deserializer; see `SerializerBuilder.build`."""
        raise NotImplementedError


class _Number:
    """One number in big-endian order, as `struct` knows it."""

    __slots__: tuple[str, ...] = ()
    _layout: struct.Struct

    def _pack(self, number: Any) -> bytes | None:
        try:
            return None if number is None else self._layout.pack(number)
        except struct.error as error:
            raise SerializationError(str(error)) from error

    def _unpack(self, value: bytes | None) -> Any:
        try:
            return None if value is None else self._layout.unpack(value)[0]
        except struct.error as error:
            raise SerializationError(str(error)) from error


class DoubleSerializer(_Number, Serializer):
    """float to the 8 bytes of IEEE 754, big-endian (Java: `DoubleSerializer`)."""

    _layout = struct.Struct(">d")

    def __call__(self, obj: float | None, ctx: SerializationContext | None = None) -> bytes | None:
        """See `Serializer`."""
        return self._pack(obj)


class DoubleDeserializer(_Number, Deserializer):
    """8 bytes of IEEE 754 to float."""

    _layout = struct.Struct(">d")

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> float | None:
        """See `Deserializer`."""
        number: float | None = self._unpack(value)
        return number


class IntegerSerializer(_Number, Serializer):
    """int to 4 bytes, signed and big-endian (Java: `IntegerSerializer`)."""

    _layout = struct.Struct(">i")

    def __call__(self, obj: int | None, ctx: SerializationContext | None = None) -> bytes | None:
        """See `Serializer`."""
        return self._pack(obj)


class IntegerDeserializer(_Number, Deserializer):
    """4 bytes to int."""

    _layout = struct.Struct(">i")

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> int | None:
        """See `Deserializer`."""
        number: int | None = self._unpack(value)
        return number


class StringSerializer(Serializer):
    """str to bytes.

    Args:
        codec: one of Python's encodings.
    """

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, obj: str | None, ctx: SerializationContext | None = None) -> bytes | None:
        """See `Serializer`."""
        try:
            return None if obj is None else obj.encode(self.codec)
        except UnicodeError as error:
            raise SerializationError(str(error)) from error


class StringDeserializer(Deserializer):
    """Bytes to str.

    Args:
        codec: one of Python's encodings.
    """

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> str | None:
        """See `Deserializer`."""
        try:
            return None if value is None else value.decode(self.codec)
        except UnicodeError as error:
            raise SerializationError(str(error)) from error


class SerializedPart(NamedTuple):
    """The (de)serializer of keys, or of values, in a client's properties."""

    name: str
    serde: Any
    builder: Any
    is_key: bool


def parts_of(conf: Mapping[str, Any], kind: str) -> tuple[list[SerializedPart], dict[str, Any]]:
    """Take the (de)serializers of key and value out of the properties.

    Args:
        conf: the client's properties; they stay as they are.
        kind: "serializer" or "deserializer".

    Returns:
        Key and value, and the properties that are left.

    Raises:
        ValueError: both a serializer and a builder were given.
    """
    left = dict(conf)
    parts = []
    for field in ("key", "value"):
        name = f"{field}.{kind}"
        part = SerializedPart(name, left.pop(name, None), left.pop(f"{name}.builder", None), field == "key")
        if part.serde is not None and part.builder is not None:
            raise ValueError(f"Cannot configure both {name} and {name}.builder: give one of them")
        parts.append(part)
    return parts, left


def built(part: SerializedPart, result: Any) -> tuple[Any, dict[str, Any]]:
    """Check what a builder returned.

    Raises:
        ValueError: it is not a pair of a serializer and properties.
    """
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        raise ValueError(f'"{part.name}.builder" must return a serializer and a dict of the properties that are left, '
                         f"not {result!r:.80}")
    return result


def rest_of(conf: dict[str, Any], left: list[dict[str, Any]]) -> dict[str, Any]:
    """The properties that no builder has taken."""
    return {name: value for name, value in (left[-1] if left else conf).items() if all(name in one for one in left)}


@contextlib.contextmanager
def all_built(
    parts: list[SerializedPart], left: dict[str, Any], made: list[Any]
) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Have builders make their (de)serializers. What they made is closed when one of them, or the block, raises.

    Args:
        parts: key and value.
        left: the properties that `parts_of` left.
        made: gets what builders made.

    Returns:
        The (de)serializers of key and value, None for none, and the properties for the client.
    """
    serdes: list[Any] = []
    rests: list[dict[str, Any]] = []
    try:
        for part in parts:
            result = None if part.builder is None else part.builder.build(dict(left), part.is_key)
            serdes.append(_taken(part, result, made, rests))
        yield serdes, rest_of(left, rests)
    except BaseException:
        with contextlib.suppress(Exception):
            close_all(made)
        raise


@contextlib.asynccontextmanager
async def all_built_async(
    parts: list[SerializedPart], left: dict[str, Any], made: list[Any]
) -> AsyncIterator[tuple[list[Any], dict[str, Any]]]:
    """As `all_built`; builders may be coroutine functions."""
    serdes: list[Any] = []
    rests: list[dict[str, Any]] = []
    try:
        for part in parts:
            result = None if part.builder is None else await settled(part.builder.build(dict(left), part.is_key))
            serdes.append(_taken(part, result, made, rests))
        yield serdes, rest_of(left, rests)
    except BaseException:
        with contextlib.suppress(Exception):
            await close_all_async(made)
        raise


def _taken(part: SerializedPart, result: Any, made: list[Any], rests: list[dict[str, Any]]) -> Any:
    if part.builder is None:
        return part.serde
    serde, rest = built(part, result)
    made.append(serde)
    rests.append(rest)
    return serde


async def settled(result: Any) -> Any:
    """What a function returned, or its coroutine."""
    return await result if inspect.isawaitable(result) else result


def offer_cluster_id(serdes: list[Any], cluster_id: Callable[[float], Any]) -> None:
    """Give those that may ask for the cluster's id a function that asks for it, and may wait for a broker."""
    for serde in serdes:
        if hasattr(serde, "set_cluster_id_resolver"):
            serde.set_cluster_id_resolver(functools.partial(cluster_id, CLUSTER_ID_TIMEOUT_S))


def offer_cluster_id_async(serdes: list[Any], cluster_id: Callable[[float], Any]) -> None:
    """As `offer_cluster_id`, with a coroutine function, for those that are coroutine functions: others would block."""
    resolver = functools.partial(cluster_id, CLUSTER_ID_TIMEOUT_S)
    for serde in serdes:
        if hasattr(serde, "set_async_cluster_id_resolver"):
            serde.set_async_cluster_id_resolver(resolver)
        elif inspect.iscoroutinefunction(type(serde).__call__) and hasattr(serde, "set_cluster_id_resolver"):
            serde.set_cluster_id_resolver(resolver)


def close_all(serdes: list[Any]) -> None:
    """Close each of them that can be closed, and empty the list; the first exception is raised in the end."""
    failed: Exception | None = None
    while serdes:
        try:
            getattr(serdes.pop(), "close", _nothing)()
        except Exception as error:
            failed = failed or error
    if failed is not None:
        raise failed


async def close_all_async(serdes: list[Any]) -> None:
    """As `close_all`; what has an `aclose()` is closed with that, and what is closed may be a coroutine function."""
    async with contextlib.AsyncExitStack() as stack:  # all are closed, also if one raises
        while serdes:
            serde = serdes.pop(0)
            stack.push_async_callback(_closed, getattr(serde, "aclose", getattr(serde, "close", _nothing)))


async def _closed(close: Callable[[], Any]) -> None:
    await settled(close())


def _nothing() -> None:
    """Closes what cannot be closed."""
