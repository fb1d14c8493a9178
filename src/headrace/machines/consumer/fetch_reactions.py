"""What an error code means for a partition in the answer to Fetch.

It must not know positions or time. `machines.consumer.fetcher` acts on it. Source: Java's `FetchCollector`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError

__all__ = ["FETCH_REACTIONS", "FetchReaction", "fetch_reaction"]


class FetchReaction(Enum):
    """What to do about an error code."""

    OUT_OF_RANGE = "no such offset: ask the leader, and if it says so, do what `auto.offset.reset` says"
    TELL = "it may last: tell the application once, and fetch again after a pause"
    RETRY = "a passing state: fetch again after a pause, from whoever leads then"


FETCH_REACTIONS: Final[Mapping[int, FetchReaction]] = {
    KafkaError.OFFSET_OUT_OF_RANGE: FetchReaction.OUT_OF_RANGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: FetchReaction.TELL,
    KafkaError.INVALID_MSG: FetchReaction.TELL,  # the leader found damage in its own log
    KafkaError.UNKNOWN: FetchReaction.TELL,
    KafkaError.NOT_LEADER_FOR_PARTITION: FetchReaction.RETRY,
    KafkaError.FENCED_LEADER_EPOCH: FetchReaction.RETRY,
    KafkaError.UNKNOWN_LEADER_EPOCH: FetchReaction.RETRY,
    KafkaError.UNKNOWN_TOPIC_OR_PART: FetchReaction.RETRY,
    KafkaError.UNKNOWN_TOPIC_ID: FetchReaction.RETRY,
    KafkaError.INCONSISTENT_TOPIC_ID: FetchReaction.RETRY,
    KafkaError.REPLICA_NOT_AVAILABLE: FetchReaction.RETRY,
    KafkaError.KAFKA_STORAGE_ERROR: FetchReaction.RETRY,
    KafkaError.OFFSET_NOT_AVAILABLE: FetchReaction.RETRY,
}


def fetch_reaction(code: int) -> FetchReaction:
    """What to do about an error code: a consumer never gives up a partition for one that is not listed."""
    return FETCH_REACTIONS.get(code, FetchReaction.RETRY)
