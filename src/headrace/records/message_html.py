"""A message as a notebook shows it. Read next: `headrace.records.message`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headrace.types.html_table import html_table
from headrace.types.records import TIMESTAMP_NOT_AVAILABLE

__all__ = ["message_html"]

_MOST = 2_000
"""Characters of a key or value that are shown."""


def message_html(message: Any) -> str:
    """What it is, and its key, value and headers; bytes as text where they are UTF-8.

    Args:
        message: a `Message` of either twin.
    """
    rows: list[tuple[str, object]] = []
    if message.error() is not None:
        rows.append(("error", message.error()))
    kind, stamp_ms = message.timestamp()
    if kind != TIMESTAMP_NOT_AVAILABLE and stamp_ms >= 0:
        rows.append(("timestamp", _time(stamp_ms)))
    rows += [("key", _shown(message.key())), ("value", _shown(message.value()))]
    rows += [(f"header {name}", _shown(value)) for name, value in message.headers() or ()]
    return html_table(f"{message.topic()}[{message.partition()}]@{message.offset()}", (), rows)


def _time(stamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(stamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # a producer may write any number
        return f"{stamp_ms} ms"


def _shown(what: Any) -> str:
    text = what if isinstance(what, str) else "null" if what is None else repr(what)
    if isinstance(what, bytes):
        try:
            text = what.decode()
        except UnicodeDecodeError:
            text = repr(what)
    return text if len(text) <= _MOST else f"{text[:_MOST]}... ({len(what):,} in all)"
