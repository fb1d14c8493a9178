"""`headrace groups` and `headrace share-groups` at the embedded broker."""

import json
import re

import pytest

from headrace import Consumer, ShareConsumer
from headrace.admin import AdminClient
from headrace.cli.administration.group_commands.group_lag import LagHistory, lag_table, sparkline
from headrace.testing import EmbeddedBroker
from headrace.types.cluster import ConsumerGroupTopicPartitions
from headrace.types.records import TopicPartition
from tests.unit.cli.administration.conftest import Run, fill


@pytest.fixture
def group(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    """A group without members at offset 6 of 10 in the first of two partitions of a topic of its name."""
    name = re.sub(r"\W", "-", request.node.name)[-40:].strip("-")
    broker.create_topic(name, 2)
    fill(broker, name, 10)
    commit(broker, name, {0: 6})
    return name


def commit(broker: EmbeddedBroker, name: str, offsets: dict[int, int]) -> None:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        wanted = [TopicPartition(name, number, offset) for number, offset in offsets.items()]
        admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(name, wanted)])[name].result(10)


def at(run: Run, group: str) -> dict[str, int]:
    rows = run("groups", "describe", group, "-o", "json").rows
    return {f"{row['topic']}:{row['partition']}": row["committed"] for row in rows}


def test_groups_are_listed_and_described_with_their_lag(run: Run, group: str) -> None:
    listed = run("groups", "list", f"^{group}$", "-o", "json").rows
    assert [(row["group"], row["state"]) for row in listed] == [(group, "Empty")]
    assert run("groups", "list", "--state", "stable", f"^{group}$", "-o", "json").rows == []
    described = run("groups", "describe", group)
    headline, head, row = described.out.splitlines()
    assert headline.startswith(f"{group}: Empty, ")
    assert headline.endswith("0 members, lag 4")
    assert head.split() == ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT-ID", "HOST"]
    assert row.split() == [group, group, "0", "6", "10", "4", "-", "-"]
    (lag,) = run("groups", "lag", group, "-o", "json").rows
    assert lag == {"group": group, "topic": group, "partitions": 1, "committed": 6, "end": 10, "lag": 4, "most": 4,
                   "unread": 1}


def test_members_are_shown_with_what_they_read(run: Run, group: str, broker: EmbeddedBroker) -> None:
    config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "client.id": "reader"}
    with Consumer(config) as consumer:
        consumer.subscribe([group])
        while len(consumer.assignment()) < 2:
            consumer.poll(0.1)
        rows = run("groups", "describe", group, "-o", "json").rows
        assert [(row["partition"], row["client_id"], row["state"]) for row in rows] == [
            (0, "reader", "Stable"), (1, "reader", "Stable")]
        assert all(row["member"] and row["host"] for row in rows)
        used = run("groups", "delete", group, "--yes")
        assert (used.status, used.out) == (6, "")


def test_a_group_with_members_is_not_reset_which_is_said_once(
    run: Run, group: str, broker: EmbeddedBroker
) -> None:
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group}) as consumer:
        consumer.subscribe([group])
        while len(consumer.assignment()) < 2:
            consumer.poll(0.1)
        ended = run("groups", "reset", group, "--topic", group, "--to-earliest", "--yes")
    assert (ended.status, ended.out, ended.err.count("\n")) == (6, "", 1)
    assert "it has members" in ended.err


@pytest.mark.parametrize("command", ["list", "lag"])
def test_groups_of_a_cluster_that_cannot_be_reached_are_status_3(run: Run, command: str) -> None:
    ended = run("groups", command, "-b", "127.0.0.1:1", "--timeout", "300ms")
    assert (ended.status, ended.out, ended.err.count("\n")) == (3, "", 1)


def test_a_group_that_is_not_there_is_status_5(run: Run) -> None:
    for argv in (("describe", "none"), ("lag", "none"), ("delete", "none", "--yes"), ("reset", "none", "--to-latest")):
        ended = run("groups", *argv)
        assert ended.status == 5, argv
        assert "none" in ended.err
        assert ended.err.count("\n") == 1


def test_a_reset_is_only_said_without_yes(run: Run, group: str) -> None:
    said = run("groups", "reset", group, "--to-earliest")
    assert said.status == 0
    assert said.out.splitlines()[1].split() == [group, group, "0", "6", "0", "-6"]
    assert said.err == "headrace groups reset: nothing was changed: give --yes to do it\n"
    assert run("groups", "reset", group, "--to-earliest", "-o", "json").rows[0]["applied"] is False
    assert at(run, group) == {f"{group}:0": 6}


@pytest.mark.parametrize(("argv", "offset"), [
    (("--to-earliest",), 0), (("--to-latest",), 10), (("--to-datetime", "1003"), 3),
    (("--to-datetime", "1970-01-01T00:00:01.005Z"), 5), (("--shift-by=-2",), 4), (("--shift-by", "100"), 10),
    (("--to-offset", "2"), 2), (("--to-offset", "99"), 10), (("--by-duration", "PT1H"), 10),
])
def test_a_reset_with_yes_is_done(run: Run, group: str, argv: tuple[str, ...], offset: int) -> None:
    ended = run("groups", "reset", group, *argv, "--yes", "-o", "json")
    assert ended.status == 0
    assert [(row["before"], row["after"], row["applied"]) for row in ended.rows] == [(6, offset, True)]
    assert at(run, group) == {f"{group}:0": offset}


