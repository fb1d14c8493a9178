"""OffsetFetch for every version: who asks, by name or by id, and what is answered in either form."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.machines.consumer.offset_fetch import LAST_AS_NOBODY, CommittedOffsetsQuestion
from headrace.machines.producer.transaction_requests import ConsumerGroupMetadata
from headrace.wire.frame import encode_request
from headrace.wire.messages.consumer.offsets import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from headrace.wire.schema import ZERO_UUID

T = UUID(int=1)
ME = ConsumerGroupMetadata("g", 4, "me")
TOPICS = {"t": [0, 1], "u": [2]}


def test_nobody_asks_in_the_form_for_one_group() -> None:
    question = CommittedOffsetsQuestion(TOPICS, {"t": T, "u": T}, None)
    assert question.max_version == LAST_AS_NOBODY
    request = question.request("g", require_stable=True)
    assert question.for_version(request, LAST_AS_NOBODY) is request
    assert {topic.name: topic.partition_indexes for topic in request.topics or ()} == TOPICS


@pytest.mark.parametrize(("ids", "highest"), [({}, 9), ({"t": T}, 9), ({"t": T, "u": UUID(int=2)}, None)])
def test_topics_go_by_id_only_if_all_ids_are_known(ids: dict[str, UUID], highest: int | None) -> None:
    question = CommittedOffsetsQuestion(TOPICS, ids, ME)
    assert question.max_version == highest
    request = question.for_version(question.request("g", require_stable=True), 10)
    assert isinstance(request, OffsetFetchRequest)
    [group] = request.groups
    assert (group.group_id, group.member_id, group.member_epoch, request.require_stable) == ("g", "me", 4, True)
    assert [topic.topic_id for topic in group.topics or ()] == [ids.get("t", ZERO_UUID), ids.get("u", ZERO_UUID)]


def test_who_is_no_member_names_none() -> None:
    question = CommittedOffsetsQuestion(TOPICS, {}, ConsumerGroupMetadata("g", -1, "me", "i"))
    request = question.for_version(question.request("g", require_stable=False), 9)
    assert isinstance(request, OffsetFetchRequest)
    [group] = request.groups
    assert (group.member_id, group.member_epoch) == (None, -1)
    assert {topic.name: topic.partition_indexes for topic in group.topics or ()} == TOPICS


@pytest.mark.parametrize("version", range(2, 11))
def test_the_request_can_be_written_in_every_version(version: int) -> None:
    question = CommittedOffsetsQuestion({"t": [0]}, {"t": T}, ME)
    request = question.for_version(question.request("g", require_stable=True), version)
    assert encode_request(request, version, 1, "c")
    assert isinstance(request, OffsetFetchRequest)
    assert request.require_stable == (version >= 7)  # before, brokers wait for no transactions, as in Java


def test_answers_of_both_forms_are_the_same() -> None:
    question = CommittedOffsetsQuestion({"t": [1]}, {"t": T}, ME)
    old = OffsetFetchResponse(error_code=3, topics=[OffsetFetchResponseTopic(name="t", partitions=[
        OffsetFetchResponsePartition(partition_index=1, committed_offset=7, metadata=None, error_code=5)])])
    code, found = question.answers(old)
    assert (code, found["t", 1].committed_offset, found["t", 1].error_code) == (3, 7, 5)
    for named in ({"name": "t"}, {"topic_id": T}):
        new = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", error_code=3, topics=[
            OffsetFetchResponseTopics(**named, partitions=[OffsetFetchResponsePartitions(
                partition_index=1, committed_offset=7, metadata=None, error_code=5)])])])
        code, found = question.answers(new)
        assert (code, found["t", 1].committed_offset, found["t", 1].error_code) == (3, 7, 5)
