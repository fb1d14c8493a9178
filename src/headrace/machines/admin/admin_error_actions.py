"""What an error code means in the answer to an administrator's request.

It must not know requests or time. `client.admin.admin_engine` acts on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError

__all__ = ["ADMIN_ERROR_ACTIONS", "AdminErrorAction", "admin_error_action"]


class AdminErrorAction(Enum):
    """What to do about an error code."""

    MOVED = "another broker has to be asked, or this one a little later: ask again after a pause, with new metadata"
    ANSWER = "that is the answer: the caller gets it"


_K = KafkaError
ADMIN_ERROR_ACTIONS: Final[Mapping[int, AdminErrorAction]] = dict.fromkeys((
    _K.NOT_CONTROLLER,
    _K.NOT_COORDINATOR,
    _K.COORDINATOR_NOT_AVAILABLE,
    _K.COORDINATOR_LOAD_IN_PROGRESS,
    _K.NOT_LEADER_FOR_PARTITION,
    _K.LEADER_NOT_AVAILABLE,
    _K.REPLICA_NOT_AVAILABLE,
    _K.FENCED_LEADER_EPOCH,
    _K.UNKNOWN_LEADER_EPOCH,
    _K.OFFSET_NOT_AVAILABLE,
    _K.CONCURRENT_TRANSACTIONS,
    _K.THROTTLING_QUOTA_EXCEEDED,
    KafkaError._UNKNOWN_BROKER,
    KafkaError._TRANSPORT,
), AdminErrorAction.MOVED)


def admin_error_action(code: int) -> AdminErrorAction:
    """What to do about an error code."""
    return ADMIN_ERROR_ACTIONS.get(code, AdminErrorAction.ANSWER)
