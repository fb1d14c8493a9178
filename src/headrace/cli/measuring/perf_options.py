"""The command line of `headrace perf produce`, read and checked."""

from __future__ import annotations

import argparse
import codecs
from dataclasses import dataclass
from pathlib import Path

from headrace.cli.measuring.peers import DEFAULTS, PEERS
from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.properties import add_property_options, properties_of

__all__ = ["PerfOptions", "make_parser", "options_of", "read_options", "shared_options"]

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_EMBEDDED_BYTES = 2_000_000_000
_MOST_SAMPLES = 100_000
_EXAMPLES = """\
examples:
  headrace perf produce                                         on the embedded broker
  headrace perf produce -b localhost:9092 --topic load --num-records 5000000 --record-size 1000 -z zstd
  headrace perf produce -b localhost:9092 --throughput 1000 -X linger.ms=0      latency at a steady rate
  headrace perf produce -b localhost:9092 --against all --rounds 5 --plot perf.png
  headrace perf produce --against confluent-kafka --duration 10 --json perf.json

Each client is measured in a process of its own, with the same settings: acks=all, enable.idempotence=true, linger.ms=20
and batch.size=1000000 unless -X says otherwise. A client that has no equivalent of a setting is left out and named. CPU
is that of the client's process; latency is from sending until it is known that the record is stored. At full speed
that is mostly the wait in the client's own buffer: set --throughput to see more than it. Whether all records are in the
topic is asked of the brokers afterwards.

Exit status: 0 all is measured and stored, 1 records are missing or a client failed, 2 wrong usage, 3 no broker answers,
4 not allowed, 130 after Ctrl-C, 143 after SIGTERM.
"""


@dataclass(frozen=True, slots=True)
class PerfOptions:
    """The command line, read.

    Attributes:
        topic: where to, None for a new one for each run.
        records: records of each run.
        size: bytes of a value.
        rate: records per second, 0 for as many as possible.
        seconds: end of each run although records are left, 0 for none.
        payload_file: values to send in turn, None for random ones.
        payload_delimiter: between two of them.
        partitions: of topics that are made.
        replication: replicas of topics that are made.
        rounds: runs of each client.
        against: other clients.
        asked_for_all: `against` is whatever is installed.
        properties: for all clients; without bootstrap.servers the embedded broker is meant.
        every: the latency of each n-th record is measured.
        plot: file for a picture.
        json: file for the figures.
    """

    topic: str | None
    records: int
    size: int
    rate: float
    seconds: float
    payload_file: str | None
    payload_delimiter: str
    partitions: int
    replication: int
    rounds: int
    against: list[str]
    asked_for_all: bool
    properties: dict[str, str]
    every: int
    plot: Path | None
    json: Path | None

    @property
    def embedded(self) -> bool:
        """No brokers are named."""
        return not {"bootstrap.servers", "metadata.broker.list"} & self.properties.keys()


def read_options(argv: list[str]) -> PerfOptions:
    """Read the command line; argparse leaves with status 2 when it is wrong.

    Raises:
        ConfigError: a file of properties cannot be read.
    """
    return options_of(make_parser(), argv, DEFAULTS)


def options_of(parser: Parser, argv: list[str], defaults: dict[str, str]) -> PerfOptions:
    """What a parser of `shared_options`, and perhaps more, reads.

    Args:
        parser: of the command.
        argv: the command line.
        defaults: properties that hold unless others are given.

    Raises:
        ConfigError: a file of properties cannot be read.
    """
    given = parser.parse_args(argv)
    against: list[str] = []
    for name in given.against:
        against += [peer for peer in (PEERS if name == "all" else (name,)) if peer not in against]
    size = given.size
    if given.payload_file is not None:
        try:
            content = Path(given.payload_file).read_bytes()
        except OSError as error:
            parser.error(f"--payload-file {given.payload_file}: {error.strerror}")
        payloads = [line for line in content.split(given.payload_delimiter.encode("latin-1")) if line]
        if not payloads:
            parser.error(f"--payload-file {given.payload_file}: there is nothing in it")
        size = sum(map(len, payloads)) // len(payloads)
    properties = {**defaults, **properties_of(given, {"compression.type": given.codec})}
    if properties.get("transactional.id"):
        parser.error("transactional.id: transactions are not measured here")
    options = PerfOptions(
        given.topic, given.records, size, max(given.rate, 0.0), given.seconds, given.payload_file,
        given.payload_delimiter, given.partitions, given.replication, given.rounds, against, "all" in given.against,
        properties, max(1, given.records // _MOST_SAMPLES), given.plot, given.json)
    if options.embedded and options.records * size > _EMBEDDED_BYTES:
        parser.error(f"{options.records:,} records of {size:,} bytes are more than the embedded broker should hold in "
                     "memory (2 GB): name brokers with -b, or give --num-records or --record-size less")
    return options


def make_parser() -> Parser:
    """The parser of `headrace perf produce`."""
    parser = Parser(
        "headrace perf produce", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measure how fast records are sent: rates, CPU and latency, each second and at "
        "the end.")
    shared_options(parser, records=1_000_000, rate=-1.0)
    return parser


def shared_options(parser: Parser, records: int, rate: float, use: str = "write to") -> None:
    """Add the options of all measurements.

    Args:
        parser: takes them.
        records: of each run.
        rate: records per second; negative for as many as possible.
        use: what is done with the topic.
    """
    add_property_options(parser, "the embedded broker otherwise")
    parser.add_argument("--topic", metavar="TOPIC", help=f"topic to {use}; made if it is not there, and deleted "
                        "afterwards if it was made (default: a new one for each run)")
    parser.add_argument("--num-records", dest="records", type=_positive, default=records, metavar="N",
                        help="records of each run (default: %(default)s)")
    parser.add_argument("--record-size", dest="size", type=_positive, default=100, metavar="BYTES",
                        help="bytes of a value; they are random (default: 100)")
    parser.add_argument("--payload-file", metavar="FILE", help="values to send instead, in turn")
    parser.add_argument("--payload-delimiter", type=_delimiter, default="\n", metavar="DELIM",
                        help=r"what is between two of them (default: \n)")
    parser.add_argument("--throughput", dest="rate", type=float, default=rate, metavar="N",
                        help="records per second; -1 for as many as possible (default: %(default)g)")
    parser.add_argument("--duration", dest="seconds", type=_seconds, default=0.0, metavar="S",
                        help="end each run after so many seconds, although records are left")
    parser.add_argument("-z", dest="codec", choices=_CODECS, help="compression")
    parser.add_argument("--partitions", type=_positive, default=4, metavar="N",
                        help="partitions of topics that are made (default: 4)")
    parser.add_argument("--replication-factor", dest="replication", type=_positive, default=-1, metavar="N",
                        help="replicas of topics that are made (default: as the brokers say)")
    parser.add_argument("--against", action="append", default=[], choices=(*PEERS, "all"),
                        help="measure another client too; may be given again")
    parser.add_argument("--rounds", type=_positive, default=1, metavar="N",
                        help="runs of each client, in turn; medians are shown (default: 1)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures into a PNG, SVG or PDF file (needs "
                        "matplotlib)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures of every run as JSON")


def _delimiter(text: str) -> str:
    try:
        found = codecs.escape_decode(text.encode("utf-8"))[0]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} has a wrong escape: {error}") from None
    if not found:
        raise argparse.ArgumentTypeError("a delimiter cannot be empty")
    return bytes(found).decode("latin-1")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return found
