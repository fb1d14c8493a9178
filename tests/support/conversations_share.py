"""What members of share groups ask (KIP-932): for `test_broker_answers_as_kafka_does`.

Kafka prepares partitions in the background, and does not name one to a member, nor fetch from it, before that; the
embedded broker is ready with the next request. So these conversations wait until both are. Which of several members
gets which partitions is not Kafka's choice in every case: where there are several, there is one partition.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.records import BatchBuilder
from headrace.wire.messages.admin.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from headrace.wire.messages.groups.classic_groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
)
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupDescribeRequest
from headrace.wire.messages.groups.share_groups import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    FetchAcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
    ShareForgottenTopic,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from headrace.wire.schema import Request
from tests.support.conversations_planned import alone as planned_alone
from tests.support.conversations_planned import join as planned_join
from tests.support.raw_client import produce_request
from tests.support.talk import Conversation, Talk, only

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
Said = tuple[int, int, int, Sequence[int]]
"""A partition, the first and last offset, and what became of the records."""


def beat(talk: Talk, member: str, epoch: int, topics: list[str] | None = None,
         **more: Any) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(**{"group_id": talk.name, "member_id": member, "member_epoch": epoch,
                                         "subscribed_topic_names": topics, **more})


def join(talk: Talk, member: str) -> ShareGroupHeartbeatRequest:
    return beat(talk, member, 0, [talk.name])


def describe(talk: Talk) -> None:
    talk.note(talk.call(ShareGroupDescribeRequest(group_ids=[talk.name], include_authorized_operations=True), 1), 1)


def joined(talk: Talk, member: str = "a", partitions: int = 1, **configs: str) -> None:
    """A group that begins at the first record, with a member that reads all partitions of the topic."""
    talk.topic(partitions=partitions)
    settings = {"share.auto.offset.reset": "earliest",
                **{f"share.{name.replace('_', '.')}": value for name, value in configs.items()}}
    reply = talk.call(IncrementalAlterConfigsRequest(resources=[IncrementalAlterConfigsResource(
        resource_type=32, resource_name=talk.name, configs=[
            IncrementalAlterableConfig(name=name, config_operation=0, value=value)
            for name, value in settings.items()])]), 1)
    assert reply.responses[0].error_code == 0, reply
    for _ in range(500):
        reply = talk.call(join(talk, member), 1)
        if reply.assignment is not None and reply.assignment.topic_partitions:
            return
        time.sleep(0.02)
    raise AssertionError("the group gets no partitions")


def ready(talk: Talk, partitions: int = 1, **configs: str) -> None:
    """As `joined`, and both brokers know all partitions."""
    joined(talk, partitions=partitions, **configs)
    for _ in range(500):
        reply = talk.call(fetch(talk, 0, parts=range(partitions), member="first"), 2)
        talk.call(acknowledge(talk, -1, member="first"), 2)
        if sum(len(topic.partitions) for topic in reply.responses) == partitions:
            return
        time.sleep(0.02)
    raise AssertionError("the partitions are not ready")


def write(talk: Talk, *sizes: int, partition: int = 0) -> None:
    """A batch of each size."""
    for size in sizes:
        builder = BatchBuilder(1 << 20, 1 << 20)
        for number in range(size):
            builder.append(1000 + number, None, b"%d" % number)
        reply = talk.call(produce_request(talk.name, partition, bytes(builder.seal().data)), 9)
        assert reply.responses[0].partition_responses[0].error_code == 0, reply


def fetch(talk: Talk, epoch: int, *said: Said, parts: Iterable[int] = (), member: str = "a",
          forget: Sequence[int] = (), **more: Any) -> ShareFetchRequest:
    found = {index: ShareFetchPartition(partition_index=index) for index in parts}
    for index, first, last, types in said:
        found.setdefault(index, ShareFetchPartition(partition_index=index)).acknowledgement_batches.append(
            FetchAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types)))
    topic_id = talk.id_of(talk.name)
    return ShareFetchRequest(**{
        "group_id": talk.name, "member_id": member, "share_session_epoch": epoch, "max_wait_ms": 0, "min_bytes": 1,
        "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500,
        "topics": [ShareFetchTopic(topic_id=topic_id, partitions=list(found.values()))] if found else [],
        "forgotten_topics_data": [ShareForgottenTopic(topic_id=topic_id, partitions=list(forget))] if forget else [],
        **more})


def acknowledge(
    talk: Talk, epoch: int, *said: Said, member: str = "a", renews: bool = False
) -> ShareAcknowledgeRequest:
    found: dict[int, AcknowledgePartition] = {}
    for index, first, last, types in said:
        found.setdefault(index, AcknowledgePartition(partition_index=index)).acknowledgement_batches.append(
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types)))
    return ShareAcknowledgeRequest(
        group_id=talk.name, member_id=member, share_session_epoch=epoch, is_renew_ack=renews,
        topics=[AcknowledgeTopic(topic_id=talk.id_of(talk.name), partitions=list(found.values()))] if found else [])


def also(talk: Talk, request: Request) -> None:
    """Ask with the other of the two requests of a session, and note the reply."""
    talk.note(talk.call(request, talk.version), talk.version)


# Groups

@only("4")
def join_and_leave_a_share_group(talk: Talk) -> None:
    joined(talk, partitions=4)
    talk.ask(join(talk, "a"))
    for epoch in (3, 2, 1, 4):
        talk.ask(beat(talk, "a", epoch))
    talk.ask(beat(talk, "a", 3, [talk.name]))
    talk.ask(beat(talk, "a", 3, [f"{talk.name}-nowhere"]))
    describe(talk)
    talk.ask(beat(talk, "a", 4, [talk.name]))
    talk.ask(beat(talk, "a", -1))
    talk.ask(beat(talk, "a", -1))
    talk.ask(beat(talk, "a", 5))
    describe(talk)
    talk.ask(join(talk, "b"))


@only("4")
def share_a_partition_with_a_second(talk: Talk) -> None:
    joined(talk)
    talk.ask(join(talk, "b"))
    talk.ask(beat(talk, "a", 3))
    talk.ask(beat(talk, "b", 4))
    describe(talk)
    talk.ask(beat(talk, "a", -1))
    describe(talk)
    talk.ask(beat(talk, "b", 4))
    describe(talk)
    talk.ask(beat(talk, "b", -1))
    describe(talk)


@only("4")
def say_what_cannot_be_said_to_a_share_group(talk: Talk) -> None:
    joined(talk)
    for wrong in ({"member_id": ""}, {"group_id": ""}, {"rack_id": ""}, {"subscribed_topic_names": None},
                  {"subscribed_topic_names": []}, {"member_epoch": -2}, {"member_epoch": -1}, {"member_epoch": 3}):
        talk.ask(beat(talk, "b", 0, [talk.name], **wrong) if "subscribed_topic_names" not in wrong
                 else beat(talk, "b", 0, **wrong))


@only("4")
def describe_share_groups(talk: Talk) -> None:
    joined(talk)
    for names in ([talk.name], [""], [f"{talk.name}-nowhere"], []):
        talk.ask(ShareGroupDescribeRequest(group_ids=names, include_authorized_operations=True))
        talk.ask(ShareGroupDescribeRequest(group_ids=names))


@only("4")
def look_at_groups_of_another_kind(talk: Talk) -> None:
    planned_alone(talk, 1)
    talk.ask(beat(talk, "b", 0, [talk.name]))
    talk.ask(beat(talk, "b", 1))
    describe(talk)
    other = talk.more()
    other.name = f"{talk.name}-share"
    joined(other)
    for request, version in (
            (planned_join(other, "z"), 1), (ConsumerGroupDescribeRequest(group_ids=[other.name]), 1),
            (DescribeGroupsRequest(groups=[other.name]), 5), (DescribeGroupsRequest(groups=[other.name]), 6),
            (HeartbeatRequest(group_id=other.name, generation_id=1, member_id="a"), 4),
            (LeaveGroupRequest(group_id=other.name, members=[MemberIdentity(member_id="a")]), 4),
            (DeleteGroupsRequest(groups_names=[other.name]), 2), (beat(other, "a", -1), 1),
            (DeleteGroupsRequest(groups_names=[other.name]), 2), (DescribeGroupsRequest(groups=[other.name]), 6)):
        talk.note(talk.call(request, version), version)
    other.close()


@only("4")
def list_share_groups(talk: Talk) -> None:
    joined(talk)
    talk.ask(ListGroupsRequest(), only_mine=True)
    if talk.version >= 5:
        for kind in ("share", "consumer", "Share"):
            talk.ask(ListGroupsRequest(types_filter=[kind]), only_mine=True)


# Records

@only("4")
def fetch_and_hold(talk: Talk) -> None:
    ready(talk)
    talk.ask(fetch(talk, 0, parts=[0]))
    write(talk, 3, 3, 3, 3, 3)
    talk.ask(fetch(talk, 1, max_records=4, batch_size=2))
    talk.ask(fetch(talk, 2, max_records=7))
    talk.ask(fetch(talk, 3))
    also(talk, acknowledge(talk, 4, (0, 1, 4, [RELEASE]), (0, 6, 7, [ACCEPT])))
    talk.ask(fetch(talk, 5, max_records=2))
    talk.ask(fetch(talk, 6))
    talk.ask(fetch(talk, 7))


@only("4")
def fetch_no_more_than_asked_for(talk: Talk) -> None:
    if talk.version < 2:
        return
    ready(talk)
    write(talk, 3, 3, 3)
    talk.ask(fetch(talk, 0, parts=[0], max_records=4, share_acquire_mode=1))
    talk.ask(fetch(talk, 1, max_records=4, share_acquire_mode=1))
    talk.ask(fetch(talk, 2))
    also(talk, acknowledge(talk, 3, (0, 0, 8, [RELEASE])))
    talk.ask(fetch(talk, 4, max_records=2, share_acquire_mode=1))
    talk.ask(fetch(talk, 5, max_records=0))
    talk.ask(fetch(talk, 6, max_bytes=0))


@only("4")
def fetch_with_sessions_that_are_none(talk: Talk) -> None:
    ready(talk)
    talk.ask(fetch(talk, 1))
    talk.ask(fetch(talk, -1))
    talk.ask(fetch(talk, 0, (0, 0, 0, [ACCEPT]), parts=[0]))
    talk.ask(fetch(talk, 0, parts=[0], member=""))
    talk.ask(fetch(talk, 0, parts=[0]))
    talk.ask(fetch(talk, 2))
    talk.ask(fetch(talk, 1))
    talk.ask(fetch(talk, 2, parts=[9]))
    talk.ask(fetch(talk, 3))
    talk.ask(fetch(talk, 4, forget=[9]))
    talk.ask(fetch(talk, 5))
    talk.ask(fetch(talk, 6, forget=[0]))
    write(talk, 1)
    talk.ask(fetch(talk, 7))
    talk.ask(fetch(talk, 8, parts=[0]))
    talk.ask(fetch(talk, -1))
    talk.ask(fetch(talk, 9))


@only("4")
def acknowledge_with_a_fetch(talk: Talk) -> None:
    ready(talk)
    write(talk, 4)
    talk.ask(fetch(talk, 0, parts=[0]))
    talk.ask(fetch(talk, 1, (0, 0, 1, [ACCEPT])))
    talk.ask(fetch(talk, 2, (0, 0, 1, [ACCEPT])))
    talk.ask(fetch(talk, 3, (0, 2, 3, [REJECT, ACCEPT]), (0, 9, 9, [ACCEPT])))
    talk.ask(fetch(talk, 4, (0, 2, 3, [7])))
    talk.ask(fetch(talk, -1, (0, 2, 2, [ACCEPT])))


@only("4")
def slow_down_what_comes_back(talk: Talk) -> None:
    ready(talk)
    write(talk, 8, 1)
    for turn in range(7):
        reply = talk.ask(fetch(talk, 2 * turn, parts=[0]))
        said = [(0, each.first_offset, each.last_offset, [RELEASE]) for topic in reply.responses
                for part in topic.partitions for each in part.acquired_records]
        also(talk, acknowledge(talk, 2 * turn + 1, *said))


@only("4")
def say_what_became_of_records(talk: Talk) -> None:
    ready(talk)
    write(talk, 8)
    talk.note(talk.call(fetch(talk, 0, parts=[0]), talk.version), talk.version)
    for epoch, said in enumerate((
            [(0, 0, 0, [ACCEPT])], [(0, 0, 0, [ACCEPT])], [(0, 1, 3, [RELEASE, REJECT, GAP])], [(0, 2, 2, [ACCEPT])],
            [(0, 1, 5, [ACCEPT])], [(0, 4, 4, [ACCEPT]), (0, 4, 4, [ACCEPT])],
            [(0, 5, 5, [ACCEPT]), (0, 4, 4, [ACCEPT])],
            [(0, 4, 4, [])], [(0, 5, 4, [ACCEPT])], [(0, 4, 4, [ACCEPT, ACCEPT])], [(0, 4, 4, [9])], [(0, 4, 4, [-1])],
            [(0, 9, 9, [ACCEPT])], [(0, 7, 8, [ACCEPT])], [(0, 4, 4, [RENEW])], [(9, 0, 0, [ACCEPT])], []), 1):
        talk.ask(acknowledge(talk, epoch, *said))
    talk.ask(acknowledge(talk, 18, (0, 4, 4, [RENEW]), renews=talk.version >= 2))
    for epoch in (0, 1, 18, 20):
        talk.ask(acknowledge(talk, epoch))
    talk.ask(acknowledge(talk, 19, (0, 4, 4, [ACCEPT]), member="b"))
    talk.ask(acknowledge(talk, 19, member=""))
    talk.ask(acknowledge(talk, -1, (0, 4, 4, [ACCEPT])))
    talk.ask(acknowledge(talk, -1))
    talk.ask(acknowledge(talk, 19))
    # Kafka frees what a session held behind its answer, some time later, and nothing shows when without taking it.
    time.sleep(0.5)
    talk.note(talk.call(fetch(talk, 0, parts=[0], member="b", max_wait_ms=5000), talk.version), talk.version)


@only("4")
def say_something_of_what_another_holds(talk: Talk) -> None:
    ready(talk)
    write(talk, 2, 2)
    for member in ("a", "b"):
        talk.note(talk.call(fetch(talk, 0, parts=[0], member=member, max_records=2), talk.version), talk.version)
    talk.ask(acknowledge(talk, 1, (0, 2, 3, [ACCEPT])))
    talk.ask(acknowledge(talk, 2, (0, 0, 3, [ACCEPT])))
    talk.ask(acknowledge(talk, 3, (0, 0, 0, [ACCEPT]), (0, 3, 3, [ACCEPT])))
    talk.ask(acknowledge(talk, 4, (0, 0, 0, [ACCEPT])))
    talk.ask(acknowledge(talk, 1, (0, 2, 3, [ACCEPT]), member="b"))


# Where groups begin

def offsets(*names: str) -> DescribeShareGroupOffsetsRequest:
    return DescribeShareGroupOffsetsRequest(groups=[
        DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in names])


@only("4")
def ask_where_a_share_group_is(talk: Talk) -> None:
    ready(talk, partitions=2)
    write(talk, 5)
    talk.ask(offsets(talk.name))
    talk.ask(offsets(f"{talk.name}-nowhere"))
    talk.call(fetch(talk, 0, parts=[0, 1]), 2)
    talk.call(acknowledge(talk, 1, (0, 0, 1, [ACCEPT])), 2)
    talk.ask(offsets(talk.name))
    talk.call(acknowledge(talk, 2, (0, 2, 4, [ACCEPT, RELEASE, ACCEPT])), 2)
    talk.ask(offsets(talk.name))


def altered(name: str, topic: str, *places: tuple[int, int]) -> AlterShareGroupOffsetsRequest:
    return AlterShareGroupOffsetsRequest(group_id=name, topics=[AlterShareGroupOffsetsRequestTopic(
        topic_name=topic, partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                                      for index, offset in places])])


@only("4")
def begin_elsewhere(talk: Talk) -> None:
    joined(talk)
    write(talk, 5)
    talk.ask(altered(talk.name, talk.name, (0, 3)))
    talk.call(beat(talk, "a", -1), 1)
    talk.ask(altered("", talk.name, (0, 3)))
    talk.ask(altered(talk.name, talk.name, (0, 3), (9, 1)))
    talk.ask(altered(talk.name, f"{talk.name}-nowhere", (0, 3)))
    talk.note(talk.call(offsets(talk.name), 1), 1)
    talk.call(join(talk, "a"), 1)
    talk.note(talk.call(fetch(talk, 0, parts=[0], max_wait_ms=8000), 2), 2)


@only("4")
def forget_where_a_share_group_is(talk: Talk) -> None:
    joined(talk)
    request = DeleteShareGroupOffsetsRequest(group_id=talk.name, topics=[
        DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in (talk.name, f"{talk.name}-nowhere")])
    talk.ask(request)
    talk.call(beat(talk, "a", -1), 1)
    talk.ask(request)
    talk.note(talk.call(offsets(talk.name), 1), 1)


CONVERSATIONS: dict[type[Request], list[Conversation]] = {
    ShareGroupHeartbeatRequest: [join_and_leave_a_share_group, share_a_partition_with_a_second,
                                 say_what_cannot_be_said_to_a_share_group],
    ShareGroupDescribeRequest: [describe_share_groups, look_at_groups_of_another_kind],
    ListGroupsRequest: [list_share_groups],
    ShareFetchRequest: [fetch_and_hold, fetch_no_more_than_asked_for, fetch_with_sessions_that_are_none,
                        acknowledge_with_a_fetch, slow_down_what_comes_back],
    ShareAcknowledgeRequest: [say_what_became_of_records, say_something_of_what_another_holds],
    DescribeShareGroupOffsetsRequest: [ask_where_a_share_group_is],
    AlterShareGroupOffsetsRequest: [begin_elsewhere],
    DeleteShareGroupOffsetsRequest: [forget_where_a_share_group_is],
}
