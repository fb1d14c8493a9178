"""Kafka's own Java programs at the other end."""

import pytest

from headrace import Producer
from tests.support.real_kafka import read_all
from tools.kafka import KafkaCluster

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def test_the_console_consumer_reads_every_codec_of_ours(kafka: KafkaCluster, topic: str) -> None:
    for codec in CODECS:
        with Producer({**kafka.connection, "compression.type": codec}) as producer:
            for i in range(100):
                producer.produce(topic, f"{codec} {i}", f"key {i}", headers=[("h", codec.encode())])
            assert producer.flush(30) == 0
    done = kafka.java_tool(
        "console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "500", "--timeout-ms", "20000",
        "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true",
    )
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0, done.stderr.decode()
    assert sorted(lines) == sorted(f"h:{codec}\tkey {i}\t{codec} {i}" for codec in CODECS for i in range(100))


@pytest.mark.parametrize("codec", CODECS)
def test_we_read_what_the_console_producer_writes(kafka: KafkaCluster, topic: str, codec: str) -> None:
    text = "".join(f"k{i}:value {i} ü\n" for i in range(200))
    done = kafka.java_tool(
        "console-producer", "--topic", topic, f"--compression-codec={codec}", "--property", "parse.key=true",
        "--property", "key.separator=:", stdin=text,
    )
    assert done.returncode == 0, done.stderr.decode()
    found = read_all(kafka, topic, 200)
    assert sorted((m.key(), m.value()) for m in found) == sorted(
        (f"k{i}".encode(), f"value {i} ü".encode()) for i in range(200))


@pytest.mark.parametrize("partitioner", ["murmur2", "murmur2_random"])
def test_java_and_we_send_a_key_to_the_same_partition_with_murmur2(
    kafka: KafkaCluster, topic: str, partitioner: str
) -> None:
    keys = [f"key-{i}" for i in range(50)]
    done = kafka.java_tool(
        "console-producer", "--topic", topic, "--property", "parse.key=true", "--property", "key.separator=:",
        stdin="".join(f"{key}:java\n" for key in keys),
    )
    assert done.returncode == 0, done.stderr.decode()
    config = {**kafka.connection, "partitioner": partitioner}
    with Producer(config) as producer:
        for key in keys:
            producer.produce(topic, b"ours", key)
        assert producer.flush(30) == 0
    places: dict[bytes, dict[bytes, int]] = {b"java": {}, b"ours": {}}
    for message in read_all(kafka, topic, 100):
        places[message.value()][message.key()] = message.partition()
    assert places[b"java"] == places[b"ours"]
    assert len(set(places[b"java"].values())) > 1


def test_the_group_program_shows_our_committed_offsets(kafka: KafkaCluster, topic: str) -> None:
    with Producer(kafka.connection) as producer:
        for i in range(30):
            producer.produce(topic, b"v", partition=i % 3)
        producer.flush(30)
    read_all(kafka, topic, 30, **{"group.id": f"shown-{topic}"})
    done = kafka.java_tool("consumer-groups", "--describe", "--group", f"shown-{topic}")
    rows = [line.split() for line in done.stdout.decode().splitlines() if topic in line]
    assert sorted((row[2], row[3], row[4], row[5]) for row in rows) == [(str(p), "10", "10", "0") for p in range(3)]
