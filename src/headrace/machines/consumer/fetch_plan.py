"""Whom to fetch from, and what: one request per broker, for the partitions that have room in the queue.

A broker has at most one request on the wire; it names what changed since the last one
(`machines.consumer.fetch_session`). A partition is left out while it is paused, backs off after an error, or has too
much in the queue. This module must not know what replies hold. Read next: `machines.consumer.fetcher`, which owns the
plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from headrace.config import Config
from headrace.machines.backoff import backoff_s
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetch_session import Asked, FetchSession
from headrace.machines.consumer.subscription import Key, PartitionState, PositionPhase, Subscription
from headrace.machines.machine import Send
from headrace.slotted import field, slotted
from headrace.wire.messages.consumer.fetch import FetchRequest

__all__ = ["FetchPlan", "Flight"]

_STARVED_WAIT_MS = 20
"""A broker's longest wait while one of its partitions is left out because its queue is full: the queue may drain."""
_QUEUE_DEPTH = 8
"""Replies of full size that one partition may have in the queue, if the budget allows."""
_FIRST_BACKOFF_S = 0.05
_MIDDLE = 0.5
_NO_ID = UUID(int=0)


@slotted(eq=False)
class Flight:
    """A request on the wire: the session it belongs to and each partition's state and epoch when it was sent."""

    session: FetchSession
    partitions: dict[Key, tuple[PartitionState, int]] = field(default_factory=dict)


class FetchPlan:
    """Decides the next requests.

    Args:
        subscription: the partitions, with their positions.
        metadata: who leads which partition.
        config: a consumer's configuration.

    Attributes:
        starved: a partition was left out because the queue is full; call `touch()` when it has drained.
        deadline: when the first backed-off partition may be fetched again; None when only an input changes anything.
    """

    def __init__(self, subscription: Subscription, metadata: Metadata, config: Config) -> None:
        self.starved = False
        self.deadline: float | None = None
        self._subscription = subscription
        self._metadata = metadata
        self._config = config
        self._timeout_s = config.seconds("socket.timeout.ms") + config.seconds("fetch.wait.max.ms")
        self._partition_bytes: int = config["max.partition.fetch.bytes"]
        self._budget: int = config["queued.max.messages.kbytes"] * 1024
        self._most_records: float = config["queued.min.messages"] or float("inf")
        self._backoff_max_s = config.seconds("fetch.error.backoff.ms")
        self._sessions: dict[int, FetchSession] = {}
        self._in_flight: set[int] = set()
        self._touched = True
        self._seen = (-1, -1)

    def touch(self) -> None:
        """Something has changed: look at all partitions with the next `requests()`."""
        self._touched = True

    def requests(self, now: float, queued_bytes: int) -> Iterator[Send]:
        """One request for each broker that has none on the wire and a partition with room."""
        seen = (self._metadata.updates, self._subscription.version)
        due = self.deadline is not None and now >= self.deadline
        if not (self._touched or due or seen != self._seen):
            return
        self._touched, self._seen, self.deadline = False, seen, None
        wanted, starved = self._choose(now, queued_bytes)
        self.starved = bool(starved)
        for node, states in wanted.items():
            yield self._send(node, states, is_starved=node in starved)

    def landed(self, send: Send) -> Flight:
        """The request was answered or lost: its broker may be asked again."""
        self._in_flight.discard(send.destination)
        self._touched = True
        flight: Flight = send.context
        return flight

    def back_off(self, state: PartitionState, now: float) -> None:
        """Leave a partition alone for a while, longer after every failure in a row."""
        state.attempts += 1
        state.retry_at = now + backoff_s(state.attempts, _FIRST_BACKOFF_S, self._backoff_max_s, _MIDDLE)

    def _choose(self, now: float, queued_bytes: int) -> tuple[dict[int, list[PartitionState]], set[int]]:
        """The partitions to fetch by broker, and the brokers with a partition whose queue is full."""
        wanted: dict[int, list[PartitionState]] = {}
        starved: set[int] = set()
        share = self._budget // (len(self._subscription) or 1)
        most = min(max(share, self._partition_bytes), _QUEUE_DEPTH * self._partition_bytes)
        for state in self._subscription:
            if not self._may_fetch(state, now):
                continue
            node = self._node(state, now)
            if node is None or node in self._in_flight:
                continue
            if queued_bytes >= self._budget or state.queued_bytes >= most or state.queued_records >= self._most_records:
                starved.add(node)
            else:
                wanted.setdefault(node, []).append(state)
        return wanted, starved

    def _may_fetch(self, state: PartitionState, now: float) -> bool:
        if state.phase is not PositionPhase.FETCH or state.paused:
            return False
        if state.retry_at > now:
            self.deadline = state.retry_at if self.deadline is None else min(self.deadline, state.retry_at)
            return False
        return state.stop_offset is None or state.fetch_offset < state.stop_offset

    def _node(self, state: PartitionState, now: float) -> int | None:
        """The preferred follower while there is one (KIP-392), else the leader."""
        if state.replica >= 0:
            if now < state.replica_until and state.replica in self._metadata.cluster.nodes:
                return state.replica
            state.replica = -1
        node, _ = self._metadata.leader(state.topic, state.partition)
        if node is None:
            self._metadata.refresh(now)
        return node

    def _send(self, node: int, states: list[PartitionState], is_starved: bool) -> Send:
        config, topics = self._config, self._metadata.cluster.topics
        session = self._sessions.setdefault(node, FetchSession())
        flight = Flight(session)
        wanted: dict[Key, Asked] = {}
        for state in states:
            key = state.key
            known = topics.get(state.topic)
            _, leader_epoch = self._metadata.leader(state.topic, state.partition)
            wanted[key] = Asked(known.topic_id if known else _NO_ID, state.fetch_offset, leader_epoch,
                                self._partition_bytes)
            flight.partitions[key] = (state, state.epoch)
        max_wait_ms = config["fetch.wait.max.ms"]
        request = FetchRequest(
            max_wait_ms=min(max_wait_ms, _STARVED_WAIT_MS) if is_starved else max_wait_ms,
            min_bytes=config["fetch.min.bytes"], max_bytes=config["fetch.max.bytes"],
            isolation_level=config["isolation.level"], rack_id=config["client.rack"])
        max_version = session.fill(request, wanted)
        self._in_flight.add(node)
        return Send(node, request, self._timeout_s, max_version=max_version, context=flight)
