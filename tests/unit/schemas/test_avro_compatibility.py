"""Which Avro schema reads what another has written. `tests/campaigns/avro` asks Java of generated pairs."""

import json
from typing import Any

import pytest

from headrace.schemas import pairwise
from headrace.schemas.avro import parse_avro
from headrace.schemas.parsed import InvalidSchemaError


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any = "int", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


def found(reader: Any, writer: Any) -> list[tuple[str, str, str]]:
    return [(each.type, each.location, each.message)
            for each in parse_avro(json.dumps(reader)).can_read(parse_avro(json.dumps(writer)))]


TREE = record(field("kids", {"type": "array", "items": "R"}))


@pytest.mark.parametrize(("reader", "writer"), [
    ("long", "int"), ("float", "int"), ("float", "long"), ("double", "int"), ("double", "long"), ("double", "float"),
    ("bytes", "string"), ("string", "bytes"), (["null", "long"], "int"), ("long", ["int", "long"]),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}),
    (record(), record(field("gone"))), (record(field("new", default=1)), record()),
    (record(field("a", aliases=["b"])), record(field("b"))), (record(name="x.R"), record(name="y.R")),
    (record(name="New", aliases=["R"]), record()), (enum("A", "B"), enum("A")),
    (enum("A", default="A"), enum("A", "B")), (fixed(4), fixed(4)), (TREE, TREE),
])
def test_what_the_rules_allow_is_read(reader: Any, writer: Any) -> None:
    assert found(reader, writer) == []


@pytest.mark.parametrize(("reader", "writer", "reason"), [
    ("int", "long", ("TYPE_MISMATCH", "/", "reader type: INT not compatible with writer type: LONG")),
    ("string", "int", ("TYPE_MISMATCH", "/", "reader type: STRING not compatible with writer type: INT")),
    (record(field("a", aliases=["b"])), record(field("b"), field("a")), ("AMBIGUOUS_FIELD", "/fields/0", "a: a, b")),
    ("int", ["int", "long"], ("TYPE_MISMATCH", "/1", "reader type: INT not compatible with writer type: LONG")),
    (["null", "int"], "long", ("MISSING_UNION_BRANCH", "/", "reader union lacking writer type: LONG")),
    (["null", "int"], ["null", "long"], ("MISSING_UNION_BRANCH", "/1", "reader union lacking writer type: LONG")),
    (record(field("new")), record(), ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0", "new")),
    (record(field("e", enum("A", default="A"))), record(),
     ("TYPE_MISMATCH", "/fields/0/type", "reader type: ENUM not compatible with writer type: RECORD")),
    (record(name="A"), record(name="x.B"), ("NAME_MISMATCH", "/name", "expected: x.B")),
    (enum("A"), enum("C", "A", "B"), ("MISSING_ENUM_SYMBOLS", "/symbols", "[B, C]")),
    (fixed(4), fixed(8), ("FIXED_SIZE_MISMATCH", "/size", "expected: 8, found: 4")),
    (record(field("b"), field("a", {"type": "array", "items": "int"})),
     record(field("b"), field("a", {"type": "array", "items": "string"})),
     ("TYPE_MISMATCH", "/fields/1/type/items", "reader type: INT not compatible with writer type: STRING")),
])
def test_what_they_do_not_allow_is_said_with_the_place(reader: Any, writer: Any, reason: tuple[str, str, str]) -> None:
    assert found(reader, writer) == [reason]


def test_all_reasons_are_said() -> None:
    reader = record(field("a", "string"), field("b"), field("c", enum("A")))
    writer = record(field("a", "int"), field("c", enum("B")))
    assert [kind for kind, *_ in found(reader, writer)] == [
        "TYPE_MISMATCH", "READER_FIELD_MISSING_DEFAULT_VALUE", "MISSING_ENUM_SYMBOLS"]


def test_long_chains_of_types_are_compared() -> None:
    def chain(last: str) -> list[Any]:
        return [record(field("f", f"R{n - 1}" if n else last), name=f"R{n}") for n in range(3000)]

    assert found(chain("long"), chain("int")) == []
    assert len(found(chain("int"), chain("long"))) == 3000


def test_pairs_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise, "MAX_PAIRS", 1000)

    def many(kind: str) -> list[Any]:
        return [record(field("f", kind), name=f"a{n}.R") for n in range(40)]

    with pytest.raises(InvalidSchemaError, match="too large to compare"):
        found(many("int"), many("string"))
