"""What an error code means for a partition that is fetched."""

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.consumer.fetch_reactions import FetchReaction, fetch_reaction


@pytest.mark.parametrize(("code", "reaction"), [
    (K.OFFSET_OUT_OF_RANGE, FetchReaction.OUT_OF_RANGE),
    (K.TOPIC_AUTHORIZATION_FAILED, FetchReaction.TELL),
    (K.NOT_LEADER_FOR_PARTITION, FetchReaction.RETRY),
    (K.POLICY_VIOLATION, FetchReaction.RETRY),
])
def test_no_code_ends_a_partition_for_good(code, reaction):
    assert fetch_reaction(code) is reaction
