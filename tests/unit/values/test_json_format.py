"""JSON by a JSON Schema as a format of values: its name, and that each value is checked where that is asked for."""

from __future__ import annotations

import json
from typing import Any

import pyarrow
import pytest

pytest.importorskip("jsonschema")

from headrace.values.json_format import JsonSchemaFormat
from headrace.values.schema_formats import SchemaText

SCHEMA = {"title": "Order", "type": "object", "properties": {"n": {"type": "integer", "minimum": 5}}}


def decoded(*texts: bytes, flags: frozenset[str] = frozenset()) -> Any:
    return JsonSchemaFormat().codec(SchemaText(json.dumps(SCHEMA)), flags=flags).decode(pyarrow.array(texts))


def test_values_are_checked_by_their_schema_only_where_that_is_asked_for() -> None:
    assert decoded(b'{"n": 4}').values.to_pylist() == [{"n": 4}]
    checked = decoded(b'{"n": 5}', b'{"n": 4}', b'{"n": 6}', flags=frozenset({"validate"}))
    assert checked.values.to_pylist() == [{"n": 5}, None, {"n": 6}]
    assert list(checked.malformed) == [1]
    assert "4 is less than the minimum of 5" in checked.malformed[1]


@pytest.mark.parametrize("text", [b"{", b"", b'{"n": 5} {', b"[" * 100_000])
def test_what_is_no_json_is_malformed_whether_values_are_checked_or_not(text: bytes) -> None:
    for flags in (frozenset[str](), frozenset({"validate"})):
        found = decoded(b'{"n": 5}', text, flags=flags)
        assert list(found.malformed) == [1]
        assert found.values.to_pylist() == [{"n": 5}, None]


@pytest.mark.parametrize(("schema", "message", "name"), [
    (SCHEMA, "", "Order"), (SCHEMA, "Given", "Given"), ({"type": "object"}, "", ""), (True, "", "")])
def test_a_record_has_the_title_of_its_schema_as_its_name(schema: Any, message: str, name: str) -> None:
    assert JsonSchemaFormat().record_name(SchemaText(json.dumps(schema)), message) == name
