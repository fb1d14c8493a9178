"""Every reader of bytes from outside, and the bounds within which it must read or refuse them."""

from __future__ import annotations

import resource
import struct
import time
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from headrace.errors import CorruptRecordError, KafkaError, KafkaException, ProtocolError
from headrace.machines.groups.assignors import read_assignment, read_member
from headrace.net.stream import reply_reader
from headrace.records import compression
from headrace.records.legacy import conversion
from headrace.wire import codec
from headrace.wire.api import API
from headrace.wire.frame import decode_answer, decode_request, decode_response, peek_correlation_id
from headrace.wire.frame_reader import FrameReader
from headrace.wire.messages.cluster.metadata import MetadataRequest
from tests.support.twins import NATIVE, PLAIN
from tests.unit.records.samples import tabled, taken, told

LIMIT = 1 << 17
"""Bytes that compressed ones may become here. Small, so that a bomb goes off at once if it is not seen."""
MAX_SECONDS = 0.5
"""Of the processor's time, for one reader and one input."""
MEMORY_MULTIPLE = 128
"""Bytes that a reader may take for each byte of its input and of what that may decompress to."""
MEMORY_BASE = 16 << 20
"""Bytes beyond that, for what is made once: compiled codecs, the allocator's arenas."""

ALLOWED = (ProtocolError, CorruptRecordError)
Reader = Callable[[bytes, Random], Any]


class Finding(Exception):
    """A reader did what it must not do."""


class Slowest(NamedTuple):
    """The longest that one reader took."""

    seconds: float
    what: str
    size: int


class Meter:
    """Runs readers and notes what they cost; raises `Finding` beyond the bounds."""

    def __init__(self) -> None:
        self.read = self.refused = 0
        self.slowest = Slowest(0.0, "", 0)
        self.most_memory = 0
        """Bytes by which one call raised the process's peak."""

    def count(self, refused: bool) -> None:
        """Take note of what a reader did."""
        self.refused += refused
        self.read += not refused

    def run(self, name: str, data: bytes, reader: Callable[[], Any]) -> Any:
        """What a reader returns, or the text of its refusal."""
        before, began = peak_bytes(), time.thread_time()
        try:
            result = reader()
        except ALLOWED as error:
            result = f"{type(error).__name__}: {error}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            raise Finding(f"{name} raised {type(error).__name__}: {error}") from error
        # `told` and `taken` give a refusal as text, behind what was read before it.
        self.count(isinstance(result[-1] if isinstance(result, list) and result else result, str))
        seconds, grown = time.thread_time() - began, peak_bytes() - before
        if seconds > self.slowest.seconds:
            self.slowest = Slowest(seconds, name, len(data))
        self.most_memory = max(self.most_memory, grown)
        if seconds > MAX_SECONDS:
            raise Finding(f"{name} took {seconds:.2f} s for {len(data)} bytes")
        if grown > MEMORY_BASE + MEMORY_MULTIPLE * (len(data) + LIMIT):
            raise Finding(f"{name} took {grown >> 20} MiB for {len(data)} bytes")
        return result


def peak_bytes() -> int:
    """Most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def read_frame(meter: Meter, kind: str, cls: type[Any], version: int, data: bytes, chance: Random) -> None:
    """A frame through the decoders of its kind, and through some that it is not meant for."""
    if kind == "inner":
        meter.run(f"{cls.__name__} v{version}", data, lambda: codec.decode(cls, data, version))
        prefixed = struct.pack(">h", version) + data
        meter.run("read_member", data, lambda: read_member("m", None, prefixed))
        meter.run("read_member sticky", data, lambda: read_member("m", None, prefixed, remembers=True))
        meter.run("read_assignment", data, lambda: read_assignment(prefixed))
        return
    given = chance.choice((bytes, bytearray, memoryview))(data)
    if kind == "request":
        meter.run(f"{cls.__name__} v{version}", data, lambda: decode_request(given))
        return
    meter.run(f"{cls.response_type.__name__} v{version}", data, lambda: decode_response(cls, version, given))
    if cls is MetadataRequest and len(data) >= 4:
        number = peek_correlation_id(data)
        meter.run(f"rows v{version}", data, lambda: decode_answer(cls, version, number, given))
    if chance.random() < 0.05:
        api = API[chance.choice(tuple(API))]
        wrong = chance.randint(api.min_version, api.max_version)
        meter.run(f"{api.response.__name__} v{wrong}", data, lambda: decode_response(api.request, wrong, given))


def read_stream(meter: Meter, data: bytes, chance: Random) -> None:
    """A stream of frames, in pieces, through all that cut streams."""
    max_bytes = chance.choice((10, 1000, 200_000))
    pieces = []
    at = 0
    while at < len(data):
        size = chance.choice((1, 3, 100, 70_000))
        pieces.append(data[at : at + size])
        at += size
    stories = [meter.run(name, data, lambda cut=cut: _cut_all(cut(max_bytes), pieces)) for name, cut in _CUTTERS]
    if any(story != stories[0] for story in stories[1:] if not isinstance(story, str)):
        raise Finding("the plain way and the readers of clients and broker cut a stream differently")


class _Plain:
    """The plain way: all bytes in one piece, cut from the front."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._rest = max_bytes, b""

    def feed(self, piece: bytes) -> list[Any]:
        self._rest += piece
        frames = []
        while len(self._rest) >= 4:
            size = int.from_bytes(self._rest[:4], "big", signed=True)
            if not 0 <= size <= self._max_bytes:
                raise ProtocolError(f"a frame of {size} bytes")
            if len(self._rest) < 4 + size:
                break
            frames.append(self._rest[4:4 + size])
            self._rest = self._rest[4 + size:]
        return frames


