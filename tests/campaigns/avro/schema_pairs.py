"""Pairs of Avro schemas by seed: one made at random, the other made of it by a few changes; some are broken."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

__all__ = ["pairs"]

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_DEFAULTS = {"null": None, "boolean": True, "int": 7, "long": 1 << 40, "float": 1.5, "double": -2.0, "bytes": "\u00ff",
             "string": "x"}
_SPACES = ("", "x", "x.y")
_WRONG = (None, True, -1, 1.5, "nope", "1a", "a-b", [], {}, ["int", "int"], {"type": "nope"}, "int")


class _Maker:
    """Makes one schema."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._known: list[str] = []
        self._count = 0

    def type(self, depth: int, *, in_union: bool = False) -> Any:
        roll = self._random.random()
        if depth > 3 or roll < 0.35:
            return self._primitive()
        if roll < 0.45 and self._known:
            return self._random.choice(self._known)
        if roll < 0.55:
            return {"type": "array", "items": self.type(depth + 1)}
        if roll < 0.62:
            return {"type": "map", "values": self.type(depth + 1)}
        if roll < 0.75 and not in_union:
            return self._union(depth)
        return self.named(depth)

    def named(self, depth: int) -> dict[str, Any]:
        kind = self._random.choice(("record", "record", "enum", "fixed"))
        name = f"{kind[0].upper()}{self._count}"
        self._count += 1
        made: dict[str, Any] = {"type": kind, "name": name}
        if space := self._random.choice(_SPACES):
            made["namespace"] = space
            self._known.append(f"{space}.{name}")
        if self._random.random() < 0.3:
            made["aliases"] = [f"A{self._random.randrange(4)}"]
        if self._random.random() < 0.2:
            made["doc"] = "a type"
        if kind == "enum":
            made["symbols"] = self._random.sample("ABCDE", self._random.randint(1, 4))
            if self._random.random() < 0.3:
                made["default"] = made["symbols"][0]
        elif kind == "fixed":
            made["size"] = self._random.choice((1, 4, 16))
        else:
            made["fields"] = [self.field(depth, number) for number in range(self._random.randint(0, 4))]
        return made

    def field(self, depth: int, number: int) -> dict[str, Any]:
        made: dict[str, Any] = {"name": f"f{number}", "type": self.type(depth + 1)}
        if self._random.random() < 0.5:
            default = self._default(made["type"])
            if default is not ...:
                made["default"] = default
        if self._random.random() < 0.2:
            made["aliases"] = [f"f{self._random.randrange(6, 9)}"]
        if self._random.random() < 0.1:
            made["order"] = self._random.choice(("ignore", "descending"))
        return made

    def _default(self, kind: Any) -> Any:
        if isinstance(kind, list):
            return self._default(self._random.choice(kind)) if kind else ...
        if isinstance(kind, str):
            return _DEFAULTS.get(kind, ...)
        if kind["type"] in ("array", "map"):
            return [] if kind["type"] == "array" else {}
        return kind["symbols"][-1] if kind["type"] == "enum" else "\u0001" if kind["type"] == "fixed" else ...

    def _union(self, depth: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self._random.randint(1, 4)):
            each = self.type(depth + 1, in_union=True)
            key = each if isinstance(each, str) else each["type"] if each["type"] not in (
                "record", "enum", "fixed") else f"{each.get('namespace', '')}.{each['name']}"
            branches.setdefault(key, each)
        return list(branches.values())

    def _primitive(self) -> Any:
        kind = self._random.choice(_PRIMITIVES)
        if self._random.random() < 0.1:
            return {"type": kind, "logicalType": "date", "note": {"a": [1, 2.5, None]}}
        return kind


def pairs(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Texts of a reader's and a writer's schema, the same for the same seed."""
    random = Random(seed)
    for _ in range(count):
        maker = _Maker(random)
        first = maker.named(0) if random.random() < 0.7 else maker.type(0)
        second = copy.deepcopy(first)
        for _ in range(random.randrange(4)):
            second = _changed(random, maker, second)
        if random.random() < 0.15:
            second = _broken(random, second)
        yield (json.dumps(first), json.dumps(second)) if random.random() < 0.5 else (
            json.dumps(second), json.dumps(first))


def _changed(random: Random, maker: _Maker, schema: Any) -> Any:
    """A schema with one change of the kinds that happen."""
    place = random.choice(list(_objects(schema)) or [None])
    if place is None:
        return maker.type(2) if random.random() < 0.5 else [schema, "null"] if schema != "null" else "int"
    if "fields" in place:
        _change_record(random, maker, place)
    elif "symbols" in place:
        place["symbols"] = random.sample("ABCDEF", random.randint(1, 5))
        place.pop("default", None)
        if random.random() < 0.4:
            place["default"] = place["symbols"][0]
    elif "size" in place:
        place["size"] = random.choice((1, 4, 16))
    elif "items" in place:
        place["items"] = maker.type(3)
    elif "values" in place:
        place["values"] = maker.type(3)
    elif "name" in place and "type" in place:
        _change_field(random, maker, place)
    return schema


def _change_record(random: Random, maker: _Maker, place: dict[str, Any]) -> None:
    roll = random.random()
    if roll < 0.4 and place["fields"]:
        place["fields"].pop(random.randrange(len(place["fields"])))
    elif roll < 0.8:
        place["fields"].append(maker.field(3, random.randrange(5, 9)))
        place["fields"] = list({each["name"]: each for each in place["fields"]}.values())
    elif roll < 0.9:
        place["namespace"] = random.choice(_SPACES)
    else:
        place["aliases"] = [place["name"]]
        place["name"] = f"A{random.randrange(4)}"


def _change_field(random: Random, maker: _Maker, place: dict[str, Any]) -> None:
    if random.random() < 0.5:
        place["name"] = f"f{random.randrange(9)}"
    elif random.random() < 0.6:
        place["type"] = random.choice((["null", "int"], "long", "double", "string", ["string", "bytes", "long"]))
        place.pop("default", None)
    else:
        place.pop("default", None)


def _broken(random: Random, schema: Any) -> Any:
    """A schema with one attribute that is gone, or has another value."""
    place = random.choice(list(_objects(schema)) or [None])
    if place:
        key = random.choice(list(place))
        if random.random() < 0.4:
            del place[key]
        else:
            place[key] = random.choice(_WRONG)
    return schema


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """All objects in a schema: types, and fields."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _objects(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _objects(each)
