"""`headrace errors`: what error codes mean."""

from __future__ import annotations

from headrace.cli.shared.exits import MEANINGS, NOT_FOUND, RefusedError, meant, status_of
from headrace.cli.shared.output import Column
from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.subcommands import Session, SingleCommand, Subcommand
from headrace.error_codes import CODES, ErrorCode
from headrace.errors import KafkaError, KafkaException

__all__ = ["main", "make_parser"]

_COLUMNS = (
    Column("code", "negative for a client's own"), Column("name", "librdkafka's name"),
    Column("kafka_name", "Java's name", wide=True), Column("retriable", "whether the same may succeed a little later"),
    Column("exit", "status with which headrace ends", wide=True), Column("meaning", "one sentence"),
)


def _show(session: Session) -> None:
    wanted: list[str] = session.given.codes
    found = [_find(text) for text in wanted] if wanted else list(CODES.values())
    session.show([{"code": each.code, "name": each.name, "kafka_name": each.kafka_name, "retriable": each.retriable,
                   "exit": status_of(KafkaException(KafkaError(each.code))), "meaning": each.about} for each in found])


def _find(text: str) -> ErrorCode:
    if text.lstrip("-").isdigit() and int(text) in CODES:
        return CODES[int(text)]
    name = text.upper().removeprefix("KAFKAERROR.")
    for each in CODES.values():
        if name in (each.name.upper(), each.kafka_name.upper()):
            return each
    names = [each for code in CODES.values() for each in (code.name, code.kafka_name)]
    raise RefusedError(f"there is no error {text!r}{meant(name, names)}", NOT_FOUND)


def _options(parser: Parser) -> None:
    parser.add_argument("codes", nargs="*", metavar="CODE", help="code or name (default: all); write -- before a "
                        "negative one")


_COMMAND = SingleCommand(Subcommand(
    "errors", "what an error code means", _show, _COLUMNS, _options, cluster=False,
    examples="  headrace errors 29\n  headrace errors NOT_ENOUGH_REPLICAS\n  headrace errors -- -192\n\n"
             "exit statuses:\n" + "".join(f"  {status:<4} {meaning}\n" for status, meaning in MEANINGS.items())))
make_parser, main = _COMMAND.make_parser, _COMMAND.main
