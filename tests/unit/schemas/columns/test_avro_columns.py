"""Columns of Avro: what is read into which type, how schemas resolve, and that hostile bytes are refused in bounds."""

from __future__ import annotations

import datetime
import json
import struct
from decimal import Decimal
from typing import Any

import pyarrow
import pytest

from headrace.errors import SerializationError
from headrace.schemas.avro import parse_avro
from headrace.schemas.columns import avro_columns
from headrace.schemas.columns.avro.avro_default_bytes import default_bytes, number_bytes
from headrace.schemas.columns.avro.avro_derived import derived_avro
from headrace.schemas.columns.avro_columns import AvroColumns
from headrace.schemas.columns.column_codec import DecodedColumn
from headrace.schemas.parsed import InvalidSchemaError
from tests.unit.schemas.columns.codec_pairs import binary, decoded_both_ways, encoded_both_ways, numbers_of


def codec(writer: Any, reader: Any = None) -> AvroColumns:
    return AvroColumns(parse_avro(json.dumps(writer)), None if reader is None else parse_avro(json.dumps(reader)))


def record(*fields: Any, name: str = "r", **more: Any) -> dict[str, Any]:
    made = [{"name": each[0], "type": each[1], **(each[2] if len(each) > 2 else {})} for each in fields]
    return {"type": "record", "name": name, "fields": made, **more}


def read(writer: Any, *payloads: bytes | None, reader: Any = None) -> list[Any]:
    """The values, read both ways; a malformed row is its reason."""
    reader = writer if reader is None else reader
    decoded_both_ways(writer, reader, binary(*payloads))
    found = codec(writer, reader).decode(binary(*payloads))
    return [found.malformed.get(row, value) for row, value in enumerate(numbers_of(found.values))]


def number(value: int) -> bytes:
    return number_bytes(value)


NESTED = record(("a", "int"), ("l", {"type": "array", "items": ["null", "string"]}),
                ("m", {"type": "map", "values": "long"}))


def test_a_nested_record_is_a_struct_whose_nullability_is_the_schemas() -> None:
    kind = codec(NESTED).data_type
    assert [each.nullable for each in kind] == [False] * 3
    assert kind.field("l").type == pyarrow.list_(pyarrow.field("element", pyarrow.string(), nullable=True))
    assert not kind.field("m").type.item_field.nullable
    payload = number(7) + b"\x04\x02\x02x\0\0" + b"\x01\x06\x02k\x09\0"  # the map's block says its size
    assert read(NESTED, payload, None) == [{"a": 7, "l": ["x", None], "m": [("k", -5)]}, None]


def test_logical_types_are_sparks() -> None:
    def typed(kind: str, logical: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "logicalType": logical, **more}

    days = codec(typed("int", "date")).decode(binary(number(20454))).values[0].as_py()
    assert days == datetime.date(2026, 1, 1)
    for unit, value in (("millis", 1_000), ("micros", 1_000_000)):
        stamp = codec(typed("long", f"timestamp-{unit}")).decode(binary(number(value))).values
        assert stamp.type == pyarrow.timestamp("us", "UTC")
        local = codec(typed("long", f"local-timestamp-{unit}")).decode(binary(number(value))).values
        assert local.type == pyarrow.timestamp("us")
        assert numbers_of(stamp) == numbers_of(local) == [1_000_000]
    assert codec(typed("long", "time-micros")).data_type == pyarrow.time64("ns")
    assert read(typed("long", "time-micros"), number(5), number(-1)) == [
        5000, "at /: a time of day is negative, or a day or more"]
    assert codec(typed("int", "time-millis")).data_type == pyarrow.int32()
    decimal = typed("bytes", "decimal", precision=5, scale=2)
    assert read(decimal, b"\x04\xff\x85", b"\x02\x7b", b"\0") == [Decimal("-1.23"), Decimal("1.23"), Decimal("0.00")]
    fixed = {"type": "fixed", "name": "f", "size": 20, "logicalType": "decimal", "precision": 38, "scale": 0}
    assert read(fixed, b"\xff" * 20, b"\0" * 19 + b"\x07") == [Decimal(-1), Decimal(7)]


def test_a_timestamp_that_leaves_64_bits_and_a_decimal_that_leaves_its_precision_are_malformed() -> None:
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    most = (1 << 63) // 1000
    assert read(millis, number(most), number(most + 1), number(-most), number(-most - 1)) == [
        most * 1000, "at /: a timestamp of microseconds has more than 64 bits", -most * 1000,
        "at /: a timestamp of microseconds has more than 64 bits"]
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
    for value, fits in ((10**38 - 1, True), (10**38, False), (-10**38 + 1, True), (-10**38, False), (1 << 200, False),
                        (-(1 << 127), False)):
        raw = value.to_bytes(30, "big", signed=True)
        found = read(decimal, number(30) + raw)
        assert found == [Decimal(value) if fits else "at /: a decimal has more digits than its precision"]


