"""`headrace perf produce`, and what all measurements share: workers in turn, their topics, what is shown of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from headrace.cli.measuring.figures import WARM_UP, LoadOutcome, middle
from headrace.cli.measuring.peers import OURS, secrets_hidden, settings_of, version_of
from headrace.cli.measuring.perf_options import PerfOptions, make_parser, read_options
from headrace.cli.measuring.tables import final_table, second_line
from headrace.cli.shared.exits import DONE, FAILED, complain, guarded
from headrace.cli.shared.signals import name_of, told_of_signals
from headrace.config import PRODUCER, Config
from headrace.errors import ConfigError, KafkaError, KafkaException

if TYPE_CHECKING:
    from headrace import Consumer, TopicPartition
    from headrace.admin import AdminClient

__all__ = ["PerfRun", "WorkerFailedError", "main", "make_parser", "measured"]

_ADMIN_S = 30.0
_PAUSE_S = 0.1


class WorkerFailedError(Exception):
    """A worker could not measure its client."""


def main(argv: list[str]) -> int:
    """Measure, and show.

    Args:
        argv: arguments after the command's names.

    Returns:
        0 when all is measured and stored, 1 when records are missing or a client failed, another one where that has a
        reason with a number of its own; see `cli.shared.exits.MEANINGS`.
    """
    return measured(PerfRun, read_options, argv)


def measured(run: type[PerfRun], read: Callable[[list[str]], PerfOptions], argv: list[str]) -> int:
    """Read a command line, measure and show.

    Args:
        run: what is measured.
        read: reads the command line.
        argv: arguments after the command's names.

    Returns:
        As `main`.
    """
    def measure() -> int:
        options = read(argv)
        if options.plot is not None:
            from headrace.cli.measuring.plot import require_matplotlib

            require_matplotlib()
        return run(options).run()

    return guarded(run.program, measure)


class PerfRun:
    """One comparison.

    Args:
        options: the command line.

    Attributes:
        program: for complaints.
        module: what a worker runs.
        verb: what is done with the records.
        roles: of the clients that a worker makes.
    """

    program = "headrace perf produce"
    module = "headrace.cli.measuring.worker"
    verb = "sent"
    roles: tuple[str, ...] = (PRODUCER,)

    def __init__(self, options: PerfOptions) -> None:
        self._options = options
        self._properties = dict(options.properties)
        self._outcomes: dict[str, list[LoadOutcome]] = {}
        self._left_out: dict[str, str] = {}
        self._failed = False
        self._interrupted = 0
        self._signal = 0
        self._cleaning = False
        self._worker: subprocess.Popen[str] | None = None

    def complain(self, text: str) -> None:
        """One line on standard error."""
        complain(self.program, text)

    def run(self) -> int:
        """Measure every client in every round; show it. Returns the exit status."""
        try:
            self._run()
        except KeyboardInterrupt:
            if self._signal != signal.SIGTERM:
                raise
        if self._signal:
            return 128 + self._signal
        failed = any(found.failed for rounds in self._outcomes.values() for found in rounds)
        return FAILED if self._failed or failed else DONE

    def _run(self) -> None:
        with ExitStack() as stack:
            if self._options.embedded:
                self._properties["bootstrap.servers"] = stack.enter_context(_embedded())
            for role in self.roles:
                Config(role, self._properties)  # what is wrong with a property shows before anything is made
            stack.enter_context(told_of_signals(self._on_interrupt))
            self._introduce()
            topic = stack.enter_context(self._topic(self._options.topic)) if self._options.topic else None
            clients = self._clients()
            for turn in range(self._options.rounds):
                first = turn % len(clients)
                for client in clients[first:] + clients[:first]:
                    if not self._interrupted and client not in self._left_out:
                        self._measure(client, topic)
            self._show()

    def _clients(self) -> list[str]:
        """Ours and those that are installed and understand the settings; the others are named."""
        found = [OURS]
        for client in self._options.against:
            try:
                if version_of(client) is None:
                    self._left_out[client] = f"not installed: pip install {client}"
                    self._failed |= not self._options.asked_for_all
                else:
                    for role in self.roles:
                        settings_of(client, self._properties, role)
                    found.append(client)
            except ConfigError as error:
                self._left_out[client] = str(error)
                self._failed = True
        for client, why in self._left_out.items():
            self.complain(f"{client} is left out: {why}")
        return found

    def _introduce(self) -> None:
        options = self._options
        if options.embedded:
            print("No brokers are named: this is the embedded broker, in this process and in memory. It shows how "
                  "clients compare, not how fast Kafka is; name brokers with -b.")
        what = f"lines of {options.payload_file}, {options.size:,} B on average" if options.payload_file else (
            f"values of {options.size:,} B")
        pace = f", {options.rate:,.0f} records/s" if options.rate else ""
        shown = " ".join(f"{name}={content}" for name, content in sorted(secrets_hidden(self._properties).items()))
        print(f"{options.records:,} records, {what}, no keys{pace}; {shown}", flush=True)

    # One run

    def _measure(self, client: str, topic: str | None) -> None:
        with ExitStack() as stack:
            name = topic or stack.enter_context(self._topic(f"perf-{uuid.uuid4().hex[:12]}"))
            before = self._count(name)
            found = self._tried(client, name)
            if found is None:
                return
            missing = found.records + found.failed + WARM_UP - (self._count(name) - before)
            if missing > found.failed:
                found.first_error = found.first_error or f"{missing:,} records are not in the topic"
                found.records -= missing - found.failed
                found.failed = missing
            self._outcomes.setdefault(client, []).append(found)

    def _tried(self, client: str, topic: str) -> LoadOutcome | None:
        """The figures of a worker; None when it has none, which is told."""
        try:
            return self._run_worker(client, topic)
        except WorkerFailedError as error:
            self._left_out[client] = str(error)
            self._failed = True
            self.complain(f"{client} is left out: {error}")
            return None

    def request(self, client: str, topic: str) -> dict[str, Any]:
        """What a worker is told."""
        options = self._options
        return {
            "client": client, "topic": topic, "settings": settings_of(client, self._properties, self.roles[0]),
            "records": options.records, "size": options.size, "rate": options.rate, "seconds": options.seconds,
            "every": options.every, "payload_file": options.payload_file,
            "payload_delimiter": options.payload_delimiter,
        }

    def _run_worker(self, client: str, topic: str) -> LoadOutcome:
        """Run a process to its end, and show the figures that it prints.

        Raises:
            WorkerFailedError: it has no figures.
        """
        request = self.request(client, topic)
        with tempfile.TemporaryFile("w+") as complaints:
            worker = subprocess.Popen(
                [sys.executable, "-m", self.module], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=complaints, text=True, start_new_session=True)  # Ctrl-C is passed on by us, once
            self._worker = worker
            assert worker.stdin is not None
            assert worker.stdout is not None
            last: dict[str, Any] = {}
            try:
                print(json.dumps(request), file=worker.stdin, flush=True)
                worker.stdin.close()
                for line in worker.stdout:
                    last = json.loads(line)
                    if "second" in last:
                        print(second_line(client, last, self.verb), flush=True)
            except BrokenPipeError:
                pass  # it ended before it read: what it wrote says why
            finally:
                worker.kill()
                worker.wait()
                worker.stdout.close()
                self._worker = None
            if "wall_s" in last:
                return LoadOutcome.of(last)
            complaints.seek(0)
            written = complaints.read().strip().splitlines()
            raise WorkerFailedError(str(last.get("trouble") or (written or ["it ended without figures"])[-1]))

    def _on_interrupt(self, number: int) -> None:
        self._interrupted += 1
        self._signal = number
        if self._worker is None and not self._cleaning:
            raise KeyboardInterrupt
        if self._worker is not None:
            if self._interrupted == 1:
                self._worker.send_signal(signal.SIGINT)
            else:
                self._worker.kill()

    # Topics

    @contextmanager
    def _topic(self, name: str) -> Iterator[str]:
        """A topic, made if it is not there; what was made is deleted in the end."""
        from headrace.admin import AdminClient, NewTopic

        admin = AdminClient(self._admin_properties())
        try:
            admin.create_topics([NewTopic(name, self._options.partitions, self._options.replication)],
                                request_timeout=_ADMIN_S)[name].result(_ADMIN_S)
        except KafkaException as error:
            # Who may not make topics may have one all the same.
            if error.error != KafkaError.TOPIC_ALREADY_EXISTS and not (
                    error.error == KafkaError.TOPIC_AUTHORIZATION_FAILED and self._is_there(admin, name)):
                raise
            yield name
            return
        try:
            yield name
        finally:
            self._cleaning = True
            try:
                admin.delete_topics([name], request_timeout=_ADMIN_S)[name].result(_ADMIN_S)
            except KafkaException as error:
                self.complain(f"topic {name} was made and could not be deleted: {error.error.str()}")
            finally:
                self._cleaning = False

    def _is_there(self, admin: AdminClient, topic: str) -> bool:
        found = admin.list_topics(topic, timeout=_ADMIN_S).topics.get(topic)
        return found is not None and found.error is None

    def _admin_properties(self) -> dict[str, Any]:
        """Of clients that look around; what they have to say of connections is in their errors."""
        return {**{name: content for name, content in self._properties.items() if "interceptor" not in name},
                "error_cb": lambda error: None}

    def _count(self, topic: str) -> int:
        """The sum of a topic's end offsets."""
        from headrace import Consumer, TopicPartition

        with Consumer({**self._admin_properties(), "group.id": "headrace-perf"}) as consumer:
            while not (known := consumer.list_topics(topic, timeout=_ADMIN_S).topics[topic].partitions):
                pass  # it was made a moment ago
            return sum(_end_offset(consumer, TopicPartition(topic, number)) for number in known)

    # The end

    def _show(self) -> None:
        outcomes = {client: middle(rounds) for client, rounds in self._outcomes.items()}
        if self._interrupted:
            print(f"stopped by {name_of(self._signal)}: the figures are of what was {self.verb} until then")
        if not outcomes:
            return
        reference = OURS if OURS in outcomes else next(iter(outcomes))
        ordered = {reference: outcomes.pop(reference), **outcomes}
        print()
        if self._options.rounds > 1:
            print(f"medians of {self._options.rounds} rounds; "
                  + ", ".join(f"{client} {version_of(client)}" for client in ordered))
        else:
            print(", ".join(f"{client} {version_of(client)}" for client in ordered))
        for line in final_table(ordered, reference):
            print(line)
        for client, found in ordered.items():
            if found.failed:
                self.complain(f"{client}: {found.failed:,} records failed: {found.first_error}")
        self._write(ordered)
        sys.stdout.flush()

    def _write(self, ordered: dict[str, LoadOutcome]) -> None:
        options = self._options
        if options.plot is not None:
            from headrace.cli.measuring.plot import draw

            broker = "embedded broker" if options.embedded else self._properties["bootstrap.servers"]
            try:
                draw(options.plot, ordered, f"{options.records:,} records of {options.size:,} B, {broker}")
            except (OSError, ValueError) as error:
                raise ConfigError(f"--plot {options.plot}: {error}") from None
            print(f"plotted into {options.plot}")
        if options.json is not None:
            content = {
                "settings": secrets_hidden(self._properties), "embedded": options.embedded, "left_out": self._left_out,
                "clients": {client: {"version": version_of(client), "rounds": [_plain(each) for each in rounds]}
                            for client, rounds in self._outcomes.items()}}
            options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
            print(f"written to {options.json}")


def _end_offset(consumer: Consumer, partition: TopicPartition) -> int:
    """Of a topic that was made a moment ago: the broker that is asked may not have heard of it."""
    until = time.monotonic() + _ADMIN_S
    while True:
        try:
            offsets = consumer.get_watermark_offsets(partition, timeout=_ADMIN_S)
        except KafkaException as error:
            if error.error != KafkaError._UNKNOWN_PARTITION or time.monotonic() >= until:
                raise
            time.sleep(_PAUSE_S)
        else:
            return offsets[1] if offsets else 0


def _plain(found: LoadOutcome) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(found) | {"records_per_s": found.rate, "cpu_s_per_million": found.cpu_s_per_million}


@contextmanager
def _embedded() -> Iterator[str]:
    from headrace.testing import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers
