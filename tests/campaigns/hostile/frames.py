"""Valid frames of every API and version, and where the numbers are in them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache
from random import Random
from types import FunctionType
from typing import Any, NamedTuple

from headrace.wire import codec
from headrace.wire.api import API
from headrace.wire.frame import encode_request, encode_response
from headrace.wire.schema import ApiMessage
from tests.campaigns.conformance.wire_values import all_messages, random_message

from .mutations import Place


class Frame(NamedTuple):
    """A frame without its length prefix, or a structure that travels inside of one."""

    kind: str  # request, response, inner
    cls: type[Any]  # of the request; of the structure itself when it is an inner one
    version: int
    data: bytes
    places: list[Place]


@cache
def kinds() -> list[tuple[str, type[Any], int]]:
    """Every request, response and inner structure in every version."""
    found: list[tuple[str, type[Any], int]] = []
    for api in API.values():
        for version in range(api.min_version, api.max_version + 1):
            found += [("request", api.request, version), ("response", api.request, version)]
    travelling = {api.request for api in API.values()} | {api.response for api in API.values()}
    for cls in all_messages():
        if cls not in travelling:
            found += [("inner", cls, version) for version in range(cls.min_version, cls.max_version + 1)]
    return found


def make(chance: Random, kind: str, cls: type[Any], version: int) -> Frame:
    """A frame with random values."""
    if kind == "inner":
        data = codec.encode(random_message(cls, version, chance), version)
        return Frame(kind, cls, version, data, places(cls, version, data, 0))
    message = random_message(cls if kind == "request" else cls.response_type, version, chance)
    if kind == "request":
        name = chance.choice((None, "", "client"))
        data = b"".join(encode_request(message, version, chance.getrandbits(31), name))[4:]
        head = [(0, 2), (2, 2), (8, 2)]
    else:
        data = b"".join(encode_response(message, version, chance.getrandbits(31)))[4:]
        head = []
    start = len(data) - len(codec.encode(message, version))
    return Frame(kind, cls, version, data, head + places(type(message), version, data, start))


class _Noted(bytes):
    """Bytes that tell where single ones were asked for: compact lengths and counts, tags."""

    notes: list[Place]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            self.notes.append((key, 0))
        return bytes.__getitem__(self, key)


def places(cls: type[ApiMessage], version: int, data: bytes, start: int) -> list[Place]:
    """Where a message's decoder looks for numbers, found by watching it."""
    codec.decode_from(cls, data, version, start)
    reader = codec._readers[cls, version]
    assert isinstance(reader, FunctionType)
    notes: list[Place] = []
    names = {name: _noting(value, name, notes) for name, value in reader.__globals__.items()}
    noted = _Noted(data)
    noted.notes = notes
    FunctionType(reader.__code__, names)(noted, memoryview(data), start)
    return [(at, width) for at, width in notes if at + max(width, 1) <= len(data)]


def _noting(value: Any, name: str, notes: list[Place]) -> Any:
    if not name.startswith("unpack_"):
        return value
    unpack: Callable[..., Any] = value
    letters = re.findall(r"\d*[a-zA-Z?]", name.removeprefix("unpack_").replace("o", "?"))

    def noted(data: bytes, position: int) -> Any:
        at = position
        for letter in letters:
            width = struct.calcsize(">" + letter)
            notes.append((at, 0 if letter == "B" else width))  # a single byte begins a compact length
            at += width
        return unpack(data, position)

    return noted
