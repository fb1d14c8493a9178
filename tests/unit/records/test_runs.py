"""Which rows of a batch came from which call: `ClosedBatch.runs`, by both twins."""

import math
from types import ModuleType

import pytest

import headrace.records.columns.columns as plain_columns
import headrace.records.topic_buffer as plain
from headrace.errors import KafkaException
from headrace.records.columns.columns import BinaryInput

try:
    from headrace.records import _native as native
except ImportError:  # pragma: no cover - this package without its compiled part
    TWINS = [(plain, plain_columns)]
else:
    TWINS = [(plain, plain_columns), (native, native)]


def cells(*values: bytes) -> BinaryInput:
    offsets = b"".join(sum(map(len, values[:n])).to_bytes(4, "little") for n in range(len(values) + 1))
    return BinaryInput(None, offsets, b"".join(values), 0, False)


@pytest.mark.parametrize(("twin", "columns"), TWINS)
def test_each_call_has_its_runs_and_records_of_their_own_have_none(twin: ModuleType, columns: ModuleType) -> None:
    buffer = twin.RecordAccumulator("t", 1, twin.BufferPool(100, 10_000), batch_count=7)
    values = cells(b"a", b"b", b"c")
    assert columns.append_columns(buffer, 0, 2, None, values, None, None, None, "one") == 2
    buffer.append(b"alone")
    assert columns.append_columns(buffer, 0, 3, None, values, None, None, None, "one") == 3
    assert columns.append_columns(buffer, 0, 3, None, values, None, None, None, "two") == 3
    assert columns.append_columns(buffer, 0, 3, None, values, None, None, None) == 3
    assert [(b.count, b.runs) for b in buffer.ready(math.inf)] == [
        (7, [(0, "one"), (2, None), (3, "one"), (6, "two")]), (5, [(0, "two"), (2, None)])]
    columns.append_columns(buffer, 0, 2, None, values, None, None, None, "one")
    buffer.append(b"alone")
    columns.append_columns(buffer, 0, 3, None, values, None, None, None, "two")
    (batch,) = buffer.ready(math.inf)
    assert [(part.count, part.runs) for part in batch.split([0, 1, 0, 1, 0, 1])] == [
        (3, [(0, "one"), (1, None), (2, "two")]), (3, [(0, "one"), (1, "two")])]
    buffer.append(b"alone")
    assert [b.runs for b in buffer.ready(math.inf)] == [None]


@pytest.mark.parametrize(("twin", "columns"), TWINS)
def test_an_error_says_how_many_rows_came_before_it(twin: ModuleType, columns: ModuleType) -> None:
    buffer = twin.RecordAccumulator("t", 1, twin.BufferPool(100, 10_000), message_bytes=5)
    with pytest.raises(KafkaException) as refused:
        columns.append_columns(buffer, 1, 4, None, cells(b"a", b"b", b"c", b"too large"), None, None, None)
    assert refused.value.appended == 2  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="must not be negative") as negative:
        columns.append_columns(buffer, 0, 2, None, cells(b"a", b"b"), None, (1).to_bytes(8, "little") + b"\xff" * 8,
                               None)
    assert negative.value.appended == 1  # type: ignore[attr-defined]
