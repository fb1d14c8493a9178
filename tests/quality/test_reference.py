"""The reference of the API: every public name is on a page, and its docstring says what one has to know.

A docstring has a line of purpose. It names each argument; so may the docstring of the class, that of a call which it
names ("as `Producer.send`, awaited"), or the table of the reference's start page. It says what comes back, and when
that is None; what raises says so. Constructors of values name each field. Times, sizes and the like have their units.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any, NamedTuple

import pytest

from headrace.records import Message, message
from tools.api_reference import ALIASES, MODULES, directive, homes, is_described, public_names

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/reference/api"
TABLE = (PAGES / "index.md").read_text().split("## Arguments that mean the same everywhere")[1]
EVERYWHERE = {name for row in re.findall(r"^\| (`.*?) \|", TABLE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
OF_THE_CLASS_ITSELF = {"self", "cls"}
TWINS: dict[object, object] = {Message: message.Message}
"""Native classes hide their signatures: those of the plain twins are looked at, which have the same docstrings."""


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
                value = TWINS.get(value, value) if isinstance(value, type) else value  # some objects have no hash
                yield Described(f"{module}.{name}", value, None)
                if isinstance(value, type):
                    yield from methods(f"{module}.{name}", value)


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """What the package itself has put into a class under public names."""
    for name in sorted(set(dir(owner))):
        home = next(each for each in owner.__mro__ if name in vars(each) or each is object)
        if not name.startswith("_") and home.__module__.startswith("headrace"):
            value = inspect.getattr_static(owner, name)
            yield name, value.__func__ if isinstance(value, classmethod | staticmethod) else value


def methods(name: str, owner: type) -> Iterator[Described]:
    for attribute, value in members(owner):
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
FUNCTIONS = {each.what.__name__: each.what for each in ALL if inspect.isfunction(each.what) and each.owner is None}


def named(text: str, owner: type | None) -> Iterator[Any]:
    """What of the package a text names in backquotes."""
    for name in re.findall(r"`([\w.]+?)(?:\(\))?`", text):
        found = BY_LAST_NAMES.get(".".join(name.split(".")[-2:])) or FUNCTIONS.get(name)
        if found is None and owner is not None and "." not in name and not name.startswith("_"):
            found = getattr(owner, name, None)
        if found is not None:
            yield found


def texts(each: Described) -> list[str]:
    """The docstrings in which an argument may be named, the nearest first."""
    own = docstring(each.what)
    return [own, *map(docstring, named(own, each.owner)), docstring(each.owner) if each.owner else ""]


def sources(each: Described) -> str:
    return "\n".join(texts(each))


def test_every_public_name_has_a_line_of_purpose() -> None:
    assert len(ALL) > 500
    assert [each.name for each in ALL if not re.match(r"\S[^\n]*[.:;,\w`)]", docstring(each.what))] == []


def test_no_native_method_is_passed_over() -> None:
    assert [f"{each.name}.{name}" for each in ALL if isinstance(each.what, type) for name, value in members(each.what)
            if isinstance(value, MethodDescriptorType | BuiltinFunctionType)] == []


def test_what_stands_for_another_name_says_a_public_one() -> None:
    classes = {each.what.__name__ for each in ALL if isinstance(each.what, type)}
    standing = [(each, found[1]) for each in ALL if (found := re.match(r"(?:As|See) `([\w.]+)", docstring(each.what)))]
    assert len(standing) > 100
    assert [each.name for each, name in standing
            if name not in classes and not any(named(f"`{name}`", each.owner))] == []


def test_every_argument_is_named_where_its_meaning_is_said() -> None:
    missing = {each.name: lost for each in ALL
               if (lost := [name for name in arguments(each)
                            if name not in EVERYWHERE and not re.search(rf"\b{name}\b", sources(each))])}
    assert missing == {}


VALUES = {
    "A", "All", "An", "Each", "Every", "How", "One", "The", "This", "True", "Up", "What", "When", "Where", "Whether",
    "Which", "Who", "Brokers", "Epoch", "Id", "Seconds", "Value", "Version",
}
"""With these words begins a line of purpose that names what comes back, and orders nothing. A noun that is new is added
here; where the line begins with a verb, a section or a sentence must follow."""


def returned(each: Described) -> str:
    """The type of what comes back; empty for nothing. What a future of nothing is for is said by its class."""
    what: Any = each.what.fget if isinstance(each.what, property) else each.what
    found = "" if isinstance(what, type) else str(inspect.get_annotations(what).get("return", "not annotated"))
    futures = each.owner is not None and "one future" in re.sub(r"\s+", " ", docstring(each.owner))
    nothing = {"None", "Self", "Never", "NoReturn", *(["Future[None]"] if futures else [])}
    return "" if found.removeprefix("asyncio.") in nothing else found


def told(what: Any, owner: type | None) -> list[str]:
    """What is said of what comes back, in a docstring and in those of the calls that it stands for ("as", "see")."""
    own = docstring(what)
    stands_for = " ".join(re.findall(r"\b(?:[Aa]s|[Ss]ee) (`[\w.]+?(?:\(\))?`)", own.split("\n\n")[0]))
    return [re.sub(r"(?m)^(?:Args|Raises):\n(?:(?: .*)?\n)*(?: .*)?", "", own),
            *(text for call in named(stands_for, owner) if call is not what for text in told(call, owner))]


def says_what_comes_back(text: str, type_: str) -> bool:
    """Whether a section or a sentence is about it, or the line of purpose names it."""
    if re.search(r"(?m)^(?:Returns|Yields):\n +\S", text):
        return True
    sentences = re.split(r"(?<=[.:;])\s+", text)
    if type_.startswith("dict[") and re.search(r"Future\[(?!None\])", type_):
        return any(re.match(r"[Ff]utures by ", each) for each in sentences) and "each resolves to" in " ".join(
            text.lower().split())
    names_it = text.split()[0].strip(",;:") in VALUES and not re.match(r"(?:A|An|The) \w+ (?:is|are) ", text)
    return names_it or any(
        re.match(r"(?:Returns|Gives|Yields|The result|The future|Futures by) (?!at once|when)", each)
        for each in sentences)


RETURNING = [each for each in ALL if returned(each)]


def test_what_returns_says_what() -> None:
    assert len(RETURNING) > 500
    assert [each.name for each in RETURNING if not any(
        says_what_comes_back(text, returned(each)) for text in told(each.what, each.owner))] == []


def test_what_may_return_none_says_when() -> None:
    perhaps = [each for each in RETURNING if "| None" in returned(each)]
    assert len(perhaps) > 50
    assert [each.name for each in perhaps
            if not any(re.search(r"\bNone\b", text) for text in told(each.what, each.owner))] == []


MEASURED = {"age", "bytes", "delay", "duration", "interval", "lag", "latency", "lifetime", "ms", "period", "s", "size",
            "timeout", "timestamp"}
UNITS = {"ms": "milliseconds", "s": r"(?<!milli)seconds", "bytes": "bytes", "timeout": r"(?<!milli)seconds"}
"""By the last word of a name, the unit that its text must have; others may have any."""
ANY_UNIT = r"seconds|bytes|records|members|how many"


def meaning(name: str, each: Described) -> str:
    """What is said of an argument or field: its entry in the nearest docstring that has one, else in the table."""
    for text in texts(each):
        entry = re.search(rf"(?m)^( +)(?:\w+, )*{name}(?:, \w+)*: (.*(?:\n\1 +.*)*)", text)
        if entry:
            return entry[2]
    row = re.search(rf"(?m)^\| [^|\n]*`{name}`[^|\n]*\|(.*)\|", TABLE)
    return row[1] if row else ""


def test_what_is_measured_has_its_unit() -> None:
    measured = [(each, name) for each in ALL for name in arguments(each)
                if MEASURED & set(name.split("_")) and not name.endswith("_type")]
    assert len(measured) > 200
    silent = []
    for each, name in measured:
        said, unit = meaning(name, each), UNITS.get(name.split("_")[-1], ANY_UNIT)
        times = re.search(r"\bTimes are (?:milli)?seconds", docstring(each.what))
        if times and not {"bytes", "size"} & set(name.split("_")):
            said += times[0]
        if not re.search(rf"{unit}|without effect", said):
            silent.append(f"{each.name}: {name}")
    assert silent == []


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
    inside = {"arguments", "compiled", "interpreter", "error_codes", "slotted", "states"}
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
