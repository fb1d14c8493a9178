"""The native module and the plain twin give the same answers, on good bytes and on damaged ones."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import CorruptRecordError

from .samples import LIMIT, Record, batch, record_lists, resum, tabled, taken, told

mutations = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4)
quick = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(records=record_lists, codec=st.integers(0, 4), fetch_offset=st.integers(0, 15), step=st.integers(1, 13))
def test_on_batches_that_they_read(
    native: Any, plain: Any, records: list[Record], codec: int, fetch_offset: int, step: int
) -> None:
    data = batch(records, codec=codec) + batch(records, codec=0, base_offset=len(records) + 2)
    expected = taken(plain, data, step, fetch_offset)
    assert taken(native, data, step, fetch_offset) == expected
    assert native.scan(data) == plain.scan(data)
    assert tabled(native, data, fetch_offset) == tabled(plain, data, fetch_offset)


@quick
@given(records=record_lists, codec=st.integers(0, 4))
def test_on_batches_that_they_write(native: Any, plain: Any, records: list[Record], codec: int) -> None:
    made = [batch(records, codec=codec, producer_id=77, transactional=True, twin_builder=twin.BatchBuilder)
            for twin in (native, plain)]
    assert made[0] == made[1]


@quick
@given(records=record_lists, codec=st.integers(0, 4), changes=mutations, cut=st.integers(0, 200), sums=st.booleans())
def test_on_damaged_bytes(
    native: Any, plain: Any, records: list[Record], codec: int, changes: list[tuple[int, int]], cut: int, sums: bool
) -> None:
    data = bytearray(batch(records, codec=codec) + batch(records, base_offset=100))
    for at, byte in changes:
        data[at % len(data)] = byte
    damaged = bytes(data[: len(data) - cut])
    how = {"check_crcs": sums, "max_decompressed_bytes": LIMIT}
    expected = taken(plain, damaged, 5, 3, **how)
    assert taken(native, damaged, 5, 3, **how) == expected
    assert tabled(native, damaged, **how) == tabled(plain, damaged, **how)
    assert told(native.scan, damaged) == told(plain.scan, damaged)
    assert told(native.verify, damaged) == told(plain.verify, damaged)


@pytest.mark.parametrize("seed", range(8))
def test_on_many_damaged_record_bodies(native: Any, plain: Any, seed: int) -> None:
    """The records of an uncompressed batch with a right checksum: every check of the record reader is reached."""
    chance = random.Random(seed)
    whole = batch([(5, b"key", b"value", [(b"a", b"b"), (b"c", None)]), (7, None, None, []), (6, b"", b"z" * 70, [])])
    how = {"max_decompressed_bytes": LIMIT}
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(21, len(data))] = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        resum(data)
        damaged = bytes(data)
        assert taken(native, damaged, **how) == taken(plain, damaged, **how)
        assert tabled(native, damaged, **how) == tabled(plain, damaged, **how)


@quick
@given(data=st.binary(max_size=200))
def test_on_random_bytes(native: Any, plain: Any, data: bytes) -> None:
    assert taken(native, data) == taken(plain, data)
    assert told(native.scan, data) == told(plain.scan, data)


@pytest.mark.parametrize("codec", range(5))
def test_nothing_but_corrupt_record_error_comes_out_of_damaged_compressed_bytes(twin: Any, codec: int) -> None:
    chance = random.Random(codec)
    whole = batch([(5, b"key", bytes(chance.randbytes(50)) * 4, [])] * 20, codec=codec)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(61, len(data))] = chance.randrange(256)
        resum(data)
        try:
            twin.Cursor(bytes(data), "t", 0, 0, max_decompressed_bytes=LIMIT).take(100)
        except CorruptRecordError:
            pass
