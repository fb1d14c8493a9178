"""The page about testing: its tests run, as a user's would; and it names every fixture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.testing import plugin

PAGE = (Path(__file__).parents[3] / "docs/how-to/testing.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

pytest_plugins = "pytester"


def test_every_test_of_the_page_passes(pytester: pytest.Pytester) -> None:
    for number, program in enumerate(PROGRAMS):
        (pytester.path / f"test_page_{number}.py").write_text(program)
    tests = sum(len(re.findall(r"^def test_", program, re.MULTILINE)) for program in PROGRAMS)
    assert tests >= 6
    pytester.runpytest("-p", "no:randomly", "-p", "no:cacheprovider").assert_outcomes(passed=tests)


def test_the_page_names_every_fixture() -> None:
    assert [name for name in plugin.__all__ if f"`{name}`" not in PAGE] == []
