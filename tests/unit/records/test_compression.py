from __future__ import annotations

import gzip
import random

import cramjam
import pytest

from headrace.errors import CorruptRecordError
from headrace.records.compression import CODEC_NAMES, GZIP, LZ4, SNAPPY, ZSTD, compress, decompress
from headrace.records.legacy.message_set import _xxh32
from tests.support.peak_memory import peak_bytes

SAMPLES = [b"", b"a", b"hello " * 100, random.Random(1).randbytes(100_000), bytes(1_000_000)]


@pytest.mark.parametrize("codec", range(5), ids=CODEC_NAMES)
@pytest.mark.parametrize("data", SAMPLES, ids=len)
def test_what_was_compressed_comes_back(codec: int, data: bytes) -> None:
    for given in (data, bytearray(data), memoryview(data)):
        packed = compress(codec, given)
        assert decompress(codec, packed, len(data)) == data
        assert decompress(codec, memoryview(packed), 1 << 30) == data


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_more_than_the_limit_is_refused_before_it_fills_the_memory(codec: int) -> None:
    bomb = compress(codec, bytes(1 << 26))

    def refused() -> None:
        with pytest.raises(CorruptRecordError, match="more than 1000 bytes"):
            decompress(codec, bomb, 1000)

    assert peak_bytes(refused) < 1 << 25


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_cut_end_is_damage(codec: int) -> None:
    packed = compress(codec, random.Random(2).randbytes(5000))
    with pytest.raises(CorruptRecordError):
        decompress(codec, packed[:-9], 1 << 20)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_in_a_batch_is_damage_and_in_a_call_an_error(codec: int) -> None:
    with pytest.raises(CorruptRecordError):
        decompress(codec, b"", 10)
    with pytest.raises(ValueError, match="codec"):
        compress(codec, b"")


def test_snappy_is_written_in_xerials_frame_and_read_without_it_too() -> None:
    data = b"abc" * 50_000
    assert compress(SNAPPY, data)[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(data)), 1 << 20) == data


def test_lz4_blocks_are_independent_because_java_refuses_others() -> None:
    packed = compress(LZ4, b"abc" * 50_000)
    assert packed[:4] == b"\x04\x22\x4d\x18"
    assert packed[4] & 0x20
    assert packed[6] == _xxh32(packed[4:6]) >> 8 & 0xFF


def test_gzip_of_several_members_is_read_whole() -> None:
    assert decompress(GZIP, gzip.compress(b"one ") + gzip.compress(b"two"), 100) == b"one two"


def test_levels_are_the_codecs_own() -> None:
    chance = random.Random(3)
    data = b"".join(b'{"name": "%d", "size": %d}' % (chance.randrange(300), chance.randrange(99)) for _ in range(9000))
    assert len(compress(GZIP, data, 9)) < len(compress(GZIP, data, 1))
    assert len(compress(ZSTD, data, 15)) < len(compress(ZSTD, data, 1))
