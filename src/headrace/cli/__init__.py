"""The `headrace` command: one small module per subcommand, found by name.

A subcommand is a module here with `HELP`, one line, and `main(argv) -> int`, the exit status. Nothing heavy is imported
before the subcommand is known.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from headrace import __version__

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments after the program's name; those of the process when None.

    Returns:
        Exit status: 0 success, 1 failure, 2 wrong usage, 130 stopped by Ctrl-C.
    """
    args = sys.argv[1:] if argv is None else argv
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))
    if not args or args[0] in ("-h", "--help", "help"):
        print(_usage(names))
        return 0 if args else 2
    if args[0] in ("-V", "--version"):
        print(f"headrace {__version__}")
        return 0
    if args[0] not in names:
        print(f"headrace: unknown command {args[0]!r}\n\n{_usage(names)}", file=sys.stderr)
        return 2
    try:
        return int(import_module(f"headrace.cli.{args[0]}").main(args[1:]))
    except KeyboardInterrupt:
        return 130


def _usage(names: list[str]) -> str:
    rows = "\n".join(f"  {name:<10} {import_module(f'headrace.cli.{name}').HELP}" for name in names)
    return f"usage: headrace COMMAND [options]\n\n{rows}\n\n`headrace COMMAND --help` shows more."
