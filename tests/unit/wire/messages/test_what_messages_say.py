"""Message classes explain themselves: every class, field and error that they name."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

import headrace.wire
from headrace.error_codes import CODES
from headrace.wire.api import API
from headrace.wire.layout import columns
from headrace.wire.schema import Struct

MESSAGES = sorted(path for path in (Path(headrace.wire.__file__).parent / "messages").rglob("*.py")
                  if path.name != "__init__.py")


def test_every_message_and_structure_says_what_it_is() -> None:
    seen: set[type[Struct]] = set()
    waiting: list[type[Struct]] = [cls for api in API.values() for cls in (api.request, api.response)]
    while waiting:
        cls = waiting.pop()
        seen.add(cls)
        assert cls.__doc__
        assert cls.__doc__.strip().endswith((".", ")"))
        waiting += [c.type.struct for c in columns(cls) if c.type.struct and c.type.struct not in seen]
    assert len(seen) > 100


@pytest.mark.parametrize("path", MESSAGES, ids=lambda path: path.stem)
def test_every_field_says_what_it_means(path: Path) -> None:
    silent = []
    for cls in (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)):
        for statement, after in pairwise([*cls.body, None]):
            if isinstance(statement, ast.AnnAssign) and not _is_sentence(after):
                silent.append(f"{cls.name}.{ast.unparse(statement.target)}")
    assert silent == []
    assert "field(" in path.read_text()


def _is_sentence(node: ast.stmt | None) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    text = value.value if isinstance(value, ast.Constant) else None
    return isinstance(text, str) and text.rstrip().endswith(".") and len(text.split()) > 1


def test_every_error_that_a_message_names_exists() -> None:
    named = {word for path in MESSAGES for word in re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b", path.read_text())}
    names = {row.kafka_name for row in CODES.values()}
    assert {"NOT_LEADER_OR_FOLLOWER", "UNKNOWN_PRODUCER_ID"} <= named <= names | {"SASL_PLAINTEXT", "SASL_SSL"}
