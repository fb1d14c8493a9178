"""The cluster as users see it: brokers, topics, partitions, groups. confluent_kafka's classes and attribute names.

Knows only the Metadata reply. Read next: `client.admin.aio_admin_client`.
"""

from __future__ import annotations

from typing import Final

from headrace.errors import KafkaError
from headrace.interpreter import uncollected
from headrace.slotted import Late, field, hashed_by, later, slotted
from headrace.types.records import NodeAddress
from headrace.wire.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic

__all__ = [
    "BrokerMetadata",
    "ClusterMetadata",
    "GroupMember",
    "GroupMetadata",
    "PartitionMetadata",
    "TopicMetadata",
    "cluster_metadata",
]
_new = object.__new__


@hashed_by("id")
@slotted()
class BrokerMetadata:
    """A broker: its id and where it listens. `str()` gives ``host:port/id``."""

    id: int = -1
    host: str | None = None
    port: int = -1

    def __repr__(self) -> str:
        return f"BrokerMetadata({self.id}, {self.host}:{self.port})"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.id}"


@hashed_by("id")
@slotted()
class PartitionMetadata:
    """A partition: leader, replicas and in-sync replicas as broker ids; `leader` is -1 while there is none.

    Attributes:
        id: its number, from 0.
        leader: node id of its leader.
        replicas: node ids of its replicas.
        isrs: those of them that are in sync.
        error: why it cannot be used; None if it can.
    """

    id: int = -1
    leader: int = -1
    replicas: list[int] = field(default_factory=list)
    isrs: list[int] = field(default_factory=list)
    error: KafkaError | None = None

    def __repr__(self) -> str:
        return f"PartitionMetadata({self.id}{_but(self.error)})"

    def __str__(self) -> str:
        return str(self.id)


@hashed_by("topic")
@slotted()
class TopicMetadata(Late):
    """A topic and its partitions by number; `error` when it cannot be used."""

    topic: str | None = None
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)
    error: KafkaError | None = None

    def __repr__(self) -> str:
        return f"TopicMetadata({self.topic}, {len(self.partitions)} partitions{_but(self.error)})"

    def __str__(self) -> str:
        return str(self.topic)


@hashed_by("cluster_id")
@slotted()
class ClusterMetadata:
    """The answer of `list_topics()`. `orig_broker_*` name the broker that gave it.

    Attributes:
        cluster_id: the cluster's name of itself.
        controller_id: node id of the broker to take for the controller.
        brokers: these, by node id.
        topics: these, by name.
        orig_broker_id: node id of the broker that answered.
        orig_broker_name: where it listens.
    """

    cluster_id: str | None = None
    controller_id: int = -1
    brokers: dict[int, BrokerMetadata] = field(default_factory=dict)
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    orig_broker_id: int = -1
    orig_broker_name: str | None = None

    def __repr__(self) -> str:
        return f"ClusterMetadata({self.cluster_id})"

    def _repr_html_(self) -> str:
        from headrace.types.html_table import html_table

        rows = []
        for name, topic in sorted(self.topics.items()):
            partitions = topic.partitions.values()
            rows.append((name, len(partitions), max((len(each.replicas) for each in partitions), default=0),
                         sum(len(each.isrs) < len(each.replicas) for each in partitions), topic.error))
        return html_table(f"{len(self.topics)} topics on {len(self.brokers)} brokers",
                          ("topic", "partitions", "replicas", "partitions with replicas behind", "error"), rows)

    def __str__(self) -> str:
        return str(self.cluster_id)


@hashed_by("id")
@slotted()
class GroupMember:
    """A member of a classic group. `metadata` and `assignment` are the protocol's own bytes.

    Attributes:
        id: its id in the group.
        client_id: what it calls itself.
        client_host: where it is.
        metadata: what it said when it joined.
        assignment: what it got.
    """

    id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    metadata: bytes | None = None
    assignment: bytes | None = None


@hashed_by("id")
@slotted()
class GroupMetadata:
    """A group as `list_groups()` shows it, with the broker that coordinates it.

    Attributes:
        id: its name.
        broker: the coordinator.
        error: why it could not be described; None if it could.
        state: of the group.
        protocol_type: consumer, for groups that read.
        protocol: the strategy by which partitions are dealt.
        members: who is in it.
    """

    broker: BrokerMetadata | None = None
    id: str | None = None
    error: KafkaError | None = None
    state: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    members: list[GroupMember] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"GroupMetadata({self.id}{_but(self.error)})"

    def __str__(self) -> str:
        return str(self.id)


@uncollected
def cluster_metadata(reply: MetadataResponse, answered_by: NodeAddress | None = None) -> ClusterMetadata:
    """Build what `list_topics()` returns.

    Args:
        reply: the Metadata reply.
        answered_by: the broker that gave it; its id is negative if it was asked as a bootstrap server.
    """
    brokers = {b.node_id: BrokerMetadata(b.node_id, b.host, b.port) for b in reply.brokers}
    topics = {}
    for topic in reply.topics:
        shown = _new(TopicMetadata)  # without partitions, which `__init__` would make
        shown.topic = name = str(topic.name)
        shown.error = _error(topic.error_code)
        later(shown, _MAKERS, topic)
        topics[name] = shown
    made = ClusterMetadata(reply.cluster_id, reply.controller_id, brokers, topics)
    if answered_by is not None:
        made.orig_broker_id = max(answered_by.id, -1)
        name = str(answered_by.id) if answered_by.id >= 0 else "bootstrap"
        made.orig_broker_name = f"{answered_by.host}:{answered_by.port}/{name}"
    return made


def _partitions(topic: MetadataResponseTopic) -> dict[int, PartitionMetadata]:
    return {
        p.partition_index: PartitionMetadata(
            p.partition_index, p.leader_id, list(p.replica_nodes), list(p.isr_nodes), _error(p.error_code)
        )
        for p in topic.partitions
    }


_MAKERS: Final = {"partitions": _partitions}


def _but(error: KafkaError | None) -> str:
    return "" if error is None else f", {error}"


def _error(code: int) -> KafkaError | None:
    return KafkaError(code) if code else None
