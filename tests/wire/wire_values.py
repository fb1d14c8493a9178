"""Random messages for tests: every field that a version carries gets a value, None and its default included."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

from headrace.wire.api import API
from headrace.wire.layout import FIXED, Column, Type, columns
from headrace.wire.messages import control, groups, headers
from headrace.wire.schema import Message, Request, Response, Struct

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
_TEXT = "abcXYZ-._ äß€漢😀"


def all_messages() -> list[type[Message]]:
    """Every message that has versions of its own."""
    pairs = [cls for api in API.values() for cls in (api.request, api.response)]
    embedded = {cls for cls in Message.__subclasses__() if cls not in (Request, Response)}
    assert {vars(control)["EndTxnMarker"], vars(groups)["ConsumerProtocolAssignment"], headers.RequestHeader} < embedded
    return [*pairs, *sorted(embedded, key=lambda cls: cls.__name__)]


def all_versions() -> list[tuple[type[Message], int]]:
    """Every message in every version."""
    return [(cls, v) for cls in all_messages() for v in range(cls.min_version, cls.max_version + 1)]


def random_message(cls: type[Any], version: int, random: Random, size: int = 3) -> Any:
    """A message with random values in the fields that `version` carries.

    Args:
        cls: class of the message or structure.
        version: version of the message.
        random: source of the values.
        size: most elements of a list.
    """
    message: Struct = cls()
    for column in columns(cls):
        if column.versions.holds(version) and random.random() < 0.9:
            setattr(message, column.name, _value(column, column.type, version, random, size))
    return message


def _value(column: Column, type_: Type, version: int, random: Random, size: int) -> Any:
    if column.nullable.holds(version) and random.random() < 0.2:
        return None
    if type_.is_array:
        count = random.randint(0, size)
        inner = column._replace(nullable=column.nullable._replace(low=1, high=0))
        return [_value(inner, type_.item, version, random, size) for _ in range(count)]
    if type_.struct is not None:
        return random_message(type_.struct, version, random, size)
    return _primitive(type_.name, random)


def _primitive(name: str, random: Random) -> Any:
    if name == "Bool":
        return random.random() < 0.5
    if name == "Float64":
        return random.choice([0.0, 1.5, -2.25, 1e9])
    if name in FIXED:
        letter = FIXED[name]
        bits = _BITS[letter.lower()]
        low = 0 if letter.isupper() else -(2 ** (bits - 1))
        high = low + 2**bits - 1
        return random.choice([0, low, high, random.randint(low, high)])
    if name == "Uuid":
        return UUID(int=random.getrandbits(128))
    length = random.choice([0, 1, 5, 200])
    if name in ("String", "ShortString"):
        return "".join(random.choice(_TEXT) for _ in range(length))
    return random.randbytes(length)