def test_on_a_terminal_a_reset_is_shown_and_done_when_the_group_is_typed(
    run: Run, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: f"{group}\n", raising=False)
    ended = run("groups", "reset", group, "--to-earliest")
    assert ended.status == 0
    assert f"Type {group} to go on" in ended.err
    assert at(run, group) == {f"{group}:0": 0}


def test_a_reset_of_partitions_that_the_group_has_no_offsets_of_begins_there(run: Run, group: str) -> None:
    assert run("groups", "reset", group, "--topic", f"{group}:1", "--to-earliest", "--yes").status == 0
    assert at(run, group) == {f"{group}:0": 6, f"{group}:1": 0}
    nowhere = run("groups", "reset", f"{group}-new", "--topic", group, "--to-offset", "3", "--yes", "-o", "json")
    assert [(row["partition"], row["before"], row["after"]) for row in nowhere.rows] == [(0, None, 3), (1, None, 0)]


def test_offsets_and_groups_are_forgotten(run: Run, group: str, broker: EmbeddedBroker) -> None:
    commit(broker, group, {1: 0})
    assert run("groups", "delete-offsets", group, f"{group}:1").status == 2
    assert run("groups", "delete-offsets", group, f"{group}:1", "--yes").out == f"offset {group}:1 forgotten\n"
    assert at(run, group) == {f"{group}:0": 6}
    assert run("groups", "delete", group, "--dry-run").out == f"group {group} would be deleted\n"
    assert run("groups", "delete", group, "-y").out == f"group {group} deleted\n"
    assert run("groups", "describe", group).status == 5


def test_watched_lag_is_rows_where_there_is_no_terminal(run: Run, group: str) -> None:
    watched = run("groups", "lag", group, "--watch", "--count", "2", "--interval", "1ms", "-o", "tsv")
    head, first, second = watched.out.splitlines()
    assert head.startswith("group\ttopic\t")
    assert first == second
    lines = run("groups", "lag", group, "--watch", "--count", "2", "--interval", "1ms", "-o", "json").out.splitlines()
    assert [json.loads(line)["lag"] for line in lines] == [4, 4]


def test_watched_lag_is_a_live_view_on_a_terminal(
    run: Run, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "150")
    watched = run("groups", "lag", group, "--watch", "--count", "2", "--interval", "1ms")
    assert watched.status == 0
    assert group[:10] in watched.out
    assert "██" in watched.out


def test_a_live_view_without_rich_says_what_to_install(
    run: Run, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setitem(__import__("sys").modules, "rich.live", None)
    ended = run("groups", "lag", group, "--watch", "--count", "1")
    assert ended.status == 2
    assert "pip install 'headrace[cli]'" in ended.err


def test_the_history_knows_rates_and_a_sparkline_is_as_high_as_its_numbers() -> None:
    history = LagHistory()
    row = {"group": "g", "topic": "t", "partitions": 1, "end": 100, "lag": 80, "committed": 20}
    history.add(10.0, [row])
    assert history.rate("g", "t") == 0
    history.add(12.0, [{**row, "lag": 20, "committed": 80}])
    assert history.rate("g", "t") == 30
    assert history.lags("g", "t") == [80, 20]
    assert sparkline([0, 40, 80]) == "▁▄█"
    assert sparkline([0, 0]) == "▁▁"
    assert lag_table([row], history).row_count == 1


def test_share_groups_begin_where_they_are_told_and_are_described(run: Run, broker: EmbeddedBroker) -> None:
    broker.create_topic("shared", 1)
    fill(broker, "shared", 10)
    with ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "sharing"}) as consumer:
        consumer.subscribe(["shared"])
        while not run("share-groups", "describe", "sharing", "-o", "json").rows:
            consumer.poll(0.1)
    assert {"group": "sharing", "state": "Empty"} in run("share-groups", "list", "-o", "json").rows
    assert run("share-groups", "reset", "sharing", "shared", "--to-earliest").status == 2
    done = run("share-groups", "reset", "sharing", "shared", "--to-datetime", "1003", "--yes", "-o", "json")
    assert [(row["partition"], row["after"]) for row in done.rows] == [(0, 3)]
    (row,) = run("share-groups", "describe", "sharing", "-o", "json").rows
    assert (row["topic"], row["partition"], row["start"], row["state"]) == ("shared", 0, 3, "Empty")
    assert run("share-groups", "delete-offsets", "sharing", "shared", "--yes").out == "topic shared forgotten\n"
    assert run("share-groups", "delete", "sharing", "--yes").out == "share group sharing deleted\n"
    assert run("share-groups", "describe", "sharing").status == 5
