"""The APIs of consumer groups: find the coordinator, join, sync, stay, leave, commit and fetch offsets, describe."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.broker.cluster import GROUP_OPERATIONS, ApiCall, BrokerNode
from headrace.broker.coordinators.classic_groups import Group, GroupState, join_error_response
from headrace.broker.coordinators.committed_offsets import Committed
from headrace.broker.purgatory import DelayedReply
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError
from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from headrace.wire.messages.groups.classic_groups import (
    Coordinator,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from headrace.wire.schema import ZERO_UUID, Uuid

__all__ = ["MAX_METADATA_BYTES", "SERVES", "delete_groups", "describe_groups", "find_coordinator", "heartbeat",
           "join_group", "leave_group", "list_groups", "offset_commit", "offset_delete", "offset_fetch", "sync_group"]

_BATCHED_KEYS_FROM = 4
_PROTOCOL_FROM = 5
_BATCHED_LEAVE_FROM = 3
_BATCHED_FETCH_FROM = 8
_IDS_FROM = 10
_NOT_FOUND_FROM = 6
_GROUP_KEY, _TRANSACTION_KEY = 0, 1
_CONSUMERS, _SHARING = "consumer", "share"
_NOT_CLASSIC = (_CONSUMERS, _SHARING)
MAX_METADATA_BYTES = 4096
_NO_ERROR = "NONE"
"""What Kafka says in FindCoordinator when all is well."""
_NONE = Committed(-1)


def find_coordinator(call: ApiCall, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """The node that coordinates a group."""
    keys = request.coordinator_keys if call.version >= _BATCHED_KEYS_FROM else [request.key]
    found = [_coordinator(call, key, request.key_type) for key in keys]
    if call.version >= _BATCHED_KEYS_FROM:
        return FindCoordinatorResponse(coordinators=found)
    one = found[0]
    return FindCoordinatorResponse(error_code=one.error_code, error_message=one.error_message, node_id=one.node_id,
                                   host=one.host, port=one.port)


def _coordinator(call: ApiCall, key: str, key_type: int) -> Coordinator:
    node: BrokerNode | None = None
    code = KafkaError.INVALID_REQUEST
    if key_type in (_GROUP_KEY, _TRANSACTION_KEY):
        node, code = call.cluster.coordinator(key), KafkaError.COORDINATOR_NOT_AVAILABLE
    if node is None:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code,
                           error_message=KafkaError(code).str())
    return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port, error_code=0,
                       error_message="" if call.version >= _BATCHED_KEYS_FROM else _NO_ERROR)


def _check_name(call: ApiCall, group_id: str) -> None:
    if not group_id:
        raise ApiError(KafkaError.INVALID_GROUP_ID)
    call.check_coordinator(group_id)


def _present_group(call: ApiCall, group_id: str) -> Group:
    _check_name(call, group_id)
    group = call.cluster.groups.get(group_id)
    if group is None:
        raise ApiError(KafkaError.UNKNOWN_MEMBER_ID)
    return group


def join_group(call: ApiCall, request: JoinGroupRequest) -> JoinGroupResponse | DelayedReply:
    """Become a member of the next generation."""
    settings = call.cluster.settings
    try:
        _check_name(call, request.group_id)
        if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
            raise ApiError(KafkaError.INVALID_SESSION_TIMEOUT)
        group = _classic_group(call, request.group_id)
        return group.join(request, call.version, (call.client_id, call.client_host), call.now)
    except ApiError as error:
        return join_error_response(error.code, request.member_id, call.version)


def _classic_group(call: ApiCall, group_id: str) -> Group:
    """The group; whoever joins makes one, also of a planned group whose members are all gone."""
    planned = call.cluster.planned_groups.get(group_id)
    if (planned is not None and planned.members) or call.cluster.share_groups.get(group_id) is not None:
        raise ApiError(KafkaError.INCONSISTENT_GROUP_PROTOCOL)
    call.cluster.planned_groups.remove(group_id)
    return call.cluster.groups.get_or_make(group_id)


def sync_group(call: ApiCall, request: SyncGroupRequest) -> SyncGroupResponse | DelayedReply:
    """Bring the assignments, or ask for one's own."""
    try:
        if call.version >= _PROTOCOL_FROM and None in (request.protocol_type, request.protocol_name):
            raise ApiError(KafkaError.INCONSISTENT_GROUP_PROTOCOL)
        return _present_group(call, request.group_id).sync(request, call.now)
    except ApiError as error:
        return SyncGroupResponse(error_code=error.code, assignment=b"")


def heartbeat(call: ApiCall, request: HeartbeatRequest) -> HeartbeatResponse:
    """Stay a member."""
    try:
        _present_group(call, request.group_id).heartbeat(request.member_id, request.group_instance_id,
                                                         request.generation_id, call.now)
    except ApiError as error:
        return HeartbeatResponse(error_code=error.code)
    return HeartbeatResponse(error_code=0)


