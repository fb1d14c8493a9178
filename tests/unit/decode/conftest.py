"""Running `headrace decode` inside of the test's process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace.cli.decode import main


class Told(NamedTuple):
    """What a run said, and its exit status."""

    status: int
    text: str

    def objects(self) -> list[dict[str, Any]]:
        """The lines of a run with --json."""
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def decode(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Told]:
    """Decode bytes or a path; further arguments are options."""

    def run(content: bytes | str | Path, *options: str, name: str = "input") -> Told:
        if isinstance(content, Path):
            path = content
        else:
            path = tmp_path / name
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        status = main([*options, str(path)])
        captured = capsys.readouterr()
        assert captured.err == ""
        return Told(status, captured.out)

    return run
