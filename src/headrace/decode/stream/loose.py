"""Frames without a capture around them: one or several, with or without their length prefixes, requests and replies.

A reply is matched with a request among the same bytes, or is of the API that the user names, or is guessed.
Read next: `guess`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headrace.decode.capture.tcp import Stamp
from headrace.decode.messages.bodies import (
    MAX_FRAME_BYTES,
    Body,
    api_name,
    is_request,
    looks_like_request,
    read_reply,
    read_request,
)
from headrace.decode.messages.names import topics_of
from headrace.decode.stream.exchange import Frame
from headrace.decode.stream.guess import Guess, guess_reply
from headrace.errors import KafkaException, ProtocolError
from headrace.wire.api import Api
from headrace.wire.frame import encode_request
from headrace.wire.schema import Request

__all__ = ["Hint", "loose_frames"]

_SHOWN_GUESSES = 8
_LEFT_BEHIND = 3
_SMALLEST = 4  # bytes of a reply
_MAX_GUESSED = 1000  # replies of one input: all APIs are tried on each


class Hint(NamedTuple):
    """What the user says about replies: their API, and the version, None for the newest that fits."""

    api: Api | None
    version: int | None


class _Raw(NamedTuple):
    data: bytes
    size: int
    position: int


def loose_frames(data: bytes, hint: Hint) -> Iterator[Frame]:
    """The frames that some bytes are.

    Args:
        data: the bytes.
        hint: what replies are.
    """
    asked: dict[int, tuple[int, int]] = {}
    for number, raw in enumerate(_split(data)):
        stamp = Stamp(None, 0, raw.position)
        if _reads_as_request(raw, hint):
            body = read_request(raw.data, raw.size - len(raw.data))
            if body.correlation_id is not None and body.api_key is not None and body.version is not None:
                asked[body.correlation_id] = (body.api_key, body.version)
            yield Frame("request", "", "", stamp, raw.size, body, topics=topics_of(body.message))
        else:
            known = asked.pop(int.from_bytes(raw.data[:4], "big", signed=True), None)
            body = _reply(raw, known, hint, may_guess=number < _MAX_GUESSED)
            yield Frame("reply", "", "", stamp, raw.size, body, topics=topics_of(body.message))


def _split(data: bytes) -> list[_Raw]:
    """Cut at length prefixes when the first one can be one; else all of it is one frame without."""
    size = int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else -1
    fits = size == len(data) - 4 or (0 <= size < len(data) - 4 and _chain_fits(data))
    if not fits and not looks_like_request(data) and (is_request(data) or not _may_be_cut(data, size)):
        return [_Raw(data, len(data), 0)]
    found, at = [], 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at:at + 4], "big", signed=True)
        if size < _SMALLEST:
            break
        found.append(_Raw(data[at + 4:at + 4 + size], size, at))
        at += 4 + size
    return found + ([_Raw(data[at:], len(data) - at, at)] if at < len(data) else [])


def _chain_fits(data: bytes) -> bool:
    """True when lengths lead from the first byte to the end, or at least to a last frame that is cut."""
    at = frames = 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at:at + 4], "big", signed=True)
        if not _SMALLEST <= size <= MAX_FRAME_BYTES:
            return False
        at += 4 + size
        frames += 1
    return at == len(data) or frames > 1


def _may_be_cut(data: bytes, size: int) -> bool:
    """True when the first four bytes look more like a length than like the correlation id of a reply."""
    return len(data) - 4 < size <= 1 << 20 and guess_reply(data) == []


def _reads_as_request(raw: _Raw, hint: Hint) -> bool:
    prefixed = raw.size.to_bytes(4, "big") + raw.data[:2048]
    if not looks_like_request(prefixed):
        return False
    if hint.api is not None and int.from_bytes(raw.data[:2], "big") != hint.api.key:
        return False
    if raw.size > len(raw.data):
        return looks_like_request(prefixed, known_only=True)
    # A reply can look like a request: its correlation id is an API and a version then.
    return _fills_frame(raw.data) or not guess_reply(raw.data)


def _fills_frame(frame: bytes) -> bool:
    """True when a request can be read that takes all of its frame; librdkafka may leave three bytes behind it."""
    if not is_request(frame):
        return False
    body = read_request(frame)
    assert isinstance(body.message, Request)
    assert body.version is not None
    assert body.correlation_id is not None
    try:
        parts = encode_request(body.message, body.version, body.correlation_id, body.client_id)
    except (ProtocolError, KafkaException):
        return False
    return 0 <= len(frame) + 4 - sum(map(len, parts)) <= _LEFT_BEHIND


def _reply(raw: _Raw, known: tuple[int, int] | None, hint: Hint, *, may_guess: bool) -> Body:
    missing = raw.size - len(raw.data)
    if known is not None:
        return read_reply(*known, raw.data, missing)
    if hint.api is not None:
        return _hinted(raw.data, missing, hint.api, hint.version)
    guesses = guess_reply(raw.data) if not missing and may_guess else []
    if not guesses:
        correlation_id = int.from_bytes(raw.data[:4], "big", signed=True) if len(raw.data) >= 4 else None
        cut = f"only the first {len(raw.data)} of {raw.size} bytes are there" if missing else ""
        return Body(None, None, correlation_id, None, None, damage=cut or "it fits neither a request nor any reply",
                    note="--api NAME says what it is" if missing else "")
    best, *others = guesses
    return read_reply(best.api_key, best.version, raw.data)._replace(note=_told(best.versions, others))


def _hinted(data: bytes, missing: int, api: Api, version: int | None) -> Body:
    if version is not None:
        return read_reply(api.key, version, data, missing)
    bodies = [read_reply(api.key, number, data, missing) for number in range(api.max_version, api.min_version - 1, -1)]
    return next((body for body in bodies if not body.damage), bodies[0])


def _told(versions: list[int], others: list[Guess]) -> str:
    fits = f"guessed, fits v{_ranges(versions)}"
    if not others:
        return fits
    names = [f"{api_name(guess.api_key)} v{_ranges(guess.versions)}" for guess in others[:_SHOWN_GUESSES]]
    more = f" and {len(others) - len(names)} more" if len(others) > len(names) else ""
    return f"{fits}; also {', '.join(names)}{more} (--api NAME --version N decides)"


def _ranges(versions: list[int]) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"
