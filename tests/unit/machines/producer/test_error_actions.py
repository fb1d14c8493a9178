"""The table of produce errors, and what is made of single answers."""

from uuid import UUID

import pytest

from headrace.errors import KafkaError
from headrace.machines.producer.error_actions import (
    ERROR_ACTIONS,
    ErrorAction,
    answers_by_partition,
    error_action,
    forgotten,
)
from headrace.wire.messages.producer.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

_NO_ID = UUID(int=0)


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


@pytest.mark.parametrize("ids", [(_NO_ID, _NO_ID), (UUID(int=1), UUID(int=2))], ids=["by name", "by id"])
def test_answers_are_told_apart_by_name_and_from_version_13_on_by_id(ids):
    request = ProduceRequest(topic_data=[
        TopicProduceData(name=name, topic_id=topic_id) for name, topic_id in zip("tu", ids, strict=True)])
    reply = ProduceResponse(responses=[
        TopicProduceResponse(
            name="" if topic_id.int else name, topic_id=topic_id,
            partition_responses=[PartitionProduceResponse(index=0, base_offset=offset)])
        for name, topic_id, offset in zip("tu", ids, (4, 9), strict=True)])
    answers = answers_by_partition(request, reply, dict(zip("tu", ids, strict=True)).__getitem__)
    assert {key: answer.base_offset for key, answer in answers.items()} == {("t", 0): 4, ("u", 0): 9}
