"""What is published is one thing: versions of Python, of the package, native sources and the tools that name them."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import headrace
from tools.wheels.pythons import VERSIONS, Python, ask

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_wheels_are_built_for_each_python_that_the_package_names() -> None:
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    built = PROJECT["tool"]["cibuildwheel"]["build"].split()
    assert tuple(named) == VERSIONS
    assert built == [*(f"cp{version.replace('.', '')}-*" for version in named), "cp314t-*"]
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


def test_a_wheel_without_its_native_modules_cannot_be_built() -> None:
    assert PROJECT["tool"]["cibuildwheel"]["environment"]["HEADRACE_NATIVE"] == "require"
    assert "tools/wheels/smoke.py native" in PROJECT["tool"]["cibuildwheel"]["test-command"]


def test_the_version_stands_in_one_way_everywhere() -> None:
    assert PROJECT["project"]["version"] == headrace.__version__ == headrace.version()
    assert f"## {headrace.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_native_module_is_built() -> None:
    sources = {path.stem for path in (ROOT / "src").rglob("*.pyx")}
    recipe = (ROOT / "setup.py").read_text()
    assert len(sources) == 8
    assert [name for name in sorted(sources) if name not in recipe] == []


def test_an_interpreter_says_which_it_is() -> None:
    here = ask(Path(sys.executable))
    assert here is not None
    assert here.minor.removesuffix("t") == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert Python("3.14.0t", Path("python")).minor == "3.14t"
    assert ask(ROOT / "no-python") is None
