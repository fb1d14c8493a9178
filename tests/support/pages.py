"""Pages of the documents, done as they are written: programs, files and commands in order, and what they print."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from headrace.cli import main

DOCS = Path(__file__).parents[2] / "docs"


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a page: their language and their text."""
    return re.findall(r"```(\w+)\n(.*?)```", page.read_text(), re.DOTALL)


def programs_of(page: Path) -> list[str]:
    """The Python programs of a page."""
    return [text for kind, text in blocks_of(page) if kind == "python"]


class Reader:
    """Who follows the page: one Python session, one directory, one terminal.

    All that a program prints stands under it; of what commands print, some lines.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.told = ""
        self.whole = True

    def follow(self, blocks: list[tuple[str, str]]) -> None:
        """Do what stands in the blocks; a broker that the page has started is stopped whatever happens."""
        try:
            for kind, content in blocks:
                getattr(self, kind)(content)
        finally:
            if "broker" in self.names:
                self.names["broker"].stop()

    def python(self, program: str) -> None:
        # Relative paths are of the directory in which Spark was started, and here it runs already.
        program = program.replace('"checkpoints/', f'"{Path.cwd()}/checkpoints/')
        exec(compile(program, "page", "exec"), self.names)
        self.told, self.whole = self.capsys.readouterr().out, True

    def text(self, printed: str) -> None:
        assert printed.strip() == self.told.strip() if self.whole else printed in self.told

    def toml(self, content: str) -> None:
        name = re.match(r"# (\S+)\n", content)
        assert name
        Path(name[1]).write_text(content)

    def sh(self, lines: str) -> None:
        self.told, self.whole = "", False
        for line in lines.splitlines():
            words = shlex.split(line.replace("localhost:9092", self.names["broker"].bootstrap_servers)
                                if "broker" in self.names else line, comments=True)
            if words[:1] == ["headrace"]:
                assert main([*words[1:], "--directory", str(Path.cwd())]) == 0
                self.told += self.capsys.readouterr().out


class Enough(Exception):
    """What the programs of a page should do is done: ends those that go on for ever."""


def run_program(program: str, names: dict[str, Any]) -> None:
    """Run a program of a page, in which `await` may stand outside of functions, until its end or `Enough`."""
    code = compile(program, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def awaited() -> None:
        if "on_loop" in names:
            names.update(await names["on_loop"]())
        await eval(code, names)

    try:
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(awaited())
        else:
            exec(code, names)
    except Enough:
        pass
