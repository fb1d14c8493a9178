"""A reply whose request was not captured: which APIs and versions its bytes fit.

All are tried. Those that give the very same bytes again when written are better; then those with more text and more
sound record batches in them; then newer versions. Read next: `decode.stream.loose`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.decode.messages.bodies import whole_reply
from headrace.decode.messages.fields import holds_secret
from headrace.error_codes import CODES
from headrace.errors import CorruptRecordError, KafkaException, ProtocolError
from headrace.records import verify
from headrace.wire.api import API
from headrace.wire.frame import encode_response
from headrace.wire.layout import columns
from headrace.wire.schema import ApiMessage, Response, Struct

__all__ = ["Guess", "guess_reply"]

_SOUND_BATCHES, _SAME_BYTES, _ODD, _UNKNOWN_TAG = 10_000, 1_000, -2_000, -500


class Guess(NamedTuple):
    """An API, the versions of it that fit, and the best of these."""

    api_key: int
    versions: list[int]
    version: int
    message: ApiMessage


def guess_reply(frame: bytes) -> list[Guess]:
    """What a reply may be, the most likely first; nothing when it fits no API.

    Args:
        frame: without its length prefix.
    """
    found: list[tuple[int, Guess]] = []
    for api in API.values():
        scored = [(score, version, message) for version in range(api.min_version, api.max_version + 1)
                  if (message := whole_reply(api.key, version, frame)) is not None
                  for score in [_score(message, version, frame)]]
        if scored:
            best = max(scored, key=lambda entry: entry[:2])
            fitting = [version for score, version, _ in scored if score >= best[0] - abs(_ODD)]
            found.append((best[0], Guess(api.key, fitting, best[1], best[2])))
    found.sort(key=lambda entry: -entry[0])
    # A secret must not come out because its reply was taken for another: what may hold one goes first.
    found.sort(key=lambda entry: not holds_secret(entry[1].message))
    return [guess for _, guess in found]


def _score(message: ApiMessage, version: int, frame: bytes) -> int:
    assert isinstance(message, Response)
    score = _worth(message)
    try:
        written = b"".join(encode_response(message, version, int.from_bytes(frame[:4], "big", signed=True)))
    except (ProtocolError, KafkaException):
        return score + _ODD
    return score + (_SAME_BYTES if written[4:] == frame else 0)


def _worth(part: Struct) -> int:
    fields = sum(_worth_of(column.name, getattr(part, column.name, None)) for column in columns(type(part)))
    return fields + _UNKNOWN_TAG * len(part.unknown_tags or ())


def _worth_of(name: str, content: Any) -> int:
    if isinstance(content, Struct):
        return _worth(content)
    if isinstance(content, list):
        return sum(_worth_of(name, one) for one in content)
    if isinstance(content, str):
        return len(content) if content.isprintable() else _ODD
    if isinstance(content, memoryview):
        try:
            verify(content)
        except CorruptRecordError:
            return _ODD
        return _SOUND_BATCHES if len(content) else 0
    if name.endswith("error_code"):
        return 2 if content in CODES and content >= -1 else _ODD
    if name == "throttle_time_ms":
        return 1 if 0 <= content < 3_600_000 else _ODD
    return 0
