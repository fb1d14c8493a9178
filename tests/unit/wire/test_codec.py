"""Messages to bytes and back, in every version; and what hostile bytes can do, which is nothing."""

from __future__ import annotations

import copy
import pickle
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ProtocolError
from headrace.wire.codec import decode, decode_prefixed, encode, encode_prefixed
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.controllers.control import EndTxnMarker
from headrace.wire.messages.groups.classic_groups import (
    ConsumerProtocolSubscription,
)
from headrace.wire.messages.producer.produce import (
    ProduceRequest,
    ProduceResponse,
)
from headrace.wire.schema import ApiMessage
from tests.campaigns.conformance.wire_values import all_versions, random_message

EVERY_VERSION = all_versions()
IDS = [f"{cls.__name__}-v{version}" for cls, version in EVERY_VERSION]
QUICK = settings(max_examples=300)

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


@settings(max_examples=1000)
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


def test_null_where_a_version_does_not_allow_it_is_refused_both_ways() -> None:
    with pytest.raises(ProtocolError, match="topics must not be None in this version"):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(ProtocolError, match="topics is null, which this version does not allow"):
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)
    assert decode(MetadataRequest, encode(MetadataRequest(topics=None), 1), 1).topics is None


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
