"""Configurations, transactions, the cluster, error names and versions at the embedded broker."""

from pathlib import Path

import pytest

from headrace import Producer
from headrace.cli.shared.exits import MEANINGS
from headrace.error_codes import CODES
from headrace.testing import EmbeddedBroker
from headrace.wire.api import API
from tests.unit.cli.administration.conftest import Run


def test_properties_are_set_described_and_set_back(run: Run, broker: EmbeddedBroker) -> None:
    broker.create_topic("set", 1)
    assert run("configs", "set", "topic", "set", "retention.ms=1000", "cleanup.policy+=compact", "--dry-run") == (
        0, "property retention.ms would be set on topic set\nproperty cleanup.policy would be set on topic set\n", "")
    assert run("configs", "describe", "topic", "set", "-o", "json").rows == []
    assert run("configs", "set", "topic", "set", "retention.ms=1000", "cleanup.policy+=compact").status == 0
    found = run("configs", "describe", "topic", "set", "-o", "json").rows
    assert [(row["property"], row["value"], row["source"]) for row in found] == [
        ("cleanup.policy", "delete,compact", "DynamicTopicConfig"), ("retention.ms", "1000", "DynamicTopicConfig")]
    assert {"name": "set", "kind": "topic"} in run("configs", "list", "topic", "-o", "json").rows
    assert run("configs", "set", "topic", "set", "cleanup.policy-=compact").status == 0
    assert run("configs", "delete", "topic", "set", "retention.ms").out == (
        "property retention.ms back to its default on topic set\n")
    described = run("configs", "describe", "topic", "set", "-a", "-o", "json").rows
    rows = {row["property"]: row["value"] for row in described}
    assert rows["cleanup.policy"] == "delete"
    assert len(rows) > 10


def test_wrong_properties_and_resources_are_refused(run: Run) -> None:
    assert run("configs", "set", "topic", "", "a=b").err == "headrace configs set: name the topic\n"
    assert run("configs", "set", "topic", "t", "geheim").err == (
        "headrace configs set: expected NAME=VALUE, NAME+=VALUE or NAME-=VALUE\n")
    assert "did you mean topic?" in run("configs", "describe", "topics", "t").err
    assert run("configs", "describe", "topic", "nowhere").status == 5


def test_open_transactions_are_described_and_fenced(run: Run, broker: EmbeddedBroker) -> None:
    broker.create_topic("paid", 1)
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "pay"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("paid", "x", partition=0)
        producer.flush()
        listed = run("transactions", "list", "--state", "Ongoing", "-o", "json").rows
        assert [row["transactional_id"] for row in listed] == ["pay"]
        (row,) = run("transactions", "describe", "pay", "-o", "json").rows
        assert (row["state"], row["partitions"]) == ("Ongoing", ["paid:0"])
        (known,) = run("transactions", "producers", "paid", "-o", "json").rows
        assert (known["partition"], known["started_at"], known["producer_id"]) == (0, 0, row["producer_id"])
        assert run("transactions", "hanging", "paid", "-o", "json").rows == []
        assert [each["producer_id"] for each in run(
            "transactions", "hanging", "paid", "--longer-than", "0", "-o", "json").rows] == [row["producer_id"]]
        assert run("transactions", "fence", "pay").status == 2
        assert run("transactions", "fence", "pay", "--yes").out == "transactional id pay fenced\n"
        producer.purge()
    assert run("transactions", "list", "--state", "Ongoing", "-o", "json").rows == []
    assert run("transactions", "describe", "nobody").status == 5
    nothing = run("transactions", "abort", "paid:0", "--start-offset", "7", "--yes")
    assert "no transaction is open that began at offset 7" in nothing.err


