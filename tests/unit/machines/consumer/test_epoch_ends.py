"""Where terms of leaders ended: the request for one leader, and what its reply says."""

from headrace.errors import KafkaError
from headrace.machines.consumer.epoch_ends import ask_epoch_ends, read_epoch_ends
from headrace.types.records import TopicPartition
from headrace.wire.messages.consumer.fetch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_partitions_are_asked_about_by_topic() -> None:
    request = ask_epoch_ends({A0: 3, B0: 1, A1: 4})
    assert request.replica_id == -1
    assert [(topic.topic, [(p.partition, p.leader_epoch) for p in topic.partitions]) for topic in request.topics] == [
        ("a", [(0, 3), (1, 4)]), ("b", [(0, 1)])]


def test_a_reply_has_an_end_or_an_error_for_each_partition() -> None:
    reply = OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic="a", partitions=[
        EpochEndOffset(error_code=0, partition=0, leader_epoch=3, end_offset=17),
        EpochEndOffset(error_code=int(KafkaError.NOT_LEADER_FOR_PARTITION), partition=1)])])
    found = read_epoch_ends(reply)
    assert found[A0] == 17
    error = found[A1]
    assert isinstance(error, KafkaError)
    assert error == KafkaError.NOT_LEADER_FOR_PARTITION
    assert "a[1]" in error.str()
