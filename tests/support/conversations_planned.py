"""What members of groups ask that the coordinator plans for (KIP-848): for `test_broker_answers_as_kafka_does`.

Patterns are left out: Kafka matches them in the background, and the embedded broker at once.
"""

import time
from typing import Any

from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.groups.classic_groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    ListGroupsRequest,
    MemberIdentity,
)
from headrace.wire.messages.groups.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    OwnedTopicPartitions,
)
from headrace.wire.schema import ZERO_UUID, Request
from tests.support.conversations_groups import LeaveGroupRequest, lone_member
from tests.support.talk import Conversation, Talk, only


def beat(talk: Talk, member: str, epoch: int, *owned: int, topic: str | None = None,
         **more: Any) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat; with numbers of partitions, or a topic, it says what the member holds."""
    if owned or topic:
        more["topic_partitions"] = [OwnedTopicPartitions(topic_id=talk.id_of(topic or talk.name),
                                                         partitions=list(owned))] if owned else []
    return ConsumerGroupHeartbeatRequest(group_id=talk.name, member_id=member, member_epoch=epoch, **more)


def join(talk: Talk, member: str, **more: Any) -> ConsumerGroupHeartbeatRequest:
    wanted = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [talk.name], "topic_partitions": [], **more}
    return beat(talk, member, 0, **wanted)


def describe(talk: Talk, version: int = 1) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=[talk.name], include_authorized_operations=True)
    talk.note(talk.call(request, version), version)


def commit(talk: Talk, member: str, epoch: int, *partitions: int, instance: str | None = None) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=talk.name, generation_id_or_member_epoch=epoch, member_id=member, group_instance_id=instance, topics=[
            OffsetCommitRequestTopic(name=talk.name, topic_id=talk.id_of(talk.name), partitions=[
                OffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata="")
                for index in partitions])])


def fetch(talk: Talk, member: str | None, epoch: int) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(
        group_id=talk.name, member_id=member, member_epoch=epoch, topics=[OffsetFetchRequestTopics(
            name=talk.name, topic_id=talk.id_of(talk.name), partition_indexes=[0])])])


def topic(talk: Talk, suffix: str = "", *, partitions: int = 1) -> str:
    """Make a topic, and wait until the group's coordinator knows of it."""
    name = talk.topic(suffix, partitions)
    request = join(talk, "first", subscribed_topic_names=[name])
    request.group_id = f"{talk.name}-first"
    while True:
        reply = talk.call(request, 1)
        if reply.assignment is not None and reply.assignment.topic_partitions:
            return name
        time.sleep(0.01)


def alone(talk: Talk, partitions: int = 4) -> None:
    """A group with member "a" that has all partitions of the topic, in epoch 2."""
    topic(talk, partitions=partitions)
    assert talk.call(join(talk, "a"), 1).member_epoch == 2
    assert talk.call(beat(talk, "a", 2, *range(partitions)), 1).error_code == 0


@only("4")
def join_stay_and_leave(talk: Talk) -> None:
    topic(talk, partitions=4)
    talk.ask(join(talk, "a"))
    talk.ask(join(talk, "a"))
    talk.ask(beat(talk, "a", 2, 0, 1, 2, 3))
    talk.ask(beat(talk, "a", 2))
    talk.ask(beat(talk, "a", 2, 0, 1, rebalance_timeout_ms=1000, subscribed_topic_names=[talk.name]))
    talk.ask(beat(talk, "a", 2, subscribed_topic_names=[talk.name, talk.name]))
    talk.ask(beat(talk, "a", 2, server_assignor="uniform"))
    talk.ask(beat(talk, "a", 2, server_assignor="range"))
    describe(talk)
    talk.ask(beat(talk, "a", -1))
    talk.ask(beat(talk, "a", -1))
    talk.ask(beat(talk, "a", 2))
    describe(talk)
    talk.ask(join(talk, "b"))


