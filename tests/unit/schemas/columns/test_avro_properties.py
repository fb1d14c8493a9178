"""Columns of Avro against fastavro, and the native codec against the plain one, on any schema and on damaged bytes."""

from __future__ import annotations

import io
from typing import Any

import fastavro
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.avro_values import as_columns, schema_and_values, without_logical, written
from tests.unit.schemas.columns.codec_pairs import binary, decoded_both_ways, encoded_both_ways, numbers_of

few = settings(max_examples=120)


def read_by_fastavro(schema: Any, payload: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(payload), fastavro.parse_schema(without_logical(schema)), None)


@few
@given(schema_and_values())
def test_what_fastavro_writes_is_read_as_fastavro_reads_it(case: tuple[Any, list[Any]]) -> None:
    schema, values = case
    payloads = [written(schema, each) for each in values]
    found, bad = decoded_both_ways(schema, schema, binary(*payloads, None))
    assert bad == []
    expected = [as_columns(schema, read_by_fastavro(schema, each)) for each in payloads]
    assert repr(numbers_of(found)) == repr([*expected, None])


@few
@given(schema_and_values())
def test_what_is_read_is_written_back_as_fastavro_wrote_it(case: tuple[Any, list[Any]]) -> None:
    schema, values = case
    payloads = [written(schema, each) for each in values]
    columns, _ = decoded_both_ways(schema, schema, binary(*payloads))
    known = [payload for payload, value in zip(payloads, numbers_of(columns), strict=True) if value is not None]
    found = encoded_both_ways(schema, columns).to_pylist()
    assert [each for each in found if each is not None] == known
    assert encoded_both_ways(schema, columns.slice(1)).to_pylist() == found[1:]


@few
@given(schema_and_values(), st.data())
def test_damaged_payloads_leave_the_other_rows_alone(case: tuple[Any, list[Any]], data: st.DataObject) -> None:
    schema, values = case
    payloads = [written(schema, each) for each in values]
    for row in data.draw(st.sets(st.integers(0, len(values) - 1))) if values else ():
        payloads[row] = data.draw(damaged(payloads[row]))
    found, bad = decoded_both_ways(schema, schema, binary(*payloads))
    rows, malformed = numbers_of(found), {row for row, _, _ in bad}
    for row, payload in enumerate(payloads):
        if row in malformed:
            assert rows[row] is None
        elif "timestamp-millis" not in repr(schema):
            assert repr(rows[row]) == repr(as_columns(schema, read_by_fastavro(schema, payload)))


@st.composite
def damaged(draw: st.DrawFn, payload: bytes) -> bytes:
    if not payload or draw(st.booleans()):
        return payload[:draw(st.integers(0, len(payload)))] + draw(st.binary(max_size=3))
    flipped = bytearray(payload)
    flipped[draw(st.integers(0, len(payload) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(flipped)


@few
@given(schema_and_values(), st.data())
def test_another_readers_schema_reads_what_fastavro_resolves(case: tuple[Any, list[Any]], data: st.DataObject) -> None:
    schema = {"type": "record", "name": "outer", "fields": [
        {"name": "kept", "type": case[0]}, {"name": "dropped", "type": case[0]}, {"name": "whole", "type": "int"}]}
    schema = without_logical(schema)
    assume(not _promotes_within_a_union(case[0]))  # fastavro takes the first branch that values can be turned into
    if _names_repeat(schema):
        schema["fields"][1]["type"] = "string"
    changed = {"type": "record", "name": "outer", "fields": data.draw(st.permutations([
        {"name": "kept", "type": schema["fields"][0]["type"]},
        {"name": "wide", "aliases": ["whole"], "type": data.draw(st.sampled_from(["int", "long", "double"]))},
        {"name": "added", "type": ["null", "string"], "default": None},
        {"name": "listed", "type": {"type": "array", "items": "int"}, "default": [1, -2]}]))}
    values = [{"kept": each, "dropped": "x" if schema["fields"][1]["type"] == "string" else each, "whole": 7}
              for each in case[1]]
    payloads = [written(schema, each) for each in values]
    found, bad = decoded_both_ways(schema, changed, binary(*payloads))
    assert bad == []
    writer, reader = fastavro.parse_schema(schema), fastavro.parse_schema(changed)
    expected = [as_columns(changed, fastavro.schemaless_reader(io.BytesIO(each), writer, reader)) for each in payloads]
    assert repr(numbers_of(found)) == repr(expected)


def _promotes_within_a_union(schema: Any) -> bool:
    if isinstance(schema, list):
        kinds = {each for each in schema if isinstance(each, str)}
        if {"bytes", "string"} <= kinds or (kinds & {"int", "long"} and kinds & {"float", "double"}):
            return True
    inner = schema if isinstance(schema, list) else list(schema.values()) if isinstance(schema, dict) else []
    return any(_promotes_within_a_union(each) for each in inner)


def _names_repeat(schema: Any) -> bool:
    return "'name': 'n" in repr(schema)
