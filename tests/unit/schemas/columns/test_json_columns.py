"""Columns of JSON: read and written by native code and by the plain twin, and as Python's json has it."""

from __future__ import annotations

import base64
import datetime
import json
import math
import os
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import SerializationError
from headrace.schemas.columns.json.ddl_types import parse_ddl
from headrace.schemas.columns.json.json_shapes import KEEPS_NULL
from headrace.schemas.columns.json_columns import JsonColumns

EXAMPLES = int(os.environ.get("EXAMPLES", "12"))
KINDS = pytest.mark.parametrize("kind", ["plain", "native"])
DDL = """b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f FLOAT, d DOUBLE, dec DECIMAL(12,3), s STRING,
         bin BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, list ARRAY<INT>, lists ARRAY<ARRAY<STRING>>,
         map MAP<STRING, BIGINT>, inner STRUCT<x: INT, y: STRUCT<z: ARRAY<STRUCT<w: STRING>>>>, `odd "name"` STRING"""
TYPE = parse_ddl(DDL)
CODECS = {(kind, loose): JsonColumns(TYPE, plain=kind == "plain", is_loose=loose)
          for kind in ("plain", "native") for loose in (False, True)}


def read(ddl: str, kind: str, *texts: str | bytes | None, loose: bool = False) -> tuple[list[Any], dict[int, str]]:
    payloads = pa.array([each.encode() if isinstance(each, str) else each for each in texts], pa.binary())
    found = JsonColumns(parse_ddl(ddl), plain=kind == "plain", is_loose=loose).decode(payloads)
    found.values.validate(full=True)
    return found.values.to_pylist(), dict(found.malformed)


def values(ddl: str, kind: str, *texts: str, loose: bool = False) -> list[Any]:
    """The only field of each; the reason of what is malformed."""
    rows, bad = read(ddl, kind, *texts, loose=loose)
    return [bad[row] if row in bad else next(iter(each.values())) for row, each in enumerate(rows)]


