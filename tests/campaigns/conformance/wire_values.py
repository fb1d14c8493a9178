"""Random messages for tests: every field that a version carries gets a value, None and its default included."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

from headrace.wire.api import API
from headrace.wire.layout import FIXED, ZERO_UUID, FieldColumn, Type, columns, is_flexible
from headrace.wire.messages.cluster import headers
from headrace.wire.messages.controllers import control
from headrace.wire.messages.groups import classic_groups as groups
from headrace.wire.schema import ApiMessage, Struct
from headrace.wire.versions import NEVER

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
_TEXT = "abcXYZ-._ äß€漢😀"
_LONG = (126, 127, 128, 129, 16_382, 16_383, 16_384, 20_000, 32_767)
_MANY = (127, 128, 300)
_LAST_TAG = 2**31 - 2  # Java reads one more, but cannot write it


def all_messages() -> list[type[ApiMessage]]:
    """Every message that has versions of its own."""
    pairs = [cls for api in API.values() for cls in (api.request, api.response)]
    embedded = {cls for cls in ApiMessage.__subclasses__() if cls.__module__.startswith("headrace.wire.messages.")}
    assert {control.EndTxnMarker, groups.ConsumerProtocolAssignment, headers.RequestHeader} < embedded
    return [*pairs, *sorted(embedded, key=lambda cls: cls.__name__)]


def all_versions() -> list[tuple[type[ApiMessage], int]]:
    """Every message in every version."""
    return [(cls, v) for cls in all_messages() for v in range(cls.min_version, cls.max_version + 1)]


@dataclass
class Mix:
    """How often a value is what.

    Attributes:
        unset: share of the fields that keep their default.
        null: share of None among the values that may be None.
        empty: share of empty strings, bytes and lists.
        limit: share of the numbers that are the lowest or highest of their type; floats include infinities and NaN.
        unknown: share of the structures with unknown tagged fields, where the version has such fields.
        items: most elements of a list.
        big: bytes to spend on long strings and long lists.
    """

    unset: float = 0.1
    null: float = 0.2
    empty: float = 0.1
    limit: float = 0.3
    unknown: float = 0.05
    items: int = 3
    big: int = 0
    odd_floats: bool = False


def random_message(cls: type[Any], version: int, random: Random, size: int = 3) -> Any:
    """A message with random values in the fields that `version` carries.

    Args:
        cls: class of the message.
        version: version of the message.
        random: source of the values.
        size: most elements of a list.
    """
    return Values(version, is_flexible(cls, version), random, Mix(items=size)).struct(cls)


def case(cls: type[ApiMessage], version: int, number: int, seed: int) -> Any:
    """Message number `number` of a series that begins with the extremes: defaults, nulls, limits, sizes, tags."""
    random = Random(f"{seed} {cls.__name__} {version} {number}")
    first = [
        Mix(unset=1), Mix(unset=0, null=1, empty=1), Mix(unset=0, null=0, empty=0, limit=1, odd_floats=True),
        Mix(unset=0, null=0, empty=0, big=100_000), Mix(unset=0, null=0, unknown=1, big=40_000),
    ]
    mix = first[number] if number < len(first) else Mix(
        unset=random.choice((0, 0.1, 0.5)), null=random.choice((0, 0.2, 0.5)), unknown=random.choice((0, 0.1, 0.5)),
        limit=random.choice((0, 0.3)), items=random.choice((1, 3, 5)), odd_floats=True,
        big=random.choice((0, 0, 0, 0, 0, 0, 0, 30_000)))
    return Values(version, is_flexible(cls, version), random, mix).struct(cls)


class Values:
    """Makes values for one message."""

    def __init__(self, version: int, flexible: bool, random: Random, mix: Mix) -> None:
        self._version = version
        self._flexible = flexible
        self._random = random
        self._mix = mix
        self._big = mix.big

    def struct(self, cls: type[Any]) -> Any:
        """A structure."""
        made: Struct = cls()
        for column in columns(cls):
            if column.versions.holds(self._version) and not self._chance(self._mix.unset):
                setattr(made, column.name, self._value(column, column.type))
        if self._flexible and self._chance(self._mix.unknown):
            known = {column.tag for column in columns(cls)}
            made.unknown_tags = {tag: data for tag, data in self._tags() if tag not in known} or None
        return made

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _tags(self) -> list[tuple[int, bytes]]:
        drawn = (self._random.choice((self._random.randrange(12), self._random.randint(0, _LAST_TAG), _LAST_TAG))
                 for _ in range(self._random.randint(1, 3)))
        return [(tag, self._random.randbytes(self._length())) for tag in drawn]

    def _value(self, column: FieldColumn, type_: Type) -> Any:
        if column.nullable.holds(self._version) and self._chance(self._mix.null):
            return None
        if type_.is_array:
            inner = column._replace(nullable=NEVER)
            return [self._value(inner, type_.item) for _ in range(self._count(type_))]
        if type_.struct is not None:
            return self.struct(type_.struct)
        return self._primitive(type_.name)

    def _count(self, type_: Type) -> int:
        is_leaf = type_.struct is None or not any(c.type.is_array or c.type.struct for c in columns(type_.struct))
        if self._big > 0 and is_leaf and self._chance(0.5):
            count = self._random.choice(_MANY)
            self._big -= 40 * count
            return count
        return 0 if self._chance(self._mix.empty) else self._random.randint(min(1, self._mix.items), self._mix.items)

    def _primitive(self, name: str) -> Any:
        if name == "Bool":
            return self._chance(0.5)
        if name == "Float64":
            odd = (math.nan, math.inf, -math.inf, -0.0, 5e-324) if self._mix.odd_floats else (0.0, 1.5, -2.25, 1e9)
            return self._random.choice(odd)
        if name in FIXED:
            return self._integer(FIXED[name])
        if name == "Uuid":
            return ZERO_UUID if self._chance(0.1) else UUID(int=self._random.getrandbits(128))
        length = self._length()
        return self._random.randbytes(length) if name in ("Bytes", "Records") else self._text(length)

    def _integer(self, letter: str) -> int:
        bits = _BITS[letter.lower()]
        low = 0 if letter.isupper() else -(2 ** (bits - 1))
        high = low + 2**bits - 1
        return self._random.choice((low, high)) if self._chance(self._mix.limit) else self._random.choice(
            (0, self._random.randint(low, high)))

    def _length(self) -> int:
        if self._big > 0:
            length = self._random.choice(_LONG)
            self._big -= length
            return length
        return 0 if self._chance(self._mix.empty) else self._random.choice((1, 5, 20, 130))

    def _text(self, length: int) -> str:
        if length > 300:  # bytes here, quickly; letters below
            return "x" * (length - 4) + "😀"
        return "".join(self._random.choices(_TEXT, k=length))
