"""JSON lines as slices: an envelope in each line, or the value itself.

An envelope is an object with `value` (or `payload`), `key`, `headers`, `partition` and `timestamp` (or `ts`). Text is
UTF-8, null is null, bytes that are no text are ``{"base64": "..."}`` or ``{"hex": "..."}``, and every other JSON is
sent as its compact text. Names that only say where a record was read are passed over; others are mistakes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from headrace.cli.producing.lines import DECODERS
from headrace.cli.producing.slices import SLICE_RECORDS, Headers, Malformed, Places, Slice, well_formed

__all__ = ["envelope_slices", "headers_of", "timestamp_of", "value_slices"]

_Record = tuple[bytes | None, bytes | None, int, int, Headers]
_ALIASES = {"payload": "value", "ts": "timestamp"}
_SENT = frozenset({"value", "key", "headers", "partition", "timestamp"})
_PASSED_OVER = frozenset({"topic", "offset", "tstype", "timestamp_type", "broker", "leader_epoch"})
_MISSING = object()
_INT32, _INT64 = 1 << 31, 1 << 63


def envelope_slices(
    lines: Iterator[tuple[int, list[bytes]]], places: Places, malformed: Malformed, raw: bool
) -> Iterator[Slice]:
    """Envelopes as records."""
    for numbered in _portions(lines, places):
        found, ended = well_formed(numbered, _envelope, malformed)
        records = [record for _, _, record in found]
        headers = [record[4] for record in records]
        yield Slice(
            [number for number, _, _ in found], [record[0] for record in records], [record[1] for record in records],
            [record[2] for record in records], [record[3] for record in records], headers if any(headers) else None,
            [line for _, line, _ in found] if raw else None)
        if ended:
            return


def value_slices(
    lines: Iterator[tuple[int, list[bytes]]], places: Places, malformed: Malformed, key_field: str | None, raw: bool
) -> Iterator[Slice]:
    """JSON values as they are written, one a line; the key may be one of their fields."""
    def key_of(line: bytes) -> bytes | None:
        parsed = _parse(line)
        return None if key_field is None else _key_in(parsed, key_field)

    for numbered in _portions(lines, places):
        found, ended = well_formed(numbered, key_of, malformed)
        yield Slice([number for number, _, _ in found], [line for _, line, _ in found],
                    None if key_field is None else [key for _, _, key in found],
                    raw=[line for _, line, _ in found] if raw else None)
        if ended:
            return


def _portions(lines: Iterator[tuple[int, list[bytes]]], places: Places) -> Iterator[list[tuple[int, bytes]]]:
    """Numbered lines that are not blank, a slice at a time."""
    for first, found in lines:
        places.reached(first + len(found) - 1)
        for start in range(0, len(found), SLICE_RECORDS):
            part = found[start : start + SLICE_RECORDS]
            yield [(number, line) for number, line in enumerate(part, first + start) if line and not line.isspace()]


def _parse(line: bytes) -> Any:
    try:
        return _DECODER.decode(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.colno}") from None
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} stands twice in one "
                         "object")
    return found


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)


def _envelope(line: bytes) -> _Record:
    parsed = _parse(line)
    if not isinstance(parsed, dict):
        raise ValueError(f"an envelope is an object, not {_kind(parsed)}; --values takes each line as the value")
    fields: dict[str, Any] = {}
    for given, content in parsed.items():
        name = _ALIASES.get(given, given)
        if name in fields:
            raise ValueError(f"{given!r} is another name for {name!r}, which stands there too")
        if name in _SENT:
            fields[name] = content
        elif name not in _PASSED_OVER:
            raise ValueError(f"an envelope has no field {given!r}: it has value, key, headers, partition and "
                             "timestamp; --values takes each line as the value")
    value = fields.get("value", _MISSING)
    if value is _MISSING:
        raise ValueError("there is no value: write null for a tombstone; --values takes each line as the value")
    return (_bytes(value, "value"), _bytes(fields.get("key"), "key"), _partition(fields.get("partition")),
            timestamp_of(fields.get("timestamp")), headers_of(fields.get("headers")))


def _kind(parsed: object) -> str:
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(parsed), "a number")


def _bytes(content: Any, name: str) -> bytes | None:
    """Key or value: text, null, {"base64": ...}, {"hex": ...}, or any other JSON as its text."""
    if content is None:
        return None
    if isinstance(content, dict) and len(content) == 1:
        (way, text), = content.items()
        if way in DECODERS and isinstance(text, str):
            try:
                return DECODERS[way](text.encode())
            except ValueError as error:
                raise ValueError(f"{name} is not {way}: {error}") from None
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} has half of a surrogate pair, which is no text: write it as base64") from None


def _partition(content: Any) -> int:
    if content is None:
        return -1
    if type(content) is not int or not -1 <= content < _INT32:
        raise ValueError(f"partition {content!r} is not a partition number")
    return content


def timestamp_of(content: Any) -> int:
    """Milliseconds since the epoch, or ISO 8601 with its offset from UTC. 0, for now, for null and for -1.

    Raises:
        ValueError: it is neither.
    """
    if content is None or content == -1:
        return 0
    if type(content) is int:
        if 0 < content < _INT64:
            return content
    elif isinstance(content, str):
        try:
            moment = datetime.fromisoformat(content)
        except ValueError:
            moment = None
        if moment is not None and moment.tzinfo is not None:
            since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            if (found := (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000) > 0:
                return found
    raise ValueError(f"timestamp {content!r} is neither milliseconds since 1970 nor ISO 8601 with an offset, such as "
                     "2026-01-31T12:00:00Z")


def headers_of(content: Any) -> Headers:
    """Headers in any of four forms: {"a": "1"}, [["a", "1"]], [{"name": "a", "value": "1"}], ["a", "1"].

    Raises:
        ValueError: it is none of them.
    """
    if not content:
        if content in (None, {}, []):
            return []
        raise ValueError(f"headers are an object or an array, not {_kind(content)}")
    if isinstance(content, dict):
        pairs = list(content.items())
    elif not isinstance(content, list):
        raise ValueError(f"headers are an object or an array, not {_kind(content)}")
    elif all(isinstance(each, list) and len(each) == 2 for each in content):
        pairs = [(each[0], each[1]) for each in content]
    elif all(isinstance(each, dict) and each.keys() in ({"name", "value"}, {"key", "value"}) for each in content):
        pairs = [(each.get("name", each.get("key")), each["value"]) for each in content]
    elif len(content) % 2 == 0 and all(each is None or isinstance(each, str) for each in content):
        pairs = list(zip(content[::2], content[1::2], strict=True))  # kcat's
    else:
        raise ValueError('headers are {"name": "value"}, [["name", "value"]] or [{"name": "...", "value": "..."}]')
    for name, _ in pairs:
        if not isinstance(name, str):
            raise ValueError(f"the name of a header is text, not {_kind(name)}")
        _bytes(name, "the name of a header")
    return [(name, _bytes(value, f"header {name!r}")) for name, value in pairs]


def _key_in(parsed: Any, field: str) -> bytes | None:
    if not isinstance(parsed, dict) or field not in parsed:
        raise ValueError(f"there is no field {field!r} for the key (--key-column)")
    return _bytes(parsed[field], f"field {field!r}")
