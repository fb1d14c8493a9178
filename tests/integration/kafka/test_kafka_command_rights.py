"""The command line at a real Kafka with access rules: a user who lacks a right is told which one, in one line."""

from __future__ import annotations

import pytest

from headrace.cli import main
from tests.support.real_kafka import until
from tests.support.rights import allowed, as_nobody

NOT_ALLOWED = 4


@pytest.fixture
def run(secured, capfd):
    """Run a command as the user who may do nothing; gives status, what was written, and what was said."""
    properties = as_nobody(secured)
    options = [part for name, value in properties.items() for part in ("-X", f"{name}={value}")]

    def run(*words):
        status = main([*words, *options])
        out, err = capfd.readouterr()
        return status, out, err

    return run


@pytest.mark.parametrize(("words", "right"), [
    (["topics", "describe", "orders"], 'DESCRIBE on topic "orders"'),
    (["topics", "offsets", "orders"], 'DESCRIBE on topic "orders"'),
    (["topics", "create", "made"], 'CREATE on topic "made" or on the cluster'),
    (["topics", "alter", "orders", "--partitions", "3"], 'ALTER on topic "orders"'),
    (["topics", "delete", "orders", "--yes"], 'DELETE on topic "orders"'),
    (["groups", "describe", "readers"], 'DESCRIBE on group "readers"'),
    (["groups", "lag", "readers"], 'DESCRIBE on group "readers"'),
    (["groups", "delete", "readers", "--yes"], 'DESCRIBE on group "readers"'),
    (["configs", "list"], "DESCRIBE_CONFIGS on the cluster"),
    (["configs", "describe", "topic", "orders"], 'DESCRIBE_CONFIGS on topic "orders"'),
    (["configs", "describe", "broker", "1"], "DESCRIBE_CONFIGS on the cluster"),
    (["configs", "set", "topic", "orders", "retention.ms=600000"], 'ALTER_CONFIGS on topic "orders"'),
    (["consume", "orders", "-e"], 'READ on topic "orders"'),
    (["consume", "orders", "-c", "1"], 'READ on topic "orders"'),
    (["consume", "orders", "-e", "-o", "stored", "-X", "group.id=readers"], 'READ on topic "orders"'),
])
def test_who_may_do_nothing_is_told_which_right_is_missing(run, words, right):
    status, out, said = run(*words)
    assert (status, out, len(said.splitlines())) == (NOT_ALLOWED, "", 1)
    assert said.startswith(f"headrace {' '.join(words[:1] if words[0] == 'consume' else words[:2])}: ")
    assert said.rstrip().endswith(f"; this needs {right}")
    assert "KafkaError{" not in said


def test_lists_hold_what_one_may_see(run):
    assert run("topics", "list", "-o", "name") == (0, "", "")
    assert run("groups", "list", "-o", "name") == (0, "", "")


def test_who_may_only_describe_a_topic_is_told_that_reading_it_is_another_right(secured, run):
    with allowed(secured, "topic", "orders", "describe"):
        until(lambda: run("topics", "describe", "orders")[0] == 0)
        status, out, said = run("consume", "orders", "-e")
        assert (status, out) == (NOT_ALLOWED, "")
        assert said.endswith('; this needs READ on topic "orders"\n')
    with allowed(secured, "topic", "orders", "read"):
        until(lambda: run("consume", "orders", "-e", "-q") == (0, "one\n", ""))


@pytest.mark.parametrize("options", [["-g", "readers", "-c", "1"], ["-g", "readers", "-e", "-X",
                                                                   "group.protocol=consumer"],
                                     ["-o", "stored", "-e", "-X", "group.id=readers"]], ids=" ".join)
def test_who_may_read_a_topic_and_no_group_is_told_that_a_group_is_another_right(secured, run, options):
    with allowed(secured, "topic", "orders", "read"):
        until(lambda: run("topics", "describe", "orders")[0] == 0)
        status, out, said = run("consume", "orders", *options)
        assert (status, out) == (NOT_ALLOWED, "")
        assert said.splitlines()[-1].endswith('; this needs READ on group "readers"')
