"""What an error code means for a member of a classic group: in answers to JoinGroup, SyncGroup and Heartbeat.

It must not know states or time. `machines.groups.classic` acts on it. Source: Java's `AbstractCoordinator` handlers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError

__all__ = ["GROUP_REACTIONS", "GroupReaction", "group_reaction"]


class GroupReaction(Enum):
    """What to do about an error code."""

    DROPPED = "the coordinator does not know this member, or its generation, any more: its partitions are lost"
    FENCED = "another member took this instance id: nothing can be done"
    MOVED = "another broker is the coordinator: look for it, then go on"
    REBALANCE = "the group rebalances: join again"
    RETRY = "a passing state: ask again after a pause"
    REFUSED = "only the user or an administrator can mend it: tell the application"


GROUP_REACTIONS: Final[Mapping[int, GroupReaction]] = {
    KafkaError.UNKNOWN_MEMBER_ID: GroupReaction.DROPPED,
    KafkaError.ILLEGAL_GENERATION: GroupReaction.DROPPED,
    KafkaError.FENCED_INSTANCE_ID: GroupReaction.FENCED,
    KafkaError.NOT_COORDINATOR: GroupReaction.MOVED,
    KafkaError.COORDINATOR_NOT_AVAILABLE: GroupReaction.MOVED,
    KafkaError.REBALANCE_IN_PROGRESS: GroupReaction.REBALANCE,
}
"""Codes that are not listed are retried when the table of error codes calls them retriable, and reported otherwise."""


def group_reaction(code: int) -> GroupReaction:
    """What to do about an error code."""
    listed = GROUP_REACTIONS.get(code)
    if listed is not None:
        return listed
    return GroupReaction.RETRY if KafkaError(code).retriable() else GroupReaction.REFUSED
