"""`headrace acls`: access rules."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any

from headrace.cli.shared.output import Column
from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.subcommands import CommandGroup, Session, Subcommand

if TYPE_CHECKING:
    from headrace.admin import AclBinding, AclBindingFilter

__all__ = ["main", "make_parsers"]

_CLUSTER_NAME = "kafka-cluster"
_OPERATIONS = ("all", "read", "write", "create", "delete", "alter", "describe", "cluster-action", "describe-configs",
               "alter-configs", "idempotent-write", "create-tokens", "describe-tokens", "two-phase-commit")
_KINDS = {"topic": "TOPIC", "group": "GROUP", "transactional-id": "TRANSACTIONAL_ID",
          "delegation-token": "DELEGATION_TOKEN", "user": "USER"}
_RULE = (
    Column("principal", "who"), Column("permission", "allow or deny"), Column("operation", "what is done"),
    Column("resource", "topic, group, cluster, transactional-id, delegation-token or user"),
    Column("name", "of the resource"), Column("pattern", "literal, or prefixed: names that begin so"),
    Column("host", "from where; * for anywhere"),
)


def _row(rule: AclBinding) -> dict[str, Any]:
    return {"principal": rule.principal, "permission": rule.permission_type.name.lower(),
            "operation": _typed(rule.operation.name),
            "resource": "cluster" if rule.restype.name in ("BROKER", "CLUSTER") else _typed(rule.restype.name),
            "name": rule.name, "pattern": rule.resource_pattern_type.name.lower(), "host": rule.host}


def _typed(name: str) -> str:
    return name.lower().replace("_", "-")


def _name(rule: AclBinding) -> str:
    row = _row(rule)
    return f"{row['permission']} {row['principal']} {row['operation']} on {row['resource']} {row['name']}"


def _rows(rules: Iterable[AclBinding]) -> list[dict[str, Any]]:
    return [_row(rule) for rule in sorted(rules)]


def _list(session: Session) -> None:
    session.show(_rows({rule for each in _filters(session) for rule in session.admin.describe_acls(each).result()}))


def _filters(session: Session) -> list[AclBindingFilter]:
    from headrace.admin import AclBindingFilter, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    given = session.given
    pattern = (ResourcePatternType.PREFIXED if given.prefixed else ResourcePatternType.MATCH if given.match
               else ResourcePatternType.ANY)
    permission = AclPermissionType.DENY if given.deny else AclPermissionType.ANY
    operations = [AclOperation[name.upper().replace("-", "_")] for name in given.operation] or [AclOperation.ANY]
    resources: list[tuple[Any, str | None]] = [*_resources(given)] or [(ResourceType.ANY, None)]
    return [AclBindingFilter(kind, name, pattern, principal, given.host, operation, permission)
            for (kind, name), principal, operation in product(resources, given.principal or [None], operations)]


def _resources(given: Any) -> list[tuple[Any, str]]:
    from headrace.admin import ResourceType

    found: list[tuple[Any, str]] = [(ResourceType[kind], name) for option, kind in _KINDS.items()
                                    for name in getattr(given, option.replace("-", "_"))]
    return [*found, *([(ResourceType.CLUSTER, _CLUSTER_NAME)] if given.cluster else [])]


def _create(session: Session) -> None:
    from headrace.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType

    given = session.given
    resources = _resources(given)
    if not resources or not given.principal or not given.operation:
        session.refuse("a rule needs --principal, --operation and a resource: --topic, --group, --cluster, "
                       "--transactional-id, --delegation-token or --user")
    pattern = ResourcePatternType.PREFIXED if given.prefixed else ResourcePatternType.LITERAL
    permission = AclPermissionType.DENY if given.deny else AclPermissionType.ALLOW
    rules = [AclBinding(kind, name, pattern, principal, given.host or "*",
                        AclOperation[operation.upper().replace("-", "_")], permission)
             for (kind, name), principal, operation in product(resources, given.principal, given.operation)]
    if given.dry_run:
        session.show(_rows(rules))
    else:
        session.show(_rows(rule for rule, _ in session.settled(session.admin.create_acls(rules), _name)))


def _delete(session: Session) -> None:
    given = session.given
    if not (given.all or given.principal or given.operation or given.host or given.deny or _resources(given)):
        session.refuse("which rules? Give --principal, --topic and so on, or --all")
    filters = _filters(session)
    found = {rule for each in filters for rule in session.admin.describe_acls(each).result()}
    if not found:
        session.show([])
        return
    session.confirm(f"this deletes {len(found)} access rule{'' if len(found) == 1 else 's'}", [str(len(found))])
    if session.given.dry_run:
        session.show(_rows(found))
        return
    deleted = session.settled(session.admin.delete_acls(filters))
    session.show(_rows({rule for _, rules in deleted for rule in rules}))


# Options


def _which(parser: Parser) -> None:
    parser.add_argument("--principal", action="append", default=[], metavar="WHO",
                        help="for example User:alice; may be given again, as what follows")
    parser.add_argument("--operation", type=_operations, action="extend", default=[], metavar="NAME[,NAME]",
                        help=f"what is done: {', '.join(_OPERATIONS)}")
    for kind in _KINDS:
        parser.add_argument(f"--{kind}", action="append", default=[], metavar="NAME", help=f"{kind.replace('-', ' ')}; "
                            "'*' for all")
    parser.add_argument("--cluster", action="store_true", help="the cluster")
    parser.add_argument("--prefixed", action="store_true", help="names that begin so")
    parser.add_argument("--host", metavar="ADDRESS", help="from where (default: anywhere)")
    parser.add_argument("--deny", action="store_true", help="rules that forbid")


def _filtered(parser: Parser) -> None:
    _which(parser)
    parser.add_argument("--match", action="store_true", help="all rules that hold for a name, prefixed ones too")


def _delete_options(parser: Parser) -> None:
    _filtered(parser)
    parser.add_argument("--all", action="store_true", help="all rules that fit, also when nothing else is given")


def _operations(text: str) -> list[str]:
    from headrace.cli.shared.exits import meant

    names = text.lower().replace("_", "-").split(",")
    for name in names:
        if name not in _OPERATIONS:
            raise argparse.ArgumentTypeError(f"there is no operation {name!r}{meant(name, _OPERATIONS)}")
    return names


_GROUP = CommandGroup(
    "acls", "access rules: who may do what",
    Subcommand("list", "rules, all or some", _list, _RULE, _filtered,
               examples="  headrace acls list --topic orders --match\n"),
    Subcommand("create", "make rules, one for each combination", _create, _RULE, _which, dry_run=True,
               examples="  headrace acls create --principal User:alice --operation read,describe --topic orders "
                        "--group alice- --prefixed\n"),
    Subcommand("delete", "delete the rules that fit", _delete, _RULE, _delete_options,
               destructive=True, dry_run=True),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
