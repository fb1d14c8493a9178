"""What the package promises: `python -m tools.public_api` writes `docs/reference/public-api.txt`.

Every public module, its names, their signatures, and the members of its classes. A line that changes or goes is a
change that programs may see: `tests/quality/test_public_api.py` fails until the listing was written anew, so nobody
does it by accident. What is new is written down in the same way. `--check` says what differs.

Objects of the plain twin are listed: native ones have the same names and hide their signatures.
"""

from __future__ import annotations

import argparse
import difflib
import enum
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.api_reference import ALIASES
from tools.api_reference import MODULES as DESCRIBED

PAGE = Path(__file__).parents[1] / "docs/reference/public-api.txt"
MODULES = sorted((
    *DESCRIBED, *ALIASES, "headrace.avro.cached_schema_registry_client", "headrace.avro.error", "headrace.avro.load",
    "headrace.avro.serializer", "headrace.avro.serializer.message_serializer", "headrace.frames"))
"""What programs may import: modules with a page, and others under which names of theirs are found. Everything else may
change in any release."""
_HEAD = """# Made by `python -m tools.public_api`; docs/reference/stability.md says what is promised.
"""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_OPERATORS = ("__await__", "__aenter__", "__aiter__", "__call__", "__contains__", "__enter__", "__getitem__",
              "__iter__", "__len__", "__arrow_c_array__", "__arrow_c_schema__", "__arrow_c_stream__")


def listing() -> str:
    """The listing as it must be, from a process that runs the plain twin."""
    done = subprocess.run([sys.executable, "-m", "tools.public_api", "--print"], capture_output=True, text=True,
                          check=True, cwd=PAGE.parents[2], env={**os.environ, "HEADRACE_PURE": "1"})
    return done.stdout


def lines() -> Iterator[str]:
    """One line for each name."""
    described: set[int] = set()
    for module in MODULES:
        yield ""
        yield f"[{module}]"
        owner = importlib.import_module(module)
        for name in sorted(getattr(owner, "__all__", ())):
            found = getattr(owner, name)
            yield from _described(name, found, described)


def _described(name: str, found: Any, described: set[int]) -> Iterator[str]:
    if inspect.isclass(found):
        if id(found) in described:  # under another of its names
            yield f"{name} = class {found.__module__}.{found.__qualname__}"
            return
        described.add(id(found))
        yield f"{name}{_class_signature(found)}"
        yield from (f"{name}.{line}" for line in _members(found))
    elif callable(found):
        yield f"{name}{_signature(found)}"
    else:
        yield f"{name}: {type(found).__name__}"


def _class_signature(found: type) -> str:
    bases = [base.__name__ for base in found.__bases__ if base is not object]
    inherits = f" <- {', '.join(bases)}" if bases else ""
    if issubclass(found, enum.Enum):
        return inherits
    fields = getattr(found, "__match_args__", None)
    if fields is not None:
        return f"({', '.join(fields)}){inherits}"
    if "headrace" not in getattr(found.__init__, "__module__", ""):
        return inherits
    return _signature(found) + inherits


class _Text(str):
    """An annotation that is shown as it was written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(found: Any) -> str:
    try:
        whole = inspect.signature(found)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [each.replace(annotation=_shown(each.annotation)) for each in whole.parameters.values()]
    shown = whole.replace(parameters=parameters, return_annotation=_shown(whole.return_annotation))
    return _ADDRESS.sub("", str(shown))


def _shown(annotation: Any) -> Any:
    return _Text(annotation) if isinstance(annotation, str) else annotation


def _members(found: type) -> Iterator[str]:
    """Public members that the package itself gives; those of Python's classes are Python's."""
    names = {name for owner in found.__mro__ if owner.__module__.startswith("headrace") for name in vars(owner)
             if not name.startswith("_") or name in _OPERATORS}
    for name in sorted(names):
        yield _member(name, inspect.getattr_static(found, name))


def _member(name: str, member: Any) -> str:
    if isinstance(member, (staticmethod, classmethod)):
        return f"{name}{_signature(member.__func__)} {type(member).__name__}"
    if isinstance(member, property):
        return f"{name} property"
    if inspect.isfunction(member):
        return f"{'async ' if inspect.iscoroutinefunction(member) else ''}{name}{_signature(member)}"
    if isinstance(member, enum.Enum):
        return f"{name} = {member.value!r}"
    return name


def compared(written: str, now: str) -> list[str]:
    """Lines that went, with `-`, and that came, with `+`."""
    return [line for line in difflib.unified_diff(written.splitlines(), now.splitlines(), lineterm="", n=0)
            if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def main(argv: list[str]) -> int:
    """Write the listing, or compare it; 1 when it differs."""
    parser = argparse.ArgumentParser("python -m tools.public_api", description=__doc__)
    parser.add_argument("--check", action="store_true", help="say what differs, and write nothing")
    parser.add_argument("--print", action="store_true", help="print the listing of this process's twin")
    arguments = parser.parse_args(argv)
    if arguments.print:
        print(_HEAD + "\n".join(lines()))
        return 0
    now = listing()
    if arguments.check:
        changes = compared(PAGE.read_text(), now)
        print("\n".join(changes) or "nothing changed")
        return 1 if changes else 0
    PAGE.write_text(now)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
