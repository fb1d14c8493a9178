"""`headrace groups reset`: where a group without members goes on. Without --yes it is only said."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headrace.cli.administration.group_commands.group_offsets import committed
from headrace.cli.administration.partitions import chosen, expanded, order, partition_name, watermarks
from headrace.cli.shared.confirmation import confirm
from headrace.cli.shared.exits import NOT_FOUND, RefusedError
from headrace.cli.shared.output import Column
from headrace.cli.shared.parsers import moment, number, seconds
from headrace.errors import KafkaError, KafkaException
from headrace.types.cluster import ConsumerGroupTopicPartitions
from headrace.types.groups import OffsetReset
from headrace.types.records import TopicPartition

if TYPE_CHECKING:
    from headrace.cli.shared.subcommands import Session

__all__ = ["RESET", "add_reset_options", "reset"]

RESET = (
    Column("group", "its id"), Column("topic", "of the partition"), Column("partition", "number"),
    Column("before", "the group's offset until now; null without one"),
    Column("after", "where it goes on"), Column("change", "the difference"),
    Column("applied", "whether it was done, or only said", wide=True),
)
"""What a reset prints."""


def reset(session: Session) -> None:
    """Say where the group would go on, and with consent let it."""
    given = session.given
    partitions = expanded(session.admin, given.topics) if given.topics else None
    planned = _planned(session, partitions)
    if not planned:
        raise RefusedError(f"group {given.group!r} has no offsets: name topics with --topic", NOT_FOUND)
    if given.yes:
        _apply(session, planned)
    session.show([{
        "group": given.group, "topic": tp.topic, "partition": tp.partition,
        "before": planned[tp].before if planned[tp].before >= 0 else None, "after": planned[tp].after,
        "change": planned[tp].after - planned[tp].before if planned[tp].before >= 0 else None, "applied": given.yes,
    } for tp in order(planned)])
    if not given.yes:
        if not session.for_people:
            return
        try:
            confirm(f"this sets {len(planned)} offsets of group {given.group}", [given.group], yes=False)
        except RefusedError:
            session.note("nothing was changed: give --yes to do it")
            return
        _apply(session, planned)


def _planned(session: Session, partitions: list[TopicPartition] | None) -> dict[TopicPartition, OffsetReset]:
    from headrace.admin import OffsetSpec

    given = session.given
    if given.to_offset is not None:
        return _to_offset(session, partitions)
    to = (OffsetSpec.earliest() if given.to_earliest else OffsetSpec.latest() if given.to_latest
          else None if given.to_datetime is None else OffsetSpec.for_timestamp(given.to_datetime))
    return session.admin.reset_consumer_group_offsets(
        given.group, partitions, to=to, shift_by=given.shift_by, by_duration=given.by_duration, dry_run=True).result()


def _to_offset(session: Session, partitions: list[TopicPartition] | None) -> dict[TopicPartition, OffsetReset]:
    """The same number everywhere, and still in the partition."""
    before = committed(session.admin, session.given.group)
    wanted = list(before) if partitions is None else partitions
    first, last = watermarks(session.admin, wanted)
    return {tp: OffsetReset(before.get(tp, -1), min(max(session.given.to_offset, first[tp] or 0), last[tp] or 0))
            for tp in wanted}


def _apply(session: Session, planned: dict[TopicPartition, OffsetReset]) -> None:
    group = session.given.group
    wanted = [TopicPartition(tp.topic, tp.partition, each.after) for tp, each in planned.items()]
    done = session.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])[group].result()
    for tp in done.topic_partitions or ():
        if tp.error == KafkaError.UNKNOWN_MEMBER_ID:  # all partitions say so
            text = f'group "{group}": it has members, who commit for themselves: stop them first'
            raise KafkaException(KafkaError(tp.error.code(), text))
        if tp.error is not None:
            session.failed(tp.error, partition_name(tp))


def add_reset_options(parser: argparse.ArgumentParser) -> None:
    """Add what says where."""
    parser.add_argument("group", metavar="GROUP", help="its id")
    parser.add_argument("--topic", dest="topics", action="append", type=chosen, default=[],
                        metavar="TOPIC[:PARTITIONS]", help="only these; may be given again (default: all of which the "
                        "group has offsets)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to-earliest", action="store_true", help="the first record that is there")
    where.add_argument("--to-latest", action="store_true", help="behind the last one")
    where.add_argument("--to-datetime", type=moment, metavar="TIME",
                       help="the first record at or after a time: ISO 8601, or milliseconds since 1970")
    where.add_argument("--by-duration", type=seconds, metavar="TIME", help="the same, so long ago: 15m, 2h, 7d, PT15M")
    where.add_argument("--shift-by", type=number(-(1 << 63)), metavar="N", help="so many records forward, or back with "
                       "a negative number: --shift-by=-10")
    where.add_argument("--to-offset", type=number(), metavar="OFFSET", help="this offset; what lies outside of the "
                       "partition is moved to its nearest end")
