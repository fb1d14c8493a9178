"""The reference of the API: every public name is on a page, and its docstring says what one has to know.

A docstring has a line of purpose. It names each argument; so may the docstring of the class, that of a call which it
names ("as `Producer.send`, awaited"), or the table of the reference's start page. What raises says so. Constructors of
values name each field.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tools.api_reference import ALIASES, MODULES, directive, homes, is_described, public_names

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/reference/api"
TABLE = (PAGES / "index.md").read_text().split("## Arguments that mean the same everywhere")[1]
EVERYWHERE = {name for row in re.findall(r"^\| (`.*?) \|", TABLE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
OF_THE_CLASS_ITSELF = {"self", "cls"}


class Described(NamedTuple):
    """A class, function or method, and the class that it belongs to."""

    name: str
    what: Any
    owner: type | None


def described() -> Iterator[Described]:
    """All that the reference describes, each once."""
    for module in MODULES:
        for name, value in public_names(module).items():
            if is_described(value) and homes()[module, name] == module:
                yield Described(f"{module}.{name}", value, None)
                if isinstance(value, type):
                    yield from methods(f"{module}.{name}", value)


def methods(name: str, owner: type) -> Iterator[Described]:
    for attribute in sorted(set(dir(owner))):
        home = next(each for each in owner.__mro__ if attribute in vars(each) or each is object)
        if not attribute.startswith("_") and home.__module__.startswith("headrace"):
            value = inspect.getattr_static(owner, attribute)
            value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if inspect.isfunction(value) or isinstance(value, property):
                yield Described(f"{name}.{attribute}", value, owner)


ALL = list(described())


def docstring(what: Any) -> str:
    return inspect.getdoc(what) or ""


def own_source(what: type) -> str:
    """The text of a class: constructors of values are made from its fields, some of them when they are first used."""
    try:
        return inspect.getsource(what)
    except (OSError, TypeError):  # native
        return "__init__"


def arguments(each: Described) -> list[str]:
    if isinstance(each.what, property) or (isinstance(each.what, type) and issubclass(each.what, Enum | Exception)):
        return []
    if isinstance(each.what, type) and "__annotations__" in vars(each.what) and "__init__" not in own_source(each.what):
        return [name for name in vars(each.what)["__annotations__"]
                if not name.startswith("_") and not name.isupper()]
    try:
        found = inspect.signature(each.what).parameters.values()
    except (TypeError, ValueError):  # native
        return []
    return [one.name for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
            and one.name not in OF_THE_CLASS_ITSELF and not one.name.startswith("_")]


BY_NAME = {each.name.split(".", 1)[1]: each.what for each in ALL}
BY_LAST_NAMES = {".".join(name.split(".")[-2:]): what for name, what in BY_NAME.items()}


def sources(each: Described) -> str:
    """All texts in which an argument may be named."""
    own = docstring(each.what)
    texts = [own, docstring(each.owner) if each.owner else ""]
    for named in re.findall(r"`([\w.]+?)(?:\(\))?`", own):
        other = BY_LAST_NAMES.get(".".join(named.split(".")[-2:])) or BY_LAST_NAMES.get(f"{named}")
        if other is None and each.owner is not None:
            other = getattr(each.owner, named, None) if "." not in named else None
        texts.append(docstring(other) if other is not None else "")
    return "\n".join(texts)


def test_every_public_name_has_a_line_of_purpose() -> None:
    assert len(ALL) > 500
    assert [each.name for each in ALL if not re.match(r"\S[^\n]*[.:;,\w`)]", docstring(each.what))] == []


def test_every_argument_is_named_where_its_meaning_is_said() -> None:
    missing = {each.name: lost for each in ALL
               if (lost := [name for name in arguments(each)
                            if name not in EVERYWHERE and not re.search(rf"\b{name}\b", sources(each))])}
    assert missing == {}


def test_what_raises_says_so() -> None:
    silent = []
    for each in ALL:
        if inspect.isfunction(each.what):
            try:
                body = ast.parse(textwrap.dedent(inspect.getsource(each.what))).body[0]
            except (OSError, SyntaxError):
                continue
            raises = any(isinstance(node, ast.Raise) and node.exc is not None
                         and ast.unparse(node.exc) != "NotImplementedError" for node in ast.walk(body))
            if raises and not re.search(r"^Raises:|[Rr]aise|refuse", docstring(each.what), re.MULTILINE):
                silent.append(each.name)
    assert silent == []


def test_every_public_module_is_on_a_page() -> None:
    pages = {path.stem: path.read_text() for path in PAGES.glob("*.rst")}
    for module, page in MODULES.items():
        assert re.search(rf"^\.\. automodule:: {re.escape(module)}$", pages[page], re.MULTILINE), module
    package = ROOT / "src/headrace"
    inside = {"arguments", "collector", "error_codes", "security", "slotted", "states"}
    files = {f"headrace.{path.stem}" for path in package.glob("*.py") if path.stem not in {"__init__", *inside}}
    assert files <= {*MODULES, *ALIASES}


@pytest.mark.parametrize("module", ALIASES)
def test_modules_that_are_no_pages_have_only_names_of_others(module: str) -> None:
    pages = {id(value) for each in MODULES for value in public_names(each).values()}
    assert [name for name, value in public_names(module).items() if id(value) not in pages] == []


def test_a_name_of_several_modules_is_described_once() -> None:
    assert "KafkaException" in directive("headrace").split(":exclude-members:")[1].splitlines()[0]
    assert ":exclude-members:" not in directive("headrace.errors")
    assert "``OFFSET_BEGINNING`` = ``-2``" in directive("headrace")
