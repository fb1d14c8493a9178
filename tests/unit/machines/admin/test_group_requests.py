"""Groups as values: both kinds are described alike, and others are left out."""

from headrace.errors import KafkaError
from headrace.machines.admin import group_requests as admin
from headrace.machines.groups.assignors import write_assignment
from headrace.types.acls import AclOperation
from headrace.types.cluster import ConsumerGroupState, ConsumerGroupType, Node
from headrace.types.groups import ConsumerGroupDescription, ConsumerGroupListing
from headrace.types.records import TopicPartition
from headrace.wire.messages.groups import classic_groups as classic
from headrace.wire.messages.groups import consumer_groups as planned
from tests.support.travelling import travels

HERE = Node(1, "h", 9092)


def test_states_and_types_are_asked_for_by_their_names() -> None:
    request = travels(admin.list_groups({ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupState.EMPTY},
                                        {ConsumerGroupType.CONSUMER}), 5, 5)
    assert (request.states_filter, request.types_filter) == (["Empty", "PreparingRebalance"], ["consumer"])


def test_groups_that_do_not_consume_are_left_out() -> None:
    def listed(**given: str) -> ConsumerGroupListing | None:
        return admin.listing(classic.ListedGroup(group_id="g", **given))

    assert listed(protocol_type="consumer", group_state="Stable", group_type="Consumer") == ConsumerGroupListing(
        "g", False, ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
    assert listed(protocol_type="") == ConsumerGroupListing("g", True)
    assert listed(protocol_type="consumer", group_state="New", group_type="classic") == ConsumerGroupListing(
        "g", False, ConsumerGroupState.UNKNOWN, ConsumerGroupType.CLASSIC)
    assert listed(protocol_type="connect") is None
    assert listed(protocol_type="share", group_type="Share") is None


def test_a_classic_group_has_its_members_partitions() -> None:
    assert travels(admin.describe_classic(["g"], True), 3, 5).include_authorized_operations
    member = classic.DescribedGroupMember(member_id="m", group_instance_id="i", client_id="c", client_host="/1",
                                          member_assignment=write_assignment([("t", 0), ("t", 2)]))
    other = classic.DescribedGroupMember(member_id="n", client_id="c", client_host="/1", member_assignment=b"\xff")
    group = classic.DescribedGroup(group_id="g", group_state="CompletingRebalance", protocol_type="consumer",
                                   protocol_data="range", members=[member, other], authorized_operations=1 << 3)
    found = admin.classic_description(group, HERE)
    assert isinstance(found, ConsumerGroupDescription)
    assert found.members[0].assignment.topic_partitions == [TopicPartition("t", 0), TopicPartition("t", 2)]
    assert (found.members[0].group_instance_id, found.members[0].target_assignment) == ("i", None)
    assert found.members[1].assignment.topic_partitions == []  # of another protocol
    assert (found.state, found.type, found.partition_assignor, found.coordinator, found.authorized_operations) == (
        ConsumerGroupState.COMPLETING_REBALANCING, ConsumerGroupType.CLASSIC, "range", HERE, [AclOperation.READ])


def test_a_planned_group_has_what_its_members_shall_have_too() -> None:
    def assigned(number: int) -> planned.DescribedAssignment:
        return planned.DescribedAssignment(topic_partitions=[
            planned.DescribedTopicPartitions(topic_name="t", partitions=[number])])

    group = planned.DescribedConsumerGroup(
        group_id="g", group_state="Reconciling", assignor_name="uniform", members=[planned.DescribedConsumer(
            member_id="m", client_id="c", client_host="/1", assignment=assigned(0), target_assignment=assigned(1))])
    found = admin.planned_description(group, HERE)
    assert isinstance(found, ConsumerGroupDescription)
    assert found.members[0].assignment.topic_partitions == [TopicPartition("t", 0)]
    assert found.members[0].target_assignment is not None
    assert found.members[0].target_assignment.topic_partitions == [TopicPartition("t", 1)]
    assert (found.state, found.type) == (ConsumerGroupState.UNKNOWN, ConsumerGroupType.CONSUMER)
    assert travels(admin.describe_planned(["g"], False), 0, 1).group_ids == ["g"]


def test_a_right_that_is_missing_is_named_with_the_group() -> None:
    found = admin.classic_description(classic.DescribedGroup(group_id="g", error_code=30), None)
    assert isinstance(found, KafkaError)
    assert found.str().endswith('this needs DESCRIBE on group "g"')
    deleted = admin.read_deleted_groups(classic.DeleteGroupsResponse(results=[
        classic.DeletableGroupResult(group_id="g", error_code=30), classic.DeletableGroupResult(group_id="h")]))
    assert deleted["g"] is not None
    assert "DELETE on group" in deleted["g"].str()
    assert deleted["h"] is None


def test_members_are_put_out_by_instance_or_by_member_id() -> None:
    members = travels(admin.remove_members("g", ["i"], ["m"], "why"), 5, 5).members
    assert [(m.group_instance_id, m.member_id, m.reason) for m in members] == [("i", "", "why"), (None, "m", "why")]
    reply = classic.LeaveGroupResponse(members=[
        classic.MemberResponse(member_id="", group_instance_id="i"),
        classic.MemberResponse(member_id="m", group_instance_id=None, error_code=25)])
    assert admin.read_removed(reply, "g") == {"i": None, "m": KafkaError.UNKNOWN_MEMBER_ID}
