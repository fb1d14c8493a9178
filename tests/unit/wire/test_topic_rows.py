"""Topics of Metadata replies, as rows and as the codec reads them: the same, of whatever bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import ProtocolError
from headrace.wire import topic_rows
from headrace.wire.codec import decode, encode
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.topic_rows import decode_metadata, same_row, whole_topic
from tests.campaigns.conformance.wire_values import random_message

VERSIONS = range(MetadataResponse.min_version, MetadataResponse.max_version + 1)
NAMES = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
QUICK = settings(max_examples=500,
                 suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
randoms = st.integers(0, 2**63).map(Random)
any_version = st.sampled_from(VERSIONS)
ONE = MetadataResponse(topics=[MetadataResponseTopic(
    name="t\u00e9", topic_id=UUID(int=5), is_internal=True, topic_authorized_operations=-3, error_code=-2, partitions=[
        MetadataResponsePartition(partition_index=1, leader_id=-1, leader_epoch=4, replica_nodes=[1, 2], isr_nodes=[2],
                                  offline_replicas=[1], error_code=5)])])


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> Any:
    try:
        from headrace.wire import _topic_rows
    except ImportError:
        if os.environ.get("CI") == "true":
            pytest.fail("the native module was not built")
        pytest.skip("the native module was not built")
    for name in ("TopicReader", "TopicRow"):
        monkeypatch.setattr(topic_rows, name, getattr(_topic_rows, name))
    monkeypatch.setattr(topic_rows, "_readers", {})
    return _topic_rows.TopicReader


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_rows, "TopicReader", None)
    monkeypatch.setattr(topic_rows, "_readers", {})


def told(read: Any, data: Any, version: int) -> Any:
    """What was read, by the names that users of topics read; or the refusal."""
    try:
        reply = read(data, version)
    except ProtocolError as error:
        return str(error)
    topics = [[getattr(topic, name) for name in NAMES] for topic in reply.topics]
    whole = [topic if type(topic) is MetadataResponseTopic else topic.whole() for topic in reply.topics]
    reply.topics = whole
    return topics, reply


def by_rows(data: Any, version: int) -> MetadataResponse:
    return decode_metadata(data, version, 0)


def by_codec(data: Any, version: int) -> MetadataResponse:
    return decode(MetadataResponse, data, version)


@pytest.mark.usefixtures("native")
@QUICK
@given(any_version, randoms)
def test_rows_are_what_the_codec_reads(version: int, random: Random) -> None:
    data = encode(random_message(MetadataResponse, version, random), version)
    expected = told(by_codec, data, version)
    assert not isinstance(expected, str)
    for given_data in (data, bytearray(data), memoryview(data)):
        assert told(by_rows, given_data, version) == expected


@pytest.mark.usefixtures("native")
@settings(QUICK, max_examples=1500)
@given(any_version, randoms)
def test_damaged_bytes_are_read_or_refused_as_the_codec_does(version: int, random: Random) -> None:
    data = bytearray(encode(random_message(MetadataResponse, version, random), version))
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data))
        data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256), data[at] ^ 1 << random.randrange(8)))
    if random.random() < 0.3:
        at = random.randrange(len(data))
        data[at:at + random.randrange(3)] = random.randbytes(random.randrange(4))
    assert told(by_rows, bytes(data), version) == told(by_codec, bytes(data), version)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 8])
def test_a_reply_that_is_cut_anywhere_is_refused_as_the_codec_does(version: int) -> None:
    data = encode(ONE, version)
    for size in range(len(data)):
        text = told(by_rows, data[:size], version)
        assert isinstance(text, str)
        assert text == told(by_codec, data[:size], version)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 9])
def test_ordinary_topics_are_rows_and_the_codec_reads_on_from_the_first_that_is_not(native: Any, version: int) -> None:
    tagged = MetadataResponseTopic(name="tagged", unknown_tags={7: b"x"})
    reply = MetadataResponse(topics=[ONE.topics[0], MetadataResponseTopic(name=""), tagged, ONE.topics[0]])
    read = decode_metadata(encode(reply, version), version, 0)
    kinds = [type(topic).__name__ for topic in read.topics]
    assert kinds == ["TopicRow", "TopicRow", "MetadataResponseTopic", "MetadataResponseTopic"]
    assert [topic.name for topic in read.topics] == ["t\u00e9", "", "tagged", "t\u00e9"]


@pytest.mark.usefixtures("native")
def test_a_topic_without_a_name_is_read_by_the_codec() -> None:
    reply = MetadataResponse(topics=[MetadataResponseTopic(name=None, topic_id=UUID(int=1)), ONE.topics[0]])
    assert told(by_rows, encode(reply, 13), 13) == told(by_codec, encode(reply, 13), 13)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\x01",
                                   b"\x80\x80\x80\x80\x80\x80"])
def test_a_huge_count_takes_no_memory_and_is_refused(count: bytes) -> None:
    at = encode(ONE, 13).index(b"\x03\x00\x00\x00\x01\x00\x00\x00\x02")  # of replicas
    data = encode(ONE, 13)
    damaged = data[:at] + count + data[at + 1:]
    assert told(by_rows, damaged, 13) == told(by_codec, damaged, 13)
    assert isinstance(told(by_rows, damaged, 13), str)


@pytest.mark.usefixtures("native")
def test_a_count_in_more_bytes_than_it_needs_is_read_as_the_codec_does() -> None:
    data = encode(ONE, 13)
    at = data.index(b"\x03\x00\x00\x00\x01\x00\x00\x00\x02")
    longer = data[:at] + b"\x83\x80\x00" + data[at + 1:]
    assert told(by_rows, longer, 13) == told(by_codec, longer, 13) == told(by_codec, data, 13)


@pytest.mark.usefixtures("native")
def test_a_row_lives_on_without_its_reply_and_gives_partitions_of_one_s_own() -> None:
    data = bytearray(encode(ONE, 13))
    (topic,) = decode_metadata(data, 13, 0).topics
    data[:] = bytes(len(data))
    topic.partitions[0].replica_nodes.append(9)
    assert topic.partitions == ONE.topics[0].partitions
    assert "MetadataResponseTopic(" in repr(topic)


def test_rows_are_the_same_when_their_bytes_are(native: Any) -> None:
    first, again = (decode_metadata(encode(ONE, 13), 13, 0).topics[0] for _ in range(2))
    other = decode_metadata(encode(MetadataResponse(topics=[MetadataResponseTopic(name="t")]), 13), 13, 0).topics[0]
    assert first is not again
    assert same_row(first, again)
    assert not same_row(first, other)
    assert not same_row(None, first)
    assert not same_row(ONE.topics[0], ONE.topics[0])


def test_a_row_is_made_by_its_reader_alone(native: Any) -> None:
    row = decode_metadata(encode(ONE, 13), 13, 0).topics[0]
    with pytest.raises(TypeError, match="read from a reply"):
        type(row)()
    for position in (-1, 10_000):
        assert native(13, whole_topic(13))(b"data", position, 5) == ([], position)


@pytest.mark.usefixtures("plain")
def test_without_the_native_module_the_codec_reads() -> None:
    data = encode(ONE, 13)
    assert [type(topic) for topic in by_rows(data, 13).topics] == [MetadataResponseTopic]
    assert told(by_rows, data, 13) == told(by_codec, data, 13)


def test_who_asks_for_the_plain_twins_gets_the_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_PURE", "1")
    shown = subprocess.run([sys.executable, "-c", "from headrace.wire.topic_rows import TopicReader as t; print(t)"],
                           capture_output=True, text=True, check=True).stdout
    assert shown == "None\n"
