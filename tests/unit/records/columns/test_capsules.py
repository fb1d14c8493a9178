"""Arrow's capsules, by both twins: what others read there, how long it lives, and that it is let go."""

from __future__ import annotations

import ctypes
import gc
import struct
import subprocess
import sys
import weakref
from array import array
from typing import Any

import pytest

from headrace.records.columns import capsules

pa = pytest.importorskip("pyarrow")

NUMBER = (b"l\0", b"number\0", True, (), None)
TEXT = (b"u\0", b"\0", False, (), None)
TOPIC = (b"i\0", b"topic\0", False, (), TEXT)
ROW = (b"+s\0", b"\0", False, (NUMBER, TOPIC), None)


class Buffer(array):  # type: ignore[type-arg]
    """Bytes that can be watched."""


def numbers(*values: int) -> Any:
    return Buffer("q", values)


def rows(data: Any, validity: bytes | None = None) -> Any:
    text = (2, 0, (None, struct.pack("<3i", 0, 1, 3), b"abb"), (), None)
    indices = struct.pack("<3i", 0, 1, 0)
    return (3, 0, (None,), ((3, -1 if validity else 0, (validity, data), (), None), (3, 0, (None, indices), (), text)),
            None)


class Exported:
    """What a library asks for."""

    def __init__(self, twin: Any, array: Any, kind: Any = ROW) -> None:
        self._twin, self._kind, self._array = twin, kind, array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._twin.schema_capsule(self._kind), self._twin.array_capsule(self._array)


class Streamed(Exported):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._twin.stream_capsule(self._kind, self._array)


def test_types_children_nulls_and_dictionaries_arrive(twin: Any) -> None:
    batch = pa.record_batch(Exported(twin, rows(numbers(1, 2, 3), b"\5")))
    batch.validate(full=True)
    assert batch.schema == pa.schema([
        pa.field("number", pa.int64()), pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False)])
    assert batch.to_pylist() == [{"number": 1, "topic": "a"}, {"number": None, "topic": "bb"},
                                 {"number": 3, "topic": "a"}]


def test_a_stream_has_one_batch_and_ends(twin: Any) -> None:
    reader = pa.RecordBatchReader.from_stream(Streamed(twin, rows(numbers(4, 5, 6))))
    assert [batch["number"].to_pylist() for batch in reader] == [[4, 5, 6]]


def test_the_memory_is_shared_and_lives_as_long_as_what_was_made_of_it(native: Any) -> None:
    data = numbers(1, 2, 3)
    address, gone = data.buffer_info()[0], weakref.ref(data)
    batch = pa.record_batch(Exported(native, rows(data)))
    del data
    gc.collect()
    assert batch["number"].buffers()[1].address == address
    assert gone() is not None
    kept = batch["number"].slice(2)
    del batch
    assert (gone() is not None, kept.to_pylist()) == (True, [3])
    del kept
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("make", [
    lambda twin, data: twin.array_capsule(rows(data)),
    lambda twin, data: twin.stream_capsule(ROW, rows(data)),
    lambda twin, data: pa.RecordBatchReader.from_stream(Streamed(twin, rows(data))),
])
def test_a_capsule_that_nobody_read_lets_go(twin: Any, make: Any) -> None:
    data, before = numbers(1, 2, 3), set(capsules._held)
    gone = weakref.ref(data)
    made = make(twin, data)
    assert (set(capsules._held) > before) is (twin.kind == "plain")
    del data, made
    gc.collect()
    assert gone() is None
    assert set(capsules._held) <= before


def test_an_array_that_cannot_be_exported_lets_go_of_what_was_begun(twin: Any) -> None:
    data = numbers(1, 2, 3)
    gone = weakref.ref(data)
    whole, broken = rows(data), (1, 0, (None, object()), (), None)
    with pytest.raises(TypeError):
        twin.array_capsule((3, 0, (None,), (whole, broken), None))
    del data, whole
    gc.collect()
    assert gone() is None


def test_children_may_be_moved_away_before_their_parent_is_released(twin: Any) -> None:
    field = pa.field("number", pa.int64())
    capsule = twin.array_capsule(rows(numbers(7, 8, 9)))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))
    children = ctypes.c_void_p.from_address(pointer(capsule, b"arrow_array") + 6 * 8).value
    child = ctypes.c_void_p.from_address(children or 0).value
    taken = pa.Array._import_from_c(child, field.type)  # moves it
    del capsule
    gc.collect()
    assert taken.to_pylist() == [7, 8, 9]


AT_THE_END = """
import pyarrow as pa
from tests.support.twins import NATIVE, PLAIN
from tests.unit.records.columns.test_capsules import Exported, numbers, rows
kept = [pa.record_batch(Exported(twin, rows(numbers(1, 2, 3)))) for twin in (PLAIN, NATIVE) if twin]
import builtins
builtins.kept = kept  # outlives all modules
print("done")
"""


def test_what_is_released_when_python_ends_does_no_harm() -> None:
    ended = subprocess.run([sys.executable, "-X", "faulthandler", "-c", AT_THE_END], capture_output=True, text=True,
                           check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
