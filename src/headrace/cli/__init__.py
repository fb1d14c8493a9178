"""The `headrace` command. `cli.shared.commands` is the table of what it can do.

Nothing heavy is imported before the command is known. Read next: `cli.shared.commands`, `cli.shared.exits`.
"""

from __future__ import annotations

import os
import sys

from headrace.cli.shared.commands import COMMANDS, SECTIONS
from headrace.cli.shared.exits import DONE, USAGE, complain, guarded, meant

__all__ = ["main"]

_PROGRAM = "headrace"


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments after the program's name; those of the process when None.

    Returns:
        Exit status, see `cli.shared.exits.MEANINGS`.
    """
    _open_closed_streams()
    args = sys.argv[1:] if argv is None else argv
    if not args or args[0] in ("-h", "--help", "help"):
        print(_usage(), file=sys.stdout if args else sys.stderr)
        return DONE if args else USAGE
    if args[0] in ("-V", "--version"):
        from headrace.cli.shared.installation import version_lines

        return guarded(_PROGRAM, lambda: print(*version_lines(), sep="\n") or DONE)
    command = COMMANDS.get(args[0])
    if command is None:
        complain(_PROGRAM, f"unknown command {args[0]!r}{meant(args[0], COMMANDS)} (see `{_PROGRAM} --help`)")
        return USAGE
    return guarded(f"{_PROGRAM} {args[0]}", lambda: int(command.load().main(args[1:])))


def _open_closed_streams() -> None:
    """Standard streams that the shell has closed (``>&-``) are None to Python: what is written there is dropped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = ["usage: headrace COMMAND [options]"]
    for section in SECTIONS:
        lines += ["", f"{section}:", *(f"  {name:<{width}}  {command.about}" for name, command in COMMANDS.items()
                                       if command.section == section)]
    return "\n".join([*lines, "", "`headrace COMMAND --help` shows more, `headrace --version` what is installed."])
