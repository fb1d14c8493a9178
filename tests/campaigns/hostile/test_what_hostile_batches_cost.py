"""Time and memory that hostile batches take, and memory that must not be touched. Each test is a fault once found."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from headrace.errors import CorruptRecordError, KafkaException
from headrace.records import GZIP, ZSTD, compress, decompress
from tests.campaigns.hostile.batches import HEADER, resum
from tests.support.peak_memory import peak_bytes
from tests.support.twins import NATIVE, PLAIN
from tests.unit.records.samples import batch, simple

EMPTY_RECORD = b"\x0c\x00\x00\x00\x01\x01\x00"
TWINS = [pytest.param(twin, id=name) for name, twin in (("native", NATIVE), ("plain", PLAIN)) if twin is not None]
both = pytest.mark.parametrize("twin", TWINS)


def headed(count: int, records: bytes, codec: int = 0, base_offset: int = 0) -> bytes:
    """A batch whose header says what it likes."""
    data = bytearray(HEADER.pack(base_offset, 49 + len(records), 0, 2, 0, codec, count - 1, 0, 0, -1, -1, -1, count))
    data += records
    resum(data)
    return bytes(data)


def growth(action: Callable[[int], Any], size: int) -> float:
    """How many times as long an action takes for four times as much: 4 where the time grows evenly, 16 if squared."""
    times = []
    for amount in (size, 4 * size):
        best = math.inf
        for _ in range(3):
            began = time.thread_time()
            action(amount)
            best = min(best, time.thread_time() - began)
        times.append(best)
    return times[1] / times[0]


@both
def test_a_count_in_a_header_takes_no_memory_by_itself(twin: Any) -> None:
    data = headed(2**31 - 1, EMPTY_RECORD)

    def read() -> None:
        assert len(twin.Cursor(data, "t", 0, 0).take(1 << 31)) == 1

    assert peak_bytes(read) < 100_000


@both
@pytest.mark.parametrize("base_offset", [2**63 - 1, 2**63 - 2])
def test_the_offset_behind_the_last_one_has_64_bits(twin: Any, base_offset: int) -> None:
    data = headed(1, EMPTY_RECORD, base_offset=base_offset)
    if base_offset == 2**63 - 1:
        with pytest.raises(CorruptRecordError, match="bad header"):
            twin.Cursor(data, "t", 0, 0).take(1)
    else:
        cursor = twin.Cursor(data, "t", 0, 0)
        assert [cursor.take(1)[0].offset(), cursor.position] == [2**63 - 2, 2**63 - 1]


def test_columns_of_empty_records_are_bounded(native: Any) -> None:
    """A few kilobytes hold millions of records without a byte of key or value: they cost memory all the same."""
    rows = 200_000
    data = b"".join(headed(rows, compress(ZSTD, EMPTY_RECORD[:2] + b"\0\0\x01\x01\0" + EMPTY_RECORD * (rows - 1)), ZSTD,
                           rows * index) for index in range(20))
    assert len(data) < 20_000
    read = native.read_columns(data, "t", 0, 0, 1 << 62, max_column_bytes=8 << 20)
    assert read.rows == (8 << 20) // 28


@both
def test_columns_go_on_behind_records_that_are_not_wanted(twin: Any) -> None:
    data = bytearray(simple([b"a", b"b"]))
    data[23:27] = (99).to_bytes(4, "big")  # the batch ends at offset 99, compacted
    resum(data)
    assert twin.read_columns(bytes(data), "t", 0, 50, 1 << 62).next_offset == 100


@both
def test_headers_read_late_from_bytes_that_were_written_to_stay_within_them(twin: Any) -> None:
    data = bytearray(batch([(5, b"key", b"value", [(b"name", b"content"), (b"other", None)])]))
    message, = twin.Cursor(data, "t", 0, 0).take(1)
    for byte in (0xFF, 0x7E, 0x01):
        data[61:] = bytes([byte]) * (len(data) - 61)
        try:
            headers = message.headers()
        except CorruptRecordError:
            continue
        assert sum(len(name) + len(value or b"") for name, value in headers) < len(data)


@both
def test_many_aborted_transactions_take_even_time(twin: Any) -> None:
    data = simple([b"a"], producer_id=1, transactional=True)
    assert growth(lambda size: twin.Cursor(data, "t", 0, 0, aborted=[(9, 0)] * size).take(1), 40_000) < 9


def test_many_gzip_members_take_even_time() -> None:
    member = compress(GZIP, b"x")
    assert decompress(GZIP, member * 5000, 5000) == b"x" * 5000
    assert growth(lambda size: decompress(GZIP, member * size, size), 4000) < 9


def test_a_damaged_batch_takes_no_memory_of_the_limits_size() -> None:
    """A frame that may hold anything is decompressed into room of the limit's size; only what is filled is taken."""
    skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip"
    began = time.thread_time()
    for _ in range(20):
        with pytest.raises(CorruptRecordError):
            decompress(ZSTD, skipped + b"\x28\xb5\x2f\xfd damaged", 1 << 28)
        assert decompress(ZSTD, skipped + compress(ZSTD, b"x" * 99), 1 << 28) == b"x" * 99
    assert time.thread_time() - began < 1.0  # 40 times 256 MiB would take several


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the peak in KiB")
def test_no_bomb_takes_more_memory_than_its_limit() -> None:
    code = """
import resource
from headrace.errors import CorruptRecordError
from headrace.records import decompress
from tests.campaigns.hostile import bombs

bombs.payloads()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
warm = b"x" * (before << 10)  # the peak is as high as what is there now, so that whatever comes next is seen
for name, codec, packed in bombs.payloads():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        decompress(codec, packed, 1 << 20)
    except CorruptRecordError:
        pass
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 8 << 10, (name, grown)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@both
@pytest.mark.parametrize(("start", "stop"), [
    (-5, 0), (0, 1 << 62), (-(1 << 62), 1 << 62), (0, 3), (3, 1), (3632716049429893909, -6815635086069656811)])
def test_rows_outside_of_columns_are_refused(twin: Any, start: int, stop: int) -> None:
    buffer = twin.RecordAccumulator("t", 2, twin.BufferPool(100, 10_000))
    with pytest.raises(Exception) as raised:
        twin.append_columns(buffer, start, stop, None, None, b"\0" * 8, b"\0" * 16, None)
    assert not isinstance(raised.value, (MemoryError, SystemError))


@pytest.mark.parametrize("column", [
    (None, b"\0\0\0\0\x05\0\0\0", b"abc", 0, False),  # beyond the data
    (None, b"\x05\0\0\0\0\0\0\0", b"abcdef", 0, False),  # backwards
    (None, b"\xff\xff\xff\xff\x02\0\0\0", b"abc", 0, False),  # before the data
    (None, b"\0\0\0\0", b"abc", 0, False),  # no row
    (None, b"", None, 0, True),
    (b"", b"\0\0\0\0\x01\0\0\0", b"abc", 0, False),  # no validity
    (None, b"\0\0\0\0\x01\0\0\0", b"abc", 7, False),  # begins behind the end
    (None, b"\0\0\0\0\x01\0\0\0", b"abc", 2**63 - 1, False),
    (None, b"\0\0\0\0\x01\0\0\0", b"abc", -1, False),
    (None, b"\0" * 8 + b"\xff" * 7 + b"\x7f", b"abc", 0, True),
    (None, b"\0\0\0\0\x01\0\0\0", None, 0, False),  # no data
])
def test_arrow_buffers_that_cannot_be_true_are_refused(native: Any, column: Any) -> None:
    for key, value in ((column, None), (None, column)):
        buffer = native.RecordAccumulator("t", 2, native.BufferPool(100, 10_000))
        with pytest.raises(IndexError):
            native.append_columns(buffer, 0, 1, key, value, None, None, None)
    fine = (None, b"\0\0\0\0\x01\0\0\0", b"a", 0, False)
    for lists in ((column, fine, fine), (fine, column, fine), (fine, fine, column)):
        if lists[0] is column and column[2] in (b"abc", None) and column[1].startswith(b"\0\0\0\0\x01") and column[
                3] == 0 and column[0] is None:
            continue  # as a list of one header it is sound
        buffer = native.RecordAccumulator("t", 2, native.BufferPool(100, 10_000))
        with pytest.raises(IndexError):
            native.append_columns(buffer, 0, 1, None, None, None, None, lists)


@both
def test_a_topic_without_partitions_takes_nothing(twin: Any) -> None:
    for count in (0, -5):
        buffer = twin.RecordAccumulator("t", count, twin.BufferPool(100, 10_000))
        for partition in (-6, -1, 0):
            with pytest.raises(KafkaException, match="no partition"):
                buffer.append(b"x", partition=partition)


@both
def test_what_is_shorter_than_a_batch_is_not_written_to(twin: Any) -> None:
    short = bytearray(60)
    for write in (lambda: twin.set_base_offset(short, 5, 6), lambda: twin.set_log_append_time(short, 7)):
        with pytest.raises(CorruptRecordError, match="shorter than its header"):
            write()
    assert short == bytes(60)


@pytest.mark.parametrize("code", [
    "b = ClosedBatch(); b.count, b.size_bytes, b.messages(0, 1, 0, None, 0.0), ClosedBatch().seal().data",
    "raises(lambda: Batch().stamp(1, 1, 1)); raises(lambda: Batch().data)",
    "Cursor.__new__(Cursor).take(1); repr(Message.__new__(Message)); Message.__new__(Message).set_topic('t')",
    "b = filled(); s = b.seal(); d = s.data; raises(lambda: d.__delitem__(0)); del b; del s; bytes(d)",
    "b = filled(); s = b.seal(); s.data[61:] = bytes([255]) * (len(s.data) - 61); raises(lambda: list(report(b)))",
    "b = filled(); b.reports.extend([print] * 9999); raises(lambda: list(report(b)))",
    "b = filled(); r = report(b); b.reports.clear(); del b; list(r), r.__length_hint__()",
    "b = filled(); d = DeliveryFuture(None); b.reports.append(d); b.settle(fate()); raises(d.result); d.done()",
    "d = DeliveryFuture(None); raises(d.result); raises(lambda: d.__await__().send(None)); d.done(), d.cancelled()",
    "t = RecordAccumulator('t', 1, BufferPool(0, 99)); d = DeliveryFuture(None); t.append(b'v', callback=d); "
    "b = t.open_batches.ready(math.inf)[0]; b.settle(fate()); del b, t; d.result().value(), d.done()",
    "t = RecordAccumulator('t', 4, BufferPool(0, 9)); raises(lambda: t.__init__('', 1 << 60, BufferPool(0, 9))); "
    "t.append('', '', 3)",
])
def test_objects_used_as_they_are_not_meant_to_raise_and_do_not_crash(native: Any, code: str) -> None:
    assert native
    before = """
import math
from headrace.buffers import ProduceResult
from headrace.buffers._buffer import *
from headrace.records._batch import *

def filled():
    buffer = RecordAccumulator("t", 4, BufferPool(0, 99999))
    buffer.append(b"x" * 900, callback=print)
    return buffer.open_batches.ready(math.inf)[0]

def report(batch):
    return batch.messages(0, 1, 0, None, 1.0)

def fate():
    return ProduceResult(0, 1, -1, None, 0.0, print)

def raises(action):
    try:
        action()
    except Exception:
        return
    raise SystemExit("nothing was raised")

"""
    done = subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
