"""The command line of `headrace produce`, read and checked."""

from __future__ import annotations

import argparse
import codecs
from dataclasses import dataclass

from headrace.cli.producing.csvrows import ALL_COLUMNS
from headrace.cli.producing.jsonlines import timestamp_of
from headrace.cli.producing.lines import DECODERS
from headrace.cli.producing.sink import Constants
from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.properties import add_property_options, properties_of

__all__ = ["FORMATS", "ProduceOptions", "make_parser", "read_options"]

FORMATS = ("lines", "jsonl", "csv", "parquet")
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_ROLES = ("value", "key", "partition", "timestamp", "headers")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_EXAMPLES = """\
formats (seen from the files' endings .jsonl, .ndjson, .csv and .parquet; lines otherwise):
  lines    each line is a value; -K ':' takes the part before the first ':' as the key
  jsonl    each line is an envelope: {"key": "k", "value": "v", "headers": {"h": "x"}, "partition": 0,
           "timestamp": 1700000000000}; only value is needed, null is a tombstone, {"base64": "..."} or {"hex": "..."}
           stands for bytes, payload and ts are other names of value and timestamp, topic and offset are passed over.
           With --values each line is the value itself, and --key-column names the field that is the key
  csv      columns called value, key, partition, timestamp and headers, or as --value-column and so on say;
           --value-column '*' makes a JSON object of all columns that have no other role
  parquet  the same with columns of Arrow types, without a Python object for a record

examples:
  echo hello | headrace produce greetings -b localhost:9092
  tail -F app.log | headrace produce logs -H source=web --key "$HOSTNAME"     lines go out as they come
  headrace produce users -K '\\t' -Z users.tsv                                 an empty value is a tombstone
  headrace produce orders orders.jsonl -z zstd --transactional-id load-1      all of it or nothing
  headrace produce orders --format jsonl --values --key-column customer < orders.ndjson
  headrace produce flights flights.csv --value-column '*' --key-column carrier
  headrace produce flights flights.parquet --value-column payload --key-column origin
  headrace produce blobs --encoding base64 -D '\\0' blobs.txt
  headrace produce load data.txt --rate 500 --count 10000 -F client.properties

Exit status: 0 all records are stored, 1 some are not (each is shown, with its line), 2 wrong usage, 3 no broker
answers, 4 not allowed, 5 not there, 130 after Ctrl-C, 143 after SIGTERM: both stop at once and say how many records
were acknowledged and how many were not.
"""


@dataclass(frozen=True, slots=True)
class ProduceOptions:
    """The command line, read.

    Attributes:
        topic: where to.
        files: what to read; `-` is standard input.
        form: one of `FORMATS`.
        properties: of the producer.
        constants: what is the same for all records.
        delimiter: between lines, or between the fields of CSV.
        key_delimiter: between key and value of a line.
        encoding: how keys and values are written in text.
        values: each JSON line is the value itself.
        header: the first row of CSV has names.
        roles: columns by role.
        skip_malformed: go on behind what is no record.
        count: most records.
        rate: most records per second, 0 for no bound.
        per_transaction: records in a transaction; 0 for all in one, None for no transactions.
        show_errors: failures that are reported one by one.
        tee: copy the lines to standard output.
        quiet: no bar and no summary.
    """

    topic: str
    files: list[str]
    form: str
    properties: dict[str, str]
    constants: Constants
    delimiter: bytes
    key_delimiter: bytes | None
    encoding: str
    values: bool
    header: bool
    roles: dict[str, str]
    skip_malformed: bool
    count: int | None
    rate: float
    per_transaction: int | None
    show_errors: int
    tee: bool
    quiet: bool


