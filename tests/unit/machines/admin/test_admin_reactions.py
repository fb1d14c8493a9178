"""What an error code means in the answer to an administrator's request."""

from headrace.errors import KafkaError as K
from headrace.machines.admin.admin_reactions import ADMIN_REACTIONS, AdminReaction, admin_reaction


def test_whoever_is_asked_too_early_or_too_late_is_asked_again():
    assert admin_reaction(K.NOT_CONTROLLER) is AdminReaction.MOVED
    assert admin_reaction(K.TOPIC_ALREADY_EXISTS) is AdminReaction.ANSWER
    assert all(K(code).retriable() or code in (K._UNKNOWN_BROKER, K._TRANSPORT) for code in ADMIN_REACTIONS)