def leave_group(call: ApiCall, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Stop being a member; from version 3 on several at once."""
    is_batched = call.version >= _BATCHED_LEAVE_FROM
    leaving = request.members if is_batched else [MemberIdentity(member_id=request.member_id)]
    try:
        _check_name(call, request.group_id)
    except ApiError as error:
        return LeaveGroupResponse(error_code=error.code, members=[])
    members = [MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id,
                              error_code=_leave(call, request.group_id, each)) for each in leaving]
    if is_batched:
        return LeaveGroupResponse(error_code=0, members=members)
    return LeaveGroupResponse(error_code=members[0].error_code, members=[])


def _leave(call: ApiCall, group_id: str, leaving: MemberIdentity) -> int:
    planned = call.cluster.planned_groups.get(group_id)
    try:
        if planned is not None:
            planned.drop(planned.member(leaving.member_id, leaving.group_instance_id))
        else:
            _present_group(call, group_id).leave(leaving.member_id, leaving.group_instance_id, call.now)
    except ApiError as error:
        return error.code
    return 0


def offset_commit(call: ApiCall, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Store a group's offsets, if the member may."""
    code = 0
    try:
        _check_commit(call, request)
    except ApiError as error:
        code = error.code
    entries: list[tuple[tuple[str, int], Committed]] = []
    reply = OffsetCommitResponse(topics=[_commit_topic(call, topic, code, entries) for topic in request.topics])
    if entries:
        call.cluster.offsets.commit(request.group_id, entries)
    return reply


def _check_commit(call: ApiCall, request: OffsetCommitRequest) -> None:
    call.check_coordinator(request.group_id)
    group, generation = call.cluster.groups.get(request.group_id), request.generation_id_or_member_epoch
    planned = call.cluster.planned_groups.get(request.group_id)
    if call.cluster.share_groups.get(request.group_id) is not None:
        raise ApiError(KafkaError.GROUP_ID_NOT_FOUND)
    if planned is not None:
        planned.check_commit(request.member_id, generation, list(_places(call, request)), call.version)
    elif group is not None:
        group.check_commit(request.member_id, request.group_instance_id, generation, call.now)
    elif generation >= 0:
        is_known = call.cluster.offsets.knows(request.group_id)
        raise ApiError(KafkaError.UNKNOWN_MEMBER_ID if is_known else KafkaError.ILLEGAL_GENERATION)


def _places(call: ApiCall, request: OffsetCommitRequest) -> Iterator[tuple[Uuid, int]]:
    """The partitions of a commit by topic id, as far as there are such topics."""
    for data in request.topics:
        try:
            topic = call.topic(data.name, data.topic_id, _IDS_FROM)
        except ApiError:
            continue
        for part in data.partitions:
            if 0 <= part.partition_index < len(topic.partitions):
                yield topic.id, part.partition_index


def _commit_topic(
    call: ApiCall, data: OffsetCommitRequestTopic, code: int, entries: list[tuple[tuple[str, int], Committed]]
) -> OffsetCommitResponseTopic:
    count, name, missing = 0, data.name, KafkaError.UNKNOWN_TOPIC_OR_PART
    try:
        topic = call.topic(data.name, data.topic_id, _IDS_FROM)
        count, name = len(topic.partitions), topic.name
    except ApiError as error:
        missing = error.code
    parts = []
    for part in data.partitions:
        part_code, metadata = code, part.committed_metadata or ""
        if not 0 <= part.partition_index < count:
            part_code = missing
        elif not part_code and len(metadata) > MAX_METADATA_BYTES:
            part_code = KafkaError.OFFSET_METADATA_TOO_LARGE
        elif not part_code:
            committed = Committed(part.committed_offset, part.committed_leader_epoch, metadata)
            entries.append(((name, part.partition_index), committed))
        parts.append(OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=part_code))
    return OffsetCommitResponseTopic(name=data.name, topic_id=data.topic_id, partitions=parts)


