"""Hex text in its usual forms, back to bytes. Its form decides what is hex, never a guess.

Known: plain hex in any grouping, ``0x`` and ``\\x`` escapes, Python's bytes, C arrays; dumps with offsets by xxd,
hexdump (with and without -C), od, tcpdump -x/-X/-XX, tshark -x, and Wireshark's "Follow TCP stream", where what the
second side sent is indented. Lines that were left out for being like the one before (``*``) are put back.

Read next: `decode.files.inputs`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.decode.output.nodes import Damage

__all__ = ["HexBlock", "is_text", "read_hex"]

_TEXT: Final = frozenset(b"\t\n\r\f" + bytes(range(0x20, 0x7F)))
_DUMP: Final = re.compile(r"^(?P<indent>\s*)(?P<zero>0x)?(?P<offset>[0-9a-fA-F]{4,16})(?P<colon>:?)(?P<rest>\s.*|)$")
_LITERAL: Final = re.compile(r"""b('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)
_GROUP: Final = re.compile(r"(?P<space>\s*)(?P<hex>(?:[0-9a-fA-F]{2})+)(?=\s|$|\||>)")
_TIME: Final = re.compile(r"^(?:(\d{4})-(\d\d)-(\d\d) )?(\d\d):(\d\d):(\d\d)\.(\d{6,9}) ")
_ALL_BYTES: Final = re.compile(r"[^0-9a-fA-F]+")
_HEX_LINE: Final = re.compile(r"[0-9a-fA-F]+")
_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*|#[^\n]*", re.DOTALL)
_ARRAY: Final = re.compile(r"char\s+peer(\d)_\d+\[\]\s*=\s*\{(?:\s*/\*.*?\*/)?(?P<bytes>[^}]*)\}", re.DOTALL)
_MAX_BYTES: Final = 256 << 20
_SHORT_OFFSET: Final = 7  # digits: od in bytes or words, and hexdump in words


class HexBlock(NamedTuple):
    """Bytes that belong together.

    Attributes:
        data: the bytes.
        peer: 0 or 1, which side of a connection sent them; None when the form does not say.
        time: nanoseconds since the epoch, or of the day, when the form says.
    """

    data: bytes
    peer: int | None = None
    time: int | None = None


class _Line(NamedTuple):
    number: int
    indent: bool
    offset: str
    groups: list[str]
    is_word_dump: bool


def is_text(head: bytes) -> bool:
    """True when bytes are text, as hex is."""
    return bool(head) and all(byte in _TEXT for byte in head)


def read_hex(text: str) -> list[HexBlock]:
    """The bytes that a hex text stands for.

    Raises:
        Damage: it is in no known form.
    """
    for read in (_arrays, _followed, _dumps, _literals, _plain):
        blocks = [block for block in read(text) if block.data]
        if blocks:
            if sum(len(block.data) for block in blocks) > _MAX_BYTES:
                raise Damage(f"the hex text stands for more than {_MAX_BYTES} bytes")
            return blocks
    raise Damage("the text is in no known form of hex", 0)


def _arrays(text: str) -> Iterator[HexBlock]:
    """Wireshark's "Follow TCP stream" as C arrays."""
    for match in _ARRAY.finditer(text):
        yield HexBlock(bytes(int(number, 16) for number in re.findall(r"0x([0-9a-fA-F]{1,2})\b", match["bytes"])),
                    int(match[1]) & 1)


def _followed(text: str) -> Iterator[HexBlock]:
    """Tshark's ``-z follow,tcp,raw``: a line for each piece, the second side's indented."""
    if "Follow: tcp,raw" not in text:
        return
    for line in text.splitlines():
        digits = line.strip()
        if len(digits) % 2 == 0 and _HEX_LINE.fullmatch(digits):
            yield HexBlock(bytes.fromhex(digits), int(line.startswith("\t")))


def _literals(text: str) -> Iterator[HexBlock]:
    """Python's bytes; several that follow on each other belong together."""
    found = [match[0] for match in _LITERAL.finditer(text)]
    try:
        yield HexBlock(b"".join(ast.literal_eval(literal) for literal in found))
    except (SyntaxError, ValueError) as error:
        raise Damage(f"the text looks like Python's bytes and is not: {error}") from None


def _plain(text: str) -> Iterator[HexBlock]:
    """Hex in any grouping: spaces, colons, commas, 0x, \\x."""
    bare = _COMMENT.sub(" ", text)
    bare = re.sub(r"0x([0-9a-fA-F])(?![0-9a-fA-F])", r"0\1", bare)
    bare = re.sub(r"0[xX]|\\x", " ", bare)
    words = [word for word in re.split(r"[\s,;:{}\[\]()'\"-]+", bare) if word]
    digits = "".join(words)
    wrong = _ALL_BYTES.search(digits)
    if wrong is not None:
        raise Damage(f"{digits[wrong.start():wrong.start() + 12]!r} in the text is no hex", text.find(wrong[0]))
    if len(digits) % 2:
        raise Damage(f"the text has {len(digits)} hex digits: one is missing or too many", len(text))
    yield HexBlock(bytes.fromhex(digits))


def _dumps(text: str) -> Iterator[HexBlock]:
    """Dumps with offsets; one begins wherever an offset is 0 again."""
    lines: list[_Line | None] = []
    time: int | None = None
    for number, line in enumerate(text.splitlines()):
        if line.strip() == "*":
            lines.append(None)
            continue
        match = _DUMP.match(line)
        row = None if match is None else _row(number, match)
        if row is None:
            stamp = _TIME.match(line)
            if stamp is not None or (lines and line.strip()):
                yield from _blocks(lines, time)
                lines, time = [], _stamp(stamp) if stamp is not None else None
            continue
        lines.append(row)
    yield from _blocks(lines, time)


def _stamp(match: re.Match[str]) -> int:
    from datetime import UTC, datetime

    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        day_start = datetime(int(year), int(month), int(day), tzinfo=UTC) if year else datetime(1970, 1, 1, tzinfo=UTC)
    except ValueError:
        return 0
    seconds = int(day_start.timestamp()) + int(hour) * 3600 + int(minute) * 60 + int(second)
    return seconds * 10**9 + int(fraction.ljust(9, "0"))


def _row(number: int, match: re.Match[str]) -> _Line | None:
    """The offset and the groups of a line; None when it is no line of a dump."""
    rest, at = match["rest"], 0
    groups: list[str] = []
    widest = 1 if match["colon"] else 2
    while (group := _GROUP.match(rest, at)) is not None:
        if groups and len(group["space"]) > widest:
            break
        groups.append(group["hex"])
        at = group.end()
    if not groups and rest.strip():
        return None
    if not match["colon"] and (not rest.startswith((" ", "\t")) and rest):
        return None
    if groups and not match["colon"] and len(groups[0]) > 4:
        return None  # words of eight digits and more are plain hex in lines
    is_word_dump = not match["colon"] and bool(groups) and len(groups[0]) == 4
    if is_word_dump and len(match["offset"]) != _SHORT_OFFSET:
        return None  # words, the first of which only looks like an offset
    return _Line(number, bool(match["indent"]), match["offset"], groups, is_word_dump)


def _blocks(lines: list[_Line | None], time: int | None) -> Iterator[HexBlock]:
    """The blocks of lines that follow on each other, in the order of their first lines."""
    rows = [line for line in lines if line is not None]
    if not rows or not any(row.groups for row in rows) or int(rows[0].offset, 16):
        return
    colons = len({row.indent for row in rows}) == 2  # two sides, one of them indented
    radix = _radix(rows, two_sides=colons)
    if radix is None:
        return
    data = {False: bytearray(), True: bytearray()}
    pending: list[HexBlock] = []
    repeats = False
    for index, row in enumerate(lines):
        if row is None:
            repeats = True
            continue
        offset, side = int(row.offset, radix), row.indent if colons else False
        if not colons and offset == 0 and data[False]:
            pending.append(HexBlock(bytes(data[False]), None, time))
            data[False] = bytearray()
        current = data[side]
        if repeats and current:
            _repeat(current, offset)
        repeats = False
        content = _content(row, _room(lines, index, radix, side, colons))
        if colons:
            if pending and pending[-1].peer == int(side):
                pending[-1] = pending[-1]._replace(data=pending[-1].data + content)
            else:
                pending.append(HexBlock(content, int(side)))
        current += content
    yield from pending
    if not colons:
        yield HexBlock(bytes(data[False]), None, time)


def _repeat(current: bytearray, offset: int) -> None:
    if offset > _MAX_BYTES:
        raise Damage(f"a dump with the offset {offset} is too long")
    line = bytes(current[-16:])
    while line and len(current) < offset:
        current += line[:offset - len(current)]


def _content(row: _Line, room: int | None) -> bytes:
    groups = [g[2:] + g[:2] for g in row.groups] if row.is_word_dump else row.groups
    content = bytes.fromhex("".join(groups))
    return content if room is None else content[:room]


def _room(lines: list[_Line | None], index: int, radix: int, side: bool, two_sides: bool) -> int | None:
    """Bytes of a line, as many as the next offset of the same side leaves; the rest of the line is its text column."""
    row = lines[index]
    assert row is not None
    for later in lines[index + 1:]:
        if later is None:
            return 16
        if two_sides and later.indent != side:
            continue
        step = int(later.offset, radix) - int(row.offset, radix)
        return step if 0 < step <= 64 else 16
    return 16 if len("".join(row.groups)) > 32 and len(row.groups) > 16 else None


def _radix(rows: list[_Line], two_sides: bool) -> int | None:
    """Whether offsets are hex, octal (od) or decimal: steps must be the sizes of their lines.

    A text column that looks like hex makes a line seem longer; steps may be smaller then.
    """
    is_od = len(rows[0].offset) == _SHORT_OFFSET and not rows[0].is_word_dump
    for exact in (True, False):
        for radix in (8, 16, 10) if is_od else (16, 8, 10):
            try:
                offsets = [int(row.offset, radix) for row in rows]
            except ValueError:
                continue
            if all(_fits(rows, offsets, index, two_sides, exact) for index in range(len(rows) - 1)):
                return radix
    return None


def _fits(rows: list[_Line], offsets: list[int], index: int, two_sides: bool, exact: bool) -> bool:
    later = index + 1
    if two_sides:
        later = next((i for i in range(index + 1, len(rows)) if rows[i].indent == rows[index].indent), index)
    step = offsets[later] - offsets[index]
    if step <= 0:
        return later == index or offsets[later] == 0
    size = sum(len(group) for group in rows[index].groups) // 2
    if rows[later].number > rows[index].number + 1 and not two_sides:
        return step % 16 == 0 or step <= size  # a line with a star is between
    is_cut_word = rows[index].is_word_dump and step == size - 1
    return step == size or is_cut_word if exact else step <= size
