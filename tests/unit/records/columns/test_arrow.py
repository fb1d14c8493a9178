from __future__ import annotations

import datetime
import math
import subprocess
import sys
from typing import Any

import pytest

from headrace import records
from headrace.errors import BufferFullError, CorruptRecordError, KafkaException
from headrace.records.columns import arrow
from tests.unit.records.samples import batch, simple

pa = pytest.importorskip("pyarrow")

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


@pytest.fixture(autouse=True)
def _use(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the functions under test run on the twin."""
    monkeypatch.setattr(records, "read_columns", twin.read_columns)
    monkeypatch.setattr(records, "append_columns", twin.append_columns)


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


def test_reading_and_writing_columns_does_not_import_pandas() -> None:
    pytest.importorskip("pandas")
    data = batch([(1_700_000_000_123, b"k", b"v", [(b"h", b"x")])])
    code = f"""
import sys
from headrace.records import BufferPool, RecordAccumulator
from headrace.records.columns import arrow
table, _ = arrow.to_arrow({bytes(data)!r}, "topic", 3, 0, headers=True)
assert table.num_rows == 1
rows = arrow.Rows(*(table[name] for name in ("key", "value", "partition", "timestamp", "headers")))
rows.append_to(RecordAccumulator("topic", 4, BufferPool(10, 10_000)))
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("kind", ["binary", "string", "large_binary", "large_string", "string_view", "dictionary"])
def test_columns_come_back_as_they_went_in(twin: Any, kind: str, first: int) -> None:
    texts = [None if n % 5 == 0 else f"value {n}" for n in range(40)]
    kinds = {"string_view": pa.string_view(), "dictionary": pa.dictionary(pa.int32(), pa.string())} if hasattr(
        pa, "string_view") else {}
    values = pa.array(texts, pa.string())
    values = values.dictionary_encode() if kind == "dictionary" else values.cast(
        kinds.get(kind) or getattr(pa, kind)())
    headers = pa.array([None if n % 2 else [("a", b"x"), ("b", None)][: n % 3] for n in range(40)], HEADERS)
    partitions = pa.array([n % 2 for n in range(40)], pa.int64())
    times = pa.array([1_000_000 * (n + 1) for n in range(40)], pa.timestamp("us", "UTC"))
    columns = [column.slice(first) for column in (values, values, partitions, times, headers)]
    buffer = twin.RecordAccumulator("topic", 2, twin.BufferPool(10**6, 10**9))
    assert arrow.append_columns(buffer, *columns) == 40 - first
    rows = []
    for opened in buffer.ready(math.inf):
        table, _ = arrow.to_arrow(opened.seal().data, "topic", opened.partition, 0, headers=True)
        rows += table.to_pylist()
    rows.sort(key=lambda row: row["timestamp"])
    assert [row["value"] and row["value"].decode() for row in rows] == texts[first:]
    assert [row["key"] for row in rows] == [row["value"] for row in rows]
    assert [row["partition"] for row in rows] == partitions.to_pylist()[first:]
    assert [row["headers"] for row in rows] == [row or None for row in headers.to_pylist()[first:]]
    assert [row["timestamp"] for row in rows] == times.to_pylist()[first:]


def test_missing_partitions_and_times_are_left_to_the_buffer(twin: Any) -> None:
    buffer = twin.RecordAccumulator("topic", 9, twin.BufferPool(10**6, 10**9), seed=1)
    arrow.append_columns(buffer, None, pa.array([b"a", b"b"]), pa.array([None, 5], pa.int32()),
                         pa.array([None, 77], pa.int64()))
    found = [(b.partition, *twin.Cursor(b.seal().data, "t", 0, 0).take(1)) for b in buffer.ready(math.inf)]
    assert len(found) == 2
    assert [message.timestamp()[1] for partition, message in found if partition == 5] == [77]
    assert all(message.timestamp()[1] > 10**12 for partition, message in found if partition != 5)


def test_as_many_rows_are_appended_as_the_budget_allows(twin: Any) -> None:
    buffer = twin.RecordAccumulator("topic", 1, twin.BufferPool(7, 10**9))
    values = pa.array([b"%d" % n for n in range(10)])
    assert arrow.append_columns(buffer, None, values) == 7
    assert arrow.append_columns(buffer, None, values.slice(7)) == 0
    with pytest.raises(BufferFullError):
        buffer.append(b"x")


def test_a_row_that_cannot_be_sent_is_an_error_behind_the_rows_before_it(twin: Any) -> None:
    buffer = twin.RecordAccumulator("topic", 2, twin.BufferPool(100, 10**9), message_bytes=10)
    with pytest.raises(KafkaException, match="larger"):
        arrow.append_columns(buffer, None, pa.array([b"a", b"b" * 11, b"c"]))
    with pytest.raises(KafkaException, match="no partition 2"):
        arrow.append_columns(buffer, None, pa.array([b"a", b"b"]), pa.array([1, 2], pa.int32()))
    assert sum(opened.count for opened in buffer.ready(math.inf)) == 2


@pytest.mark.parametrize("columns", [
    (pa.array([1]), None), (None, pa.array([[b"x"]])), (None, pa.array([b"x"]), pa.array(["a"])),
    (None, pa.array([b"x"]), None, pa.array(["a"])), (None, pa.array([b"x"]), None, None, pa.array([1])),
    (pa.array([b"a", b"b"]), pa.array([b"x"])), (None, None),
])
def test_columns_of_a_wrong_type_or_length_are_refused(twin: Any, columns: Any) -> None:
    buffer = twin.RecordAccumulator("topic", 2, twin.BufferPool(100, 10**9))
    with pytest.raises(TypeError):
        arrow.append_columns(buffer, *columns)
    assert buffer.ready(math.inf) == []


def test_chunked_columns_and_no_rows_are_taken(twin: Any) -> None:
    buffer = twin.RecordAccumulator("topic", 2, twin.BufferPool(100, 10**9))
    assert arrow.append_columns(buffer, None, pa.chunked_array([[b"a"], [b"b", b"c"]])) == 3
    assert arrow.append_columns(buffer, pa.array([], pa.string()), pa.array([], pa.binary())) == 0
