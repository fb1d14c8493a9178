"""The command line of `headrace copy`, read and checked."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from headrace.cli.consuming.offset_expressions import STORED, OffsetSpan, joined, span_of
from headrace.cli.shared.parsers import Parser, number
from headrace.cli.shared.properties import add_property_options, need_brokers, properties_of

__all__ = ["CopyOptions", "make_parser", "read_options"]

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_EXAMPLES = """\
examples:
  headrace copy orders orders-copy -b localhost:9092                    all that is there now
  headrace copy orders orders --to-bootstrap-server other:9092 -z zstd  to another cluster
  headrace copy orders orders-copy -o @-1h --follow                     since an hour ago, and what comes
  headrace copy orders orders-copy -g backup                            the rest since the last copy of this group
  headrace copy orders orders-copy --exactly-once                       offsets are part of the transactions
  headrace copy orders wide --repartition                               the keys choose the partitions anew

Keys, values, headers and timestamps are copied as they are, without a Python object for a record, and each partition
into the one of its number: its records keep their order, and get offsets of their own. The topic that is written must
exist.

With -g the group's offsets say what is copied already; they are committed once records are stored, so that a copy
that was stopped goes on there, and some records may come twice. With --exactly-once they are committed in the
transactions that write the records: each comes once, however often the copy is stopped. Into another cluster they are
kept there, as texts beside the group's offsets of TO. A cluster forgets offsets of a group that nobody uses for
offsets.retention.minutes (7 days): what is copied later begins anew.

Exit status: 0 all is copied, 1 some records are not, 2 wrong usage, 3 no broker answers, 4 not allowed, 5 not there,
130 after Ctrl-C, 143 after SIGTERM: what was read until then is copied.
"""


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """The command line, read.

    Attributes:
        source: topic to read.
        target: topic to write.
        span: where to begin and to end.
        partitions: only these; None for all.
        follow: go on with what comes.
        count: most records; None for all.
        group: keeps the offsets; None for nobody.
        exactly_once: transactions, which the offsets are part of.
        per_transaction: records in a transaction.
        repartition: the partitioner chooses partitions.
        reading: properties of what reads.
        writing: properties of what writes.
        elsewhere: the target is of another cluster.
        quiet: no bar and no summary.
    """

    source: str
    target: str
    span: OffsetSpan
    partitions: list[int] | None
    follow: bool
    count: int | None
    group: str | None
    exactly_once: bool
    per_transaction: int
    repartition: bool
    reading: dict[str, str]
    writing: dict[str, str]
    elsewhere: bool
    quiet: bool


def read_options(argv: list[str]) -> CopyOptions:
    """Read the command line; argparse leaves with status 2 when it is wrong.

    Raises:
        ConfigError: a file of properties cannot be read, or there is no such profile.
    """
    parser = make_parser()
    given = parser.parse_args(joined(argv))
    elsewhere = bool(given.to_bootstrap or given.to_profile or given.to_files or given.to_properties)
    if given.source == given.target and not elsewhere:
        parser.error("FROM and TO are the same topic")
    if given.span.start == STORED:
        parser.error("-g GROUP begins where the group is")
    if given.follow and given.span.end is not None:
        parser.error("--follow has no end: give -o without one")
    group = given.group or (f"copy.{given.source}.{given.target}" if given.exactly_once else None)
    reading = properties_of(given)
    need_brokers(reading)
    own = {"compression.type": given.codec}
    if given.exactly_once:
        own["transactional.id"] = given.transactional_id or group
    to = argparse.Namespace(bootstrap=given.to_bootstrap, properties=given.to_properties,
                            property_files=given.to_files, profile=given.to_profile)
    writing = properties_of(to if elsewhere else given, own)
    need_brokers(writing)
    return CopyOptions(given.source, given.target, given.span, given.partitions, given.follow, given.count, group,
                       given.exactly_once, given.per_transaction, given.repartition, reading, writing, elsewhere,
                       given.quiet)


def make_parser() -> Parser:
    """The parser of `headrace copy`."""
    parser = Parser("headrace copy", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
                    description="Copy records from a topic to another one, of the same cluster or another.")
    parser.add_argument("source", metavar="FROM", help="topic to read")
    parser.add_argument("target", metavar="TO", help="topic to write")
    add_property_options(parser, "some must be named")
    to = parser.add_argument_group("the cluster of TO, if it is another one")
    to.add_argument("--to-bootstrap-server", dest="to_bootstrap", metavar="HOST:PORT[,...]", help="its brokers")
    to.add_argument("--to-profile", metavar="NAME", help="its profile")
    to.add_argument("--to-config", dest="to_files", action="append", default=[], metavar="FILE",
                    help="its properties; may be given again")
    to.add_argument("--to-property", dest="to_properties", type=_pair, action="append", default=[],
                    metavar="NAME=VALUE", help="one of its properties; may be given again")
    what = parser.add_argument_group("which records")
    what.add_argument("-o", "--offset", dest="span", type=span_of, default=OffsetSpan(), metavar="WHERE",
                      help="where to begin, and to end, as of `headrace consume` (default: all that is there now)")
    what.add_argument("-p", "--partition", dest="partitions", type=number(0, (1 << 31) - 1), action="append",
                      metavar="N", help="only this partition; may be given again")
    what.add_argument("-c", "--count", type=number(1), metavar="N", help="stop after N records")
    what.add_argument("--follow", action="store_true", help="go on with what comes, until Ctrl-C")
    how = parser.add_argument_group("how")
    how.add_argument("-g", "--group", metavar="GROUP", help="begin behind what was copied under this name")
    how.add_argument("--exactly-once", action="store_true", help="in transactions that have the group's offsets in "
                     "them (the group is called copy.FROM.TO unless -g names it)")
    how.add_argument("--transactional-id", metavar="ID", help="of these transactions (default: the group's name)")
    how.add_argument("--transaction-every", dest="per_transaction", type=number(1), default=100_000, metavar="N",
                     help="records in a transaction (default: 100000; fewer when no more come for a second)")
    how.add_argument("--repartition", action="store_true", help="let the keys choose the partitions")
    how.add_argument("-z", dest="codec", choices=_CODECS, help="compression")
    how.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no summary; errors are printed")
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, content = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError("expected NAME=VALUE; the text is not repeated here, it may be a secret")
    return name.strip(), content
