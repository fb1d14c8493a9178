"""What brokers older than the batch format take, and what they cannot: message sets made of batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import KafkaError, KafkaException
from headrace.machines.producer.message_sets import NO_HEADERS, places_with_headers, produce_for_version
from headrace.records import GZIP, LZ4, NONE, SNAPPY, ZSTD, BatchBuilder, Cursor, scan
from headrace.wire.messages.producer.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def request_of(codec=NONE, headers=(), producer_id=-1):
    builder = BatchBuilder(1 << 20, 10)
    builder.append(1_700_000_000_000, b"k", b"v")
    builder.append(1_700_000_000_001, None, b"w", headers)
    batch = builder.seal(codec)
    if producer_id >= 0:
        batch.stamp(producer_id, 0, 0)
    return ProduceRequest(acks=1, timeout_ms=5, topic_data=[TopicProduceData(name="t", partition_data=[
        PartitionProduceData(index=3, records=batch.data)])])


def magic_of(request):
    return {info.magic for info in scan(bytes(request.topic_data[0].partition_data[0].records))}


def test_a_request_is_not_touched_where_the_broker_knows_batches():
    for version, request in ((3, request_of(GZIP, [(b"h", b"x")], 7)), (7, request_of(ZSTD)), (13, request_of())):
        assert produce_for_version(request, version) is request


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1)])
def test_a_request_of_an_old_version_carries_message_sets(version, magic):
    request = request_of(GZIP)
    made = produce_for_version(request, version)
    assert magic_of(made) == {magic}
    assert (made.acks, made.timeout_ms, made.topic_data[0].name) == (1, 5, "t")
    assert made.topic_data[0].partition_data[0].index == 3
    assert magic_of(request) == {2}


@pytest.mark.parametrize(("version", "request_", "code"), [
    (6, request_of(ZSTD), KafkaError.UNSUPPORTED_COMPRESSION_TYPE),
    (2, request_of(ZSTD), KafkaError.UNSUPPORTED_COMPRESSION_TYPE),
    (2, request_of(headers=[(b"h", b"x")]), KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    (2, request_of(producer_id=7), KafkaError._UNSUPPORTED_FEATURE),
])
def test_what_an_old_broker_cannot_store_is_an_error(version, request_, code):
    with pytest.raises(KafkaException) as caught:
        produce_for_version(request_, version)
    assert caught.value.error == code


def test_records_with_headers_are_found_by_their_places():
    data = request_of(headers=[(b"h", None)]).topic_data[0].partition_data[0].records
    assert places_with_headers(data) == [1]


FIRST_MS = 1_700_000_000_000
BYTES = st.none() | st.binary(max_size=30)
RECORDS = st.lists(st.tuples(st.integers(0, 10_000), BYTES, BYTES), min_size=1, max_size=20)


def batch_of(records, codec=NONE):
    builder = BatchBuilder(1 << 20, 1000)
    for wait_ms, key, value, *headers in records:
        builder.append(FIRST_MS + wait_ms, key, value, *headers)
    return builder.seal(codec).data


def asked_for(*batches):
    """A request for partitions 0, 1, ... of one topic."""
    return ProduceRequest(acks=-1, timeout_ms=9, topic_data=[TopicProduceData(name="t", partition_data=[
        PartitionProduceData(index=index, records=data) for index, data in enumerate(batches)])])


def read(data):
    return [(found.timestamp()[1], found.key(), found.value()) for found in Cursor(bytes(data), "t", 0, 0).take(1000)]


@given(st.lists(RECORDS, min_size=1, max_size=3), st.sampled_from([NONE, GZIP, SNAPPY, LZ4]),
       st.integers(0, 2))
def test_every_record_of_every_partition_is_in_the_message_set_in_order(partitions, codec, version):
    made = produce_for_version(asked_for(*(batch_of(records, codec) for records in partitions)), version)
    parts = made.topic_data[0].partition_data
    assert [part.index for part in parts] == list(range(len(partitions)))
    for part, records in zip(parts, partitions, strict=True):
        found = read(part.records)
        assert [pair for _, *pair in found] == [[key, value] for _, key, value in records]
        if version == 2:
            assert [at for at, *_ in found] == [FIRST_MS + wait_ms for wait_ms, _, _ in records]


@given(st.lists(st.booleans(), min_size=1, max_size=1200))
def test_exactly_the_places_of_the_records_with_headers_are_found(with_headers):
    data = batch_of([(0, None, b"v", [(b"h", b"x")] if has else []) for has in with_headers])
    assert places_with_headers(data) == [place for place, has in enumerate(with_headers) if has]


def test_one_partition_that_cannot_be_converted_fails_the_request_and_is_named_with_the_remedy():
    fine, with_headers = batch_of([(0, None, b"v")]), batch_of([(0, None, b"v", [(b"h", b"x")])])
    for place, version in ((0, 0), (1, 1), (1, 2)):
        batches = [fine, fine]
        batches[place] = with_headers
        with pytest.raises(KafkaException) as caught:
            produce_for_version(asked_for(*batches), version)
        assert caught.value.error.str() == f"t: {NO_HEADERS}"


@pytest.mark.parametrize(("request_", "remedy"), [
    (request_of(ZSTD), "set compression.type to lz4"),
    (request_of(producer_id=7), "set enable.idempotence to false"),
])
def test_what_cannot_be_said_in_an_old_version_says_what_to_set(request_, remedy):
    with pytest.raises(KafkaException, match=f"t: .*{remedy}"):
        produce_for_version(request_, 0)
