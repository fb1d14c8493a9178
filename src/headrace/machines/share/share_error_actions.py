"""What an error code means for a share consumer: for a whole reply, for a partition, for acknowledgements.

It must not know sessions or time. `machines.share.share_fetcher` acts on it. Source: Java's
`ShareConsumeRequestManager` and `ShareFetchCollector`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError

__all__ = [
    "ACKNOWLEDGE_ERROR_ACTIONS", "SHARE_FETCH_ERROR_ACTIONS", "SHARE_SESSION_ERROR_ACTIONS", "AcknowledgeErrorAction",
    "ShareFetchErrorAction", "ShareSessionErrorAction", "acknowledge_error_action", "share_fetch_error_action",
    "share_session_error_action",
]


class ShareSessionErrorAction(Enum):
    """What to do about an error code of a whole reply to ShareFetch or ShareAcknowledge."""

    LOST = "the broker has dropped the session, and released its records: begin a new one"
    RETRY = "a passing state: begin a new session after a pause"
    REPORT = "it may last: report it to the application once, and begin a new session after a pause"


class ShareFetchErrorAction(Enum):
    """What to do about an error code of a partition in the answer to ShareFetch."""

    RETRY = "a passing state: fetch again after a pause, from the leader of that time"
    REPORT = "it may last: report it to the application once, and fetch again after a pause"


class AcknowledgeErrorAction(Enum):
    """What to do about an error code of a partition's acknowledgements."""

    RETRY = "it was not written down, and the records are still held: send it again after a pause"
    FAILED = "the records are not held any more, or it is not allowed: tell the application"


SHARE_SESSION_ERROR_ACTIONS: Final[Mapping[int, ShareSessionErrorAction]] = {
    KafkaError.SHARE_SESSION_NOT_FOUND: ShareSessionErrorAction.LOST,
    KafkaError.INVALID_SHARE_SESSION_EPOCH: ShareSessionErrorAction.LOST,
    KafkaError.SHARE_SESSION_LIMIT_REACHED: ShareSessionErrorAction.RETRY,
}
"""Codes that are not listed are retried when the table of error codes calls them retriable, and reported otherwise."""

SHARE_FETCH_ERROR_ACTIONS: Final[Mapping[int, ShareFetchErrorAction]] = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: ShareFetchErrorAction.REPORT,
    KafkaError.GROUP_AUTHORIZATION_FAILED: ShareFetchErrorAction.REPORT,
    KafkaError.INVALID_MSG: ShareFetchErrorAction.REPORT,  # the leader found damage in its own log
    KafkaError.UNKNOWN: ShareFetchErrorAction.REPORT,
    KafkaError.NOT_LEADER_FOR_PARTITION: ShareFetchErrorAction.RETRY,
    KafkaError.FENCED_LEADER_EPOCH: ShareFetchErrorAction.RETRY,
    KafkaError.UNKNOWN_TOPIC_OR_PART: ShareFetchErrorAction.RETRY,
    KafkaError.UNKNOWN_TOPIC_ID: ShareFetchErrorAction.RETRY,
    KafkaError.INCONSISTENT_TOPIC_ID: ShareFetchErrorAction.RETRY,
    KafkaError.KAFKA_STORAGE_ERROR: ShareFetchErrorAction.RETRY,
}
"""A partition is never given up for a code that is not listed: it is retried."""

ACKNOWLEDGE_ERROR_ACTIONS: Final[Mapping[int, AcknowledgeErrorAction]] = {
    KafkaError.NOT_LEADER_FOR_PARTITION: AcknowledgeErrorAction.FAILED,  # the new leader holds nothing for anybody
    KafkaError.FENCED_LEADER_EPOCH: AcknowledgeErrorAction.FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART: AcknowledgeErrorAction.FAILED,
    KafkaError.UNKNOWN_TOPIC_ID: AcknowledgeErrorAction.FAILED,
    KafkaError.INVALID_RECORD_STATE: AcknowledgeErrorAction.FAILED,  # the lock was over
    KafkaError.INVALID_REQUEST: AcknowledgeErrorAction.FAILED,
}
"""Codes that are not listed are retried when the table of error codes calls them retriable, and failed otherwise."""


def share_session_error_action(code: int) -> ShareSessionErrorAction:
    """What to do about an error code of a whole reply."""
    listed = SHARE_SESSION_ERROR_ACTIONS.get(code)
    if listed is not None:
        return listed
    return ShareSessionErrorAction.RETRY if KafkaError(code).retriable() else ShareSessionErrorAction.REPORT


def share_fetch_error_action(code: int) -> ShareFetchErrorAction:
    """What to do about an error code of a partition."""
    return SHARE_FETCH_ERROR_ACTIONS.get(code, ShareFetchErrorAction.RETRY)


def acknowledge_error_action(code: int) -> AcknowledgeErrorAction:
    """What to do about an error code of a partition's acknowledgements."""
    listed = ACKNOWLEDGE_ERROR_ACTIONS.get(code)
    if listed is not None:
        return listed
    return AcknowledgeErrorAction.RETRY if KafkaError(code).retriable() else AcknowledgeErrorAction.FAILED
