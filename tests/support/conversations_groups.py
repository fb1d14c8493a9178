"""What members and administrators of classic groups ask, in all versions: for `test_broker_answers_as_kafka_does`."""

from collections.abc import Sequence
from typing import Any

from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.groups.classic_groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from headrace.wire.schema import ZERO_UUID, Request
from tests.support.talk import Conversation, Talk, only

NOWHERE = ZERO_UUID.__class__(int=77)
SET_UP = 3
"""A version of JoinGroup in which a new member is let in at once."""


def subscription(*topics: str) -> bytes:
    """A consumer's metadata: version 0, topics, no user data."""
    names = b"".join(len(each).to_bytes(2, "big") + each.encode() for each in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


def join(talk: Talk, member: str = "", *, group: str | None = None, session_ms: int = 30_000, kind: str = "consumer",
         names: Sequence[str] = ("range",), instance: str | None = None, metadata: bytes = b"") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=talk.name if group is None else group, session_timeout_ms=session_ms, member_id=member,
        rebalance_timeout_ms=30_000, group_instance_id=instance, protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata or subscription("t")) for name in names])


def sync(talk: Talk, member: str, generation: int, *, group: str | None = None, instance: str | None = None,
         assign: Sequence[str] = (), kind: str | None = None, protocol: str | None = None) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=talk.name if group is None else group, generation_id=generation, member_id=member,
        group_instance_id=instance, protocol_type=kind, protocol_name=protocol,
        assignments=[SyncGroupRequestAssignment(member_id=each, assignment=b"for " + each[:3].encode())
                     for each in assign])


def heartbeat(talk: Talk, member: str, generation: int, *, group: str | None = None,
              instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=talk.name if group is None else group, generation_id=generation,
                            member_id=member, group_instance_id=instance)


def leave(talk: Talk, *members: str, group: str | None = None, instance: str | None = None) -> LeaveGroupRequest:
    name = talk.name if group is None else group
    if talk.version < 3:
        return LeaveGroupRequest(group_id=name, member_id=members[0])
    return LeaveGroupRequest(group_id=name, members=[MemberIdentity(member_id=each, group_instance_id=instance)
                                                     for each in members])


def lone_member(talk: Talk, group: str | None = None, metadata: bytes = b"", *, assigned: bool = True) -> str:
    """A group with one member, in generation 1; its id."""
    member = talk.call(join(talk, group=group, metadata=metadata), SET_UP).member_id
    if assigned:
        assert talk.call(sync(talk, member, 1, group=group, assign=[member]), 2).error_code == 0
    return str(member)


def join_for_the_first_time_and_again(talk: Talk) -> None:
    reply = talk.ask(join(talk))
    if talk.version >= 4:
        reply = talk.ask(join(talk, reply.member_id))
    talk.ask(join(talk, reply.member_id))  # a leader's second joining begins a generation
    talk.ask(join(talk, reply.member_id, names=("range", "roundrobin")))
    talk.ask(join(talk, reply.member_id, names=("sticky",)))  # none that it had, and it is alone
    talk.ask(join(talk, reply.member_id, names=("sticky", "roundrobin")))
    talk.ask(join(talk, reply.member_id, names=("range",)))


def join_what_cannot_be_joined(talk: Talk) -> None:
    talk.ask(join(talk, group=""))
    talk.ask(join(talk, session_ms=1))
    talk.ask(join(talk, session_ms=1 << 30))
    talk.ask(join(talk, "nobody"))
    talk.ask(join(talk, names=()))
    talk.ask(join(talk, kind=""))
    lone_member(talk)
    talk.ask(join(talk, "nobody"))
    talk.ask(join(talk, kind="connect"))
    talk.ask(join(talk, names=("sticky",)))
    talk.ask(join(talk, names=()))
    talk.ask(join(talk, "nobody", names=("sticky",)))


def join_as_the_second(talk: Talk) -> None:
    first, other = lone_member(talk), talk.more()
    request = join(talk, names=("roundrobin", "range"))
    if talk.version >= 4:
        request.member_id = talk.ask(request).member_id
    other.send(request)
    talk.wait_for("PreparingRebalance")
    talk.said.append(talk.call(heartbeat(talk, first, 1), 3).error_code)
    talk.said.append(talk.call(sync(talk, first, 1), 2).error_code)
    talk.ask(join(talk, first))
    reply = other.hear(JoinGroupRequest)
    other.close()
    talk.said.append(talk.call(heartbeat(talk, first, 1), 3).error_code)
    talk.said.append(talk.call(heartbeat(talk, first, 2), 3).error_code)
    talk.said.append(talk.call(sync(talk, first, 2, assign=[first, reply.member_id]), 2).error_code)
    talk.ask(join(talk, reply.member_id, names=("roundrobin", "range")))  # nothing new: nothing moves


