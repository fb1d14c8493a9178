"""`headrace groups`: consumer groups, their members, their lag and their offsets."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.cli.administration.group_commands.group_lag import LAGGING, add_watch_options, show_lag
from headrace.cli.administration.group_commands.group_offsets import GroupPartition, group_partitions, word
from headrace.cli.administration.group_commands.group_resets import RESET, add_reset_options, reset
from headrace.cli.administration.partitions import chosen, expanded, partition_name
from headrace.cli.shared.exits import NOT_FOUND, RefusedError
from headrace.cli.shared.output import Column, amount
from headrace.cli.shared.parsers import Parser, pattern
from headrace.cli.shared.subcommands import CHANGED, CommandGroup, Session, Subcommand

if TYPE_CHECKING:
    from headrace.types.groups import ConsumerGroupDescription, ConsumerGroupListing

__all__ = ["main", "make_parsers"]

_STATES = ("stable", "empty", "preparing-rebalancing", "completing-rebalancing", "dead", "unknown")
_LISTED = (
    Column("group", "its id"), Column("state", "Stable, Empty, PreparingRebalancing, CompletingRebalancing, Dead"),
    Column("type", "Consumer (the brokers plan), Classic (a member does)"),
    Column("simple", "whether it only ever had offsets, and no members", wide=True),
)
_DESCRIBED = (
    Column("group", "its id"), Column("topic", "of the partition; null for a member without any"),
    Column("partition", "number"), Column("committed", "the group's offset; null without one"),
    Column("end", "the offset that the next record gets"), Column("lag", "offsets between them"),
    Column("client_id", "of the member that reads it; null when nobody does"), Column("host", "where that member is"),
    Column("member", "its id", wide=True), Column("instance", "group.instance.id of a static member", wide=True),
    Column("state", "of the group", wide=True), Column("coordinator", "broker that looks after it", wide=True),
)


def _list(session: Session) -> None:
    from headrace.types.cluster import ConsumerGroupState, ConsumerGroupType

    given = session.given
    states = {ConsumerGroupState[name.upper().replace("-", "_")] for name in given.state}
    kinds = {ConsumerGroupType[name.upper()] for name in given.type}
    session.show([
        {"group": group.group_id, "state": word(group.state), "type": word(group.type),
         "simple": group.is_simple_consumer_group}
        for group in _listed(session, states=states or None, types=kinds or None)
        if given.pattern is None or given.pattern.search(group.group_id)])


def _listed(session: Session, **wanted: Any) -> list[ConsumerGroupListing]:
    """Groups in order; brokers that could not be asked are reported."""
    found = session.admin.list_consumer_groups(**wanted).result()
    for error in found.errors or ():
        session.failed(error)
    return sorted(found.valid or (), key=lambda group: group.group_id)


def _described(session: Session) -> dict[str, ConsumerGroupDescription]:
    """The groups that were named; one that is not there is reported."""
    from headrace.types.cluster import ConsumerGroupState

    found = dict(session.settled(session.admin.describe_consumer_groups(list(dict.fromkeys(session.given.groups)))))
    for name in [name for name, group in found.items() if group.state is ConsumerGroupState.DEAD]:
        session.failed(RefusedError(f"there is no group {name!r}", NOT_FOUND))
        del found[name]
    return found


def _describe(session: Session) -> None:
    described = _described(session)
    partitions = group_partitions(session.admin, described)
    if session.for_people:
        for name, group in described.items():
            print(_headline(group, partitions[name]))
    session.show([row for name, group in described.items() for row in _rows(group, partitions[name])])


def _headline(group: ConsumerGroupDescription, partitions: list[GroupPartition]) -> str:
    where = f"{group.coordinator.id} ({group.coordinator.host}:{group.coordinator.port})" if group.coordinator else "-"
    lag = sum(each.lag or 0 for each in partitions)
    return (f"{group.group_id}: {word(group.state)}, {word(group.type)}, assignor {group.partition_assignor or '-'}, "
            f"coordinator {where}, {amount(len(group.members), 'member')}, lag {lag:,}")


def _rows(group: ConsumerGroupDescription, partitions: list[GroupPartition]) -> list[dict[str, Any]]:
    common = {"group": group.group_id, "state": word(group.state),
              "coordinator": group.coordinator.id if group.coordinator else None}
    rows = [{**common, "topic": each.where.topic, "partition": each.where.partition, "committed": each.committed,
             "end": each.end, "lag": each.lag, **_member(each.member)} for each in partitions]
    idle = [member for member in group.members if not member.assignment.topic_partitions]
    return rows + [{**common, **_member(member)} for member in idle]


def _member(member: Any) -> Mapping[str, Any]:
    if member is None:
        return {}
    return {"client_id": member.client_id, "host": member.host.lstrip("/"), "member": member.member_id,
            "instance": member.group_instance_id}


def _delete(session: Session) -> None:
    names = list(dict.fromkeys(session.given.groups))
    kind = "group" if len(names) == 1 else "groups"
    session.confirm(f"this deletes {kind} {', '.join(names)} with all offsets", names)
    futures: Any = (session.admin.describe_consumer_groups(names) if session.given.dry_run
                    else session.admin.delete_consumer_groups(names))
    for name, _ in session.settled(futures):
        session.changed("deleted", "group", name)


def _delete_offsets(session: Session) -> None:
    group = session.given.group
    partitions = expanded(session.admin, session.given.topics)
    session.confirm(f"group {group} forgets its offsets of {amount(len(partitions), 'partition')}", [group])
    if session.given.dry_run:
        for tp in partitions:
            session.changed("forgotten", "offset", partition_name(tp))
        return
    futures = session.admin.delete_consumer_group_offsets(group, partitions)
    for tp, _ in session.settled(futures, partition_name):
        session.changed("forgotten", "offset", partition_name(tp))


def _lag(session: Session) -> None:
    if not session.given.groups:
        session.given.groups = [group.group_id for group in _listed(session)]
    show_lag(session, lambda: group_partitions(session.admin, _described(session)) if session.given.groups else {})


# Options


def _list_options(parser: Parser) -> None:
    parser.add_argument("pattern", nargs="?", type=pattern, metavar="REGEX",
                        help="only groups in whose id it is found")
    parser.add_argument("--state", choices=_STATES, action="append", default=[],
                        help="only groups in this state; may be given again")
    parser.add_argument("--type", choices=("consumer", "classic"), action="append", default=[],
                        help="only groups of this type; may be given again")


def _groups(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", nargs="+", metavar="GROUP", help="its id")


def _lag_options(parser: Parser) -> None:
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="its id (default: all groups)")
    add_watch_options(parser)


def _delete_offsets_options(parser: Parser) -> None:
    parser.add_argument("group", metavar="GROUP", help="its id")
    parser.add_argument("topics", nargs="+", type=chosen, metavar="TOPIC[:PARTITIONS]",
                        help="a topic, or some partitions of it: orders:0,3,5-7")


_GROUP = CommandGroup(
    "groups", "consumer groups: members, lag, offsets, resets",
    Subcommand("list", "list groups", _list, _LISTED, _list_options),
    Subcommand("describe", "members, offsets and lag of groups", _describe, _DESCRIBED, _groups),
    Subcommand("lag", "how far groups are behind, by topic; --watch looks again and again", _lag, LAGGING, _lag_options,
               examples="  headrace groups lag orders-app --watch\n  headrace groups lag -o tsv\n"),
    Subcommand("reset", "let a group without members go on elsewhere; without --yes it says where", reset, RESET,
               add_reset_options, destructive=True,
               examples="  headrace groups reset orders-app --to-earliest                        what would be\n"
                        "  headrace groups reset orders-app --topic orders:0 --to-offset 42 --yes\n"
                        "  headrace groups reset orders-app --to-datetime 2026-01-31T12:00:00Z --yes\n"),
    Subcommand("delete-offsets", "let a group forget its offsets of topics that no member reads", _delete_offsets,
               CHANGED, _delete_offsets_options, destructive=True, dry_run=True),
    Subcommand("delete", "delete groups that have no members, with all offsets", _delete, CHANGED, _groups,
               destructive=True, dry_run=True),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
