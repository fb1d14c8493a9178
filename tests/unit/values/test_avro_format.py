"""Avro as a format of values: what a registry has let in is read, what is new follows all rules."""

from __future__ import annotations

import json
from typing import Any

import pyarrow
import pytest

from headrace.schemas.parsed import InvalidSchemaError
from headrace.values.avro_format import AvroFormat
from headrace.values.schema_formats import SchemaText


def text(default: Any, namespace: str = "com.my-company") -> str:
    return json.dumps({"type": "record", "name": "R", "namespace": namespace, "fields": [
        {"name": "s", "type": ["string", "null"], "default": None}, {"name": "l", "type": "long", "default": default}]})


OLD, GOOD = text(None), text(0, "com.my_company")
ROWS = pyarrow.array([b"\0\2x\6"])


def test_a_registered_schema_with_a_default_that_does_not_fit_is_read() -> None:
    registered = SchemaText(OLD, is_registered=True)
    for reader in (None, registered, SchemaText(GOOD)):
        decoded = AvroFormat().codec(registered, reader).decode(ROWS)
        assert not decoded.malformed
        assert decoded.values.to_pylist() == [{"s": "x", "l": 3}]


def test_a_default_that_does_not_fit_stands_for_no_value() -> None:
    without_l = SchemaText('{"type": "record", "name": "R", "fields": []}')
    decoded = AvroFormat().codec(without_l, SchemaText(text(None), is_registered=True)).decode(pyarrow.array([b""]))
    assert decoded.malformed == {0: "at /: field l of the reader was not written, and has no default"}
    decoded = AvroFormat().codec(without_l, SchemaText(text(7), is_registered=True)).decode(pyarrow.array([b""]))
    assert decoded.values.to_pylist() == [{"s": None, "l": 7}]


def test_a_schema_that_is_not_registered_yet_is_refused() -> None:
    with pytest.raises(InvalidSchemaError, match="my-company"):
        AvroFormat().codec(SchemaText(OLD))


@pytest.mark.parametrize("given", ["long", ' "long" ', '{"type": "long"}', '["long", "null"]'])
def test_a_schema_may_be_the_name_of_a_primitive_type_alone(given: str) -> None:
    raw = pyarrow.array([b"\0\6" if "[" in given else b"\6"])
    assert AvroFormat().codec(SchemaText(given)).decode(raw).values.to_pylist() == [3]
