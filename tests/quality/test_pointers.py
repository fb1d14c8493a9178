"""Modules and files that docstrings and pages name exist: what one is sent on to read can be found."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from headrace.config import PROPERTIES
from headrace.config.rows_elsewhere import NOT_SUPPORTED, WITHOUT_EFFECT

_ROOT = Path(__file__).parents[2]
_SRC = _ROOT / "src/headrace"
_ROOMS = {path.name for path in _SRC.iterdir() if (path / "__init__.py").exists()}
_PAGES = [_ROOT / "ARCHITECTURE.md", _ROOT / "CONTRIBUTING.md", *sorted((_ROOT / "docs").rglob("*.md"))]
_DOTTED = re.compile(r"`(?:headrace\.)?([a-z]\w*(?:\.\w+)+)(?:\(\))?`")
_FILE = re.compile(r"`([a-z][\w/]*/\w+\.(?:py|pyx|pxd))`")
_PROPERTIES = {name for table in (PROPERTIES, WITHOUT_EFFECT, NOT_SUPPORTED) for name in table}


@cache
def _names(module: Path) -> set[str]:
    """What a module defines or imports, at any depth."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return found


def _leads_somewhere(dotted: str) -> bool:
    at, parts = _SRC, dotted.split(".")
    for place, part in enumerate(parts):
        if (at / part).is_dir():
            at /= part
            continue
        module = at / f"{part}.py"
        rest = parts[place + 1:] if module.exists() else parts[place:]
        return not rest or rest[0] in _names(module if module.exists() else at / "__init__.py")
    return True


def _is_of_ours(dotted: str) -> bool:
    return dotted.split(".")[0] in _ROOMS and dotted not in _PROPERTIES and not dotted.startswith("spark.python.")


@pytest.mark.parametrize("room", sorted(_ROOMS))
def test_every_module_that_a_docstring_names_exists(room: str) -> None:
    lost = {f"{path.relative_to(_SRC)}: {dotted}" for path in sorted((_SRC / room).rglob("*.py"))
            for dotted in _DOTTED.findall(path.read_text()) if _is_of_ours(dotted) and not _leads_somewhere(dotted)}
    assert not lost


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_every_module_and_file_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    assert not {name for name in _DOTTED.findall(text) if _is_of_ours(name) and not _leads_somewhere(name)}
    roots = (_ROOT, _SRC.parent, _SRC)
    assert not {name for name in _FILE.findall(text) if not any((root / name).exists() for root in roots)}


def test_a_name_that_leads_nowhere_is_found() -> None:
    assert _leads_somewhere("broker.dispatch")
    assert _leads_somewhere("client.producer.reports.DeliveryReportQueue")
    assert not _leads_somewhere("broker.services")
    assert not _leads_somewhere("client.producer.reports.Deliveries")
