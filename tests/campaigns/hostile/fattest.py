"""How much larger than its frame a decoded message can be: the densest frames of every message are measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from headrace.wire import codec
from headrace.wire.layout import columns, is_flexible
from tests.support.peak_memory import peak_bytes

from . import frames

_ELEMENTS = 2_000


class FattestFrame(NamedTuple):
    """The message that takes the most memory for each of its bytes."""

    multiple: float
    name: str
    version: int


def fattest_frame() -> FattestFrame:
    """Measure all messages, with each of their lists filled with the smallest elements."""
    fattest = FattestFrame(0.0, "", 0)
    for kind, cls, version in frames.kinds():
        made = cls.response_type if kind == "response" else cls
        for message in dense_messages(made, version):
            multiple = memory_multiple(made, version, message)
            fattest = max(fattest, FattestFrame(multiple, made.__name__, version))
    return fattest


def dense_messages(cls: type[Any], version: int) -> Iterator[Any]:
    """Messages with one list filled, also the lists within the one element of a list.

    The elements are as small as can be; in the highest version also with a tag that nobody knows, which is kept.
    """
    unknown = is_flexible(cls, version) and version == cls.max_version
    yield from _dense(cls, version, unknown)


def _dense(cls: type[Any], version: int, unknown: bool) -> Iterator[Any]:
    for column in columns(cls):
        if not column.versions.holds(version) or column.type.struct is None:
            continue
        inner = column.type.struct
        if not column.type.is_array:
            for value in _dense(inner, version, unknown):
                yield cls(**{column.name: value})
            continue
        elements = [inner() for _ in range(_ELEMENTS)]
        yield cls(**{column.name: elements})
        if unknown:
            for element in elements:
                element.unknown_tags = {99: b""}
            yield cls(**{column.name: elements})
        for value in _dense(inner, version, unknown):
            yield cls(**{column.name: [value]})


def memory_multiple(cls: type[Any], version: int, message: Any) -> float:
    """Bytes that decoding a message takes for each byte of it."""
    data = codec.encode(message, version)
    codec.decode(cls, data, version)  # compiled now, if it was not
    return peak_bytes(lambda: codec.decode(cls, data, version)) / len(data)
