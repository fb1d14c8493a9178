"""Requests about the offsets of consumer groups, and what their replies mean: pure functions.

Read next: `client.admin.offset_calls`, which sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.errors import KafkaError
from headrace.machines.admin.admin_results import failure, key_of, numbers_by_topic
from headrace.types.records import OFFSET_INVALID, TopicPartition, metadata_of
from headrace.wire.messages.consumer import offsets as wire

__all__ = [
    "LAST_COMMIT_BY_NAME",
    "LAST_FETCH_OF_ONE",
    "alter_offsets",
    "delete_offsets",
    "fetch_offsets",
    "read_altered_offsets",
    "read_deleted_offsets",
    "read_fetched",
]

LAST_FETCH_OF_ONE = 7
"""The last version of OffsetFetch in the form for one group."""
LAST_COMMIT_BY_NAME = 9
"""The last version of OffsetCommit that has topics by name."""
_NOTES = {KafkaError.UNKNOWN_MEMBER_ID: "the group has members, who commit for themselves: stop them first"}


def fetch_offsets(
    group_id: str, partitions: Sequence[TopicPartition] | None, require_stable: bool
) -> wire.OffsetFetchRequest:
    """Ask for a group's offsets; without partitions, for all that it has."""
    topics = None if partitions is None else [
        wire.OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
        for topic, numbers in numbers_by_topic(partitions).items()]
    return wire.OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=require_stable)


def read_fetched(
    reply: wire.OffsetFetchResponse, group_id: str, partitions: Sequence[TopicPartition] | None = None
) -> list[TopicPartition] | KafkaError:
    """The offsets, each with its own error; -1001 where there is none. In the order in which they were asked for."""
    error = _ended(group_id, reply.error_code, "DESCRIBE")
    if error is not None:
        return error
    places = {tp: place for place, tp in enumerate(partitions or ())}
    found = [_committed(topic.name, part) for topic in reply.topics for part in topic.partitions]
    return sorted(found, key=lambda tp: places.get(tp, len(places)))


def _committed(topic: str, part: wire.OffsetFetchResponsePartition) -> TopicPartition:
    offset = part.committed_offset if part.committed_offset >= 0 else OFFSET_INVALID
    epoch = part.committed_leader_epoch if part.committed_leader_epoch >= 0 else None
    found = TopicPartition(topic, part.partition_index, offset, metadata_of(part.metadata), epoch)
    found.error = failure(key_of(found), part.error_code, None, f'DESCRIBE on topic "{topic}"')
    return found


def alter_offsets(group_id: str, partitions: Iterable[TopicPartition]) -> wire.OffsetCommitRequest:
    """Ask to set a group's offsets, as somebody who is no member: it must have none."""
    topics: dict[str, list[wire.OffsetCommitRequestPartition]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(wire.OffsetCommitRequestPartition(
            partition_index=tp.partition, committed_offset=tp.offset,
            committed_leader_epoch=-1 if tp.leader_epoch is None else tp.leader_epoch,
            committed_metadata=tp.metadata or ""))
    return wire.OffsetCommitRequest(group_id=group_id, topics=[
        wire.OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()])


def read_altered_offsets(
    reply: wire.OffsetCommitResponse, group_id: str, partitions: Iterable[TopicPartition]
) -> list[TopicPartition] | KafkaError:
    """The partitions as they were given, each with its own error; one error if that is what all have."""
    codes = {TopicPartition(topic.name, part.partition_index): part.error_code
             for topic in reply.topics for part in topic.partitions}
    return _each(codes, group_id, partitions)


def delete_offsets(group_id: str, partitions: Iterable[TopicPartition]) -> wire.OffsetDeleteRequest:
    """Ask to forget a group's offsets of partitions."""
    return wire.OffsetDeleteRequest(group_id=group_id, topics=[
        wire.OffsetDeleteRequestTopic(name=topic, partitions=[
            wire.OffsetDeleteRequestPartition(partition_index=number) for number in numbers])
        for topic, numbers in numbers_by_topic(partitions).items()])


def read_deleted_offsets(
    reply: wire.OffsetDeleteResponse, group_id: str, partitions: Iterable[TopicPartition]
) -> list[TopicPartition] | KafkaError:
    """The partitions, each with its own error; or the error of the group."""
    error = _ended(group_id, reply.error_code, "DELETE")
    if error is not None:
        return error
    codes = {TopicPartition(topic.name, part.partition_index): part.error_code
             for topic in reply.topics for part in topic.partitions}
    return _each(codes, group_id, partitions)


def _each(
    codes: dict[TopicPartition, int], group_id: str, partitions: Iterable[TopicPartition]
) -> list[TopicPartition] | KafkaError:
    """Brokers say what is wrong with a group of each partition: then it is the group's error."""
    different = set(codes.values())
    whole = next(iter(different)) if len(different) == 1 else 0
    if whole in (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.NOT_COORDINATOR,
                 KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
                 KafkaError.INVALID_GROUP_ID, KafkaError.GROUP_ID_NOT_FOUND):
        error = _ended(group_id, whole, "READ")
        assert error is not None
        return error
    return [_with_error(tp, codes.get(tp, KafkaError._FAIL)) for tp in partitions]


def _with_error(given: TopicPartition, code: int) -> TopicPartition:
    made = TopicPartition(given.topic, given.partition, given.offset, given.metadata, given.leader_epoch)
    made.error = failure(key_of(made), code, _NOTES.get(code), f'READ on topic "{made.topic}"')
    return made


def _ended(group_id: str, code: int, operation: str) -> KafkaError | None:
    return failure(f'group "{group_id}"', code, None, f'{operation} on group "{group_id}"')
