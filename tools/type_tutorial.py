"""Type a tutorial on a clean machine: `python -m tools.type_tutorial [PAGE] [--package SPEC] [--until WORDS]`.

Makes an environment of its own, installs what the page says (`--package` instead of `headrace`: a wheel, or this
repository), starts Python in a terminal, types each program line by line, and compares what the terminal shows with
what the page says. It is what a reader does, so nothing of the tests is there: no test runner, no development packages.
"""

from __future__ import annotations

import argparse
import ast
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import textwrap
import time
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/tutorial/first-steps.md"
PATIENCE_S = 180.0
PROMPT = "\r\n>>> "


def main(arguments: list[str] | None = None) -> int:
    """Run it.

    Returns:
        0 when the terminal showed all that the page says, else 1.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.type_tutorial", description=__doc__)
    parser.add_argument("page", nargs="?", type=Path, default=PAGE, help="a page with sh, python and text blocks")
    parser.add_argument("--package", default=str(ROOT), help="what pip installs as headrace (default: this repository)")
    parser.add_argument("--until", default="", help="stop at the heading that has these words")
    given = parser.parse_args(arguments)
    text = given.page.read_text()
    if given.until:
        text = re.split(rf"^## .*{re.escape(given.until)}", text, flags=re.MULTILINE)[0]
    with tempfile.TemporaryDirectory() as directory:
        return follow(re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL), Path(directory), given.package)


def follow(blocks: list[tuple[str, str]], directory: Path, package: str) -> int:
    """Do what the blocks say, in a new environment in a directory.

    Args:
        blocks: language and text of each.
        directory: where the reader is.
        package: what is installed as headrace.

    Returns:
        0 when all was as the page says, else 1.
    """
    python = environment(directory)
    for kind, content in blocks:
        if kind == "sh":
            install(python, content, package)
    terminal, shown = Terminal(python, directory), ""
    try:
        for kind, content in blocks:
            if kind == "python":
                shown = terminal.type(content)
            elif kind == "text" and lines(content) != lines(shown):
                print(f"\n--- the page says\n{content}\n--- the terminal shows\n{shown}")
                return 1
    finally:
        terminal.close()
    print(f"\nall {sum(kind == 'python' for kind, _ in blocks)} programs did what the page says")
    return 0


def environment(directory: Path) -> Path:
    """Make an environment with pip and nothing else.

    Returns:
        Its Python.
    """
    venv.create(directory / "venv", with_pip=True)
    return directory / "venv" / "bin" / "python"


def install(python: Path, commands: str, package: str) -> None:
    """Carry out the `pip install` lines of a block, with a package in the place of the one of that name."""
    for line in commands.splitlines():
        words = [word.strip("'\"") for word in line.split("#")[0].split()]
        if words[:2] == ["pip", "install"]:
            print("$", " ".join(words), flush=True)
            wanted = [re.sub(r"^headrace", lambda _: package, word) for word in words[2:]]
            subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)


def lines(shown: str) -> list[str]:
    """The lines of a text without those that a terminal, or a library's log, puts between them."""
    return [line.rstrip() for line in shown.replace("\r", "").splitlines()
            if line.strip() and not re.match(r"(WARNING|Using|Setting|To adjust|\d\d/\d\d/\d\d |\.\.\. ?$)", line)]


def statements(program: str) -> Iterator[str]:
    """The statements of a program, each as one types it: without empty lines within."""
    source = program.splitlines()
    for node in ast.parse(program).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        typed = [line for line in source[first - 1:node.end_lineno] if line.strip()]
        yield "\n".join(typed) + ("\n" if len(typed) > 1 and typed[-1][:1].isspace() else "")


class Terminal:
    """Python in a terminal, and somebody who types.

    Args:
        python: the interpreter.
        directory: where it is started.
    """

    def __init__(self, python: Path, directory: Path) -> None:
        here = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSTARTUP")}
        command = [str(python), "-q"]
        self._master, self._slave = pty.openpty()
        self._process = subprocess.Popen(
            command, cwd=directory, stdin=self._slave, stdout=self._slave, stderr=subprocess.DEVNULL,
            env={**here, "TERM": "dumb", "PYTHON_BASIC_REPL": "1", "COLUMNS": "1000"}, start_new_session=True)
        self._seen = "\r\n"
        self._until_prompt()

    def type(self, program: str) -> str:
        """Type a program, statement by statement.

        Returns:
            What it printed.
        """
        shown = ""
        for statement in statements(program):
            print(textwrap.indent(statement.rstrip(), ">>> "), flush=True)
            os.write(self._master, f"{statement}\n".encode())
            shown += self._until_prompt().split("\n", statement.count("\n") + 1)[-1]
        print(shown.replace("\r", ""), end="", flush=True)
        return shown

    def _until_prompt(self) -> str:
        end = time.monotonic() + PATIENCE_S
        while not self._seen.endswith(PROMPT):
            if not select.select([self._master], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"nothing more was shown in {PATIENCE_S:g} s after: {self._seen[-500:]}")
            self._seen += os.read(self._master, 65536).decode(errors="replace")
        shown, self._seen = self._seen, ""
        return shown.removesuffix(PROMPT[2:])

    def close(self) -> None:
        """Leave Python, and end it if it stays."""
        os.write(self._master, b"\nexit()\n")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._master)
        os.close(self._slave)


if __name__ == "__main__":
    sys.exit(main())
