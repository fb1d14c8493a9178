"""The command line of `headrace consume`, read and checked."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any

from headrace.cli.consuming.encodings_of_text import ENCODERS, escaped
from headrace.cli.consuming.offset_expressions import STORED, OffsetSpan, joined, span_of
from headrace.cli.consuming.record_filters import (
    RecordFilter,
    header_filter,
    jmespath_filter,
    key_filter,
    pattern_filter,
)
from headrace.cli.shared.parsers import Parser, number
from headrace.cli.shared.properties import (
    add_property_options,
    add_registry_option,
    need_brokers,
    properties_of,
    registry_properties_of,
)
from headrace.slotted import field, slotted

__all__ = ["FORMS", "ConsumeOptions", "make_parser", "read_options"]

FORMS = ("lines", "json", "csv", "parquet", "arrow")
_ENDINGS = {".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet", ".arrow": "arrow",
            ".feather": "arrow"}
_SCHEMAS = ("bytes", "json", "avro", "protobuf", "json-schema")
_LEVELS = ("read_committed", "read_uncommitted")
_CODECS = ("none", "snappy", "gzip", "zstd", "lz4")
_EXAMPLES = r"""
offsets (-o; times without an offset are UTC):
  beginning, end, stored       the ends of a partition; what the group of -X group.id=ID has committed
  47, +2, -10                  an offset; so many behind the beginning; the last so many
  @2026-01-31T12:00, @-1h30m   the first record at or after a time, or since so long ago; or milliseconds since 1970
  START:END                    from the one up to and without the other: 10:20, @-2h:@-1h, :@2026-01-31, -100:end
  s@TIME, e@TIME               as kcat has them; -o may be given twice, then
A range, -e and --control have an end, which is fixed when the command begins. Otherwise it reads on until Ctrl-C, from
the end on unless -o says otherwise; members of a group begin at the group's offsets, or else where -o says.

formats (--output; seen from the ending of -O FILE; lines otherwise):
  lines    values with a newline behind each; -K '\t' puts keys in front, --encoding hex or base64 for binary data
  json     an object a line: topic, partition, offset, timestamp, key, value, headers. Bytes that are no UTF-8 are
           {"base64": "..."}; `headrace produce --format jsonl` sends the same records again
  csv      the same columns, with a header
  parquet  columns of Arrow, without a Python object for a record; also read back by `headrace produce`
  arrow    a file of Arrow; a stream of Arrow on standard output

format strings (-f; kcat's tokens and rpk's verbs; escapes such as \n, \t, \0 and \x1e):
  %t topic   %p partition   %o offset   %k key   %s %v value   %h headers   %H how many   %T %d timestamp   %i number
  %K %S %V   bytes of the key and of the value, -1 for null;   %R the value's as 32 bits, big-endian;   %% percent
  %v{hex} %v{base64} %v{json}   the same of %k and %s;   %h{json};   %T{iso} %T{unix} %T{strftime[%H:%M]}

examples:
  headrace consume orders -b localhost:9092                          what comes from now on
  headrace consume orders -o -10 -e                                  the last ten of each partition
  headrace consume orders -o @-1h:@-30m --output json | jq .value
  headrace consume orders -o beginning -e -f '%p:%o %k=%v{hex}\n'
  headrace consume orders -o beginning -e -O orders.parquet
  headrace consume orders -o beginning -e --output json | headrace produce copy --format jsonl
  headrace consume orders -g billing --output json                   a member of a group; commits what it has written
  headrace consume orders -o beginning --header source=web --filter 'value.amount > `100`' -c 5
  headrace consume flights -o beginning --value-format avro --registry http://localhost:8081 --output json

