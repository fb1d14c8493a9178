"""What administrators of topics and clusters ask, in all versions: for `test_broker_answers_as_kafka_does`."""

from collections.abc import Mapping, Sequence

from headrace.wire.messages.admin.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ElectLeadersTopic,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.admin.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from headrace.wire.messages.cluster.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.schema import ZERO_UUID, Request
from tests.support.conversations_records import store
from tests.support.raw_client import batch_of
from tests.support.talk import Conversation, Talk, only

NOWHERE = ZERO_UUID.__class__(int=77)


def new(name: str, partitions: int = 1, factor: int = 1, *, assignments: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str | None] | None = None) -> CreatableTopic:
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=factor,
        assignments=[CreatableReplicaAssignment(partition_index=index, broker_ids=list(nodes))
                     for index, nodes in (assignments or {}).items()],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()])


def create(*topics: CreatableTopic, check: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=5000, validate_only=check)


def topics_are_created(talk: Talk) -> None:
    for number, topic in enumerate((
            new("", 2), new("", -1, -1), new("", 1, -1), new("", -1, 1), new("", -1, -1, assignments={0: [1], 1: [1]}),
            new("", configs={"retention.ms": "5000", "cleanup.policy": "compact"}))):
        topic.name = f"{talk.name}-{number}"
        if talk.version >= 1:
            talk.ask(create(topic, check=True))
        talk.ask(create(topic))
        talk.settle(topic.name, max(topic.num_partitions, len(topic.assignments), 1))
        talk.ask(create(topic))
        if talk.version >= 1:
            talk.ask(create(topic, check=True))
    talk.ask(create())


def names_that_differ_in_dots_and_underscores(talk: Talk) -> None:
    dotted, underscored, mixed = (f"{talk.name}{end}" for end in (".a.b", "_a_b", ".a_b"))
    talk.ask(create(new(dotted), new(underscored)))
    talk.settle(dotted, 1)
    talk.settle(underscored, 1)
    talk.ask(create(new(dotted), new(mixed)))
    talk.ask(create(new(mixed)))


def topics_that_cannot_be(talk: Talk) -> None:
    name = talk.name
    for topic in (
            new(""), new("."), new(".."), new("a b"), new("é"), new("x" * 250), new("a/b"),
            new(name, 0), new(name, -2), new(name, 1, 0), new(name, 1, -2), new(name, 1, 2), new(name, 1, 99),
            new(name, configs={"nonsense": "1"}), new(name, configs={"retention.ms": "soon"}),
            new(name, configs={"retention.ms": None}), new(name, configs={"cleanup.policy": "burn"}),
            new(name, configs={"segment.bytes": "-5"}), new(name, configs={"max.message.bytes": "99999999999"}),
            new(name, configs={"preallocate": "maybe"}), new(name, configs={"compression.type": "zip"}),
            new(name, configs={"min.cleanable.dirty.ratio": "7"}), new(name, configs={"min.insync.replicas": "0"}),
            new(name, -1, -1, assignments={0: [99]}), new(name, -1, -1, assignments={0: []}),
            new(name, -1, -1, assignments={1: [1]}), new(name, -1, -1, assignments={0: [1, 1]}),
            new(name, -1, -1, assignments={0: [1], 2: [1]}), new(name, 3, 1, assignments={0: [1]}),
            new(name, 1, -1, assignments={0: [1]}), new(name, -1, 1, assignments={0: [1]})):
        talk.ask(create(topic))
    if talk.version >= 1:
        talk.ask(create(new(name, 0), check=True))
    talk.ask(create(new(f"{name}-a"), new(f"{name}-twice"), new(f"{name}-twice", 2)))


def topics_are_deleted(talk: Talk) -> None:
    talk.topic()
    if talk.version < 6:
        talk.ask(DeleteTopicsRequest(topic_names=["nowhere"], timeout_ms=5000))
        talk.ask(DeleteTopicsRequest(topic_names=[], timeout_ms=5000))
        talk.ask(DeleteTopicsRequest(topic_names=[talk.name, "nowhere"], timeout_ms=5000))
        talk.settle(talk.name, 0)
        talk.ask(DeleteTopicsRequest(topic_names=[talk.name], timeout_ms=5000))
        return
    other = talk.topic("-b")
    for topics in ([("nowhere", ZERO_UUID)], [(None, NOWHERE)], [(None, ZERO_UUID)],
                   [(talk.name, talk.id_of(talk.name))], [(talk.name, ZERO_UUID)] * 2, [],
                   [(None, talk.id_of(other)), (talk.name, ZERO_UUID)]):
        talk.ask(DeleteTopicsRequest(timeout_ms=5000, topics=[
            DeleteTopicState(name=name, topic_id=identity) for name, identity in topics]))


