"""`headrace topics` at the embedded broker."""

import pytest

from headrace.testing import EmbeddedBroker
from tests.unit.cli.administration.conftest import Run, fill


def test_topics_are_made_listed_changed_and_deleted(run: Run) -> None:
    assert run("topics", "create", "a", "b", "-p", "3", "--set", "retention.ms=1000") == (
        0, "topic a created\ntopic b created\n", "")
    assert run("topics", "list", "^[ab]$").out.splitlines() == [
        "TOPIC  PARTITIONS  REPLICAS  UNDER-REPLICATED",
        "a               3         1                 0",
        "b               3         1                 0"]
    assert run("topics", "alter", "a", "-p", "5", "--set", "cleanup.policy=compact", "--unset", "retention.ms") == (
        0, "topic a grown to 5 partitions\ntopic a changed\n", "")
    (row,) = run("topics", "list", "^a$", "-o", "json").rows
    assert row["partitions"] == 5
    described = run("topics", "describe", "a").out.splitlines()
    assert run("topics", "describe", "a", "a").out.splitlines() == described
    assert described[0].endswith("5 partitions, cleanup.policy=compact")
    assert len(described) == 7
    assert run("topics", "delete", "a", "b", "--yes") == (0, "topic a deleted\ntopic b deleted\n", "")
    assert run("topics", "list", "^[ab]$", "-o", "json").rows == []


def test_names_only_and_rows_for_programs(run: Run) -> None:
    run("topics", "create", "n1", "n2")
    assert run("topics", "list", "^n[12]$", "-o", "name").out == "n1\nn2\n"
    head, first, _ = run("topics", "list", "^n[12]$", "-o", "tsv").out.splitlines()
    assert head == "topic\tpartitions\treplicas\tunder_replicated\tleaderless\tinternal\tid"
    assert first.split("\t")[:6] == ["n1", "1", "1", "0", "0", "no"]
    assert run("topics", "delete", "n1", "n2", "-y", "-o", "json").rows == [
        {"name": "n1", "kind": "topic", "done": "deleted"}, {"name": "n2", "kind": "topic", "done": "deleted"}]


def test_what_is_there_or_is_not_has_a_status_of_its_own_and_can_be_asked_to_pass(run: Run) -> None:
    run("topics", "create", "there")
    twice = run("topics", "create", "there", "new")
    assert (twice.status, twice.out) == (6, "topic new created\n")
    assert twice.err.startswith("headrace topics create: ")
    assert twice.err.count("\n") == 1
    assert run("topics", "create", "there", "--if-not-exists") == (0, "", "")
    lost = run("topics", "delete", "nowhere", "--yes")
    assert lost.status == 5
    assert "nowhere" in lost.err
    assert run("topics", "delete", "nowhere", "--yes", "--if-exists") == (0, "", "")
    assert run("topics", "describe", "nowhere").status == 5
    assert run("topics", "trim", "nowhere", "--all", "--yes").status == 5
    assert run("topics", "offsets", "there:7").err == (
        "headrace topics offsets: there has no partition 7: it has 1\n")


def test_nothing_is_deleted_without_consent(run: Run) -> None:
    run("topics", "create", "kept")
    refused = run("topics", "delete", "kept")
    assert refused.status == 2
    assert refused.err == ("headrace topics delete: this deletes topic kept with all records: give --yes to "
                           "do it\n")
    assert run("topics", "delete", "kept", "--dry-run").out == "topic kept would be deleted\n"
    assert run("topics", "create", "never", "--dry-run").out == "topic never would be created\n"
    assert run("topics", "list", "^(kept|never)$", "-o", "name").out == "kept\n"


@pytest.mark.parametrize(("typed", "status"), [("gone", 0), ("yes", 1), ("", 1)])
def test_on_a_terminal_the_name_is_to_be_typed(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, status: int
) -> None:
    run("topics", "create", "gone", "--if-not-exists")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: f"{typed}\n", raising=False)
    ended = run("topics", "delete", "gone")
    assert ended.status == status
    assert ended.err.startswith("This deletes topic gone with all records. Type gone to go on: ")
    assert ("nothing was done" in ended.err) is bool(status)


