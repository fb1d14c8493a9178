"""`headrace produce` at a real Kafka, read back with confluent_kafka."""

import subprocess
import sys

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.cli.perf import main as perf
from headrace.cli.produce import main
from tests.support.real_kafka import running
from tools.kafka import KafkaCluster

COMMAND = [sys.executable, "-c", "import sys; from headrace.cli import main; sys.exit(main())", "produce"]
pytestmark = [pytest.mark.kafka]


@pytest.fixture(scope="module")
def kafka():
    yield from running(KafkaCluster(quick=True))


def make(kafka, topic, **config):
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(30)
    return topic


def read(kafka, topic, count):
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "reader",
                         "isolation.level": "read_committed"})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        return [message for message in consumer.consume(count, 30) if message.error() is None]
    finally:
        consumer.close()


def test_lines_and_envelopes_are_what_another_client_reads(kafka, tmp_path, capsys):
    topic = make(kafka, "command-lines")
    path = tmp_path / "in.txt"
    path.write_text("".join(f"k{number}:value {number}\n" for number in range(5_000)))
    assert main([topic, str(path), "-K", ":", "-z", "zstd", "-H", "h=x", "-b", kafka.bootstrap_servers]) == 0
    path = tmp_path / "in.jsonl"
    path.write_text('{"key": {"hex": "00"}, "value": null, "headers": [["a", "1"]], "timestamp": 1700000000000}\n')
    assert main([topic, str(path), "-b", kafka.bootstrap_servers]) == 0
    *lines, envelope = read(kafka, topic, 5_001)
    assert [(m.key(), m.value(), m.headers()) for m in lines] == [
        (b"k%d" % number, b"value %d" % number, [("h", b"x")]) for number in range(5_000)]
    assert (envelope.key(), envelope.value(), envelope.headers()) == (b"\0", None, [("a", b"1")])
    assert envelope.timestamp()[1] == 1_700_000_000_000
    assert "0 failed" in capsys.readouterr().err


def test_a_transaction_that_meets_a_malformed_line_leaves_nothing(kafka, tmp_path, capsys):
    topic = make(kafka, "command-transaction")
    path = tmp_path / "in.txt"
    path.write_text("a:1\nnothing\n")
    command = [topic, str(path), "-K", ":", "--transactional-id", "command", "-b", kafka.bootstrap_servers]
    assert main(command) == 1
    assert "the transaction was aborted: nobody sees its records" in capsys.readouterr().err
    path.write_text("a:1\nb:2\nc:3\n")
    assert main([*command, "--transaction-every", "2"]) == 0
    assert [message.value() for message in read(kafka, topic, 3)] == [b"1", b"2", b"3"]


def test_records_that_the_broker_finds_too_large_are_told_with_their_lines(kafka):
    topic = make(kafka, "command-large", **{"max.message.bytes": "2000"})
    lines = b"small\n" + b"x" * 5_000 + b"\nsmall too\n"
    done = subprocess.run([*COMMAND, topic, "-b", kafka.bootstrap_servers], input=lines, capture_output=True,
                          timeout=60, check=False)
    assert done.returncode == 1
    assert b"headrace produce: stdin:2: " in done.stderr
    assert b"2 of 3 records stored in command-large" in done.stderr
    assert [message.value() for message in read(kafka, topic, 2)] == [b"small", b"small too"]


def test_perf_counts_what_is_in_the_topic(kafka, capsys):
    command = ["produce", "-b", kafka.bootstrap_servers, "--num-records", "20000", "--against", "confluent-kafka"]
    assert perf(command) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert len([line for line in told.out.splitlines() if " 20,000 " in line]) == 2
