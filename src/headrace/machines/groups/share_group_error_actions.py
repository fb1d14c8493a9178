"""What an error code means for a member of a share group: in answers to ShareGroupHeartbeat.

It must not know states or time. `machines.groups.share_group` acts on it. Source: Java's
`AbstractHeartbeatRequestManager` and `ShareHeartbeatRequestManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError

__all__ = ["SHARE_GROUP_ERROR_ACTIONS", "ShareGroupErrorAction", "share_group_error_action"]


class ShareGroupErrorAction(Enum):
    """What to do about an error code."""

    DROPPED = "the coordinator does not know this member, or its epoch, any more: join again"
    MOVED = "another broker is the coordinator: look for it, then go on"
    RETRY = "a passing state: ask again after a pause"
    REFUSED = "only the user or an administrator can mend it: report it, and ask again after a long pause"
    UNSUPPORTED = "the brokers have no share groups: nothing can be done"


SHARE_GROUP_ERROR_ACTIONS: Final[Mapping[int, ShareGroupErrorAction]] = {
    KafkaError.UNKNOWN_MEMBER_ID: ShareGroupErrorAction.DROPPED,
    KafkaError.FENCED_MEMBER_EPOCH: ShareGroupErrorAction.DROPPED,
    KafkaError.NOT_COORDINATOR: ShareGroupErrorAction.MOVED,
    KafkaError.COORDINATOR_NOT_AVAILABLE: ShareGroupErrorAction.MOVED,
    KafkaError.UNSUPPORTED_VERSION: ShareGroupErrorAction.UNSUPPORTED,
}
"""Codes that are not listed are retried when the table of error codes calls them retriable, and reported otherwise."""


def share_group_error_action(code: int) -> ShareGroupErrorAction:
    """What to do about an error code."""
    listed = SHARE_GROUP_ERROR_ACTIONS.get(code)
    if listed is not None:
        return listed
    return ShareGroupErrorAction.RETRY if KafkaError(code).retriable() else ShareGroupErrorAction.REFUSED
