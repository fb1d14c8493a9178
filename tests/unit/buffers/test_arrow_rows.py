"""Arrow columns into accumulators: by both twins."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest

from headrace import buffers
from headrace.buffers import arrow_rows
from headrace.errors import BufferFullError, KafkaException
from headrace.records.columns import arrow
from tests.unit.records.samples import batch

pa = pytest.importorskip("pyarrow")

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


@pytest.fixture(autouse=True)
def _use(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the functions under test run on the twin."""
    monkeypatch.setattr(buffers, "append_columns", twin.append_columns)


def test_reading_and_writing_columns_does_not_import_pandas() -> None:
    pytest.importorskip("pandas")
    data = batch([(1_700_000_000_123, b"k", b"v", [(b"h", b"x")])])
    code = f"""
import sys
from headrace.buffers import BufferPool, RecordAccumulator, arrow_rows
from headrace.records.columns import arrow
table, _ = arrow.to_arrow({bytes(data)!r}, "topic", 3, 0, headers=True)
assert table.num_rows == 1
rows = arrow_rows.Rows(*(table[name] for name in ("key", "value", "partition", "timestamp", "headers")))
rows.append_to(RecordAccumulator("topic", 4, BufferPool(10, 10_000)))
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
    accumulator = twin.RecordAccumulator("topic", 2, twin.BufferPool(10**6, 10**9))
    assert arrow_rows.append_columns(accumulator, *columns) == 40 - first
    rows = []
    for opened in accumulator.open_batches.ready(math.inf):
        table, _ = arrow.to_arrow(opened.seal().data, "topic", opened.partition, 0, headers=True)
        rows += table.to_pylist()
    rows.sort(key=lambda row: row["timestamp"])
    assert [row["value"] and row["value"].decode() for row in rows] == texts[first:]
    assert [row["key"] for row in rows] == [row["value"] for row in rows]
    assert [row["partition"] for row in rows] == partitions.to_pylist()[first:]
    assert [row["headers"] for row in rows] == [row or None for row in headers.to_pylist()[first:]]
    assert [row["timestamp"] for row in rows] == times.to_pylist()[first:]


def test_missing_partitions_and_times_are_left_to_the_accumulator(twin: Any) -> None:
    accumulator = twin.RecordAccumulator("topic", 9, twin.BufferPool(10**6, 10**9), seed=1)
    arrow_rows.append_columns(accumulator, None, pa.array([b"a", b"b"]), pa.array([None, 5], pa.int32()),
                         pa.array([None, 77], pa.int64()))
    found = [(b.partition, *twin.Cursor(b.seal().data, "t", 0, 0).take(1))
             for b in accumulator.open_batches.ready(math.inf)]
    assert len(found) == 2
    assert [message.timestamp()[1] for partition, message in found if partition == 5] == [77]
    assert all(message.timestamp()[1] > 10**12 for partition, message in found if partition != 5)


def test_as_many_rows_are_appended_as_the_pool_allows(twin: Any) -> None:
    accumulator = twin.RecordAccumulator("topic", 1, twin.BufferPool(7, 10**9))
    values = pa.array([b"%d" % n for n in range(10)])
    assert arrow_rows.append_columns(accumulator, None, values) == 7
    assert arrow_rows.append_columns(accumulator, None, values.slice(7)) == 0
    with pytest.raises(BufferFullError):
        accumulator.append(b"x")


def test_a_row_that_cannot_be_sent_is_an_error_behind_the_rows_before_it(twin: Any) -> None:
    accumulator = twin.RecordAccumulator("topic", 2, twin.BufferPool(100, 10**9), message_bytes=10)
    with pytest.raises(KafkaException, match="larger"):
        arrow_rows.append_columns(accumulator, None, pa.array([b"a", b"b" * 11, b"c"]))
    with pytest.raises(KafkaException, match="no partition 2"):
        arrow_rows.append_columns(accumulator, None, pa.array([b"a", b"b"]), pa.array([1, 2], pa.int32()))
    assert sum(opened.count for opened in accumulator.open_batches.ready(math.inf)) == 2


@pytest.mark.parametrize("columns", [
    (pa.array([1]), None), (None, pa.array([[b"x"]])), (None, pa.array([b"x"]), pa.array(["a"])),
    (None, pa.array([b"x"]), None, pa.array(["a"])), (None, pa.array([b"x"]), None, None, pa.array([1])),
    (pa.array([b"a", b"b"]), pa.array([b"x"])), (None, None),
])
def test_columns_of_a_wrong_type_or_length_are_refused(twin: Any, columns: Any) -> None:
    accumulator = twin.RecordAccumulator("topic", 2, twin.BufferPool(100, 10**9))
    with pytest.raises(TypeError):
        arrow_rows.append_columns(accumulator, *columns)
    assert accumulator.open_batches.ready(math.inf) == []


_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TURNED = pa.large_list(pa.struct([("value", pa.binary()), ("key", pa.string())]))


@pytest.mark.parametrize("kind", [_HEADERS, _TURNED])
@pytest.mark.parametrize("header", [{"key": None, "value": b"x"}, None])
def test_a_header_without_a_name_is_refused(twin: Any, kind: pa.DataType, header: Any) -> None:
    accumulator = twin.RecordAccumulator("topic", 2, twin.BufferPool(100, 10**9))
    headers = pa.array([None, [{"key": "a", "value": None}], [header]], kind)
    with pytest.raises(ValueError, match="name cannot be null"):
        arrow_rows.append_columns(accumulator, None, pa.array([b"x"] * 3), headers=headers)
    assert arrow_rows.append_columns(accumulator, None, pa.array([b"x"] * 2), headers=headers.slice(0, 2)) == 2


def test_what_a_null_list_of_headers_has_beneath_is_not_looked_at(twin: Any) -> None:
    accumulator = twin.RecordAccumulator("topic", 1, twin.BufferPool(100, 10**9))
    entries = pa.array([{"key": None, "value": b"x"}, {"key": "a", "value": b"y"}], _HEADERS.value_type)
    headers = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), entries, mask=pa.array([True, False]))
    assert arrow_rows.append_columns(accumulator, None, pa.array([b"1", b"2"]), headers=headers) == 2
    sealed = accumulator.open_batches.ready(math.inf)[0].seal()
    assert [message.headers() for message in twin.Cursor(sealed.data, "topic", 0, 0).take(2)] == [None, [("a", b"y")]]


def test_chunked_columns_and_no_rows_are_taken(twin: Any) -> None:
    accumulator = twin.RecordAccumulator("topic", 2, twin.BufferPool(100, 10**9))
    assert arrow_rows.append_columns(accumulator, None, pa.chunked_array([[b"a"], [b"b", b"c"]])) == 3
    assert arrow_rows.append_columns(accumulator, pa.array([], pa.string()), pa.array([], pa.binary())) == 0
