"""The pages on what other documents say of a producer: every row names a test, and every named test exists.

A page of `docs/reference/statements` has tables `| statement | headrace | test |`, one for each section of the document
that it goes through. The last cell names tests as in `tests/file.py::test_name`; further tests of the same file, in the
same cell, may be written `::test_name`.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/reference/statements").glob("*.md"))
COLUMNS = ["statement", "headrace", "test"]
NAMED = re.compile(r"`([^`]*)::([^`]*)`")


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]


def rows_of(page: str) -> list[tuple[int, list[str]]]:
    """Rows of all tables with their line numbers, without the two lines of each head."""
    lines = page.splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        head = number < len(lines) and lines[number].startswith("|--")
        if line.startswith("|") and not line.startswith("|--") and not head:
            rows.append((number, cells_of(line)))
    return rows


def heads_of(page: str) -> list[list[str]]:
    lines = page.splitlines()
    return [cells_of(lines[index - 1]) for index, line in enumerate(lines) if line.startswith("|--")]


@cache
def named_in(file: str) -> frozenset[str]:
    path = ROOT / file
    if not re.fullmatch(r"tests/[\w/]+/test_\w+\.py|tests/test_\w+\.py", file) or not path.is_file():
        return frozenset()
    return frozenset(node.name for node in ast.walk(ast.parse(path.read_text()))
                     if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"))


def faults_of(page: str) -> list[str]:
    """Why a page proves less than it says; nothing if all is well."""
    faults = [] if re.match(r"# \S", page) else ["the page has no title"]
    faults += [f"a table has the columns {head}" for head in heads_of(page) if head != COLUMNS]
    rows = rows_of(page)
    if not rows:
        faults.append("the page has no rows")
    for number, cells in rows:
        if len(cells) != 3 or not all(cells):
            faults.append(f"line {number} has not three cells with text in them")
            continue
        named = NAMED.findall(cells[2])
        if not named:
            faults.append(f"line {number} names no test")
        last = ""
        for file, test in named:
            last = file or last
            if test not in named_in(last):
                faults.append(f"line {number} names {last}::{test}, which does not exist")
    known = set()
    for number, (statement, *_) in rows:
        if statement in known:
            faults.append(f"line {number} repeats a statement")
        known.add(statement)
    return faults


def test_there_are_pages() -> None:
    assert PAGES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_statement_of_a_page_has_a_test_that_exists(path: Path) -> None:
    assert not faults_of(path.read_text())


HEAD = "# A document\n\n| statement | headrace | test |\n|---|---|---|\n"
HERE = "tests/quality/test_statements.py"


@pytest.mark.parametrize(("page", "fault"), [
    ("# A document\n", "no rows"),
    (HEAD, "no rows"),
    (HEAD.removeprefix("# A document"), "no title"),
    (HEAD.replace("headrace", "ours"), "the columns"),
    (HEAD + "| it flies | yes | |\n", "three cells"),
    (HEAD + f"| it flies | `{HERE}::test_there_are_pages` |\n", "three cells"),
    (HEAD + "| it flies | yes | believe me |\n", "names no test"),
    (HEAD + "| it flies | yes | `tests/quality/test_none.py::test_there_are_pages` |\n", "does not exist"),
    (HEAD + f"| it flies | yes | `{HERE}::test_there_are_wings` |\n", "does not exist"),
    (HEAD + f"| it flies | yes | `{HERE}::faults_of` |\n", "does not exist"),
    (HEAD + f"| a | yes | `{HERE}::test_there_are_pages`, `::test_there_are_wings` |\n", "does not exist"),
    (HEAD + f"| a | yes | `{HERE}::test_there_are_pages` |\n| b | yes | `::test_there_are_pages` |\n", "not exist"),
    (HEAD + f"| a | yes | `{HERE}::test_there_are_pages` |\n" * 2, "repeats"),
])
def test_a_page_that_proves_less_than_it_says_is_found(page: str, fault: str) -> None:
    assert any(fault in found for found in faults_of(page))


def test_a_page_may_name_several_tests_in_a_cell() -> None:
    named = f"`{HERE}::test_there_are_pages`, `::test_a_page_may_name_several_tests_in_a_cell`"
    assert not faults_of(f"{HEAD}| a \\| b | yes | {named} |\n")