class _Replies:
    """As a client reads: a port that speaks TLS is another error there."""

    def __init__(self, max_bytes: int) -> None:
        self._reader = reply_reader(max_bytes)

    def feed(self, piece: bytes) -> list[Any]:
        try:
            return self._reader.feed(piece)
        except KafkaException as error:
            if error.error.code() != KafkaError._SSL:
                raise
            raise ProtocolError(error.error.str()) from None


_CUTTERS: tuple[tuple[str, Callable[[int], Any]], ...] = (
    ("the plain way", _Plain),
    ("a broker's reader", lambda max_bytes: FrameReader(max_bytes, writable=True, trusted_bytes=1_000)),
    ("a client's reader", _Replies),
)


def _cut_all(reader: Any, pieces: list[bytes]) -> list[bytes]:
    return [bytes(frame) for piece in pieces for frame in reader.feed(piece)]


def read_batches(meter: Meter, data: bytes, chance: Random) -> None:
    """Bytes as batches, through the native module and its plain twin, which must say the same."""
    step = chance.choice((1, 5, 1 << 30))
    first = chance.choice((0, 0, 2, 101))
    how = {"max_decompressed_bytes": LIMIT, "check_crcs": chance.random() < 0.7,
           "aborted": chance.choice((None, None, [(7, 0)], [(7, 0), (8, -5), (7, 2**62)]))}
    readers: list[tuple[str, Callable[[Any], Any]]] = [
        ("Cursor", lambda twin: taken(twin, data, step, first, **how)),
        ("read_columns", lambda twin: tabled(twin, data, first, **how)),
        ("scan", lambda twin: told(twin.scan, data)),
        ("verify", lambda twin: told(twin.verify, data)),
        ("set_base_offset", lambda twin: _written(twin, data)),
    ]
    for name, reader in readers:
        told_by = [meter.run(f"{name} ({side})", data, lambda twin=twin, reader=reader: reader(twin))
                   for side, twin in (("native", NATIVE), ("plain", PLAIN)) if twin is not None]
        if len(told_by) == 2 and told_by[0] != told_by[1]:
            raise Finding(f"{name}: native says {told_by[0]!r:.300}, plain {told_by[1]!r:.300}")


def _written(twin: Any, data: bytes) -> Any:
    """The functions that write into a batch as a broker does; a batch that is none stays untouched."""
    batch = bytearray(data)
    if told(twin.set_base_offset, batch, 5, 6) is None:
        told(twin.set_log_append_time, batch, 7)
    return bytes(batch)


def read_conversions(meter: Meter, data: bytes) -> None:
    """Bytes as what an old client sends, and as what is converted for it."""
    meter.run("upgrade", data, lambda: conversion.upgrade(data, now_ms=1, max_decompressed_bytes=LIMIT))
    for magic in (0, 1):
        meter.run(f"downgrade to {magic}", data, lambda magic=magic: _downgraded(data, magic))


def _downgraded(data: bytes, magic: int) -> Any:
    try:
        return conversion.downgrade(data, magic, max_decompressed_bytes=LIMIT)
    except KafkaException as error:
        if error.error.code() != KafkaError.UNSUPPORTED_COMPRESSION_TYPE:
            raise
        return None


def read_compressed(meter: Meter, codec_number: int, data: bytes) -> None:
    """Bytes as what a codec made."""
    name = compression.CODEC_NAMES[codec_number]
    plain = meter.run(f"decompress {name}", data, lambda: compression.decompress(codec_number, data, LIMIT))
    if isinstance(plain, bytes) and len(plain) > LIMIT:
        raise Finding(f"decompress {name} gave {len(plain)} bytes")
