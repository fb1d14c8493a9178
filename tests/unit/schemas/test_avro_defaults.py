"""Defaults of fields."""

import json
from typing import Any

import pytest

from headrace.schemas.avro import parse_avro
from headrace.schemas.parsed import InvalidSchemaError

ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}
RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"},
                                                    {"name": "b", "type": "string", "default": ""}]}


def record_with(kind: Any, default: Any) -> str:
    return json.dumps({"type": "record", "name": "Top", "fields": [{"name": "f", "type": kind, "default": default}]})


@pytest.mark.parametrize(("kind", "default"), [
    ("null", None), ("boolean", True), ("int", -(1 << 31)), ("int", (1 << 31) - 1), ("long", (1 << 63) - 1),
    ("float", 1), ("double", 1.5), ("string", ""), ("bytes", "\u00ff"),
    ({"type": "fixed", "name": "F", "size": 1}, "a"),
    (ENUM, "A"), ({"type": "array", "items": "int"}, []), ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "int"}, {"a": 1}), (["null", "int"], None), (["null", "int"], 5), (RECORD, {"a": 1}),
])
def test_a_default_that_fits_is_taken(kind: Any, default: Any) -> None:
    parse_avro(record_with(kind, default))


@pytest.mark.parametrize(("kind", "default"), [
    ("null", "null"), ("boolean", 0), ("int", True), ("int", 1 << 31), ("int", 1.0), ("long", 1 << 63), ("float", "1"),
    ("double", None), ("string", None), ("bytes", [1]), (ENUM, 1), ({"type": "array", "items": "int"}, ["a"]),
    ({"type": "array", "items": "int"}, {}), ({"type": "map", "values": "int"}, {"a": "b"}),
    ({"type": "map", "values": "int"}, []), (["null", "int"], "a"), (RECORD, {"b": ""}), (RECORD, {"a": 1, "b": 2}),
    (RECORD, []),
])
def test_a_default_that_does_not_fit_is_refused(kind: Any, default: Any) -> None:
    with pytest.raises(InvalidSchemaError, match="at /Top/f: the default"):
        parse_avro(record_with(kind, default))
