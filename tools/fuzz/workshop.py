"""Sets up what `python -m tests.campaigns.fuzz` needs: needs clang, and PyPI for the first time.

The native modules are compiled with AddressSanitizer, UndefinedBehaviorSanitizer and libFuzzer's coverage. Its runtime
is the library that Atheris brings, which must be loaded before Python is (`LD_PRELOAD`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Workshop", "prepare"]

ROOT = Path(__file__).parents[2]
_PACKAGES = ("atheris==3.0.0", "cython>=3.1", "cramjam>=2.10", "pytest>=8", "hypothesis>=6.100")
_SOURCES = ROOT / "src"
_MODULES = ("headrace.records._batch", "headrace.records._joined_rows", "headrace.buffers._buffer",
            "headrace.wire._topic_rows")
_FLAGS = (
    # No -fwrapv, with which the ordinary build is safe from it: a signed number that overflows is a finding.
    "-shared", "-fPIC", "-g", "-O1", "-fno-omit-frame-pointer", "-fno-strict-aliasing",
    "-fsanitize=address,undefined,fuzzer-no-link", "-fno-sanitize-recover=undefined",
    # Cython's own helpers call through pointers of other types, as all of CPython does, and add 0 to NULL.
    "-fno-sanitize=function,pointer-overflow",
)


class Workshop(NamedTuple):
    """Where things are."""

    python: Path  # of the environment
    runtime: Path  # the sanitizers and libFuzzer, to be loaded first
    native: Path  # the folder of the native modules


def prepare(cache: Path = ROOT / ".cache/fuzz") -> Workshop:
    """Make what is missing or older than its sources.

    Raises:
        RuntimeError: there is no clang, or Atheris has no build for this Python.
    """
    python = cache / "venv/bin/python"
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(python.parents[1]))
    packages = cache / "venv/lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    runtime = packages / "asan_with_fuzzer.so"
    if not runtime.exists():
        _run(str(python), "-m", "pip", "install", "--quiet", *_PACKAGES)
    if not runtime.exists():
        raise RuntimeError("Atheris was installed without asan_with_fuzzer.so: use a Python for which it has a wheel")
    native = cache / "build"
    sources = [path for kind in ("pyx", "pxd", "h") for path in _SOURCES.rglob(f"_*.{kind}")]
    changed = max(path.stat().st_mtime for path in [*sources, Path(__file__)])
    for module in _MODULES:
        built = native / f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
        if not built.exists() or built.stat().st_mtime < changed:
            _build(python, module, built)
    return Workshop(python, runtime, native)


def _build(python: Path, module: str, built: Path) -> None:
    clang = os.environ.get("CC", "clang")
    if shutil.which(clang) is None:
        raise RuntimeError(f"{clang} is needed to build the native modules with sanitizers: install it, or set CC")
    built.parent.mkdir(parents=True, exist_ok=True)
    written = (_SOURCES / module.replace(".", "/")).with_suffix(".pyx")
    source = built.parent / f"{module}.c"
    _run(str(python), "-m", "cython", "-3", f"-I{_SOURCES}", str(written), "-o", str(source))
    include = sysconfig.get_path("include")
    _run(clang, *_FLAGS, f"-I{include}", f"-I{written.parent}", str(source), "-o", str(built))


def _run(*command: str) -> None:
    print("+", " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, check=True)