def offset_fetch(call: ApiCall, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """A group's offsets; from version 8 on those of several groups."""
    if call.version >= _BATCHED_FETCH_FROM:
        return OffsetFetchResponse(groups=[_fetch_group(call, each, request.require_stable) for each in request.groups])
    topics = None if request.topics is None else [
        OffsetFetchRequestTopics(name=each.name, topic_id=ZERO_UUID, partition_indexes=each.partition_indexes)
        for each in request.topics]
    found = _fetch_group(call, OffsetFetchRequestGroup(group_id=request.group_id, topics=topics),
                         request.require_stable)
    return OffsetFetchResponse(error_code=found.error_code, topics=[
        OffsetFetchResponseTopic(name=topic.name, partitions=[
            OffsetFetchResponsePartition(
                partition_index=part.partition_index, committed_offset=part.committed_offset,
                committed_leader_epoch=part.committed_leader_epoch, metadata=part.metadata,
                error_code=part.error_code or found.error_code or _of_no_offset(call, part))
            for part in topic.partitions])
        for topic in found.topics])


def _of_no_offset(call: ApiCall, part: OffsetFetchResponsePartitions) -> int:
    """In version 0, that of offsets in ZooKeeper, an offset that was never committed is an error."""
    return KafkaError.UNKNOWN_TOPIC_OR_PART if call.version == 0 and part.committed_offset < 0 else 0


def _fetch_group(call: ApiCall, wanted: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
    code = 0
    planned = call.cluster.planned_groups.get(wanted.group_id)
    try:
        call.check_coordinator(wanted.group_id)
        if planned is not None:
            planned.check_fetch(wanted.member_id, wanted.member_epoch)
    except ApiError as error:
        code = error.code
        if code != KafkaError.NOT_COORDINATOR:
            return OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=code, topics=[])
    offsets = call.cluster.offsets.fetch(wanted.group_id) if not code else {}
    unstable = call.cluster.offsets.unstable(wanted.group_id) if require_stable and not code else set()
    topics = wanted.topics if wanted.topics is not None else list(_all_topics(call, offsets))
    return OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=code,
                                    topics=[_fetch_topic(call, each, offsets, unstable) for each in topics])


def _all_topics(call: ApiCall, offsets: dict[tuple[str, int], Committed]) -> Iterator[OffsetFetchRequestTopics]:
    for name in dict.fromkeys(topic for topic, _ in offsets):
        topic = call.cluster.catalog.topics.get(name)
        yield OffsetFetchRequestTopics(name=name, topic_id=topic.id if topic else ZERO_UUID,
                                       partition_indexes=[index for topic_name, index in offsets if topic_name == name])


def _fetch_topic(
    call: ApiCall, wanted: OffsetFetchRequestTopics, offsets: dict[tuple[str, int], Committed],
    unstable: set[tuple[str, int]]
) -> OffsetFetchResponseTopics:
    name, code = wanted.name, 0
    if call.version >= _IDS_FROM:
        try:
            name = call.topic(wanted.name, wanted.topic_id, _IDS_FROM).name
        except ApiError as error:
            code = error.code
    found = [(index, _NONE if (name, index) in unstable else offsets.get((name, index), _NONE))
             for index in wanted.partition_indexes]
    return OffsetFetchResponseTopics(name=name, topic_id=wanted.topic_id, partitions=[
        OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=each.offset, committed_leader_epoch=each.leader_epoch,
            metadata=each.metadata,
            error_code=KafkaError.UNSTABLE_OFFSET_COMMIT if (name, index) in unstable else code)
        for index, each in found])


