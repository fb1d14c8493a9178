"""Codecs of columns with all that their formats have, on both twins, and values of their types by lot."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa

from headrace.schemas.avro import parse_avro
from headrace.schemas.columns import avro_columns
from headrace.schemas.columns.avro_columns import AvroColumns
from headrace.schemas.columns.column_codec import ColumnCodec
from headrace.schemas.columns.json.ddl_types import parse_ddl
from headrace.schemas.columns.json_columns import JsonColumns
from headrace.schemas.columns.protobuf_columns import ProtobufColumns
from tests.unit.schemas.columns.proto_messages import parsed

_FIXED = 4
_INNER = {"type": "record", "name": "Inner", "fields": [
    {"name": "x", "type": ["null", "long"]}, {"name": "tags", "type": {"type": "array", "items": "string"}}]}
_WRITTEN = {"type": "record", "name": "Row", "fields": [
    {"name": "flag", "type": "boolean"}, {"name": "small", "type": "int"}, {"name": "large", "type": "long"},
    {"name": "half", "type": "float"}, {"name": "whole", "type": "double"}, {"name": "text", "type": "string"},
    {"name": "data", "type": "bytes"}, {"name": "four", "type": {"type": "fixed", "name": "Four", "size": _FIXED}},
    {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN", "BLUE"]}},
    {"name": "maybe", "type": ["null", "string"]}, {"name": "later", "type": ["int", "null"]},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "inner", "type": _INNER}, {"name": "many", "type": {"type": "array", "items": "Inner"}},
    {"name": "counts", "type": {"type": "map", "values": "long"}},
    {"name": "lists", "type": {"type": "map", "values": {"type": "array", "items": ["null", "int"]}}}]}
_READ = {"type": "record", "name": "Row", "fields": [
    {"name": "text", "type": ["null", "string"]}, {"name": "small", "type": "double"},
    {"name": "more", "type": "long", "default": 7}, {"name": "many", "type": {"type": "array", "items": {
        **_INNER, "fields": [*_INNER["fields"], {"name": "y", "type": "string", "default": "y"}]}}},
    {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["BLUE", "RED"], "default": "RED"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}},
    {"name": "counts", "type": {"type": "map", "values": "double"}}]}
_DDL = """b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f FLOAT, d DOUBLE, dec DECIMAL(12,3), s STRING,
          bin BINARY, day DATE, at TIMESTAMP, list ARRAY<INT>, lists ARRAY<ARRAY<STRING>>, map MAP<STRING, BIGINT>,
          inner STRUCT<x: INT, y: STRUCT<z: ARRAY<STRUCT<w: STRING>>>>"""
_ENUMS = frozenset(("color", "maybe_color", "colors", "tint", "plain"))
_ONE_OF = ("number", "word", "thing", "tint", "other")
"""Fields of Protobuf of which one may be set."""
_LETTERS = 'az09 "\\{}[],:\x00\u00e9\u4e2d\U0001f600'


@dataclass(frozen=True)
class Twins:
    """One codec twice, and what writes its payloads.

    Attributes:
        name: of the format and the schema.
        writer: writes payloads.
        native: reads them.
        plain: reads them as well, to be compared.
    """

    name: str
    writer: ColumnCodec
    native: ColumnCodec
    plain: ColumnCodec


@cache
def all_twins() -> tuple[Twins, ...]:
    """Each format; Avro also with another schema of the reader."""
    writer, reader = (parse_avro(json.dumps(schema)) for schema in (_WRITTEN, _READ))
    made = [Twins("avro", AvroColumns(writer), AvroColumns(writer), _plainly(lambda: AvroColumns(writer))),
            Twins("avro, evolved", AvroColumns(writer), AvroColumns(writer, reader),
                  _plainly(lambda: AvroColumns(writer, reader)))]
    for message in ("shop.Order", "old.Order"):
        schema = parsed(message)
        native = ProtobufColumns(schema, message)
        made.append(Twins(f"protobuf {message}", native, native, ProtobufColumns(schema, message, plain=True)))
    for loose in (False, True):
        kind = parse_ddl(_DDL)
        native_json = JsonColumns(kind, is_loose=loose)
        made.append(Twins(f"json{', loose' * loose}", native_json, native_json,
                          JsonColumns(kind, is_loose=loose, plain=True)))
    return tuple(made)


def _plainly(make: Callable[[], AvroColumns]) -> AvroColumns:
    kept = avro_columns._PLAIN
    avro_columns._PLAIN = True  # type: ignore[misc]
    try:
        return make()
    finally:
        avro_columns._PLAIN = kept  # type: ignore[misc]


def payloads(chance: Random, twins: Twins, rows: int) -> list[bytes]:
    """Valid ones."""
    kind = twins.writer.data_type
    values = pa.array([_value(chance, kind, "", 0) for _ in range(rows)], kind)
    written: list[bytes] = twins.writer.encode(values).to_pylist()
    return written


def _value(chance: Random, kind: pa.DataType, name: str, depth: int) -> Any:
    if pa.types.is_struct(kind):
        absent = {each.name for each in kind if each.nullable and chance.random() < 0.2}
        kept = chance.choice(_ONE_OF)
        absent |= {each.name for each in kind if each.name in _ONE_OF and each.nullable and each.name != kept}
        return {each.name: None if each.name in absent else _value(chance, each.type, each.name, depth + 1)
                for each in kind}
    if pa.types.is_map(kind):
        pairs = range(0 if name == "colored" else chance.randrange(3))
        return [(_value(chance, kind.key_type, "", depth + 1), _value(chance, kind.item_type, name, depth + 1))
                for _ in pairs]
    if pa.types.is_list(kind):
        items = range(chance.randrange(4 if depth < 3 else 2))
        return [_value(chance, kind.value_type, name, depth + 1) for _ in items]
    if pa.types.is_string(kind) and name in _ENUMS:
        return "GREEN"
    return _leaf(chance, kind)


def _leaf(chance: Random, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_integer(kind):
        low = 0 if pa.types.is_unsigned_integer(kind) else -(1 << kind.bit_width - 1)
        return chance.choice((0, 1, low, low + (1 << kind.bit_width) - 1, chance.randrange(100)))
    if pa.types.is_floating(kind):
        return chance.choice((0.0, -1.5, 0.1, 1e30, float("inf"), chance.random()))
    if pa.types.is_string(kind):
        return "".join(chance.choices(_LETTERS, k=chance.randrange(12)))
    if pa.types.is_decimal(kind):
        return Decimal(chance.randrange(-10**6, 10**6)).scaleb(-kind.scale)
    if pa.types.is_date(kind):
        return datetime.date(1970, 1, 1) + datetime.timedelta(chance.randrange(-9999, 9999))
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return chance.randrange(-10**12, 10**12)
    return chance.randbytes(_FIXED)
