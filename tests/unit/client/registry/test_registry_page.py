"""The page about registries: each of its programs runs, against a registry over HTTP, and says what it should."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headrace.client.registry.http_transport import RegistryRequest
from headrace.client.registry.mock_registry import MockRegistry
from headrace.client.registry.registry_settings import KNOWN
from headrace.errors import SchemaRegistryError
from tests.support.scripted_registry import Asked, Said, ScriptedRegistry

PAGE = (Path(__file__).parents[4] / "docs/how-to/registry.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

SAYS = {
    "registered as": "registered as 1\n1 AVRO\n404 Schema Not Found\n",
    "get_referenced_by": "[2]\n1\n",
    "set_compatibility": "FULL_TRANSITIVE\nTrue\n[1]\n",
    "asyncio.gather": "one id: {1}\n",
    "mock://": 'the reader found "string"\n',
}
"""By words that occur in one program alone."""


def over_http(mock: MockRegistry, asked: Asked) -> Any:
    """What a registry that keeps something answers to an HTTP request."""
    query = {name: values if name in ("key", "value") else values[0] for name, values in asked.query.items()}
    numbers = {name: int(query[name]) for name in ("offset", "limit") if name in query}
    request = RegistryRequest(asked.method, tuple(asked.path.strip("/").split("/")), {**query, **numbers}, asked.body)
    try:
        return mock.answer(request)
    except SchemaRegistryError as error:
        return Said({"error_code": error.error_code, "message": error.error_message}, error.http_status_code)


@pytest.mark.parametrize("words", SAYS)
def test_each_program_of_the_page_runs(
    words: str, registry: ScriptedRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    mock = MockRegistry()
    registry.otherwise = lambda asked: over_http(mock, asked)
    (program,) = (each for each in PROGRAMS if words in each)
    exec(compile(program.replace("http://localhost:8081", registry.url), "registry.md", "exec"), {})
    assert capsys.readouterr().out == SAYS[words]


def test_no_program_of_the_page_is_left_out() -> None:
    assert sorted(words for program in PROGRAMS for words in SAYS if words in program) == sorted(SAYS)
    assert len(PROGRAMS) == len(SAYS)


def test_the_page_has_every_property() -> None:
    table = PAGE[PAGE.index("| property |"):PAGE.index("An unknown property")]
    named = [name for row in table.strip().splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert sorted(named) == sorted(KNOWN)
