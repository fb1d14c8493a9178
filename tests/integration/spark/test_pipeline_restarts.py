"""Pipelines whose queries fail: begun again where they were, said so, given up; exactly once, nothing is twice."""

import json

import pytest

from headrace import Consumer, KafkaError, Producer, TopicPartition
from headrace.cli.run import main
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

PIPELINE = """
[pipeline]
name = "numbers"
checkpoint = "checkpoint"
guarantee = "exactly_once"
[restart]
attempts = {attempts}
first = "10 ms"
[[source]]
name = "numbers"
topic = "numbers"
format = "json"
schema = "n INT"
options.maxOffsetsPerTrigger = 40
[[step]]
name = "doubled"
sql = "SELECT n, 2 * n AS doubled FROM numbers"
{sink}
"""
SINK = """
[[sink]]
from = "doubled"
topic = "doubled"
key = "n"
"""
TRANSACTION = """
[[transaction]]
from = "doubled"
group = "numbers-job"
[[transaction.write]]
topic = "doubled"
key = "n"
[[transaction.write]]
topic = "even"
sql = "SELECT * FROM doubled WHERE n % 2 = 0"
"""


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"numbers": 2, "doubled": 3}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(120):
                producer.produce("numbers", json.dumps({"n": number}), partition=number % 2)
            assert producer.flush(30) == 0
        yield broker


@pytest.fixture
def brokers(broker):
    return broker.bootstrap_servers


@pytest.fixture
def run(spark, broker, tmp_path, capsys):
    """Runs the pipeline in this process, beside the session that is there; gives status, output and complaint."""
    def run(attempts=3, sink=SINK):
        path = tmp_path / "pipeline.toml"
        path.write_text(PIPELINE.format(attempts=attempts, sink=sink))
        status = main([str(path), "--directory", str(tmp_path), "--bootstrap", broker.bootstrap_servers])
        return status, *capsys.readouterr()

    return run


def committed(broker, group):
    """The sum of the offsets that a group has committed for the topic that is read."""
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group}) as consumer:
        return sum(each.offset for each in consumer.committed([TopicPartition("numbers", n) for n in range(2)], 30))


def refused(broker, after, times):
    """A leader refuses produce requests for the topic that is written, in a way that no producer repeats."""
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.INVALID_RECORD,
                           after=after, times=times))


def test_a_query_that_failed_goes_on_where_it_was_and_nothing_is_missing_or_twice(run, broker, values_of, tmp_path):
    refused(broker, after=4, times=1)
    status, told, complaint = run()
    assert (status, complaint) == (0, "")
    assert "sink doubled failed: " in told
    assert "; restart 1 of 3 in 0.0 s\n" in told
    assert "sink doubled runs again\n" in told
    written = sorted(json.loads(value)["doubled"] for value in values_of("doubled"))
    assert written == [2 * number for number in range(120)]
    report = (tmp_path / "report.html").read_text()
    assert "exactly once" in report
    restarts = told.count("sink doubled runs again\n")  # more than ours where Spark's own process is slow to begin
    assert f"<td class=text>restarts</td><td>{restarts}</td>" in report


def test_a_query_that_fails_again_and_again_is_given_up_with_status_1(run, broker, values_of):
    refused(broker, after=0, times=None)
    status, told, complaint = run(attempts=1)
    assert status == 1
    assert told.count("runs again") == 1
    assert complaint.startswith("headrace run: sink doubled failed 2 times in a row, the last time: ")
    assert complaint.count("\n") == 1
    broker.clear_faults()
    assert values_of("doubled") == []
    assert run()[0] == 0  # the checkpoint is whole
    assert len(values_of("doubled")) == 120


def test_a_transaction_writes_several_topics_and_what_failed_is_in_none(run, broker, values_of):
    broker.create_topic("even", 2)
    refused(broker, after=3, times=1)
    status, told, complaint = run(sink=TRANSACTION)
    assert (status, complaint) == (0, "")
    assert " rows read, 180 written to topics doubled, even in 3 batches" in told  # 40 were read twice: tried again
    assert sorted(json.loads(value)["doubled"] for value in values_of("doubled")) == [2 * n for n in range(120)]
    assert sorted(json.loads(value)["n"] for value in values_of("even")) == list(range(0, 120, 2))
    assert committed(broker, "numbers-job") == 120


@pytest.mark.parametrize("damaged", ["", '{"id":"e4', '{"no": "id"}'])
def test_a_checkpoint_whose_metadata_is_damaged_is_named_with_the_remedy(run, tmp_path, damaged):
    kept = tmp_path / "checkpoint" / "doubled" / "metadata"
    kept.parent.mkdir(parents=True)
    kept.write_text(damaged)
    status, _, complaint = run()
    assert status == 2
    assert f"sink doubled: {kept} is damaged: restore it, or name another checkpoint" in complaint
    assert complaint.count("\n") == 1
