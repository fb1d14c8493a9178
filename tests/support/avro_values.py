"""Avro schemas and values of them for property tests: every kind of type, values that name their branch."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import fastavro
from hypothesis import strategies as st

__all__ = ["as_columns", "schema_and_values", "schemas", "values_of", "written"]

_INT, _LONG = 1 << 31, 1 << 63
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
_PRIMITIVES = ["boolean", "int", "long", "float", "double", "bytes", "string"]
_LOGICAL = [
    {"type": "int", "logicalType": "date"}, {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"}, {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"}, {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"}, {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3},
]
_GROUPS = {"boolean": "bool", "int": "int", "long": "int", "float": "float", "double": "float", "bytes": "bytes",
           "string": "str", "record": "dict", "array": "list", "map": "map"}
"""Branches of a union have values of different Python types here, so that a value names its branch."""


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3, made: list[int] | None = None) -> Any:
    """A schema as JSON has it; named types have names of their own."""
    made = [0] if made is None else made
    nested = ["record", "array", "map", "union", "nullable"] if depth else []
    kind = draw(st.sampled_from([*_PRIMITIVES, "logical", "enum", "fixed", *nested, *nested]))
    made[0] += 1
    name = f"n{made[0]}"
    if kind == "logical":
        return draw(st.sampled_from(_LOGICAL))
    if kind == "enum":
        return {"type": "enum", "name": name, "symbols": draw(st.sampled_from([["A"], ["A", "Bé"[:1], "C"]]))}
    if kind == "fixed":
        return {"type": "fixed", "name": name, "size": draw(st.integers(0, 20))}
    if kind == "record":
        fields = [{"name": f"f{i}", "type": draw(schemas(depth - 1, made))} for i in range(draw(st.integers(0, 4)))]
        return {"type": "record", "name": name, "fields": fields}
    if kind in ("array", "map"):
        return {"type": kind, "items" if kind == "array" else "values": draw(schemas(depth - 1, made))}
    if kind == "nullable":
        inner = draw(schemas(depth - 1, made).filter(lambda each: not isinstance(each, list)))
        return draw(st.permutations(["null", inner]))
    return draw(_unions(depth, made)) if kind == "union" else kind


@st.composite
def _unions(draw: st.DrawFn, depth: int, made: list[int]) -> list[Any]:
    branches: dict[str, Any] = {}
    for _ in range(draw(st.integers(1, 4))):
        found = draw(schemas(depth - 1, made))
        name = found if isinstance(found, str) else found.get("type") if isinstance(found, dict) else ""
        plain = name in _GROUPS and (isinstance(found, str) or "logicalType" not in found)
        if plain and not {"dict", "map"} <= {*branches, _GROUPS[name]}:
            branches.setdefault(_GROUPS[name], found)
    return [*branches.values(), *(["null"] if draw(st.booleans()) else [])] or ["null", "int"]


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Values as fastavro takes them, without its logical types: ints, texts and bytes."""
    if isinstance(schema, list):
        return st.one_of([values_of(each) for each in schema])
    if isinstance(schema, str):
        return _of_primitive(schema)
    kind = schema["type"]
    if kind == "record":
        return st.fixed_dictionaries({each["name"]: values_of(each["type"]) for each in schema["fields"]})
    if kind == "array":
        return st.lists(values_of(schema["items"]), max_size=3)
    if kind == "map":
        return st.dictionaries(_TEXT, values_of(schema["values"]), max_size=3)
    if kind == "enum":
        return st.sampled_from(schema["symbols"])
    if kind == "fixed":
        return st.binary(min_size=schema["size"], max_size=schema["size"])
    if schema.get("logicalType") == "decimal":
        return st.integers(-10**20 + 1, 10**20 - 1).map(_shortest)
    if schema.get("logicalType", "").endswith("millis"):
        return st.integers(-_INT, _INT - 1)
    if schema.get("logicalType") == "time-micros":
        return st.integers(0, 86_400_000_000 - 1)
    return _of_primitive(kind)


def _of_primitive(kind: str) -> st.SearchStrategy[Any]:
    found: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(), "boolean": st.booleans(), "int": st.integers(-_INT, _INT - 1),
        "long": st.integers(-_LONG, _LONG - 1), "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False), "bytes": st.binary(max_size=6), "string": _TEXT}
    return found[kind]


@st.composite
def schema_and_values(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    """A schema and some values of it."""
    schema = draw(schemas())
    return schema, draw(st.lists(values_of(schema), max_size=4))


def _shortest(value: int) -> bytes:
    return value.to_bytes(((value if value >= 0 else ~value).bit_length() >> 3) + 1, "big", signed=True)


def without_logical(schema: Any) -> Any:
    """The same without logical types: what fastavro then reads and writes is the values that are in the bytes."""
    if isinstance(schema, list):
        return [without_logical(each) for each in schema]
    if isinstance(schema, dict):
        return {key: without_logical(value) if key in ("type", "items", "values", "fields") else value
                for key, value in schema.items() if key not in ("logicalType", "precision", "scale")}
    return schema


def written(schema: Any, value: Any) -> bytes:
    """The bytes of a value, by fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(without_logical(schema)), value)
    return out.getvalue()


def as_columns(schema: Any, value: Any) -> Any:
    """A value that fastavro has read without logical types, as Arrow's `to_pylist` gives it, timestamps as ints."""
    if isinstance(schema, list):
        return _of_union(schema, value)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {each["name"]: as_columns(each["type"], value[each["name"]]) for each in schema["fields"]}
    if kind == "array":
        return [as_columns(schema["items"], each) for each in value]
    if kind == "map":
        return [(key, as_columns(schema["values"], each)) for key, each in value.items()]
    logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
    if logical == "decimal":
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-schema["scale"])
    return value * 1000 if logical.endswith(("timestamp-millis", "time-micros")) else value


def _of_union(schema: list[Any], value: Any) -> Any:
    branches = [each for each in schema if each != "null"]
    if value is None or len(branches) == 1:
        return None if value is None else as_columns(branches[0], value)
    kinds = [each if isinstance(each, str) else each["type"] for each in branches]
    groups = {bool: "bool", int: "int", float: "float", bytes: "bytes", str: "str", list: "list", dict: "dict"}
    wanted = groups[type(value)]
    chosen = next(index for index, kind in enumerate(kinds)
                  if _GROUPS[kind] == wanted or (_GROUPS[kind], wanted) == ("map", "dict"))
    return {f"member{index}": as_columns(branches[index], value) if index == chosen else None
            for index in range(len(branches))}