def join_under_a_name(talk: Talk) -> None:
    if talk.version < 5:
        return
    first = talk.ask(join(talk, instance="one"))
    talk.call(sync(talk, first.member_id, 1, instance="one", assign=[first.member_id]), 3)
    second = talk.ask(join(talk, instance="one"))
    talk.ask(join(talk, first.member_id, instance="one"))
    talk.ask(join(talk, "nobody", instance="one"))
    talk.ask(join(talk, "nobody", instance="two"))
    talk.said.append(talk.call(heartbeat(talk, first.member_id, 1, instance="one"), 4).error_code)
    talk.said.append(talk.call(heartbeat(talk, second.member_id, 1, instance="one"), 4).error_code)
    talk.ask(join(talk, instance="one", names=("roundrobin",)))


def sync_in_every_state(talk: Talk) -> None:
    talk.ask(sync(talk, "nobody", 1))
    talk.ask(sync(talk, "", -1, group=""))
    member = lone_member(talk, assigned=False)
    talk.ask(sync(talk, "nobody", 1))
    talk.ask(sync(talk, member, 2))
    talk.ask(sync(talk, member, 0))
    if talk.version >= 5:
        talk.ask(sync(talk, member, 1, kind="consumer"))
        talk.ask(sync(talk, member, 1, kind="consumer", protocol="sticky"))
        talk.ask(sync(talk, member, 1, kind="connect", protocol="range"))
    talk.ask(sync(talk, member, 1, assign=[member], kind="consumer", protocol="range") if talk.version >= 5
             else sync(talk, member, 1, assign=[member]))
    talk.ask(sync(talk, member, 1, kind="consumer", protocol="range") if talk.version >= 5
             else sync(talk, member, 1))
    if talk.version >= 3:
        talk.ask(sync(talk, member, 1, instance="unheard", kind="consumer", protocol="range"))


def heartbeats_of_members_and_others(talk: Talk) -> None:
    talk.ask(heartbeat(talk, "nobody", 1))
    talk.ask(heartbeat(talk, "", -1))
    talk.ask(heartbeat(talk, "nobody", 1, group=""))
    member = lone_member(talk, assigned=False)
    for who, generation in ((member, 1), (member, 0), (member, 2), ("nobody", 1), ("", 1)):
        talk.ask(heartbeat(talk, who, generation))
    talk.call(sync(talk, member, 1, assign=[member]), 2)
    for who, generation in ((member, 1), (member, 0), ("nobody", 1)):
        talk.ask(heartbeat(talk, who, generation))
    if talk.version >= 3:
        talk.ask(heartbeat(talk, member, 1, instance="unheard"))
    talk.call(leave_of(talk, member), 1)
    talk.ask(heartbeat(talk, member, 1))


def leave_of(talk: Talk, member: str) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id=talk.name, member_id=member)


def leave_of_members_and_others(talk: Talk) -> None:
    talk.ask(leave(talk, "nobody"))
    talk.ask(leave(talk, "nobody", group=""))
    member = lone_member(talk)
    talk.ask(leave(talk, "nobody"))
    talk.ask(leave(talk, ""))
    if talk.version >= 3:
        talk.ask(leave(talk, member, instance="unheard"))
        talk.ask(leave(talk, member, "nobody"))
        talk.ask(leave(talk))
    else:
        talk.ask(leave(talk, member))
    talk.ask(leave(talk, member))
    if talk.version >= 3:
        named = talk.call(join(talk, instance="one"), 9).member_id
        talk.ask(leave(talk, "nobody", instance="one"))
        talk.ask(leave(talk, "", instance="one"))
        talk.ask(leave(talk, named, instance="one"))


def commit(talk: Talk, offset: int = 5, *, group: str | None = None, topic: str = "", partition: int = 0,
           generation: int = -1, member: str = "", note: str | None = "", instance: str | None = None,
           ) -> OffsetCommitRequest:
    name = topic or talk.name
    known = talk.id_of(name) if name == talk.name else NOWHERE
    return OffsetCommitRequest(
        group_id=talk.name if group is None else group, generation_id_or_member_epoch=generation, member_id=member,
        group_instance_id=instance, topics=[OffsetCommitRequestTopic(name=name, topic_id=known, partitions=[
            OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset,
                                         committed_metadata=note)])])


def read_offsets(talk: Talk, group: str | None = None) -> None:
    """Note what the group has committed, whatever the conversation's version."""
    reply = talk.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(
        group_id=talk.name if group is None else group, topics=None)]), 8)
    talk.note(reply, 8)


