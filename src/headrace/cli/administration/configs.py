"""`headrace configs`: properties of topics, brokers, groups and what else has some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.administration.config_changes import changes
from headrace.cli.administration.group_commands.group_offsets import word
from headrace.cli.shared.output import Column
from headrace.cli.shared.parsers import Parser
from headrace.cli.shared.subcommands import CHANGED, CommandGroup, Session, Subcommand

if TYPE_CHECKING:
    from headrace.admin import ConfigResource

__all__ = ["main", "make_parsers"]

_KINDS = ("topic", "broker", "group", "client-metrics", "broker-logger")
_DESCRIBED = (
    Column("property", "its name"), Column("value", "null where it is secret"),
    Column("source", "who says so, for example DynamicTopicConfig, StaticBrokerConfig, DefaultConfig"),
    Column("kind", "of the resource", wide=True), Column("name", "of the resource", wide=True),
    Column("read_only", "whether it cannot be changed", wide=True),
    Column("sensitive", "whether it is secret", wide=True),
)
_LISTED = (Column("name", "of the resource; empty for all brokers"), Column("kind", "topic, broker, group and so on"))


def _resource(session: Session, **named: Any) -> ConfigResource:
    from headrace.admin import ConfigResource

    given = session.given
    if not given.name and given.kind not in ("broker", "broker-logger"):
        session.refuse(f"name the {given.kind}")
    return ConfigResource(ConfigResource.Type[given.kind.upper().replace("-", "_")], given.name, **named)


def _describe(session: Session) -> None:
    from headrace.admin import ConfigSource

    resource = _resource(session)
    entries = session.admin.describe_configs([resource])[resource].result().values()
    session.show([{
        "property": entry.name, "value": None if entry.is_sensitive else entry.value,
        "source": word(ConfigSource(entry.source)), "kind": session.given.kind, "name": session.given.name,
        "read_only": entry.is_read_only, "sensitive": entry.is_sensitive,
    } for entry in sorted(entries, key=lambda entry: entry.name)
        if session.given.all or entry.source != ConfigSource.DEFAULT_CONFIG])


def _list(session: Session) -> None:
    from headrace.admin import ResourceType

    kinds = [ResourceType[kind.upper().replace("-", "_")] for kind in session.given.kind]
    found = session.admin.list_config_resources(kinds).result()
    session.show(sorted(({"name": each.name, "kind": each.restype.name.lower().replace("_", "-")} for each in found),
                        key=lambda row: (row["kind"], row["name"])))


def _set(session: Session) -> None:
    _alter(session, "set on", session.given.settings, [])


def _delete(session: Session) -> None:
    _alter(session, "back to its default on", [], session.given.properties_)


def _alter(session: Session, done: str, settings: list[str], unset: list[str]) -> None:
    wanted = changes(settings, unset)
    resource = _resource(session, incremental_configs=wanted)
    session.admin.incremental_alter_configs([resource], validate_only=session.given.dry_run)[resource].result()
    for entry in wanted:
        session.changed(f"{done} {session.given.kind} {session.given.name or '(all)'}", "property", entry.name)


# Options


def _of(parser: Parser) -> None:
    parser.add_argument("kind", choices=_KINDS, metavar="KIND", help=f"one of {', '.join(_KINDS)}")
    parser.add_argument("name", metavar="NAME", help="topic, group, or id of a broker; '' for all brokers")


def _describe_options(parser: Parser) -> None:
    _of(parser)
    parser.add_argument("-a", "--all", action="store_true", help="defaults as well")


def _list_options(parser: Parser) -> None:
    parser.add_argument("kind", nargs="*", metavar="KIND", default=[], help=f"only these: {', '.join(_KINDS)}")


def _set_options(parser: Parser) -> None:
    _of(parser)
    parser.add_argument("settings", nargs="+", metavar="NAME=VALUE",
                        help="a property; NAME+=VALUE and NAME-=VALUE add to a list and take from it")


def _delete_options(parser: Parser) -> None:
    _of(parser)
    parser.add_argument("properties_", nargs="+", metavar="PROPERTY", help="its name")


_GROUP = CommandGroup(
    "configs", "properties of topics, brokers and groups",
    Subcommand("list", "what has properties of its own", _list, _LISTED, _list_options),
    Subcommand("describe", "the properties of a topic, broker or group", _describe, _DESCRIBED, _describe_options,
               examples="  headrace configs describe topic orders --all\n  headrace configs describe broker 1\n"),
    Subcommand("set", "set properties", _set, CHANGED, _set_options, dry_run=True,
               examples="  headrace configs set topic orders retention.ms=60000 cleanup.policy+=compact\n"
                        "  headrace configs set broker '' log.cleaner.threads=2\n"),
    Subcommand("delete", "set properties back to their defaults", _delete, CHANGED, _delete_options, dry_run=True),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
