"""Plans the next fetches: one request per broker, for the partitions that have room in the queue.

A broker has at most one request on the wire; it names what changed since the last one
(`machines.consumer.fetch_session`). A partition is left out while it is paused, backs off after an error, or has too
much in the queue. What is queued and what may come by requests on the wire stay within "queued.max.messages.kbytes",
but for one reply of "max.partition.fetch.bytes" of each broker, so that none has to wait for another. This module must
not know what replies hold. Read next: `machines.consumer.fetcher`, which owns the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.config import Config
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetch_session import FetchSession, SessionPartition
from headrace.machines.consumer.subscription import Key, PartitionState, PositionPhase, Subscription
from headrace.machines.machine import Send
from headrace.slotted import field, slotted
from headrace.wire.messages.consumer.fetch import FetchRequest

__all__ = ["FetchPlan", "FetchInFlight"]

_STARVED_WAIT_MS = 20
"""A broker's longest wait while one of its partitions is left out because its queue is full: the queue may drain."""
_QUEUE_DEPTH = 8
"""Replies of full size that one partition may have in the queue, if the budget allows."""
_FIRST_BACKOFF_S = 0.05
_LEADERS_ONLY_S = 10.0
"""After a follower could not be read: a leader names it again until the controller has noticed, which takes 9 s."""
_DEFAULT_LEASE_S = 300.0
_NO_ID = UUID(int=0)

_Part = tuple[PartitionState, UUID, int]
"""A partition to fetch: its state, its topic's id, and the epoch of its leader."""


@slotted(eq=False)
class FetchInFlight:
    """A request on the wire: its session, and each partition's state, and epoch and offset when it was sent."""

    session: FetchSession
    partitions: dict[Key, tuple[PartitionState, int, int]] = field(default_factory=dict)