def test_unions_are_nullable_wide_or_a_struct_of_members() -> None:
    assert read(["null", "int"], b"\0", b"\x02\x08") == [None, 4]
    assert read(["int", "long"], b"\0\x08", b"\x02" + number(1 << 40)) == [4, 1 << 40]
    assert read(["float", "null", "double"], b"\0\0\0\x80\x3f", b"\x02") == [1.0, None]
    assert read(["string", "null", "int"], b"\0\x02x", b"\x02", b"\x04\x08", b"\x06") == [
        {"member0": "x", "member1": None}, None, {"member0": None, "member1": 4},
        "at /: a union has no such branch"]


def test_a_type_that_contains_itself_is_refused_but_may_be_left_out() -> None:
    tree = record(("value", "int"), ("children", {"type": "array", "items": "tree"}), name="tree")
    with pytest.raises(InvalidSchemaError, match=r"at /children.*: type tree contains itself, and a column cannot. "
                       "To read, give a reader's schema without that field, .*; to write, give a schema without it"):
        codec(tree)
    leaf = b"\x02\0"
    payload = b"\x08" + b"\x04" + leaf + b"\x06\x02" + leaf + b"\0" + b"\0"
    assert read(tree, payload, reader=record(("value", "long"), name="tree")) == [{"value": 4}]


def test_fields_resolve_by_name_alias_promotion_and_default() -> None:
    writer = record(
        ("a", "int"), ("gone", {"type": "map", "values": ["null", "bytes"]}), ("b", "string"), ("c", "float"))
    reader = record(
        ("c", "double"), ("bee", "bytes", {"aliases": ["b"]}), ("a", ["null", "long"]),
        ("d", record(("x", "int", {"default": 3}), ("y", ["null", "int"]), name="inner"), {"default": {"y": None}}),
        ("e", {"type": "enum", "name": "e", "symbols": ["P", "Q"]}, {"default": "Q"}),
        ("f", {"type": "fixed", "name": "f", "size": 2}, {"default": "\x00ÿ"}),
        ("g", {"type": "map", "values": "double"}, {"default": {"k": 1}}), ("h", "boolean", {"default": True}))
    payload = number(9) + b"\x02\x02k\x02\x04zz\0" + b"\x04hi" + b"\0\0\0\x3f"
    assert read(writer, payload, reader=reader) == [
        {"c": 0.5, "bee": b"hi", "a": 9, "d": {"x": 3, "y": None}, "e": "Q", "f": b"\x00\xff", "g": [("k", 1.0)],
         "h": True}]


def test_a_field_of_the_same_name_goes_before_an_alias() -> None:
    writer = record(("b", "int"))
    reader = record(("a", "int", {"aliases": ["b"], "default": -1}), ("b", "int"))
    assert read(writer, number(5), reader=reader) == [{"a": -1, "b": 5}]


