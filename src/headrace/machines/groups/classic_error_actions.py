"""What an error code means for a member of a classic group: in answers to JoinGroup, SyncGroup and Heartbeat.

It must not know states or time. `machines.groups.classic` acts on it. Source: Java's `AbstractCoordinator` handlers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError

__all__ = ["GROUP_ERROR_ACTIONS", "GroupErrorAction", "group_error_action"]


class GroupErrorAction(Enum):
    """What to do about an error code."""

    DROPPED = "the coordinator does not know this member, or its generation, any more: its partitions are lost"
    FENCED = "another member took this instance id: nothing can be done"
    MOVED = "another broker is the coordinator: look for it, then go on"
    REBALANCE = "the group rebalances: join again"
    RETRY = "a passing state: ask again after a pause"
    REFUSED = "only the user or an administrator can mend it: report it to the application"


GROUP_ERROR_ACTIONS: Final[Mapping[int, GroupErrorAction]] = {
    KafkaError.UNKNOWN_MEMBER_ID: GroupErrorAction.DROPPED,
    KafkaError.ILLEGAL_GENERATION: GroupErrorAction.DROPPED,
    KafkaError.FENCED_INSTANCE_ID: GroupErrorAction.FENCED,
    KafkaError.NOT_COORDINATOR: GroupErrorAction.MOVED,
    KafkaError.COORDINATOR_NOT_AVAILABLE: GroupErrorAction.MOVED,
    KafkaError.REBALANCE_IN_PROGRESS: GroupErrorAction.REBALANCE,
}
"""Codes that are not listed are retried when the table of error codes calls them retriable, and reported otherwise."""


def group_error_action(code: int) -> GroupErrorAction:
    """What to do about an error code."""
    listed = GROUP_ERROR_ACTIONS.get(code)
    if listed is not None:
        return listed
    return GroupErrorAction.RETRY if KafkaError(code).retriable() else GroupErrorAction.REFUSED