def read_options(argv: list[str]) -> ProduceOptions:
    """Read the command line; argparse leaves with status 2 when it is wrong.

    Raises:
        ConfigError: a file of properties cannot be read.
    """
    parser = make_parser()
    given = parser.parse_intermixed_args(argv)
    files = given.files
    form = given.format or _form_of(files)
    _check(parser, given, form, files)
    properties = properties_of(given, {"compression.type": given.codec, "transactional.id": given.transactional_id})
    if "bootstrap.servers" not in properties and "metadata.broker.list" not in properties:
        parser.error("no brokers are named: give -b HOST:PORT, set HEADRACE_BOOTSTRAP_SERVERS, or put "
                     "bootstrap.servers into a file for -F; `headrace broker` runs one here")
    transactional = bool(properties.get("transactional.id"))
    if given.transaction_every is not None and not transactional:
        parser.error("--transaction-every needs --transactional-id ID")
    constants = Constants(
        None if given.key is None else given.key.encode("utf-8", "surrogateescape"), given.partition, given.timestamp,
        given.header or None, given.empty_is_null)
    delimiter = given.delimiter if given.delimiter is not None else b"," if form == "csv" else b"\n"
    return ProduceOptions(
        given.topic, files, form, properties, constants, delimiter, given.key_delimiter, given.encoding, given.values,
        not given.no_header, _roles(given), given.skip_malformed, given.count, given.rate,
        (given.transaction_every or 0) if transactional else None, given.show_errors, given.tee, given.quiet)


def _roles(given: argparse.Namespace) -> dict[str, str]:
    named = {role: getattr(given, f"{role}_column") for role in _ROLES}
    return {role: name for role, name in named.items() if name is not None}


def _form_of(files: list[str]) -> str:
    forms = {next((form for ending, form in _ENDINGS.items() if name.lower().endswith(ending)), "lines")
             for name in files}
    return forms.pop() if len(forms) == 1 else "lines"


def _check(parser: argparse.ArgumentParser, given: argparse.Namespace, form: str, files: list[str]) -> None:
    """Options that do nothing for this format are mistakes."""
    if given.format is None and form == "lines" and len(files) > 1 and any(
            name.lower().endswith(tuple(_ENDINGS)) for name in files):
        parser.error("the files are of different formats: name one with --format, or send them one by one")
    roles = _roles(given)
    misplaced = [
        ("-K", given.key_delimiter is not None and form != "lines", "lines"),
        ("--encoding", given.encoding != "text" and form not in ("lines", "csv"), "lines and CSV; in JSON lines write "
         '{"base64": "..."}'),
        ("-D", given.delimiter is not None and form not in ("lines", "csv"), "lines and CSV"),
        ("--values", given.values and form != "jsonl", "JSON lines"),
        ("--no-header", given.no_header and form != "csv", "CSV"),
        ("--tee", given.tee and form not in ("lines", "jsonl"), "lines and JSON lines"),
        ("--skip-malformed", given.skip_malformed and form == "parquet", "lines, JSON lines and CSV"),
        *((f"--{role}-column", role in roles and form in ("lines", "jsonl") and not (
            role == "key" and form == "jsonl" and given.values), "CSV and Parquet" + (
                ", and JSON lines with --values" if role == "key" else "")) for role in _ROLES),
    ]
    for option, wrong, fits in misplaced:
        if wrong:
            parser.error(f"{option} is for {fits}; the format here is {form} (see --format)")
    if given.key is not None and (given.key_delimiter is not None or "key" in roles):
        parser.error("--key is one key for all records: give no -K or --key-column with it")
    if roles.get("value") == ALL_COLUMNS and form == "parquet":
        parser.error("--value-column '*' is for CSV: Parquet needs one column of binary or text as the value")
    if form == "csv" and given.delimiter is not None and len(given.delimiter) != 1:
        parser.error("-D is one character between the fields of CSV")
    if form == "parquet" and "-" in files:
        parser.error("Parquet is read from files, not from standard input: name one")
    if files.count("-") > 1:
        parser.error("standard input can be read once only")