def offset_delete(call: ApiCall, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Forget offsets of a group, but for topics that its members read (KIP-496)."""
    cluster = call.cluster
    group, planned = cluster.groups.get(request.group_id), cluster.planned_groups.get(request.group_id)
    try:
        _check_name(call, request.group_id)
        if group is None and planned is None and not cluster.offsets.knows(request.group_id):
            raise ApiError(KafkaError.GROUP_ID_NOT_FOUND)
        if group is not None and group.members and group.protocol_type != _CONSUMERS:
            raise ApiError(KafkaError.NON_EMPTY_GROUP)
    except ApiError as error:
        return OffsetDeleteResponse(error_code=error.code, topics=[])
    in_use = group.subscribed_topics() if group is not None else \
        planned.subscribed_topics() if planned is not None else set()
    reply = OffsetDeleteResponse(error_code=0, topics=[])
    gone: list[tuple[str, int]] = []
    for wanted in request.topics:
        topic = cluster.catalog.topics.get(wanted.name)
        count = len(topic.partitions) if topic else 0
        parts = []
        for part in wanted.partitions:
            code = 0 if 0 <= part.partition_index < count else KafkaError.UNKNOWN_TOPIC_OR_PART
            if not code and wanted.name in in_use:
                code = KafkaError.GROUP_SUBSCRIBED_TO_TOPIC
            if not code:
                gone.append((wanted.name, part.partition_index))
            parts.append(OffsetDeleteResponsePartition(partition_index=part.partition_index, error_code=code))
        reply.topics.append(OffsetDeleteResponseTopic(name=wanted.name, partitions=parts))
    cluster.offsets.forget(request.group_id, gone)
    return reply


def describe_groups(call: ApiCall, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """State and members of groups."""
    reply = DescribeGroupsResponse(groups=[_described(call, group_id) for group_id in request.groups])
    for each in reply.groups:
        if request.include_authorized_operations and not each.error_code:
            each.authorized_operations = GROUP_OPERATIONS
    return reply


def _described(call: ApiCall, group_id: str) -> DescribedGroup:
    blank = DescribedGroup(error_code=0, group_id=group_id, group_state="Dead", protocol_type="", protocol_data="",
                           members=[])
    try:
        call.check_coordinator(group_id)
    except ApiError as error:
        blank.error_code = error.code
        return blank
    group = call.cluster.groups.get(group_id)
    if group is None:
        if call.cluster.kind_of(group_id) in _NOT_CLASSIC:
            if call.version >= _NOT_FOUND_FROM:
                blank.error_code = KafkaError.GROUP_ID_NOT_FOUND
                blank.error_message = f"Group {group_id} is not a classic group."
        elif call.cluster.offsets.knows(group_id):
            blank.group_state = GroupState.EMPTY.value
        elif call.version >= _NOT_FOUND_FROM:
            blank.error_code = KafkaError.GROUP_ID_NOT_FOUND
            blank.error_message = f"Group {group_id} not found."
        return blank
    blank.group_state, blank.protocol_type = group.state.value, group.protocol_type
    # What the members can and what they were given is shown once it is settled.
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    blank.protocol_data = protocol or ""
    blank.members = _described_members(group, protocol)
    return blank


def _described_members(group: Group, protocol: str | None) -> list[DescribedGroupMember]:
    return [
        DescribedGroupMember(
            member_id=each.id, group_instance_id=each.instance_id, client_id=each.client_id,
            client_host=f"/{each.client_host}", member_metadata=each.protocols.get(protocol or "", b""),
            member_assignment=each.assignment if protocol else b"")
        for each in group.members.values()
    ]


def list_groups(call: ApiCall, request: ListGroupsRequest) -> ListGroupsResponse:
    """The groups that this node coordinates, with members or with offsets only."""
    cluster = call.cluster
    listed = {group_id: ListedGroup(group_id=group_id, protocol_type="", group_state=GroupState.EMPTY.value,
                                    group_type="classic") for group_id in cluster.offsets.groups()}
    listed |= {group.id: ListedGroup(group_id=group.id, protocol_type=group.protocol_type,
                                     group_state=group.state.value, group_type="classic")
               for group in cluster.groups.all()}
    listed |= {planned.id: ListedGroup(group_id=planned.id, protocol_type=_CONSUMERS, group_state=planned.state,
                                       group_type="consumer") for planned in cluster.planned_groups.all()}
    listed |= {sharing.id: ListedGroup(group_id=sharing.id, protocol_type=_SHARING, group_state=sharing.state,
                                       group_type=_SHARING) for sharing in cluster.share_groups.all()}
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    return ListGroupsResponse(error_code=0, groups=[
        each for each in listed.values()
        if (node := cluster.coordinator(each.group_id)) is not None and node.id == call.node_id
        and (not states or each.group_state.lower() in states) and (not types or each.group_type in types)])


def delete_groups(call: ApiCall, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Forget groups without members, and their offsets."""
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=group_id, error_code=_delete(call, group_id))
                                         for group_id in request.groups_names])


def _delete(call: ApiCall, group_id: str) -> int:
    cluster = call.cluster
    try:
        call.check_coordinator(group_id)
    except ApiError as error:
        return error.code
    found = (cluster.groups.get(group_id), cluster.planned_groups.get(group_id), cluster.share_groups.get(group_id))
    if any(group is not None and group.members for group in found):
        return KafkaError.NON_EMPTY_GROUP
    if not cluster.kind_of(group_id):
        return KafkaError.GROUP_ID_NOT_FOUND
    cluster.groups.remove(group_id)
    cluster.planned_groups.remove(group_id)
    cluster.share_groups.remove(group_id)
    cluster.offsets.forget_group(group_id)
    return 0


SERVES = (
    ServedApi(FindCoordinatorRequest, find_coordinator),
    ServedApi(JoinGroupRequest, join_group,
              "Sessions may be as short as 100 ms, unless the broker's settings say otherwise."),
    ServedApi(SyncGroupRequest, sync_group),
    ServedApi(HeartbeatRequest, heartbeat),
    ServedApi(LeaveGroupRequest, leave_group),
    ServedApi(OffsetCommitRequest, offset_commit,
              "Version 0 commits to the group, not to ZooKeeper. Commits never expire."),
    ServedApi(OffsetFetchRequest, offset_fetch),
    ServedApi(DescribeGroupsRequest, describe_groups),
    ServedApi(ListGroupsRequest, list_groups),
    ServedApi(DeleteGroupsRequest, delete_groups),
    ServedApi(OffsetDeleteRequest, offset_delete),
)
