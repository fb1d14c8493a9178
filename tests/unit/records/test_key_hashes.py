"""Where a key goes, without a producer; the same as with one."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.buffers import BufferPool, RecordAccumulator
from headrace.records.key_hashes import consistent, fnv1a, murmur2

ALL = pytest.mark.parametrize("place", [consistent, fnv1a, murmur2])
Place = Callable[[bytes, int], int]


@pytest.mark.parametrize(("key", "hashed"), [  # Java: UtilsTest.testMurmur2
    (b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)])
def test_murmur2_is_javas_without_its_sign(key: bytes, hashed: int) -> None:
    assert murmur2(key, 1000) == (hashed & 0x7FFF_FFFF) % 1000


@pytest.mark.parametrize(("key", "hashed"), [  # the published values of FNV-1a of 32 bits
    (b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)])
def test_fnv1a_is_the_amount_of_the_signed_number_as_in_sarama(key: bytes, hashed: int) -> None:
    assert fnv1a(key, 1000) == abs(hashed - (1 << 32)) % 1000


@given(st.binary(max_size=50), st.integers(1, 1000))
def test_the_default_of_librdkafka_is_crc_32(key: bytes, count: int) -> None:
    assert consistent(key, count) == zlib.crc32(key) % count


@pytest.mark.parametrize("place", [consistent, murmur2, fnv1a])
@given(key=st.binary(min_size=1, max_size=20), count=st.integers(1, 50))
def test_a_producer_puts_a_key_where_the_function_says(place: Place, key: bytes, count: int) -> None:
    buffer = RecordAccumulator("t", count, BufferPool(10, 10_000), partitioner=place.__name__)
    buffer.append(b"v", key)
    (opened,) = buffer.open_batches.ready(float("inf"))
    assert opened.partition == place(key, count)


@ALL
@given(key=st.binary(max_size=20), count=st.integers(1, 50))
def test_whatever_holds_bytes_is_a_key(place: Place, key: bytes, count: int) -> None:
    assert place(key, count) == place(bytearray(key), count) == place(memoryview(key), count)
    assert 0 <= place(key, count) < count


@ALL
@pytest.mark.parametrize("key", ["text", None, 5])
def test_what_is_no_bytes_is_no_key(place: Place, key: Any) -> None:
    with pytest.raises(TypeError, match=f"a key is bytes, not {type(key).__name__}: encode it first"):
        place(key, 3)


@ALL
def test_there_is_at_least_one_partition(place: Place) -> None:
    for count in (0, -1):
        with pytest.raises(ValueError, match=f"partition_count must be > 0, got {count}"):
            place(b"key", count)
    with pytest.raises(TypeError):
        place(b"key", 2.0)  # type: ignore[arg-type]
