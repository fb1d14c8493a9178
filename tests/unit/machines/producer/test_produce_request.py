"""Batches for one broker become one request: grouped by topic, in the order in which they were given."""

from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.machines.producer.batch_queue import PartitionQueue
from headrace.machines.producer.produce_request import produce_request
from headrace.wire.frame import decode_request, encode_request

NO_ID, SOME_ID = UUID(int=0), UUID(int=5)
LAST_WITH_NAMES = 12
ANY = 32_767


def batch(topic="t", partition=0, data=b"", topic_id=SOME_ID):
    queue = PartitionQueue(topic, partition)
    queue.partition_sequence.topic_id = topic_id
    return SimpleNamespace(queue=queue, sealed=SimpleNamespace(data=data))


def transactions(highest):
    return SimpleNamespace(transactional_id="x", max_produce_version=highest)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), unique=True, min_size=1))
def test_every_batch_is_there_once_under_its_topic_and_in_order(places):
    batches = [batch(topic, partition, b"%s %d" % (topic.encode(), partition)) for topic, partition in places]
    request, _ = produce_request(batches, -1, 30.0, None)
    assert [topic.name for topic in request.topic_data] == list(dict.fromkeys(topic for topic, _ in places))
    for topic in request.topic_data:
        wanted = [partition for name, partition in places if name == topic.name]
        assert [(part.index, part.records) for part in topic.partition_data] == [
            (partition, b"%s %d" % (topic.name.encode(), partition)) for partition in wanted]


def test_the_bytes_of_a_batch_are_not_copied():
    data = memoryview(bytearray(b"a batch"))
    request, _ = produce_request([batch(data=data)], -1, 30.0, None)
    assert request.topic_data[0].partition_data[0].records is data


def test_settings_and_identity_are_said():
    plain, _ = produce_request([batch()], 1, 2.5, None)
    assert (plain.acks, plain.timeout_ms, plain.transactional_id) == (1, 2500, None)
    numbered, _ = produce_request([batch()], -1, 30.0, transactions(ANY))
    assert (numbered.acks, numbered.timeout_ms, numbered.transactional_id) == (-1, 30_000, "x")


@pytest.mark.parametrize(("ids", "of_transactions", "highest"), [
    ((5, 6), None, ANY),
    ((5, 0), None, LAST_WITH_NAMES),
    ((0, 5), None, LAST_WITH_NAMES),
    ((5, 6), 11, 11),
    ((0, 0), 11, 11),
    ((0, 6), ANY, LAST_WITH_NAMES),
])
def test_the_highest_version_is_the_lowest_that_a_topic_or_the_transaction_allows(ids, of_transactions, highest):
    batches = [batch(f"t{number}", topic_id=UUID(int=number)) for number in ids]
    given_ = None if of_transactions is None else transactions(of_transactions)
    assert produce_request(batches, -1, 30.0, given_)[1] == highest


@pytest.mark.parametrize(("version", "topic_id"), [(LAST_WITH_NAMES, NO_ID), (13, SOME_ID)])
def test_a_topic_is_found_by_its_name_or_its_id_behind_the_wire(version, topic_id):
    request, highest = produce_request([batch("t", 3, b"bytes", topic_id)], -1, 30.0, None)
    assert version <= highest
    read = decode_request(b"".join(encode_request(request, version, 0, "me"))[4:]).request
    [topic] = read.topic_data
    assert (topic.name, topic.topic_id) == (("t", NO_ID) if version < 13 else ("", topic_id))
    assert (topic.partition_data[0].index, bytes(topic.partition_data[0].records)) == (3, b"bytes")
