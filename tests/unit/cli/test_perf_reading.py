"""`headrace perf consume` and `headrace perf end-to-end`: each client in a process of its own."""

import json

import pytest

from headrace.admin import AdminClient
from headrace.cli.measuring.peers import CONSUMER_DEFAULTS, settings_of
from headrace.cli.perf import main
from headrace.config import CONSUMER
from headrace.errors import ConfigError
from headrace.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(topics={"mine": 2}) as running:
        yield running


@pytest.mark.parametrize(("command", "count"), [("consume", "3000"), ("end-to-end", "300")])
def test_all_clients_are_measured_and_compared(broker, tmp_path, capsys, command, count):
    report = tmp_path / "perf.json"
    status = main([command, "-b", broker.bootstrap_servers, "--num-records", count, "--against", "all", "--json",
                   str(report)])
    told = capsys.readouterr()
    assert (status, told.err) == (0, "")
    found = json.loads(report.read_text())["clients"]
    assert list(found) == ["headrace", "confluent-kafka", "kafka-python", "aiokafka"]
    for client in found.values():
        outcome, = client["rounds"]
        assert outcome["records"] >= int(count)
        assert outcome["failed"] == 0
        assert len(outcome["latencies_ms"]) == (0 if command == "consume" else 6)
    assert "x: that client's figure divided by headrace's" in told.out
    assert set(AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics) == {"mine"}


def test_a_topic_with_too_few_records_is_wrong_usage(broker, capsys):
    assert main(["consume", "-b", broker.bootstrap_servers, "--topic", "mine", "--num-records", "500"]) == 0
    assert main(["consume", "-b", broker.bootstrap_servers, "--topic", "mine", "--num-records", "501"]) == 2
    assert "mine has 1,500 records" in capsys.readouterr().err


def test_settings_of_readers_have_the_names_of_each_client():
    given = {**CONSUMER_DEFAULTS, "bootstrap.servers": "a:1", "linger.ms": "5"}
    assert settings_of("kafka-python", given, CONSUMER) == {
        "bootstrap_servers": "a:1", "fetch_min_bytes": 1, "fetch_max_wait_ms": 500, "fetch_max_bytes": 52_428_800,
        "max_partition_fetch_bytes": 1_048_576}
    assert "linger.ms" not in settings_of("confluent-kafka", given, CONSUMER)
    with pytest.raises(ConfigError, match="aiokafka has nothing like"):
        settings_of("aiokafka", {**given, "reconnect.backoff.ms": "5"}, CONSUMER)
