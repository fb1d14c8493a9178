"""The table of produce errors, and what the machines beside it make of single answers."""

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.producer.error_actions import ERROR_ACTIONS, ErrorAction, error_action, forgotten
from headrace.machines.producer.message_sets import places_with_headers, produce_for_version
from headrace.records import GZIP, NONE, ZSTD, BatchBuilder, scan
from headrace.wire.messages.producer.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)


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


def test_a_code_that_is_not_listed_is_sent_again_only_where_the_table_of_codes_calls_it_retriable():
    unlisted = [code for code in range(1, 130) if code not in ERROR_ACTIONS]
    assert {error_action(code) for code in unlisted} == {ErrorAction.RETRY, ErrorAction.FAIL}
    assert all((error_action(code) is ErrorAction.RETRY) is KafkaError(code).retriable() for code in unlisted)


@pytest.mark.parametrize(("code", "log_start_offset", "last_offset", "told"), [
    (KafkaError.UNKNOWN_PRODUCER_ID, 10, 9, True),
    (KafkaError.UNKNOWN_PRODUCER_ID, 0, -1, True),
    (KafkaError.UNKNOWN_PRODUCER_ID, 9, 9, False),
    (KafkaError.UNKNOWN_PRODUCER_ID, -1, -1, False),
    (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, 10, 9, False),
])
def test_nothing_is_lost_with_a_forgotten_producer_if_the_log_begins_behind_what_was_acknowledged(
    code, log_start_offset, last_offset, told
):
    answer = PartitionProduceResponse(index=0, error_code=code, log_start_offset=log_start_offset)
    assert forgotten(answer, last_offset) is told


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
