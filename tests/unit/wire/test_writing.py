"""Encoders that are generated: what they write in place, and what a version cannot carry."""

from __future__ import annotations

import pytest

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.wire.codec import decode, encode, encode_parts
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.cluster.session import ApiVersionsResponse, FinalizedFeatureKey
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.producer.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.writing import encoder_source


def test_records_are_sent_as_they_are_without_a_copy() -> None:
    first, second = b"a" * 1000, bytearray(b"b" * 2000)
    partitions = [PartitionProduceData(index=0, records=first), PartitionProduceData(index=1, records=second)]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=partitions)])
    for version in (3, 12):
        parts = encode_parts(request, version)
        views = [part for part in parts if isinstance(part, memoryview) and part.obj in (first, second)]
        assert [view.obj is source for view, source in zip(views, (first, second), strict=True)] == [True, True]
        assert b"".join(parts) == encode(request, version)


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


def test_a_version_without_tagged_fields_refuses_unknown_ones() -> None:
    with pytest.raises(KafkaException, match="unknown_tags is set, which only versions with tagged fields carry"):
        encode(MetadataRequest(unknown_tags={7: b"a"}), 8)
    assert encode(MetadataRequest(unknown_tags={}), 8) == encode(MetadataRequest(), 8)


@pytest.mark.parametrize("tag", [1, -1, 2**31])
def test_an_unknown_tagged_field_cannot_have_the_number_of_a_known_one_or_none_at_all(tag: int) -> None:
    with pytest.raises(ProtocolError, match=f"{tag} cannot be the number of an unknown tagged field"):
        encode(ApiVersionsResponse(unknown_tags={tag: b""}), 3)


def test_a_value_that_does_not_fit_its_field_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="ProduceRequest v3 cannot be written"):
        encode(ProduceRequest(acks=40_000), 3)
    with pytest.raises(ProtocolError, match="MetadataRequest v1 cannot be written"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 40_000)]), 1)
    with pytest.raises(ProtocolError, match="cannot be written"):
        encode(HeartbeatRequest(group_id=7), 0)  # type: ignore[arg-type]


def test_null_is_written_only_where_the_version_has_a_place_for_it() -> None:
    assert encode(MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"
    assert encode(MetadataRequest(topics=None), 9) == b"\0" + b"\1\0\0" + b"\0"
    with pytest.raises(ProtocolError, match="topics must not be None"):
        encode(MetadataRequest(topics=None), 0)


def test_a_tagged_field_is_written_only_when_it_differs_from_its_default() -> None:
    plain = encode(ApiVersionsResponse(), 3)
    assert encode(ApiVersionsResponse(finalized_features_epoch=-1, zk_migration_ready=False), 3) == plain
    assert encode(ApiVersionsResponse(zk_migration_ready=True), 3) == plain[:-1] + b"\x01" + b"\x03\x01\x01"


def test_an_encoder_appends_and_leaves_records_out_but_says_where_they_belong() -> None:
    source, names = encoder_source(ProduceRequest, 3)
    exec(source, names)
    topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=1, records=b"some records"),
                                                         PartitionProduceData(index=2, records=b"")])]
    request = ProduceRequest(topic_data=topics)
    out, cuts = bytearray(b"before"), []
    names["write"](request, out, cuts)
    (position, records), = cuts
    assert records == b"some records"
    assert b"before" + encode(request, 3) == out[:position] + records + out[position:]


@pytest.mark.parametrize("request_", [
    MetadataRequest(topics=[], unknown_tags={7: b"x"}),
    MetadataRequest(topics=[MetadataRequestTopic(name="t", unknown_tags={7: b"x"})])], ids=["message", "within"])
def test_tagged_fields_are_not_lost_in_versions_without_them(request_: MetadataRequest) -> None:
    assert b"x" in encode(request_, 9)
    with pytest.raises(KafkaException, match="tagged fields") as error:
        encode(request_, 8)
    assert error.value.args[0].code() == KafkaError._UNSUPPORTED_FEATURE
