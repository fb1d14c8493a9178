"""What an error code means for a share consumer: of a reply, of a partition, of acknowledgements."""

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.share.share_error_actions import (
    AcknowledgeErrorAction,
    ShareFetchErrorAction,
    ShareSessionErrorAction,
    acknowledge_error_action,
    share_fetch_error_action,
    share_session_error_action,
)


@pytest.mark.parametrize(("code", "action"), [
    (K.SHARE_SESSION_NOT_FOUND, ShareSessionErrorAction.LOST),
    (K.INVALID_SHARE_SESSION_EPOCH, ShareSessionErrorAction.LOST),
    (K.SHARE_SESSION_LIMIT_REACHED, ShareSessionErrorAction.RETRY),
    (K.REQUEST_TIMED_OUT, ShareSessionErrorAction.RETRY),
    (K.GROUP_AUTHORIZATION_FAILED, ShareSessionErrorAction.REPORT),
    (K.INVALID_REQUEST, ShareSessionErrorAction.REPORT),
])
def test_what_is_done_about_the_code_of_a_reply(code: int, action: ShareSessionErrorAction) -> None:
    assert share_session_error_action(code) is action


@pytest.mark.parametrize(("code", "action"), [
    (K.TOPIC_AUTHORIZATION_FAILED, ShareFetchErrorAction.REPORT),
    (K.GROUP_AUTHORIZATION_FAILED, ShareFetchErrorAction.REPORT),
    (K.INVALID_MSG, ShareFetchErrorAction.REPORT),
    (K.UNKNOWN, ShareFetchErrorAction.REPORT),
    (K.NOT_LEADER_FOR_PARTITION, ShareFetchErrorAction.RETRY),
    (K.FENCED_LEADER_EPOCH, ShareFetchErrorAction.RETRY),
    (K.UNKNOWN_TOPIC_OR_PART, ShareFetchErrorAction.RETRY),
    (K.UNKNOWN_TOPIC_ID, ShareFetchErrorAction.RETRY),
    (K.INCONSISTENT_TOPIC_ID, ShareFetchErrorAction.RETRY),
    (K.KAFKA_STORAGE_ERROR, ShareFetchErrorAction.RETRY),
    (K.COORDINATOR_LOAD_IN_PROGRESS, ShareFetchErrorAction.RETRY),
    (12345, ShareFetchErrorAction.RETRY),
])
def test_what_is_done_about_the_code_of_a_partition(code: int, action: ShareFetchErrorAction) -> None:
    assert share_fetch_error_action(code) is action


@pytest.mark.parametrize(("code", "action"), [
    (K.NOT_LEADER_FOR_PARTITION, AcknowledgeErrorAction.FAILED),
    (K.FENCED_LEADER_EPOCH, AcknowledgeErrorAction.FAILED),
    (K.UNKNOWN_TOPIC_OR_PART, AcknowledgeErrorAction.FAILED),
    (K.UNKNOWN_TOPIC_ID, AcknowledgeErrorAction.FAILED),
    (K.INVALID_RECORD_STATE, AcknowledgeErrorAction.FAILED),
    (K.INVALID_REQUEST, AcknowledgeErrorAction.FAILED),
    (K.TOPIC_AUTHORIZATION_FAILED, AcknowledgeErrorAction.FAILED),
    (K.COORDINATOR_NOT_AVAILABLE, AcknowledgeErrorAction.RETRY),
    (K.COORDINATOR_LOAD_IN_PROGRESS, AcknowledgeErrorAction.RETRY),
    (K.KAFKA_STORAGE_ERROR, AcknowledgeErrorAction.RETRY),
])
def test_what_is_done_about_the_code_of_acknowledgements(code: int, action: AcknowledgeErrorAction) -> None:
    assert acknowledge_error_action(code) is action