@only(since=1)  # in version 0 offsets were in ZooKeeper, which no broker has any more
def commit_without_a_group(talk: Talk) -> None:
    talk.topic(partitions=2)
    talk.ask(commit(talk))
    read_offsets(talk)
    talk.ask(commit(talk, 0, note="a note"))
    talk.ask(commit(talk, 1 << 40, note=None))
    read_offsets(talk)
    talk.ask(commit(talk, -1))
    talk.ask(commit(talk, -7))
    talk.ask(commit(talk, topic="nowhere"))
    talk.ask(commit(talk, partition=9))
    talk.ask(commit(talk, note="x" * 4096, partition=1))
    talk.ask(commit(talk, note="x" * 4097, partition=1))
    talk.ask(commit(talk, group=""))
    talk.ask(commit(talk, member="somebody"))
    talk.ask(commit(talk, member="somebody", generation=3))
    talk.ask(commit(talk, generation=3))
    talk.ask(OffsetCommitRequest(group_id=talk.name, topics=[]))
    read_offsets(talk)


@only(since=1)
def commit_within_a_group(talk: Talk) -> None:
    talk.topic()
    member = lone_member(talk, assigned=False)
    talk.ask(commit(talk, member=member, generation=1))
    talk.call(sync(talk, member, 1, assign=[member]), 2)
    talk.ask(commit(talk, member=member, generation=1))
    talk.ask(commit(talk, member=member, generation=0))
    talk.ask(commit(talk, member=member, generation=2))
    talk.ask(commit(talk, member=member))
    talk.ask(commit(talk, member="nobody", generation=1))
    talk.ask(commit(talk))
    talk.ask(commit(talk, topic="nowhere", member="nobody", generation=1))
    if talk.version >= 7:
        talk.ask(commit(talk, member=member, generation=1, instance="unheard"))
    talk.call(leave_of(talk, member), 1)
    talk.ask(commit(talk, member=member, generation=1))
    talk.ask(commit(talk, 9))
    read_offsets(talk)


def fetch_offsets(talk: Talk, topics: dict[str, list[int]] | None, *, group: str | None = None, stable: bool = False,
                  member: str | None = None, epoch: int = -1) -> OffsetFetchRequest:
    name = talk.name if group is None else group
    if talk.version < 8:
        return OffsetFetchRequest(group_id=name, require_stable=stable, topics=None if topics is None else [
            OffsetFetchRequestTopic(name=topic, partition_indexes=parts) for topic, parts in topics.items()])
    return OffsetFetchRequest(require_stable=stable, groups=[OffsetFetchRequestGroup(
        group_id=name, member_id=member, member_epoch=epoch, topics=None if topics is None else [
            OffsetFetchRequestTopics(name=topic, partition_indexes=parts,
                                     topic_id=talk.id_of(topic) if topic.startswith(talk.name) else NOWHERE)
            for topic, parts in topics.items()])])


@only(since=1)
def offsets_are_fetched(talk: Talk) -> None:
    topic, other = talk.topic(partitions=3), talk.topic("-b")
    talk.ask(fetch_offsets(talk, {topic: [0]}))
    for name, partition in ((topic, 0), (topic, 2), (other, 0)):
        request = commit(talk, 7, topic=name, partition=partition, note="n")
        request.topics[0].topic_id = talk.id_of(name)
        talk.call(request, 8)
    talk.ask(fetch_offsets(talk, {topic: [0, 1, 2, 99], other: [0]}))
    talk.ask(fetch_offsets(talk, {"nowhere": [0]}))
    talk.ask(fetch_offsets(talk, {}))
    talk.ask(fetch_offsets(talk, {topic: [0]}, group="unheard-of"))
    talk.ask(fetch_offsets(talk, {topic: [0]}, group=""))
    if talk.version >= 2:
        talk.ask(fetch_offsets(talk, None))
        talk.ask(fetch_offsets(talk, None, group="unheard-of"))
    if talk.version >= 7:
        talk.ask(fetch_offsets(talk, {topic: [0]}, stable=True))
    if talk.version >= 8:
        request = fetch_offsets(talk, {topic: [0]})
        request.groups += fetch_offsets(talk, None, group="unheard-of").groups
        talk.ask(request)
    if talk.version >= 9:
        talk.ask(fetch_offsets(talk, {topic: [0]}, member="nobody", epoch=3))


@only("4.4", since=1)  # earlier releases leave topics without partitions out, and never answer for no groups
def offsets_of_nothing_are_fetched(talk: Talk) -> None:
    talk.ask(fetch_offsets(talk, {talk.topic(): []}))
    if talk.version >= 8:
        talk.ask(OffsetFetchRequest(groups=[]))


def delete_offsets(talk: Talk, topic: str, *partitions: int, group: str | None = None) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(group_id=talk.name if group is None else group, topics=[OffsetDeleteRequestTopic(
        name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in partitions])])


