"""`headrace perf`: how fast clients are, measured. `headrace perf produce` sends records and takes the time.

Read next: `headrace.cli.measuring`, which lists the parts.
"""

from __future__ import annotations

import sys
from importlib import import_module

__all__ = ["HELP", "main"]

HELP = "measure clients: records per second, CPU, latency"
_COMMANDS = {"produce": "send records, ours or with other clients beside it"}
_USAGE = "usage: headrace perf COMMAND [options]\n\n" + "\n".join(
    f"  {name:<10} {what}" for name, what in _COMMANDS.items()) + "\n\n`headrace perf COMMAND --help` shows more."


def main(argv: list[str]) -> int:
    """Run a measurement.

    Args:
        argv: arguments after the command's name.

    Returns:
        Exit status of the measurement, 2 when there is no such one.
    """
    if argv and argv[0] in _COMMANDS:
        return int(import_module(f"headrace.cli.measuring.perf_{argv[0]}").main(argv[1:]))
    if argv and argv[0] in ("-h", "--help", "help"):
        print(_USAGE)
        return 0
    print(f"headrace perf: unknown command {argv[0]!r}\n\n{_USAGE}" if argv else _USAGE, file=sys.stderr)
    return 2
