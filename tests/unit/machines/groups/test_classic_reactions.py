"""What an error code means for a member of a classic group."""

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.groups.classic_reactions import GroupReaction, group_reaction


@pytest.mark.parametrize(("code", "reaction"), [
    (K.UNKNOWN_MEMBER_ID, GroupReaction.DROPPED),
    (K.ILLEGAL_GENERATION, GroupReaction.DROPPED),
    (K.FENCED_INSTANCE_ID, GroupReaction.FENCED),
    (K.NOT_COORDINATOR, GroupReaction.MOVED),
    (K.REBALANCE_IN_PROGRESS, GroupReaction.REBALANCE),
    (K.COORDINATOR_LOAD_IN_PROGRESS, GroupReaction.RETRY),
    (K.GROUP_AUTHORIZATION_FAILED, GroupReaction.REFUSED),
    (K.INVALID_SESSION_TIMEOUT, GroupReaction.REFUSED),
])
def test_what_a_member_does_about_a_code(code, reaction):
    assert group_reaction(code) is reaction
