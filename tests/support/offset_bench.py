"""The machines that look up offsets and commit them, with a cluster of two brokers around them."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.group_offsets import GroupOffsets
from headrace.machines.consumer.offsets import OffsetLookup
from headrace.machines.consumer.subscription import EARLIEST, Key, Subscription
from headrace.machines.groups.membership import Change, Rebalance
from headrace.machines.groups.ownership import Ownership
from headrace.machines.machine import Send
from headrace.types.records import TopicPartition
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from headrace.wire.messages.groups.classic_groups import FindCoordinatorResponse

NEVER = float("inf")
NOW_MS = 1_700_000_000_000


class Bench:
    """Both machines; topic "t" has partition 0 on broker 1 and partition 1 on broker 2; broker 1 coordinates."""

    def __init__(self, reset: str | int = "earliest", group_id: str = "g", *, incremental: bool = True) -> None:
        self.now = 0.0
        self.incremental = incremental
        self.metadata = Metadata([("h", 1)])
        self.metadata.want_topics(["t"])
        [send] = self.metadata.poll(0.0)
        self.metadata.on_reply(send, MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)],
            topics=[MetadataResponseTopic(name="t", partitions=[
                MetadataResponsePartition(partition_index=p, leader_id=1 + p) for p in (0, 1)])]), 0.0)
        self.subscription = Subscription(group_id, reset, lambda: NOW_MS)
        self.finder = CoordinatorFinder(0, "g")
        self.find()
        self.lookup = OffsetLookup(self.subscription, self.metadata, 1, 30.0, RetryPolicy())
        self.ownership = Ownership("g", None)
        self.meet(Change.ASSIGN, 3)
        self.group = GroupOffsets("g", self.subscription, self.finder, self.ownership, 1, 30.0, RetryPolicy())
        self.found: list[TopicPartition] = []
        self.done: list[tuple[list[TopicPartition], KafkaError | None]] = []

    def find(self) -> None:
        for send in list(self.finder.poll(self.now)):
            self.finder.on_reply(send, FindCoordinatorResponse(node_id=1, host="h", port=1), self.now)

    def meet(self, change: Change, generation: int, *partitions: int) -> None:
        """The application is told of a rebalance of topic "t", and has been told."""
        told = self.rebalance(change, generation, *partitions)
        self.ownership.meet(told)
        self.ownership.part(told)

    def rebalance(self, change: Change, generation: int, *partitions: int) -> Rebalance:
        return Rebalance(change, [TopicPartition("t", p) for p in partitions], self.incremental, generation, "me")

    def ask_leader(self, partition: int, timestamp: int = EARLIEST, expires_at: float = NEVER) -> None:
        self.lookup.ask("t", partition, timestamp, expires_at, self.found.append)

    def commit(self, offset: int = 5, expires_at: float = NEVER, stored: Mapping[Key, int] | None = None) -> None:
        self.group.commit([TopicPartition("t", 0, offset)], expires_at,
                          lambda partitions, error: self.done.append((partitions, error)), stored or {})

    def commit_of_a_member(self, expires_at: float = NEVER) -> Send:
        """The application got its partition in generation 4, and commits: the request."""
        self.meet(Change.ASSIGN, 4, 0)
        self.commit(expires_at=expires_at)
        [send] = poll(self.group, 0.0)
        return send


def poll(machine: OffsetLookup | GroupOffsets, now: float) -> list[Send]:
    sends = list(machine.poll(now))
    deadline = machine.deadline()
    assert deadline is None or deadline > now
    return sends


def listed(partition: int, offset: int = 7, code: int = 0) -> ListOffsetsResponse:
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[ListOffsetsPartitionResponse(
        partition_index=partition, offset=offset, leader_epoch=2, error_code=code)])])


def fetched(partition: int, offset: int, code: int = 0, top: int = 0) -> OffsetFetchResponse:
    return OffsetFetchResponse(error_code=top, topics=[OffsetFetchResponseTopic(name="t", partitions=[
        OffsetFetchResponsePartition(partition_index=partition, committed_offset=offset, metadata="note",
                                     error_code=code)])])


def committed(*partitions: int, code: int = 0) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[
        OffsetCommitResponsePartition(partition_index=p, error_code=code) for p in partitions or (0,)])])