@pytest.mark.parametrize(("writer", "reader", "reason"), [
    ("long", "int", "long cannot be read as int"),
    (record(("a", "int")), record(("b", "int")), "field b of the reader was not written, and has no default"),
    (record(("a", "int"), name="x.One"), record(("a", "int"), name="x.Two"),
     "x.One cannot be read as x.Two: neither its name nor an alias"),
    ({"type": "fixed", "name": "f", "size": 1}, {"type": "fixed", "name": "f", "size": 2},
     "a fixed of 1 bytes cannot be read as one of 2"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
     {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
     "a decimal of scale 1 cannot be read as one of scale 2"),
    ("string", ["null", "int"], "no branch of the reader's union takes string"),
    ({"type": "long", "logicalType": "timestamp-nanos"}, {"type": "long", "logicalType": "timestamp-micros"},
     "nanoseconds cannot be read as a timestamp of microseconds"),
])
def test_schemas_that_do_not_go_together_make_malformed_rows_that_say_why(
    writer: Any, reader: Any, reason: str
) -> None:
    assert read(writer, b"\x02\x02", reader=reader) == [f"at /: {reason}"]


def test_only_the_branch_that_cannot_be_read_is_malformed() -> None:
    reader = record(("a", "int"), name="shop.Order")
    writer = [record(("a", "int"), name="shop.Order"), record(("b", "int"), name="shop.Payment")]
    assert read(writer, b"\0\x08", b"\x02\x08", reader=reader) == [
        {"a": 4}, "at /: shop.Payment cannot be read as shop.Order: neither its name nor an alias"]


def test_a_union_of_records_reads_several_types_of_a_topic() -> None:
    order, payment = record(("a", "int"), name="shop.Order"), record(("b", "int"), name="shop.Payment")
    both = [order, payment]
    assert read(order, number(1), reader=both) == [{"member0": {"a": 1}, "member1": None}]
    assert read(payment, number(2), reader=both) == [{"member0": None, "member1": {"b": 2}}]


def test_an_enum_has_its_readers_symbols_or_the_default() -> None:
    writer = {"type": "enum", "name": "e", "symbols": ["A", "B", "C"]}
    narrow = {"type": "enum", "name": "e", "symbols": ["C", "A"]}
    assert read(writer, b"\0", b"\x02", b"\x04", b"\x06", reader=narrow) == [
        "A", "at /: an enum has no such symbol", "C", "at /: an enum has no such symbol"]
    assert read(writer, b"\x02", reader={**narrow, "default": "C"}) == ["C"]


@pytest.mark.parametrize(("schema", "payload", "reason"), [
    ("int", b"", "the payload ends too early"),
    ("long", b"\xff" * 11, "a number has more than 64 bits"),
    ("int", number(1 << 31), "an int has more than 32 bits"),
    ("bytes", number(-1), "a length is negative"),
    ("bytes", number(1 << 62), "the payload ends too early"),
    ("string", b"\x02\xff", "a string is not UTF-8"),
    ("string", b"\x06\xed\xa0\x80", "a string is not UTF-8"),
    ("string", b"\x1aabcdefgh\xe2\x82abc", "a string is not UTF-8"),
    ("boolean", b"\x02", "a boolean is neither 0 nor 1"),
    ({"type": "array", "items": "int"}, number(1 << 40) + b"\0", "an array or map claims more items than can be there"),
    ({"type": "map", "values": "null"}, number(3) + b"\0", "an array or map claims more items than can be there"),
    ({"type": "array", "items": "null"}, number(10_001) + b"\0", "an array or map claims more items than can be there"),
    ({"type": "array", "items": "null"}, number(6000) + number(6000) + b"\0",
     "an array or map claims more items than can be there"),
    ({"type": "array", "items": "int"}, number(-(1 << 63)), "a length is negative"),
    ({"type": "fixed", "name": "f", "size": 3}, b"ab", "the payload ends too early"),
])
def test_hostile_bytes_are_malformed_and_the_row_behind_them_is_read(schema: Any, payload: bytes, reason: str) -> None:
    whole = record(("before", "string"), ("it", schema), ("after", "int"))
    good = {"bytes": b"\0", "string": b"\0"}.get(schema if isinstance(schema, str) else "", b"")
    found = read(whole, b"\x02x" + payload, None, b"\x02y" + payload[:0])
    assert found[0] == f"at /it: {reason}"
    assert found[1] is None
    assert good is not None


def test_values_that_are_passed_over_may_nest_but_not_without_end() -> None:
    chain = record(("next", ["null", "chain"]), ("value", "int"), name="chain")
    reader = record(("value", "int"), name="chain")
    deep = b"\x02" * 100 + b"\0" + b"\x08" * 101
    bottomless = b"\x02" * 10_000
    assert read(chain, deep, bottomless, deep, reader=reader) == [
        {"value": 4}, "at /next: values nest deeper than 320 levels", {"value": 4}]


def test_a_schema_whose_columns_double_at_each_level_is_refused() -> None:
    inner: Any = "int"
    for level in range(20):
        inner = record(("a", inner), ("b", f"r{level - 1}" if level else "int"), name=f"r{level}")
    with pytest.raises(InvalidSchemaError, match="more than 10,000 columns"):
        codec(inner)


def test_many_rows_with_damage_among_them_keep_their_places() -> None:
    schema = record(("n", "int"), ("t", "string"), ("l", {"type": "array", "items": "int"}), ("b", ["null", "boolean"]))
    rows = [number(n) + b"\x02x" + (number(n % 4) + number(n) * (n % 4) if n % 4 else b"") + b"\0"
            + (b"\x02\x01" if n % 2 else b"\0") for n in range(1000)]
    bad = {n: row[:-1] for n, row in enumerate(rows) if n % 7 == 0}
    found = read(schema, *(bad.get(n, row) for n, row in enumerate(rows)))
    for n, value in enumerate(found):
        if n in bad:
            assert "the payload ends too early" in value
        else:
            assert value == {"n": n, "t": "x", "l": [n] * (n % 4), "b": True if n % 2 else None}


def test_columns_are_cast_where_nothing_is_lost_and_fields_without_a_column_get_their_default() -> None:
    schema = record(("a", "long"), ("b", "double"), ("d", "int", {"default": -2}), ("n", ["null", "string"]),
                    ("c", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}))
    values = pyarrow.array([{"b": 1.5, "a": 3, "c": Decimal("1.5")}], pyarrow.struct(
        [("b", pyarrow.float32()), ("a", pyarrow.int32()), ("c", pyarrow.decimal128(4, 1))]))
    (payload,) = encoded_both_ways(schema, values).to_pylist()
    assert read(schema, payload) == [{"a": 3, "b": 1.5, "d": -2, "n": None, "c": Decimal("1.50")}]


