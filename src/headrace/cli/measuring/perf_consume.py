"""`headrace perf consume`: how fast clients read a topic that is there, or is filled first."""

from __future__ import annotations

import argparse
import uuid
from typing import Any

from headrace.cli.measuring.figures import WARM_UP
from headrace.cli.measuring.peers import CONSUMER_DEFAULTS
from headrace.cli.measuring.perf_options import options_of, shared_options
from headrace.cli.measuring.perf_produce import PerfRun, measured
from headrace.cli.shared.output import amount
from headrace.cli.shared.parsers import Parser
from headrace.config import CONSUMER
from headrace.errors import ConfigError, KafkaException

__all__ = ["ConsumeRun", "main", "make_parser"]

_FILL_S = 300.0
_EXAMPLES = """\
examples:
  headrace perf consume                                         on the embedded broker
  headrace perf consume -b localhost:9092 --topic orders --num-records 5000000
  headrace perf consume -b localhost:9092 --against all --rounds 5 --plot perf.png

Each client reads in a process of its own, from the beginning of all partitions and outside of groups, with the same
settings: the defaults of librdkafka unless -X says otherwise. A topic that is there must have the records; one that is
made is filled first, with random values, compressed as -z says. CPU is that of the client's process. Of ours and of
confluent-kafka `consume()` is measured, which gives lists of messages; of kafka-python `poll()`, of aiokafka
`getmany()`; the value of every message is looked at.

Exit status: 0 all is measured, 1 records are missing or a client failed, 2 wrong usage, 3 no broker answers, 4 not
allowed, 130 after Ctrl-C, 143 after SIGTERM.
"""


def main(argv: list[str]) -> int:
    """Measure, and show.

    Args:
        argv: arguments after the command's names.

    Returns:
        0 when all is measured, 1 when records are missing or a client failed, another one where that has a reason with
        a number of its own; see `cli.shared.exits.MEANINGS`.
    """
    return measured(ConsumeRun, lambda given: options_of(make_parser(), given, CONSUMER_DEFAULTS), argv)


def make_parser() -> Parser:
    """The parser of `headrace perf consume`."""
    parser = Parser("headrace perf consume", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
                    description="Measure how fast records are read: rates and CPU, each second and at the end.")
    shared_options(parser, records=1_000_000, rate=-1.0, use="read")
    return parser


class ConsumeRun(PerfRun):
    """A comparison of clients that read.

    Args:
        options: the command line.
    """

    program = "headrace perf consume"
    module = "headrace.cli.measuring.reading_worker"
    verb = "read"
    roles = (CONSUMER,)

    def _measure(self, client: str, topic: str | None) -> None:
        if topic is None:
            with self._topic(f"perf-{uuid.uuid4().hex[:12]}") as made:
                self._fill(made)
                self._read(client, made)
            return
        there = self._count(topic)
        if not there:
            self._fill(topic)
        elif there < self._options.records + WARM_UP:
            fits = f"--num-records {there - WARM_UP} or less, or " if there > WARM_UP else ""
            raise ConfigError(f"{topic} has {amount(there, 'record')}: {WARM_UP:,} are read before the clock starts, "
                              f"so give {fits}no --topic")
        self._read(client, topic)

    def _read(self, client: str, topic: str) -> None:
        found = self._tried(client, topic)
        if found is not None:
            self._outcomes.setdefault(client, []).append(found)

    def _fill(self, topic: str) -> None:
        from headrace import Producer
        from headrace.cli.measuring.worker import payloads_of

        payloads = payloads_of(self.request("headrace", topic))
        count = self._options.records + WARM_UP
        properties = {**self._properties, "error_cb": lambda error: None, "linger.ms": 20, "batch.size": 1_000_000}
        with Producer(properties) as producer:
            for row in range(count):
                while True:
                    try:
                        producer.produce(topic, payloads[row % len(payloads)])
                        break
                    except BufferError:
                        producer.poll(0.1)
            if producer.flush(_FILL_S):
                raise KafkaException(f"{topic} could not be filled within {_FILL_S:g} s")

    def request(self, client: str, topic: str) -> dict[str, Any]:
        """What a worker is told."""
        return {**super().request(client, topic), "way": "read"}
