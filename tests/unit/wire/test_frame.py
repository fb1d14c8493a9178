"""Frames: length prefixes and headers."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ProtocolError
from headrace.wire.api import API, Api
from headrace.wire.codec import decode_from, encode
from headrace.wire.frame import (
    UnsupportedRequest,
    decode_answer,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    expect_answer,
    peek_correlation_id,
)
from headrace.wire.layout import is_flexible
from headrace.wire.messages.cluster.headers import RequestHeader, ResponseHeader
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataResponse
from headrace.wire.messages.cluster.session import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.producer.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.campaigns.conformance.wire_values import random_message

EVERY_API = [pytest.param(api, id=api.name) for api in API.values()]


@pytest.mark.parametrize("api", EVERY_API)
def test_requests_and_responses_of_every_version_travel_in_frames(api: Api) -> None:
    random = Random(api.key)
    for version in range(api.min_version, api.max_version + 1):
        request = random_message(api.request, version, random)
        frame = b"".join(encode_request(request, version, 77, "me"))
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        read = decode_request(frame[4:])
        client = None if (api.name, version) == ("ControlledShutdown", 0) else "me"
        assert (read.api_key, read.version, read.correlation_id, read.client_id) == (api.key, version, 77, client)
        assert read.request == request
        response = random_message(api.response, version, random)
        frame = b"".join(encode_response(response, version, -5))
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        assert peek_correlation_id(frame[4:]) == -5
        assert decode_response(api.request, version, memoryview(frame)[4:]) == (-5, response)


@pytest.mark.parametrize("api", EVERY_API)
def test_headers_are_the_bytes_of_their_messages(api: Api) -> None:
    for version in range(api.min_version, api.max_version + 1):
        flexible = is_flexible(api.request, version)
        request_version = 0 if (api.key, version) == (7, 0) else 1 + flexible
        for client in ("me", "", None):
            frame = b"".join(encode_request(api.request(), version, 77, client))[4:]
            header = decode_from(RequestHeader, frame, request_version, 0, to_the_end=False)
            named = {"client_id": client} if request_version else {}
            assert header == RequestHeader(
                request_api_key=api.key, request_api_version=version, correlation_id=77, **named)
            assert frame == encode(header, request_version) + encode(api.request(), version)
        frame = b"".join(encode_response(api.response(), version, -5))[4:]
        header_bytes = encode(ResponseHeader(correlation_id=-5), int(flexible and api.name != "ApiVersions"))
        assert frame == header_bytes + encode(api.response(), version)


def test_header_bytes_are_those_that_kafka_expects() -> None:
    parts = encode_request(ApiVersionsRequest(), 0, 1, "ab")
    assert b"".join(parts) == b"\0\0\0\x0c" + b"\0\x12\0\0" + b"\0\0\0\x01" + b"\0\x02ab"
    flexible = b"".join(encode_request(MetadataRequest(topics=None), 12, 1, None))
    assert flexible == b"\0\0\0\x0f" + b"\0\x03\0\x0c" + b"\0\0\0\x01" + b"\xff\xff" + b"\0" + b"\0\x01\0\0"


def test_the_length_prefix_counts_records_too() -> None:
    topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"r" * 5000)])]
    parts = encode_request(ProduceRequest(topic_data=topics), 9, 1, "me")
    assert int.from_bytes(parts[0][:4], "big") == sum(map(len, parts)) - 4
    assert len(parts) == 3


def test_an_answer_to_api_versions_has_the_old_header_in_every_version() -> None:
    frame = b"".join(encode_response(ApiVersionsResponse(error_code=35), 4, 9))
    assert frame[4:10] == b"\0\0\0\x09" + b"\0\x23"


def test_an_unknown_api_or_version_is_told_with_its_header() -> None:
    for key, version in ((999, 0), (18, 99), (0, -1)):
        head = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + b"\0\0\0\x2a" + b"\0\x02me"
        with pytest.raises(UnsupportedRequest) as info:
            decode_request(head + b"anything")
        found = info.value
        assert (found.api_key, found.version, found.correlation_id, found.client_id) == (key, version, 42, "me")


@pytest.mark.parametrize("frame", [
    b"", b"\0\x12", b"\0\x12\0\x03\0\0\0\x01\0\x05ab", b"\0\x12\0\x03\0\0\0\x01\xff\xff",
])
def test_a_broken_request_header_is_a_protocol_error(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_request(frame)


@given(st.binary(max_size=60))
def test_random_frames_give_a_protocol_error_at_worst(frame: bytes) -> None:
    for read in (decode_request, lambda data: decode_response(MetadataRequest, 12, data)):
        try:
            read(frame)
        except ProtocolError:
            pass


def test_tagged_fields_of_a_response_header_are_stepped_over() -> None:
    body = b"".join(encode_response(MetadataResponse(), 12, 3))[9:]
    assert decode_response(MetadataRequest, 12, b"\0\0\0\x03" + b"\x01\x05\x02xy" + body) == (3, MetadataResponse())


def test_an_answer_is_read_only_as_that_of_the_request_that_is_next() -> None:
    frame = b"".join(encode_response(MetadataResponse(cluster_id="c"), 12, 3))[4:]
    assert decode_answer(MetadataRequest, 12, 3, frame).cluster_id == "c"  # type: ignore[attr-defined]
    expect_answer(frame, MetadataRequest, 3)
    text = r"the broker answered request 3 where 4 \(MetadataRequest\) was next"
    with pytest.raises(ProtocolError, match=text):
        decode_answer(MetadataRequest, 12, 4, frame)
    with pytest.raises(ProtocolError, match=text):
        expect_answer(frame, MetadataRequest, 4)


def test_what_is_too_short_for_a_number_answers_nothing() -> None:
    for act in (lambda: decode_answer(MetadataRequest, 12, 0, b"\0\0\0"), lambda: peek_correlation_id(b"\0\0\0")):
        with pytest.raises(ProtocolError, match="a response of 3 bytes is too short for a header"):
            act()
