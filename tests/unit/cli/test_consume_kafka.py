"""`headrace consume` and `headrace copy` at a real Kafka: round trips, groups of each kind, what is not allowed.

`python -m tests.unit.cli.test_consume_kafka 1000000` does the round trips with so many records.
"""

import hashlib
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.admin import AdminClient as Admin
from headrace.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from headrace.cli.consume import main
from headrace.cli.copy import main as copy
from headrace.cli.produce import main as produce
from tests.support.real_kafka import running
from tools.kafka import KafkaCluster

COMMAND = [sys.executable, "-c", "import sys; from headrace.cli import main; sys.exit(main())"]
FORMS = ("jsonl", "parquet", "pipe", "copy", "exactly-once")
pytestmark = [pytest.mark.kafka]


@pytest.fixture(scope="module")
def kafka():
    yield from running(KafkaCluster(quick=True))


def make(kafka, *topics, partitions=3):
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    keep = {"retention.ms": "-1"}  # the records say that they are old
    for made in admin.create_topics([NewTopic(topic, partitions, 1, config=keep) for topic in topics]).values():
        made.result(30)


def fill(kafka, topic, count):
    """Records of all kinds, written by another client: text, bytes, nothing and null, some with keys and headers."""
    chance = random.Random(count)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 50, "compression.type": "lz4",
                         "queue.buffering.max.messages": 1_000_000})
    for row in range(count):
        kind = row % 7
        value = (None, b"", b"plain %d" % row, chance.randbytes(40), "ünï\u2028\"\\\n\0{}".encode(),
                 b'{"base64":"AA=="}', b'{"n": %d}' % row)[kind]
        headers = [("h", chance.randbytes(3)), ("h", None), ("ü", b"")] if row % 5 == 0 else None
        while True:
            try:
                producer.produce(topic, value, None if row % 3 == 0 else b"key-%d\xff" % (row % 1000), row % 3,
                                 timestamp=1_700_000_000_000 + row, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def digests(kafka, topic, count):
    """A digest of each partition's records in their order, read by another client."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "digests",
                         "enable.auto.commit": False, "isolation.level": "read_committed"})
    found = {number: hashlib.sha256() for number in range(3)}
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in found])
        left = count
        while left:
            messages = consumer.consume(min(left, 10_000), 30)
            assert messages, f"{left} of {count} records are missing"
            for message in messages:
                assert message.error() is None
                found[message.partition()].update(repr((
                    message.key(), message.value(), message.headers(), message.timestamp())).encode())
            left -= len(messages)
        assert consumer.poll(1) is None, "there are more records than were written"
    finally:
        consumer.close()
    return {number: digest.hexdigest() for number, digest in found.items()}


def round_trip(kafka, source, target, form, directory):
    """Take records out of a topic and send them to another one."""
    brokers = ["-b", kafka.bootstrap_servers]
    if form == "copy":
        assert copy([source, target, *brokers, "-q"]) == 0
    elif form == "exactly-once":
        assert copy([source, target, *brokers, "-q", "--exactly-once", "--transaction-every", "3000"]) == 0
    elif form == "pipe":
        with subprocess.Popen([*COMMAND, "consume", source, *brokers, "-e", "-q", "--output", "json"],
                              stdout=subprocess.PIPE) as reader:
            assert subprocess.run([*COMMAND, "produce", target, *brokers, "-q", "--format", "jsonl"],
                                  stdin=reader.stdout, check=False).returncode == 0
        assert reader.returncode == 0
    else:
        path = directory / f"records.{form}"
        assert main([source, *brokers, "-e", "-q", "-O", str(path)]) == 0
        assert produce([target, str(path), *brokers, "-q"]) == 0


@pytest.fixture(scope="module")
def filled(kafka):
    make(kafka, "source", *(f"target-{form}" for form in FORMS))
    fill(kafka, "source", 10_000)
    return digests(kafka, "source", 10_000)


@pytest.mark.parametrize("form", FORMS)
def test_ten_thousand_records_come_back_bit_for_bit(kafka, filled, tmp_path, form):
    round_trip(kafka, "source", f"target-{form}", form, tmp_path)
    assert digests(kafka, f"target-{form}", 10_000) == filled


@pytest.mark.parametrize("options", [[], ["-X", "group.protocol=consumer"], ["--share"]])
def test_a_group_of_each_kind_takes_what_the_one_before_left(kafka, capfdbinary, options):
    topic = f"group-{len(options)}-{'share' in str(options)}"
    make(kafka, topic, partitions=1)
    group = ["-g", topic, "-b", kafka.bootstrap_servers, "-q", *options]
    if "--share" in options:
        begin_at_the_beginning(kafka, topic)
    lines = b"".join(b"%d\n" % row for row in range(10))
    subprocess.run([*COMMAND, "produce", topic, "-b", kafka.bootstrap_servers, "-q"], input=lines, check=True)
    assert main([topic, *group, "-c", "4"]) == 0
    assert main([topic, *group, "-c", "6"]) == 0
    out = capfdbinary.readouterr().out.splitlines()
    assert sorted(map(int, out)) == list(range(10))


def begin_at_the_beginning(kafka, group):
    """Set where a share group begins."""
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = Admin({"bootstrap.servers": kafka.bootstrap_servers})
    admin.incremental_alter_configs([resource])[resource].result(30)


def main_of(count):
    """The round trips with many records, as a program."""
    cluster = KafkaCluster(quick=True)
    cluster.start()
    try:
        make(cluster, "source", *(f"target-{form}" for form in FORMS))
        fill(cluster, "source", count)
        wanted = digests(cluster, "source", count)
        with TemporaryDirectory() as directory:
            for form in FORMS:
                began = time.monotonic()
                round_trip(cluster, "source", f"target-{form}", form, Path(directory))
                taken = time.monotonic() - began
                same = digests(cluster, f"target-{form}", count) == wanted
                print(f"{form:<13} {count:,} records in {taken:6.1f} s: {'the same' if same else 'DIFFERENT'}",
                      flush=True)
                if not same:
                    return 1
    finally:
        cluster.close()
    return 0


if __name__ == "__main__":
    sys.exit(main_of(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
