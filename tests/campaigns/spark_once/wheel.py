"""A Python for a cluster that has the wheel, what the wheel needs, and nothing of this folder."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[3]
_SOURCES: Final = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in", "src")
_WHEEL: Final = "HEADRACE_ONCE_WHEEL"
"""In the environment: a wheel of these sources that was built before, as by `make wheel`."""
_NO_PRODUCTS: Final = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")


@functools.cache
def wheel_python() -> Path:
    """Build the wheel and install it into an environment of its own, once in a process.

    Returns:
        The environment's interpreter; all is removed when this process ends.

    Raises:
        subprocess.CalledProcessError: the wheel cannot be built, or what it needs cannot be had.
    """
    home = Path(tempfile.mkdtemp(prefix="headrace-wheel-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    venv.create(home / "python", with_pip=False)
    python = home / "python/bin/python"
    _pip("--python", str(python), "install", f"{os.environ.get(_WHEEL) or _built(home)}[arrow]")
    return python


def _built(home: Path) -> Path:
    """The wheel of these sources."""
    tree = home / "tree"
    tree.mkdir()
    for name in _SOURCES:  # a copy: building leaves things behind
        source = _ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=_NO_PRODUCTS)
        else:
            shutil.copy(source, tree)
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(home), str(tree))
    [wheel] = home.glob("headrace-*.whl")
    return wheel


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments],
                   check=True, stdin=subprocess.DEVNULL,
                   env={**os.environ, "PYTHONPATH": ""})  # what lies there would count as installed
