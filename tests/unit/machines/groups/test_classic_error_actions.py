"""What an error code means for a member of a classic group."""

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.groups.classic_error_actions import GroupErrorAction, group_error_action


@pytest.mark.parametrize(("code", "action"), [
    (K.UNKNOWN_MEMBER_ID, GroupErrorAction.DROPPED),
    (K.ILLEGAL_GENERATION, GroupErrorAction.DROPPED),
    (K.FENCED_INSTANCE_ID, GroupErrorAction.FENCED),
    (K.NOT_COORDINATOR, GroupErrorAction.MOVED),
    (K.REBALANCE_IN_PROGRESS, GroupErrorAction.REBALANCE),
    (K.COORDINATOR_LOAD_IN_PROGRESS, GroupErrorAction.RETRY),
    (K.GROUP_AUTHORIZATION_FAILED, GroupErrorAction.REFUSED),
    (K.INVALID_SESSION_TIMEOUT, GroupErrorAction.REFUSED),
])
def test_what_a_member_does_about_a_code(code, action):
    assert group_error_action(code) is action
