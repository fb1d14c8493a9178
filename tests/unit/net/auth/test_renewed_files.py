"""What is made of files, made anew when they have changed, and kept where they cannot be used."""

import os
from pathlib import Path

import pytest

from headrace.errors import ConfigError, DependencyError
from headrace.net.auth.renewed_files import RenewedFiles


class Made:
    """Counts how often it is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.times = path, 0

    def __call__(self) -> str:
        self.times += 1
        text = self.path.read_text() if self.path.exists() else ""
        if text == "missing":
            raise DependencyError("a package is missing")
        if not text:
            raise ConfigError("nothing is there")
        return text


def test_a_value_is_made_anew_only_when_its_files_have_changed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a")
    made = Made(path)
    value = RenewedFiles(made, [str(path), ""], "kept")
    assert [value(), value(), made.times] == ["a", "a", 1]
    path.write_text("bb")
    assert [value(), value(), made.times] == ["bb", "bb", 2]


def test_a_file_that_is_replaced_by_one_of_the_same_size_and_time_is_another(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    for file, text in ((path, "a"), (other, "b")):
        file.write_text(text)
        os.utime(file, (1, 1))
    value = RenewedFiles(Made(path), [str(path)], "kept")
    os.replace(other, path)
    assert value() == "b"


def test_what_cannot_be_used_leaves_the_value_of_before_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    path.write_text("a")
    made = Made(path)
    value = RenewedFiles(made, [str(path)], "it stays")
    path.unlink()
    assert [value(), value(), made.times] == ["a", "a", 2]
    path.write_text("missing")
    assert value() == "a"
    path.write_text("c")
    assert value() == "c"
    assert [record.getMessage() for record in caplog.records] == [
        "it stays: nothing is there", "it stays: a package is missing"]


def test_what_cannot_be_made_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing is there"):
        RenewedFiles(Made(tmp_path / "none"), [], "kept")
