"""What an error code means for a partition in the answer to Fetch.

It must not know positions or time. `machines.consumer.fetcher` acts on it. Source: Java's `FetchCollector`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError

__all__ = ["FETCH_ERROR_ACTIONS", "FetchErrorAction", "fetch_error_action"]


class FetchErrorAction(Enum):
    """What to do about an error code."""

    OUT_OF_RANGE = "no such offset: ask the leader, and if it confirms that, do what `auto.offset.reset` says"
    REPORT = "it may last: report it to the application once, and fetch again after a pause"
    RETRY = "a passing state: fetch again after a pause, from the leader of that time"


FETCH_ERROR_ACTIONS: Final[Mapping[int, FetchErrorAction]] = {
    KafkaError.OFFSET_OUT_OF_RANGE: FetchErrorAction.OUT_OF_RANGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: FetchErrorAction.REPORT,
    KafkaError.INVALID_MSG: FetchErrorAction.REPORT,  # the leader found damage in its own log
    KafkaError.UNKNOWN: FetchErrorAction.REPORT,
    KafkaError.NOT_LEADER_FOR_PARTITION: FetchErrorAction.RETRY,
    KafkaError.FENCED_LEADER_EPOCH: FetchErrorAction.RETRY,
    KafkaError.UNKNOWN_LEADER_EPOCH: FetchErrorAction.RETRY,
    KafkaError.UNKNOWN_TOPIC_OR_PART: FetchErrorAction.RETRY,
    KafkaError.UNKNOWN_TOPIC_ID: FetchErrorAction.RETRY,
    KafkaError.INCONSISTENT_TOPIC_ID: FetchErrorAction.RETRY,
    KafkaError.REPLICA_NOT_AVAILABLE: FetchErrorAction.RETRY,
    KafkaError.KAFKA_STORAGE_ERROR: FetchErrorAction.RETRY,
    KafkaError.OFFSET_NOT_AVAILABLE: FetchErrorAction.RETRY,
}


def fetch_error_action(code: int) -> FetchErrorAction:
    """What to do about an error code: a consumer never gives up a partition for one that is not listed."""
    return FETCH_ERROR_ACTIONS.get(code, FetchErrorAction.RETRY)
