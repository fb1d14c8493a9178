"""The command that runs these tests on every configuration: what it runs, what it says, and when it fails."""

from pathlib import Path

import pytest

from tests.integration.kafka import matrix
from tests.support.configuration import LISTENERS, Configuration


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Configuration]:
    """The configurations that are run; nothing runs really, and over mTLS something fails."""
    found: list[Configuration] = []
    (tmp_path / "log").write_text("much\nFAILED test_this - that\n")

    def run(wanted: Configuration, chaos: bool, more: list[str]) -> matrix.Outcome:
        found.append(wanted)
        return matrix.Outcome(7, int(wanted.listener == "mtls"), [], [("2", "of chaos"), ("1", "of age")], 3.2,
                              tmp_path / "log")

    monkeypatch.setattr(matrix, "run", run)
    return found


def test_two_versions_and_four_ways_in_are_run_with_three_brokers(ran: list[Configuration]) -> None:
    matrix.main([])
    assert len(set(ran)) == len(ran) == 8
    assert {wanted.brokers for wanted in ran} == {3}
    assert {wanted.version for wanted in ran} == {"3.9.2", "4.4.0"}
    assert {wanted.listener for wanted in ran} == {"plaintext", "tls+scram", "mtls", "oauthbearer"} == set(LISTENERS)


def test_each_has_a_line_and_a_failure_is_shown_and_fails_the_command(
    ran: list[Configuration], capsys: pytest.CaptureFixture[str]
) -> None:
    assert matrix.main(["--only", "4.4.0", "plaintext"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "4.4.0 plaintext   7 passed, 0 failed, 3 deselected (2 of chaos; 1 of age), 3 s",
        "1 configurations, 0 with failures"]
    assert matrix.main(["--only", "3.9.2", "mtls"]) == 1
    assert "7 passed, 1 failed" in (told := capsys.readouterr().out)
    assert "\nFAILED test_this - that\n" in told
    assert "much" not in told


def test_a_run_without_a_test_that_passed_is_a_failure() -> None:
    assert not matrix.Outcome(0, 0, [], [], 0.0, Path()).good
