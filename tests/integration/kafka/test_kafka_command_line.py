"""A tour of every command on a real Kafka: what each prints is compared with a transcript."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from headrace import Consumer, Producer, ShareConsumer
from headrace.cli import main
from headrace.cli.shared.commands import COMMANDS
from headrace.testing import EmbeddedBroker
from tests.integration.kafka.command_line_tour import Step, arguments_of, fits, said_by, steps
from tests.support.real_kafka import running, until
from tools.kafka import NEWEST, USERS, KafkaCluster

PATIENCE_S = 15
ELSEWHERE = {"broker", "completion", "consume", "copy", "decode", "demo", "perf", "produce", "run"}
"""Commands with tests of their own on what they do."""
SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Two brokers with access rules."""
    yield from running(KafkaCluster(NEWEST, 2, quick=True, listeners=("SASL_PLAINTEXT",), properties={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS", "share.coordinator.state.topic.replication.factor": "1"}))


class Happenings:
    """What happens between commands."""

    def __init__(self, connection: dict[str, str], stack: ExitStack) -> None:
        self._connection = connection
        self._stack = stack
        self._member: Any = None

    def happen(self, what: str) -> None:
        """Let something happen, by what the transcript calls it."""
        {"ten records each in two partitions of orders": self._fill, "a member of readers reads orders": self._read,
         "the member leaves": self._leave, "a member of sharers reads orders": self._share,
         "a transaction is open on orders": self._begin}[what]()

    def _fill(self) -> None:
        with Producer(self._connection) as producer:
            for number in range(20):
                producer.produce("orders", str(number), partition=number % 2, timestamp=1000 + number // 2)

    def _read(self) -> None:
        self._member = self._stack.enter_context(Consumer({
            **self._connection, "group.id": "readers", "client.id": "reader", "auto.offset.reset": "earliest",
            "enable.auto.commit": False}))
        self._member.subscribe(["orders"])
        seen: list[Any] = []
        until(lambda: seen.extend(self._member.consume(20, 0.5)) or len(seen) == 17)
        self._member.commit(asynchronous=False)

    def _leave(self) -> None:
        self._member.close()

    def _share(self) -> None:
        config = {**self._connection, "group.id": "sharers"}
        with ShareConsumer(config) as consumer:
            consumer.subscribe(["orders"])
            until(lambda: consumer.poll(0.2) or "sharers" in self._share_groups())

    def _share_groups(self) -> set[str]:
        from headrace.admin import AdminClient

        with AdminClient(self._connection) as admin:
            found = admin.describe_share_groups(["sharers"])["sharers"]
            return {"sharers"} if found.exception() is None and found.result().members[0].assignment.topic_partitions \
                else set()

    def _begin(self) -> None:
        producer = Producer({**self._connection, "transactional.id": "pay"})
        self._stack.callback(producer.purge)
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("orders", "x", partition=2)
        producer.flush()


def test_every_command_says_what_the_transcript_says(
    cluster: KafkaCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "order.avsc").write_text(SCHEMA)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TOUR_PASSWORD", "secret")
    for name in ("HEADRACE_PROFILE", "HEADRACE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    users = {user: come(cluster, user, USERS.get(user, "wrong")) for user in ("alice", "mallory")}

    def run(step: Step) -> list[str]:
        try:
            status = main(arguments_of(step.typed, tmp_path, users))
        except SystemExit as left:
            status = int(str(left.code))
        return said_by(status, *capsys.readouterr())

    with EmbeddedBroker(registry=True) as registry, ExitStack() as stack:
        monkeypatch.setenv("HEADRACE_SCHEMA_REGISTRY_URL", registry.registry_url)
        happenings = Happenings(cluster.connection, stack)
        for step in steps():
            if step.happens:
                happenings.happen(step.typed)
                continue
            said, deadline = run(step), time.monotonic() + PATIENCE_S
            # A broker that is asked hears of a change a moment after the one that made it.
            while not fits(said, step.said) and reads(step) and time.monotonic() < deadline:
                time.sleep(0.1)
                said = run(step)
            assert fits(said, step.said), f"{step.typed}: {said}"


def reads(step: Step) -> bool:
    """It changes nothing, and so can be asked again."""
    return not {"--yes", "create", "set", "alter", "register"} & set(step.typed.split())


def come(cluster: KafkaCluster, user: str, password: str) -> list[str]:
    """Options by which a user comes."""
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": user,
                  "sasl.password": password}
    return ["-b", cluster.bootstrap("SASL_PLAINTEXT"), *(
        word for name, value in properties.items() for word in ("-X", f"{name}={value}"))]


def test_the_tour_leaves_out_no_command() -> None:
    typed = [tuple(step.typed.split()[1:3]) for step in steps() if not step.happens]
    left = list[str]()
    for name, command in COMMANDS.items():
        if name in ELSEWHERE:
            continue
        module = command.load()
        subs = module.make_parsers() if hasattr(module, "make_parsers") else [None]
        left += [f"{name} {sub or ''}" for sub in subs
                 if not any(each[0] == name and (sub is None or each[1] == sub) for each in typed)]
    assert left == []
