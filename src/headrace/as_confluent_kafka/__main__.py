"""`python -m headrace.as_confluent_kafka program.py`: run a program that imports confluent_kafka on headrace."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headrace.as_confluent_kafka import install

__all__ = ["main"]

_USAGE: Final = "usage: python -m headrace.as_confluent_kafka [-m] PROGRAM [ARGUMENTS]"


def main(argv: Sequence[str]) -> None:
    """Run a program that imports confluent_kafka.

    Args:
        argv: a file, or `-m` and a module; then the program's own arguments.

    Raises:
        SystemExit: no program was named, or the program ends so.
    """
    by_name = bool(argv) and argv[0] == "-m"
    program = argv[by_name:]
    if not program or program[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        raise SystemExit(2)
    install()
    sys.argv = [*program]
    if by_name:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        return
    file = Path(program[0])
    if not sys.flags.safe_path:
        sys.path[0] = str(file.resolve().parent)  # as Python has it: modules beside the program are found
    runpy.run_path(str(file.absolute()), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