def offsets_are_deleted(talk: Talk) -> None:
    topic, other = talk.topic(partitions=2), talk.topic("-b")
    talk.ask(delete_offsets(talk, topic, 0))
    talk.ask(delete_offsets(talk, topic, 0, group=""))
    for partition in (0, 1):
        talk.call(commit(talk, 7, partition=partition), 8)
    talk.ask(delete_offsets(talk, topic, 0, 9))
    talk.ask(delete_offsets(talk, topic, 0))
    talk.ask(delete_offsets(talk, "nowhere", 0))
    talk.ask(OffsetDeleteRequest(group_id=talk.name, topics=[]))
    read_offsets(talk)
    member = lone_member(talk, metadata=subscription(topic))
    talk.call(commit(talk, 7, member=member, generation=1), 8)
    request = commit(talk, 7, topic=other, member=member, generation=1)
    talk.call(request, 8)
    talk.ask(delete_offsets(talk, topic, 0))
    talk.ask(delete_offsets(talk, other, 0))
    read_offsets(talk)


def groups_are_described(talk: Talk) -> None:
    talk.topic()
    for name in (f"{talk.name}-none", ""):
        talk.ask(DescribeGroupsRequest(groups=[name]))
    talk.call(commit(talk), 8)
    talk.ask(DescribeGroupsRequest(groups=[talk.name]))
    member = lone_member(talk, assigned=False)
    talk.ask(DescribeGroupsRequest(groups=[talk.name]))
    talk.call(sync(talk, member, 1, assign=[member]), 2)
    talk.ask(DescribeGroupsRequest(groups=[talk.name, talk.name]))
    talk.call(leave_of(talk, member), 1)
    talk.ask(DescribeGroupsRequest(groups=[talk.name]))
    talk.call(join(talk, instance="one"), 9)
    talk.ask(DescribeGroupsRequest(groups=[talk.name]))
    talk.ask(DescribeGroupsRequest(groups=[]))


@only("4.4")  # earlier releases know fewer operations
def operations_on_groups(talk: Talk) -> None:
    lone_member(talk)
    if talk.version >= 3:
        talk.ask(DescribeGroupsRequest(groups=[talk.name, f"{talk.name}-none"], include_authorized_operations=True))


def groups_are_listed(talk: Talk) -> None:
    talk.topic()
    filters: list[dict[str, Any]] = [{}]
    if talk.version >= 4:
        filters += [{"states_filter": [each]} for each in ("Stable", "stable", "Empty", "Nonsense")]
        filters.append({"states_filter": ["Empty", "CompletingRebalance"]})
    if talk.version >= 5:
        filters += [{"types_filter": [each]} for each in ("classic", "Classic", "consumer", "share", "nonsense")]
    member = lone_member(talk, f"{talk.name}-stable")
    lone_member(talk, f"{talk.name}-completing", assigned=False)
    talk.call(commit(talk, group=f"{talk.name}-offsets"), 8)
    lone = lone_member(talk)
    talk.call(leave_of(talk, lone), 1)
    for each in filters:
        talk.ask(ListGroupsRequest(**each), only_mine=True)
    assert member


def groups_are_deleted(talk: Talk) -> None:
    talk.topic()
    talk.ask(DeleteGroupsRequest(groups_names=[f"{talk.name}-none"]))
    talk.ask(DeleteGroupsRequest(groups_names=[""]))
    talk.ask(DeleteGroupsRequest(groups_names=[]))
    talk.call(commit(talk), 8)
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name]))
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name]))
    read_offsets(talk)
    member = lone_member(talk)
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name, f"{talk.name}-none"]))
    talk.call(leave_of(talk, member), 1)
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name]))
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name]))


def coordinators_are_found(talk: Talk) -> None:
    kinds = (0,) if talk.version == 0 else (0, 1, 9)
    for kind in kinds:
        if talk.version >= 4:
            for keys in ([talk.name], [talk.name, "other"], [""], []):
                talk.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=keys))
        else:
            for key in (talk.name, ""):
                talk.ask(FindCoordinatorRequest(key_type=kind, key=key))


CONVERSATIONS: dict[type[Request], list[Conversation]] = {
    JoinGroupRequest: [join_for_the_first_time_and_again, join_what_cannot_be_joined, join_as_the_second,
                       join_under_a_name],
    SyncGroupRequest: [sync_in_every_state],
    HeartbeatRequest: [heartbeats_of_members_and_others],
    LeaveGroupRequest: [leave_of_members_and_others],
    OffsetCommitRequest: [commit_without_a_group, commit_within_a_group],
    OffsetFetchRequest: [offsets_are_fetched, offsets_of_nothing_are_fetched],
    OffsetDeleteRequest: [offsets_are_deleted],
    DescribeGroupsRequest: [groups_are_described, operations_on_groups],
    ListGroupsRequest: [groups_are_listed],
    DeleteGroupsRequest: [groups_are_deleted],
    FindCoordinatorRequest: [coordinators_are_found],
}