@only("4")
def say_what_cannot_be_said(talk: Talk) -> None:
    topic(talk)
    for wrong in ({"rebalance_timeout_ms": -1}, {"topic_partitions": None}, {"subscribed_topic_names": None},
                  {"instance_id": ""}, {"rack_id": ""}, {"server_assignor": "nobody"}, {"server_assignor": ""},
                  {"topic_partitions": [OwnedTopicPartitions(topic_id=ZERO_UUID, partitions=[0])]}):
        talk.ask(join(talk, "a", **wrong))
    if talk.version:
        talk.ask(join(talk, ""))
        talk.ask(join(talk, "a", subscribed_topic_regex="(", subscribed_topic_names=[]))
    for epoch in (-1, -2, -3, 1):
        talk.ask(beat(talk, "a", epoch))
        talk.ask(beat(talk, "a", epoch, instance_id="one"))
        talk.ask(beat(talk, "", epoch))
    request = join(talk, "a")
    request.group_id = ""
    talk.ask(request)
    describe(talk)


@only("4")
def share_with_a_second(talk: Talk) -> None:
    alone(talk)
    talk.ask(join(talk, "b"))
    describe(talk)
    talk.ask(beat(talk, "a", 2))
    talk.ask(beat(talk, "a", 2))
    talk.ask(beat(talk, "b", 3))
    talk.ask(beat(talk, "a", 2, 0, 1, 2))
    describe(talk)
    talk.ask(beat(talk, "a", 2, 0, 1))
    describe(talk)
    talk.ask(beat(talk, "b", 3))
    talk.ask(beat(talk, "b", 3, 2, 3))
    describe(talk)
    talk.ask(beat(talk, "a", -1))
    talk.ask(beat(talk, "b", 3))
    describe(talk)
    talk.ask(join(talk, "c"))
    talk.ask(beat(talk, "b", 4, 0, 1, 2, 3))
    talk.ask(beat(talk, "b", 4, 2, 3))
    talk.ask(beat(talk, "b", -1))
    talk.ask(beat(talk, "c", 5))


@only("4")
def be_fenced(talk: Talk) -> None:
    alone(talk)
    talk.ask(beat(talk, "a", 3))
    talk.ask(beat(talk, "a", 1))
    talk.ask(beat(talk, "nobody", 2))
    talk.ask(join(talk, "b"))
    talk.ask(beat(talk, "a", 2))
    talk.ask(beat(talk, "a", 2, 0, 1))
    for owned in ((), (0,), (0, 1), (0, 3)):
        talk.ask(beat(talk, "a", 2, *owned))
    talk.ask(beat(talk, "a", 2, topic=talk.name))
    talk.ask(beat(talk, "a", 1, 0))
    talk.ask(join(talk, "a"))
    talk.ask(beat(talk, "a", 3, 0, 1))
    talk.ask(beat(talk, "b", 2))


@only("4")
def join_under_a_name(talk: Talk) -> None:
    topic(talk, partitions=2)
    talk.ask(join(talk, "a", instance_id="one"))
    talk.ask(join(talk, "b", instance_id="one"))
    talk.ask(join(talk, "a", instance_id="one"))
    talk.ask(beat(talk, "a", 2, 0, 1, instance_id="one"))
    talk.ask(beat(talk, "a", -2, instance_id="one"))
    describe(talk)
    talk.ask(join(talk, "c", instance_id="two"))
    talk.ask(join(talk, "b", instance_id="one"))
    talk.ask(beat(talk, "a", 2, instance_id="one"))
    talk.ask(beat(talk, "a", -1, instance_id="one"))
    talk.ask(beat(talk, "a", 2, instance_id="three"))
    talk.ask(beat(talk, "b", 2, 0, instance_id="one"))
    talk.ask(beat(talk, "c", 3, instance_id="two"))
    describe(talk)
    talk.ask(beat(talk, "b", -1, instance_id="one"))
    talk.ask(beat(talk, "c", 3, 1, instance_id="two"))


@only("4")
def read_other_topics(talk: Talk) -> None:
    alone(talk)
    other = topic(talk, "-other", partitions=2)
    talk.ask(beat(talk, "a", 2, subscribed_topic_names=[talk.name, other]))
    describe(talk)
    talk.ask(beat(talk, "a", 3, subscribed_topic_names=[other]))
    talk.ask(beat(talk, "a", 3, 0, 1, topic=other))
    describe(talk)
    talk.ask(beat(talk, "a", 4, subscribed_topic_names=[f"{talk.name}-nowhere"]))
    talk.ask(beat(talk, "a", 4, topic=other))
    talk.ask(beat(talk, "a", 5, subscribed_topic_names=[]))
    describe(talk)


