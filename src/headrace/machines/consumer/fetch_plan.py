"""Plans the next fetches: one request per broker, for the partitions that have room in the queue.

A broker has at most one request on the wire; it names what changed since the last one
(`machines.consumer.fetch_session`). As the broker may hold that one back, partitions that are assigned or sought
meanwhile do not wait for it: one more request asks for them, beside it (decision 0032). A partition is left out while
it is paused, backs off after an error, or has too much in the queue. Only partitions to which something has happened
are looked at: its position, its topic, a pause that is over; all of them when brokers have come or gone. What is queued
and what may come by requests on the wire stay within "queued.max.messages.kbytes", but for a reply of
"max.partition.fetch.bytes" to each request, so that no broker has to wait for another. This module must not know what
replies hold. Read next: `machines.consumer.fetcher`, which owns the plan.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from headrace.config import Config
from headrace.machines.backoff import Pauses, RetryPolicy
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetch_session import FetchSession, SessionPartition
from headrace.machines.consumer.subscription import Key, PartitionState, PositionPhase, Subscription
from headrace.machines.machine import Send
from headrace.slotted import slotted
from headrace.wire.messages.consumer.fetch import FetchRequest

__all__ = ["FetchPlan", "FetchInFlight"]

_REPLY_BYTES = 8 << 20
"""Most that a reply brings if partitions bring less: a larger one costs as much for each record, and more memory."""
_STARVED_WAIT_MS = 20
"""A broker's longest wait while one of its partitions is left out because its queue is full: the queue may drain."""
_BESIDE_WAIT_MS = 50
"""Longest wait of a request beside another one: what is assigned next may have to wait for both."""
_LEAST_BESIDE = 50
"""Partitions that a request beside another one asks for, if there are as many."""
_QUEUE_DEPTH = 8
"""Replies of full size that one partition may have in the queue, if the budget allows."""
_FIRST_BACKOFF_S = 0.05
_LEADERS_ONLY_S = 10.0
"""After a follower could not be read: a leader names it again until the controller has noticed, which takes 9 s."""
_DEFAULT_LEASE_S = 300.0
_SEARCH_OVER_S = 1.0
"""After so long without a search for a leader the next one is not one in a row."""
_NO_ID = UUID(int=0)


@slotted(eq=False)
class FetchInFlight:
    """A request on the wire.

    Attributes:
        session: which it belongs to.
        partitions: what it asks for, with each partition's epoch and offset when it was sent.
    """

    session: FetchSession
    partitions: Mapping[Key, SessionPartition]


