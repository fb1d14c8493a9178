"""The command that runs these tests on every configuration: what it runs, what it says, and when it fails."""

from pathlib import Path

import pytest

from tests.integration.kafka import matrix
from tests.support.configuration import LISTENERS, Configuration

Cell = tuple[str, Configuration]
"""A part of the tests, and what it is run on."""


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Cell]:
    """The configurations that are run; nothing runs really, and over mTLS something fails."""
    found: list[Cell] = []
    (tmp_path / "log").write_text("much\nFAILED test_this - that\n")

    def run(wanted: Configuration, part: str, chaos: bool, more: list[str]) -> matrix.Outcome:
        found.append((part, wanted))
        return matrix.Outcome(7, int(wanted.listener == "mtls"), [], [("2", "of chaos"), ("1", "of age")], 3.2,
                              tmp_path / "log")

    monkeypatch.setattr(matrix, "run", run)
    return found


def test_two_versions_and_four_ways_in_are_run_with_three_brokers_and_consumers_with_one(ran: list[Cell]) -> None:
    matrix.main([])
    assert len(set(ran)) == len(ran) == 16
    for part, brokers in (("all", 3), ("consumers", 1)):
        cells = [wanted for name, wanted in ran if name == part]
        assert len(cells) == 8
        assert {wanted.brokers for wanted in cells} == {brokers}
        assert {wanted.version for wanted in cells} == {"3.9.2", "4.4.0"}
        assert {wanted.listener for wanted in cells} == set(LISTENERS) == {
            "plaintext", "tls+scram", "mtls", "oauthbearer"}


def test_the_part_and_the_number_of_brokers_can_be_chosen(ran: list[Cell]) -> None:
    matrix.main(["--of", "consumers", "--brokers", "1", "3", "--only", "plaintext", "tls+scram"])
    assert {part for part, _ in ran} == {"consumers"}
    assert len({wanted for _, wanted in ran}) == 8


def test_every_file_of_a_part_is_there_and_every_file_about_consumers_is_in_theirs() -> None:
    for part in matrix.PARTS:
        assert [path for path in matrix.files_of(part) if not Path(path).exists()] == []
    listed = set(matrix.files_of("consumers"))
    about = [path for path in Path(matrix.__file__).parent.glob("test_kafka_*.py")
             if any(word in path.name for word in ("consumer", "group", "share", "columns", "fetch"))]
    assert len(about) >= 6
    assert [path.name for path in about if str(path) not in listed] == []


def test_each_has_a_line_and_a_failure_is_shown_and_fails_the_command(
    ran: list[Cell], capsys: pytest.CaptureFixture[str]
) -> None:
    assert matrix.main(["--only", "4.4.0", "plaintext", "--brokers", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "4.4.0 3 plaintext: 7 passed, 0 failed, 3 deselected (2 of chaos; 1 of age), 3 s",
        "1 configurations, 0 with failures"]
    assert matrix.main(["--only", "3.9.2", "mtls", "--brokers", "1"]) == 1
    assert "7 passed, 1 failed" in (told := capsys.readouterr().out)
    assert "\nFAILED test_this - that\n" in told
    assert "much" not in told


def test_a_run_without_a_test_that_passed_is_a_failure() -> None:
    assert not matrix.Outcome(0, 0, [], [], 0.0, Path()).good