def wide(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type."""
    types = pa.types
    if types.is_struct(kind):
        inner = st.fixed_dictionaries({each.name: st.none() | wide(each.type) for each in kind})
    elif types.is_map(kind):
        inner = st.dictionaries(st.text(max_size=8), st.none() | wide(kind.item_type), max_size=3)
    elif types.is_list(kind):
        inner = st.lists(st.none() | wide(kind.value_type), max_size=3)
    elif types.is_decimal(kind):
        inner = st.decimals(-10**8, 10**8, places=kind.scale)
    elif types.is_integer(kind):
        inner = st.integers(-1 << kind.bit_width - 1, (1 << kind.bit_width - 1) - 1)
    else:
        inner = {
            pa.bool_(): st.booleans(), pa.float32(): st.floats(width=32, allow_nan=False), pa.date32(): st.dates(),
            pa.float64(): st.floats(allow_nan=False), pa.string(): st.text(max_size=12),
            pa.binary(): st.binary(max_size=12), pa.timestamp("us"): st.datetimes(),
            pa.timestamp("us", tz="UTC"): st.datetimes(
                datetime.datetime(1, 1, 2), timezones=st.just(datetime.UTC))}[kind]
    return inner


def shown(value: Any, kind: pa.DataType) -> Any:
    """What a value is in JSON, for Python's json."""
    types = pa.types
    if types.is_struct(kind):
        return {each.name: shown(value[each.name], each.type) for each in kind if value[each.name] is not None}
    if types.is_map(kind):
        return {key: None if each is None else shown(each, kind.item_type) for key, each in value.items()}
    if types.is_list(kind):
        return [None if each is None else shown(each, kind.value_type) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat() + ("Z" if value.tzinfo else "")
    if kind == pa.float32():
        return struct.pack("<f", value)
    return value.isoformat() if isinstance(value, datetime.date) else value


def same(text: Any, value: Any, kind: pa.DataType) -> bool:
    """Whether what Python's json read is what was written."""
    if kind == pa.float32() and isinstance(value, bytes):
        return struct.pack("<f", float(text)) == value
    if isinstance(value, dict):
        types = {each.name: each.type for each in kind} if pa.types.is_struct(kind) else {}
        return text.keys() == value.keys() and all(
            same(text[key], value[key], types.get(key, getattr(kind, "item_type", None))) for key in value)
    if isinstance(value, list):
        return len(text) == len(value) and all(same(one, other, kind.value_type)
                                               for one, other in zip(text, value, strict=True))
    if isinstance(value, str) and isinstance(text, str) and kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC")):
        return datetime.datetime.fromisoformat(text) == datetime.datetime.fromisoformat(value)
    if isinstance(value, float):
        return float(text) == value
    return Decimal(str(text)) == value if isinstance(value, Decimal) else text == value


@KINDS
@settings(max_examples=EXAMPLES)
@given(rows=st.lists(st.none() | wide(TYPE), max_size=3))
def test_what_is_written_is_json_and_comes_back(kind: str, rows: list[Any]) -> None:
    codec = CODECS[kind, False]
    array = pa.array(rows, codec.data_type)
    texts = codec.encode(array)
    for text, value in zip(texts.to_pylist(), rows, strict=True):
        if value is not None:
            assert same(json.loads(text, parse_float=Decimal), shown(value, TYPE), TYPE), text
    back = codec.decode(texts)
    assert back.malformed == {}
    back.values.validate(full=True)
    assert back.values.equals(array)
    assert texts.equals(CODECS["plain", False].encode(array))


@pytest.mark.parametrize("loose", [False, True])
@settings(max_examples=EXAMPLES * 2)
@given(data=st.data())
def test_damaged_texts_are_read_or_refused_alike_by_both(loose: bool, data: st.DataObject) -> None:
    given = CODECS["native", False].encode(pa.array([data.draw(wide(TYPE)) for _ in range(2)], TYPE)).to_pylist()
    texts = pa.array([damaged(data, each) for each in given], pa.binary())
    native, twin = (CODECS[kind, loose].decode(texts) for kind in ("native", "plain"))
    native.values.validate(full=True)
    assert native.malformed.keys() == twin.malformed.keys()
    assert native.values.equals(twin.values)
    for row, text in enumerate(texts.to_pylist()):
        if row not in native.malformed:
            json.loads(text)  # what is read is JSON


ODD = [b'"', b"\\", b"\\u0000", b"\\ud83d\\ude00", b"\\ud83d", b"{", b"}", b"[", b"]", b",", b":", b" ", b"null",
       b"true", b"-", b"1", b"0", b"1.0", b"1e3", b"1e400", b"0.5", b"99999999999999999999", b"\xff", b"\x00", b'"1.5"',
       b'"NaN"',
       b'{"a":[1,{"b":null}]}', b'"i32":7,', b'"s":5,', b'"dec":0.0005,', b'"at":"2020-01-01 00:00+01",']


def damaged(data: st.DataObject, text: bytes) -> bytes:
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(text)))
        more, cut = data.draw(st.sampled_from(ODD)), data.draw(st.integers(0, 3))
        text = text[:at] + more + text[at + cut:]
    return text[:data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text


@settings(max_examples=EXAMPLES * 5)
@given(number=st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
       | st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers().map(str))
def test_numbers_are_those_that_python_reads(number: str) -> None:
    for ddl, bits in (("x BIGINT", 64), ("x TINYINT", 8)):
        wanted = Decimal(number)
        is_whole = wanted == wanted.to_integral_value() if wanted.adjusted() < 40 else True
        fits = is_whole and -1 << bits - 1 <= wanted < 1 << bits - 1
        for kind in ("native", "plain"):
            found = values(ddl, kind, f'{{"x":{number}}}')[0]
            assert found == int(wanted) if fits else "field x" in str(found)
    wide_one = float(number)
    assert values("x DOUBLE", "native", f'{{"x":{number}}}')[0] == (
        wide_one if not math.isinf(wide_one) else "field x: the value is out of range")
    assert values("x DECIMAL(20,4)", "native", f'{{"x":{number}}}') == values(
        "x DECIMAL(20,4)", "plain", f'{{"x":{number}}}')


@KINDS
def test_numbers_out_of_range_are_malformed_and_never_wrapped(kind: str) -> None:
    assert values("x INT", kind, *(f'{{"x":{each}}}' for each in (
        "2147483647", "-2147483648", "2147483648", "-2147483649", "1e9", "1.0", "1.5", "1e-1", "0e99", "9" * 400))) == [
        2147483647, -2147483648, *["field x: the value is out of range"] * 2, 10**9, 1,
        *["field x: the value is no whole number"] * 2, 0, "field x: the value is out of range"]
    assert values("x DECIMAL(4,2)", kind, *(f'{{"x":{each}}}' for each in (
        "99.99", "99.994", "99.995", "-0.005", "1e1", "1e2", "0.0049", '"12.3"', '"x"', "1e-99999"))) == [
        Decimal("99.99"), Decimal("99.99"), "field x: the value is out of range", Decimal("-0.01"), 10,
        "field x: the value is out of range", 0, Decimal("12.30"), "field x: the value is no number", 0]
    assert values("x FLOAT", kind, '{"x":3.4e38}', '{"x":3.5e38}', '{"x":"Infinity"}')[1:] == [
        "field x: the value is out of range", math.inf]


@KINDS
def test_values_of_another_kind_are_malformed(kind: str) -> None:
    texts = ('{"x":"5"}', '{"x":true}', '{"x":{"y":[1,2]}}', '{"x":[1]}', '{"x":5}')
    wrong = {"INT": "no whole number", "BOOLEAN": "neither true nor false", "ARRAY<INT>": "no array",
             "STRUCT<y: ARRAY<INT>>": "no object", "MAP<STRING,ARRAY<INT>>": "no object", "STRING": "no text"}
    right = {"INT": (4, 5), "BOOLEAN": (1, True), "ARRAY<INT>": (3, [1]), "STRING": (0, "5"),
             "STRUCT<y: ARRAY<INT>>": (2, {"y": [1, 2]}), "MAP<STRING,ARRAY<INT>>": (2, [("y", [1, 2])])}
    for name, reason in wrong.items():
        found = values(f"x {name}", kind, *texts)
        at, value = right[name]
        assert found.pop(at) == value
        assert found == [f"field x: the value is {reason}"] * 4, name


@KINDS
def test_a_loose_text_takes_other_values_as_their_json(kind: str) -> None:
    assert values("x STRING", kind, '{"x": { "a b" : [ 1 , "\\" " ] } }', '{"x":true}', '{"x": 1.50 }', '{"x":"t"}',
                  '{"x":null}', '{"x":[1,}', loose=True) == [
        '{"a b":[1,"\\" "]}', "true", "1.50", "t", None, "field x: the text is not JSON"]


@KINDS
@pytest.mark.parametrize("text", [
    "", " ", "{", "}", "[]", "5", '"x"', '{"x":1}{"x":2}', '{"x":1} x', '{"x" 1}', '{"x":1,}', "{x:1}", '{"x":01}',
    '{"x":1.}', '{"x":+1}', '{"x":.5}', '{"x":NaN}', '{"x":nul}', "{'x':1}", '{"x":1 "y":2}', '{"y":"\t"}',
    '{"y":"\\x"}', '{"y":"\\ud800"}', '{"y":"\\udc00\\ud800"}', b'{"y":"\xff"}', b'{"y":"\xed\xa0\x80"}',
    '{"y":"a', '{"y":"a\\',
    '{"y":' + "[" * 401 + "]" * 401 + "}", '{"y":[1,]}', '{"y":[1}', '{"y":{"z":}}', "\ufeff{}",
])
def test_what_is_not_json_of_the_type_is_malformed_and_the_rest_is_read(kind: str, text: str | bytes) -> None:
    rows, bad = read("x INT, z STRING", kind, '{"x":1}', text, None, '{"z":"\\u00e4"}')
    assert rows == [{"x": 1, "z": None}, None, None, {"x": None, "z": "ä"}]
    assert list(bad) == [1]


@KINDS
def test_of_keys_that_come_twice_the_last_counts(kind: str) -> None:
    ddl = "x ARRAY<STRUCT<y: STRING, m: MAP<STRING, ARRAY<INT>>>>, z INT"
    text = ('{"z":1,"x":[{"y":"a"},{"y":"b","y":"c","m":{"k":[1],"l":[],"k":[2,3]}}],"z":null,'
            '"x":[{"m":{"p":null},"y":"d"}],"u":0,"u":1}')
    assert read(ddl, kind, text, '{"x":[{"m":{"a":[1],"a":[2]}}]}')[0] == [
        {"x": [{"y": "d", "m": [("p", None)]}], "z": None}, {"x": [{"y": None, "m": [("a", [2])]}], "z": None}]


@KINDS
def test_binary_is_base64_with_its_padding(kind: str) -> None:
    texts = ("", "YQ==", "YWI=", "YWJj", "YWJjZA==", "YQ", "YQ=", "YWJj=", "YWJj====", "Y===", "=YWJ", "YQ==YQ==",
             "YW J")
    assert values("x BINARY", kind, *(f'{{"x":"{each}"}}' for each in texts)) == [
        b"", b"a", b"ab", b"abc", b"abcd", *["field x: the text is not base64"] * 8]


@KINDS
def test_times_are_iso_8601_and_utc_without_a_zone(kind: str) -> None:
    at = datetime.datetime(2024, 2, 29, 13, 5, 9, 123456, datetime.UTC)
    assert values("x TIMESTAMP", kind, *(f'{{"x":"{each}"}}' for each in (
        "2024-02-29T13:05:09.123456Z", "2024-02-29 13:05:09.123456789", "2024-02-29t15:05:09.123456+02:00",
        "2024-02-29T11:35:09.123456-0130", "2024-02-29T13:05Z", "2024-02-30T00:00Z", "2024-02-29", "2024-02-29T24:00",
        "2024-02-29T13:05:09.Z", "2024-02-29T13:05+2", "0000-01-01T00:00"))) == [
        *[at] * 4, at.replace(second=0, microsecond=0), *["field x: the text is no time"] * 6]
    local = at.replace(tzinfo=None)
    assert values("x TIMESTAMP_NTZ", kind, '{"x":"2024-02-29T13:05:09.123456"}', '{"x":"2024-02-29T13:05:09Z"}') == [
        local, "field x: the text is no time"]
    assert values("x DATE", kind, '{"x":"1900-02-29"}', '{"x":"2000-02-29"}') == [
        "field x: the text is no date", datetime.date(2000, 2, 29)]


@KINDS
def test_a_date_is_the_time_of_its_midnight_as_sparks_from_json_has_it(kind: str) -> None:
    midnight = datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)
    texts = [f'{{"x":"{each}"}}' for each in ("2024-02-29", "2023-02-29", "2024-02-29T", "1969-12-31")]
    assert values("x TIMESTAMP", kind, *texts, loose=True) == [
        midnight, *["field x: the text is no time"] * 2, datetime.datetime(1969, 12, 31, tzinfo=datetime.UTC)]
    assert values("x TIMESTAMP_NTZ", kind, texts[0], loose=True) == [midnight.replace(tzinfo=None)]


