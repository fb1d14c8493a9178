"""A tour of every command on a real Kafka: what each prints is compared with a transcript."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from headrace import Consumer, Producer, ShareConsumer
from headrace.cli import main
from headrace.cli.shared.commands import COMMANDS
from headrace.testing import EmbeddedBroker
from tests.integration.kafka.command_line_tour import Command, Step, arguments_of, commands_of, fits, said_by, steps
from tests.support.real_kafka import running, until
from tools.kafka import NEWEST, USERS, KafkaCluster

PATIENCE_S = 15
CHANGES = {"--yes", "create", "set", "alter", "register", "produce", "copy", "broker"}
"""Words of commands that cannot be given again to see whether they say something else now."""
A_FILE = "the file "


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


class Shell:
    """Gives commands in this process, with a standard input of their own.

    Args:
        capture: has what they write.
        named: what stands for words of the transcript, see `arguments_of`.
        stack: ends what stays.
    """

    def __init__(
        self, capture: pytest.CaptureFixture[str], named: dict[str, list[str]], stack: ExitStack
    ) -> None:
        self._capture = capture
        self._named = named
        self._stack = stack
        self._staying: subprocess.Popen[str] | None = None

    def run(self, step: Step) -> list[str]:
        """Give the commands of a line. Returns what the last one says, with all errors."""
        given, errors, status = b"", "", 0
        for command in commands_of(step.typed):
            if command.words[0] == "printf":
                (text,) = command.words[1:]
                given = text.encode().decode("unicode_escape").encode()
                continue
            if command.stays:
                return self._start(command, len(step.said))
            status = with_input(command.file, given, lambda words=command.words: self._main(words))
            out, err = self._capture.readouterr()
            given, errors = out.encode(), errors + err
        return said_by(status, given.decode(), errors)

    def _main(self, words: list[str]) -> int:
        try:
            return main(arguments_of(words, self._named))
        except SystemExit as left:
            return int(str(left.code))

    def _start(self, command: Command, lines: int) -> list[str]:
        """A process, which writes so many lines before it goes on in silence."""
        self._staying = self._stack.enter_context(subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", *arguments_of(command.words, self._named)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        self._stack.callback(self._staying.kill)
        assert self._staying.stdout is not None
        said = [self._staying.stdout.readline() for _ in range(lines)]
        self._named["BROKER"] = [said[0].strip().partition("=")[2]]
        return said_by(0, "".join(said), "")

    def interrupt(self) -> list[str]:
        """Ctrl-C for what stays. Returns what it says then."""
        assert self._staying is not None
        self._staying.send_signal(signal.SIGINT)
        out, err = self._staying.communicate(timeout=PATIENCE_S)
        return said_by(self._staying.returncode, out, err)


def with_input(file: str | None, piped: bytes, work: Callable[[], int]) -> int:
    """Call something whose standard input is a file, or a pipe with these bytes; gives its exit status."""
    if file is not None:
        descriptor = os.open(file, os.O_RDONLY)
    else:
        descriptor, end = os.pipe()
        os.write(end, piped)
        os.close(end)
    before, kept = sys.stdin, os.dup(0)
    os.dup2(descriptor, 0)
    os.close(descriptor)
    try:
        with open(0, encoding="utf-8", closefd=False) as sys.stdin:
            return work()
    finally:
        sys.stdin = before
        os.dup2(kept, 0)
        os.close(kept)


def test_every_command_says_what_the_transcript_says(
    cluster: KafkaCluster, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TOUR_PASSWORD", "secret")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("HEADRACE_PROFILE", "HEADRACE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    named = {user: come(cluster, user, USERS.get(user, "wrong")) for user in ("alice", "mallory")}
    servers = cluster.bootstrap_servers
    named |= {"KAFKA": [servers], "NODE": [servers.partition(",")[0]],
              "LOGS": [str(cluster.directory / "node-1" / "data")]}

    with EmbeddedBroker(registry=True) as registry, ExitStack() as stack:
        monkeypatch.setenv("HEADRACE_SCHEMA_REGISTRY_URL", registry.registry_url)
        happenings, shell = Happenings(cluster.connection, stack), Shell(capfd, named, stack)
        for step in steps():
            if step.typed.startswith(A_FILE):
                Path(step.typed.removeprefix(A_FILE)).write_text("\n".join([*step.said, ""]))
            elif step.typed == "Ctrl-C to what stays":
                assert fits(said := shell.interrupt(), step.said), said
            elif step.happens:
                happenings.happen(step.typed)
            else:
                said, deadline = shell.run(step), time.monotonic() + PATIENCE_S
                # A broker that is asked hears of a change a moment after the one that made it.
                while not fits(said, step.said) and reads(step) and time.monotonic() < deadline:
                    time.sleep(0.1)
                    said = shell.run(step)
                assert fits(said, step.said), f"{step.typed}: {said}"


def reads(step: Step) -> bool:
    """It changes nothing, or will be refused for how it was used, and so can be asked again."""
    return not CHANGES & set(step.typed.split()) or step.said[-1:] == ["[2]"]


def come(cluster: KafkaCluster, user: str, password: str) -> list[str]:
    """Options by which a user comes."""
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": user,
                  "sasl.password": password}
    return ["-b", cluster.bootstrap("SASL_PLAINTEXT"), *(
        word for name, value in properties.items() for word in ("-X", f"{name}={value}"))]


def test_the_tour_leaves_out_no_command() -> None:
    typed = [command.words[1:3] for step in steps() if not step.happens for command in commands_of(step.typed)]
    left = list[str]()
    for name, command in COMMANDS.items():
        module = command.load()
        subs = module.make_parsers() if hasattr(module, "make_parsers") else [None]
        left += [f"{name} {sub or ''}" for sub in subs
                 if not any(each[:1] == [name] and (sub is None or each[1:] == [sub]) for each in typed)]
    assert left == []
