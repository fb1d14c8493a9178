"""`headrace perf`: how fast clients are, measured. `headrace perf produce` sends records and takes the time.

Read next: `headrace.cli.measuring`, which lists the parts.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from headrace.cli.shared.exits import meant

if TYPE_CHECKING:
    from headrace.cli.shared.parsers import Parser

__all__ = ["main", "make_parsers"]

_COMMANDS = {
    "produce": "send records, ours or with other clients beside it",
    "consume": "read records",
    "end-to-end": "send records and read them at once: how long they take",
}
_USAGE = "usage: headrace perf COMMAND [options]\n\n" + "\n".join(
    f"  {name:<10} {what}" for name, what in _COMMANDS.items()) + "\n\n`headrace perf COMMAND --help` shows more."


def make_parsers() -> dict[str, Parser]:
    """The parsers of its commands, by name."""
    return {name: _module(name).make_parser() for name in _COMMANDS}


def _module(name: str) -> ModuleType:
    return import_module(f"headrace.cli.measuring.perf_{name.replace('-', '_')}")


def main(argv: list[str]) -> int:
    """Run a measurement.

    Args:
        argv: arguments after the command's name.

    Returns:
        Exit status of the measurement, 2 when there is no such one.
    """
    if argv and argv[0] in _COMMANDS:
        return int(_module(argv[0]).main(argv[1:]))
    if argv and argv[0] in ("-h", "--help", "help"):
        print(_USAGE)
        return 0
    print(f"headrace perf: unknown command {argv[0]!r}{meant(argv[0], _COMMANDS)} (see `headrace perf --help`)" if argv
          else _USAGE, file=sys.stderr)
    return 2
