"""Messages to bytes and back, in every version; and what hostile bytes can do, which is nothing."""

from __future__ import annotations

import copy
import pickle
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.wire.codec import decode, decode_prefixed, encode, encode_parts, encode_prefixed
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.cluster.session import ApiVersionsResponse, FinalizedFeatureKey
from headrace.wire.messages.consumer.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.wire.messages.controllers.control import EndTxnMarker
from headrace.wire.messages.groups.classic_groups import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from headrace.wire.messages.producer.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.wire.schema import ApiMessage
from tests.campaigns.conformance.wire_values import all_versions, random_message

EVERY_VERSION = all_versions()
IDS = [f"{cls.__name__}-v{version}" for cls, version in EVERY_VERSION]
QUICK = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])

any_message = st.sampled_from(EVERY_VERSION)
randoms = st.integers(0, 2**63).map(Random)


@pytest.mark.parametrize(("cls", "version"), EVERY_VERSION, ids=IDS)
def test_a_message_survives_the_way_to_bytes_and_back(cls: type[ApiMessage], version: int) -> None:
    random = Random(f"{cls.__name__}{version}")
    for message in [cls(), *(random_message(cls, version, random) for _ in range(4))]:
        data = encode(message, version)
        assert decode(cls, data, version) == message
        assert decode(cls, memoryview(data), version) == message
        assert decode(cls, bytearray(data), version) == message


@QUICK
@given(any_message, randoms)
def test_random_messages_survive(which: tuple[type[ApiMessage], int], random: Random) -> None:
    cls, version = which
    message = random_message(cls, version, random)
    assert decode(cls, encode(message, version), version) == message


@QUICK
@given(any_message, randoms)
def test_a_message_cut_short_is_a_protocol_error(which: tuple[type[ApiMessage], int], random: Random) -> None:
    cls, version = which
    data = encode(random_message(cls, version, random), version)
    for size in {0, len(data) // 2, len(data) - 1, random.randrange(len(data) + 1)} - {len(data), -1}:
        with pytest.raises(ProtocolError, match=rf"^{cls.__name__} v{version} "):
            decode(cls, data[:size], version)


@QUICK
@given(any_message, randoms)
def test_bytes_left_over_are_a_protocol_error(which: tuple[type[ApiMessage], int], random: Random) -> None:
    cls, version = which
    data = encode(random_message(cls, version, random), version)
    with pytest.raises(ProtocolError, match="ends at byte"):
        decode(cls, data + b"\0", version)


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_message, randoms)
def test_mutated_bytes_give_a_message_or_a_protocol_error(which: tuple[type[ApiMessage], int], random: Random) -> None:
    cls, version = which
    data = bytearray(encode(random_message(cls, version, random, size=2), version) or b"\0")
    for _ in range(random.randint(1, 4)):
        data[random.randrange(len(data))] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
    try:
        decode(cls, data, version)
    except ProtocolError:
        pass


@QUICK
@given(any_message, st.binary(max_size=200))
def test_random_bytes_give_a_message_or_a_protocol_error(which: tuple[type[ApiMessage], int], data: bytes) -> None:
    try:
        decode(which[0], data, which[1])
    except ProtocolError:
        pass


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


def test_null_where_a_version_does_not_allow_it_is_refused_both_ways() -> None:
    with pytest.raises(ProtocolError, match="topics must not be None in this version"):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(ProtocolError, match="topics is null, which this version does not allow"):
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)
    assert decode(MetadataRequest, encode(MetadataRequest(topics=None), 1), 1).topics is None


def test_records_are_sent_as_they_are_without_a_copy() -> None:
    first, second = b"a" * 1000, bytearray(b"b" * 2000)
    partitions = [PartitionProduceData(index=0, records=first), PartitionProduceData(index=1, records=second)]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=partitions)])
    for version in (3, 12):
        parts = encode_parts(request, version)
        views = [part for part in parts if isinstance(part, memoryview) and part.obj in (first, second)]
        assert [view.obj is source for view, source in zip(views, (first, second), strict=True)] == [True, True]
        assert b"".join(parts) == encode(request, version)


def test_records_that_are_read_are_views_of_the_data() -> None:
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=b"some records")])
    for version in (4, 12):
        data = encode(FetchResponse(responses=[topic]), version)
        records = decode(FetchResponse, data, version).responses[0].partitions[0].records
        assert isinstance(records, memoryview)
        assert records.obj is data
        assert records == b"some records"


def test_a_field_that_the_version_lacks_is_an_error_unless_it_holds_its_default() -> None:
    request = HeartbeatRequest(group_id="g", group_instance_id="static")
    with pytest.raises(KafkaException, match=r"group_instance_id is set, which only versions 3\+ carry") as info:
        encode(request, 2)
    assert info.value.error.code() == KafkaError._UNSUPPORTED_FEATURE
    assert decode(HeartbeatRequest, encode(request, 3), 3).group_instance_id == "static"
    assert encode(HeartbeatRequest(group_id="g"), 2)


def test_an_ignorable_field_is_dropped_in_silence() -> None:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    request = JoinGroupRequest(group_id="g", reason="because", protocols=protocols)
    assert decode(JoinGroupRequest, encode(request, 7), 7).reason is None
    assert decode(JoinGroupRequest, encode(request, 8), 8).reason == "because"