Exit status: 0 all that was asked for is written (or nobody reads standard output any more), 1 it could not be read or
written, 2 wrong usage, 3 no broker answers, 4 not allowed, 5 not there, 130 after Ctrl-C, 143 after SIGTERM.
"""


@slotted(frozen=True)
class ConsumeOptions:
    """The command line, read.

    Attributes:
        topics: names, and patterns that begin with ``^``.
        partitions: only these; None for all.
        span: where to begin and to end.
        exits: stop at the end.
        count: most records that are written; None for all.
        group: group to join; None to read by oneself.
        share: it is a share group.
        commits: commit what is written.
        properties: of the consumer.
        form: one of `FORMS`.
        template: the format string, None when there is none.
        delimiter: behind each line.
        key_delimiter: between key and value; None for no keys.
        encoding: how keys and values are written in text.
        null: stands for null in lines.
        file: where to; None for standard output.
        tee: write to standard output as well.
        codec: compression of Parquet.
        filters: what records must be.
        key_format: one of the formats with schemas, "json", or "bytes".
        value_format: as `key_format`.
        registry: properties of the Schema Registry's client.
        control: show control records.
        quiet: no bar and no summary.
    """

    topics: list[str]
    partitions: list[int] | None
    span: OffsetSpan
    exits: bool
    count: int | None
    group: str | None
    share: bool
    commits: bool
    properties: dict[str, str]
    form: str
    template: str | None
    delimiter: bytes
    key_delimiter: bytes | None
    encoding: str
    null: bytes
    file: str | None
    tee: bool
    codec: str
    filters: list[RecordFilter] = field(default_factory=list)
    key_format: str = "bytes"
    value_format: str = "bytes"
    registry: dict[str, Any] = field(default_factory=dict)
    control: bool = False
    quiet: bool = False


def read_options(argv: list[str]) -> ConsumeOptions:
    """Read the command line; argparse leaves with status 2 when it is wrong.

    Raises:
        ConfigError: a file of properties cannot be read, or a filter is wrong.
    """
    parser = make_parser()
    given = parser.parse_args(joined(argv))
    form = given.output or _form_of(given.file)
    span = _span(parser, given)
    _check(parser, given, form, span)
    properties = properties_of(given, {"isolation.level": given.isolation, "group.id": given.group})
    need_brokers(properties)
    registry = registry_properties_of(given)
    if {given.key_format, given.value_format} & set(_SCHEMAS[2:]) and "url" not in registry:
        parser.error("a format with schemas needs --registry URL")
    if span.start == STORED and "group.id" not in properties:
        parser.error("-o stored is what a group has committed: name it with -X group.id=ID, or join it with -g ID")
    return ConsumeOptions(
        given.topics, given.partitions, span, given.exits or given.control or span.end is not None, given.count,
        given.group, given.share, not given.no_commit, properties, form, given.template,
        given.delimiter if given.delimiter is not None else b"\n", given.key_delimiter, given.encoding, given.null,
        given.file, given.tee, given.codec, _filters(given), given.key_format, given.value_format, registry,
        given.control, given.quiet)


def _span(parser: argparse.ArgumentParser, given: argparse.Namespace) -> OffsetSpan:
    start = end = None
    for each in given.spans:
        if (each.start and start) or (each.end and end):
            parser.error("-o says twice where to begin, or to end")
        start, end = each.start or start, each.end or end
    return OffsetSpan(start, end)


def _form_of(file: str | None) -> str:
    return next((form for ending, form in _ENDINGS.items() if file and file.lower().endswith(ending)), "lines")


def _check(parser: argparse.ArgumentParser, given: argparse.Namespace, form: str, span: OffsetSpan) -> None:
    """Options that contradict each other, or do nothing here, are mistakes."""
    text = form == "lines" and given.template is None
    wrong = [
        (given.template is not None and form != "lines", f"-f writes lines; the format here is {form} (see --output)"),
        (given.key_delimiter is not None and not text, "-K is for lines without a format string"),
        (given.delimiter is not None and not text, "-D is for lines without a format string"),
        (given.encoding != "text" and not (text or form == "csv"), "--encoding is for lines and CSV"),
        (given.null and form != "lines", "-Z and --null are for lines"),
        (given.tee and (given.file is None or form in ("parquet", "arrow")), "--tee needs -O FILE with lines, JSON or "
         "CSV"),
        (given.group is not None and given.partitions is not None, "a group chooses the partitions: give -g or -p"),
        (given.group is not None and span.end is not None, "a group has no end of its own: give -g without a range"),
        (given.group is not None and given.control, "--control reads ranges, not as a member of a group"),
        (given.control and form not in ("lines", "json"), "--control is for lines and JSON"),
        (given.share and given.group is None, "--share needs the name of the share group: -g GROUP"),
        (given.share and given.exits, "a share group does not say when it has handed out everything: give -c N"),
        (given.share and bool(given.spans), "a share group begins where its setting share.auto.offset.reset says"),
        (given.no_commit and (given.group is None or given.share), "--no-commit is for members of a group (-g)"),
        (given.group is not None and span.start not in (None, STORED) and span.start.kind not in ("beginning", "end"),
         "with -g, -o says where to begin without a committed offset: beginning or end"),
        (given.file is None and form == "parquet", "Parquet is a file: name it with -O FILE"),
    ]
    for is_wrong, why in wrong:
        if is_wrong:
            parser.error(why)


def _filters(given: argparse.Namespace) -> list[RecordFilter]:
    made: list[RecordFilter] = []
    if given.key is not None:
        made.append(key_filter(given.key.encode("utf-8", "surrogateescape")))
    made += [*(given.key_patterns or ()), *(given.value_patterns or ()), *given.headers]
    if given.expression is not None:
        made.append(jmespath_filter(given.expression))
    return made


def make_parser() -> Parser:
    """The parser of `headrace consume`."""
    parser = Parser(
        "headrace consume", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Write the records of topics to standard output or a file.")
    parser.add_argument("topics", nargs="+", metavar="TOPIC", help="topics to read; ^ begins a pattern")
    add_property_options(parser, "some must be named")
    add_registry_option(parser)
    what = parser.add_argument_group("which records")
    what.add_argument("-p", "--partition", dest="partitions", type=_partitions, action="extend", metavar="N[,N...]",
                      help="only these partitions; may be given again")
    what.add_argument("-o", "--offset", dest="spans", type=span_of, action="append", default=[], metavar="WHERE",
                      help="where to begin, and to end; see below (default: end, or with -e beginning)")
    what.add_argument("-e", "--exit", dest="exits", action="store_true",
                      help="stop at what is the end of each partition now; with -g, once all that is given to this "
                      "member is read")
    what.add_argument("-c", "--count", type=number(1), metavar="N", help="stop after N records")
    what.add_argument("--isolation", choices=_LEVELS, metavar="LEVEL", help="read_committed, or read_uncommitted for "
                      "records of open and aborted transactions as well (default: read_committed)")
    what.add_argument("--control", action="store_true", help="show the ends of transactions; stops at the end")
    what.add_argument("--key", metavar="TEXT", help="only records with this key")
    what.add_argument("--key-match", dest="key_patterns", type=_pattern("keys"), action="append", metavar="REGEX",
                      help="only records in whose key this is found")
    what.add_argument("--match", dest="value_patterns", type=_pattern("values"), action="append", metavar="REGEX",
                      help="only records in whose value this is found")
    what.add_argument("--header", dest="headers", type=_header, action="append", default=[], metavar="NAME[=VALUE]",
                      help="only records with this header; may be given again")
    what.add_argument("--filter", dest="expression", metavar="JMESPATH", help="only records of which this is true; it "
                      "sees topic, partition, offset, timestamp, key, value and headers")
    group = parser.add_argument_group("groups")
    group.add_argument("-g", "--group", metavar="GROUP", help="join this group, and commit what is written "
                       "(-X group.protocol=consumer for the new protocol)")
    group.add_argument("--share", action="store_true", help="the group is a share group; what is written is accepted")
    group.add_argument("--no-commit", action="store_true", help="commit nothing")
    _output_options(parser)
    return parser


def _output_options(parser: argparse.ArgumentParser) -> None:
    out = parser.add_argument_group("output")
    out.add_argument("--output", choices=FORMS, help="format (default: by the file's ending, or lines)")
    out.add_argument("-J", dest="output", action="store_const", const="json", help="as --output json, as kcat has it")
    out.add_argument("-f", "--format", dest="template", type=_template, metavar="STRING",
                     help="format string for each record; see below")
    out.add_argument("-D", dest="delimiter", type=_delimiter, metavar="DELIM", help=r"what is behind each line "
                     r"(default: \n)")
    out.add_argument("-K", dest="key_delimiter", type=_delimiter, metavar="DELIM", help="write keys, with this behind")
    out.add_argument("--encoding", choices=("text", *ENCODERS), default="text",
                     help="how keys and values are written in lines and CSV (default: text, byte for byte)")
    nulls = out.add_mutually_exclusive_group()
    nulls.add_argument("-Z", dest="null", action="store_const", const=b"NULL", default=b"",
                       help="write NULL for a value or key that is null")
    nulls.add_argument("--null", dest="null", type=escaped, metavar="TEXT", help="write this for null (default: "
                       "nothing)")
    out.add_argument("-O", "--output-file", dest="file", metavar="FILE", help="write to this file (default: standard "
                     "output)")
    out.add_argument("--tee", action="store_true", help="write to standard output as well as to -O FILE")
    out.add_argument("--compression", dest="codec", choices=_CODECS, default="zstd",
                     help="of Parquet (default: zstd)")
    out.add_argument("--value-format", choices=_SCHEMAS, default="bytes", help="what values are: json shows them as "
                     "JSON in --output json, the others are read by their schemas (default: bytes)")
    out.add_argument("--key-format", choices=_SCHEMAS, default="bytes", help="what keys are")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no summary; errors are printed")


def _partitions(text: str) -> list[int]:
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of partition numbers")
    return [int(number) for number in text.split(",")]


def _template(text: str) -> str:
    from headrace.cli.consuming.line_formats import TokenFormat

    try:
        TokenFormat(text, b"")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _delimiter(text: str) -> bytes:
    try:
        return escaped(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} has a wrong escape: {error}") from None


def _pattern(column: str) -> Callable[[str], RecordFilter]:
    def parse(text: str) -> RecordFilter:
        try:
            return pattern_filter(text.encode("utf-8", "surrogateescape"), column)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def _header(text: str) -> RecordFilter:
    name, equals, value = text.partition("=")
    return header_filter(name, value.encode("utf-8", "surrogateescape"), any_value=not equals)