def test_offsets_are_found_at_both_ends_and_by_time(run: Run, broker: EmbeddedBroker) -> None:
    run("topics", "create", "timed", "-p", "2")
    fill(broker, "timed", 10)
    assert [row["offset"] for row in run("topics", "offsets", "timed", "-o", "json").rows] == [10, 0]
    assert [row["offset"] for row in run("topics", "offsets", "timed", "--at", "earliest", "-o", "json").rows] == [0, 0]
    (found,) = run("topics", "offsets", "timed:0", "--at", "1004", "-o", "json").rows
    assert (found["offset"], found["timestamp"]) == (4, 1004)
    (none,) = run("topics", "offsets", "timed:1", "--at", "1970-01-01T00:00:05Z", "-o", "json").rows
    assert none["offset"] is None
    assert "1970-01-01T00:00:01.004Z" in run("topics", "offsets", "timed:0", "--at", "1004").out
    described = run("topics", "describe", "timed", "-o", "json").rows
    assert [(row["earliest"], row["latest"], row["records"]) for row in described] == [(0, 10, 10), (0, 0, 0)]


def test_the_oldest_records_are_trimmed(run: Run, broker: EmbeddedBroker) -> None:
    run("topics", "create", "long")
    fill(broker, "long", 10)
    said = run("topics", "trim", "long", "--before-time", "1003", "--dry-run", "-o", "json")
    assert said.rows == [{"topic": "long", "partition": 0, "before": 0, "after": 3}]
    assert "this deletes 4 records of long" in run("topics", "trim", "long", "--before", "4").err
    assert run("topics", "trim", "long", "--before", "4", "--yes", "-o", "json").rows[0]["after"] == 4
    assert run("topics", "trim", "long:0", "--all", "-y", "-o", "json").rows == [
        {"topic": "long", "partition": 0, "before": 4, "after": 10}]


@pytest.mark.parametrize(("argv", "told"), [
    (("create", "x", "-p", "0"), "'0' is not a number of at least 1"),
    (("create", "x", "--set", "geheim"), "NAME=VALUE"),
    (("create",), "the following arguments are required: TOPIC"), (("alter", "x"), "nothing is to be changed"),
    (("offsets", "x:y"), "neither TOPIC nor TOPIC:0,3,5-7"), (("offsets", "x", "--at", "noon"), "ISO 8601"),
    (("list", "("), "no regular expression"), (("trim", "x"), "one of the arguments --before"),
    (("list", "--timeout", "soon"), "no length of time"), (("list", "-X", "lingr.ms=5"), 'linger.ms'),
])
def test_wrong_usage_is_one_line_with_status_2(run: Run, argv: tuple[str, ...], told: str) -> None:
    ended = run("topics", *argv)
    assert ended.status == 2
    assert told in ended.err
    assert "geheim" not in ended.err
    assert (ended.out, ended.err.count("\n")) == ("", 1)


def test_a_cluster_that_cannot_be_reached_is_status_3_in_one_line(run: Run) -> None:
    ended = run("topics", "list", "-b", "127.0.0.1:1", "--timeout", "300ms")
    assert ended.status == 3
    assert "127.0.0.1:1" in ended.err
    assert (ended.out, ended.err.count("\n")) == ("", 1)


def test_without_brokers_it_says_where_they_can_be_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_BOOTSTRAP_SERVERS")
    assert run("topics", "list") == (2, "", (
        "headrace topics list: no brokers are named: give -b HOST:PORT or --profile NAME, set "
        "HEADRACE_BOOTSTRAP_SERVERS, or put bootstrap.servers into a file for --config; `headrace broker` runs one "
        "here\n"))
