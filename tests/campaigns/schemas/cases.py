"""Schemas and values by chance."""

from __future__ import annotations

import random
import string
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
LOGICAL = [("int", "date"), ("long", "timestamp-millis"), ("long", "timestamp-micros"), ("string", "uuid")]
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}
NUMBERS = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, 16383, 16384, (1 << 27) - 1, 1 << 27, (1 << 31) - 1, -(1 << 31)]
LONGS = [*NUMBERS, 1 << 31, (1 << 41) - 1, 1 << 41, 1_760_000_000_000, (1 << 63) - 1, -(1 << 63)]
TEXTS = ["", "a", "zwölf", "\u2028", "x" * 63, "x" * 64, "ü" * 5000, "\0"]
OTHERS: list[Any] = [None, True, 0, -5, 1 << 40, 1 << 70, 1.5, "text", b"bytes", [], [None], {}, {"a": 1}, ("int", 3),
                     object()]
"""Values that seldom fit."""


class Case:
    """A schema with values.

    Args:
        chance: where they come from.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._names: dict[str, Any] = {}
        self._open: list[str] = []
        self.has_logical = False
        self.schema = self._schema(4)

    def value(self) -> Any:
        """A value that fits."""
        return self._value(self.schema, 6)

    def wrong(self, value: Any) -> Any:
        """The same with another value somewhere, which seldom fits."""
        chance = self._chance
        if isinstance(value, dict) and value and chance.random() < 0.8:
            name = chance.choice(sorted(value))
            if chance.random() < 0.2:
                return {each: what for each, what in value.items() if each != name}
            return {**value, name: self.wrong(value[name])}
        if isinstance(value, list) and value and chance.random() < 0.8:
            place = chance.randrange(len(value))
            return [*value[:place], self.wrong(value[place]), *value[place + 1:]]
        return chance.choice(OTHERS)

    def _schema(self, left: int) -> Any:
        chance = self._chance
        kinds = ["primitive"] * 5 + ["logical"] + (
            ["record"] * 4 + ["array", "map", "enum", "fixed", "optional", "optional", "union"] if left else [])
        if self._names and left:
            kinds.append("name")
        return getattr(self, f"_{chance.choice(kinds)}")(left - 1)

    def _primitive(self, left: int) -> Any:
        kind = self._chance.choice(PRIMITIVES)
        return kind if self._chance.random() < 0.8 else {"type": kind}

    def _logical(self, left: int) -> Any:
        self.has_logical = True
        if self._chance.random() < 0.2:
            return dict(DECIMAL)
        kind, logical = self._chance.choice(LOGICAL)
        return {"type": kind, "logicalType": logical}

    def _named(self, kind: str) -> dict[str, Any]:
        name = f"{kind.title()}{len(self._names)}"
        schema = {"type": kind, "name": name, "namespace": self._chance.choice(["a", "a.b"])}
        self._names[f"{schema['namespace']}.{name}"] = schema
        return schema

    def _record(self, left: int) -> Any:
        schema = self._named("record")
        name = f"{schema['namespace']}.{schema['name']}"
        self._open.append(name)
        fields = []
        for letter in string.ascii_lowercase[:self._chance.randrange(6)]:
            fields.append({"name": letter, "type": self._field(left, name)})
            if fields[-1]["type"] == "string" and self._chance.random() < 0.3:
                fields[-1]["default"] = "-"
        schema["fields"] = fields
        self._open.pop()
        return schema

    def _field(self, left: int, name: str) -> Any:
        if self._chance.random() < 0.1:
            return ["null", name]
        return self._schema(left)

    def _array(self, left: int) -> Any:
        return {"type": "array", "items": self._schema(left)}

    def _map(self, left: int) -> Any:
        return {"type": "map", "values": self._schema(left)}

    def _enum(self, left: int) -> Any:
        return self._named("enum") | {"symbols": ["A", "B", "C"][:self._chance.randrange(1, 4)]}

    def _fixed(self, left: int) -> Any:
        return self._named("fixed") | {"size": self._chance.randrange(5)}

    def _optional(self, left: int) -> Any:
        other = self._schema(left)
        if isinstance(other, list):
            return other
        if other in ("null", {"type": "null"}):
            other = "long"
        return ["null", other] if self._chance.random() < 0.7 else [other, "null"]

    def _union(self, left: int) -> Any:
        return self._chance.sample(PRIMITIVES, self._chance.randrange(1, 5))

    def _name(self, left: int) -> Any:
        closed = sorted(name for name, schema in self._names.items()
                        if name not in self._open and schema["type"] == "record")
        return self._chance.choice(closed) if closed else "int"

    def _value(self, schema: Any, left: int) -> Any:
        chance = self._chance
        if isinstance(schema, list):
            names = [branch for branch in schema if branch == "null"] if left <= 0 else schema
            return self._value(chance.choice(names or schema), left - 1)
        if isinstance(schema, str):
            return self._value(self._names[schema], left) if schema in self._names else self._plain(schema)
        kind = schema["type"]
        if "logicalType" in schema:
            return self._of_logical(schema["logicalType"])
        size = chance.randrange(4) if left > 0 else 0
        match kind:
            case "record":
                return {field["name"]: self._value(field["type"], left - 1) for field in schema["fields"]}
            case "array":
                return [self._value(schema["items"], left - 1) for _ in range(size)]
            case "map":
                return {chance.choice(TEXTS): self._value(schema["values"], left - 1) for _ in range(size)}
            case "enum":
                return chance.choice(schema["symbols"])
            case "fixed":
                return chance.randbytes(schema["size"])
        return self._plain(kind)

    def _plain(self, kind: str) -> Any:
        chance = self._chance
        made = {
            "null": lambda: None, "boolean": lambda: chance.random() < 0.5,
            "int": lambda: chance.choice([*NUMBERS, chance.randrange(-(1 << 31), 1 << 31)]),
            "long": lambda: chance.choice([*LONGS, chance.randrange(-(1 << 63), 1 << 63)]),
            "float": lambda: chance.choice([0.0, -1.5, float("inf"), 0.25, 3]),
            "double": lambda: chance.choice([0.0, -0.0, 1e300, chance.random(), 7]),
            "bytes": lambda: chance.randbytes(chance.choice([0, 1, 70])), "string": lambda: chance.choice(TEXTS),
        }
        return made[kind]()

    def _of_logical(self, logical: str) -> Any:
        chance = self._chance
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=chance.randrange(-10**12, 10**13))
        return {"date": lambda: date(1970, 1, 1) + timedelta(days=chance.randrange(-20000, 40000)),
                "timestamp-millis": lambda: moment, "timestamp-micros": lambda: moment,
                "uuid": lambda: UUID(int=chance.getrandbits(128)),
                "decimal": lambda: Decimal(chance.randrange(-10**11, 10**11)).scaleb(-3)}[logical]()