@only("4.4")  # earlier ones answer for each of them
def topics_are_deleted_twice_at_once(talk: Talk) -> None:
    talk.topic()
    if talk.version < 6:
        talk.ask(DeleteTopicsRequest(topic_names=[talk.name] * 2, timeout_ms=5000))


def more(name: str, count: int, assignments: list[list[int]] | None = None, *, check: bool = False,
         ) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(timeout_ms=5000, validate_only=check, topics=[CreatePartitionsTopic(
        name=name, count=count, assignments=None if assignments is None else [
            CreatePartitionsAssignment(broker_ids=nodes) for nodes in assignments])])


def partitions_are_added(talk: Talk) -> None:
    name = talk.topic(partitions=2)
    for count in (2, 1, 0, -1):
        talk.ask(more(name, count))
    talk.ask(more("nowhere", 3))
    talk.ask(more(name, 3, check=True))
    talk.ask(more(name, 3, [[99]]))
    talk.ask(more(name, 3, [[]]))
    talk.ask(more(name, 3, [[1], [1]]))
    talk.ask(more(name, 3, [[1, 1]]))
    talk.ask(more(name, 4, [[1]]))
    talk.ask(more(name, 3, []))
    talk.settle(name, 2)
    talk.ask(more(name, 3, [[1]]))
    talk.settle(name, 3)
    talk.ask(more(name, 5))
    talk.settle(name, 5)
    talk.ask(CreatePartitionsRequest(timeout_ms=1000, topics=[]))
    request = more(name, 6)
    request.topics *= 2
    talk.ask(request)


def metadata_of_topics(talk: Talk) -> None:
    def metadata(*names: str, operations: bool = False) -> MetadataRequest:
        return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names],
                               allow_auto_topic_creation=talk.version < 4,
                               include_topic_authorized_operations=operations)

    name = talk.topic(partitions=3)
    other = talk.topic("-b")
    talk.ask(metadata(name), only_mine=True)
    talk.ask(metadata(name, other, name), only_mine=True)
    if talk.version >= 1:
        talk.ask(MetadataRequest(topics=None), only_mine=True)
        talk.ask(metadata(), only_mine=True)
    else:
        talk.ask(MetadataRequest(topics=[]), only_mine=True)
    if talk.version >= 4:
        for each in (f"{name}-none", "a b", "", "x" * 250):
            talk.ask(metadata(each))
    if talk.version >= 8:
        talk.ask(metadata(name, operations=True))
    if 8 <= talk.version <= 10:
        request = metadata(name)
        request.include_cluster_authorized_operations = True
        talk.ask(request)
    if talk.version >= 12:
        for identity in (talk.id_of(name), NOWHERE):
            talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=identity)]))
        talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=other, topic_id=talk.id_of(name))]))


def names_that_cannot_be_made(talk: Talk) -> None:
    for name in ("a b", "x" * 250, ".", ""):
        talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]))


def topics_page_by_page(talk: Talk) -> None:
    first, second = talk.topic("-a", partitions=3), talk.topic("-b", partitions=2)

    def page(*names: str, limit: int = 100, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
        return DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit,
            cursor=None if cursor is None else DescribeTopicPartitionsCursor(topic_name=cursor[0],
                                                                             partition_index=cursor[1]))

    for limit in (100, 1, 3, 4, 5, 0):
        talk.ask(page(first, second, limit=limit))
        talk.ask(page(second, first, limit=limit, cursor=(first, 1)))
        talk.ask(page(second, first, limit=limit, cursor=(second, 0)))
    talk.ask(page("nowhere", first, second))
    talk.ask(page(first, "nowhere", limit=3))
    talk.ask(page(first, cursor=(first, 9)))
    talk.ask(page(first, cursor=(first, -1)))
    talk.ask(page("a b"))


def the_cluster_is_described(talk: Talk) -> None:
    talk.ask(DescribeClusterRequest())
    talk.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    if talk.version >= 1:
        talk.ask(DescribeClusterRequest(endpoint_type=7))
    if talk.version >= 2:
        talk.ask(DescribeClusterRequest(include_fenced_brokers=True))


