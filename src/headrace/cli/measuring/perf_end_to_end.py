"""`headrace perf end-to-end`: how long a record takes from the call that sends it to the call that gives it back."""

from __future__ import annotations

import argparse
from typing import Any

from headrace.cli.measuring.peers import CONSUMER_DEFAULTS, DEFAULTS, settings_of
from headrace.cli.measuring.perf_options import options_of, shared_options
from headrace.cli.measuring.perf_produce import PerfRun, measured
from headrace.cli.shared.parsers import Parser
from headrace.config import CONSUMER, PRODUCER

__all__ = ["EndToEndRun", "main", "make_parser"]

_DEFAULTS = {**DEFAULTS, **CONSUMER_DEFAULTS, "linger.ms": "0"}
_EXAMPLES = """\
examples:
  headrace perf end-to-end                                      on the embedded broker
  headrace perf end-to-end -b localhost:9092 --throughput 100 --num-records 6000
  headrace perf end-to-end -b localhost:9092 --against all --rounds 3 --plot latency.png
  headrace perf end-to-end -b localhost:9092 -X acks=1 -X linger.ms=5

Each client is measured in a process of its own, which has a producer and a consumer of it. Records go out at an even
rate, with acks=all, enable.idempotence=true and linger.ms=0 unless -X says otherwise; each carries the time at which it
was sent. Latency is from then until the consumer hands it out. CPU is that of the process, both ends together.

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
    return measured(EndToEndRun, lambda given: options_of(make_parser(), given, _DEFAULTS), argv)


def make_parser() -> Parser:
    """The parser of `headrace perf end-to-end`."""
    parser = Parser("headrace perf end-to-end", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
                    description="Measure how long records take from a producer to a consumer, each second and at the "
                    "end.")
    shared_options(parser, records=10_000, rate=1_000.0, use="write to and read")
    return parser


class EndToEndRun(PerfRun):
    """A comparison of clients at both ends.

    Args:
        options: the command line.
    """

    program = "headrace perf end-to-end"
    module = "headrace.cli.measuring.reading_worker"
    verb = "received"
    roles = (PRODUCER, CONSUMER)

    def request(self, client: str, topic: str) -> dict[str, Any]:
        """What a worker is told."""
        return {**super().request(client, topic), "way": "end-to-end", "every": 1,
                "reading": settings_of(client, self._properties, CONSUMER)}
