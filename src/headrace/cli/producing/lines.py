"""Lines as slices: split at the delimiter in large chunks, keys split off, binary decoded."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator

from headrace.cli.producing.slices import SLICE_RECORDS, Malformed, Places, Slice, well_formed

__all__ = ["DECODERS", "line_slices", "split_lines"]


def split_lines(
    chunks: Iterable[bytes], delimiter: bytes, limit: int, base: int, malformed: Malformed
) -> Iterator[tuple[int, list[bytes]]]:
    """Complete lines as they come; the last one needs no delimiter behind it.

    Args:
        chunks: bytes in any portions.
        delimiter: what ends a line.
        limit: longest line in bytes; a longer one is malformed, and never kept whole.
        base: what to add to line numbers.
        malformed: called with lines that are too long.

    Yields:
        The number of the first line, and lines.
    """
    rest, number, skipping = b"", base + 1, False
    for chunk in chunks:
        parts = (rest + chunk if rest else chunk).split(delimiter)
        rest = parts.pop()
        if skipping and parts:  # the end of the line that was too long
            del parts[0]
            number, skipping = number + 1, False
        if parts:
            yield number, parts
            number += len(parts)
        if skipping:
            rest = rest[-len(delimiter):]
        elif len(rest) > limit:
            if malformed(number, f"the line is longer than {limit:,} bytes, 4 times message.max.bytes"):
                return
            rest, skipping = rest[-len(delimiter):], True
    if rest and not skipping:
        yield number, [rest]


def _hex(data: bytes) -> bytes:
    return bytes.fromhex(data.decode("ascii"))


def _base64(data: bytes) -> bytes:
    return base64.b64decode(data, validate=True)


DECODERS: dict[str, Callable[[bytes], bytes]] = {"hex": _hex, "base64": _base64}
"""How keys and values that are binary are written in text; ValueError when they are not."""


def line_slices(
    lines: Iterator[tuple[int, list[bytes]]], places: Places, malformed: Malformed, *, key_delimiter: bytes | None,
    encoding: str, raw: bool,
) -> Iterator[Slice]:
    """Lines as records.

    Args:
        lines: what `split_lines` gives.
        places: learns how far lines have been numbered.
        malformed: called with lines without a key, or that cannot be decoded.
        key_delimiter: what stands between key and value; None when lines are values.
        encoding: "text", or a key of `DECODERS`.
        raw: keep the lines for --tee.
    """
    decode = DECODERS.get(encoding)
    for first, found in lines:
        places.reached(first + len(found) - 1)
        for start in range(0, len(found), SLICE_RECORDS):
            part = found[start : start + SLICE_RECORDS]
            numbers = range(first + start, first + start + len(part))
            if key_delimiter is None and decode is None:
                yield Slice(numbers, list[bytes | None](part), raw=part if raw else None)
            else:
                made, ended = _taken_apart(numbers, part, malformed, key_delimiter, decode, raw)
                yield made
                if ended:
                    return


def _taken_apart(
    numbers: range, part: list[bytes], malformed: Malformed, key_delimiter: bytes | None,
    decode: Callable[[bytes], bytes] | None, raw: bool,
) -> tuple[Slice, bool]:
    """A slice of these lines, and whether the reading ends behind it."""
    def key_and_value(line: bytes) -> tuple[bytes | None, bytes]:
        value: bytes = line
        key: bytes | None = None
        if key_delimiter is not None:
            key, found, value = line.partition(key_delimiter)
            if not found:
                shown = key_delimiter.decode(errors="backslashreplace")
                raise ValueError(f"no key: the delimiter {shown!r} of -K is not in the line")
        if decode is None:
            return key, value
        try:
            value, key = decode(value), None if key is None else decode(key)
        except (ValueError, binascii.Error) as error:
            raise ValueError(f"not {'base64' if decode is _base64 else 'hex'}: {error}") from None
        return key, value

    good, ended = well_formed(zip(numbers, part, strict=True), key_and_value, malformed)
    keys = [key for _, _, (key, _) in good] if key_delimiter is not None else None
    made = Slice([number for number, _, _ in good], [value for _, _, (_, value) in good], keys,
                 raw=[line for _, line, _ in good] if raw else None)
    return made, ended
