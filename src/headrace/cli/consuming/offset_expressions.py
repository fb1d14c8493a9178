"""Where to begin and where to end, as kcat and rpk write it, and the offsets that this means.

* beginning, end, stored     the ends of a partition, and what a group has committed
* 47, +2, -10                an offset; so many records behind the beginning, and in front of the end
* @2026-01-31T12:00, @-1h    the first record at or after a time: ISO 8601, milliseconds since 1970, or ago
* START:END                  from the one up to and without the other; either may be left out
* s@TIME, e@TIME             kcat's words for @TIME: and :@TIME
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace.slotted import slotted

if TYPE_CHECKING:
    from headrace.client.consumer.log_view import LogView

__all__ = ["BEGINNING", "END", "STORED", "OffsetPoint", "OffsetSpan", "joined", "parse_span", "resolve",
           "span_of"]

Key = tuple[str, int]
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO = re.compile(r"-?((?:\d+(?:\.\d+)?(?:ms|[smhdw]))+)")
_AGO_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_SECONDS_DIGITS = 11  # as many digits or fewer are seconds since 1970; so until the year 5138
_FIRST, _LAST = -2, -1  # what a leader is asked for instead of a time


@slotted(frozen=True)
class OffsetPoint:
    """A place in each partition.

    Attributes:
        kind: "beginning", "end", "stored", "offset", "after" the beginning, "before" the end, or "time".
        amount: offset, records or milliseconds since 1970.
    """

    kind: str
    amount: int = 0


BEGINNING, END, STORED = OffsetPoint("beginning"), OffsetPoint("end"), OffsetPoint("stored")
_WORDS = {"beginning": BEGINNING, "start": BEGINNING, "earliest": BEGINNING, "end": END, "latest": END,
          "stored": STORED}


@slotted(frozen=True)
class OffsetSpan:
    """From one place up to and without another; None where nothing was said."""

    start: OffsetPoint | None = None
    end: OffsetPoint | None = None


def parse_span(text: str, now_ms: int) -> OffsetSpan:
    """What one -o says.

    Args:
        text: the expression.
        now_ms: what "ago" is counted from, in milliseconds since 1970.

    Raises:
        ValueError: it says nothing of the kind.
    """
    if text[:2] in ("s@", "e@"):
        point = _point(text[1:], now_ms)
        return OffsetSpan(point, None) if text[0] == "s" else OffsetSpan(None, point)
    try:
        return OffsetSpan(_point(text, now_ms))
    except ValueError:
        if ":" not in text:
            raise
    for place in (place for place, letter in enumerate(text) if letter == ":"):
        try:
            return _between(text[:place], text[place + 1 :], now_ms)
        except ValueError:
            continue
    raise ValueError(f"{text!r} is no range: write START:END, such as 10:20, @-2h:@-1h or -100:end")


def span_of(text: str) -> OffsetSpan:
    """What an option says about offsets.

    Raises:
        ArgumentTypeError: nothing of the kind.
    """
    try:
        return parse_span(text, round(time.time() * 1000))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def joined(argv: list[str]) -> list[str]:
    """`-o -10` as one argument: what begins with a minus would be taken for an option."""
    made: list[str] = []
    for text in argv:
        if made and made[-1] in ("-o", "--offset") and text.startswith("-"):
            made[-1] = f"-o{text}" if made[-1] == "-o" else f"--offset={text}"
        else:
            made.append(text)
    return made


def _between(start: str, end: str, now_ms: int) -> OffsetSpan:
    found = OffsetSpan(_point(start, now_ms) if start else BEGINNING, _point(end, now_ms) if end else END)
    if found.end == STORED:
        raise ValueError("a range cannot end at what is stored")
    return found


def _point(text: str, now_ms: int) -> OffsetPoint:
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("@"):
        return OffsetPoint("time", _time(text[1:], now_ms))
    sign, digits = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if digits.isascii() and digits.isdigit() and int(digits) < 1 << 63:
        return OffsetPoint({"": "offset", "+": "after", "-": "before"}[sign], int(digits))
    raise ValueError(f"{text!r} is no offset: write beginning, end, stored, 47, +2, -10, @-1h, @2026-01-31T12:00, or "
                     "START:END with two of these")


def _time(text: str, now_ms: int) -> int:
    if text.isascii() and text.isdigit():
        return int(text) * (1_000 if len(text) < _SECONDS_DIGITS else 1)
    if (ago := _AGO.fullmatch(text)) is not None:
        spans = [float(number) * _UNITS_MS[unit] for number, unit in _AGO_PART.findall(ago[1])]
        return max(now_ms - round(sum(spans)), 0)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time: write 2026-01-31T12:00 (UTC unless it says otherwise), milliseconds "
                         "since 1970, or -90m, -1h30m, -7d for so long ago") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


def resolve(
    span: OffsetSpan, partitions: Collection[Key], view: LogView, stored: Mapping[Key, int], timeout_s: float
) -> dict[Key, tuple[int, int]]:
    """The offsets that are meant, by partition: the first one, and the one behind the last.

    The end of a partition is what it is now; with read_committed, that of what is committed. No start lies in front of
    the first record that is still there, and no end behind the last one.

    Args:
        span: what was asked for; without an end, all that is there now is meant.
        partitions: topics and numbers.
        view: answers; its "isolation.level" says which end.
        stored: what the group has committed; a partition without it begins at its beginning.
        timeout_s: longest wait for a leader, in seconds.

    Raises:
        KafkaException: a leader did not answer, or refused.
    """
    first = _ask(view, partitions, _FIRST, timeout_s)
    last = _ask(view, partitions, _LAST, timeout_s)

    def place(point: OffsetPoint) -> dict[Key, int]:
        if point.kind == "time":
            times = _ask(view, partitions, point.amount, timeout_s)
            return {key: times[key] if times[key] >= 0 else last[key] for key in partitions}
        return {key: _offset(point, first[key], last[key], stored.get(key, -1)) for key in partitions}

    starts, ends = place(span.start or BEGINNING), place(span.end or END)
    found = {}
    for key in partitions:
        start = min(max(starts[key], first[key]), last[key]) if span.start != END else last[key]
        found[key] = start, max(min(ends[key], last[key]), start)
    return found


def _ask(view: LogView, partitions: Collection[Key], timestamp: int, timeout_s: float) -> dict[Key, int]:
    from headrace.client.consumer.log_view import patiently

    wanted = dict.fromkeys(partitions, timestamp)
    answers = patiently(lambda left_s: view.offsets(wanted, left_s), time.monotonic() + timeout_s)
    return {key: answers[key].offset for key in partitions}


def _offset(point: OffsetPoint, first: int, last: int, stored: int) -> int:
    if point.kind == "offset":
        return point.amount
    if point.kind == "after":
        return first + point.amount
    if point.kind == "before":
        return last - point.amount
    if point.kind == "stored":
        return stored if stored >= 0 else first
    return last if point.kind == "end" else first
