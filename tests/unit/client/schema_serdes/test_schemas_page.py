"""The page about schemas: each of its programs runs."""

import re
from pathlib import Path

import pytest

from headrace.testing import EmbeddedBroker
from tests.support.mock_registries import mock_url

PAGE = (Path(__file__).parents[4] / "docs/how-to/schemas.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_its_programs_write_and_read(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedBroker() as broker, mock_url() as registry:
        for program in PROGRAMS:
            assert "http://localhost:8081" in program
            here = program.replace("localhost:9092", broker.bootstrap_servers)
            here = here.replace("http://localhost:8081", registry)
            exec(compile(here, "schemas.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == [
        "1 {'name': 'Anna', 'city': 'Rome'}", "2 {'name': 'Ben', 'city': None}", "stored at 0"]


def test_every_property_that_it_names_is_known() -> None:
    from headrace.client.schema_serdes.serde_settings import READING, WRITING

    named = set(re.findall(r"`?\{?\"((?:use|auto\.register|subject|schema)\.[a-z.]+)\"", PAGE))
    assert named
    assert named <= set(READING | WRITING)
