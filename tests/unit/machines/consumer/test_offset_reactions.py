"""What an error code means when offsets are asked for or committed."""

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.consumer.offset_reactions import (
    OF_CONNECTIONS,
    OF_COORDINATORS,
    OF_LEADERS,
    OffsetReaction,
    offset_reaction,
)


@pytest.mark.parametrize(("table", "code", "reaction"), [
    (OF_LEADERS, K.NOT_LEADER_FOR_PARTITION, OffsetReaction.MOVED),
    (OF_LEADERS, K.OFFSET_NOT_AVAILABLE, OffsetReaction.MOVED),
    (OF_LEADERS, K.TOPIC_AUTHORIZATION_FAILED, OffsetReaction.FAIL),
    (OF_COORDINATORS, K.NOT_COORDINATOR, OffsetReaction.MOVED),
    (OF_COORDINATORS, K.UNSTABLE_OFFSET_COMMIT, OffsetReaction.RETRY),
    (OF_COORDINATORS, K.ILLEGAL_GENERATION, OffsetReaction.FAIL),
    (OF_CONNECTIONS, K._TRANSPORT, OffsetReaction.RETRY),
    (OF_CONNECTIONS, K._TIMED_OUT, OffsetReaction.RETRY),
    (OF_CONNECTIONS, K._AUTHENTICATION, OffsetReaction.FAIL),
])
def test_what_is_asked_again_and_what_is_told(table, code, reaction):
    assert offset_reaction(table, code) is reaction


def test_what_is_asked_again_is_an_error_that_passes():
    for code in {**OF_LEADERS, **OF_COORDINATORS}:
        assert code == K.NO_ERROR or K(code).retriable(), K(code).name()
