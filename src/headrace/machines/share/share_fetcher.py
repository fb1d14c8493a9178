"""Fetches records that a share group may process, and takes what became of them back to the brokers (KIP-932).

Nothing is fetched ahead: a record that is acquired and waits is kept from other members, and its lock is running. So
brokers are asked while the application waits and nothing is queued (`Demand`). Acknowledgements travel with the next
fetch, or by themselves. Records are decoded in the application's thread; everything else runs in the loop's. The two
share a deque for each way and `demand`. This module must not know about membership, callbacks or sockets.

Source: Java's `ShareConsumeRequestManager`. Read next: `machines.share.share_session`, `client.share.share_engine`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final
from uuid import UUID

from headrace.config import Config
from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetcher import RecordsReady
from headrace.machines.consumer.subscription import Key
from headrace.machines.groups.share_group import ShareGroup
from headrace.machines.machine import Event, Send
from headrace.machines.share.acknowledgements import Acknowledged, Acknowledgements, Run
from headrace.machines.share.share_error_actions import (
    AcknowledgeErrorAction,
    ShareFetchErrorAction,
    ShareSessionErrorAction,
    acknowledge_error_action,
    share_fetch_error_action,
    share_session_error_action,
)
from headrace.machines.share.share_session import ShareSession
from headrace.records import Cursor
from headrace.slotted import field, slotted
from headrace.types.records import NodeAddress
from headrace.wire.messages.groups.share_groups import (
    AcknowledgeNodeEndpoint,
    AcknowledgePartitionData,
    FetchNodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchPartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from headrace.wire.schema import Struct

__all__ = ["RECORD_LIMIT", "AcquiredBatch", "Demand", "SessionsClosed", "ShareFailure", "ShareFetcher"]

_Part = ShareFetchPartitionData | AcknowledgePartitionData
RECORD_LIMIT: Final = 1
"""Of "share.acquire.mode": brokers give no more records than they are asked for."""
_UNSAID_LOCK_S: Final = 30.0
"""How long a record is held where the broker has not said it: Kafka's default."""
_SHORT_WAIT: Final = 0.25
"""Up to this part of the lock a broker may wait with a fetch, and the lock is counted from when it was asked."""
_READY: Final = RecordsReady()
_LOST_SESSION: Final = KafkaError(
    KafkaError.SHARE_SESSION_NOT_FOUND, "the session with the broker is over: it has released the records")
_UNANSWERED: Final = KafkaError(KafkaError.UNKNOWN, "the broker's reply leaves the acknowledgement out")


class Demand(Enum):
    """Whether brokers shall be asked for records."""

    NONE = "the application does not wait"
    ONCE = "it does not wait any more, and nobody was asked while it did"
    WAITING = "it waits"


@slotted()
class SessionsClosed(Event):
    """After `close()`: no broker keeps records for this member."""


@slotted(eq=False)
class AcquiredBatch:
    """Records of one partition that one reply has given to this member.

    Attributes:
        ranges: first and last offset, and delivery count, of what is held, in order.
        data: record batches, which may have more records than are held.
        until: monotonic seconds: nothing of it is held any more then, unless it was renewed.
        cursor: reads the records, once it was begun.
        position: the first offset that was not looked at.
    """

    key: Key
    topic_id: UUID
    session: ShareSession
    ranges: list[Run]
    data: memoryview | bytes | bytearray
    until: float
    cursor: Cursor | None = None
    position: int = 0


@slotted(eq=False)
class ShareFailure:
    """An error for the application, in the place of records."""

    key: Key | None
    error: KafkaError


@slotted(eq=False)
class _Broker:
    """One broker: the session with it, what is to be acknowledged in it, and when it was asked and may be again."""

    session: ShareSession
    pending: list[Acknowledgements] = field(default_factory=list)
    flying: Send | None = None
    asked_at: float = 0.0
    failures: int = 0
    retry_at: float = 0.0


