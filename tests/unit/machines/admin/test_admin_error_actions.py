"""What an error code means in the answer to an administrator's request."""

from headrace.errors import KafkaError as K
from headrace.machines.admin.admin_error_actions import ADMIN_ERROR_ACTIONS, AdminErrorAction, admin_error_action


def test_whoever_is_asked_too_early_or_too_late_is_asked_again():
    assert admin_error_action(K.NOT_CONTROLLER) is AdminErrorAction.MOVED
    assert admin_error_action(K.TOPIC_ALREADY_EXISTS) is AdminErrorAction.ANSWER
    assert all(K(code).retriable() or code in (K._UNKNOWN_BROKER, K._TRANSPORT) for code in ADMIN_ERROR_ACTIONS)
