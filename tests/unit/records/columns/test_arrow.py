from __future__ import annotations

import datetime
from typing import Any

import pytest

from headrace import records
from headrace.errors import CorruptRecordError
from headrace.records.columns import arrow
from tests.unit.records.samples import batch, simple

pa = pytest.importorskip("pyarrow")

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


@pytest.fixture(autouse=True)
def _use(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the functions under test run on the twin."""
    monkeypatch.setattr(records, "read_columns", twin.read_columns)


def test_the_schema_is_the_one_that_spark_compares_strictly() -> None:
    assert arrow.schema(headers=True) == pa.schema([
        pa.field("key", pa.binary()), pa.field("value", pa.binary()), pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()), pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")), pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(pa.field("element", pa.struct([
            pa.field("key", pa.string()), pa.field("value", pa.binary())])))),
    ])
    assert arrow.schema(columns=["value", "key"]).names == ["key", "value"]


def test_a_batch_becomes_rows() -> None:
    data = batch([(1_700_000_000_123, b"k", b"v", [(b"h", b"x"), ("ü".encode(), None)]), (5, None, None, [])],
                 base_offset=7, codec=4)
    table, next_offset = arrow.to_arrow(data, "topic", 3, 0, headers=True)
    table.validate(full=True)
    at = datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, datetime.UTC)
    assert table.schema == arrow.schema(True)
    assert next_offset == 9
    assert table.to_pylist() == [
        {"key": b"k", "value": b"v", "topic": "topic", "partition": 3, "offset": 7, "timestamp": at,
         "timestampType": 0, "headers": [{"key": "h", "value": b"x"}, {"key": "ü", "value": None}]},
        {"key": None, "value": None, "topic": "topic", "partition": 3, "offset": 8, "timestampType": 0,
         "timestamp": datetime.datetime(1970, 1, 1, 0, 0, 0, 5000, datetime.UTC), "headers": None},
    ]


def test_log_append_time_has_type_1() -> None:
    data = bytearray(simple([b"a"]))
    records.set_log_append_time(data, 1000)
    table, _ = arrow.to_arrow(data, "t", 0, 0)
    assert table["timestampType"].to_pylist() == [1]
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [1_000_000]


def test_a_range_is_cut_at_both_ends_and_said_where_it_goes_on() -> None:
    data = simple([b"%d" % n for n in range(10)]) + simple([b"%d" % n for n in range(10, 20)], base_offset=10, codec=1)
    table, next_offset = arrow.to_arrow(data, "t", 0, 4, 15)
    assert (table["offset"].to_pylist(), next_offset) == (list(range(4, 15)), 15)
    table, next_offset = arrow.to_arrow(data, "t", 0, 4, 99)
    assert (table.num_rows, next_offset) == (16, 20)
    table, next_offset = arrow.to_arrow(data, "t", 0, 4, 15, max_rows=3)
    assert (table["value"].to_pylist(), next_offset) == ([b"4", b"5", b"6"], 7)
    table, next_offset = arrow.to_arrow(data, "t", 0, 8, 15, max_rows=4)
    assert (table["offset"].to_pylist(), next_offset) == ([8, 9, 10, 11], 12)


def test_no_rows_are_a_batch_of_no_rows() -> None:
    for data, first, end, expected in ((b"", 5, None, 5), (simple([b"a"]), 1, None, 1), (simple([b"a"]), 0, 0, 0)):
        table, next_offset = arrow.to_arrow(data, "t", 0, first, end, headers=True)
        table.validate(full=True)
        assert (table.num_rows, table.schema, next_offset) == (0, arrow.schema(True), expected)


def test_only_wanted_columns_are_made() -> None:
    table, _ = arrow.to_arrow(simple([b"a"]), "t", 0, 0, columns=["offset", "value"], headers=True)
    assert table.to_pylist() == [{"value": b"a", "offset": 0}]


def test_aborted_records_and_damage_are_handled_as_by_a_cursor() -> None:
    data = simple([b"a"], producer_id=1, transactional=True) + simple([b"b"], base_offset=1)
    assert arrow.to_arrow(data, "t", 0, 0, aborted=[(1, 0)])[0]["value"].to_pylist() == [b"b"]
    damaged = bytearray(data)
    damaged[-2] ^= 1
    with pytest.raises(CorruptRecordError):
        arrow.to_arrow(damaged, "t", 0, 0)
    assert arrow.to_arrow(damaged, "t", 0, 0, check_crcs=False)[0].num_rows == 2
    assert arrow.to_arrow(damaged, "t", 0, 0, 1)[0].num_rows == 1


def test_header_names_that_are_not_utf_8_are_mended() -> None:
    table, _ = arrow.to_arrow(batch([(1, None, None, [(b"\xff", b"x")])]), "t", 0, 0, headers=True)
    table.validate(full=True)
    assert table["headers"].to_pylist() == [[{"key": "�", "value": b"x"}]]
