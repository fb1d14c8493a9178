"""Consent to what cannot be undone: `--yes`, or the name typed on a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from headrace.cli.shared.exits import FAILED, RefusedError
from headrace.cli.shared.output import printable

__all__ = ["add_dry_run", "add_yes", "confirm"]


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add --yes."""
    parser.add_argument("-y", "--yes", action="store_true", help="do it without asking; needed where there is no "
                        "terminal to ask on")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add --dry-run."""
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")


def confirm(what: str, names: Sequence[str], *, yes: bool) -> None:
    """Return when somebody wants it.

    Args:
        what: what would happen, as a sentence without its full stop: `this deletes topic orders and its records`.
        names: what it would happen to. One is to be typed; of several, how many they are.
        yes: --yes was given.

    Raises:
        RefusedError: nobody can be asked, or something else was typed.
    """
    if yes:
        return
    what = printable(what)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RefusedError(f"{what}: give --yes to do it")
    word = names[0] if len(names) == 1 else str(len(names))
    print(f"{what[:1].upper()}{what[1:]}. Type {printable(word)} to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != word:
        raise RefusedError("nothing was done", FAILED)
