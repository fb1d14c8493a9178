"""`headrace completion`: print a script that makes a shell complete commands and options."""

from __future__ import annotations

import argparse

from headrace.cli.shared.completions import SHELLS, completion_script
from headrace.cli.shared.parsers import Parser

__all__ = ["main", "make_parser"]

_EXAMPLES = """\
examples:
  eval "$(headrace completion bash)"                                         in ~/.bashrc
  source <(headrace completion zsh)                                          in ~/.zshrc, behind compinit
  headrace completion fish > ~/.config/fish/completions/headrace.fish        once
"""


def main(argv: list[str]) -> int:
    """Print the script.

    Args:
        argv: arguments after the command's name.

    Returns:
        0; argparse leaves with 2 when the shell is not known.
    """
    print(completion_script(make_parser().parse_args(argv).shell), end="")
    return 0


def make_parser() -> Parser:
    """The parser of `headrace completion`."""
    parser = Parser("headrace completion", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
                    description="Print what makes a shell complete commands and options.")
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell")
    return parser
