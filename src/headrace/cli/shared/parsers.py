"""`Parser`: argparse, whose complaints are one line that says what was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from headrace.cli.shared.exits import USAGE, meant
from headrace.cli.shared.output import Column

__all__ = ["Parser", "moment", "number", "pattern", "place", "seconds"]

_CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<known>.*)\)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_ISO = re.compile(r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?")


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves with status 2 and one line; options cannot be abbreviated.

    Args:
        program: what `argparse` calls prog.
        named: further arguments of `argparse.ArgumentParser`.

    Attributes:
        columns: of the rows that the command prints.
    """

    def __init__(self, program: str, **named: Any) -> None:
        super().__init__(prog=program, **{"allow_abbrev": False, **named})
        self.columns: Sequence[Column] = ()

    @property
    def arguments(self) -> list[argparse.Action]:
        """What it takes, apart from --help."""
        return [each for each in self._actions if each.help != argparse.SUPPRESS and each.dest != "help"]

    def help_of(self, argument: argparse.Action) -> str:
        """What the help says of an argument, with its default."""
        return (argument.help or "") % {**vars(argument), "prog": self.prog}

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse's; an unknown option is told with the nearest one."""
        found, rest = self.parse_known_args(args, namespace)
        return self._whole(found, rest)

    def parse_intermixed_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """As argparse's; an unknown option is told with the nearest one."""
        found, rest = self.parse_known_intermixed_args(args, namespace)
        return self._whole(found, rest)

    def _whole(self, found: Any, rest: list[str]) -> Any:
        if not rest:
            return found
        option = next((each for each in rest if each.startswith("-") and each != "-"), None)
        if option is None:
            return self.error(f"unrecognized arguments: {rest[0]}")
        name = option.partition("=")[0]
        return self.error(f"unrecognized arguments: {name}{meant(name, self._option_string_actions)}")

    def error(self, message: str) -> NoReturn:
        """One line, and out with status 2."""
        if choice := _CHOICE.search(message):
            message += meant(choice["given"], re.findall(r"[\w.-]+", choice["known"]))
        print(f"{self.prog}: {message} (see `{self.prog} --help`)", file=sys.stderr, flush=True)
        raise SystemExit(USAGE)


def number(lowest: int = 0, highest: int = (1 << 63) - 1) -> Any:
    """A type for argparse: whole numbers in a range."""
    def read(text: str) -> int:
        sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
        if not (digits.isascii() and digits.isdigit()) or not lowest <= sign * int(digits) <= highest:
            upper = "" if highest == (1 << 63) - 1 else f" and at most {highest}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least {lowest}{upper}")
        return sign * int(digits)

    return read


def seconds(text: str) -> float:
    """A length of time: 90, 90s, 15m, 2h, 7d, 1w, 500ms, or ISO 8601 (PT15M, P1DT12H).

    Raises:
        ArgumentTypeError: it is none.
    """
    if (iso := _ISO.fullmatch(text)) and any(iso.groupdict().values()):
        return sum(float(value) * _UNITS[unit] for unit, value in iso.groupdict().items() if value)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)?", text, re.ASCII)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no length of time: 90s, 15m, 2h, 7d or PT15M are")
    return float(found[1]) * _UNITS[found[2] or "s"]


def moment(text: str) -> int:
    """A time in milliseconds since 1970: given so, or as ISO 8601 with its offset from UTC.

    Raises:
        ArgumentTypeError: it is neither.
    """
    from headrace.cli.producing.jsonlines import timestamp_of

    try:
        return timestamp_of(int(text) if text.isascii() and text.isdigit() else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def place(text: str) -> int | str:
    """Where in a partition: `earliest`, `latest`, `max-timestamp`, or a time as of `moment`.

    Raises:
        ArgumentTypeError: it is none of these.
    """
    return text if text in ("earliest", "latest", "max-timestamp") else moment(text)


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression.

    Raises:
        ArgumentTypeError: it is none.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
