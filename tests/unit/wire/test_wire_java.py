"""Byte for byte as Java: every message and version through the codecs inside Kafka's own client, both ways.

`python -m tests.campaigns.conformance bytes --cases 200 --jobs 2` does the same with more values.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.errors import ProtocolError
from headrace.wire.codec import decode, encode
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.cluster.session import ApiVersionsResponse
from headrace.wire.messages.producer.produce import ProduceRequest
from tests.campaigns.conformance.__main__ import Pair, compare_errors, exchange, pairs_of
from tests.campaigns.conformance.java_codecs import JavaCodecs, differences, parse
from tests.campaigns.conformance.kafka_schemas import JARS
from tests.campaigns.conformance.wire_values import case

pytestmark = pytest.mark.kafka

_EXTREMES = 5


@pytest.fixture(scope="module")
def java() -> Iterator[JavaCodecs]:
    with JavaCodecs(JARS[0]) as codecs:
        yield codecs


@pytest.mark.parametrize("jar", JARS)
def test_java_reads_what_we_write_and_we_read_what_java_writes(jar: str) -> None:
    pairs = pairs_of(jar)
    work = [(pair, number) for i, pair in enumerate(pairs) for number in (i % _EXTREMES, _EXTREMES + i)]
    found = exchange(jar, work, 1)
    assert found.differences == []
    assert len(pairs) >= 620
    assert found.cases == 4 * len(pairs)


@pytest.mark.parametrize("jar", JARS)
def test_error_codes_are_those_of_java(jar: str) -> None:
    count, found = compare_errors(jar)
    assert found == []
    assert count >= 129


def test_a_wrong_byte_and_a_wrong_value_are_noticed(java: JavaCodecs) -> None:
    message = case(ProduceRequest, 9, 5, 1)
    data = encode(message, 9)
    (answer,) = java.ask([f"ECHO ProduceRequest 9 {data.hex()}"])
    written, read = parse(answer)
    assert written == data
    assert differences(message, read, 9, JARS[0]) == []
    message.acks ^= 1
    assert len(differences(message, read, 9, JARS[0])) == 1
    (answer,) = java.ask([f"ECHO ProduceRequest 9 {data.hex()}00"])
    with pytest.raises(ValueError, match="1 bytes are left over"):
        parse(answer)
    assert exchange(JARS[0], [(Pair(ProduceRequest, 9, "FetchRequest"), 0)], 1).differences


def test_java_takes_tagged_fields_in_any_order_and_more_than_once_but_does_not_write_them_so(java: JavaCodecs) -> None:
    start = encode(ApiVersionsResponse(), 3)[:-1]
    epoch, migrating, unknown = b"\x01\x08" + bytes(7) + b"\x05", b"\x03\x01\x01", b"\x09\x02hi"
    for tags in ([migrating, epoch], [unknown, epoch, migrating], [b"\x03\x01\x00", migrating, epoch]):
        data = start + bytes([len(tags)]) + b"".join(tags)
        ours = decode(ApiVersionsResponse, data, 3)
        assert (ours.finalized_features_epoch, ours.zk_migration_ready) == (5, True)
        (answer,) = java.ask([f"ECHO ApiVersionsResponse 3 {data.hex()}"])
        written, _ = parse(answer)
        assert written == encode(ours, 3)
    for tags, text in (([unknown, unknown], "not higher"), ([unknown, b"\x08\x00"], "not higher")):
        data = start + bytes([len(tags)]) + b"".join(tags)
        (answer,) = java.ask([f"ECHO ApiVersionsResponse 3 {data.hex()}"])
        assert text in answer
        assert (decode(ApiVersionsResponse, data, 3).unknown_tags or {})[9] == b"hi"


def test_java_too_has_no_strings_above_32767_bytes(java: JavaCodecs) -> None:
    longest = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32_767)])
    data = encode(longest, 12)
    (answer,) = java.ask([f"ECHO MetadataRequest 12 {data.hex()}"])
    assert parse(answer)[0] == data
    longer = data.replace(b"\x80\x80\x02x", b"\x81\x80\x02xx")
    assert len(longer) == len(data) + 1
    (answer,) = java.ask([f"ECHO MetadataRequest 12 {longer.hex()}"])
    assert "invalid length 32768" in answer
    with pytest.raises(ProtocolError, match="a string before byte"):
        decode(MetadataRequest, longer, 12)
    longest.topics[0].name += "x"  # type: ignore[index,operator]
    with pytest.raises(ProtocolError, match="a string takes at most 32767 bytes, not 32768"):
        encode(longest, 12)
