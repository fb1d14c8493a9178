"""Totals: for captures per API, for segments per codec. Memory does not grow with what is counted.

Read next: `decode.output.rendering`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.decode.files.segment import LogBatch, LogTrouble
from headrace.decode.messages.names import error_name
from headrace.decode.output.nodes import Item, Value, clock
from headrace.decode.stream.exchange import Event, Frame
from headrace.records import CODEC_NAMES
from headrace.wire.layout import columns
from headrace.wire.schema import Struct

__all__ = ["Summary", "errors_of"]

_STEPS = 16  # classes of latency for each doubling: a percentile is true to 4 %


def errors_of(part: Struct) -> Iterator[int]:
    """Every error code in a message that is not 0."""
    for column in columns(type(part)):
        found = getattr(part, column.name, None)
        if column.type.struct is not None and found:
            for one in found if column.type.is_array else (found,):
                yield from errors_of(one)
        elif column.name.endswith("error_code") and found:
            yield found


@dataclass(slots=True)
class _Api:
    requests: int = 0
    replies: int = 0
    request_bytes: int = 0
    reply_bytes: int = 0
    errors: int = 0
    slowest_ns: int = 0
    classes: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def percentile_ms(self, share: float) -> float:
        """The latency in milliseconds that a share of the replies stayed below."""
        rank = math.ceil(share * sum(self.classes.values()))
        for number in sorted(self.classes):
            rank -= self.classes[number]
            if rank <= 0:
                return min(2 ** ((number + 0.5) / _STEPS), self.slowest_ns) / 1e6
        return 0.0


@dataclass(slots=True)
class _Codec:
    batches: int = 0
    records: int = 0
    size: int = 0


class Summary:
    """What has been shown, counted."""

    def __init__(self) -> None:
        self._apis: dict[str, _Api] = defaultdict(_Api)
        self._codecs: dict[str, _Codec] = defaultdict(_Codec)
        self._errors: dict[str, int] = defaultdict(int)
        self._damaged = 0
        self._offsets: tuple[int, int] | None = None
        self._times: tuple[int, int] | None = None

    def count_event(self, event: Event) -> None:
        """Count a frame."""
        if not isinstance(event, Frame):
            self._damaged += event.is_damage
            return
        self._damaged += bool(event.body.damage)
        api = self._apis[event.name]
        if event.kind == "reply":
            api.replies += 1
            api.reply_bytes += event.size
            for code in errors_of(event.body.message) if event.body.message is not None else ():
                api.errors += 1
                self._errors[error_name(code)] += 1
        else:
            api.requests += 1
            api.request_bytes += event.size
        if event.latency_ns is not None:
            api.slowest_ns = max(api.slowest_ns, event.latency_ns)
            api.classes[int(math.log2(max(event.latency_ns, 1)) * _STEPS)] += 1

    def count_batch(self, batch: LogBatch | LogTrouble) -> None:
        """Count a batch of a segment."""
        if isinstance(batch, LogTrouble):
            self._damaged += batch.is_damage
            return
        info = batch.head.info
        codec = self._codecs[CODEC_NAMES[info.codec] if info.codec < len(CODEC_NAMES) else str(info.codec)]
        codec.batches += 1
        codec.records += info.count
        codec.size += info.size
        self._damaged += not batch.head.is_sound
        low, high = self._offsets or (info.base_offset, info.last_offset)
        self._offsets = (min(low, info.base_offset), max(high, info.last_offset))
        if info.max_timestamp >= 0:
            first, last = self._times or (info.max_timestamp, info.max_timestamp)
            self._times = (min(first, info.max_timestamp), max(last, info.max_timestamp))

    def items(self) -> Iterator[Item]:
        """The totals, one item a line."""
        rows = [_row(name, api) for name, api in sorted(self._apis.items())]
        yield from _table(rows)
        yield from _table([{"codec": name, "batches": one.batches, "records": one.records, "bytes": one.size}
                           for name, one in sorted(self._codecs.items())])
        for name, count in sorted(self._errors.items()):
            yield Item("summary", f"{count} x {name}", {"error": name, "count": count})
        if self._offsets:
            first, last = self._offsets
            yield Item("summary", f"offsets {first} to {last}", {"first_offset": first, "last_offset": last})
        if self._times:
            first_time, last_time = (clock(ms * 10**6, 3) for ms in self._times)
            yield Item("summary", f"largest timestamps of batches {first_time} to {last_time}",
                       {"first_timestamp_utc": first_time, "last_timestamp_utc": last_time})
        yield Item("summary", f"{self._damaged} damaged", {"damaged": self._damaged})


def _row(name: str, api: _Api) -> dict[str, Value]:
    row: dict[str, Value] = {
        "api": name, "requests": api.requests, "replies": api.replies, "request_bytes": api.request_bytes,
        "reply_bytes": api.reply_bytes, "errors": api.errors,
    }
    if api.classes:
        row |= {"p50_ms": round(api.percentile_ms(0.5), 3), "p99_ms": round(api.percentile_ms(0.99), 3),
                "max_ms": round(api.slowest_ns / 1e6, 3)}
    return row


def _table(rows: list[dict[str, Value]]) -> Iterator[Item]:
    """Rows under their names in columns; the first column is text, the others are numbers."""
    if not rows:
        return
    names = max((list(row) for row in rows), key=len)
    cells = [[str(row.get(name, "")) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    yield Item("heading", _aligned(names, widths), {})
    for row, texts in zip(rows, cells, strict=True):
        yield Item("summary", _aligned(texts, widths), row)


def _aligned(texts: list[str], widths: list[int]) -> str:
    first, *rest = (text.rjust(width) if number else text.ljust(width)
                    for number, (text, width) in enumerate(zip(texts, widths, strict=True)))
    return "  ".join([first, *rest])
