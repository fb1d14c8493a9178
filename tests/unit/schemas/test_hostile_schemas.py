"""Schemas that are made to cost much: they are read, or refused, in little time."""

import base64
import json
import time
from contextlib import suppress
from typing import Any

import pytest

from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.parsing import parse
from tests.support.peak_memory import peak_bytes

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


def sized(tag: bytes, content: bytes) -> bytes:
    """A field of Protobuf with a length."""
    size, left = bytearray(), len(content)
    while left > 0x7F:
        size.append(left & 0x7F | 0x80)
        left >>= 7
    return tag + bytes((*size, left)) + content


def descriptor(levels: int) -> str:
    """A file's descriptor, as Protobuf writes it, of a message in a message in a message ..."""
    message = sized(b"\x0a", b"A")
    for _ in range(levels):
        message = sized(b"\x0a", b"A") + sized(b"\x1a", message)
    return base64.b64encode(sized(b"\x0a", b"f") + sized(b"\x22", message)).decode()


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
LONG = 600_000
N = 10_000
OPENED = "".join(f'{{"type":"record","name":"R{n}","fields":[{{"name":"a","type":' for n in range(N))
DEEP_JSON = {"$ref": "#/$defs/0", "$defs": {**{str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(N)}, str(N): {}}}
REFUSED = {
    "arrays in arrays": ("AVRO", '{"type":"array","items":' * N + '"int"' + "}" * N),
    "unions in unions": ("AVRO", "[" * N + '"int"' + "]" * N),
    "types in types": ("AVRO", '{"type":' * N + '"int"' + "}" * N),
    "records in records": ("AVRO", OPENED + '"int"' + "}]}" * N),
    "a property of lists in lists": ("AVRO", '{"type":"int","x":' + "[" * N + "]" * N + "}"),
    "a union of unions": ("AVRO", "[" + "[]," * (LONG // 3) + "[]]"),
    "a string without an end": ("AVRO", '"' + '\\"' * (LONG // 2)),
    "quotes": ("AVRO", '"' * LONG),
    "items in items": ("JSON", '{"items":' * N + "{}" + "}" * N),
    "all of all": ("JSON", '{"allOf":[' * N + "{}" + "]}" * N),
    "constants in constants": ("JSON", '{"const":' + "[" * N + "]" * N + "}"),
    "references to references": ("JSON", json.dumps(DEEP_JSON)),
    "a reference to itself": ("JSON", '{"$ref": "#"}'),
    "many lists": ("JSON", "[" + "[]," * (LONG // 3) + "[]]"),
    "messages in messages": ("PROTOBUF", P3 + "message A {" * N + "}" * N),
    "types of types": ("PROTOBUF", P3 + "message A { " + "map<string," * N + "int32" + ">" * N + " a = 1; }"),
    "a name of names": ("PROTOBUF", P3 + "message A { " + "a." * N + "b c = 1; }"),
    "a text without an end": ("PROTOBUF", 'syntax="' + "\\x" * (LONG // 2)),
    "comments without an end": ("PROTOBUF", "/*" * (LONG // 2)),
    "a descriptor of messages in messages": ("PROTOBUF", descriptor(N)),
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


@pytest.mark.parametrize(("kind", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_too_deep_or_has_no_end_is_refused_in_little_time_and_memory(kind: str, text: str) -> None:
    def refused() -> None:
        started = time.process_time()
        with pytest.raises(InvalidSchemaError):
            parse(kind, text)
        assert time.process_time() - started < _MOST_S

    assert peak_bytes(refused) < 100 * LONG


OPTION = P3 + 'option (a) = "{}";'


@pytest.mark.parametrize("text", [
    OPTION.format("x" * LONG), OPTION.format(r"\n" * (LONG // 2)), P3 + ";" * (LONG // 4), " " * LONG + P3,
    P3 + "//\n" * (LONG // 3)], ids=["a text", "escapes", "statements", "spaces", "comments"])
def test_a_long_text_takes_time_and_memory_of_its_length(text: str) -> None:
    started = time.process_time()
    assert parse("PROTOBUF", text).canonical()
    assert time.process_time() - started < _MOST_S
