"""A transcript of commands, and how it is compared with what they say now.

What differs from one cluster to the next is written as a word: PORT, ID, TIME, DIR, N; and as ... where a number or a
broker can be any. Read next: `command_line_tour.txt`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

TRANSCRIPT: Final = Path(__file__).with_suffix(".txt")
_VARYING: Final = (
    (re.compile(r"127\.0\.0\.1(:|\s+|\t)\d{2,5}\b"), r"127.0.0.1\1PORT"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"/\S+/(node-\d+)?\S*"), "DIR"),
    (re.compile(r"(\bid |\"id\": \"|^cluster |\t)[A-Za-z0-9_-]{22}(?=[\s,\"]|$)"), r"\1ID"),
    (re.compile(r"\b[\d.]+ (s|attempts)\b"), r"N \1"),
    (re.compile(r"headrace-[0-9a-f]+|[a-z]+-[0-9a-f]{8}-[0-9a-f-]{27}"), "MEMBER"),
    (re.compile(r" {2,}"), "  "),
)


class Step(NamedTuple):
    """A command of the transcript, or something that happens.

    Args:
        typed: the line behind `$` or `@`.
        happens: it is no command.
        said: the lines below it.
    """

    typed: str
    happens: bool
    said: list[str]


def steps() -> Iterator[Step]:
    """The transcript."""
    found: Step | None = None
    for line in TRANSCRIPT.read_text().splitlines():
        if line.startswith(("$ ", "@ ")):
            if found is not None:
                yield found
            found = Step(line[2:], line[0] == "@", [])
        elif found is not None and line:
            found.said.append(line)
    assert found is not None
    yield found


def said_by(status: int, out: str, err: str) -> list[str]:
    """What a command said, as the transcript has it."""
    lines = [*out.splitlines(), *(f"! {line}" for line in err.splitlines()), *([f"[{status}]"] if status else [])]
    return [_constant(line) for line in lines if line]


def _constant(line: str) -> str:
    for pattern, word in _VARYING:
        line = pattern.sub(word, line)
    return line.rstrip()


def arguments_of(typed: str, files: Path, users: Mapping[str, list[str]]) -> list[str]:
    """The arguments of a command.

    Args:
        typed: the line, without `$`.
        files: where its files lie.
        users: the options by which a user comes, for `--as USER`.
    """
    found = shlex.split(typed)[1:]
    if "--as" in found:
        at = found.index("--as")
        found[at:at + 2] = users[found[at + 1]]
    return [str(files / each) if each.endswith(".avsc") else each for each in found]


def fits(said: list[str], expected: list[str]) -> bool:
    """Whether a command said what the transcript has; ... stands for anything."""
    return len(said) == len(expected) and all(
        re.fullmatch(".*".join(map(re.escape, line.split("..."))), found)
        for line, found in zip(expected, said, strict=True))
