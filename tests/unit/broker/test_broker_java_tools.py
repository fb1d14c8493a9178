"""Kafka's own Java programs at the embedded broker."""

import os
from collections.abc import Iterator

import pytest

from headrace.testing import EmbeddedBroker
from tools.kafka import MissingJavaError, RegistryError, java_tool

pytestmark = pytest.mark.kafka
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(nodes=2) as broker:
        yield broker


def run(broker: EmbeddedBroker, program: str, *arguments: str, stdin: str | None = None) -> str:
    try:
        done = java_tool(program, "--bootstrap-server", broker.bootstrap_servers, *arguments, stdin=stdin, timeout_s=60)
    except (MissingJavaError, RegistryError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_console_programs_write_and_read_every_codec_in_a_group(shared: EmbeddedBroker) -> None:
    shared.create_topic("java", 3)
    for codec in CODECS:
        run(shared, "console-producer", "--topic", "java", f"--compression-codec={codec}",
            "--property", "parse.key=true", "--property", "key.separator=:",
            stdin="".join(f"key {i}:{codec} {i} ü\n" for i in range(50)))
    assert sum(shared.end_offsets("java")) == 250
    read = run(shared, "console-consumer", "--topic", "java", "--group", "console", "--from-beginning",
               "--max-messages", "250", "--timeout-ms", "20000", "--property", "print.key=true")
    lines = [line for line in read.splitlines() if line.startswith("key ")]  # a notice on options may come first
    assert sorted(lines) == sorted(f"key {i}\t{codec} {i} ü" for codec in CODECS for i in range(50))
    groups = run(shared, "consumer-groups", "--describe", "--group", "console")
    rows = [line.split() for line in groups.splitlines() if line.startswith("console")]
    assert sum(int(row[3]) for row in rows) == 250, groups
    assert run(shared, "consumer-groups", "--list").split() == ["console"]
    assert "console" in run(shared, "consumer-groups", "--delete", "--group", "console")


def test_the_topics_program_makes_alters_and_shows(shared: EmbeddedBroker) -> None:
    run(shared, "topics", "--create", "--topic", "shown", "--partitions", "2", "--replication-factor", "2",
        "--config", "retention.ms=60000")
    run(shared, "topics", "--alter", "--topic", "shown", "--partitions", "4")
    text = run(shared, "topics", "--describe", "--topic", "shown")
    assert "PartitionCount: 4" in text
    assert "retention.ms=60000" in text
    run(shared, "topics", "--delete", "--topic", "shown")
    assert "shown" not in run(shared, "topics", "--list").split()
