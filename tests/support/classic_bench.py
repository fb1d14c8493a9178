"""One member of a classic group and a coordinator that says what a test has it say."""

from __future__ import annotations

from typing import Any

from headrace.config import CONSUMER, Config
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.groups.assignors import (
    write_assignment,
)
from headrace.machines.groups.classic import ClassicGroup, JoinState
from headrace.machines.groups.membership import Change, Rebalance
from headrace.machines.machine import Event, Send
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.groups.classic_groups import (
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupRequest,
    SyncGroupResponse,
)

Partitions = set[tuple[str, int]]


class ClassicBench:
    """One member and a scripted coordinator, broker 1."""

    def __init__(self, topics: dict[str, int] | None = None, properties: dict[str, Any] | None = None,
                 jitter: float = 0.5) -> None:
        self.config = Config(CONSUMER, {"bootstrap.servers": "h:1", "group.id": "g", **(properties or {})})
        self.metadata = Metadata([("h", 1)])
        self.subscription = Subscription("g", "latest")
        self.finder = CoordinatorFinder(0, "g", retries=RetryPolicy.of(self.config, lambda: jitter))
        self.group = ClassicGroup(self.config, self.subscription, self.metadata, self.finder)
        self.group.application_at = 0.0
        self.now = 0.0
        self.set_topics({"t": 4} if topics is None else topics)
        self.find()
        self.subscription.subscribe(["t"])

    def find(self) -> None:
        for send in list(self.finder.poll(self.now)):
            self.finder.on_reply(send, FindCoordinatorResponse(node_id=1, host="h", port=1), self.now)

    def set_topics(self, topics: dict[str, int], internal: str = "") -> None:
        self.now += 0.001
        self.metadata.want_topics([*topics, f"at {self.now}"])
        [send] = self.metadata.poll(self.now)
        self.metadata.on_reply(send, MetadataResponse(
            cluster_id="c", brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
            topics=[MetadataResponseTopic(name=name, is_internal=name == internal, partitions=[
                MetadataResponsePartition(partition_index=p, leader_id=1) for p in range(count)])
                for name, count in topics.items()]), self.now)

    def send(self, kind: type, after_s: float = 0.0) -> Send:
        """The one request that the member sends next, which must be of this kind."""
        self.now += after_s
        self.find()
        sends = list(self.group.poll(self.now))
        assert [type(send.request) for send in sends] == [kind]
        deadline = self.group.deadline()
        assert deadline is None or deadline > self.now
        return sends[0]

    def silent(self) -> None:
        assert list(self.group.poll(self.now)) == []

    def reply(self, send: Send, reply: Any) -> None:
        self.group.on_reply(send, reply, self.now)

    def events(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.group.events() if isinstance(event, kind)]

    def rebalanced(self) -> tuple[Change, Partitions]:
        """The one rebalance that the application is told of; it agrees."""
        [event] = self.events(Rebalance)
        self.group.callback_done(self.now)
        return event.change, {(tp.topic, tp.partition) for tp in event.partitions}

    def join(self, generation: int = 1, leader: bool = False, member_id: str = "me",
             others: tuple[JoinGroupResponseMember, ...] = ()) -> JoinGroupRequest:
        send = self.send(JoinGroupRequest)
        request = send.request
        assert isinstance(request, JoinGroupRequest)
        me = JoinGroupResponseMember(member_id=member_id, metadata=request.protocols[0].metadata)
        self.reply(send, JoinGroupResponse(
            generation_id=generation, protocol_name=request.protocols[0].name, member_id=member_id,
            leader=member_id if leader else "another", members=[me, *others] if leader else []))
        return request

    def sync(self, *keys: tuple[str, int]) -> SyncGroupRequest:
        send = self.send(SyncGroupRequest)
        self.reply(send, SyncGroupResponse(assignment=write_assignment(keys)))
        assert isinstance(send.request, SyncGroupRequest)
        return send.request

    def settle(self, *keys: tuple[str, int], generation: int = 1) -> None:
        self.join(generation)
        self.sync(*keys)
        change, partitions = self.rebalanced()
        assert (change, partitions) == (Change.ASSIGN, set(keys))
        assert self.group.state is JoinState.STABLE

    def heartbeat(self, code: int = 0, after_s: float = 3.0) -> None:
        self.reply(self.send(HeartbeatRequest, after_s), HeartbeatResponse(error_code=code))
