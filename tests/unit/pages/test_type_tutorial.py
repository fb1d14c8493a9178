"""The script that types a tutorial: it types as a person does, and sees when a page says something else."""

import sys
from pathlib import Path

import pytest

from tools import type_tutorial
from tools.type_tutorial import PAGE, follow, statements

PROGRAM = """\
import os

def double(number):
    twice = 2 * number

    return twice

print(double(21))
with open(os.devnull):
    pass
print("end")
"""


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """This Python instead of a new one, and nothing installed."""
    monkeypatch.setattr(type_tutorial, "environment", lambda directory: Path(sys.executable))


def test_blocks_end_with_an_empty_line_and_have_none_within() -> None:
    typed = list(statements(PROGRAM))
    assert typed[1] == "def double(number):\n    twice = 2 * number\n    return twice\n"
    assert typed[2] == "print(double(21))"
    assert len(typed) == 5


@pytest.mark.usefixtures("no_environment")
@pytest.mark.parametrize(("says", "status"), [("42\nend\n", 0), ("43\nend\n", 1), ("42\n", 1)])
def test_what_the_terminal_shows_is_compared_whole(
    says: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert follow([("python", PROGRAM), ("text", says)], tmp_path, "") == status
    assert ">>> print(double(21))" in capsys.readouterr().out


def test_the_page_that_it_types_is_there() -> None:
    assert "pip install" in PAGE.read_text()