@pytest.mark.parametrize(("schema", "given", "said"), [
    (record(("a", "int")), pyarrow.struct([("a", pyarrow.string())]),
     "at /a: a column of type string cannot be written as int32: cast it"),
    (record(("a", "int")), pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.int32())]),
     "the schema's record r has no field b"),
    (record(("a", "int")), pyarrow.struct([]), "at /a: the schema's field has no column, and no default"),
    (["int", "string"], pyarrow.struct([("x", pyarrow.int32())]),
     "a union of 2 types is a struct of member0 to member1"),
    ("string", pyarrow.struct([]), "a column of type struct<> cannot be written as string"),
    ("double", pyarrow.int64(), "cannot be written as double"),
    ({"type": "long", "logicalType": "timestamp-micros"}, pyarrow.timestamp("us"), "cannot be written as timestamp"),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, pyarrow.timestamp("us", "UTC"), "cannot be written as"),
])
def test_columns_that_do_not_fit_are_refused_before_there_are_values(schema: Any, given: Any, said: str) -> None:
    with pytest.raises(SerializationError) as caught:
        codec(schema).check_columns(given)
    assert said in str(caught.value)


@pytest.mark.parametrize(("schema", "values", "said"), [
    (record(("a", "int")), [{"a": 1}, {"a": None}], "row 1, at /a: the value is null, and the schema takes no null"),
    (record(("a", {"type": "enum", "name": "e", "symbols": ["A"]})), [{"a": "B"}], "none of the schema's symbols"),
    (record(("a", {"type": "fixed", "name": "f", "size": 2})), [{"a": b"abc"}], "another size than the schema's"),
    (record(("a", ["int", "string"])), [{"a": {"member0": None, "member1": None}}], "no member of the union is set"),
    (record(("l", {"type": "array", "items": "int"})), [{"l": [1]}, {"l": [None]}],
     "row 1, at /l[]: the value is null"),
])
def test_values_that_do_not_fit_are_named_by_row_and_field(schema: Any, values: list[Any], said: str) -> None:
    given = pyarrow.array(values)
    for write in (lambda: codec(schema).encode(given), lambda: encoded_both_ways(schema, given)):
        with pytest.raises(SerializationError) as caught:
            write()
        assert said in str(caught.value)


def test_a_value_beyond_the_schemas_type_is_refused() -> None:
    with pytest.raises(SerializationError, match="has no place in int32"):
        codec("int").encode(pyarrow.array([1 << 40]))


def test_a_null_row_is_a_record_without_a_value() -> None:
    assert codec("int").encode(pyarrow.array([1, None, 2], pyarrow.int32())).to_pylist() == [b"\x02", None, b"\x04"]


def test_times_are_written_as_they_were_read() -> None:
    schema = record(("a", {"type": "long", "logicalType": "timestamp-millis"}),
                    ("b", {"type": "long", "logicalType": "time-micros"}),
                    ("c", {"type": "int", "logicalType": "date"}))
    payloads = [number(-1) + number(7) + number(-3)]
    assert encoded_both_ways(schema, codec(schema).decode(binary(*payloads)).values).to_pylist() == payloads
    early = pyarrow.array([-1], pyarrow.timestamp("us", "UTC"))
    assert codec({"type": "long", "logicalType": "timestamp-millis"}).encode(early).to_pylist() == [number(-1)]