class ShareFetcher:
    """The machine that fetches and acknowledges, and the queue of what it got.

    Args:
        group: the membership, which knows the partitions to fetch from.
        metadata: knows the partitions' leaders.
        config: a share consumer's configuration.
        retries: how long a broker is left alone after an error.

    Attributes:
        demand: whether to ask for records; set by the application's thread.
        queue: what there is to take, `AcquiredBatch` and `ShareFailure`; the application's thread takes from the left.
        fetches: how many fetches were sent.
        lock_timeout_ms: how long a record may be held, as a broker said last; None before one did.
    """

    alone = idle = False  # it changes the metadata

    def __init__(self, group: ShareGroup, metadata: Metadata, config: Config, retries: RetryPolicy) -> None:
        self.demand = Demand.NONE
        self.queue: deque[AcquiredBatch | ShareFailure] = deque()
        self.fetches = 0
        self.lock_timeout_ms: int | None = None
        self._group, self._metadata = group, metadata
        self._group_id: str = config["group.id"]
        self._max_wait_ms: int = config["fetch.wait.max.ms"]
        self._min_bytes: int = config["fetch.min.bytes"]
        self._max_bytes: int = config["fetch.max.bytes"]
        self._max_records: int = config["max.poll.records"]
        self._acquire_mode: int = config["share.acquire.mode"]
        self._timeout_s = config.seconds("socket.timeout.ms") + self._max_wait_ms / 1000.0
        self._retries = retries
        self._given: deque[Acknowledgements] = deque()  # by the application's thread
        self._given_count = 0  # written by the application's thread only
        self._answered_count = 0  # written by the loop's thread only
        self._brokers: dict[int, _Broker] = {}
        self._plan: dict[int, dict[Key, UUID]] = {}
        self._planned_for: tuple[object, object] = (None, None)
        self._served = -1  # with record_limit: the broker that was asked last
        self._reported: set[Key | None] = set()
        self._closing = False
        self._deadline: float | None = None
        self._events: list[Event] = []

    # What the client calls

    def acknowledge(self, acknowledgements: Iterable[Acknowledgements]) -> None:
        """Send these, with the next fetch or before. From any thread; then wake the machine."""
        for each in acknowledgements:
            self._given_count += 1
            self._given.append(each)

    @property
    def unanswered(self) -> int:
        """How many of those were not reported as `Acknowledged` yet."""
        return self._given_count - self._answered_count

    def close(self) -> None:
        """Send what is acknowledged and end all sessions; `SessionsClosed` follows."""
        self._closing, self.demand = True, Demand.NONE
        self.queue.clear()

    # The machine

    def poll(self, now: float) -> Iterator[Send]:
        """One request for each broker that has none on the wire and something to be asked or told."""
        self._hand_over()
        wanted, fetches = self._wanted(), self.fetches
        asks = self.demand is not Demand.NONE and not self.queue and not self._closing
        for node in self._in_turn({*self._brokers, *wanted}):
            broker = self._brokers.get(node)
            if broker is None or broker.session.lost:
                if node not in wanted or not asks:
                    continue
                broker = self._begin(node, broker)
            if broker.flying is None and (now >= broker.retry_at or self._closing):
                send = self._request(broker, wanted.get(node, {}), asks)
                if send is not None:
                    broker.flying, broker.asked_at = send, now
                    yield send
        if self.fetches != fetches and self.demand is Demand.ONCE:
            self.demand = Demand.NONE
        if self._closing and all(broker.flying is None for broker in self._brokers.values()):
            self._closing, self._brokers = False, {}
            self._events.append(SessionsClosed())
        self._deadline = min((broker.retry_at for broker in self._brokers.values()
                              if broker.flying is None and broker.retry_at > now), default=None)

    def deadline(self) -> float | None:
        """When the first broker may be asked again after an error."""
        return self._deadline

    def events(self) -> list[Event]:
        """`RecordsReady`, `Acknowledged` and `SessionsClosed`."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Queue what was acquired, and report what was acknowledged."""
        assert isinstance(reply, (ShareFetchResponse, ShareAcknowledgeResponse))
        broker, sent = self._landed(send)
        if reply.error_code:
            self._on_session_error(broker, sent, reply.error_code, reply.error_message, now)
            return
        broker.session.answered()
        self._keep_lock_timeout(reply)
        endpoints = [_address(node) for node in reply.node_endpoints]
        for topic in reply.responses:
            for part in topic.partitions:
                self._on_part(broker, topic.topic_id, part, sent, endpoints, now)
        self._on_acknowledged(broker, sent, _UNANSWERED.code(), _UNANSWERED.str(), now)
        if broker.retry_at <= now:  # nothing in it was an error
            broker.failures = 0

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No reply: the session ends with the connection; begin another one after a pause."""
        broker, sent = self._landed(send)
        if error.code() == KafkaError._UNSUPPORTED_FEATURE and broker.session.is_open:
            self._on_unsupported(broker, sent, error)
            return
        self._end_session(broker, sent, error)
        self._metadata.refresh(now)
        self._back_off(broker, now)

    def _on_unsupported(self, broker: _Broker, sent: list[Acknowledgements], error: KafkaError) -> None:
        """A broker older than Kafka 4.2 renews nothing; it has not seen the request."""
        for each in sent:
            if each.renews:
                self._report(each, error)
            else:
                broker.pending.append(each)

    # Out

    def _hand_over(self) -> None:
        """Bring what the application has acknowledged to the brokers of its sessions."""
        while self._given:
            each = self._given.popleft()
            broker = self._brokers.get(each.session.node)
            if broker is None or broker.session is not each.session or each.session.lost:
                self._report(each, _LOST_SESSION)
            else:
                broker.pending.append(each)

    def _wanted(self) -> dict[int, dict[Key, UUID]]:
        """The assigned partitions, by the broker that leads them."""
        assignment, cluster = self._group.assignment, self._metadata.cluster
        if self._planned_for[0] is not assignment or self._planned_for[1] is not cluster:
            self._planned_for = (assignment, cluster)
            self._plan = {}
            for key, topic_id in assignment.items():
                leader, _ = self._metadata.leader(*key)
                if leader is not None:
                    self._plan.setdefault(leader, {})[key] = topic_id
        return self._plan

    def _in_turn(self, nodes: Iterable[int]) -> list[int]:
        """Brokers in the order in which they are asked: behind the one that was asked last."""
        return sorted(nodes, key=lambda node: (node <= self._served, node))

    def _begin(self, node: int, before: _Broker | None) -> _Broker:
        broker = _Broker(ShareSession(node))
        if before is not None:
            broker.failures, broker.retry_at = before.failures, before.retry_at
        self._brokers[node] = broker
        return broker

    def _request(self, broker: _Broker, wanted: Mapping[Key, UUID], asks: bool) -> Send | None:
        session = broker.session
        if self._closing:
            return self._acknowledge(broker, last=True) if session.is_open else None
        forgets = session.is_open and bool(session.known) and not wanted
        if ((asks and wanted) or forgets) and self._may_fetch(broker):
            with_fetch = [each for each in broker.pending if each.key in wanted and not each.renews]
            if len(with_fetch) == len(broker.pending):
                return self._fetch(broker, wanted)
        return self._acknowledge(broker) if broker.pending and session.is_open else None

    def _may_fetch(self, broker: _Broker) -> bool:
        """With record_limit one broker is asked at a time: together they would give too many records."""
        return self._acquire_mode != RECORD_LIMIT or not any(
            other.flying is not None and isinstance(other.flying.request, ShareFetchRequest)
            for other in self._brokers.values())

    def _fetch(self, broker: _Broker, wanted: Mapping[Key, UUID]) -> Send:
        request = ShareFetchRequest(
            group_id=self._group_id, member_id=self._group.member_id, max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes, max_bytes=self._max_bytes, max_records=self._max_records,
            batch_size=self._max_records, share_acquire_mode=self._acquire_mode)
        sent, broker.pending = broker.pending, []
        broker.session.fill_fetch(request, wanted, sent)
        self._served = broker.session.node
        self.fetches += 1
        return Send(broker.session.node, request, self._timeout_s, context=(broker, sent))

    def _acknowledge(self, broker: _Broker, *, last: bool = False) -> Send:
        request = ShareAcknowledgeRequest(group_id=self._group_id, member_id=self._group.member_id)
        sent, broker.pending = broker.pending, []
        broker.session.fill_acknowledge(request, sent, last=last)
        if last:
            broker.session.end()
        return Send(broker.session.node, request, self._timeout_s, context=(broker, sent))

    # Back

    def _landed(self, send: Send) -> tuple[_Broker, list[Acknowledgements]]:
        broker: _Broker
        broker, sent = send.context
        broker.flying = None
        return broker, list(sent)

    def _keep_lock_timeout(self, reply: ShareFetchResponse | ShareAcknowledgeResponse) -> None:
        if reply.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = reply.acquisition_lock_timeout_ms

    @property
    def _lock_s(self) -> float:
        return _UNSAID_LOCK_S if self.lock_timeout_ms is None else self.lock_timeout_ms / 1000.0

    def _held_until(self, broker: _Broker, now: float) -> float:
        """When records that a reply has brought are held no more.

        The reply may have lain in the kernel while this process stood still: others have its records by now. So the
        time counts from the request on, unless the broker may have waited with it for much of that time.
        """
        waits_little = self._max_wait_ms / 1000.0 <= self._lock_s * _SHORT_WAIT
        return (broker.asked_at if waits_little else now) + self._lock_s

    def _on_part(self, broker: _Broker, topic_id: UUID, part: _Part, sent: list[Acknowledgements],
                 endpoints: list[NodeAddress], now: float) -> None:
        code, message = ((part.acknowledge_error_code, part.acknowledge_error_message)
                         if isinstance(part, ShareFetchPartitionData) else (part.error_code, part.error_message))
        self._on_acknowledged(broker, _taken(sent, (topic_id, part.partition_index)), code, message, now)
        name = self._metadata.cluster.names.get(topic_id)
        if name is None:
            return  # the topic was deleted
        key = (name, part.partition_index)
        if not self._follow_leader(key, part, endpoints) and isinstance(part, ShareFetchPartitionData):
            self._on_partition(broker, key, topic_id, part, now)

    def _on_partition(
        self, broker: _Broker, key: Key, topic_id: UUID, part: ShareFetchPartitionData, now: float
    ) -> None:
        if part.error_code:
            self._on_partition_error(broker, key, part, now)
            return
        self._reported.discard(key)
        if part.acquired_records and not self._closing:
            ranges = [(held.first_offset, held.last_offset, held.delivery_count) for held in part.acquired_records]
            self.queue.append(AcquiredBatch(
                key, topic_id, broker.session, ranges, part.records or b"", self._held_until(broker, now)))
            self._tell_ready()

    def _on_partition_error(self, broker: _Broker, key: Key, part: ShareFetchPartitionData, now: float) -> None:
        code = part.error_code
        if share_fetch_error_action(code) is ShareFetchErrorAction.REPORT:
            self._fail(key, KafkaError(code, f"Fetch from {key[0]}[{key[1]}] failed: "
                                             f"{part.error_message or KafkaError(code).str()}"))
        self._metadata.refresh(now)
        self._back_off(broker, now)

    def _follow_leader(self, key: Key, part: _Part,
                       endpoints: list[NodeAddress]) -> bool:
        """Take over a leader that the reply names (KIP-951); True when it was not known."""
        leader = part.current_leader
        return leader is not None and self._metadata.update_leader(
            *key, leader.leader_id, leader.leader_epoch, endpoints)

    def _on_session_error(self, broker: _Broker, sent: list[Acknowledgements], code: int, message: str | None,
                          now: float) -> None:
        error = KafkaError(code, message or None)
        action = share_session_error_action(code)
        ended = broker.session.epoch == 0 and action is ShareSessionErrorAction.LOST
        self._end_session(broker, sent, error)
        if action is ShareSessionErrorAction.REPORT:
            self._fail(None, KafkaError(code, f"Share group {self._group_id!r}: {error.str()}"))
        if action is not ShareSessionErrorAction.LOST or ended:
            self._back_off(broker, now)

    def _end_session(self, broker: _Broker, sent: list[Acknowledgements], error: KafkaError) -> None:
        broker.session.end()
        pending, broker.pending = broker.pending, []
        for each in sent:
            self._report(each, error)
        for each in pending:
            self._report(each, _LOST_SESSION)

    def _on_acknowledged(
        self, broker: _Broker, sent: list[Acknowledgements], code: int, message: str | None, now: float
    ) -> None:
        """A partition's acknowledgements were answered: they hold, are sent again, or do not hold."""
        for each in sent:
            if not code:
                self._report(each, None)
                continue
            each.give_up_at = each.give_up_at or now + self._lock_s
            if (acknowledge_error_action(code) is AcknowledgeErrorAction.RETRY and now < each.give_up_at
                    and broker.session.is_open):
                broker.pending.append(each)
                self._back_off(broker, now)
            else:
                self._report(each, KafkaError(code, message or None))

    def _report(self, each: Acknowledgements, error: KafkaError | None) -> None:
        self._answered_count += 1
        self._events.append(Acknowledged(each.key, frozenset(each.types), error))

    def _fail(self, key: Key | None, error: KafkaError) -> None:
        """Tell the application, once until it works again."""
        if key not in self._reported:
            self._reported.add(key)
            self.fail(key, error)

    def fail(self, key: Key | None, error: KafkaError) -> None:
        """Queue an error for the application (loop's thread)."""
        self.queue.append(ShareFailure(key, error))
        self._tell_ready()

    def _tell_ready(self) -> None:
        if _READY not in self._events:
            self._events.append(_READY)

    def _back_off(self, broker: _Broker, now: float) -> None:
        broker.failures += 1
        broker.retry_at = now + self._retries.wait_s(broker.failures)


def _taken(sent: list[Acknowledgements], place: tuple[UUID, int]) -> list[Acknowledgements]:
    """Those of one partition, taken out of a list."""
    found = [each for each in sent if (each.topic_id, each.key[1]) == place]
    for each in found:
        sent.remove(each)
    return found


def _address(node: FetchNodeEndpoint | AcknowledgeNodeEndpoint) -> NodeAddress:
    return NodeAddress(node.node_id, node.host, node.port, node.rack)
