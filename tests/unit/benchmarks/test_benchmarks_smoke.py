"""The benchmarks that need no broker run, everybody does the same in them, and their results can be kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import compare, loops, report

ROOT = Path(__file__).parents[3]
CASES = {
    "wire": {"Metadata v5", "Metadata v13", "Fetch v11", "Fetch v18", "Produce v8", "Produce v13"},
    "records": {f"{size} B, {what}" for size in ("100", "1,000")
                for what in ("none", "gzip", "snappy", "lz4", "zstd", "other")},
    "serdes": {"serializers with a registry"},
    "imports": {"milliseconds of whole processes"},
}


@pytest.mark.parametrize("name", CASES)
def test_a_quick_run_measures_everybody_and_writes_what_it_found(name: str, tmp_path: Path) -> None:
    if name == "wire":
        pytest.importorskip("kafka")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--json", str(tmp_path / "found.json")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["results"].keys() == CASES[name]
    cases = [case for table in found["results"].values() for case in table]
    assert all(min(case["best_ns"].values()) > 0 for case in cases)
    assert not [case["notes"] for case in cases if case["notes"]], "a peer could not do something"
    assert all(case["name"] in done.stdout for case in cases[1:])


def test_the_ratio_is_that_of_the_best_peer_to_ours() -> None:
    case = loops.Case("x", {}, rounds_ns={"headrace": [30.0, 20.0], "kafka-python": [90.0], "aiokafka": [60.0, 70.0]})
    assert case.ratio() == 3.0
    assert loops.Case("x", {}, rounds_ns={"headrace": [30.0]}).ratio() is None


def test_rounds_are_interleaved_and_costs_are_per_item() -> None:
    order: list[str] = []
    case = loops.Case("x", {"a": lambda: order.append("a"), "b": lambda: order.append("b")}, per=2)
    loops.measure([case], loops.Effort(2, 0.0))
    assert order[-4:] == ["a", "b", "b", "a"]
    assert [len(case.rounds_ns[who]) for who in ("a", "b")] == [2, 2]


def test_a_row_is_compared_round_by_round_so_that_a_slow_round_of_both_changes_nothing() -> None:
    row = compare.Row("x", lambda _source: {})
    row.old = [{"cpu": 1.0}, {"cpu": 10.0}, {"cpu": 1.0}]
    row.new = [{"cpu": 1.1}, {"cpu": 11.0}, {"cpu": 0.5}]
    assert row.ratios() == {"cpu": pytest.approx(1.1)}


def test_a_text_that_is_in_no_rows_name_is_told_with_the_names_that_there_are() -> None:
    assert report.chosen(["100 B", "1 KB"], ["KB"], str) == ["1 KB"]
    assert report.chosen(["100 B", "1 KB"], [], str) == ["100 B", "1 KB"]
    with pytest.raises(SystemExit, match="no row has 'plain' in its name; there are: 100 B; 1 KB"):
        report.chosen(["100 B", "1 KB"], ["KB", "plain"], str)
