"""What an error code means for a member of a share group."""

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.groups.share_group_error_actions import ShareGroupErrorAction, share_group_error_action


@pytest.mark.parametrize(("code", "action"), [
    (K.UNKNOWN_MEMBER_ID, ShareGroupErrorAction.DROPPED),
    (K.FENCED_MEMBER_EPOCH, ShareGroupErrorAction.DROPPED),
    (K.NOT_COORDINATOR, ShareGroupErrorAction.MOVED),
    (K.COORDINATOR_NOT_AVAILABLE, ShareGroupErrorAction.MOVED),
    (K.COORDINATOR_LOAD_IN_PROGRESS, ShareGroupErrorAction.RETRY),
    (K.UNSUPPORTED_VERSION, ShareGroupErrorAction.UNSUPPORTED),
    (K.GROUP_AUTHORIZATION_FAILED, ShareGroupErrorAction.REFUSED),
    (K.TOPIC_AUTHORIZATION_FAILED, ShareGroupErrorAction.REFUSED),
    (K.INVALID_REQUEST, ShareGroupErrorAction.REFUSED),
    (K.GROUP_MAX_SIZE_REACHED, ShareGroupErrorAction.REFUSED),
])
def test_what_a_member_of_a_share_group_does_about_a_code(code: int, action: ShareGroupErrorAction) -> None:
    assert share_group_error_action(code) is action