def test_the_cluster_shows_brokers_directories_and_features(run: Run, broker: EmbeddedBroker) -> None:
    broker.create_topic("lies", 2)
    brokers = run("cluster", "brokers")
    assert brokers.out.startswith("cluster ")
    (row,) = run("cluster", "brokers", "-o", "json").rows
    assert f"{row['host']}:{row['port']}" == broker.bootstrap_servers
    assert row["controller"] is True
    assert run("cluster", "log-dirs", "-o", "json").rows[0]["replicas"] >= 2
    replicas = run("cluster", "replicas", "lies:1", "-o", "json").rows
    assert [(row["topic"], row["partition"], row["broker"]) for row in replicas] == [("lies", 1, 1)]
    assert [row["feature"] for row in run("cluster", "features", "-o", "json").rows] == [
        "group.version", "share.version", "transaction.version"]
    assert run("cluster", "elect", "lies").status == 0
    assert run("cluster", "elect", "lies", "--unclean").status == 2
    assert run("cluster", "reassignments", "-o", "json").rows == []
    lost = run("cluster", "reassign", "lies:0=7", "--yes")
    assert (lost.status, lost.err) == (5, "headrace cluster reassign: there is no broker 7: there are 1\n")
    assert "is not TOPIC:PARTITION=BROKER,BROKER" in run("cluster", "reassign", "lies:0=1,1").err


def test_what_a_broker_does_not_offer_is_one_line(run: Run) -> None:
    ended = run("acls", "list")
    assert (ended.status, ended.out, ended.err.count("\n")) == (1, "", 1)


def test_quotas_are_set_and_listed_and_controllers_shown(run: Run) -> None:
    assert run("quotas", "set", "--user", "slow", "producer_byte_rate=1000").status == 0
    (row,) = run("quotas", "list", "--user", "slow", "-o", "json").rows
    assert (row["user"], row["quota"], row["value"]) == ("slow", "producer_byte_rate", 1000)
    (node,) = run("cluster", "quorum", "-o", "json").rows
    assert (node["node"], node["role"]) == (1, "leader")


def test_rules_and_quotas_need_to_say_for_whom(run: Run) -> None:
    assert "a rule needs --principal" in run("acls", "create", "--topic", "t").err
    assert "did you mean read?" in run("acls", "list", "--operation", "raed").err
    assert "which rules?" in run("acls", "delete", "--yes").err
    assert "whom for?" in run("quotas", "set", "producer_byte_rate=1").err
    assert "must be a number" in run("quotas", "set", "--user", "a", "producer_byte_rate=fast").err
    rows = run("acls", "create", "--principal", "User:a", "--operation", "read,describe", "--topic", "t", "--prefixed",
               "--dry-run", "-o", "json").rows
    assert [(row["operation"], row["pattern"], row["permission"], row["host"]) for row in rows] == [
        ("read", "prefixed", "allow", "*"), ("describe", "prefixed", "allow", "*")]


def test_a_password_comes_from_where_nobody_sees_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "there is no terminal to ask for the password on" in run("users", "set", "u").err
    assert run("users", "set", "u", "--password-env", "NOT_SET").err.endswith("the environment has no NOT_SET\n")
    assert "No such file" in run("users", "set", "u", "--password-file", str(tmp_path / "none")).err
    (tmp_path / "empty").write_text("\n")
    assert "the password is empty" in run("users", "set", "u", "--password-file", str(tmp_path / "empty")).err
    warned = run("users", "set", "u", "--password", "geheim")
    assert "other users of this machine can see --password" in warned.err
    assert "geheim" not in warned.err
    asked = iter(["geheim", "geheimer"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(asked))
    assert "the two passwords differ" in run("users", "set", "u").err


def test_an_error_is_found_by_code_and_by_both_names(run: Run) -> None:
    for given in ("3", "UNKNOWN_TOPIC_OR_PART", "unknown_topic_or_partition"):
        (row,) = run("errors", given, "-o", "json").rows
        assert (row["code"], row["retriable"], row["exit"]) == (3, True, 5)
    assert run("errors", "-o", "name", "--", "-192").out == "-192\n"
    rows = run("errors", "-o", "json").rows
    assert len(rows) == len(CODES)
    assert {row["exit"] for row in rows} <= MEANINGS.keys()
    assert run("errors", "not_enough_replica") == (
        5, "", "headrace errors: there is no error 'not_enough_replica'; did you mean NOT_ENOUGH_REPLICAS?\n")


def test_versions_of_a_broker_stand_beside_ours(run: Run) -> None:
    rows = {row["api"]: row for row in run("api-versions", "--broker", "1", "-o", "json").rows}
    assert rows["Produce"]["ours"] == API[0].max_version
    assert rows["Fetch"]["lowest"] <= rows["Fetch"]["highest"]
