"""`headrace profiles`: what is there, and no secret."""

import json
from pathlib import Path

import pytest

from headrace.cli import main

FILE = """
default = "local"
[local]
bootstrap.servers = "localhost:9092"
[prod]
bootstrap.servers = "kafka:9093"
sasl.password = "geheim"
sasl.jaas.config = "password=geheim"
ssl.key.pem = "geheim"
[prod.registry]
url = "https://me:geheim@registry:8081"
basic.auth.user.info = "me:geheim"
"""


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text(FILE)
    monkeypatch.setenv("HEADRACE_CONFIG", str(path))


def test_profiles_are_listed_with_their_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "list"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["PROFILE", "DEFAULT", "BOOTSTRAP-SERVERS", "REGISTRY"], ["local", "yes", "localhost:9092", "-"],
        ["prod", "no", "kafka:9093", "https://[hidden]@registry:8081"]]


def test_a_profile_is_shown_without_its_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "show", "prod", "-o", "json"]) == 0
    shown = capsys.readouterr().out
    assert "geheim" not in shown
    found = {row["property"]: row["value"] for row in json.loads(shown)}
    assert found["bootstrap.servers"] == "kafka:9093"
    assert found["sasl.password"] == found["ssl.key.pem"] == "[hidden]"
    assert found["schema.registry.url"] == "https://[hidden]@registry:8081"


def test_without_a_name_it_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "show", "-o", "tsv"]) == 0
    assert capsys.readouterr().out == "property\tvalue\nbootstrap.servers\tlocalhost:9092\n"


def test_an_unknown_one_is_one_line_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "show", "prd"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("headrace profiles show: no profile 'prd'")
    assert told.endswith("did you mean prod?\n")
