"""Answers that are none: each breaks Kafka's format so that a client must notice, whatever it had asked.

Nothing is changed inside of an answer's fields: an offset or an error code with one bit turned is a valid answer that
says something else, and no client can tell. (Record batches have checksums of their own.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

_PREFIX: Final = 4
_HEAD: Final = 8  # the length, and the correlation id


def _framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _resized(answer: bytes, size: int) -> bytes:
    return struct.pack(">i", size) + answer[_PREFIX:]


def _of_another(answer: bytes) -> bytes:
    (number,) = struct.unpack_from(">i", answer, _PREFIX)
    return answer[:_PREFIX] + struct.pack(">i", (number + 1_000_001) % 2**31) + answer[_HEAD:]


TLS: Final = "a TLS alert"
GARBAGE: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "a web server's text": lambda answer: b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    TLS: lambda answer: b"\x15\x03\x03\x00\x02\x02\x46",
    "a negative length": lambda answer: _resized(answer, -5),
    "a length beyond the limit": lambda answer: _resized(answer, 2**31 - 1),
    "an empty frame": lambda answer: _framed(b""),
    "a frame that is shorter than it says": lambda answer: _resized(answer, len(answer) - _PREFIX - 1),
    "an answer that lacks its end": lambda answer: _framed(answer[_PREFIX:-1]),
    "an answer with more behind it": lambda answer: _framed(answer[_PREFIX:] + b"\0\0\0"),
    "an answer to another request": _of_another,
    "numbers that do not end": lambda answer: _framed(answer[_PREFIX:_HEAD] + b"\xff" * 1021),
    "counts that cannot be": lambda answer: _framed(answer[_PREFIX:_HEAD] + b"\0" + b"\x7f\xff\xff\xff" * 255),
}
"""Made of an answer with its length in front. Whoever sends one need not close the connection."""

HALF: Final = "half of a frame, then the end"
"""What needs the connection to be closed behind it."""
