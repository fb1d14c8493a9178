"""For libraries that import confluent_kafka: they get headrace under that name.

    import headrace.as_confluent_kafka

    headrace.as_confluent_kafka.install()  # in front of the first import of confluent_kafka

or, without a change to the program:

    python -m headrace.as_confluent_kafka program.py arguments
    python -m headrace.as_confluent_kafka -m module arguments

`confluent_kafka.admin` is `headrace.admin` then, and so on for each module; confluent_kafka need not be installed, and
is not used if it is. Programs of one's own change their imports instead. Read next: `headrace.client.peer_modules`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

__all__ = ["install"]

_PEER: Final = "confluent_kafka"
_API: Final = "2.16.1"
"""Whose API headrace has: libraries ask for it, to know what they may call."""
_ON_PATH: Final = str(Path(__file__).parent / "on_path")


class _Finder:
    """Finds confluent_kafka and its modules: an `importlib.abc.MetaPathFinder`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """What the import system wants to know of a module."""
        if name.partition(".")[0] != _PEER:
            return None
        own = f"headrace{name.removeprefix(_PEER)}"
        found = find_spec(own)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}: headrace stands in for confluent_kafka and has no "
                                      f"{own}", name=name)
        return ModuleSpec(name, _Loader(own), is_package=found.submodule_search_locations is not None)  # type: ignore[arg-type]


class _Loader:
    """Gives a module that is there, as it is: an `importlib.abc.Loader`.

    Args:
        own: its name.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself."""
        module = import_module(self._own)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It was run already; the import system has given it another description meanwhile."""
        module.__spec__ = self._spec


def install() -> None:
    """Let `import confluent_kafka` give headrace, in this process and in those that multiprocessing starts from now on.

    Doing so twice does no harm.

    Raises:
        ImportError: confluent_kafka was imported before: what has its names would go on with it.
    """
    there = sys.modules.get(_PEER)
    if there is not None and there is not import_module("headrace"):
        raise ImportError(f"{_PEER} is imported already: call headrace.as_confluent_kafka.install() in front of the "
                          "first import of it, or of a library that imports it", name=_PEER)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    vars(import_module("headrace"))["__version__"] = _API
    if _ON_PATH not in sys.path:
        sys.path.insert(1, _ON_PATH)  # the first one is the program's own folder
