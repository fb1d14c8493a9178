"""What all nodes of an embedded cluster share: topics, nodes, groups, transactions, faults. Handlers get it with every
request.

It knows no sockets and no clock: time and chance are given to it. Read next: any module in `broker.apis` for what is
done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID
from zlib import crc32

from headrace.broker.coordinators.classic_groups import Groups
from headrace.broker.coordinators.committed_offsets import OffsetStore
from headrace.broker.coordinators.group_configs import GroupConfigs
from headrace.broker.coordinators.planned_groups import PlannedGroups
from headrace.broker.coordinators.sharing_groups import SharingGroups
from headrace.broker.coordinators.transaction_coordinator import TransactionCoordinator
from headrace.broker.deadlines import Deadlines, Now
from headrace.broker.faults import Faults
from headrace.broker.purgatory import Purgatory
from headrace.broker.settings import BrokerSettings
from headrace.broker.shares.share_partitions import ShareKey, SharePartitions
from headrace.broker.shares.share_sessions import SharingSession, SharingSessions
from headrace.broker.storage.catalog import Catalog, Topic
from headrace.broker.storage.fetch_sessions import FetchingSessions
from headrace.broker.storage.partition import NO_LEADER, ApiError, Partition
from headrace.errors import KafkaError
from headrace.wire.messages.producer.produce import ProduceRequest
from headrace.wire.messages.producer.transactions import EndTxnRequest, TxnOffsetCommitRequest
from headrace.wire.schema import Uuid

__all__ = ["CLUSTER_OPERATIONS", "GROUP_OPERATIONS", "TOPIC_OPERATIONS", "ApiCall", "BrokerCluster", "BrokerNode"]

_OWN_EPOCHS_FROM = {ProduceRequest.api_key: 12, EndTxnRequest.api_key: 5, TxnOffsetCommitRequest.api_key: 5}
"""Versions from which on every transaction has an epoch of its own (KIP-890), by key."""
CLUSTER_OPERATIONS, GROUP_OPERATIONS, TOPIC_OPERATIONS = 8096, 3400, 3576
"""Everything that may be done with a cluster, a group and a topic, a bit for each operation: here nobody is refused."""


@dataclass(slots=True)
class BrokerNode:
    """A node id, where clients reach it, and whether it is up."""

    id: int
    host: str
    port: int = 0
    is_up: bool = False


class BrokerCluster:
    """The state behind every listener.

    Args:
        nodes: the cluster's nodes.
        settings: how the broker behaves.
        served: lowest and highest version of each API that is offered, by key.
        new_uuid: makes the ids of cluster, topics and members.
        directory: where data is kept; None keeps it in memory.

    Attributes:
        groups, planned_groups, share_groups: classic groups, those that the coordinator plans for, and those that share
            partitions; an id is one of them.
        group_configs: what is set on groups.
        fetch_sessions: what readers asked for last at which node.
        shares, share_sessions: what share groups know of partitions, and who reads at which node.
        deadlines: when time alone changes something here; the owner of the clock runs them.
        purgatory: requests that wait; the server looks again at what is due.
    """

    def __init__(self, nodes: list[BrokerNode], settings: BrokerSettings, served: Mapping[int, tuple[int, int]],
                 new_uuid: Callable[[], UUID], directory: Path | None = None) -> None:
        self.served = served
        self.new_uuid = new_uuid
        self.nodes = {node.id: node for node in nodes}
        self.settings = settings
        self.deadlines = Deadlines()
        self.purgatory = Purgatory(self.deadlines)
        self.catalog = Catalog([node.id for node in nodes], self.purgatory, new_uuid, directory)
        self.offsets = OffsetStore(None if directory is None else directory / "offsets.journal")
        self.groups = Groups(settings, self.deadlines, self.purgatory, new_uuid)
        self.planned_groups = PlannedGroups(settings, self.deadlines, self.catalog,
                                            None if directory is None else directory / "groups.journal")
        self.group_configs = GroupConfigs(settings, self.catalog)
        self.shares = SharePartitions(self.group_configs, self.deadlines, self.purgatory,
                                      None if directory is None else directory / "shares.journal")
        self.fetch_sessions = FetchingSessions(new_uuid)
        self.share_sessions = SharingSessions(settings.share_max_sessions)
        self.share_groups = SharingGroups(settings, self.group_configs, self.deadlines, self.catalog, self.shares)
        self.transaction_version = _transaction_version(settings, served)
        self.transactions = TransactionCoordinator(
            self.catalog, self.offsets, settings, self.deadlines, self.transaction_version,
            None if directory is None else directory / "transactions.journal")
        self.faults = Faults()

    @property
    def up_nodes(self) -> list[BrokerNode]:
        """The nodes that listen."""
        return [node for node in self.nodes.values() if node.is_up]

    @property
    def controller_id(self) -> int:
        """The first node that is up; -1 when none is."""
        return next((node.id for node in self.nodes.values() if node.is_up), NO_LEADER)

    def coordinator(self, key: str) -> BrokerNode | None:
        """The node that coordinates a group or a transactional id: always the same one of those that are up."""
        up = self.up_nodes
        return up[crc32(key.encode()) % len(up)] if up else None

    def kind_of(self, group_id: str) -> str:
        """Of which kind a group is, as Kafka calls it; empty where there is none of this name."""
        if self.share_groups.get(group_id) is not None:
            return "share"
        if self.planned_groups.get(group_id) is not None:
            return "consumer"
        is_classic = self.groups.get(group_id) is not None or self.offsets.knows(group_id)
        return "classic" if is_classic else ""

    def connection_lost(self, connection: Hashable) -> None:
        """A client's connection has ended, and with it its share sessions: others get what it held."""
        for session in self.share_sessions.of_connection(connection):
            self.end_share_session(session)

    def end_share_session(self, session: SharingSession) -> None:
        """Close a share session, and give to others what its member holds, where its node still leads."""
        self.share_sessions.end(session)
        node_id, group_id, member_id = session.key
        for topic_id, index in session.partitions:
            topic, share = self.catalog.by_id.get(topic_id), self.shares.get(ShareKey(group_id, topic_id, index))
            if topic is not None and share is not None and topic.partitions[index].leader_id == node_id:
                share.release(member_id)

    def create_topic(self, name: str, beside: Collection[str] = ()) -> Topic:
        """Make a topic with the broker's default numbers; `beside` as in `Catalog.collision`.

        Raises:
            ApiError: the name is not legal.
        """
        return self.catalog.create(name, self.settings.default_partitions, self.default_replication_factor,
                                   beside=beside)

    @property
    def default_replication_factor(self) -> int:
        """Replicas of a topic that does not say how many."""
        return self.settings.default_replication_factor or min(3, len(self.nodes))

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make another node lead a partition; it becomes one of the replicas if it is none.

        Raises:
            KeyError: no such topic, or no such node.
            IndexError: no such partition.
        """
        moved = self.catalog.topics[topic].partitions[partition]
        if not self.nodes[node_id].is_up:
            raise KeyError(f"node {node_id} is down")
        if node_id not in moved.replicas:
            moved.replicas.append(node_id)
        moved.lead(node_id)
        self.catalog.save()

    def reassign(self, partition: Partition, replicas: list[int], *, may_change_factor: bool) -> None:
        """Put a partition's replicas elsewhere; a leader that is none of them gives way to the first that is up.

        Raises:
            ApiError: as by the catalogue.
        """
        self.catalog.reassign(partition, replicas, may_change_factor=may_change_factor)
        if partition.leader_id not in replicas:
            partition.lead(self._first_up(partition))
        partition.wake()  # whoever reads from a replica may have lost it
        self.catalog.save()

    def node_went(self, node_id: int, now: Now, *, up: bool) -> None:
        """A node started or stopped: lead what it can, or hand over what it led to the next replica that is up."""
        self.nodes[node_id].is_up = up
        for topic in self.catalog.topics.values():
            for partition in topic.partitions:
                self._elect(partition)
        if not up:
            self.fetch_sessions.end_all(node_id)
            for session in self.share_sessions.of_node(node_id):
                self.share_sessions.end(session)
        self.catalog.save()
        self.transactions.resume(now)

    def _elect(self, partition: Partition) -> None:
        if not self.is_up(partition.leader_id):
            partition.lead(self._first_up(partition))

    def _first_up(self, partition: Partition) -> int:
        return next((node for node in partition.replicas if self.is_up(node)), NO_LEADER)

    def is_up(self, node_id: int) -> bool:
        """Whether the node listens."""
        node = self.nodes.get(node_id)
        return node is not None and node.is_up

    def close(self) -> None:
        """Let members go, do nothing more, and close the files."""
        self.groups.close()
        self.planned_groups.close()
        self.share_groups.close()
        self.shares.close()
        self.transactions.close()
        self.catalog.close()
        self.offsets.close()


def _transaction_version(settings: BrokerSettings, served: Mapping[int, tuple[int, int]]) -> int:
    """The level of transactions to advertise: no higher than the offered versions allow."""
    allows_own_epochs = all(key in served and served[key][1] >= version for key, version in _OWN_EPOCHS_FROM.items())
    return settings.transaction_version if allows_own_epochs else min(settings.transaction_version, 1)


@dataclass(slots=True)
class ApiCall:
    """One request: which node it came to, in which version, from whom, when, and on which connection."""

    cluster: BrokerCluster
    node_id: int
    version: int
    client_id: str
    client_host: str
    now: Now
    connection: Hashable = None

    def topic(self, name: str, topic_id: Uuid, ids_from: int) -> Topic:
        """The topic that a request names, by id from version `ids_from` on, else by name.

        Raises:
            ApiError: there is none.
        """
        catalog = self.cluster.catalog
        by_id = self.version >= ids_from
        found = catalog.by_id.get(topic_id) if by_id else catalog.topics.get(name)
        if found is None:
            raise ApiError(KafkaError.UNKNOWN_TOPIC_ID if by_id else KafkaError.UNKNOWN_TOPIC_OR_PART)
        return found

    def led_partition(self, topic: Topic, index: int, leader_epoch: int = -1) -> Partition:
        """A partition that this node leads.

        Args:
            topic: its topic.
            index: its number.
            leader_epoch: the epoch that the client knows; -1 when it does not say.

        Raises:
            ApiError: it does not exist, is led elsewhere, or the epochs differ.
        """
        if not 0 <= index < len(topic.partitions):
            raise ApiError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        partition = topic.partitions[index]
        if partition.leader_id != self.node_id:
            raise ApiError(KafkaError.NOT_LEADER_FOR_PARTITION)
        if 0 <= leader_epoch < partition.leader_epoch:
            raise ApiError(KafkaError.FENCED_LEADER_EPOCH)
        if leader_epoch > partition.leader_epoch:
            raise ApiError(KafkaError.UNKNOWN_LEADER_EPOCH)
        return partition

    def check_coordinator(self, key: str) -> None:
        """Refuse what is for another node: a group or a transactional id that this one does not coordinate."""
        node = self.cluster.coordinator(key)
        if node is None or node.id != self.node_id:
            raise ApiError(KafkaError.NOT_COORDINATOR)
