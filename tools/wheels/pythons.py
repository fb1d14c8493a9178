"""Which Pythons are there, and environments of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Python", "ask", "found", "inside", "venv"]

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""Those that are published for."""
_ASK = ("import sys, sysconfig; print('%d.%d.%d' % sys.version_info[:3], "
        "'t' if sysconfig.get_config_var('Py_GIL_DISABLED') else '', sep='')")


@dataclass(frozen=True, slots=True, order=True)
class Python:
    """An interpreter.

    Attributes:
        version: as `3.14.0`, with a `t` behind it when it is free-threaded.
        path: the executable.
    """

    version: str
    path: Path

    @property
    def free_threaded(self) -> bool:
        """It can run without the GIL."""
        return self.version.endswith("t")

    @property
    def minor(self) -> str:
        """As `3.14` or `3.14t`."""
        major, minor, _ = self.version.split(".")
        return f"{major}.{minor}{'t' if self.free_threaded else ''}"


def found() -> list[Python]:
    """One interpreter of each version that is on the PATH or that pyenv has; in order."""
    known: dict[str, Python] = {}
    for path in _candidates():
        python = ask(path)
        if python is not None and python.minor.removesuffix("t") in VERSIONS:
            known.setdefault(python.minor, python)
    return sorted(known.values(), key=lambda each: (int(each.minor.removesuffix("t").split(".")[1]), each.minor))


def _candidates() -> Iterator[Path]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from sorted(root.glob("3.*/bin/python3"), reverse=True)
    for version in VERSIONS:
        for name in (f"python{version}", f"python{version}t"):
            path = shutil.which(name)
            if path:
                yield Path(path)


def ask(path: Path) -> Python | None:
    """The interpreter behind a path; None where there is none that runs."""
    try:
        done = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    return Python(done.stdout.strip(), path) if done.returncode == 0 else None


def venv(python: Python, folder: Path, *options: str) -> Path:
    """Make a fresh environment; returns its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python.path, "-m", "venv", *options, folder], check=True)
    return inside(folder)


def inside(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
