"""The clients of other projects are pinned, name no registry, and say what is missing."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tools.foreign import CLIENTS, MissingClientError, program

HERE = Path(__file__).parent


@pytest.mark.parametrize("path", ["kafkajs/package.json", "kafkajs/package-lock.json", "franz_go/go.mod",
                                  "franz_go/go.sum"])
def test_a_lock_names_no_registry(path: str) -> None:
    text = (HERE / path).read_text()
    assert "://" not in text
    assert "resolved" not in text


def test_every_package_of_the_lock_is_pinned_by_its_checksum() -> None:
    packages = json.loads((HERE / "kafkajs/package-lock.json").read_text())["packages"]
    pinned = {name: package for name, package in packages.items() if name}
    assert all(re.match(r"sha512-", package["integrity"]) for package in pinned.values())
    wanted = json.loads((HERE / "kafkajs/package.json").read_text())["dependencies"]
    assert {name: pinned[f"node_modules/{name}"]["version"] for name in wanted} == wanted


@pytest.mark.parametrize(("name", "tool"), [("kafkajs", "node"), ("franz-go", "go"), ("java", "javac")])
def test_a_missing_language_is_named(monkeypatch: pytest.MonkeyPatch, name: str, tool: str) -> None:
    assert name in CLIENTS
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(MissingClientError, match=f"there is no {tool}: install "):
        program(name)


def test_a_failed_installation_says_what_the_tool_said_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error: no network'\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(npm))
    monkeypatch.setattr("tools.foreign.install._CACHE", tmp_path / "cache")
    with pytest.raises(MissingClientError, match="npm ci failed: npm error: no network"):
        program("kafkajs")
    assert list((tmp_path / "cache").iterdir()) == []
