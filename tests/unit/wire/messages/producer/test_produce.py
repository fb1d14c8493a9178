"""Produce byte by byte, in every version: what is expected here is put together by hand, field after field."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from headrace.wire.codec import decode, encode
from headrace.wire.layout import is_flexible
from headrace.wire.messages.producer.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceLeaderIdAndEpoch,
    ProduceNodeEndpoint,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

VERSIONS = range(14)
TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
RECORDS = b"these are records"
each_version = pytest.mark.parametrize("version", VERSIONS)


def text(value: str | None, flexible: bool) -> bytes:
    """A nullable string; a length below 127 fits one byte of a varint."""
    if value is None:
        return b"\0" if flexible else b"\xff\xff"
    data = value.encode()
    return (bytes([len(data) + 1]) if flexible else struct.pack(">h", len(data))) + data


def blob(value: bytes | None, flexible: bool) -> bytes:
    if value is None:
        return b"\0" if flexible else b"\xff\xff\xff\xff"
    return (bytes([len(value) + 1]) if flexible else struct.pack(">i", len(value))) + value


def count(number: int, flexible: bool) -> bytes:
    return bytes([number + 1]) if flexible else struct.pack(">i", number)


def topic_of(name: str, version: int) -> bytes:
    return TOPIC_ID.bytes if version >= 13 else text(name, version >= 9)


def named(version: int) -> dict[str, Any]:
    """How a topic is named in a version."""
    return {"topic_id": TOPIC_ID} if version >= 13 else {"name": "orders"}


def request_bytes(version: int, acks: int, transactional_id: str | None, records: bytes | None) -> bytes:
    """ProduceRequest by its documentation: transactional id (3+), acks, time-out, topics, partitions, records."""
    flexible = version >= 9
    tags = b"\0" if flexible else b""
    return b"".join([
        text(transactional_id, flexible) if version >= 3 else b"",
        struct.pack(">h", acks),
        struct.pack(">i", 1500),
        count(1, flexible),
        topic_of("orders", version),
        count(2, flexible),
        struct.pack(">i", 7), blob(records, flexible), tags,
        struct.pack(">i", 8), blob(b"", flexible), tags,
        tags,
        tags,
    ])


@each_version
@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("records", [RECORDS, None])
def test_a_request_has_these_fields_in_this_order(version: int, acks: int, records: bytes | None) -> None:
    for transactional_id in (None, "tx") if version >= 3 else (None,):
        request = ProduceRequest(
            transactional_id=transactional_id, acks=acks, timeout_ms=1500, topic_data=[TopicProduceData(
                **named(version), partition_data=[PartitionProduceData(index=7, records=records),
                                                  PartitionProduceData(index=8, records=b"")])])
        expected = request_bytes(version, acks, transactional_id, records)
        assert encode(request, version) == expected
        assert decode(ProduceRequest, expected, version) == request


def response_bytes(version: int) -> bytes:
    """ProduceResponse by its documentation, with every field that the version has set to something of its own."""
    flexible = version >= 9
    tags = b"\0" if flexible else b""
    leader = struct.pack(">ii", 3, 5) + b"\0"
    endpoint = struct.pack(">i", 3) + text("host", True) + struct.pack(">i", 9092) + text(None, True) + b"\0"
    return b"".join([
        count(1, flexible),
        topic_of("orders", version),
        count(1, flexible),
        struct.pack(">ihq", 7, 10, 42),
        struct.pack(">q", 1_700_000_000_000) if version >= 2 else b"",
        struct.pack(">q", 40) if version >= 5 else b"",
        b"".join([count(2, flexible),
                  struct.pack(">i", 0), text("no key", flexible), tags,
                  struct.pack(">i", 4), text(None, flexible), tags,
                  text("two are bad", flexible)]) if version >= 8 else b"",
        b"\1\0" + bytes([len(leader)]) + leader if version >= 10 else tags,
        tags,
        struct.pack(">i", 250) if version >= 1 else b"",
        b"\1\0" + bytes([len(endpoint) + 1]) + b"\2" + endpoint if version >= 10 else tags,
    ])


def response(version: int) -> ProduceResponse:
    part = PartitionProduceResponse(index=7, error_code=10, base_offset=42)
    reply = ProduceResponse(responses=[TopicProduceResponse(**named(version), partition_responses=[part])])
    if version >= 1:
        reply.throttle_time_ms = 250
    if version >= 2:
        part.log_append_time_ms = 1_700_000_000_000
    if version >= 5:
        part.log_start_offset = 40
    if version >= 8:
        part.record_errors = [BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="no key"),
                              BatchIndexAndErrorMessage(batch_index=4, batch_index_error_message=None)]
        part.error_message = "two are bad"
    if version >= 10:
        part.current_leader = ProduceLeaderIdAndEpoch(leader_id=3, leader_epoch=5)
        reply.node_endpoints = [ProduceNodeEndpoint(node_id=3, host="host", port=9092)]
    return reply


@each_version
def test_a_response_has_these_fields_in_this_order(version: int) -> None:
    assert encode(response(version), version) == response_bytes(version)
    assert decode(ProduceResponse, response_bytes(version), version) == response(version)


@each_version
def test_what_a_version_does_not_tell_has_kafkas_default(version: int) -> None:
    reply = decode(ProduceResponse, response_bytes(version), version)
    (part,) = reply.responses[0].partition_responses
    unknown = {
        "log_append_time_ms": (2, -1), "log_start_offset": (5, -1), "record_errors": (8, []),
        "error_message": (8, None), "current_leader": (10, ProduceLeaderIdAndEpoch(leader_id=-1, leader_epoch=-1))}
    for name, (since, default) in unknown.items():
        if version < since:
            assert getattr(part, name) == default
        else:
            assert getattr(part, name) != default
    assert (reply.throttle_time_ms == 0) == (version < 1)


def test_the_key_is_0_and_lengths_are_compact_from_version_9_on() -> None:
    assert (ProduceRequest.api_key, ProduceRequest.min_version, ProduceRequest.max_version) == (0, 0, 13)
    assert [is_flexible(ProduceRequest, version) for version in VERSIONS] == [version >= 9 for version in VERSIONS]