class FetchPlan:
    """Decides the next requests.

    Args:
        subscription: the partitions, with their positions.
        metadata: knows the partitions' leaders.
        config: a consumer's configuration.

    Attributes:
        starved: a partition was left out because the queue is full; call `touch()` when it has drained.
        deadline: when the first backed-off partition may be fetched again; None when only an input changes anything.
        doubts: a position is to be compared with the log of a new leader; the reader sets it back.
        lease_s: seconds for which a preferred follower is read before the leader is asked again (KIP-392).
    """

    def __init__(self, subscription: Subscription, metadata: Metadata, config: Config) -> None:
        self.starved = self.doubts = False
        self.deadline: float | None = None
        self.lease_s = max(config.seconds("topic.metadata.refresh.interval.ms"), 0.0) or _DEFAULT_LEASE_S
        self._subscription = subscription
        self._metadata = metadata
        self._max_wait_ms: int = config["fetch.wait.max.ms"]
        self._min_bytes: int = config["fetch.min.bytes"]
        self._max_bytes: int = config["fetch.max.bytes"]
        self._isolation: int = config["isolation.level"]
        self._rack: str = config["client.rack"]
        self._rack_asked = self._rack
        self._leaders_until = 0.0
        self._timeout_s = config.seconds("socket.timeout.ms") + config.seconds("fetch.wait.max.ms")
        self._partition_bytes: int = config["max.partition.fetch.bytes"]
        self._budget: int = config["queued.max.messages.kbytes"] * 1024
        self._most_records: float = config["queued.min.messages"] or float("inf")
        self._retries = RetryPolicy(_FIRST_BACKOFF_S, config.seconds("fetch.error.backoff.ms"))
        self._sessions: dict[int, FetchSession] = {}
        self._in_flight: dict[int, int] = {}  # by broker, most bytes that may come
        self._touched = True
        self._seen = (-1, -1)

    def touch(self) -> None:
        """Something has changed: look at all partitions with the next `requests()`."""
        self._touched = True

    def requests(self, now: float, queued_bytes: int) -> Sequence[Send]:
        """One request for each broker that has none on the wire and a partition with room."""
        seen = (self._metadata.updates, self._subscription.version)
        due = self.deadline is not None and now >= self.deadline
        if not (self._touched or due or seen != self._seen):
            return ()
        self._touched, self._seen, self.deadline = False, seen, None
        self._rack_asked = self._rack if now >= self._leaders_until else ""
        wanted, starved = self._choose(now, queued_bytes)
        self.starved = bool(starved)
        sends: list[Send] = []
        in_flight, room = self._in_flight, self._budget - queued_bytes
        share = self._budget // (len(wanted) + len(in_flight) or 1)
        for node, parts in wanted.items():  # a comprehension would be a frame more in each step
            sends.append(self._send(node, parts, node in starved, min(room - sum(in_flight.values()), share)))
        return sends

    def landed(self, send: Send) -> FetchInFlight:
        """The request was answered or lost: its broker may be asked again."""
        self._in_flight.pop(send.destination, None)
        self._touched = True
        flight: FetchInFlight = send.context
        return flight

    def back_off(self, state: PartitionState, now: float) -> None:
        """Leave a partition alone for a while, longer after every failure in a row."""
        state.attempts += 1
        state.retry_at = now + self._retries.wait_s(state.attempts)

    def leave_follower(self, state: PartitionState, now: float) -> None:
        """A follower cannot be read: read this partition from its leader, and let leaders name no other for a while.

        A leader that names one sends no records, and goes by what it believes.
        """
        state.replica = -1
        self._leaders_until = now + _LEADERS_ONLY_S

    def _choose(self, now: float, queued_bytes: int) -> tuple[dict[int, list[_Part]], set[int]]:
        """The partitions to fetch by broker, and the brokers with a partition whose queue is full."""
        wanted: dict[int, list[_Part]] = {}
        starved: set[int] = set()
        states, topics, flying = self._subscription.states, self._metadata.cluster.topics, self._in_flight
        share = self._budget // (len(states) or 1)
        most = min(max(share, self._partition_bytes), _QUEUE_DEPTH * self._partition_bytes)
        for state in states.values():
            if state.phase is not PositionPhase.FETCH or state.paused:
                continue
            if (state.retry_at > now or state.stop_offset is not None) and self._waits(state, now):
                continue
            info = topics.get(state.topic)
            part = None if info is None else info.partitions.get(state.partition)
            leader_epoch = -1 if part is None else part.leader_epoch
            if leader_epoch > state.checked_epoch and not self._trusts(state, leader_epoch):
                continue
            node = None if part is None else part.leader_id
            if node is None or state.replica >= 0:
                node = self._other_node(state, node, now)
            if node is None or node in flying:
                continue
            if (queued_bytes >= self._budget or state.received_bytes - state.released_bytes >= most
                    or state.received_records - state.released_records >= self._most_records):
                starved.add(node)
            else:
                wanted.setdefault(node, []).append((state, _NO_ID if info is None else info.topic_id, leader_epoch))
        return wanted, starved

    def _trusts(self, state: PartitionState, leader_epoch: int) -> bool:
        """Whether a new leader has what was read so far; only it knows, if the last record is older than its term."""
        if 0 <= state.fetch_epoch < leader_epoch:
            state.go("new leader")
            self._subscription.version += 1
            self.doubts = True
            return False
        state.checked_epoch = leader_epoch
        return True

    def _waits(self, state: PartitionState, now: float) -> bool:
        """The partition backs off, or has been read as far as it shall be."""
        if state.retry_at > now:
            self.deadline = state.retry_at if self.deadline is None else min(self.deadline, state.retry_at)
            return True
        return state.stop_offset is not None and state.fetch_offset >= state.stop_offset

    def _other_node(self, state: PartitionState, leader: int | None, now: float) -> int | None:
        """The preferred follower while there is one (KIP-392), else the leader, which must be looked for."""
        if state.replica >= 0:
            if now < state.replica_until and state.replica in self._metadata.cluster.nodes:
                return state.replica
            state.replica = -1
        if leader is None:
            self._metadata.refresh(now)
        return leader

    def _send(self, node: int, parts: list[_Part], is_starved: bool, room: int) -> Send:
        session = self._sessions.get(node)
        if session is None:
            session = self._sessions[node] = FetchSession()
        flight = FetchInFlight(session, {})
        for state, _, _ in parts:
            flight.partitions[state.topic, state.partition] = (state, state.epoch, state.fetch_offset)
        expected = min(self._max_bytes, len(parts) * self._partition_bytes)
        is_limited = expected > room and expected > self._partition_bytes
        self._in_flight[node] = expected = max(room, self._partition_bytes) if is_limited else expected
        is_plain = not (is_starved or is_limited) and self._rack_asked == self._rack
        moved = None if not is_plain else session.only_moved(parts, self._partition_bytes)
        if moved is not None:
            lone = session.fill_alone(moved, flight.partitions[moved][0].fetch_offset, self._request)
            return Send(node, lone.request, self._timeout_s, lone.max_version, True, flight, None, lone.exchange)
        wanted: dict[Key, SessionPartition] = {}
        for state, topic_id, leader_epoch in parts:
            key = (state.topic, state.partition)
            wanted[key] = session.asked(key, topic_id, state.fetch_offset, leader_epoch, self._partition_bytes)
        request = self._request()
        if is_limited:
            request.max_bytes = expected
        if is_starved:
            request.max_wait_ms = min(self._max_wait_ms, _STARVED_WAIT_MS)
        max_version = session.fill(request, wanted)
        return Send(node, request, self._timeout_s, max_version=max_version, context=flight)

    def _request(self) -> FetchRequest:
        return FetchRequest(max_wait_ms=self._max_wait_ms, min_bytes=self._min_bytes, max_bytes=self._max_bytes,
                            isolation_level=self._isolation, rack_id=self._rack_asked)
