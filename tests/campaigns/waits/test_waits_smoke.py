"""Random programs leave no record waiting: a short run of `python -m tests.campaigns.waits`."""

import subprocess
import sys

import pytest

from tests.campaigns.waits.outcome import Outcome


@pytest.mark.parametrize("kind", ["producers", "reading", "cancelled"])
def test_three_random_programs_lose_no_record_and_none_waits_for_ever(kind: str) -> None:
    command = [sys.executable, "-m", "tests.campaigns.waits", "--only", kind, "--programs", "3", "--late", "3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"3 programs of {kind}" in done.stdout
    assert "\n0 findings" in done.stdout


@pytest.mark.parametrize(("outcome", "said"), [
    (Outcome("", 10, 10, 0.4), ""),
    (Outcome("", 10, 9, 0.4), "1 of 10 did not come"),
    (Outcome("", 10, 12, 0.4), "2 came twice, of 10"),
    (Outcome("", 10, 10, 0.8), "one of 10 took 0.80 s"),
    (Outcome("", 10, 10, 0.4, "offset 5 came in place of 4"), "offset 5 came in place of 4"),
])
def test_a_record_that_is_lost_comes_twice_or_is_late_is_a_finding(outcome: Outcome, said: str) -> None:
    assert outcome.fault(0.7) == said
