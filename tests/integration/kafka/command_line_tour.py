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
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z"), "TIME"),
    (re.compile(r"/\S+/(node-\d+)?\S*"), "DIR"),
    (re.compile(r"(\bid |\"id\": \"|^cluster |\t)[A-Za-z0-9_-]{22}(?=[\s,\"]|$)"), r"\1ID"),
    (re.compile(r"\b[\d.]+ (s|attempts)\b"), r"N \1"),
    (re.compile(r"headrace-[0-9a-f]+|[a-z]+-[0-9a-f]{8}-[0-9a-f-]{27}"), "MEMBER"),
    (re.compile(r"-{3,}"), "---"),
    (re.compile(r" {2,}"), "  "),
)
_MEASURED: Final = re.compile(r"headrace  +\d")
"""How a row of figures begins, of which only the columns are compared."""
_FIGURE: Final = re.compile(r"(?<= )[\d.,e+]+(?= |$)")
_ANY_LINES: Final = "..."


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


class Command(NamedTuple):
    """One command of what is typed.

    Args:
        words: its name and its arguments.
        file: its standard input; that of another command's output, or nothing, when None.
        stays: it goes on in the background.
    """

    words: list[str]
    file: str | None
    stays: bool


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


def commands_of(typed: str) -> list[Command]:
    """What a shell makes of a line: commands, each of which reads what the one before it has written."""
    found = shlex.shlex(typed, posix=True, punctuation_chars="|<&")
    found.whitespace_split, found.commenters = True, ""
    made = [Command([], None, False)]
    for word in found:
        if word == "|":
            made.append(Command([], None, False))
        elif word == "<":
            made[-1] = made[-1]._replace(file=next(found))
        elif word == "&":
            made[-1] = made[-1]._replace(stays=True)
        else:
            made[-1].words.append(word)
    return made


def said_by(status: int, out: str, err: str) -> list[str]:
    """What a command said, as the transcript has it."""
    lines = [*out.splitlines(), *(f"! {line}" for line in err.splitlines()), *([f"[{status}]"] if status else [])]
    return [_constant(line) for line in lines if line]


def _constant(line: str) -> str:
    for pattern, word in _VARYING:
        line = pattern.sub(word, line)
    return (_FIGURE.sub("N", line) if _MEASURED.match(line) else line).rstrip()


def arguments_of(words: list[str], named: Mapping[str, list[str]]) -> list[str]:
    """The arguments of a command.

    Args:
        words: the command, `headrace` in front.
        named: what stands for `--as USER`, and for words in capital letters.
    """
    found = list[str]()
    for word in words[1:]:
        if found and found[-1] == "--as" and word in named:
            found[-1:] = named[word]
        else:
            head, slash, rest = word.partition("/")
            found += [f"{each}{slash}{rest}" for each in named[head]] if head.isupper() and head in named else [word]
    return found


def fits(said: list[str], expected: list[str]) -> bool:
    """Whether a command said what the transcript has; ... stands for anything, alone in a line for any lines."""
    patterns = ["(.*\n)*" if line == _ANY_LINES else ".*".join(map(re.escape, line.split("..."))) + "\n"
                for line in expected]
    return re.fullmatch("".join(patterns), "".join(f"{line}\n" for line in said)) is not None
