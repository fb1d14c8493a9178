"""`headrace share-groups`: share groups, their members, and where their records begin (KIP-932)."""

from __future__ import annotations

from typing import Any

from headrace.cli.administration.partitions import chosen, expanded, order, partition_name
from headrace.cli.shared.output import Column, amount
from headrace.cli.shared.parsers import Parser, moment
from headrace.cli.shared.subcommands import CHANGED, CommandGroup, Session, Subcommand
from headrace.errors import KafkaError

__all__ = ["main", "make_parsers"]

_LISTED = (Column("group", "its id"), Column("state", "Stable, Empty or Dead"))
_DESCRIBED = (
    Column("group", "its id"), Column("topic", "of the partition"), Column("partition", "number"),
    Column("start", "where its records begin; null when that is not known"),
    Column("lag", "how many are left; null when that is not known"),
    Column("state", "of the group", wide=True), Column("members", "how many read the partition", wide=True),
)
_RESET = (
    Column("group", "its id"), Column("topic", "of the partition"), Column("partition", "number"),
    Column("before", "where its records began; null when that is not known"), Column("after", "where they begin"),
)


def _list(session: Session) -> None:
    found = session.admin.list_share_groups().result()
    session.show([{"group": each.group_id, "state": each.state} for each in sorted(found, key=lambda g: g.group_id)])


def _describe(session: Session) -> None:
    rows = list[dict[str, Any]]()
    for name, group in session.settled(session.admin.describe_share_groups(session.given.groups)):
        offsets = session.admin.list_share_group_offsets(name).result()
        readers = [tp for member in group.members for tp in member.assignment.topic_partitions]
        if session.for_people:
            print(f"{name}: {group.state}, {amount(len(group.members), 'member')}")
        for tp in order({*offsets, *readers}):
            found = offsets.get(tp)
            if isinstance(found, KafkaError):
                session.failed(found, partition_name(tp))
                found = None
            rows.append({
                "group": name, "topic": tp.topic, "partition": tp.partition,
                "start": found.start_offset if found and found.start_offset >= 0 else None,
                "lag": found.lag if found and found.lag >= 0 else None, "state": group.state,
                "members": readers.count(tp)})
    session.show(rows)


def _reset(session: Session) -> None:
    from headrace.admin import OffsetSpec

    given = session.given
    partitions = expanded(session.admin, given.topics)
    to = (OffsetSpec.earliest() if given.to_earliest else OffsetSpec.latest() if given.to_latest
          else OffsetSpec.for_timestamp(given.to_datetime))
    at = {tp: found.offset for tp, found in session.settled(
        session.admin.list_offsets(dict.fromkeys(partitions, to)), partition_name)}
    ends = {tp: found.offset for tp, found in session.settled(
        session.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest())), partition_name)}
    after = {tp: offset if offset >= 0 else ends[tp] for tp, offset in at.items()}
    before = {tp: found.start_offset for tp, found in session.admin.list_share_group_offsets(given.group).result()
              .items() if not isinstance(found, KafkaError) and found.start_offset >= 0}
    session.confirm(f"group {given.group} begins elsewhere in {amount(len(after), 'partition')}", [given.group])
    done = set(after)
    if not given.dry_run:
        futures = session.admin.alter_share_group_offsets(given.group, after)
        done = {tp for tp, _ in session.settled(futures, partition_name)}
    session.show([{"group": given.group, "topic": tp.topic, "partition": tp.partition, "before": before.get(tp),
                   "after": after[tp]} for tp in order(done)])


def _delete(session: Session) -> None:
    names = list(dict.fromkeys(session.given.groups))
    session.confirm(f"this deletes {'share group' if len(names) == 1 else 'share groups'} {', '.join(names)}", names)
    futures: Any = (session.admin.describe_share_groups(names) if session.given.dry_run
                    else session.admin.delete_share_groups(names))
    for name, _ in session.settled(futures):
        session.changed("deleted", "share group", name)


def _delete_offsets(session: Session) -> None:
    group, topics = session.given.group, list(dict.fromkeys(session.given.topics))
    session.confirm(f"share group {group} forgets {', '.join(topics)}", [group])
    done = topics if session.given.dry_run else [
        topic for topic, _ in session.settled(session.admin.delete_share_group_offsets(group, topics))]
    for topic in done:
        session.changed("forgotten", "topic", topic)


# Options


def _groups(parser: Parser) -> None:
    parser.add_argument("groups", nargs="+", metavar="GROUP", help="its id")


def _reset_options(parser: Parser) -> None:
    parser.add_argument("group", metavar="GROUP", help="its id")
    parser.add_argument("topics", nargs="+", type=chosen, metavar="TOPIC[:PARTITIONS]",
                        help="a topic, or some partitions of it: orders:0,3,5-7")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to-earliest", action="store_true", help="the first record that is there")
    where.add_argument("--to-latest", action="store_true", help="behind the last one")
    where.add_argument("--to-datetime", type=moment, metavar="TIME",
                       help="the first record at or after a time: ISO 8601, or milliseconds since 1970")


def _forgotten(parser: Parser) -> None:
    parser.add_argument("group", metavar="GROUP", help="its id")
    parser.add_argument("topics", nargs="+", metavar="TOPIC", help="name")


_GROUP = CommandGroup(
    "share-groups", "share groups: members, offsets, resets",
    Subcommand("list", "list share groups", _list, _LISTED),
    Subcommand("describe", "where share groups begin, and what is left", _describe, _DESCRIBED, _groups),
    Subcommand("reset", "let a share group without members begin elsewhere", _reset, _RESET, _reset_options,
               destructive=True, dry_run=True),
    Subcommand("delete-offsets", "let a share group without members forget topics", _delete_offsets, CHANGED,
               _forgotten, destructive=True, dry_run=True),
    Subcommand("delete", "delete share groups that have no members", _delete, CHANGED, _groups, destructive=True,
               dry_run=True),
)
make_parsers, main = _GROUP.make_parsers, _GROUP.main