@KINDS
def test_times_are_written_with_as_many_digits_as_they_need(kind: str) -> None:
    codec = JsonColumns(parse_ddl("x TIMESTAMP"), plain=kind == "plain")
    rows = pa.array([{"x": each} for each in (0, 1_500_000, -1, 123_456)], codec.data_type)
    assert codec.encode(rows).to_pylist() == [
        b'{"x":"1970-01-01T00:00:00Z"}', b'{"x":"1970-01-01T00:00:01.500Z"}', b'{"x":"1969-12-31T23:59:59.999999Z"}',
        b'{"x":"1970-01-01T00:00:00.123456Z"}']
    with pytest.raises(SerializationError, match="row 1 cannot be written as JSON: field x: the value is out of range"):
        codec.encode(pa.array([None, {"x": 10**18}], codec.data_type))


@KINDS
def test_columns_are_written_as_sparks_to_json_does(kind: str) -> None:
    codec = JsonColumns(parse_ddl("a INT, b DOUBLE, c FLOAT, d DECIMAL(5,2), e ARRAY<INT>, f MAP<STRING,INT>, "
                                  "g STRING, h BINARY, i STRUCT<j: INT>"), plain=kind == "plain")
    rows = pa.array([
        {"a": None, "b": math.nan, "c": 0.1, "d": Decimal("-1.50"), "e": [1, None], "f": {"k": None}, "g": 'ä"\n\x01/',
         "h": b"ab", "i": {"j": None}},
        {"a": -5, "b": 1e300, "c": 1e20, "d": Decimal("0.07"), "e": [], "f": {}, "g": "", "h": b"", "i": None},
    ], codec.data_type)
    assert [each.decode() for each in codec.encode(rows).to_pylist()] == [
        '{"b":"NaN","c":0.1,"d":-1.50,"e":[1,null],"f":{"k":null},"g":"ä\\"\\n\\u0001/","h":"YWI=","i":{}}',
        '{"a":-5,"b":1e+300,"c":1e+20,"d":0.07,"e":[],"f":{},"g":"","h":""}']


