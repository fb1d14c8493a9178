"""`headrace api-versions`: which requests a broker understands, in which versions."""

from __future__ import annotations

from headrace.cli.shared.output import Column
from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.subcommands import Session, SingleCommand, Subcommand

__all__ = ["main", "make_parser"]

_COLUMNS = (
    Column("api", "Kafka's name; null when it is not known here"), Column("key", "its number"),
    Column("lowest", "version that the broker understands"), Column("highest", "version that the broker understands"),
    Column("ours", "highest version that headrace speaks; null for none"), Column("broker", "its id", wide=True),
)


def _show(session: Session) -> None:
    from headrace.wire.api import API

    brokers: list[int] = session.given.broker
    rows = []
    for broker in brokers or [-1]:
        for key, (low, high) in sorted(session.admin.describe_api_versions(broker).result().items()):
            api = API.get(key)
            rows.append({"api": api.name if api else None, "key": key, "lowest": low, "highest": high,
                         "ours": api.max_version if api else None, "broker": broker if broker >= 0 else None})
    session.show(rows)


def _options(parser: Parser) -> None:
    parser.add_argument("--broker", type=int, action="append", default=[], metavar="ID",
                        help="of this one; may be given again (default: any)")


_COMMAND = SingleCommand(Subcommand("api-versions", "which requests a broker understands, in which versions", _show,
                                    _COLUMNS, _options))
make_parser, main = _COMMAND.make_parser, _COMMAND.main
