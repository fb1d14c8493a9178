"""How far groups are: committed offsets beside the ends of partitions, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.admin import AdminClient
from headrace.cli.administration.partitions import order, watermarks
from headrace.types.cluster import ConsumerGroupTopicPartitions
from headrace.types.records import TopicPartition

if TYPE_CHECKING:
    from headrace.types.groups import ConsumerGroupDescription, MemberDescription

__all__ = ["GroupPartition", "committed", "group_partitions", "word"]


class GroupPartition(NamedTuple):
    """How far a group is in a partition.

    Args:
        where: the partition.
        committed: the group's offset, None without one.
        end: the offset that the next record gets, None where that is not known.
        member: who reads it, None when nobody does.
    """

    where: TopicPartition
    committed: int | None
    end: int | None
    member: MemberDescription | None

    @property
    def lag(self) -> int | None:
        """Offsets between the two."""
        if self.committed is None or self.end is None:
            return None
        return max(self.end - self.committed, 0)


def committed(admin: AdminClient, group: str) -> dict[TopicPartition, int]:
    """The offsets of a group.

    Raises:
        KafkaException: they cannot be had, or that of a partition cannot.
    """
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
    return {tp: tp.offset for tp in found.topic_partitions or () if tp.error is None and tp.offset >= 0}


def group_partitions(
    admin: AdminClient, described: Mapping[str, ConsumerGroupDescription]
) -> dict[str, list[GroupPartition]]:
    """Partitions of groups, those with an offset and those that are assigned, by group.

    Args:
        admin: asks.
        described: the groups.
    """
    offsets = {name: committed(admin, name) for name in described}
    seen = {tp for each in offsets.values() for tp in each}
    readers = {name: {tp: member for member in group.members for tp in member.assignment.topic_partitions}
               for name, group in described.items()}
    _, ends = watermarks(admin, seen | {tp for each in readers.values() for tp in each})
    return {name: [GroupPartition(tp, offsets[name].get(tp), ends.get(tp), readers[name].get(tp))
                   for tp in order({*offsets[name], *readers[name]})] for name in described}


def word(member: Any) -> str | None:
    """A member of an enum as a word: STABLE is Stable."""
    return None if member is None else "".join(part.title() for part in member.name.split("_"))
