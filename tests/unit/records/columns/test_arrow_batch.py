"""`ArrowBatch`: the same columns as the messages have, in every library that is there, from both twins."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import records
from headrace.records.columns import arrow_batch
from headrace.records.columns.arrow_batch import ArrowBatch, ArrowBatchBuilder
from headrace.records.legacy.message_set_writer import write_message_set
from tests.unit.records.samples import Record, batch, record_lists, simple

pa = pytest.importorskip("pyarrow")

quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
Piece = tuple[str, int, bytes]


@pytest.fixture(autouse=True)
def _use(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the functions under test run on the twin."""
    monkeypatch.setattr(records, "ColumnBuilder", twin.ColumnBuilder)
    for name in ("array_capsule", "schema_capsule", "stream_capsule"):
        monkeypatch.setattr(arrow_batch, name, getattr(twin, name))


def rows_of(twin: Any, pieces: list[Piece]) -> ArrowBatch:
    rows = ArrowBatchBuilder()
    for topic, partition, data in pieces:
        rows.append(twin.Cursor(data, topic, partition, 0), topic, partition, 1000)
    return rows.finish()


def told(message: Any) -> dict[str, Any]:
    """A message as a row."""
    kind, ms = message.timestamp()
    headers = message.headers()
    return {"topic": message.topic(), "partition": message.partition(), "offset": message.offset(),
            "timestamp": ms if kind else None, "timestamp_type": kind, "key": message.key(), "value": message.value(),
            "headers": headers and [{"name": name, "value": value} for name, value in headers]}


@quick
@given(pieces=st.lists(st.tuples(st.sampled_from(["a", "bb"]), st.integers(0, 9), record_lists), max_size=4))
def test_rows_are_what_messages_say(twin: Any, pieces: list[tuple[str, int, list[Record]]]) -> None:
    data = [(topic, partition, batch(rows)) for topic, partition, rows in pieces]
    made = rows_of(twin, data)
    table = pa.record_batch(made)
    table.validate(full=True)
    plain_times = table.set_column(3, "timestamp", table["timestamp"].cast(pa.int64()))
    assert plain_times.to_pylist() == [told(message) for topic, partition, piece in data
                                       for message in twin.Cursor(piece, topic, partition, 0).take(1000)]
    assert len(made) == made.num_rows == table.num_rows


def test_the_types_are_those_of_the_page(twin: Any) -> None:
    header = pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("value", pa.binary())])
    assert pa.schema(rows_of(twin, [])) == pa.schema([
        pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("timestamp_type", pa.int8(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("item", header, nullable=False))),
    ])
    assert pa.schema(rows_of(twin, [])).names == rows_of(twin, []).column_names


def test_records_without_a_timestamp_have_null(twin: Any) -> None:
    old = bytes(write_message_set(0, [(0, 7, None, b"v")], 0))
    new = batch([(5, None, None, [])], base_offset=1)
    times = pa.record_batch(rows_of(twin, [("t", 0, old + new)]))["timestamp"]
    assert times.to_pylist() == [None, datetime.datetime(1970, 1, 1, 0, 0, 0, 5000, datetime.UTC)]


def test_a_batch_can_be_exported_again_and_again(twin: Any) -> None:
    made = rows_of(twin, [("t", 3, simple([b"a", b"b"]))])
    first, second = pa.record_batch(made), pa.table(made)
    assert first.to_pylist() == second.to_pylist()
    assert repr(made) == "ArrowBatch(2 records of 1 partitions)"


def test_polars_takes_it(twin: Any) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(rows_of(twin, [("t", 3, simple([b"a", b"b"])), ("u", 1, simple([b"c"]))]))
    assert frame["topic"].cast(polars.String).to_list() == ["t", "t", "u"]
    assert frame["value"].to_list() == [b"a", b"b", b"c"]
    assert frame["timestamp"].dtype == polars.Datetime("ms", "UTC")


def test_pandas_takes_it(twin: Any) -> None:
    pandas = pytest.importorskip("pandas")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("pandas before 3")
    frame = pandas.DataFrame.from_arrow(rows_of(twin, [("t", 3, simple([b"a", b"b"]))]))
    assert (list(frame["topic"]), list(frame["partition"]), list(frame["value"])) == (["t"] * 2, [3, 3], [b"a", b"b"])


def test_duckdb_takes_it(twin: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("made", rows_of(twin, [("t", 3, simple([b"a", b"b"])), ("u", 1, simple([b"c"]))]))
    found = connection.sql('select topic, count(*), max("offset") from made group by topic order by topic').fetchall()
    assert found == [("t", 2, 1), ("u", 1, 0)]


def test_rows_say_where_each_partition_began(twin: Any) -> None:
    rows = ArrowBatchBuilder()
    cursor = twin.Cursor(simple([b"a", b"b", b"c"], base_offset=10), "t", 0, 11)
    rows.append(cursor, "t", 0, 1)
    rows.append(cursor, "t", 0, 1)
    rows.append(twin.Cursor(b"", "t", 1, 0), "t", 1, 1)
    assert (rows.starts, len(rows), cursor.position) == ({("t", 0): 11}, 2, 13)


def test_columns_that_are_full_take_no_more(twin: Any) -> None:
    rows = ArrowBatchBuilder(max_bytes=100)
    rows.append(twin.Cursor(simple([b"x" * 60] * 3), "t", 0, 0), "t", 0, 9)
    assert (len(rows), rows.full) == (1, True)


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
from headrace import records
from headrace.records.columns.arrow_batch import ArrowBatchBuilder
made = ArrowBatchBuilder().finish()
print(len(made.__arrow_c_array__()), made.__arrow_c_schema__(), made.__arrow_c_stream__())
"""


def test_capsules_are_made_without_pyarrow() -> None:
    shown = subprocess.run([sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, check=True).stdout
    assert [name in shown for name in ('"arrow_schema"', '"arrow_array_stream"')] == [True, True]
