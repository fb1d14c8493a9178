from __future__ import annotations

import random
import zlib
from typing import Any

import pytest

from headrace.records.hashing import crc32c_reference


@pytest.mark.parametrize(("data", "expected"), [  # RFC 3720, B.4
    (b"", 0),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
])
def test_crc32c_gives_the_published_sums(twin: Any, data: bytes, expected: int) -> None:
    assert twin.crc32c(data) == expected


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 255, 767, 768, 769, 1000, 4095, 12287, 12288, 12289, 40_000])
def test_native_crc32c_agrees_with_the_reference_at_every_stride(native: Any, size: int) -> None:
    data = random.Random(size).randbytes(size + 3)
    for start in range(3):
        piece = memoryview(data)[start:start + size]
        assert native.crc32c(piece) == native.crc32c_portable(piece) == crc32c_reference(piece)


def test_crc32c_goes_on_from_an_earlier_sum(twin: Any) -> None:
    assert twin.crc32c(b"6789", twin.crc32c(b"12345")) == twin.crc32c(b"123456789")


@pytest.mark.parametrize(("key", "expected"), [  # of Java's Utils.murmur2
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
])
def test_murmur2_gives_javas_numbers(twin: Any, key: bytes, expected: int) -> None:
    assert twin.murmur2(key) == expected


def test_hashes_agree_with_librdkafkas(twin: Any) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    chance = random.Random(1)
    for _ in range(300):
        key, count = chance.randbytes(chance.randrange(60)), chance.randrange(1, 200)
        assert (twin.murmur2(key) & 0x7FFFFFFF) % count == confluent_kafka.murmur2(key, count)
        assert twin.fnv1a(key) % count == confluent_kafka.fnv1a(key, count)
        assert twin.crc32(key) % count == confluent_kafka.consistent(key, count)
        assert twin.crc32(key) == zlib.crc32(key)
