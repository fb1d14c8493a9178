"""Share groups as values: what is asked survives the wire, each partition and topic has its own error."""

from headrace.errors import KafkaError
from headrace.machines.admin import share_group_requests as admin
from headrace.types.groups import ShareGroupDescription, SharePartitionOffset
from headrace.types.records import TopicPartition
from headrace.wire.messages.groups import share_groups as wire
from headrace.wire.messages.groups.consumer_groups import DescribedAssignment, DescribedTopicPartitions
from tests.support.travelling import travels

A0 = TopicPartition("a", 0)


def test_a_described_group_has_its_members_partitions() -> None:
    assert travels(admin.describe_share_groups(["g"], True), 1, 1).include_authorized_operations
    member = wire.DescribedShareMember(member_id="m", client_id="c", client_host="/1", assignment=DescribedAssignment(
        topic_partitions=[DescribedTopicPartitions(topic_name="a", partitions=[0])]))
    found = admin.share_description(wire.DescribedShareGroup(
        group_id="g", group_state="Stable", assignor_name="simple", members=[member]), None)
    assert isinstance(found, ShareGroupDescription)
    assert found.members[0].assignment.topic_partitions == [A0]
    assert (found.state, found.assignor) == ("Stable", "simple")


def test_a_group_that_must_not_be_seen_names_the_right() -> None:
    found = admin.share_description(wire.DescribedShareGroup(group_id="g", error_code=30), None)
    assert isinstance(found, KafkaError)
    assert found.str().endswith('this needs DESCRIBE on group "g"')


def test_begins_are_listed_with_what_is_left() -> None:
    assert travels(admin.list_share_offsets("g", None), 0, 1).groups[0].topics is None
    assert travels(admin.list_share_offsets("g", [A0]), 0, 1).groups[0].topics[0].partitions == [0]
    parts = [wire.DescribeShareGroupOffsetsResponsePartition(partition_index=0, start_offset=4, lag=2)]
    group = wire.DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[
        wire.DescribeShareGroupOffsetsResponseTopic(topic_name="a", partitions=parts)])
    reply = wire.DescribeShareGroupOffsetsResponse(groups=[group])
    assert admin.read_share_offsets(reply, "g") == {A0: SharePartitionOffset(4, 2)}
    group.error_code = 69
    assert admin.read_share_offsets(reply, "g") == KafkaError.GROUP_ID_NOT_FOUND


def test_begins_are_set_and_topics_forgotten() -> None:
    assert travels(admin.alter_share_offsets("g", {A0: 7}), 0, 0).topics[0].partitions[0].start_offset == 7
    altered = wire.AlterShareGroupOffsetsResponse(responses=[wire.AlterShareGroupOffsetsResponseTopic(
        topic_name="a", partitions=[wire.AlterShareGroupOffsetsResponsePartition(partition_index=0)])])
    assert admin.read_altered_share_offsets(altered, "g") == {A0: None}
    assert travels(admin.delete_share_offsets("g", ["a"]), 0, 0).topics[0].topic_name == "a"
    deleted = wire.DeleteShareGroupOffsetsResponse(responses=[
        wire.DeleteShareGroupOffsetsResponseTopic(topic_name="a", error_code=3)])
    assert admin.read_deleted_share_offsets(deleted, "g") == {"a": KafkaError.UNKNOWN_TOPIC_OR_PART}
    assert admin.read_deleted_share_offsets(
        wire.DeleteShareGroupOffsetsResponse(error_code=68), "g") == KafkaError.NON_EMPTY_GROUP
