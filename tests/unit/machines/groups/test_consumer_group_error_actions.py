"""What an error code means for a member that the coordinator plans for: each row of the table."""

from __future__ import annotations

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.groups.consumer_group_error_actions import (
    MEMBER_ERROR_ACTIONS,
    MemberErrorAction,
    member_error_action,
)

ROWS = [
    (K.UNKNOWN_MEMBER_ID, MemberErrorAction.LOST),
    (K.FENCED_MEMBER_EPOCH, MemberErrorAction.LOST),
    (K.GROUP_ID_NOT_FOUND, MemberErrorAction.LOST),
    (K.NOT_COORDINATOR, MemberErrorAction.MOVED),
    (K.COORDINATOR_NOT_AVAILABLE, MemberErrorAction.MOVED),
    (K.COORDINATOR_LOAD_IN_PROGRESS, MemberErrorAction.RETRY),
    (K.UNRELEASED_INSTANCE_ID, MemberErrorAction.REFUSED),
    (K.GROUP_MAX_SIZE_REACHED, MemberErrorAction.REFUSED),
    (K.INVALID_REGULAR_EXPRESSION, MemberErrorAction.REFUSED),
    (K.FENCED_INSTANCE_ID, MemberErrorAction.FATAL),
    (K.UNSUPPORTED_ASSIGNOR, MemberErrorAction.FATAL),
    (K.UNSUPPORTED_VERSION, MemberErrorAction.FATAL),
    (K._UNSUPPORTED_FEATURE, MemberErrorAction.FATAL),
    (K.INVALID_REQUEST, MemberErrorAction.FATAL),
    (K.INVALID_GROUP_ID, MemberErrorAction.FATAL),
]


@pytest.mark.parametrize(("code", "action"), ROWS)
def test_a_listed_code_means_what_its_row_says(code: int, action: MemberErrorAction) -> None:
    assert member_error_action(code) is action


def test_a_group_that_is_not_there_refuses_who_joins_and_has_lost_who_was_in_it() -> None:
    assert member_error_action(K.GROUP_ID_NOT_FOUND, joins=True) is MemberErrorAction.REFUSED
    assert member_error_action(K.UNKNOWN_MEMBER_ID, joins=True) is MemberErrorAction.LOST


def test_each_row_is_named_above() -> None:
    assert {code for code, _ in ROWS} == set(MEMBER_ERROR_ACTIONS)


def test_other_codes_are_retried_when_they_pass_and_reported_when_they_do_not() -> None:
    assert member_error_action(K.REQUEST_TIMED_OUT) is MemberErrorAction.RETRY
    assert member_error_action(K.GROUP_AUTHORIZATION_FAILED) is MemberErrorAction.REFUSED
