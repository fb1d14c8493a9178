"""Decoders that are generated: what they read in place, and the bytes that they refuse before memory is taken."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.errors import ProtocolError
from headrace.wire.codec import compile_reader, decode, encode, read_message
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from headrace.wire.messages.cluster.session import ApiVersionsResponse
from headrace.wire.messages.consumer.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from headrace.wire.reading import ArrayReader, decoder_source


def test_a_huge_count_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(ProtocolError, match="a length or count reaches to byte"):
        decode(MetadataRequest, b"\x7f\xff\xff\xff", 0)
    with pytest.raises(ProtocolError, match="a length or count reaches to byte"):
        decode(MetadataRequest, b"\xff\xff\xff\xff\x07\x00\x00\x00", 9)


def test_a_varint_without_an_end_is_refused() -> None:
    with pytest.raises(ProtocolError, match="does not end"):
        decode(MetadataRequest, b"\xff" * 12, 9)
    with pytest.raises(ProtocolError, match="too large"):
        decode(MetadataRequest, b"\xff\xff\xff\xff\x7f" + b"\0" * 8, 9)


def test_records_that_are_read_are_views_of_the_data() -> None:
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=b"some records")])
    for version in (4, 12):
        data = encode(FetchResponse(responses=[topic]), version)
        records = decode(FetchResponse, data, version).responses[0].partitions[0].records
        assert isinstance(records, memoryview)
        assert records.obj is data
        assert records == b"some records"


def test_a_tagged_field_that_lies_about_its_size_is_refused() -> None:
    plain = encode(ApiVersionsResponse(), 3)
    with pytest.raises(ProtocolError, match="finalized_features_epoch says it ends"):
        decode(ApiVersionsResponse, plain[:-1] + b"\x01\x01\x09" + b"\0" * 9, 3)


def test_a_tagged_field_s_own_structures_are_read_and_what_is_not_known_of_them_is_kept() -> None:
    partition = PartitionData(partition_index=3, current_leader=LeaderIdAndEpoch(
        leader_id=5, leader_epoch=9, unknown_tags={300: b"later"}), unknown_tags={40: b"", 9_000: b"x" * 200})
    message = FetchResponse(responses=[FetchableTopicResponse(topic_id=UUID(int=7), partitions=[partition] * 2)])
    assert decode(FetchResponse, encode(message, 18), 18) == message


def test_more_tagged_fields_than_the_data_holds_are_refused_before_they_are_counted_through() -> None:
    plain = encode(ApiVersionsResponse(), 3)
    with pytest.raises(ProtocolError, match="cannot be read"):
        decode(ApiVersionsResponse, plain[:-1] + b"\xff\xff\xff\xff\x07" + b"\x7f\x00" * 5, 3)


def test_tagged_fields_may_come_in_any_order_and_the_last_of_a_number_counts() -> None:
    start = encode(ApiVersionsResponse(), 3)[:-1]
    epoch, migrating, not_migrating = b"\x01\x08" + bytes(7) + b"\x05", b"\x03\x01\x01", b"\x03\x01\x00"
    for tags in ([epoch, migrating], [migrating, epoch], [not_migrating, epoch, migrating]):
        read = decode(ApiVersionsResponse, start + bytes([len(tags)]) + b"".join(tags), 3)
        assert (read.finalized_features_epoch, read.zk_migration_ready) == (5, True)


def test_lists_of_messages_that_are_read_are_not_shared() -> None:
    data = encode(ApiVersionsResponse(), 0)
    first, second = decode(ApiVersionsResponse, data, 0), decode(ApiVersionsResponse, data, 0)
    first.finalized_features.append(None)  # type: ignore[arg-type]
    assert second.finalized_features == []


def test_a_count_is_compared_with_what_so_many_elements_take_at_least() -> None:
    def answer(count: int, brokers: bytes) -> bytes:
        return count.to_bytes(4, "big") + brokers

    broker = b"\0\0\0\x07" + b"\0\x01h" + b"\0\0\x23\x84"
    whole = decode(MetadataResponse, answer(1, broker) + b"\0\0\0\0", 0)
    assert [(b.node_id, b.host, b.port) for b in whole.brokers] == [(7, "h", 9092)]
    with pytest.raises(ProtocolError, match="a length or count reaches to byte 24, but the data ends at byte 15"):
        decode(MetadataResponse, answer(2, broker), 0)


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ProtocolError, match="utf-8"):
        decode(MetadataRequest, b"\0\0\0\x01" + b"\0\x01\xff", 0)


def test_a_decoder_begins_where_it_is_told_and_says_where_the_message_ends() -> None:
    source, names = decoder_source(MetadataRequest, 12)
    exec(source, names)
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    data = b"before" + encode(request, 12) + b"behind"
    assert names["read"](data, memoryview(data), 6) == (request, len(data) - 6)


def test_an_array_may_be_begun_by_a_reader_of_its_own_and_the_rest_is_the_codec_s() -> None:
    asked: list[tuple[int, int]] = []

    def first_two(data: bytes, position: int, count: int) -> tuple[list[str], int]:
        asked.append((position, count))
        return ["one", "two"], position + 2 * least

    data = encode(MetadataResponse(topics=[MetadataResponseTopic(name=name) for name in "abcd"]), 13)
    at = data.index(b"\x05\x00\x00\x02a")
    least = len(encode(MetadataResponse(topics=[MetadataResponseTopic(name="a")]), 13)) - len(
        encode(MetadataResponse(), 13))
    one = compile_reader(MetadataResponse, 13, part=MetadataResponseTopic)
    reader = compile_reader(MetadataResponse, 13, arrays={MetadataResponseTopic: ArrayReader(first_two, one)})
    read = read_message(MetadataResponse, 13, reader, data, 0)
    assert asked == [(at + 1, 4)]
    assert read.topics[:2] == ["one", "two"]
    assert [topic.name for topic in read.topics[2:]] == ["c", "d"]


def test_a_count_is_refused_before_a_reader_of_its_own_sees_it() -> None:
    def never(data: bytes, position: int, count: int) -> tuple[list[object], int]:
        raise AssertionError("it was asked")

    one = compile_reader(MetadataResponse, 0, part=MetadataResponseTopic)
    reader = compile_reader(MetadataResponse, 0, arrays={MetadataResponseTopic: ArrayReader(never, one)})
    with pytest.raises(ProtocolError, match="a length or count reaches to byte"):
        read_message(MetadataResponse, 0, reader, b"\0\0\0\0\x7f\xff\xff\xff", 0)


def test_a_structure_may_be_read_alone() -> None:
    topic = MetadataResponseTopic(name="t", topic_authorized_operations=7)
    data = encode(MetadataResponse(topics=[topic]), 13)
    read = compile_reader(MetadataResponse, 13, part=MetadataResponseTopic)
    at = data.index(b"\x02t") - 2
    assert read(data, memoryview(data), at) == (topic, at + 2 + 2 + 16 + 1 + 1 + 4 + 1)
