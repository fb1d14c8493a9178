"""What a few compressed bytes can cost: the limit of one batch, in every codec and format, on both twins.

Measured as the largest resident size of a process of its own, because codecs take memory that Python does not count.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import cramjam
import pytest

from headrace.records.batch_writer import write_batch
from headrace.records.compression import CODEC_NAMES, GZIP, LZ4, SNAPPY, ZSTD
from headrace.records.legacy.message_set import resum_lz4

from .legacy.by_hand import message
from .samples import resum

LIMIT = 16 << 20
PLAIN = 160 << 20
ROOM = 12 << 20  # for the interpreter's own growth
COPIES = 2  # of what the limit allows: zlib gathers blocks and joins them

CHILD = """
import pickle, resource, sys
from headrace.errors import CorruptRecordError
from headrace import records
from headrace.records import batch
from headrace.records.columns import columns
from headrace.records.legacy import conversion
bombs, limit = pickle.load(sys.stdin.buffer)
how = {"max_decompressed_bytes": limit}
def peak():
    try:  # of this process alone: what getrusage says begins with the parent's
        return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
before, refused = peak(), 0
for data, old in bombs:
    acts = [lambda: conversion.upgrade(data, now_ms=0, **how)] if old else [
        lambda: conversion.downgrade(data, 1, **how)]
    for twin, table in ((records, records), (batch, columns)):
        acts += [lambda twin=twin: twin.Cursor(data, "t", 0, 0, **how).take(1),
                 lambda table=table: table.read_columns(data, "t", 0, 0, 1 << 60, **how)]
    for act in acts:
        try:
            act()
        except CorruptRecordError as error:
            refused += "more than" in str(error)
        except Exception as error:  # zstd cannot be converted down
            refused += type(error).__name__ == "KafkaException"
print(refused, peak() - before)
"""


def bomb(codec: int) -> bytes:
    """Zeros, compressed: 160 MiB of them."""
    block = bytes(1 << 20)
    if codec == GZIP:
        deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
        return b"".join(deflate.compress(block) for _ in range(PLAIN >> 20)) + deflate.flush()
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(bytes(PLAIN)))
    if codec == LZ4:
        packer = cramjam.lz4.Compressor(level=0, content_checksum=False, block_linked=False)
    else:
        packer = cramjam.zstd.Compressor(level=1)
    for _ in range(PLAIN >> 20):
        packer.compress(block)
    return bytes(packer.finish())


def bombs(codec: int) -> list[tuple[bytes, bool]]:
    """A batch, and wrappers of the formats that know the codec; whether they are old."""
    packed = bomb(codec)
    batch = write_batch([(0, 1, None, b"x", [])])[:61] + packed
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[22] = codec
    resum(batch)
    made = [(bytes(batch), False)]
    if codec != ZSTD:
        first = resum_lz4(packed, with_magic=True) if codec == LZ4 else packed
        made += [(message(0, first, magic=0, attributes=codec), True), (message(0, packed, attributes=codec), True)]
    return made


def measured(given: list[tuple[bytes, bool]], limit: int) -> tuple[int, int]:
    """How many reads were refused for their size, and how many bytes the process grew by."""
    done = subprocess.run([sys.executable, "-c", CHILD], input=pickle.dumps((given, limit)), capture_output=True,
                          check=True, cwd=Path(__file__).parents[3])
    refused, grown = map(int, done.stdout.split())
    return refused, grown


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=CODEC_NAMES[1:])
def test_a_bomb_costs_at_most_twice_the_limit(codec: int) -> None:
    given = bombs(codec)
    refused, grown = measured(given, LIMIT)
    assert refused == 5 * len(given)
    assert grown < COPIES * LIMIT + ROOM < PLAIN // 3


def test_a_limit_that_is_too_large_is_seen() -> None:
    refused, grown = measured(bombs(ZSTD), 2 * PLAIN)
    assert refused == 1  # zstd never becomes an old format
    assert grown > PLAIN
