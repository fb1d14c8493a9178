"""Types as Spark's DDL writes them."""

import pyarrow as pa
import pytest

from headrace.schemas.columns.json.ddl_types import ddl_text, parse_ddl
from headrace.schemas.columns.json_columns import JsonColumns
from headrace.schemas.parsed import InvalidSchemaError


def test_all_types_of_json_can_be_said() -> None:
    assert parse_ddl("a BOOLEAN, b tinyint, c Short, d INTEGER not null COMMENT 'it''s', e: LONG, f REAL, g double, "
                     "h STRING, i varchar(10), j BINARY, k date, l TIMESTAMP, m timestamp_ntz, n DECIMAL, o dec(5), "
                     "p NUMERIC(10, 2)") == pa.struct([
        ("a", pa.bool_()), ("b", pa.int8()), ("c", pa.int16()), ("d", pa.int32()), ("e", pa.int64()),
        ("f", pa.float32()), ("g", pa.float64()), ("h", pa.string()), ("i", pa.string()), ("j", pa.binary()),
        ("k", pa.date32()), ("l", pa.timestamp("us", tz="UTC")), ("m", pa.timestamp("us")),
        ("n", pa.decimal128(10, 0)), ("o", pa.decimal128(5, 0)), ("p", pa.decimal128(10, 2))])


def test_types_are_nested() -> None:
    element = pa.list_(pa.field("element", pa.struct([("y z", pa.int32()), ("array", pa.string())])))
    assert parse_ddl("x MAP<STRING,ARRAY<STRUCT<`y z` INT, array: STRING>>>") == pa.struct([
        ("x", pa.map_(pa.string(), element))])
    assert parse_ddl("STRUCT<x: INT>") == pa.struct([("x", pa.int32())])
    assert parse_ddl("array<bigint>") == pa.list_(pa.field("element", pa.int64()))
    assert parse_ddl("map INT, struct STRING") == pa.struct([("map", pa.int32()), ("struct", pa.string())])


@pytest.mark.parametrize(("text", "reason"), [
    ("", "empty"), ("a", "the type 'a'"), ("a INT, b", "the end where a type"),
    ("a INT,", "the end where a type"), ("a INTT", "'intt'"),
    ("a INT b INT", "',' is expected"), ("a ARRAY INT", "'<' is expected"), ("a ARRAY<INT", "'>' is expected"),
    ("a DECIMAL(39)", "a number from 1 to 38"), ("a DECIMAL(5,6)", "a number from 0 to 5"),
    ("a INT; b", "not understood"),
    ("a INTERVAL DAY", "'interval'"), ("a VARIANT", "'variant'"), ("<a INT>", "the name of a field"),
    ("ARRAY<INT> x", "the end is expected"), ("a " + "ARRAY<" * 200 + "INT" + ">" * 200, "nested more than"),
])
def test_what_is_no_type_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=reason):
        parse_ddl(text)


@pytest.mark.parametrize(("ddl", "reason"), [
    ("a MAP<INT, STRING>", "field a is a map of int32: keys of JSON are strings"),
    ("a STRUCT<b: INT, b: INT>", "field a has two fields of the same name"),
])
def test_types_of_which_json_has_no_values_are_refused(ddl: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=reason):
        JsonColumns(parse_ddl(ddl))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "+05:30"])
def test_a_moment_is_a_timestamp_whatever_the_zone_that_shows_it(zone: str) -> None:
    moments = pa.timestamp("us", tz=zone)
    assert ddl_text(pa.struct([("at", moments), ("all", pa.list_(moments))])) == (
        "STRUCT<`at`: TIMESTAMP, `all`: ARRAY<TIMESTAMP>>")
