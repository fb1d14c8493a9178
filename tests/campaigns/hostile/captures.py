"""What `headrace decode` is given: captures, segments, hex, frames, and the files that lie beside segments."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import sys
import tempfile
from pathlib import Path
from random import Random

from headrace.cli import decode

from .frames import Frame
from .mutations import Place, mutate

_KINDS = ("pcap", "pcap", "pcap", "segment", "frame", "hex", "index", "timeindex", "txnindex", "snapshot", "checkpoint")


def capture(chance: Random, frames: list[Frame]) -> tuple[bytes, list[Place]]:
    """A pcap file of frames on one connection, and where the numbers of its packets' heads are."""
    order = chance.choice("<>")
    out = bytearray(struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    places: list[Place] = [(at, 4) for at in (0, 16, 20)]
    sequences = [1000, 2000]
    for frame in frames:
        reply = frame.kind == "response"
        payload = struct.pack(">i", len(frame.data)) + frame.data
        ports = (9092, 50000) if reply else (50000, 9092)
        tcp = struct.pack(">HHIIBBHHH", *ports, sequences[reply], 0, 0x50, 0x18, 1000, 0, 0) + payload
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, bytes((10, 0, 0, 1 + reply)),
                         bytes((10, 0, 0, 2 - reply)))
        packet = bytes(12) + b"\x08\x00" + ip + tcp
        sequences[reply] += len(payload) if chance.random() < 0.9 else -3
        start = len(out)
        places += [(start + at, width) for at, width in
                   ((8, 4), (12, 4), (28, 2), (30, 1), (32, 2), (36, 2), (39, 1), (54, 4), (62, 1), (63, 1), (70, 4))]
        out += struct.pack(order + "IIII", 1, 2, len(packet), len(packet)) + packet
    return bytes(out), places


def make(chance: Random, frames: list[Frame], segment: bytes) -> tuple[str, bytes]:
    """A kind of input, and hostile bytes of it."""
    kind = chance.choice(_KINDS)
    if kind == "pcap":
        data, places = capture(chance, chance.choices(frames, k=chance.choice((1, 4))))
        return kind, mutate(chance, data, places)
    if kind == "segment":
        return kind, segment
    frame = chance.choice(frames).data
    if kind == "frame":
        return kind, mutate(chance, frame)
    if kind == "hex":
        return kind, mutate(chance, frame[:200].hex(chance.choice(" :")).encode())
    if kind == "checkpoint":
        return kind, mutate(chance, b"0\n2\nt 0 15\nother-topic 1 9223372036854775807\n")
    return kind, mutate(chance, struct.pack(">hIqiihqqqq", 1, 7, 1, 2, 3, 4, 5, 6, 7, 8) * 2)


def show(kind: str, data: bytes, as_json: bool) -> str | None:
    """Decode an input as the command does; text where the exit status says that something is damaged."""
    path = Path(tempfile.gettempdir()) / f"headrace-hostile-{os.getpid()}"
    path.write_bytes(data)
    flags = ["--json"] if as_json else ["--summary"]
    try:
        with contextlib.redirect_stdout(_Sink()):
            status = decode.main([*flags, "--as", kind, str(path)])
    finally:
        path.unlink()
    assert status in (0, 1), status
    return "damaged" if status else None


class _Sink(io.TextIOBase):
    """Forgets what is written, but not before it was encoded as a terminal's."""

    def write(self, text: str) -> int:
        return len(text.encode(sys.getdefaultencoding()))
