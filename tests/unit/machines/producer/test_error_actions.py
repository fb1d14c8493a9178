"""The table of produce errors, and what is made of single answers."""

import pytest

from headrace.errors import KafkaError
from headrace.machines.producer.error_actions import ERROR_ACTIONS, ErrorAction, error_action, forgotten
from headrace.wire.messages.producer.produce import PartitionProduceResponse


def test_a_code_that_is_not_listed_is_sent_again_only_where_the_table_of_codes_calls_it_retriable():
    unlisted = [code for code in range(1, 130) if code not in ERROR_ACTIONS]
    assert {error_action(code) for code in unlisted} == {ErrorAction.RETRY, ErrorAction.FAIL}
    assert all((error_action(code) is ErrorAction.RETRY) is KafkaError(code).retriable() for code in unlisted)


@pytest.mark.parametrize(("code", "log_start_offset", "last_offset", "told"), [
    (KafkaError.UNKNOWN_PRODUCER_ID, 10, 9, True),
    (KafkaError.UNKNOWN_PRODUCER_ID, 0, -1, True),
    (KafkaError.UNKNOWN_PRODUCER_ID, 9, 9, False),
    (KafkaError.UNKNOWN_PRODUCER_ID, -1, -1, False),
    (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, 10, 9, False),
])
def test_nothing_is_lost_with_a_forgotten_producer_if_the_log_begins_behind_what_was_acknowledged(
    code, log_start_offset, last_offset, told
):
    answer = PartitionProduceResponse(index=0, error_code=code, log_start_offset=log_start_offset)
    assert forgotten(answer, last_offset) is told
