"""As which member of its group an application reads, commits and takes part in transactions.

A rebalance runs in the background, but it takes effect for the application only when that reads: then its callback is
called (`meet`), and from then on it acts as the member of the new generation. Until then, and for partitions that were
taken from it for good, its commits carry the identity under which it read, so that the coordinator refuses what would
set another member's offset back. This module must not know how members join, or when callbacks run.

Source: KIP-447, Java's `ConsumerCoordinator`. Read next: `machines.groups.membership`,
`client.consumer.consumer_engine`.
"""

from __future__ import annotations

from headrace.machines.consumer.subscription import Key
from headrace.machines.groups.membership import Change, EpochMoved, Rebalance
from headrace.types.records import ConsumerGroupMetadata

__all__ = ["Ownership"]


class Ownership:
    """The application's identity in its group, whole and by partition.

    Args:
        group_id: the group.
        instance_id: of a static member; None for none.

    """

    def __init__(self, group_id: str, instance_id: str | None) -> None:
        self._nobody = ConsumerGroupMetadata(group_id, instance_id=instance_id)
        self._met = self._nobody
        self._newest = self._nobody  # the member that the group has moved on to
        self._former: dict[Key, ConsumerGroupMetadata] = {}
        self._tenures: dict[Key, int] = {}
        self._leaves = 0
        self._incremental = self._is_lost = False

    @property
    def member(self) -> ConsumerGroupMetadata:
        """As whom the application reads; generation -1 before it was given partitions."""
        met, newest = self._met, self._newest
        return newest if met.member_id == newest.member_id and 0 <= met.generation < newest.generation else met

    def advance(self, moved: EpochMoved) -> None:
        """The group has a newer generation of the member, which holds what it held: that is who reads it from now on.

        A group that says so takes nothing away before the member has agreed, or was lost (loop's thread).
        """
        self._newest = self._nobody_as(moved.member_id, moved.generation)

    def expect(self, change: Rebalance) -> None:
        """A rebalance waits until the application reads (loop's thread)."""
        self._is_lost = self._is_lost or change.change is Change.LOSE

    @property
    def goes_on(self) -> bool:
        """Whether what is held stays held from one generation to the next, and was not lost meanwhile."""
        return self._incremental and not self._is_lost

    def meet(self, change: Rebalance) -> None:
        """A rebalance callback is about to be called: what it commits belongs to the new generation already."""
        self._incremental, self._is_lost = change.incremental, False
        if change.generation >= 0:
            self._met = self._nobody_as(change.member_id, change.generation)
        if change.change is Change.ASSIGN:
            for tp in change.partitions:
                self._former.pop((tp.topic, tp.partition), None)
                self._another_tenure((tp.topic, tp.partition))

    def part(self, change: Rebalance) -> None:
        """The callback has returned: what was revoked or lost is not the application's any more."""
        if change.change is not Change.ASSIGN:
            for tp in change.partitions:
                key = (tp.topic, tp.partition)
                self._former[key] = self.member
                self._another_tenure(key)

    def reader_of(self, topic: str, partition: int) -> ConsumerGroupMetadata:
        """As whom the application read this partition last; the present member where it never had it."""
        return self._former.get((topic, partition), self.member)

    def holds(self, topic: str, partition: int) -> bool:
        """Whether the application has not given the partition up, or lost it."""
        return (topic, partition) not in self._former

    def gave_up(self, member: ConsumerGroupMetadata, topic: str, partition: int) -> bool:
        """Whether the application has given the partition up, or lost it, and is still the member as which it read."""
        return member == self.member and self._former.get((topic, partition)) == member

    def tenure(self, topic: str, partition: int) -> tuple[int, int]:
        """How often the group was left, and the partition came and went: the same for as long as it is held."""
        return self._leaves, self._tenures.get((topic, partition), 0)

    def _another_tenure(self, key: Key) -> None:
        self._tenures[key] = self._tenures.get(key, 0) + 1

    def leave(self) -> None:
        """The application left the group."""
        self._leaves += 1
        self._is_lost = False
        self._met = self._newest = self._nobody
        self._former.clear()
        self._tenures.clear()

    def _nobody_as(self, member_id: str, generation: int) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(self._nobody.group_id, generation, member_id, self._nobody.instance_id)