def make_parser() -> Parser:
    """The parser of `headrace produce`."""
    parser = Parser(
        "headrace produce", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Send lines, JSON lines, CSV or Parquet to a topic. Every record that is not "
        "stored is reported.")
    parser.add_argument("topic", metavar="TOPIC", help="topic to write to")
    parser.add_argument("files", nargs="*", default=["-"], metavar="FILE",
                        help="files to read, - for standard input (default: -)")
    add_property_options(parser, "some must be named")
    what = parser.add_argument_group("input")
    what.add_argument("--format", choices=FORMATS, help="what the input is (default: by the files' endings)")
    what.add_argument("-D", dest="delimiter", type=_delimiter, metavar="DELIM",
                      help=r"what ends a line, with escapes such as \0 and \x1e (default: \n); or what is between the "
                      "fields of CSV (default: a comma)")
    what.add_argument("-K", dest="key_delimiter", type=_delimiter, metavar="DELIM",
                      help="what is between key and value of a line")
    what.add_argument("--encoding", choices=("text", *DECODERS), default="text",
                      help="how keys and values are written in lines and CSV (default: text, byte for byte)")
    what.add_argument("--values", action="store_true", help="each JSON line is the value itself, not an envelope")
    what.add_argument("--no-header", action="store_true", help="the columns of CSV have no names: they are 1, 2, 3 ...")
    for role in _ROLES:
        more = "; '*' for a JSON object of all others" if role == "value" else ""
        what.add_argument(f"--{role}-column", metavar="NAME", help=f"column of the {role} (default: the one called "
                          f"{role}{'' if role == 'value' else ', if there is one'}{more})")
    what.add_argument("--skip-malformed", action="store_true", help="pass over what is no record, and count it "
                      "(default: stop there)")
    what.add_argument("--count", type=_positive, metavar="N", help="send at most N records")
    for_all = parser.add_argument_group("for all records, whatever they say themselves")
    for_all.add_argument("--key", metavar="TEXT", help="one key")
    for_all.add_argument("-H", "--header", dest="header", type=_header, action="append", default=[],
                         metavar="NAME=VALUE", help="a header, before those of the record; may be given again; NAME "
                         "alone has a null value")
    for_all.add_argument("-p", "--partition", type=_partition, metavar="N",
                         help="partition; -1 lets the partitioner choose")
    for_all.add_argument("--timestamp", type=_timestamp, metavar="T",
                         help="milliseconds since 1970, ISO 8601 with an offset, or now")
    for_all.add_argument("-Z", dest="empty_is_null", action="store_true",
                         help="an empty value is a tombstone (null), an empty key is no key")
    how = parser.add_argument_group("sending")
    how.add_argument("-z", dest="codec", choices=_CODECS, help="compression (-X compression.level=N for its level)")
    how.add_argument("--rate", type=_rate, default=0.0, metavar="N", help="at most N records per second")
    how.add_argument("--transactional-id", metavar="ID", help="all records in one transaction, under this name")
    how.add_argument("--transaction-every", type=_positive, metavar="N", help="commit after each N records")
    how.add_argument("--tee", action="store_true", help="copy the lines that are sent to standard output")
    how.add_argument("--show-errors", type=_natural, default=10, metavar="N",
                     help="failures to report one by one; all are counted (default: 10)")
    how.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no summary; errors are printed")
    return parser


def _delimiter(text: str) -> bytes:
    try:
        found = codecs.escape_decode(text.encode("utf-8", "surrogateescape"))[0]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} has a wrong escape: {error}") from None
    if not found:
        raise argparse.ArgumentTypeError("a delimiter cannot be empty")
    return bytes(found)


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    return name, value.encode("utf-8", "surrogateescape") if equals else None


def _partition(text: str) -> int:
    if text != "-1" and not (text.isascii() and text.isdigit() and int(text) < 1 << 31):
        raise argparse.ArgumentTypeError(f"{text!r} is not a partition number")
    return int(text)


def _timestamp(text: str) -> int:
    if text == "now":
        return 0
    try:
        return timestamp_of(int(text) if text.isascii() and text.isdigit() else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return int(text)


def _rate(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of records per second")
    return found
