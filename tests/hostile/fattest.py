"""How much larger than its frame a decoded message can be: the densest frames of every message are measured."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any, NamedTuple

from headrace.wire import codec
from headrace.wire.layout import columns

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
        for message in _dense_messages(made, version):
            multiple = _multiple(made, version, message)
            fattest = max(fattest, FattestFrame(multiple, made.__name__, version))
    return fattest


def _dense_messages(cls: type[Any], version: int) -> Iterator[Any]:
    """Messages with one list filled, also the lists within the one element of a list."""
    for column in columns(cls):
        if not column.versions.holds(version) or column.type.struct is None:
            continue
        inner = column.type.struct
        if not column.type.is_array:
            for value in _dense_messages(inner, version):
                yield cls(**{column.name: value})
            continue
        yield cls(**{column.name: [inner() for _ in range(_ELEMENTS)]})
        for value in _dense_messages(inner, version):
            yield cls(**{column.name: [value]})


def _multiple(cls: type[Any], version: int, message: Any) -> float:
    data = codec.encode(message, version)
    codec.decode(cls, data, version)  # compiled now, if it was not
    tracemalloc.start()
    kept = codec.decode(cls, data, version)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return peak / len(data)