@only("4")
def plan_by_ranges(talk: Talk) -> None:
    topic(talk, partitions=5)
    for member in ("a", "b", "c"):
        talk.ask(join(talk, member, server_assignor="range"))
    describe(talk)


@only("4")
def describe_groups_of_both_kinds(talk: Talk) -> None:
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[talk.name], include_authorized_operations=True))
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[]))
    lone_member(talk)
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[talk.name, f"{talk.name}-2"]))
    planned = talk.more()
    planned.name = f"{talk.name}-planned"
    alone(planned)
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[planned.name, talk.name]))
    planned.close()


@only("4")
def commit_as_a_member_of_a_planned_group(talk: Talk) -> None:
    alone(talk)
    for member, epoch in (("a", 2), ("a", 1), ("a", 3), ("nobody", 2), ("", -1), ("a", -1)):
        talk.ask(commit(talk, member, epoch, 0))
    talk.ask(commit(talk, "a", 2, 99))
    if talk.version >= 7:
        talk.ask(commit(talk, "a", 2, 0, instance="one"))
    talk.call(join(talk, "b"), 1)
    talk.call(beat(talk, "a", 2), 1)
    talk.call(beat(talk, "a", 2, 0, 1), 1)
    talk.call(beat(talk, "b", 3), 1)
    if talk.version >= 9:
        for member, epoch, partition in (("a", 2, 0), ("a", 2, 2), ("b", 3, 2), ("b", 2, 2)):
            talk.ask(commit(talk, member, epoch, partition))
        talk.ask(commit(talk, "a", 2, 0, 2))
    talk.call(beat(talk, "a", -1), 1)
    talk.call(beat(talk, "b", -1), 1)
    talk.ask(commit(talk, "", -1, 0))
    talk.ask(commit(talk, "a", 3, 0))


@only("4")
def fetch_as_a_member_of_a_planned_group(talk: Talk) -> None:
    if talk.version < 9:
        return
    alone(talk)
    talk.call(commit(talk, "a", 2, 0), 9)
    for member, epoch in (("a", 2), ("a", 1), ("a", 3), ("nobody", 2), (None, -1), ("", -1), ("a", -1)):
        talk.ask(fetch(talk, member, epoch))


@only("4")
def look_at_a_planned_group_as_at_a_classic_one(talk: Talk) -> None:
    alone(talk)
    for request, version in (
            (DescribeGroupsRequest(groups=[talk.name]), 5), (DescribeGroupsRequest(groups=[talk.name]), 6),
            (DeleteGroupsRequest(groups_names=[talk.name]), 2),
            (HeartbeatRequest(group_id=talk.name, generation_id=2, member_id="a"), 4),
            (LeaveGroupRequest(group_id=talk.name, members=[MemberIdentity(member_id=each)
                                                            for each in ("a", "nobody")]), 5),
            (DeleteGroupsRequest(groups_names=[talk.name]), 2), (DescribeGroupsRequest(groups=[talk.name]), 6)):
        talk.note(talk.call(request, version), version)


@only("4")
def list_planned_groups(talk: Talk) -> None:
    alone(talk)
    talk.ask(ListGroupsRequest(), only_mine=True)
    if talk.version >= 5:
        for kind in ("consumer", "classic", "Consumer"):
            talk.ask(ListGroupsRequest(types_filter=[kind]), only_mine=True)
        for state in ("stable", "Empty"):
            talk.ask(ListGroupsRequest(states_filter=[state]), only_mine=True)


CONVERSATIONS: dict[type[Request], list[Conversation]] = {
    ConsumerGroupHeartbeatRequest: [
        join_stay_and_leave, say_what_cannot_be_said, share_with_a_second, be_fenced, join_under_a_name,
        read_other_topics, plan_by_ranges],
    ConsumerGroupDescribeRequest: [describe_groups_of_both_kinds],
    OffsetCommitRequest: [commit_as_a_member_of_a_planned_group],
    OffsetFetchRequest: [fetch_as_a_member_of_a_planned_group],
    DeleteGroupsRequest: [look_at_a_planned_group_as_at_a_classic_one],
    ListGroupsRequest: [list_planned_groups],
}
