"""Rounds of hostile cases. A round is determined by its seed alone, so that a finding can be had again."""

from __future__ import annotations

import struct
from collections import Counter
from random import Random
from typing import Any, NamedTuple

from . import batches, bombs, captures, clients, frames, readers
from .mutations import mutate

ROUND = 250
"""Cases of a round."""
_SOURCES = 12  # valid frames that a round's mutants are made of
_ASKED = 0.05  # damaged responses that a whole client gets, which takes milliseconds


class Tally(NamedTuple):
    """What came of a round."""

    seed: str
    kinds: Counter[str]
    read: int
    refused: int
    slowest: readers.Slowest
    most_memory: int
    peak: int  # bytes, of the process
    finding: str
    data: bytes  # of the finding


def run_round(seed: str, cases: int = ROUND) -> Tally:
    """Make and read the cases of a round; ends at the first finding."""
    chance, meter, kinds = Random(seed), readers.Meter(), Counter[str]()
    kinds_of_frames = frames.kinds()
    sources = [frames.make(chance, *chance.choice(kinds_of_frames)) for _ in range(_SOURCES)]
    finding, data = "", b""
    for _ in range(cases):
        kind, data, aim = _case(chance, sources)
        kinds[kind] += 1
        try:
            _read(meter, kind, data, aim, chance)
        except readers.Finding as found:
            finding = f"{kind}: {found}"
            break
    return Tally(seed, kinds, meter.read, meter.refused, meter.slowest, meter.most_memory, readers.peak_bytes(),
                 finding, data)


def _case(chance: Random, sources: list[frames.Frame]) -> tuple[str, bytes, Any]:
    """A case's kind, its bytes, and what they are aimed at."""
    what = chance.random()
    if what < 0.55:
        source = chance.choice(sources)
        data = source.data if chance.random() < 0.01 else mutate(
            chance, source.data, source.places, other=chance.choice(sources).data)
        return source.kind, data, source
    if what < 0.80:
        return "batches", batches.batches(chance), None
    if what < 0.88:
        return "message set", batches.message_set(chance), None
    if what < 0.92:
        name, data = bombs.bomb(chance)
        return "bomb", data, name
    if what < 0.95:
        name, codec, packed = chance.choice(bombs._by_size(False))
        return "compressed", mutate(chance, packed), codec
    if what < 0.97:
        kind, data = captures.make(chance, sources, batches.batches(chance))
        return "decode", data, kind
    if what < 0.99:
        stream = b"".join(struct.pack(">i", len(frame.data)) + frame.data
                          for frame in chance.choices(sources, k=chance.choice((1, 3, 8))))
        return "stream", stream if chance.random() < 0.2 else mutate(chance, stream, [(0, 4)]), None
    return "noise", chance.randbytes(chance.choice((0, 1, 4, 16, 61, 62, 300))), chance.choice(sources)


def _read(meter: readers.Meter, kind: str, data: bytes, aim: Any, chance: Random) -> None:
    if kind in ("request", "response", "inner"):
        readers.read_frame(meter, kind, aim.cls, aim.version, data, chance)
        if clients.can_be_asked(aim) and chance.random() < _ASKED:
            meter.run("a client", data, lambda: clients.outlive(data, aim, chance))
    elif kind == "stream":
        readers.read_stream(meter, data, chance)
    elif kind == "decode":
        as_json = chance.random() < 0.5
        meter.run(f"headrace decode --as {aim}", data, lambda: captures.show(aim, data, as_json))
    elif kind == "compressed":
        readers.read_compressed(meter, aim, data)
    else:
        readers.read_batches(meter, data, chance)
        readers.read_conversions(meter, data)
        if kind == "noise":
            readers.read_frame(meter, aim.kind, aim.cls, aim.version, data, chance)
            readers.read_stream(meter, data, chance)
            readers.read_compressed(meter, chance.randrange(5), data)
