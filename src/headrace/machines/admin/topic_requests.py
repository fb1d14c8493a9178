"""Requests that make, grow, delete and describe topics, and what their replies mean: pure functions.

A reply is read into a dict from what was asked for to its result, or to the `KafkaError` that it ended with.
Read next: `client.admin.topic_calls`, which sends them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from headrace.errors import KafkaError, KafkaException
from headrace.interpreter import uncollected
from headrace.machines.admin.admin_results import NodesById, failure, milliseconds, operations, uuid_of
from headrace.slotted import later
from headrace.types.admin import NewPartitions, NewTopic, TopicDescription
from headrace.types.cluster import Node, TopicPartitionInfo
from headrace.types.records import Uuid
from headrace.wire.messages.admin import topics as wire
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from headrace.wire.schema import Request

__all__ = [
    "begun",
    "LAST_DELETE_BY_NAME",
    "create_partitions",
    "create_topics",
    "create_topics_for_version",
    "delete_topics",
    "describe_topics",
    "read_created",
    "read_deleted_topics",
    "read_described_topics",
    "read_new_partitions",
]
_new = object.__new__
_Makers = Mapping[str, Callable[[MetadataResponseTopic], Any]]
_by_number = attrgetter("partition_index")

_DEFAULTS_FROM = 4
"""From this version of CreateTopics on brokers fill in partitions and replicas that are left out (KIP-464)."""
LAST_DELETE_BY_NAME = 5
"""The last version of DeleteTopics that takes names alone."""


def create_topics(topics: Sequence[NewTopic], timeout_s: float, validate_only: bool) -> wire.CreateTopicsRequest:
    """Ask for new topics, or with `validate_only` whether they could be created."""
    return wire.CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics], timeout_ms=milliseconds(timeout_s), validate_only=validate_only
    )


def create_topics_for_version(request: Request, version: int) -> Request:
    """The request itself.

    Raises:
        KafkaException: `_UNSUPPORTED_FEATURE`: it leaves to the brokers what those before Kafka 2.4 want to be told.
    """
    assert isinstance(request, wire.CreateTopicsRequest)
    for topic in request.topics:
        left_out = -1 in (topic.num_partitions, topic.replication_factor) and not topic.assignments
        if left_out and version < _DEFAULTS_FROM:
            raise KafkaException(KafkaError(
                KafkaError._UNSUPPORTED_FEATURE,
                f'topic "{topic.name}": the brokers are older than Kafka 2.4 and have no default for num_partitions '
                "and replication_factor (KIP-464): give both"))
    return request


def _creatable(topic: NewTopic) -> wire.CreatableTopic:
    assignments = [
        wire.CreatableReplicaAssignment(partition_index=partition, broker_ids=brokers)
        for partition, brokers in enumerate(topic.replica_assignment or ())
    ]
    return wire.CreatableTopic(
        name=topic.topic,
        num_partitions=-1 if assignments else topic.num_partitions,
        replication_factor=-1 if assignments else topic.replication_factor,
        assignments=assignments,
        configs=[wire.CreatableTopicConfig(name=name, value=None if value is None else _text(value))
                 for name, value in (topic.config or {}).items()],
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_created(reply: wire.CreateTopicsResponse) -> dict[str, KafkaError | None]:
    """How the creation of each topic ended."""
    return {topic.name: _ended(topic.name, topic, "CREATE on the topic or on the cluster") for topic in reply.topics}


def delete_topics(names: Sequence[str], timeout_s: float) -> wire.DeleteTopicsRequest:
    """Ask to delete topics by name: the form of versions up to 5."""
    return wire.DeleteTopicsRequest(topics=[], topic_names=list(names), timeout_ms=milliseconds(timeout_s))


def read_deleted_topics(reply: wire.DeleteTopicsResponse) -> dict[str, KafkaError | None]:
    """How the deletion of each topic ended."""
    return {str(topic.name): _ended(str(topic.name), topic, "DELETE on the topic") for topic in reply.responses}


def create_partitions(
    additions: Sequence[NewPartitions], timeout_s: float, validate_only: bool
) -> wire.CreatePartitionsRequest:
    """Ask for more partitions."""
    return wire.CreatePartitionsRequest(
        topics=[
            wire.CreatePartitionsTopic(
                name=new.topic,
                count=new.new_total_count,
                assignments=[wire.CreatePartitionsAssignment(broker_ids=b) for b in new.replica_assignment or ()]
                or None,
            )
            for new in additions
        ],
        timeout_ms=milliseconds(timeout_s),
        validate_only=validate_only,
    )


def read_new_partitions(reply: wire.CreatePartitionsResponse) -> dict[str, KafkaError | None]:
    """How the addition of partitions ended for each topic."""
    return {topic.name: _ended(topic.name, topic, "ALTER on the topic") for topic in reply.results}


def begun(read: Callable[[Any], dict[str, KafkaError | None]]) -> Callable[[Any], dict[str, KafkaError | None]]:
    """A reader of replies to requests that do not wait for the work: that it goes on is no failure."""
    def ended(reply: Any) -> dict[str, KafkaError | None]:
        return {name: None if error is not None and error.code() == KafkaError.REQUEST_TIMED_OUT else error
                for name, error in read(reply).items()}

    return ended


@uncollected
def describe_topics(names: Sequence[str], authorized_operations: bool) -> MetadataRequest:
    """Ask what topics are, and with `authorized_operations` what the client may do with them."""
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names],
                           allow_auto_topic_creation=False, include_topic_authorized_operations=authorized_operations)


def read_described_topics(reply: MetadataResponse) -> dict[str, TopicDescription | KafkaError]:
    """Each topic by name."""
    nodes = NodesById({b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in reply.brokers})
    makers: _Makers = {"topic_id": _topic_id, "partitions": partial(_partitions, nodes)}
    found: dict[str, TopicDescription | KafkaError] = {}
    for topic in reply.topics:
        name = str(topic.name)
        error = topic.error_code and failure(f'topic "{name}"', topic.error_code, None, f'DESCRIBE on topic "{name}"')
        found[name] = error or _description(name, topic, makers)
    return found


def _description(name: str, topic: MetadataResponseTopic, makers: _Makers) -> TopicDescription:
    made = _new(TopicDescription)  # without what is made when somebody asks for it
    made.name = name
    made.is_internal = topic.is_internal
    made.authorized_operations = operations(topic.topic_authorized_operations) or None
    later(made, makers, topic)
    return made


def _topic_id(topic: MetadataResponseTopic) -> Uuid:
    return uuid_of(topic.topic_id)


def _partitions(nodes: NodesById, topic: MetadataResponseTopic) -> list[TopicPartitionInfo]:
    return [
        TopicPartitionInfo(
            p.partition_index, nodes[p.leader_id] if p.leader_id >= 0 else None,
            [nodes[each] for each in p.replica_nodes], [nodes[each] for each in p.isr_nodes])
        for p in sorted(topic.partitions, key=_by_number)
    ]


def _ended(name: str, result: Any, right: str) -> KafkaError | None:
    return failure(f'topic "{name}"', result.error_code, result.error_message,
                   right.replace("the topic", f'topic "{name}"'))
