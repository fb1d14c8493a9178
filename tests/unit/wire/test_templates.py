"""A template writes and reads what the codec does, whatever the message; what it does not cover it leaves to that."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import KafkaException, ProtocolError
from headrace.wire.codec import decode_from
from headrace.wire.frame import decode_answer, encode_request, encode_response
from headrace.wire.messages.consumer.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    NodeEndpoint,
    PartitionData,
)
from headrace.wire.messages.producer.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceNodeEndpoint,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from headrace.wire.templates import RecordsReplyTemplate, ReplyTemplate, RequestTemplate

NUMBERS = ("base_offset", "log_append_time_ms", "log_start_offset")
FETCHED = ("high_watermark", "last_stable_offset", "log_start_offset")
versions = st.integers(0, ProduceRequest.max_version)
with_all_numbers = st.integers(5, ProduceRequest.max_version)
int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
names = st.text(max_size=300)
ids = st.uuids()
sizes = st.one_of(st.integers(1, 40_000), st.sampled_from([126, 127, 128, 16_382, 16_383, 16_384, 2_097_151]))
"""Among them those where the varint of a length grows."""


def request_of(name: str, topic_id: UUID, partition: int, acks: int, timeout_ms: int) -> ProduceRequest:
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[TopicProduceData(
        name=name, topic_id=topic_id, partition_data=[PartitionProduceData(index=partition, records=None)])])


def template_of(request: ProduceRequest) -> RequestTemplate:
    return RequestTemplate(request, request.topic_data[0].partition_data[0])


def reply_of(name: str, topic_id: UUID, partition: int) -> ProduceResponse:
    return ProduceResponse(responses=[TopicProduceResponse(
        name=name, topic_id=topic_id, partition_responses=[PartitionProduceResponse(index=partition)])])


def heard(reply: ProduceResponse) -> ReplyTemplate:
    return ReplyTemplate(reply, reply.responses[0].partition_responses[0], NUMBERS)


def frame_of(reply: ProduceResponse, version: int, correlation_id: int = 7) -> bytes:
    return b"".join(encode_response(reply, version, correlation_id))[4:]


@given(names, ids, int32, st.sampled_from([-1, 1]), int32, st.none() | names, st.lists(
    st.tuples(versions, int32, sizes), min_size=1, max_size=5))
def test_frames_are_those_of_the_codec(name, topic_id, partition, acks, timeout_ms, client_id, frames):
    request = request_of(name, topic_id, partition, acks, timeout_ms)
    template = template_of(request)
    for version, correlation_id, size in frames:
        template.part.records = memoryview(bytes([size & 0xFF]) * size)
        expected = b"".join(encode_request(request, version, correlation_id, client_id))
        assert b"".join(template.frame(version, correlation_id, client_id)) == expected


def test_another_client_id_is_written_as_soon_as_it_is_given():
    request = request_of("t", UUID(int=1), 0, -1, 1000)
    template = template_of(request)
    template.part.records = memoryview(b"x")
    for client_id in ("a", "longer", None, "a"):
        stem, tail, flexible = template.around(13, client_id)
        assert (template_of(request).around(13, client_id), flexible) == ((stem, tail, True), True)
        whole = b"".join(encode_request(request, 13, 1, client_id))
        assert whole[12:] == stem + b"\2x" + tail
        assert b"".join(template.frame(13, 1, client_id)) == whole


def test_records_are_not_copied():
    request = request_of("t", UUID(int=1), 0, -1, 1000)
    records = memoryview(b"records")
    request.topic_data[0].partition_data[0].records = records
    assert any(part is records for part in template_of(request).frame(13, 1, "c"))


def test_what_the_codec_cannot_write_is_refused_in_its_words_and_leaves_the_request_as_it_was():
    request = request_of("t", UUID(int=1), 2**40, -1, 1000)
    records = request.topic_data[0].partition_data[0].records = memoryview(b"records")
    with pytest.raises(ProtocolError, match="ProduceRequest v13 cannot be written"):
        template_of(request).frame(13, 1, "c")
    assert request.topic_data[0].partition_data[0].records is records


@given(names, ids, int32, st.lists(st.tuples(with_all_numbers, int32, int64, int64, int64), min_size=1, max_size=5))
def test_the_expected_reply_is_read_as_the_codec_reads_it(name, topic_id, partition, frames):
    template = heard(reply_of(name, topic_id, partition))
    for version, correlation_id, *numbers in frames:
        told = reply_of(name, topic_id, partition)
        for field, number in zip(NUMBERS, numbers, strict=True):
            setattr(told.responses[0].partition_responses[0], field, number)
        frame = frame_of(told, version, correlation_id)
        read = template.read(frame, version, correlation_id)
        assert read is template.reply
        expected = decode_answer(ProduceRequest, version, correlation_id, frame)
        assert frame_of(read, version) == frame_of(expected, version)
        assert [getattr(template.part, field) for field in NUMBERS] == numbers


@given(names, ids, int32, st.integers(0, 4))
def test_versions_that_lack_a_number_are_left_to_the_codec(name, topic_id, partition, version):
    told = reply_of(name, topic_id, partition)
    assert heard(reply_of(name, topic_id, partition)).read(frame_of(told, version), version, 7) is None


def unusual(change) -> ProduceResponse:
    told = reply_of("t", UUID(int=1), 3)
    change(told, told.responses[0].partition_responses[0])
    return told


@pytest.mark.parametrize("change", [
    lambda reply, part: setattr(part, "error_code", 6),
    lambda reply, part: setattr(part, "index", 4),
    lambda reply, part: setattr(part, "error_message", "no"),
    lambda reply, part: setattr(part, "record_errors", [BatchIndexAndErrorMessage(batch_index=0)]),
    lambda reply, part: setattr(part.current_leader, "leader_id", 2),
    lambda reply, part: setattr(part, "unknown_tags", {9: b"?"}),
    lambda reply, part: setattr(reply, "throttle_time_ms", 1),
    lambda reply, part: setattr(reply, "node_endpoints", [ProduceNodeEndpoint(node_id=1, host="h", port=1)]),
    lambda reply, part: setattr(reply.responses[0], "topic_id", UUID(int=2)),
    lambda reply, part: reply.responses.clear(),
    lambda reply, part: reply.responses[0].partition_responses.append(PartitionProduceResponse(index=5)),
], ids=["error", "partition", "message", "record errors", "leader", "tags", "throttled", "endpoints", "topic", "none",
        "two"])
def test_whatever_else_a_reply_says_is_left_to_the_codec(change):
    template = heard(reply_of("t", UUID(int=1), 3))
    assert template.read(frame_of(reply_of("t", UUID(int=1), 3), 13), 13, 7) is template.reply
    assert template.read(frame_of(unusual(change), 13), 13, 7) is None


def test_a_reply_to_another_request_is_left_to_the_codec():
    assert heard(reply_of("t", UUID(int=1), 3)).read(frame_of(reply_of("t", UUID(int=1), 3), 13), 13, 8) is None


@given(st.binary(max_size=80), st.integers(0, 61))
def test_damaged_frames_are_left_to_the_codec_or_differ_in_numbers_only(noise, place):
    good = frame_of(reply_of("t", UUID(int=1), 3), 13)
    damaged = (good[:place] + noise + good[place + len(noise):])[:max(len(good), place + len(noise))]
    template = heard(reply_of("t", UUID(int=1), 3))
    if template.read(damaged, 13, 7) is not None:
        read = decode_from(ProduceResponse, damaged, 13, 5)
        assert frame_of(read, 13) == damaged
        assert frame_of(template.reply, 13) == damaged


# Numbers in a request, and records in a reply


def fetch_of(topic: str, topic_id: UUID, partition: int, session_id: int, rack: str) -> FetchRequest:
    asked = FetchPartition(partition=partition, current_leader_epoch=3, fetch_offset=0, partition_max_bytes=1000)
    return FetchRequest(max_wait_ms=500, min_bytes=1, session_id=session_id, session_epoch=0, rack_id=rack, topics=[
        FetchTopic(topic=topic, topic_id=topic_id, partitions=[asked])])


@given(names, ids, int32, int32, st.text(max_size=20), st.none() | names, st.lists(
    st.tuples(st.integers(7, FetchRequest.max_version), int32, int32, int64, int32), min_size=1, max_size=5))
def test_numbers_are_put_where_the_codec_puts_them(topic, topic_id, partition, session_id, rack, client_id, frames):
    request = fetch_of(topic, topic_id, partition, session_id, rack if len(rack.encode()) < 100 else "")
    asked = request.topics[0].partitions[0]
    template = RequestTemplate(request, numbers=[
        (request, "session_epoch"), (asked, "fetch_offset"), (asked, "partition")])
    for version, correlation_id, epoch, offset, other in frames:
        request.session_epoch, asked.fetch_offset, asked.partition = epoch, offset, other
        if version < 11:
            request.rack_id = ""
        expected = b"".join(encode_request(request, version, correlation_id, client_id))
        assert b"".join(template.frame(version, correlation_id, client_id)) == expected
        assert (request.session_epoch, asked.fetch_offset, asked.partition) == (epoch, offset, other)


def fetched_of(topic: str, topic_id: UUID, partition: int, session_id: int, aborted: list[Any] | None) -> FetchResponse:
    data = PartitionData(partition_index=partition, aborted_transactions=aborted, records=None)
    return FetchResponse(session_id=session_id, responses=[
        FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=[data])])


def heard_fetch(reply: FetchResponse) -> RecordsReplyTemplate:
    return RecordsReplyTemplate(reply, reply.responses[0].partitions[0], FETCHED, "partition_index")


@given(names, ids, int32, int32, st.sampled_from([None, []]), st.lists(
    st.tuples(int32, st.integers(7, FetchRequest.max_version), int32, int64, int64, int64, st.one_of(
        st.integers(1, 20_000), st.sampled_from([125, 126, 127, 128, 16_381, 16_382, 16_383, 60_000]))),
    min_size=1, max_size=5))
def test_a_reply_with_records_is_read_as_the_codec_reads_it(topic, topic_id, partition, session_id, aborted, frames):
    template = heard_fetch(fetched_of(topic, topic_id, partition, session_id, aborted))
    for known, version, correlation_id, *numbers, size in frames:
        told = fetched_of(topic, topic_id, known, session_id, aborted)
        template.part.partition_index = ~known
        part = told.responses[0].partitions[0]
        for field, number in zip(FETCHED, numbers, strict=True):
            setattr(part, field, number)
        part.records = memoryview(bytes([size & 0xFF]) * size)
        frame = b"".join(encode_response(told, version, correlation_id))[4:]
        assert template.read(frame, version, correlation_id) is None  # that is another partition
        template.part.partition_index = known
        read = template.read(frame, version, correlation_id)
        assert read is template.reply
        assert b"".join(encode_response(read, version, correlation_id))[4:] == frame
        assert bytes(template.part.records) == bytes(part.records)


@pytest.mark.parametrize("change", [
    lambda reply, part: setattr(part, "error_code", 6),
    lambda reply, part: setattr(part, "partition_index", 4),
    lambda reply, part: setattr(part, "preferred_read_replica", 2),
    lambda reply, part: setattr(part, "aborted_transactions", [AbortedTransaction(producer_id=1, first_offset=2)]),
    lambda reply, part: setattr(part, "records", None),
    lambda reply, part: setattr(part, "unknown_tags", {9: b"?"}),
    lambda reply, part: setattr(part.diverging_epoch, "epoch", 1),
    lambda reply, part: setattr(reply, "throttle_time_ms", 1),
    lambda reply, part: setattr(reply, "error_code", 70),
    lambda reply, part: setattr(reply, "session_id", 78),
    lambda reply, part: setattr(reply, "node_endpoints", [NodeEndpoint(node_id=1, host="h", port=1)]),
    lambda reply, part: setattr(reply.responses[0], "topic_id", UUID(int=2)),
    lambda reply, part: reply.responses.clear(),
    lambda reply, part: reply.responses[0].partitions.append(PartitionData(partition_index=5, records=b"x")),
], ids=["error", "partition", "replica", "aborted", "no records", "tags", "diverging", "throttled", "session error",
        "session", "endpoints", "topic", "none", "two"])
@pytest.mark.parametrize("version", [12, 18])
def test_whatever_else_a_reply_with_records_says_is_left_to_the_codec(change, version):
    template = heard_fetch(fetched_of("t", UUID(int=1), 3, 77, []))
    told = fetched_of("t", UUID(int=1), 3, 77, [])
    told.responses[0].partitions[0].records = b"records"

    def read():
        return template.read(b"".join(encode_response(told, version, 7))[4:], version, 7)

    assert read() is template.reply
    before = b"".join(encode_response(told, version, 7))
    change(told, told.responses[0].partitions[0])
    try:
        changed = b"".join(encode_response(told, version, 7)) != before
    except KafkaException:  # not in this version
        return
    assert (read() is None) == changed


@given(st.binary(max_size=80), st.integers(0, 100))
def test_damaged_frames_with_records_are_left_to_the_codec_or_are_read_as_it_reads_them(noise, place):
    told = fetched_of("t", UUID(int=1), 3, 77, [])
    told.responses[0].partitions[0].records = b"r" * 30
    good = b"".join(encode_response(told, 18, 7))[4:]
    damaged = (good[:place] + noise + good[place + len(noise):])[:max(len(good), place + len(noise))]
    template = heard_fetch(fetched_of("t", UUID(int=1), 3, 77, []))
    if template.read(damaged, 18, 7) is not None:
        read = decode_from(FetchResponse, damaged, 18, 5)
        assert b"".join(encode_response(read, 18, 7))[4:] == damaged
        assert b"".join(encode_response(template.reply, 18, 7))[4:] == damaged


def test_a_frame_that_is_not_in_memory_of_its_own_is_left_to_the_codec():
    told = fetched_of("t", UUID(int=1), 3, 77, [])
    told.responses[0].partitions[0].records = b"r" * 30
    frame = b"".join(encode_response(told, 18, 7))[4:]
    assert heard_fetch(fetched_of("t", UUID(int=1), 3, 77, [])).read(memoryview(frame), 18, 7) is None