def test_a_frame_without_a_schema_gets_one_that_reads_back_what_it_writes() -> None:
    kind = pyarrow.struct([
        pyarrow.field("i", pyarrow.int64(), nullable=False), ("s", pyarrow.string()), ("d", pyarrow.decimal128(9, 2)),
        ("t", pyarrow.timestamp("us", "UTC")), ("u", pyarrow.timestamp("us")), ("e", pyarrow.date32()),
        ("c", pyarrow.time64("ns")), ("b", pyarrow.binary()),
        ("l", pyarrow.list_(pyarrow.field("element", pyarrow.int32()))),
        ("m", pyarrow.map_(pyarrow.string(), pyarrow.float64())), ("n", pyarrow.struct([("x", pyarrow.bool_())]))])
    schema = json.loads(derived_avro(kind))
    assert (schema["name"], schema["fields"][0]) == ("topLevelRecord", {"name": "i", "type": "long"})
    assert schema["fields"][1] == {"name": "s", "type": ["null", "string"], "default": None}
    made = codec(schema)
    assert made.data_type == kind
    values = pyarrow.array([{"i": 1, "n": {"x": True}, "m": [("a", None)], "l": [None], "d": Decimal("1.25")},
                            {"i": 2, "s": "x", "b": b"y", "c": datetime.time(23, 59, 59, 999_999)}], kind)
    assert made.decode(made.encode(values)).values.equals(values)


@pytest.mark.parametrize(("kind", "said"), [
    (pyarrow.struct([("a b", pyarrow.int32())]), "'a b' cannot be the name of a field"),
    (pyarrow.struct([("a", pyarrow.duration("us"))]), "at /a: Avro has no type for duration"),
    (pyarrow.map_(pyarrow.int32(), pyarrow.int32()), "Avro has no type for map<int32, int32>"),
])
def test_a_frame_that_avro_has_no_type_for_is_refused(kind: Any, said: str) -> None:
    with pytest.raises(SerializationError) as caught:
        derived_avro(kind)
    assert said in str(caught.value)


@pytest.mark.parametrize(("schema", "default", "raw"), [
    ("boolean", False, b"\0"), ("boolean", True, b"\1"), (["int", "boolean"], True, b"\2\1"),
    (["boolean", "int"], 1, b"\2\2"), (["string", "null"], None, b"\2"), (["null", "string"], "x", b"\2\2x"),
    (["int", "long"], 1 << 31, b"\2" + number_bytes(1 << 31)), (["int", "long"], -(1 << 31), b"\0\xff\xff\xff\xff\x0f"),
    (["int", "double"], 0.5, b"\2" + struct.pack("<d", 0.5)), (["float", "int"], 2, b"\0" + struct.pack("<f", 2)),
    ({"type": "array", "items": "boolean"}, [True, False], b"\4\1\0\0"), ({"type": "array", "items": "int"}, [], b"\0"),
])
def test_a_default_is_written_as_its_value_would_be_in_the_first_branch_that_takes_it(
    schema: Any, default: Any, raw: bytes
) -> None:
    assert default_bytes(parse_avro(json.dumps(schema)).root, default) == raw


@pytest.mark.parametrize(("schema", "default"), [("int", "x"), ({"type": "fixed", "name": "f", "size": 1}, "€"),
                                                 (record(("a", "int")), {}), (["null"], 3)])
def test_a_default_that_does_not_fit_is_refused(schema: Any, default: Any) -> None:
    with pytest.raises(InvalidSchemaError, match="does not fit"):
        default_bytes(parse_avro(json.dumps(schema)).root, default)


def test_without_the_native_module_the_plain_one_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    payloads = binary(number(7) + b"\0\0", b"\x80", None)
    native = codec(NESTED)
    monkeypatch.setattr(avro_columns, "_PLAIN", True)
    plain = codec(NESTED)
    found, expected = plain.decode(payloads), native.decode(payloads)
    assert found.values.equals(expected.values)
    assert found.malformed == expected.malformed == {1: "at /a: the payload ends too early"}
    assert plain.encode(found.values).to_pylist() == native.encode(found.values).to_pylist()


def test_threads_share_a_codec() -> None:
    from concurrent.futures import ThreadPoolExecutor

    made = codec(record(("a", "int"), ("s", "string")))
    columns = [binary(*(number(n) + b"\x02x" for n in range(start, start + 500))) for start in range(0, 8000, 500)]

    def there_and_back(payloads: pyarrow.Array) -> tuple[DecodedColumn, bool]:
        found = made.decode(payloads)
        return found, made.encode(found.values).equals(payloads)

    with ThreadPoolExecutor(4) as pool:
        for payloads, (found, same) in zip(columns, pool.map(there_and_back, columns), strict=True):
            assert same
            assert len(found.values) == len(payloads)
