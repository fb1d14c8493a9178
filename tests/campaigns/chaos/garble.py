"""Which answers a proxy garbles, and into what. It knows the length and the first number of a frame, and no more.

What is sent breaks the format so that a client must notice (`tests.support.garbage`): other lengths, another request's
number, bodies that are cut, too long or without sense from their first byte on, text, TLS. No bit is turned inside of a
field that stays readable: an offset or an error code that is wrong is a valid answer, and no client can tell. Record
batches have their own checksums, which brokers and clients check.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from tests.support.garbage import GARBAGE, HALF, TLS

PHASES: Final[Mapping[str, frozenset[int]]] = {
    "handshake": frozenset({18}),
    "SASL": frozenset({17, 36}),
    "metadata": frozenset({3}),
    "producer id": frozenset({22}),
    "produce": frozenset({0}),
    "fetch": frozenset({1, 2}),
    "group": frozenset({8, 9, 10, 11, 12, 13, 14}),
    "transaction": frozenset({24, 25, 26, 28}),
}
"""API keys by what a client is about when it sends them."""
TURNED: Final = "a length with a turned bit, then the end"
KINDS: Final = (*GARBAGE, HALF, TURNED)

_LENGTH: Final = 4
_KEY: Final = 2


def kinds_in(phase: str) -> tuple[str, ...]:
    """How answers in a phase are garbled. TLS as a port's first words is none: it says that this is a port for TLS."""
    return tuple(kind for kind in KINDS if (phase, kind) != ("handshake", TLS))


def phase_of(api_key: int) -> str:
    """The phase that a request belongs to; empty for none."""
    return next((phase for phase, keys in PHASES.items() if api_key in keys), "")


def garbled(kind: str, answer: bytes, chance: random.Random) -> tuple[bytes, bool]:
    """What is sent in place of an answer, and whether the connection ends behind it."""
    if kind == HALF:
        return answer[:chance.randrange(1, len(answer))], True
    if kind == TURNED:
        return bytes(a ^ b for a, b in zip(answer[:_LENGTH], (1 << chance.randrange(32)).to_bytes(4, "big"),
                                           strict=True)) + answer[_LENGTH:], True
    return GARBAGE[kind](answer), False


class Exchange:
    """Follows one connection and knows what each answer is for: a broker answers all requests, in their order."""

    def __init__(self) -> None:
        self._out, self._back = bytearray(), bytearray()
        self._asked: deque[int] = deque()

    def sent(self, data: bytes) -> None:
        """Take bytes of the client."""
        for frame in _frames(self._out, data):
            self._asked.append(int.from_bytes(frame[_LENGTH:_LENGTH + _KEY], "big"))

    def answered(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Take bytes of the broker. Gives the answers that are whole now, each with the API key of its request."""
        for frame in _frames(self._back, data):
            yield self._asked.popleft(), frame


def _frames(held: bytearray, data: bytes) -> Iterator[bytes]:
    """The frames that more bytes complete, with their lengths; the rest is held."""
    held += data
    while len(held) >= _LENGTH:
        stop = _LENGTH + int.from_bytes(held[:_LENGTH], "big")
        if len(held) < stop:
            return
        yield bytes(held[:stop])
        del held[:stop]
