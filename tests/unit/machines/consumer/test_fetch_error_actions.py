"""What an error code means for a partition that is fetched."""

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.consumer.fetch_error_actions import FetchErrorAction, fetch_error_action


@pytest.mark.parametrize(("code", "action"), [
    (K.OFFSET_OUT_OF_RANGE, FetchErrorAction.OUT_OF_RANGE),
    (K.TOPIC_AUTHORIZATION_FAILED, FetchErrorAction.REPORT),
    (K.NOT_LEADER_FOR_PARTITION, FetchErrorAction.RETRY),
    (K.POLICY_VIOLATION, FetchErrorAction.RETRY),
])
def test_no_code_ends_a_partition_for_good(code, action):
    assert fetch_error_action(code) is action
