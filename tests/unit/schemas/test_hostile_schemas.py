"""Schemas that are made to cost much: they are read, or refused, in little time."""

import json
import time
from contextlib import suppress
from typing import Any

import pytest

from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.parsing import parse

_MOST_S = 10
"""Generous: each takes less than a second on an idle machine. What is not bounded takes minutes."""
P3 = 'syntax = "proto3"; '


def _doubling_defaults() -> Any:
    rows: list[Any] = [{"type": "record", "name": "D0", "fields": [{"name": "a", "type": "int", "default": 1}]}]
    for n in range(1, 60):
        kept = {"type": f"D{n - 1}", "default": {}}
        rows.append({"type": "record", "name": f"D{n}", "fields": [{"name": "a", **kept}, {"name": "b", **kept}]})
    return rows


def _doubling_types() -> Any:
    def both(n: int) -> list[Any]:
        return [{"name": name, "type": f"T{n - 1}" if n else "int"} for name in "ab"]

    return [{"type": "record", "name": f"T{n}", "fields": both(n)} for n in range(60)]


def _doubling_references() -> Any:
    def both(n: int) -> Any:
        target = {"$ref": f"#/definitions/d{n + 1}"}
        return {"anyOf": [target, {"items": target}, {"properties": {"a": target, "b": target}}]}

    return {"$ref": "#/definitions/d0", "definitions": {**{f"d{n}": both(n) for n in range(40)}, "d40": {}}}


AVRO = {"defaults of defaults": _doubling_defaults(), "types of types": _doubling_types(),
        "many branches": [{"type": "fixed", "name": f"F{n}", "size": 1} for n in range(5000)]}
JSON = {"references of references": _doubling_references(),
        "many alternatives": {"oneOf": [{"type": "string", "maxLength": n + 1} for n in range(2000)]}}
PROTOBUF = {
    "much that is reserved": "message A { reserved " + ", ".join(str(20_000 + n) for n in range(10_000)) + "; " +
    "".join(f"string f{n} = {n + 1}; " for n in range(10_000)) + "}",
    "many oneofs": "message A { " + "".join(f"oneof o{n} {{ string f{n} = {n + 1}; }}" for n in range(10_000)) + "}",
    "names from far outside": "message A { " * 90 + "".join(f"B f{n} = {n + 1}; " for n in range(500)) + "}" * 90 +
    " message B {}",
}
CASES = {**{name: ("AVRO", json.dumps(schema)) for name, schema in AVRO.items()},
         **{name: ("JSON", json.dumps(schema)) for name, schema in JSON.items()},
         **{name: ("PROTOBUF", P3 + text) for name, text in PROTOBUF.items()}}


@pytest.mark.parametrize(("kind", "text"), CASES.values(), ids=CASES)
def test_a_schema_that_is_made_to_cost_much_costs_little(kind: str, text: str) -> None:
    started = time.process_time()
    first, second = parse(kind, text), parse(kind, text)
    assert first.canonical() == second.canonical()
    assert first.normalized()
    with suppress(InvalidSchemaError):  # they are too large to compare
        assert first.can_read(second) == []
    assert time.process_time() - started < _MOST_S