class FetchPlan:
    """Decides the next requests.

    Args:
        subscription: the partitions, with their positions.
        metadata: knows the partitions' leaders.
        config: a consumer's configuration.
        jitter: gives numbers in [0, 1) that spread the pauses behind errors (KIP-580).

    Attributes:
        starved: something was left out because the queue is full; call `drained()` when it has drained.
        deadline: when the first backed-off partition may be fetched again; None when only an input changes anything.
        doubts: a position is to be compared with the log of a new leader; the reader sets it back.
        happened: partitions to look at with the next `requests()`. Any thread may add one; `look_at` also
            asks for a call.
        allowed_bytes: most that a reply may bring for now, 0 for nothing to be asked for; None as a rule.
        lease_s: seconds for which a preferred follower is read before the leader is asked again (KIP-392).
    """

    def __init__(self, subscription: Subscription, metadata: Metadata, config: Config,
                 jitter: Callable[[], float]) -> None:
        self.starved = self.doubts = False
        self.deadline: float | None = None
        self.allowed_bytes: int | None = None
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
        self._pauses = Pauses(RetryPolicy(_FIRST_BACKOFF_S, config.seconds("fetch.error.backoff.ms"), jitter).wait_s)
        self._sessions: dict[int, FetchSession] = {}
        self._places: dict[Key, FetchSession] = {}  # where a partition is wanted or left out
        self._in_flight: dict[int, int] = {}  # by broker, most bytes that may come; by ~broker what comes beside that
        self._beside: dict[int, FetchSession] = {}
        self.happened: deque[PartitionState] = deque()
        self._again = self._everything = True
        self._seen = (-1, -1)
        self._most = 0
        self._waiting: dict[float, dict[PartitionState, None]] = {}  # by when they are to be looked at again
        self._cluster = metadata.cluster
        self._search_at = -math.inf  # when leaders that are not known are looked for again
        self._searches = 0

    def touch(self) -> None:
        """Something has changed: look at all partitions with the next `requests()`."""
        self._everything = self._again = True

    def again(self) -> None:
        """The queue has drained: have another look with the next `requests()`."""
        self._again = True

    def look_at(self, state: PartitionState) -> None:
        """Something has happened to a partition: look at it with the next `requests()`. From any thread."""
        self.happened.append(state)
        self._again = True

    def drained(self, state: PartitionState) -> bool:
        """Records of a partition were taken out of the queue (application's thread).

        Returns:
            True when `requests()` has to be called.
        """
        if state.left_out:
            self.happened.append(state)
        if not self.starved:
            return False
        self.starved, self._again = False, True
        return True

    @property
    def missed(self) -> bool:
        """Whether a partition was drained while `requests()` found its queue full: call it again."""
        return self.starved and bool(self.happened)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be seen to but replies: then a thread may take those of one broker by itself."""
        return not (self._again or self.starved or self.happened or self._beside or self.deadline is not None)

    def concerns(self, session: FetchSession, now: float) -> bool:
        """Whether `requests()` would look at a session, with whose broker a thread goes on by itself."""
        if (self._everything or (self.deadline is not None and now >= self.deadline)
                or (self._metadata.updates, self._subscription.version) != self._seen):
            return True
        return any(self._places.get((state.topic, state.partition), session) is session
                   for state in self.happened.copy())

    def requests(self, now: float, queued_bytes: int) -> Sequence[Send]:
        """One request for each broker that has none on the wire and a partition with room."""
        seen = (self._metadata.updates, self._subscription.version)
        due = self.deadline is not None and now >= self.deadline
        if not (self._again or due or seen != self._seen):
            return ()
        self._again = False
        self._rack_asked = self._rack if now >= self._leaders_until else ""
        if self._everything or due or seen != self._seen:
            self._look_at_changes(seen, due, now)
        happened, states = self.happened, self._subscription.states
        while happened:  # here, for it runs for each record that comes alone
            state = happened.popleft()
            key = (state.topic, state.partition)
            if states.get(key, state) is not state:
                continue  # another one has its place; one that was taken away leaves it
            before = self._places.get(key)
            if self._place(key, state, now) is not before and before is not None:
                before.leave(key)
                before.left_out.discard(key)
        return self._sends(queued_bytes)

    def landed(self, send: Send) -> FetchInFlight:
        """The request was answered or lost: its broker may be asked again."""
        if send.beside:
            del self._beside[send.destination], self._in_flight[~send.destination]
        else:
            del self._in_flight[send.destination]
        self._again = True
        flight: FetchInFlight = send.context
        return flight

    def back_off(self, state: PartitionState, now: float) -> None:
        """Leave a partition alone for a while, longer after every failure in a row."""
        self._pause(state, now)
        self.look_at(state)

    def leave_follower(self, state: PartitionState, now: float) -> None:
        """A follower cannot be read: read this partition from its leader, and let leaders name no other for a while.

        A leader that names one sends no records, and goes by what it believes.
        """
        state.replica = -1
        self._leaders_until = now + _LEADERS_ONLY_S
        self.look_at(state)

    def _pause(self, state: PartitionState, now: float) -> None:
        state.attempts += 1
        state.retry_at = self._pauses.until(state.attempts, now)

    # Which partitions are wanted

    def _look_at_changes(self, seen: tuple[int, int], due: bool, now: float) -> None:
        """Look at the partitions that were changed, have moved or have waited; at all if others may be concerned."""
        before, self._seen = self._seen, seen
        states = self._subscription.states
        share = self._budget // (len(states) or 1)
        self._most = min(max(share, self._partition_bytes), _QUEUE_DEPTH * self._partition_bytes)
        cluster, known = self._metadata.cluster, self._cluster
        self._cluster = cluster
        is_partial = not self._everything and cluster.nodes == known.nodes
        changed = self._subscription.changed_since(before[1]) if is_partial else None
        self._everything = False
        if changed is None:
            self._look_at_all(states, now)
            return
        if cluster is not known:
            topics, old = cluster.topics, known.topics
            moved = {name for name in topics.keys() | old.keys() if topics.get(name) is not old.get(name)}
            self.happened.extend(state for state in states.values() if state.topic in moved)
        self.happened.extend(changed)
        if due:
            for when in [when for when in self._waiting if when <= now]:
                self.happened.extend(self._waiting.pop(when))
            self.deadline = min(self._waiting, default=None)

    def _look_at_all(self, states: Mapping[Key, PartitionState], now: float) -> None:
        self.happened.clear()
        self._places.clear()
        self._waiting.clear()
        self.deadline = None
        for session in self._sessions.values():
            session.leave_all()
        for key, state in states.items():
            self._place(key, state, now)

    def _place(self, key: Key, state: PartitionState, now: float) -> FetchSession | None:
        """Have a partition asked for by one broker, or by none."""
        info = self._metadata.cluster.topics.get(state.topic)
        part = None if info is None else info.partitions.get(state.partition)
        leader_epoch = -1 if part is None else part.leader_epoch
        node = None
        if state.phase is PositionPhase.FETCH and not state.paused and not (
                (state.retry_at > now or state.stop_offset is not None) and self._waits(state, now)) and (
                leader_epoch <= state.checked_epoch or self._trusts(state, leader_epoch)):
            node = None if part is None else part.leader_id
            if node is None or state.replica >= 0:
                node = self._other_node(state, node, now)
        if node is None:
            self._places.pop(key, None)
            return None
        session = self._sessions.get(node)
        if session is None:
            session = self._sessions[node] = FetchSession()
        self._places[key] = session
        state.left_out = False
        if (state.received_bytes - state.released_bytes >= self._most
                or state.received_records - state.released_records >= self._most_records) and self._is_full(state):
            session.left_out.add(key)
            session.leave(key)
        else:
            if session.left_out:
                session.left_out.discard(key)
            session.want(key, (state, _NO_ID if info is None else info.topic_id, leader_epoch))
            if node in self._in_flight and not session.is_brief:
                session.want_late(key)
        return session

    def _trusts(self, state: PartitionState, leader_epoch: int) -> bool:
        """Whether a new leader has what was read so far; only it knows, if the last record is older than its term."""
        if 0 <= state.fetch_epoch < leader_epoch:
            state.go("new leader")
            self._subscription.changed(state)
            self.doubts = True
            return False
        state.checked_epoch = leader_epoch
        return True

    def _is_full(self, state: PartitionState) -> bool:
        """Whether too much of a partition is in the queue still. Who drains it then calls `drained()`."""
        state.left_out = True
        # The application's thread, which drains it, may have looked at that too early.
        return (state.received_bytes - state.released_bytes >= self._most
                or state.received_records - state.released_records >= self._most_records)

    def _waits(self, state: PartitionState, now: float) -> bool:
        """The partition backs off, or has been read as far as it shall be."""
        if state.retry_at > now:
            self._wake_at(state.retry_at, state)
            return True
        return state.stop_offset is not None and state.fetch_offset >= state.stop_offset

    def _other_node(self, state: PartitionState, leader: int | None, now: float) -> int | None:
        """The preferred follower while there is one (KIP-392), else the leader, which must be looked for."""
        if state.replica >= 0:
            if now < state.replica_until and state.replica in self._metadata.cluster.nodes:
                self._wake_at(state.replica_until, state)
                return state.replica
            state.replica = -1
        if leader is None and state.topic in self._metadata.cluster.topics:  # else it is asked for already
            self._look_for_leaders(now)
            self._wake_at(self._search_at, state)
        return leader

    def _look_for_leaders(self, now: float) -> None:
        """Have the picture refreshed, less and less often: there may be none for ever."""
        if now < self._search_at:
            return
        self._searches = 1 if now - self._search_at > _SEARCH_OVER_S else self._searches + 1
        self._search_at = self._pauses.until(self._searches, now)
        self._metadata.refresh(now)

    def _wake_at(self, when: float, state: PartitionState) -> None:
        waiting = self._waiting.get(when)
        if waiting is None:
            waiting = self._waiting[when] = {}
            self.deadline = when if self.deadline is None else min(self.deadline, when)
        waiting[state] = None

    # The requests

    def _sends(self, queued_bytes: int) -> list[Send]:
        if self.allowed_bytes == 0:
            return []
        in_flight, room = self._in_flight, self._budget - queued_bytes
        wanted, late, starved = [], [], room <= 0
        for node, session in self._sessions.items():
            starved = starved or bool(session.left_out)
            if session.wanted and room > 0:
                if node not in in_flight:
                    if not self._beside or not self._is_asked_beside(node, session):
                        wanted.append((node, session))
                elif session.late and node not in self._beside:
                    late.append((node, session))
        self.starved = starved
        share = self._budget // (len(wanted) + len(in_flight) or 1)
        sends: list[Send] = []
        for node, session in wanted:  # a comprehension would be a frame more in each step
            sends.append(self._send(node, session, min(room - sum(in_flight.values()), share)))
        for node, session in late:
            sends.append(self._send_beside(node, session, min(room - sum(in_flight.values()), share)))
        return sends

    def _is_asked_beside(self, node: int, session: FetchSession) -> bool:
        """All that is wanted of a broker is on its way already."""
        beside = self._beside.get(node)
        return beside is not None and beside.asks_for_all(session.wanted)

    def _send_beside(self, node: int, session: FetchSession, room: int) -> Send:
        """Ask for what came to be wanted while the broker has a request, which it may hold back."""
        request = self._request()
        request.max_wait_ms = min(self._max_wait_ms, _BESIDE_WAIT_MS)
        request.max_bytes = min(self._reply_bytes(), max(room, self._partition_bytes))
        # As many as fill a reply: a request without a session names them all each time.
        most = max(request.max_bytes // self._partition_bytes, _LEAST_BESIDE)
        self._in_flight[~node] = min(request.max_bytes, min(len(session.late), most) * self._partition_bytes)
        once, max_version = session.fill_late(request, self._partition_bytes, most)
        self._beside[node] = once
        return Send(node, request, self._timeout_s, max_version=max_version, context=FetchInFlight(once, once.known),
                    beside=True)

    def _send(self, node: int, session: FetchSession, room: int) -> Send:
        partition_bytes, is_starved = self._partition_bytes, bool(session.left_out)
        reply_bytes = self._reply_bytes()
        expected = min(reply_bytes, len(session.wanted) * partition_bytes)
        is_limited = expected > room and expected > partition_bytes
        self._in_flight[node] = expected = max(room, partition_bytes) if is_limited else expected
        session.is_brief = is_starved
        is_plain = not (is_starved or is_limited or self.allowed_bytes is not None) and self._rack_asked == self._rack
        moved = session.only_moved(partition_bytes) if is_plain else None
        if moved is not None:
            lone = session.fill_alone(moved, reply_bytes, self._request)
            return Send(node, lone.request, self._timeout_s, lone.max_version, True,
                        FetchInFlight(session, session.known), None, lone.exchange)
        request = self._request()
        if is_limited:
            request.max_bytes = expected
        if is_starved:
            request.max_wait_ms = min(self._max_wait_ms, _STARVED_WAIT_MS)
        max_version = session.fill(request, partition_bytes)
        return Send(node, request, self._timeout_s, max_version=max_version,
                    context=FetchInFlight(session, session.known))

    def _reply_bytes(self) -> int:
        """Most that a reply may bring: two of each broker find room, so that one may come while the other is read."""
        share = min(self._budget // (2 * len(self._sessions)), _REPLY_BYTES)
        most = min(self._max_bytes, max(share, self._partition_bytes))
        return most if self.allowed_bytes is None else min(most, self.allowed_bytes)

    def _request(self) -> FetchRequest:
        least = self._min_bytes if self.allowed_bytes is None else 1  # what there is, is known, and wanted soon
        return FetchRequest(max_wait_ms=self._max_wait_ms, min_bytes=least, max_bytes=self._reply_bytes(),
                            isolation_level=self._isolation, rack_id=self._rack_asked)
