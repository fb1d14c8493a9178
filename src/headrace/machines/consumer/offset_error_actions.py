"""What an error code means when offsets are asked for or committed: one table for leaders, one for coordinators.

It must not know lookups or time. `machines.consumer.offsets` acts on it, and `machines.consumer.group_offsets`.
Source: Java's `OffsetFetcherUtils` and `ConsumerCoordinator`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError
from headrace.machines.machine import LOST

__all__ = ["OF_COMMITS", "OF_CONNECTIONS", "OF_COORDINATORS", "OF_FETCHES", "OF_LEADERS", "OffsetErrorAction",
           "offset_error_action"]


class OffsetErrorAction(Enum):
    """What to do about an error code."""

    MOVED = "another broker leads or coordinates: look for it, and ask again after a pause"
    RETRY = "a passing state: ask again after a pause"
    RENEW = "the group has a newer epoch of this member, or none: ask again as it is by now, if it has the partition"
    RETRY_BRIEFLY = "it may be too new for this broker: ask a few times more, and believe it then"
    FAIL = "asking again cannot help: the caller gets the error"


_K, _R = KafkaError, OffsetErrorAction
OF_LEADERS: Final[Mapping[int, OffsetErrorAction]] = {
    _K.NOT_LEADER_FOR_PARTITION: _R.MOVED,
    _K.FENCED_LEADER_EPOCH: _R.MOVED,
    _K.UNKNOWN_LEADER_EPOCH: _R.MOVED,
    _K.UNKNOWN_TOPIC_OR_PART: _R.MOVED,  # a leader that is new does not know of it yet
    _K.LEADER_NOT_AVAILABLE: _R.MOVED,
    _K.REPLICA_NOT_AVAILABLE: _R.MOVED,
    _K.KAFKA_STORAGE_ERROR: _R.MOVED,
    _K.OFFSET_NOT_AVAILABLE: _R.MOVED,  # the leader is new and its followers have not fetched yet (KIP-207)
}
"""Answers to ListOffsets."""

OF_COORDINATORS: Final[Mapping[int, OffsetErrorAction]] = {
    _K.NO_ERROR: _R.RETRY,  # the answer leaves out what was asked
    _K.NOT_COORDINATOR: _R.MOVED,
    _K.COORDINATOR_NOT_AVAILABLE: _R.MOVED,
    _K.COORDINATOR_LOAD_IN_PROGRESS: _R.RETRY,
    _K.REQUEST_TIMED_OUT: _R.RETRY,
    _K.UNKNOWN_TOPIC_ID: _R.RETRY,
    _K.UNSTABLE_OFFSET_COMMIT: _R.RETRY,  # a transaction with this offset is open (KIP-447)
}
"""Answers to OffsetFetch and OffsetCommit of whoever asks."""

OF_COMMITS: Final[Mapping[int, OffsetErrorAction]] = {
    **OF_COORDINATORS,
    _K.STALE_MEMBER_EPOCH: _R.RENEW,
    _K.ILLEGAL_GENERATION: _R.RENEW,
    _K.REBALANCE_IN_PROGRESS: _R.RENEW,
    _K.UNKNOWN_TOPIC_OR_PART: _R.RETRY_BRIEFLY,
}
"""Answers to OffsetCommit: a member may hear of its newer epoch (KIP-848), or generation, only after this."""

OF_FETCHES: Final[Mapping[int, OffsetErrorAction]] = {
    **OF_COORDINATORS,
    _K.STALE_MEMBER_EPOCH: _R.RENEW,
    _K.UNKNOWN_MEMBER_ID: _R.RENEW,  # it was dropped, and hears of that or joins anew
    _K.FENCED_MEMBER_EPOCH: _R.RENEW,
}
"""Answers to OffsetFetch."""

OF_CONNECTIONS: Final[Mapping[int, OffsetErrorAction]] = {
    **dict.fromkeys(LOST, _R.RETRY),
    KafkaError._TIMED_OUT: _R.RETRY,
}
"""Requests that were not answered. Offsets may be committed twice: it does no harm."""


def offset_error_action(table: Mapping[int, OffsetErrorAction], code: int) -> OffsetErrorAction:
    """What to do about an error code: one that a table does not list is reported to the caller."""
    return table.get(code, OffsetErrorAction.FAIL)
