"""What a reader meets: documented names, short files, full but not crowded folders, tests of each module, citations."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/headrace"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TABLES = {"error_codes.py"}
TESTED = ("machines", "net", "wire", "records", "buffers", "client", "schemas")
"""Layers in which every module has a test file of its own name."""
TESTED_WHOLE = "schemas/columns"
"""A room whose modules are parts of one codec for each format; codecs are tested whole, beside other libraries."""
MESSAGES = "messages"
"""Structures alone: `test_wire_kafka_schemas.py` and `test_wire_java.py` compare each with Kafka's own."""
NOT_PRIVATE = {"_replace", "_asdict", "_fields", "_make", "_exit", "_getframe"}
"""Public names of the standard library."""


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT / "src"))


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "no module docstring"


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_every_public_function_and_class_has_a_docstring(path: Path) -> None:
    missing = []

    def visit(node: ast.AST, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if child.name.startswith("_"):
                    continue
                overloads = {ast.unparse(d) for d in child.decorator_list}
                if not ast.get_docstring(child) and not overloads & {"overload", "override"}:
                    missing.append(f"{owner}{child.name}:{child.lineno}")
                if isinstance(child, ast.ClassDef):
                    visit(child, f"{owner}{child.name}.")

    visit(ast.parse(path.read_text()), "")
    assert not missing


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_no_file_is_longer_than_650_lines(path: Path) -> None:
    assert path.name in TABLES or len(path.read_text().splitlines()) <= 650


def test_no_folder_holds_more_than_fifteen_modules() -> None:
    held = Counter(path.parent for path in SOURCES if path.name != "__init__.py")
    assert {str(folder.relative_to(PACKAGE)): count for folder, count in held.items() if count > 15} == {}


def test_a_file_name_occurs_once_in_a_layer() -> None:
    found = Counter((path.relative_to(PACKAGE).parts[0], path.name) for path in SOURCES
                    if PACKAGE in path.parents and path.name not in {"__init__.py", "__main__.py"})
    assert [each for each, count in found.items() if count > 1] == []


@pytest.mark.parametrize("layer", TESTED)
def test_every_module_has_a_test_file_of_its_own_name_in_the_same_room(layer: str) -> None:
    modules = [path.relative_to(PACKAGE) for path in sorted((PACKAGE / layer).rglob("*.py"))
               if not path.name.startswith("__") and path.parent.parent.name != MESSAGES
               and TESTED_WHOLE not in path.as_posix()]
    assert modules
    assert [str(module) for module in modules if not names_in(own_tests(module))] == []


def own_tests(module: Path) -> Path:
    return ROOT / "tests/unit" / module.with_name(f"test_{module.name.lstrip('_')}")


def names_in(path: Path) -> list[str]:
    return re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE) if path.exists() else []


def test_a_module_without_tests_of_its_own_is_found() -> None:
    assert names_in(own_tests(Path("net/no_such_module.py"))) == []
    assert names_in(own_tests(Path("net/driver.py"))) != []
    assert own_tests(Path("machines/cluster/sasl/scram.py")) == ROOT / "tests/unit/machines/cluster/sasl/test_scram.py"


def test_a_public_class_name_occurs_once_in_the_package() -> None:
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, set()).add(ids(path))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def foreign_private_names(tree: ast.Module) -> set[str]:
    """Private names that a module reads, or imports, and does not define. `KafkaError._STATE` and others are public."""
    own, used = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            own.add(node.value)  # `__slots__`
        elif isinstance(node, ast.ImportFrom):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if owner in ("self", "cls"):
                own |= {node.attr} if isinstance(node.ctx, ast.Store) else set()
            elif owner not in ("KafkaError", "ErrorCodes"):
                used.add(node.attr)
    private = {name for name in used if name.startswith("_") and not name.startswith("__")}
    return private - own - NOT_PRIVATE


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_a_module_reads_no_private_names_of_another(path: Path) -> None:
    assert not foreign_private_names(ast.parse(path.read_text()))


def test_a_private_name_of_another_module_is_found() -> None:
    source = "from a import _b\nclass C:\n    def m(self, x):\n        self._mine = x._mine, x._its, self._d\n"
    assert foreign_private_names(ast.parse(source)) == {"_b", "_its"}


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_only_its_owners_look_into_the_numbers_of_a_partition(path: Path) -> None:
    owners = {"batch_queue.py", "sequences.py", "transactional_sequences.py"}  # the first only makes them
    read = [node.lineno for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and node.attr == "partition_sequence"]
    assert read == [] or path.name in owners


def test_every_cited_decision_exists() -> None:
    known = {path.name[:4] for path in (ROOT / "docs/decisions").glob("[0-9]*.md")}
    for path in [*SOURCES, ROOT / "ARCHITECTURE.md", ROOT / "README.md"]:
        cited = set(re.findall(r"decision (\d{4})", path.read_text()))
        assert cited <= known, f"{path.name} cites {sorted(cited - known)}"


def test_nothing_is_named_after_nothing() -> None:
    words = re.compile(r"(Manager|Helper|Utils?)\b|\b(utils?|helpers?)$", re.IGNORECASE)
    for path in SOURCES:
        assert not words.search(path.stem), path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                assert not words.search(node.name), f"{path.name}: {node.name}"