def directories_are_described(talk: Talk) -> None:
    name = talk.topic(partitions=2)
    store(talk, batch_of([b"a", b"b"]))
    for partitions in ([0, 1], [0, 9], []):
        talk.ask(DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=name, partitions=partitions)]))
    talk.ask(DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="nowhere", partitions=[0])]))
    talk.ask(DescribeLogDirsRequest(topics=[]))


def leaders_are_elected(talk: Talk) -> None:
    name = talk.topic(partitions=2)
    for kind in (0, 1) if talk.version >= 1 else (0,):
        for topic, partitions in ((name, [0, 1]), (name, [7]), ("nowhere", [0]), (name, [])):
            talk.ask(ElectLeadersRequest(election_type=kind, timeout_ms=5000, topic_partitions=[
                ElectLeadersTopic(topic=topic, partitions=partitions)]))
        talk.ask(ElectLeadersRequest(election_type=kind, timeout_ms=5000, topic_partitions=[]))
        talk.ask(ElectLeadersRequest(election_type=kind, timeout_ms=5000, topic_partitions=None), only_mine=True)


def reassignments_are_listed(talk: Talk) -> None:
    name = talk.topic()
    talk.ask(ListPartitionReassignmentsRequest(timeout_ms=5000, topics=None))
    for topic, partitions in ((name, [0]), (name, [5]), ("nowhere", [0])):
        talk.ask(ListPartitionReassignmentsRequest(timeout_ms=5000, topics=[
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=partitions)]))


def replicas_are_put_elsewhere(talk: Talk) -> None:
    name = talk.topic()
    node = talk.call(DescribeClusterRequest(), 0).brokers[0].broker_id
    for topic, index, replicas in ((name, 0, [node]), (name, 0, None), (name, 0, []), (name, 0, [node, node]),
                                   (name, 0, [node, node + 1]), (name, 0, [-1]), (name, 7, [node]), (name, -1, None),
                                   ("nowhere", 0, [node])):
        talk.ask(AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=[ReassignableTopic(
            name=topic, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)])]))
    if talk.version >= 1:
        talk.ask(AlterPartitionReassignmentsRequest(allow_replication_factor_change=False, topics=[ReassignableTopic(
            name=name, partitions=[ReassignablePartition(partition_index=0, replicas=[node])])]))
    talk.ask(AlterPartitionReassignmentsRequest(topics=[]))


def directories_that_are_not_there(talk: Talk) -> None:
    name = talk.topic()
    for topic, index in ((name, 0), (name, 9), ("nowhere", 0)):
        talk.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/nowhere", topics=[
            AlterReplicaLogDirTopic(name=topic, partitions=[index])])]))
    talk.ask(AlterReplicaLogDirsRequest(dirs=[]))


def replicas_that_stay_in_their_directory(talk: Talk) -> None:
    name = talk.topic()
    (found,) = talk.call(DescribeLogDirsRequest(topics=[]), 1).results
    for topic, index in ((name, 0), (name, 9), ("nowhere", 0)):
        talk.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=found.log_dir, topics=[
            AlterReplicaLogDirTopic(name=topic, partitions=[index])])]))


def versions_with_names_that_cannot_be(talk: Talk) -> None:
    if talk.version >= 3:
        for name, version in (("", ""), ("a b", "1"), ("fine", "1.0"), ("-x", "1"), ("x", "1-"), ("x_y", "1")):
            reply = talk.call(ApiVersionsRequest(client_software_name=name, client_software_version=version),
                              talk.version)
            talk.said.append(reply.error_code)
    talk.said.append(talk.call(ApiVersionsRequest(), talk.version).error_code)


CONVERSATIONS: dict[type[Request], list[Conversation]] = {
    CreateTopicsRequest: [topics_are_created, names_that_differ_in_dots_and_underscores, topics_that_cannot_be],
    DeleteTopicsRequest: [topics_are_deleted, topics_are_deleted_twice_at_once],
    CreatePartitionsRequest: [partitions_are_added],
    MetadataRequest: [metadata_of_topics, names_that_cannot_be_made],
    DescribeTopicPartitionsRequest: [topics_page_by_page],
    DescribeClusterRequest: [the_cluster_is_described],
    DescribeLogDirsRequest: [directories_are_described],
    ElectLeadersRequest: [leaders_are_elected],
    AlterPartitionReassignmentsRequest: [replicas_are_put_elsewhere],
    AlterReplicaLogDirsRequest: [directories_that_are_not_there, replicas_that_stay_in_their_directory],
    ListPartitionReassignmentsRequest: [reassignments_are_listed],
    ApiVersionsRequest: [versions_with_names_that_cannot_be],
}