@KINDS
def test_what_a_schema_requires_and_lets_be_null_is_written_as_null(kind: str) -> None:
    inner = pa.struct([pa.field("x", pa.int64(), metadata=KEEPS_NULL), ("y", pa.int64())])
    marked = pa.struct([pa.field("a", pa.string(), metadata=KEEPS_NULL), ("b", pa.string()),
                        pa.field("c", pa.list_(pa.field("element", inner)), metadata=KEEPS_NULL)])
    codec = JsonColumns(marked, plain=kind == "plain")
    rows = [{}, {"a": "1", "b": "2", "c": [{}, None, {"x": 3, "y": 4}]}]
    texts = codec.encode(pa.array(rows, codec.data_type)).to_pylist()
    assert texts == [b'{"a":null,"c":null}', b'{"a":"1","b":"2","c":[{"x":null},null,{"x":3,"y":4}]}']
    assert codec.encode(pa.array([{"b": "2"}])).to_pylist() == [b'{"a":null,"b":"2","c":null}']
    assert all(each.metadata is None for each in codec.data_type)


@KINDS
def test_slices_of_columns_are_written_as_they_stand(kind: str) -> None:
    codec = CODECS[kind, False]
    rows = [{"i32": n, "list": list(range(n)), "map": [(str(n), n)], "inner": {"x": n, "y": {"z": [{"w": "v"}] * n}},
             "b": n % 2 == 0, "dec": Decimal(n)} for n in range(20)]
    whole = pa.array(rows, codec.data_type)
    expected = codec.encode(whole).to_pylist()
    for start, size in ((3, 9), (0, 20), (19, 1)):
        assert codec.encode(whole.slice(start, size)).to_pylist() == expected[start:start + size]
        part = codec.decode(codec.encode(whole).slice(start, size)).values
        assert part.equals(whole.slice(start, size))


