"""What each error code of a produce response means for its batch: the table, and nothing else.

It must not know batches or time. `machines.sender` acts on it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from headrace.errors import KafkaError

__all__ = ["HOPELESS", "REACTIONS", "Reaction", "reaction_to"]


class Reaction(enum.Enum):
    """What an error code in a produce response means for its batch."""

    STORED = "the broker has it"
    RETRY = "a passing state of the leader: send again after a backoff; it may have been stored"
    REJECTED = "not stored, for a passing reason: send again after a backoff"
    MOVED = "ask for metadata, then send to the new leader; it may have been stored"
    NUMBER = "the sequence number was refused: `machines.sequences` decides"
    FAIL = "no retry can help: report it"
    FATAL = "no record of this producer can be stored: report all and stop"


REACTIONS: Final[Mapping[int, Reaction]] = {
    KafkaError.NO_ERROR: Reaction.STORED,
    KafkaError.DUPLICATE_SEQUENCE_NUMBER: Reaction.STORED,  # a retry of what is stored already; the offset is lost
    KafkaError.INVALID_MSG: Reaction.REJECTED,  # damaged on the way
    KafkaError.NOT_ENOUGH_REPLICAS: Reaction.REJECTED,
    KafkaError.THROTTLING_QUOTA_EXCEEDED: Reaction.REJECTED,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Reaction.RETRY,
    KafkaError.REQUEST_TIMED_OUT: Reaction.RETRY,
    KafkaError.UNKNOWN_TOPIC_OR_PART: Reaction.MOVED,
    KafkaError.LEADER_NOT_AVAILABLE: Reaction.MOVED,
    KafkaError.NOT_LEADER_FOR_PARTITION: Reaction.MOVED,  # also told when leadership is lost after the append
    KafkaError.BROKER_NOT_AVAILABLE: Reaction.MOVED,
    KafkaError.REPLICA_NOT_AVAILABLE: Reaction.MOVED,
    KafkaError.KAFKA_STORAGE_ERROR: Reaction.MOVED,
    KafkaError.FENCED_LEADER_EPOCH: Reaction.MOVED,
    KafkaError.UNKNOWN_LEADER_EPOCH: Reaction.MOVED,
    KafkaError.UNKNOWN_TOPIC_ID: Reaction.MOVED,
    KafkaError.INCONSISTENT_TOPIC_ID: Reaction.MOVED,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER: Reaction.NUMBER,
    KafkaError.UNKNOWN_PRODUCER_ID: Reaction.NUMBER,  # as unsafe as out of order (KIP-360)
    KafkaError.INVALID_PRODUCER_EPOCH: Reaction.NUMBER,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Reaction.FATAL,
}
"""Codes that are not listed are retried when the table of error codes calls them retriable, and fail otherwise."""

HOPELESS: Final = (KafkaError._UNSUPPORTED_FEATURE, KafkaError._AUTHENTICATION, KafkaError._SSL)
"""Failures of a request, not answers to it, that sending again can not cure."""


def reaction_to(code: int) -> Reaction:
    """What to do about an error code of a produce response."""
    listed = REACTIONS.get(code)
    if listed is not None:
        return listed
    return Reaction.RETRY if KafkaError(code).retriable() else Reaction.FAIL
