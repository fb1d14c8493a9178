"""Rows through Arrow into Kafka's batches and back, in every layout that Arrow has for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import buffers, records
from headrace.buffers import arrow_rows
from headrace.records.columns import arrow
from tests.unit.records.samples import contents

pa = pytest.importorskip("pyarrow")

BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
TIMES = [pa.int64(), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Berlin")]
NUMBERS = [pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.dictionary(pa.int8(), pa.int64())]
texts = st.text(max_size=6)
headers = st.none() | st.lists(st.tuples(texts, contents), max_size=3)
rows_of = st.lists(st.tuples(contents, contents, st.integers(0, 2), st.integers(1, 2**41), headers), max_size=25)


def whole(array: Any) -> Any:
    return array


def sliced(array: Any) -> Any:
    """The same behind and before rows of which it must see nothing."""
    return pa.concat_arrays([array, array, array])[len(array) : 2 * len(array)] if len(array) else array


def chunked(array: Any) -> Any:
    return pa.chunked_array([array[:1], array[1:4], array[4:]], array.type)


layouts = st.sampled_from([whole, sliced, chunked])


def of(kind: Any, values: list[Any]) -> Any:
    """An array of a type that pyarrow may not make directly."""
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def header_array(rows: list[Any], outer: str, name: Any, value: Any) -> Any:
    """Headers as a list of structs, whatever kind of list, or as a map."""
    flat = [pair for row in rows for pair in row or ()]
    names, values = of(name, [pair[0] for pair in flat]), of(value, [pair[1] for pair in flat])
    ends = [0]
    for row in rows:
        ends.append(ends[-1] + len(row or ()))
    if outer == "map":
        offsets = [None if row is None else ends[index] for index, row in enumerate(rows)] + [ends[-1]]
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), names, values)
    entries = pa.StructArray.from_arrays([names, values], ["key", "value"])
    if outer.endswith("view"):
        kind, width = (pa.LargeListViewArray, pa.int64()) if outer == "large_list_view" else (
            pa.ListViewArray, pa.int32())
        return kind.from_arrays(pa.array(ends[:-1], width), pa.array([len(row or ()) for row in rows], width), entries,
                                mask=pa.array([row is None for row in rows], pa.bool_()))
    kind, width = (pa.LargeListArray, pa.int64()) if outer == "large_list" else (pa.ListArray, pa.int32())
    return kind.from_arrays(pa.array(ends, width), entries, mask=pa.array([row is None for row in rows], pa.bool_()))


def went_through(twin: Any, columns: list[Any], codec: int) -> list[Any]:
    """The rows of batches that were made of columns, by partition and in order."""
    accumulator = twin.RecordAccumulator("topic", 3, twin.BufferPool(10**6, 10**9), batch_bytes=300)
    count = len(columns[1])
    assert arrow_rows.append_columns(accumulator, *columns) == count
    found: list[list[Any]] = [[], [], []]
    for opened in accumulator.open_batches.ready(math.inf):
        table, _ = arrow.to_arrow(opened.seal(codec).data, "topic", opened.partition, 0, headers=True)
        table.validate(full=True)
        assert table["partition"].to_pylist() == [opened.partition] * table.num_rows
        assert table["offset"].to_pylist() == list(range(table.num_rows))
        found[opened.partition] += [
            (row["key"], row["value"], opened.partition, int(row["timestamp"].timestamp() * 1000 + 0.5),
             row["headers"] and [(header["key"], header["value"]) for header in row["headers"]])
            for row in table.to_pylist()]
    return [row for part in found for row in part]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows_of, key=st.sampled_from(BYTES), value=st.sampled_from(BYTES), number=st.sampled_from(NUMBERS),
       time=st.sampled_from(TIMES), name=st.sampled_from(TEXTS), content=st.sampled_from(BYTES),
       codec=st.integers(0, 4), outer=st.sampled_from(["list", "large_list", "list_view", "large_list_view", "map"]),
       layout=st.lists(layouts, min_size=5, max_size=5))
def test_rows_come_back_as_they_went_in(
    twin: Any, monkeypatch: pytest.MonkeyPatch, rows: list[Any], key: Any, value: Any, number: Any, time: Any,
    name: Any, content: Any, codec: int, outer: str, layout: list[Callable[[Any], Any]]
) -> None:
    monkeypatch.setattr(records, "read_columns", twin.read_columns)
    monkeypatch.setattr(buffers, "append_columns", twin.append_columns)
    times = [row[3] * 1000 if time == pa.timestamp("us", "UTC") else row[3] for row in rows]
    if time == pa.timestamp("ns", "Europe/Berlin"):
        times = [ms * 1_000_000 for ms in times]
    arrays = [of(key, [row[0] for row in rows]), of(value, [row[1] for row in rows]),
              of(number, [row[2] for row in rows]), pa.array(times, pa.int64()).cast(time),
              header_array([row[4] for row in rows], outer, name, content)]
    columns = [shape(array) for shape, array in zip(layout, arrays, strict=True)]
    expected = sorted(((*row[:4], row[4] or None) for row in rows), key=lambda row: row[2])
    assert went_through(twin, columns, codec) == expected


@pytest.mark.parametrize("kind", TEXTS, ids=str)
@pytest.mark.parametrize("shape", [whole, sliced, chunked])
def test_text_becomes_its_utf_8_bytes(twin: Any, monkeypatch: pytest.MonkeyPatch, kind: Any, shape: Any) -> None:
    monkeypatch.setattr(buffers, "append_columns", twin.append_columns)
    values = ["", "a", None, "ü€", "long enough not to lie inside of a view", "a"]
    found = went_through(twin, [None, shape(of(kind, values)), pa.array([0] * 6), pa.array([1] * 6, pa.int64())], 0)
    assert [row[1] for row in found] == [None if text is None else text.encode() for text in values]


@pytest.mark.parametrize("nameless", [None, {"key": None, "value": b"y"}])
def test_headers_without_a_name_are_refused_and_those_without_a_value_are_not(
    twin: Any, monkeypatch: pytest.MonkeyPatch, nameless: dict[str, Any] | None
) -> None:
    monkeypatch.setattr(buffers, "append_columns", twin.append_columns)
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    good = {"key": "a", "value": None}
    column = pa.array([[good, nameless]], kind)
    with pytest.raises(ValueError, match="a header's name cannot be null"):
        went_through(twin, [None, pa.array([b"v"]), pa.array([0]), pa.array([1]), column], 0)
    row, = went_through(twin, [None, pa.array([b"v"]), pa.array([0]), pa.array([1]), pa.array([[good]], kind)], 0)
    assert row[4] == [("a", None)]
    fixed = pa.array([[{"key": "a", "value": b"x"}]], pa.list_(kind.value_type, 1))
    row, = went_through(twin, [None, pa.array([b"v"]), pa.array([0]), pa.array([1]), fixed], 0)
    assert row[4] == [("a", b"x")]


def test_fixed_size_and_null_columns_are_taken(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "append_columns", twin.append_columns)
    columns = [pa.nulls(2), pa.array([b"ab", None], pa.binary(2)), pa.array([0, 0]), pa.array([1, 2]), pa.nulls(2)]
    assert [(row[0], row[1], row[4]) for row in went_through(twin, columns, 0)] == [
        (None, b"ab", None), (None, None, None)]