@KINDS
def test_a_check_refuses_on_both_ways(kind: str) -> None:
    def check(text: bytes) -> None:
        if b"7" in text:
            raise SerializationError("7 is not allowed")

    codec = JsonColumns(parse_ddl("x INT"), check=check, plain=kind == "plain")
    found = codec.decode(pa.array([b'{"x":1}', b'{"x":7}', b"x", None]))
    assert found.values.to_pylist() == [{"x": 1}, None, None, None]
    assert dict(found.malformed) == {1: "7 is not allowed", 2: "the text is not JSON"}
    with pytest.raises(SerializationError, match="row 1 is not valid: 7 is not allowed"):
        codec.encode(pa.array([{"x": 1}, {"x": 7}], codec.data_type))


@KINDS
def test_columns_of_single_values_need_no_struct(kind: str) -> None:
    codec = JsonColumns(pa.list_(pa.int64()), plain=kind == "plain")
    found = codec.decode(pa.array([b"[1, 2]", b"null", b"[]", b"{}"]))
    assert found.values.to_pylist() == [[1, 2], None, [], None]
    assert dict(found.malformed) == {3: "the value is no array"}
    assert codec.encode(found.values).to_pylist() == [b"[1,2]", None, b"[]", None]


def test_a_few_bytes_cannot_fill_the_memory() -> None:
    fields = ", ".join(f"f{n}: BIGINT" for n in range(200))
    rows, bad = read(f"x ARRAY<STRUCT<{fields}>>", "native", '{"x":[' + ",".join(["{}"] * 100_000) + "]}", '{"x":[{}]}')
    assert bad == {0: "field x: the value has more than 16777216 values"}
    assert len(rows[1]["x"]) == 1
