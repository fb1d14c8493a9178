"""What an error code means for a member of a group in which the coordinator plans (KIP-848).

It must not know states or time. `machines.groups.consumer_group` acts on it. Source: KIP-848 and Java's
`ConsumerHeartbeatRequestManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError

__all__ = ["MEMBER_ERROR_ACTIONS", "MemberErrorAction", "member_error_action"]


class MemberErrorAction(Enum):
    """What to do about an error code."""

    LOST = "the coordinator does not know this member, or its epoch, any more: its partitions are lost, join anew"
    MOVED = "another broker is the coordinator: look for it, then go on"
    RETRY = "a passing state: ask again after a pause"
    REFUSED = "only time, the user or an administrator can mend it: report it to the application, and go on asking"
    FATAL = "it cannot get better while this member lives: report it, and end the membership"


_K, _A = KafkaError, MemberErrorAction
MEMBER_ERROR_ACTIONS: Final[Mapping[int, MemberErrorAction]] = {
    _K.UNKNOWN_MEMBER_ID: _A.LOST,
    _K.FENCED_MEMBER_EPOCH: _A.LOST,
    # The last member was dropped: the group is gone, or it is a classic one again.
    _K.GROUP_ID_NOT_FOUND: _A.LOST,
    _K.NOT_COORDINATOR: _A.MOVED,
    _K.COORDINATOR_NOT_AVAILABLE: _A.MOVED,
    _K.COORDINATOR_LOAD_IN_PROGRESS: _A.RETRY,
    # A member that crashed holds its instance id until its session ends: a restart must wait for that.
    _K.UNRELEASED_INSTANCE_ID: _A.REFUSED,
    _K.GROUP_MAX_SIZE_REACHED: _A.REFUSED,
    _K.INVALID_REGULAR_EXPRESSION: _A.REFUSED,  # the application may subscribe to another one
    _K.FENCED_INSTANCE_ID: _A.FATAL,
    _K.UNSUPPORTED_ASSIGNOR: _A.FATAL,
    _K.UNSUPPORTED_VERSION: _A.FATAL,
    KafkaError._UNSUPPORTED_FEATURE: _A.FATAL,
    _K.INVALID_REQUEST: _A.FATAL,
    _K.INVALID_GROUP_ID: _A.FATAL,
}
"""Codes that are not listed are retried when the table of error codes calls them retriable, and reported otherwise."""


def member_error_action(code: int, *, joins: bool = False) -> MemberErrorAction:
    """What to do about an error code.

    Args:
        code: what the coordinator answered.
        joins: the member is in no group yet. One that it cannot find then is one that it may not change.
    """
    if joins and code == _K.GROUP_ID_NOT_FOUND:
        return _A.REFUSED
    listed = MEMBER_ERROR_ACTIONS.get(code)
    if listed is not None:
        return listed
    return MemberErrorAction.RETRY if KafkaError(code).retriable() else MemberErrorAction.REFUSED
