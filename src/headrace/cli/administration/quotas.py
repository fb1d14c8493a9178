"""`headrace quotas`: how much users, clients and addresses may send and fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.administration.config_changes import change_of
from headrace.cli.shared.output import Column
from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.subcommands import CHANGED, CommandGroup, Session, Subcommand

if TYPE_CHECKING:
    from headrace.admin import QuotaEntity

__all__ = ["main", "make_parsers"]

_PARTS = {"user": "user", "client-id": "client_id", "ip": "ip"}
_LISTED = (
    Column("user", "name, <default> for all others, null when it is not about users"),
    Column("client_id", "as user"), Column("ip", "as user"),
    Column("quota", "for example producer_byte_rate, consumer_byte_rate, request_percentage"),
    Column("value", "bytes a second, percent, or what else the quota counts"),
)
_DEFAULT = "<default>"


def _shown(part: str | None) -> str | None:
    return _DEFAULT if part == "" else part


def _list(session: Session) -> None:
    from headrace.admin import QuotaFilter

    given = session.given
    found = session.admin.describe_client_quotas(QuotaFilter(
        given.user, given.client_id, given.ip, strict=given.strict)).result()
    session.show(sorted((
        {"user": _shown(entity.user), "client_id": _shown(entity.client_id), "ip": _shown(entity.ip), "quota": name,
         "value": int(value) if value.is_integer() else value}
        for entity, quotas in found.items() for name, value in quotas.items()),
        key=lambda row: [str(row[key] or "") for key in ("user", "client_id", "ip", "quota")]))


def _entity(session: Session) -> QuotaEntity:
    from headrace.admin import QuotaEntity

    given = session.given
    found = QuotaEntity(given.user, given.client_id, given.ip)
    if found == QuotaEntity():
        session.refuse("whom for? Give --user, --client-id or --ip; '' stands for all others")
    return found


def _name(entity: QuotaEntity) -> str:
    return ", ".join(f"{part} {_shown(value)}" for part, name in _PARTS.items()
                     if (value := getattr(entity, name)) is not None)


def _set(session: Session) -> None:
    wanted = dict[str, float | None]()
    for text in session.given.quotas:
        name, _, value = change_of(text, plain=True)
        try:
            wanted[name] = float(value)
        except ValueError:
            session.refuse(f"{name} must be a number, not {value!r}")
    _alter(session, wanted, "set to")


def _delete(session: Session) -> None:
    _alter(session, dict.fromkeys(session.given.quotas), "deleted")


def _alter(session: Session, wanted: dict[str, float | None], done: str) -> None:
    entity = _entity(session)
    futures = session.admin.alter_client_quotas({entity: wanted}, validate_only=session.given.dry_run)
    for _ in session.settled(futures, _name):
        for name, value in wanted.items():
            session.changed(f"{done}{'' if value is None else f' {value:.15g}'} for {_name(entity)}", "quota", name)


# Options


def _whom(parser: Parser) -> None:
    for part in _PARTS:
        parser.add_argument(f"--{part}", metavar="NAME", help=f"{part.replace('-', ' ')}; '' for all others")


def _list_options(parser: Parser) -> None:
    for part in _PARTS:
        parser.add_argument(f"--{part}", metavar="NAME", help=f"only of this {part.replace('-', ' ')}; '' for the "
                            "default, '*' for any")
    parser.add_argument("--strict", action="store_true", help="leave out those that are for something else as well")


def _set_options(parser: Parser) -> None:
    _whom(parser)
    parser.add_argument("quotas", nargs="+", metavar="QUOTA=NUMBER", help="for example producer_byte_rate=1000000")


def _delete_options(parser: Parser) -> None:
    _whom(parser)
    parser.add_argument("quotas", nargs="+", metavar="QUOTA", help="its name")


_GROUP = CommandGroup(
    "quotas", "how much users and clients may send and fetch",
    Subcommand("list", "quotas, all or some", _list, _LISTED, _list_options),
    Subcommand("set", "set quotas", _set, CHANGED, _set_options, dry_run=True,
               examples="  headrace quotas set --user alice producer_byte_rate=1000000\n"
                        "  headrace quotas set --client-id '' request_percentage=50\n"),
    Subcommand("delete", "delete quotas", _delete, CHANGED, _delete_options, dry_run=True),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
