"""`headrace registry` at the embedded registry."""

from pathlib import Path

import pytest

from tests.unit.cli.administration.conftest import Run

FIRST = '{"type":"record","name":"O","fields":[{"name":"id","type":"long"}]}'
SECOND = FIRST.replace("}]", '},{"name":"note","type":"string"}]')


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "first.avsc").write_text(FIRST)
    (tmp_path / "second.avsc").write_text(SECOND)
    return str(tmp_path / "first.avsc"), str(tmp_path / "second.avsc")


def test_schemas_are_registered_listed_printed_and_deleted(run: Run, files: tuple[str, str]) -> None:
    made = run("registry", "register", "orders-value", files[0])
    assert made.out.startswith("schema orders-value registered as version 1 with id ")
    (row,) = run("registry", "versions", "orders-value", "-o", "json").rows
    assert (row["version"], row["type"], row["references"]) == (1, "AVRO", [])
    assert run("registry", "schema", "orders-value").out == f"{FIRST}\n"
    assert run("registry", "schema", "--id", str(row["id"])).out == f"{FIRST}\n"
    assert run("registry", "subjects", "orders", "-o", "name").out == "orders-value\n"
    assert run("registry", "delete", "orders-value").status == 2
    assert run("registry", "delete", "orders-value", "--dry-run").out == "version orders-value:1 would be deleted\n"
    assert run("registry", "delete", "orders-value", "--yes").out == "version orders-value:1 deleted\n"
    assert run("registry", "schema", "orders-value").status == 5
    assert run("registry", "subjects", "orders", "--deleted", "-o", "name").out == "orders-value\n"
    assert run("registry", "delete", "orders-value", "--permanent", "--yes").status == 0
    assert run("registry", "subjects", "orders", "--deleted", "-o", "name").out == ""


def test_what_is_not_compatible_is_told_and_can_be_allowed(run: Run, files: tuple[str, str]) -> None:
    run("registry", "register", "strict", files[0])
    refused = run("registry", "check", "strict", files[1])
    assert (refused.status, refused.err) == (1, "headrace registry check: it is not compatible with strict\n")
    assert run("registry", "register", "strict", files[1]).status == 6
    assert run("registry", "compatibility", "strict", "-o", "json").rows == [
        {"subject": "strict", "compatibility": "BACKWARD"}]
    assert run("registry", "compatibility", "strict", "--set", "none").status == 0
    assert run("registry", "check", "strict", files[1]).status == 0
    assert run("registry", "register", "strict", files[1]).status == 0
    assert run("registry", "compatibility", "strict", "--unset", "-o", "json").rows[0]["compatibility"] == "BACKWARD"


def test_modes_are_shown_and_changed(run: Run, files: tuple[str, str]) -> None:
    assert run("registry", "mode", "-o", "json").rows == [{"subject": None, "mode": "READWRITE"}]
    run("registry", "mode", "still", "--set", "readonly")
    assert run("registry", "register", "still", files[0]).status == 1
    assert run("registry", "mode", "still", "--unset", "-o", "json").rows == [{"subject": "still", "mode": "READWRITE"}]


def test_mistakes_are_one_line(run: Run, files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for argv, status, told in (
        (("schema",), 2, "give a subject, or --id"), (("schema", "s", "--version", "0"), 2, "neither a version nor"),
        (("register", "s", "nowhere.avsc"), 2, "No such file"),
        (("register", "s", files[0], "--reference", "x"), 2, "NAME=SUBJECT:VERSION"),
        (("subjects", "--registry", "http://127.0.0.1:1", "--timeout", "1s"), 3, "127.0.0.1:1"),
        (("compatibility", "--set", "backwards"), 2, "did you mean BACKWARD?"),
    ):
        ended = run("registry", *argv)
        assert (ended.status, ended.err.count("\n")) == (status, 1), argv
        assert told in ended.err
    monkeypatch.delenv("HEADRACE_SCHEMA_REGISTRY_URL")
    assert "no registry is named" in run("registry", "subjects").err
