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
from headrace.machines.groups.membership import Change, Rebalance
from headrace.types.records import ConsumerGroupMetadata

__all__ = ["Ownership"]


class Ownership:
    """The application's identity in its group, whole and by partition.

    Args:
        group_id: the group.
        instance_id: of a static member; None for none.

    Attributes:
        member: as whom the application read last; generation -1 before it was given partitions.
    """

    def __init__(self, group_id: str, instance_id: str | None) -> None:
        self._nobody = ConsumerGroupMetadata(group_id, instance_id=instance_id)
        self.member = self._nobody
        self._former: dict[Key, ConsumerGroupMetadata] = {}

    def meet(self, change: Rebalance) -> None:
        """A rebalance callback is about to be called: what it commits belongs to the new generation already."""
        if change.generation >= 0:
            nobody = self._nobody
            self.member = ConsumerGroupMetadata(
                nobody.group_id, change.generation, change.member_id, nobody.instance_id
            )
        if change.change is Change.ASSIGN:
            for tp in change.partitions:
                self._former.pop((tp.topic, tp.partition), None)

    def part(self, change: Rebalance) -> None:
        """The callback has returned: what was revoked or lost is not the application's any more."""
        if change.change is not Change.ASSIGN:
            for tp in change.partitions:
                self._former[tp.topic, tp.partition] = self.member

    def reader_of(self, topic: str, partition: int) -> ConsumerGroupMetadata:
        """As whom the application read this partition last; the present member where it never had it."""
        return self._former.get((topic, partition), self.member)

    def leave(self) -> None:
        """The application left the group."""
        self.member = self._nobody
        self._former.clear()
