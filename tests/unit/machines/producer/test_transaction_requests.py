"""The requests of a transaction say who asks, and everything that was given, once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.machines.producer.transaction_requests import (
    LAST_VERSIONS,
    ConsumerGroupMetadata,
    TransactionalIdentity,
    for_version,
    offset_keys,
)
from headrace.types.records import TopicPartition
from headrace.wire.frame import decode_request, encode_request
from headrace.wire.messages.producer.transactions import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

KEYS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), unique=True)
MEMBER = ConsumerGroupMetadata("g", 5, "member", "instance")


def identity():
    return TransactionalIdentity("x", 7, 3)


def over_the_wire(request, version):
    return decode_request(b"".join(encode_request(request, version, 0, "me"))[4:]).request


def test_who_has_no_numbers_yet_asks_for_the_first_ones_and_others_go_on_from_theirs():
    for asking, numbers in ((TransactionalIdentity("x"), (-1, -1)), (identity(), (7, 3))):
        request = asking.initialise(60_000)
        assert (request.transactional_id, request.transaction_timeout_ms) == ("x", 60_000)
        assert (request.producer_id, request.producer_epoch) == numbers


@pytest.mark.parametrize("request_", [
    identity().add_offsets("g"), identity().commit_offsets(MEMBER, []), identity().end(commit=True),
], ids=lambda request: type(request).__name__)
def test_every_request_says_who_asks(request_):
    assert (request_.transactional_id, request_.producer_id, request_.producer_epoch) == ("x", 7, 3)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("made", [
    identity().add_partitions([("t", 0)]), identity().end(commit=False),
    identity().commit_offsets(MEMBER, [TopicPartition("t", 0, 1)]),
], ids=lambda request: type(request).__name__)
def test_a_request_can_be_written_in_the_last_version_that_it_may_have(made, version):
    read = over_the_wire(made, LAST_VERSIONS[type(made)][version - 1])
    if isinstance(read, AddPartitionsToTxnRequest):
        assert (read.v3_and_below_transactional_id, read.v3_and_below_producer_id, read.v3_and_below_producer_epoch
                ) == ("x", 7, 3)
    elif isinstance(read, EndTxnRequest):
        assert (read.transactional_id, read.producer_id, read.producer_epoch, read.committed) == ("x", 7, 3, False)
    else:
        assert isinstance(read, TxnOffsetCommitRequest)
        assert offset_keys(read) == {("g", "t", 0)}


@given(KEYS)
def test_every_partition_is_added_once_under_its_topic(keys):
    request = identity().add_partitions(keys)
    assert [topic.name for topic in request.v3_and_below_topics] == list(dict.fromkeys(topic for topic, _ in keys))
    assert sorted((topic.name, partition) for topic in request.v3_and_below_topics
                  for partition in topic.partitions) == sorted(keys)


@given(KEYS)
def test_every_offset_is_committed_once_and_its_key_is_found_again(keys):
    offsets = [TopicPartition(topic, partition, 100 + partition) for topic, partition in keys]
    request = identity().commit_offsets(MEMBER, offsets)
    assert sorted((topic.name, part.partition_index, part.committed_offset) for topic in request.topics
                  for part in topic.partitions) == sorted((tp.topic, tp.partition, tp.offset) for tp in offsets)
    assert offset_keys(request) == {("g", topic, partition) for topic, partition in keys}
    assert len({topic.name for topic in request.topics}) == len(request.topics)


def test_offsets_are_those_of_a_member_of_a_group_with_metadata_and_epoch_where_they_are_known():
    request = identity().commit_offsets(MEMBER, [
        TopicPartition("t", 0, 9, "note", 4), TopicPartition("t", 1, 8)])
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id, request.group_instance_id) == (
        "g", 5, "member", "instance")
    assert [(part.committed_metadata, part.committed_leader_epoch) for part in request.topics[0].partitions] == [
        ("note", 4), ("", -1)]


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_with_a_commit_or_an_abort(commit):
    assert identity().end(commit=commit).committed is commit


def test_who_is_in_no_group_of_this_generation_has_the_values_that_kafka_takes_for_none():
    alone = ConsumerGroupMetadata("g")
    assert (alone.generation, alone.member_id, alone.instance_id) == (-1, "", None)


@pytest.mark.parametrize("version", range(7))
def test_who_commits_offsets_is_told_to_brokers_that_check_it(version):
    request = identity().commit_offsets(MEMBER, [TopicPartition("t", 0, 9, "note", 4)])
    written = for_version(request, version)
    assert (written.generation_id_or_member_epoch, written.member_id, written.group_instance_id) == (
        (5, "member", "instance") if version >= 3 else (-1, "", None))
    assert (written.transactional_id, written.group_id, written.producer_id, written.producer_epoch) == ("x", "g", 7, 3)
    assert written.topics == request.topics
    encode_request(written, version, 0, "me")


def test_requests_of_one_form_stay_as_they_are():
    request = identity().end(commit=True)
    assert for_version(request, 0) is request