def test_unknown_tagged_fields_are_kept_and_written_again_among_the_known() -> None:
    response = ApiVersionsResponse(finalized_features=[FinalizedFeatureKey(name="f", max_version_level=2)])
    plain = encode(ApiVersionsResponse(), 3)
    assert plain.endswith(b"\0")
    known = encode(response, 3)[len(plain):]
    low, high = b"\x01\x08" + bytes(8), b"\x63\x03abc"
    data = plain[:-1] + b"\x03" + low + known + high
    read = decode(ApiVersionsResponse, data, 3)
    assert read.unknown_tags == {99: b"abc"}
    assert (read.finalized_features, read.finalized_features_epoch) == (response.finalized_features, 0)
    assert encode(read, 3) == data
    assert decode(ApiVersionsResponse, plain[:-1] + b"\x01\x63\x00", 3).unknown_tags == {99: b""}


def test_unknown_tagged_fields_of_inner_structures_are_kept() -> None:
    topics = [MetadataRequestTopic(name="t", unknown_tags={0: b"z", 2**31 - 1: b"x" * 20_000})]
    request = MetadataRequest(topics=topics, unknown_tags={7: b""})
    assert decode(MetadataRequest, encode(request, 12), 12) == request
    assert "unknown_tags={7: b''}" in repr(request)
    assert "unknown_tags" not in repr(MetadataRequest())


def test_unknown_tagged_fields_are_part_of_what_a_message_is() -> None:
    assert MetadataRequest(unknown_tags={7: b"a"}) != MetadataRequest(unknown_tags={7: b"b"}) != MetadataRequest()
    assert MetadataRequest(unknown_tags={}) == MetadataRequest()
    assert copy.deepcopy(MetadataRequest(unknown_tags={7: b"a"})) == MetadataRequest(unknown_tags={7: b"a"})
    assert pickle.loads(pickle.dumps(MetadataRequest(unknown_tags={7: b"a"}))).unknown_tags == {7: b"a"}


def test_a_version_without_tagged_fields_refuses_unknown_ones() -> None:
    with pytest.raises(KafkaException, match="unknown_tags is set, which only versions with tagged fields carry"):
        encode(MetadataRequest(unknown_tags={7: b"a"}), 8)
    assert encode(MetadataRequest(unknown_tags={}), 8) == encode(MetadataRequest(), 8)


@pytest.mark.parametrize("tag", [1, -1, 2**31])
def test_an_unknown_tagged_field_cannot_have_the_number_of_a_known_one_or_none_at_all(tag: int) -> None:
    with pytest.raises(ProtocolError, match=f"{tag} cannot be the number of an unknown tagged field"):
        encode(ApiVersionsResponse(unknown_tags={tag: b""}), 3)


def test_a_tagged_field_that_lies_about_its_size_is_refused() -> None:
    plain = encode(ApiVersionsResponse(), 3)
    with pytest.raises(ProtocolError, match="finalized_features_epoch says it ends"):
        decode(ApiVersionsResponse, plain[:-1] + b"\x01\x01\x09" + b"\0" * 9, 3)


def test_a_value_that_does_not_fit_its_field_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="ProduceRequest v3 cannot be written"):
        encode(ProduceRequest(acks=40_000), 3)
    with pytest.raises(ProtocolError, match="MetadataRequest v1 cannot be written"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 40_000)]), 1)
    with pytest.raises(ProtocolError, match="cannot be written"):
        encode(HeartbeatRequest(group_id=7), 0)  # type: ignore[arg-type]


def test_a_version_that_does_not_exist_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="ProduceRequest has no version 14; it has 0-13"):
        encode(ProduceRequest(), 14)
    with pytest.raises(ProtocolError, match="ProduceResponse has no version -1"):
        decode(ProduceResponse, b"", -1)


def test_a_message_with_its_version_before_it_is_read_in_that_version() -> None:
    for version in (0, 3):
        data = encode_prefixed(ConsumerProtocolSubscription(topics=["t"]), version)
        assert data.startswith(version.to_bytes(2, "big"))
        assert decode_prefixed(ConsumerProtocolSubscription, data) == (
            version, ConsumerProtocolSubscription(topics=["t"]))
    assert decode_prefixed(EndTxnMarker, bytes.fromhex("0000 0000002a")) == (0, EndTxnMarker(coordinator_epoch=42))


def test_a_newer_version_than_we_know_is_read_as_far_as_we_know() -> None:
    assert decode_prefixed(EndTxnMarker, bytes.fromhex("0001 0000002a ff")) == (1, EndTxnMarker(coordinator_epoch=42))
    with pytest.raises(ProtocolError, match="ends at byte 6, but 7"):
        decode_prefixed(EndTxnMarker, bytes.fromhex("0000 0000002a ff"))
    with pytest.raises(ProtocolError, match="1 bytes are too short"):
        decode_prefixed(EndTxnMarker, b"\0")
    with pytest.raises(ProtocolError, match="has no version -1"):
        decode_prefixed(EndTxnMarker, b"\xff\xff\0\0\0\0")


def test_long_strings_and_lists_take_longer_varints() -> None:
    names = ["n" * size for size in (0, 126, 127, 128, 20_000)] * 50
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    assert decode(MetadataRequest, encode(request, 12), 12) == request
