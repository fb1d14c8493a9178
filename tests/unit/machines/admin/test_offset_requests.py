"""Offsets of groups as values: what is asked survives the wire, each partition has its own error."""

from headrace.errors import KafkaError
from headrace.machines.admin import offset_requests as admin
from headrace.types.records import OFFSET_INVALID, TopicPartition
from headrace.wire.messages.consumer import offsets as wire
from tests.support.travelling import travels

A0, B0 = TopicPartition("a", 0, 5), TopicPartition("b", 0, 6, "note", 3)


def test_all_offsets_or_some_are_asked_for() -> None:
    assert travels(admin.fetch_offsets("g", None, True), 7, 7).topics is None
    request = travels(admin.fetch_offsets("g", [A0, B0], False), 6, 7)
    assert [(t.name, t.partition_indexes) for t in request.topics] == [("a", [0]), ("b", [0])]


def test_a_partition_without_offset_says_so() -> None:
    parts = [wire.OffsetFetchResponsePartition(partition_index=0, committed_offset=5, committed_leader_epoch=2,
                                               metadata="m"),
             wire.OffsetFetchResponsePartition(partition_index=1, committed_offset=-1, metadata=""),
             wire.OffsetFetchResponsePartition(partition_index=2, committed_offset=-1, error_code=29)]
    found = admin.read_fetched(wire.OffsetFetchResponse(topics=[
        wire.OffsetFetchResponseTopic(name="a", partitions=parts)]), "g")
    assert isinstance(found, list)
    assert [(tp.partition, tp.offset, tp.metadata, tp.leader_epoch) for tp in found] == [
        (0, 5, "m", 2), (1, OFFSET_INVALID, None, None), (2, OFFSET_INVALID, None, None)]
    assert found[2].error is not None
    assert found[2].error.str().endswith('this needs DESCRIBE on topic "a"')


def test_a_nul_byte_behind_metadata_is_no_part_of_it() -> None:
    parts = [wire.OffsetFetchResponsePartition(partition_index=index, committed_offset=5, metadata=text)
             for index, text in enumerate(["m\0", "\0", "", "m", None, "m\0\0"])]
    found = admin.read_fetched(wire.OffsetFetchResponse(topics=[
        wire.OffsetFetchResponseTopic(name="a", partitions=parts)]), "g")
    assert isinstance(found, list)
    assert [tp.metadata for tp in found] == ["m", "", None, "m", None, "m\0"]


def test_an_error_of_the_whole_group_is_one_error() -> None:
    found = admin.read_fetched(wire.OffsetFetchResponse(error_code=30), "g")
    assert isinstance(found, KafkaError)
    assert found.str().endswith('this needs DESCRIBE on group "g"')
    refused = admin.read_altered_offsets(_refused(30), "g", [A0, B0])
    assert isinstance(refused, KafkaError)
    assert refused == KafkaError.GROUP_AUTHORIZATION_FAILED


def _refused(code: int) -> wire.OffsetCommitResponse:
    return wire.OffsetCommitResponse(topics=[
        wire.OffsetCommitResponseTopic(name=name, partitions=[
            wire.OffsetCommitResponsePartition(partition_index=0, error_code=code)]) for name in "ab"])


def test_that_a_group_has_members_is_said_of_each_partition() -> None:
    found = admin.read_altered_offsets(_refused(25), "g", [A0, B0])
    assert isinstance(found, list)
    assert [tp.error for tp in found] == [KafkaError.UNKNOWN_MEMBER_ID] * 2
    assert all(tp.error and "the group has members" in tp.error.str() for tp in found)


def test_offsets_are_set_by_nobody_in_particular_and_each_has_its_own_end() -> None:
    request = travels(admin.alter_offsets("g", [A0, B0]), 2, 9)
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
    part = request.topics[1].partitions[0]
    assert (part.committed_offset, part.committed_leader_epoch, part.committed_metadata) == (6, 3, "note")
    reply = wire.OffsetCommitResponse(topics=[
        wire.OffsetCommitResponseTopic(name="a", partitions=[wire.OffsetCommitResponsePartition(partition_index=0)]),
        wire.OffsetCommitResponseTopic(name="b", partitions=[
            wire.OffsetCommitResponsePartition(partition_index=0, error_code=29)])])
    found = admin.read_altered_offsets(reply, "g", [A0, B0])
    assert isinstance(found, list)
    assert [(tp.topic, tp.offset, tp.error) for tp in found] == [
        ("a", 5, None), ("b", 6, KafkaError.TOPIC_AUTHORIZATION_FAILED)]


def test_offsets_are_forgotten() -> None:
    assert travels(admin.delete_offsets("g", [A0]), 0, 0).topics[0].partitions[0].partition_index == 0
    whole = admin.read_deleted_offsets(wire.OffsetDeleteResponse(error_code=30), "g", [A0])
    assert isinstance(whole, KafkaError)
    reply = wire.OffsetDeleteResponse(topics=[wire.OffsetDeleteResponseTopic(name="a", partitions=[
        wire.OffsetDeleteResponsePartition(partition_index=0, error_code=86)])])
    found = admin.read_deleted_offsets(reply, "g", [A0])
    assert isinstance(found, list)
    assert found[0].error == KafkaError.GROUP_SUBSCRIBED_TO_TOPIC
