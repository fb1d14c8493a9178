"""What an error code means when offsets are asked for or committed."""

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.consumer.offset_error_actions import (
    OF_COMMITS,
    OF_CONNECTIONS,
    OF_COORDINATORS,
    OF_FETCHES,
    OF_LEADERS,
    OffsetErrorAction,
    offset_error_action,
)


@pytest.mark.parametrize(("table", "code", "action"), [
    (OF_LEADERS, K.NOT_LEADER_FOR_PARTITION, OffsetErrorAction.MOVED),
    (OF_LEADERS, K.OFFSET_NOT_AVAILABLE, OffsetErrorAction.MOVED),
    (OF_LEADERS, K.TOPIC_AUTHORIZATION_FAILED, OffsetErrorAction.FAIL),
    (OF_COORDINATORS, K.NOT_COORDINATOR, OffsetErrorAction.MOVED),
    (OF_COORDINATORS, K.UNSTABLE_OFFSET_COMMIT, OffsetErrorAction.RETRY),
    (OF_COORDINATORS, K.ILLEGAL_GENERATION, OffsetErrorAction.FAIL),
    (OF_COORDINATORS, K.STALE_MEMBER_EPOCH, OffsetErrorAction.FAIL),
    (OF_COMMITS, K.STALE_MEMBER_EPOCH, OffsetErrorAction.RENEW),
    (OF_COMMITS, K.UNKNOWN_MEMBER_ID, OffsetErrorAction.FAIL),
    (OF_COMMITS, K.UNKNOWN_TOPIC_OR_PART, OffsetErrorAction.RETRY_BRIEFLY),
    (OF_FETCHES, K.UNKNOWN_TOPIC_OR_PART, OffsetErrorAction.FAIL),
    (OF_FETCHES, K.STALE_MEMBER_EPOCH, OffsetErrorAction.RENEW),
    (OF_FETCHES, K.UNKNOWN_MEMBER_ID, OffsetErrorAction.RENEW),
    (OF_CONNECTIONS, K._TRANSPORT, OffsetErrorAction.RETRY),
    (OF_CONNECTIONS, K._TIMED_OUT, OffsetErrorAction.RETRY),
    (OF_CONNECTIONS, K._AUTHENTICATION, OffsetErrorAction.FAIL),
])
def test_what_is_asked_again_and_what_is_told(table, code, action):
    assert offset_error_action(table, code) is action


def test_what_is_asked_again_is_an_error_that_passes():
    for code in {**OF_LEADERS, **OF_COORDINATORS}:
        assert code == K.NO_ERROR or K(code).retriable(), K(code).name()
