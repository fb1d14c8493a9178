"""What is installed: whether the native modules run, and which extras are missing."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from typing import Final

from headrace import __version__

__all__ = ["EXTRAS", "version_lines"]

EXTRAS: Final = {
    "arrow": ("pyarrow",), "avro": ("httpx2", "fastavro"), "cli": ("rich",), "gssapi": ("gssapi",),
    "json": ("httpx2", "jsonschema_rs"), "otel": ("opentelemetry",), "protobuf": ("httpx2", "google.protobuf"),
    "registry": ("httpx2",), "spark": ("httpx2", "pyspark", "pyarrow", "rich", "matplotlib"), "testing": ("pytest",),
    "tls": ("cryptography",),
}
"""The modules that each extra of the package brings."""
_NATIVE: Final = ("headrace.wire._topic_rows", "headrace.records._batch", "headrace.records._joined_rows",
                  "headrace.buffers._buffer", "headrace.schemas.columns._avro_columns",
                  "headrace.schemas.columns._protobuf_columns", "headrace.schemas.columns._json_columns")


def version_lines() -> list[str]:
    """The lines of `headrace --version`; the first one is the name and the version."""
    missing = [f"{extra} ({', '.join(absent)})" for extra, modules in EXTRAS.items()
               if (absent := [name for name in modules if not _is_there(name)])]
    extras = f"not installed: {', '.join(missing)}; pip install 'headrace[EXTRA]' brings one" if missing else (
        "all are installed")
    return [f"headrace {__version__}", f"Python {platform.python_version()} on {platform.system()} "
            f"{platform.machine()}", f"native modules: {_native()}", f"extras: {extras}"]


def _native() -> str:
    """Whether they run, and if not, why."""
    if os.environ.get("HEADRACE_PURE") == "1":
        return "not used, for HEADRACE_PURE=1 says so: plain Python runs"
    absent = [name.rpartition(".")[2] for name in _NATIVE if not _is_there(name)]
    if not absent:
        return "run"
    return (f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} missing: plain Python runs in "
            f"{'its' if len(absent) == 1 else 'their'} place, which is slower")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
