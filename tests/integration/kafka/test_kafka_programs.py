"""Programs written for confluent_kafka, run with both packages on real Kafka: they differ in their imports alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing import EmbeddedBroker
from tests.support.real_kafka import until
from tools.kafka import KafkaCluster

PROGRAMS = Path(__file__).with_name("programs")
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
PATIENCE_S = 90


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with EmbeddedBroker(registry=True) as broker:
        yield broker.registry_url


def run(program: str, package: str, cluster: KafkaCluster, registry: str) -> str:
    """What a program prints, with another name in its imports, about topics of its own."""
    topic = f"{program}-{package}"
    admin = AdminClient({**cluster.connection, "log_level": 0})
    names = [topic, f"{topic}-out", *(f"{topic}-{each}" for each in ("avro", "json", "protobuf"))]
    for made in admin.create_topics([NewTopic(name, 3, 1) for name in names]).values():
        made.result(30)
    until(lambda: set(names) <= admin.list_topics(timeout=10).topics.keys())
    text = (PROGRAMS / f"{program}.py").read_text().replace("confluent_kafka", package)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text, cluster.bootstrap_servers, registry, topic],
                          text=True, capture_output=True, timeout=PATIENCE_S, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.replace(topic, "TOPIC").replace(package, "PACKAGE")


@pytest.mark.parametrize("program", NAMES)
def test_a_program_does_the_same_with_both_packages(program: str, kafka: KafkaCluster, registry: str) -> None:
    theirs, ours = (run(program, package, kafka, registry) for package in ("confluent_kafka", "headrace"))
    assert len(theirs.splitlines()) >= 2
    assert ours == theirs
