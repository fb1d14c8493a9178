"""Fetches ahead of the application: takes replies in, queues them by partition, hands out their records.

The next request leaves as soon as a reply is in, from the offset after it, while the application decodes what came.
How far ahead is bounded by `queued.max.messages.kbytes`. Records are decoded by `take`, in the application's thread;
everything else runs in the loop's thread. The two share a deque and the partitions' states, see
`machines.consumer.subscription`. This module must not know about groups, callbacks or sockets.

Source: Java's `Fetcher`, KIP-74, KIP-320, KIP-392, KIP-951. Read next on the way back: `records.batch`,
`client.consumer.aio_consumer`; `machines.consumer.fetch_plan` for what is asked of whom.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.config import Config
from headrace.errors import ConsumeError, CorruptRecordError, KafkaError
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetch_error_actions import FetchErrorAction, fetch_error_action
from headrace.machines.consumer.fetch_lending import FetchLending
from headrace.machines.consumer.fetch_plan import FetchPlan
from headrace.machines.consumer.fetch_session import SessionPartition
from headrace.machines.consumer.subscription import PartitionState, PositionPhase, Subscription
from headrace.machines.machine import Effect, Event, Send
from headrace.records import BatchInfo, Cursor, Message, PollFastPath, scan
from headrace.records.header import scan_to_damage
from headrace.slotted import slotted
from headrace.types.records import TIMESTAMP_NOT_AVAILABLE, NodeAddress
from headrace.wire.messages.consumer.fetch import FetchResponse, PartitionData
from headrace.wire.schema import Struct

if TYPE_CHECKING:  # few programs read columns
    from headrace.records.columns.arrow_batch import ArrowBatchBuilder

__all__ = ["CompletedFetch", "Fetcher", "PositionsInDoubt", "RecordsReady"]

_NO_TIMESTAMP = (TIMESTAMP_NOT_AVAILABLE, -1)


@slotted()
class RecordsReady(Event):
    """The queue got something to take."""


_READY = RecordsReady()


@slotted()
class PositionsInDoubt(Event):
    """Positions are to be compared with the log of a new leader: see `machines.consumer.truncation`."""


@slotted(eq=False)
class CompletedFetch:
    """What one reply held for one partition: record batches, or a message that reports an error or the end.

    Attributes:
        data: whole record batches as received; the last one may be cut off.
        offset: records before it were not asked for.
        next_offset: the offset after the last whole batch.
        aborted: producer id and first offset of aborted transactions in `data`.
        count: records in `data`, as its batches say.
        leader_epoch: of the last batch; first_epoch: the same if all have it, else -1.
    """

    state: PartitionState
    epoch: int
    offset: int
    next_offset: int = -1
    leader_epoch: int = -1
    data: memoryview | bytes | bytearray = b""
    count: int = 0
    first_epoch: int = -1
    aborted: list[tuple[int, int]] | None = None
    cursor: Cursor | None = None
    notice: Message | None = None


@slotted(eq=False)
class _Beyond:
    """A position out of range. It is given up when all that was fetched before it is handed out."""

    state: PartitionState
    epoch: int
    offset: int
    error: KafkaError


class Fetcher:
    """The machine that fetches, and the queue of what it got.

    Args:
        subscription: the partitions, with their positions.
        metadata: knows the partitions' leaders.
        config: a consumer's configuration.
        on_drained: called in the application's thread when the queue has room again for a partition left out before.
        jitter: gives numbers in [0, 1) that spread the pauses behind errors.

    Attributes:
        alone: False once a position was given up or is in doubt, until the next `poll`.
        lending: which replies a thread takes by itself.
    """

    idle = False

    def __init__(
        self, subscription: Subscription, metadata: Metadata, config: Config, on_drained: Callable[[], None],
        jitter: Callable[[], float],
    ) -> None:
        self._subscription = subscription
        self._metadata = metadata
        self._on_drained = on_drained
        self._plan = FetchPlan(subscription, metadata, config, jitter)
        self._read_committed = config["isolation.level"] == 1
        self._check_crcs: bool = config["check.crcs"]
        self._max_decompressed: int = config["receive.message.max.bytes"]
        self._auto_store: bool = config["enable.auto.offset.store"]
        self._tells_eof: bool = config["enable.partition.eof"]
        self._queue: deque[CompletedFetch] = deque()
        self._set_aside: list[CompletedFetch] = []
        self._out_of_range: list[_Beyond] = []
        self._received_bytes = 0  # written by the loop's thread only
        self._allowed_from: int | None = None  # bytes that had been received; with the next nothing more is asked for
        self._released_bytes = 0  # written by the application's thread only
        self._events: list[Event] = []
        self.alone = True
        self._answered_at: float | None = None
        self.lending = FetchLending(self._plan, self._queue, CompletedFetch)

    @property
    def answered_at(self) -> float | None:
        """When a broker last answered a fetch, in monotonic seconds; None before."""
        lanes = self.lending.lanes
        return self._answered_at if lanes is None else max(self._answered_at or 0.0, lanes.answered_at) or None

    # The loop's thread: requests out, replies in

    def poll(self, now: float) -> Sequence[Effect]:
        """One request for each broker that has none on the wire and a partition with room."""
        self.alone = True
        if self._out_of_range:
            self._leave_range()
            if not self.alone:  # who looks up where to go on may have been polled in front of this
                self._on_drained()
        plan = self._plan
        if self.has_all_allowed:
            plan.allowed_bytes = 0
        lending = self.lending
        if lending.lent:
            lending.take_back_for_plan(now)
        released = self._released_bytes
        sends: Sequence[Effect] = plan.requests(now, self._waiting_bytes(released))
        if plan.starved and (plan.missed or self._released_bytes != released):
            plan.again()  # the application took something while the queue was found full
            self._on_drained()
        if plan.doubts:
            self.alone = plan.doubts = False
            self._events.append(PositionsInDoubt())
        if lending.lends and len(sends) == 1 and not (self._tells_eof or self._out_of_range or self._set_aside):
            return lending.lend(sends)
        return sends

    def allow(self, reply_bytes: int | None) -> None:
        """Ask for replies of this size, and for no more when records have come; None ends it.

        On the loop. For who may not want all that there is. A reply brings a whole batch, however small this is.
        """
        self._allowed_from = None if reply_bytes is None else self._received_bytes
        self._plan.allowed_bytes = reply_bytes
        self._plan.again()

    @property
    def has_all_allowed(self) -> bool:
        """Whether what was allowed has come, and nothing more is asked for. From any thread."""
        return self._allowed_from is not None and self._received_bytes > self._allowed_from

    def _waiting_bytes(self, released_bytes: int) -> int:
        """Bytes of records that were received, and not released."""
        lanes = self.lending.lanes
        return self._received_bytes + (0 if lanes is None else lanes.received_bytes) - released_bytes

    def deadline(self) -> float | None:
        """When the first backed-off partition may be fetched again."""
        return self._plan.deadline

    def events(self) -> list[Event]:
        """`RecordsReady` when replies came in; `PositionsInDoubt` when a new leader is to be asked."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Queue what came; the next request to this broker leaves with the following `poll`."""
        assert isinstance(reply, FetchResponse)
        self._answered_at = now
        flight = self._plan.landed(send)
        names = flight.session.names
        if not flight.session.on_reply(reply):
            self._metadata.refresh(now)
            for asked in flight.partitions.values():
                self._plan.back_off(asked.state, now)
            return
        template = send.template
        if template is not None and reply is template.reply.reply:
            data: PartitionData = template.reply.part
            (topic,) = reply.responses
            asked = flight.partitions[topic.topic, data.partition_index]
            state = asked.state
            if (state.epoch == asked.epoch and state.fetch_offset == asked.fetch_offset
                    and state.phase is PositionPhase.FETCH):  # as `_is_current`
                self._on_data(state, data, send.destination, now)
            self.lending.count(send.destination, (data,))
            data.records = None  # what is queued is not kept here as well
            self._plan.happened.append(state)
            return
        self.lending.count_all(send.destination, reply)
        for topic in reply.responses:
            name = topic.topic or names.get(topic.topic_id.int, "")
            for data in topic.partitions:
                part = flight.partitions.get((name, data.partition_index))
                if part is None:
                    continue
                state = part.state
                self._plan.look_at(state)
                if not _is_current(part):
                    continue
                if data.error_code:
                    self._on_partition_error(state, data, reply, send.destination, now)
                else:
                    self._on_data(state, data, send.destination, now)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No reply: fetch these partitions again after a pause, from their leaders of that time."""
        flight = self._plan.landed(send)
        flight.session.reset()
        self._metadata.refresh(now)
        for asked in flight.partitions.values():
            if asked.state.replica == send.destination:
                self._plan.leave_follower(asked.state, now)
            self._plan.back_off(asked.state, now)

    def _on_data(self, state: PartitionState, data: PartitionData, node: int, now: float) -> None:
        state.attempts = 0
        state.high_watermark, state.log_start = data.high_watermark, data.log_start_offset
        state.last_stable = data.last_stable_offset
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != node:
            self._on_preferred(state, data.preferred_read_replica, now)
            return
        if data.records:
            self._on_records(state, data, data.records)
        end = data.last_stable_offset if self._read_committed else data.high_watermark
        if self._tells_eof and state.fetch_offset >= end and state.eof_offset != state.fetch_offset:
            state.eof_offset = state.fetch_offset
            self._queue_error(state, KafkaError(
                KafkaError._PARTITION_EOF, f"Fetch from {state.topic}[{state.partition}] reached the end of the "
                f"partition at offset {state.fetch_offset}"))

    def _on_preferred(self, state: PartitionState, replica: int, now: float) -> None:
        """The leader has sent no records, but named a follower in this client's rack."""
        if replica in self._metadata.cluster.nodes:
            state.replica, state.replica_until = replica, now + self._plan.lease_s
        else:
            self._plan.leave_follower(state, now)
            self._metadata.refresh(now)

    def _on_records(self, state: PartitionState, data: PartitionData, records: memoryview | bytes | bytearray) -> None:
        damage = None
        try:
            batches = scan(records, state.topic, state.partition)
        except CorruptRecordError as error:
            damage, batches = error, scan_to_damage(records)
            records = memoryview(records)[:sum(batch.size for batch in batches)]
        if batches:  # else the first one is cut off, or damaged
            self._queue_batches(state, data, records, batches)
        if damage is not None:
            state.go("damaged")  # what lies in front of the damage stays in the queue
            self._queue_error(state, _damage(damage))

    def _queue_batches(self, state: PartitionState, data: PartitionData, records: memoryview | bytes | bytearray,
                       batches: list[BatchInfo]) -> None:
        aborted, count = None, 0
        for batch in batches:
            count += batch.count
        if self._read_committed and data.aborted_transactions:
            aborted = [(a.producer_id, a.first_offset) for a in data.aborted_transactions]
        first, last = batches[0], batches[-1]
        epoch = first.leader_epoch if first.leader_epoch == last.leader_epoch else -1
        fetched = CompletedFetch(state, state.epoch, state.fetch_offset, last.last_offset + 1, last.leader_epoch,
                                 records, count, epoch, aborted)
        state.received_bytes += len(records)
        state.received_records += count
        self._received_bytes += len(records)
        state.fetch_offset, state.fetch_epoch = fetched.next_offset, last.leader_epoch
        self._queue.append(fetched)  # as `_put`
        if not self._events:
            self._events.append(_READY)

    def _on_partition_error(
        self, state: PartitionState, data: PartitionData, reply: FetchResponse, node: int, now: float
    ) -> None:
        code = data.error_code
        action = fetch_error_action(code)
        if action is FetchErrorAction.OUT_OF_RANGE:
            self._on_out_of_range(state, data, node, now)
            return
        if action is FetchErrorAction.REPORT and state.attempts == 0:
            self._queue_error(state, KafkaError(code, f"Fetch from {state.topic}[{state.partition}] at offset "
                                         f"{state.fetch_offset} failed: {KafkaError(code).str()}"))
        if state.replica == node:
            self._plan.leave_follower(state, now)
        self._plan.back_off(state, now)
        leader = data.current_leader
        if leader is not None and self._metadata.update_leader(
                state.topic, state.partition, leader.leader_id, leader.leader_epoch, _addresses(reply)):
            state.retry_at = 0.0
        else:  # a hint at the known leader does not help either
            self._metadata.refresh(now)

    def _on_out_of_range(self, state: PartitionState, data: PartitionData, node: int, now: float) -> None:
        if node != self._metadata.leader(state.topic, state.partition)[0]:
            self._plan.leave_follower(state, now)  # it may lag behind: the leader has the last word
            return
        where = f"{state.topic}[{state.partition}]: offset {state.fetch_offset} is out of range"
        state.go("out of range")  # until what was fetched before is handed out
        self._out_of_range.append(_Beyond(state, state.epoch, state.fetch_offset, KafkaError(
            KafkaError._AUTO_OFFSET_RESET, f"{where} and \"auto.offset.reset\" is \"error\": seek() to an offset "
            f"of the log{f', which starts at {data.log_start_offset}' if data.log_start_offset >= 0 else ''}")))
        self._leave_range()

    def _leave_range(self) -> None:
        """Give up positions beyond the log whose partitions have nothing in the queue any more."""
        waiting: list[_Beyond] = []
        for beyond in self._out_of_range:
            state = beyond.state
            if state.epoch != beyond.epoch:
                continue  # sought or unassigned meanwhile
            if state.queued_bytes:
                waiting.append(beyond)
                continue
            self.alone = False  # another machine looks up where to go on
            if not self._subscription.reset_by_policy(state):
                self._queue_error(state, beyond.error, beyond.offset)
        self._out_of_range = waiting  # only now: who takes the last piece meanwhile sees that this waits for it

    # The queue: from here on the application's thread

    def queue_error(self, topic: str | None, partition: int, error: KafkaError, offset: int | None = None) -> None:
        """Queue an error for the application, as a message (loop's thread)."""
        state = self._subscription.get(topic or "", partition) or PartitionState(topic or "", partition)
        self._queue_error(state, error, offset)

    def put_first(self, error: KafkaError) -> None:
        """Have an error of no partition handed out before all that is queued."""
        self._queue.appendleft(_notice(PartitionState("", -1), error))

    def _queue_error(self, state: PartitionState, error: KafkaError, offset: int | None = None) -> None:
        self._put(_notice(state, error, offset))

    def _put(self, fetched: CompletedFetch) -> None:
        self._queue.append(fetched)
        if not self._events:
            self._events.append(_READY)

    @property
    def has_waiting(self) -> bool:
        """Whether something of partitions that are not paused is in the queue."""
        return any(fetched.epoch == fetched.state.epoch and not fetched.state.paused for fetched in self._queue.copy())

    def resume(self) -> None:
        """Put back what was set aside for partitions that were paused."""
        back, self._set_aside = self._set_aside, []
        self._queue.extendleft(reversed(back))

    def take(self, count: int) -> list[Message]:
        """Up to `count` messages of what is queued, moving the partitions' positions. Never waits."""
        taken: list[Message] = []
        self.take_more(taken, count)
        return taken

    def take_more(self, taken: list[Message], count: int) -> bool:
        """Add to messages what is queued, as `take`; returns whether there are `count` of them."""
        while len(taken) < count and (fetched := self._front()) is not None:
            if fetched.notice is not None:
                taken.append(fetched.notice)
                self._finish(fetched)
                continue
            self._decode(fetched, taken, count - len(taken))
        return len(taken) >= count

    def take_rows(self, rows: ArrowBatchBuilder, count: int) -> bool:
        """Add to columns what is queued, up to `count` rows, moving the partitions' positions. Never waits.

        Returns:
            Whether there are enough: `count`, or as many as find room or come before an error or another event.

        Raises:
            ConsumeError: an error or another event comes next, and there are no rows before it.
        """
        while len(rows) < count and not rows.full and (fetched := self._front()) is not None:
            if fetched.notice is None:
                if not self._decode_rows(fetched, rows, count - len(rows)):
                    return True
            elif len(rows):
                return True
            else:
                self._finish(fetched)
                raise _raised(fetched.notice)
        return len(rows) >= count or rows.full

    def take_one(self) -> Message | None:
        """What `take(1)` holds, at less cost while the same piece of the queue lasts."""
        if not self._queue:
            return None
        fetched = self._queue[0]
        cursor, state = fetched.cursor, fetched.state
        if cursor is None or fetched.epoch != state.epoch or state.paused:
            taken: list[Message] = []
            self.take_more(taken, 1)
            return taken[0] if taken else None
        try:
            message = cursor.take_one()
        except CorruptRecordError as damage:
            return self._corrupt(fetched, damage)
        if cursor.exhausted:
            self._moved(fetched, cursor)
            return message
        state.position = cursor.position
        if self._auto_store:
            state.stored = cursor.position
        return message

    def lend(self, fast_path: PollFastPath, group: Any) -> None:
        """Let a fast path hand out what is left of the present piece of the queue, if it may be handed out.

        Args:
            fast_path: opened, or left as it is.
            group: see `PollFastPath.open`.
        """
        if self._queue:
            fetched = self._queue[0]
            state = fetched.state
            if fetched.cursor is not None and fetched.epoch == state.epoch and not state.paused:
                state.fast_path = fast_path
                fast_path.open(fetched.cursor, state, self._auto_store, group)
                if fetched.epoch != state.epoch or state.paused:  # the loop's thread did that meanwhile
                    fast_path.close()

    def take_fetched(self) -> CompletedFetch | None:
        """The next piece of the queue, not decoded; its partition moves behind it."""
        fetched = self._front()
        if fetched is not None:
            self._finish(fetched)
            if fetched.notice is None:
                fetched.state.position = fetched.next_offset
        return fetched

    def _front(self) -> CompletedFetch | None:
        """The first piece that may be handed out; drops stale ones and sets aside those of paused partitions."""
        queue = self._queue
        while queue:
            fetched = queue[0]
            if fetched.epoch != fetched.state.epoch:
                self._finish(fetched)
            elif fetched.state.paused:
                self._set_aside.append(queue.popleft())
            else:
                return fetched
        return None

    def _decode(self, fetched: CompletedFetch, taken: list[Message], count: int) -> None:
        try:
            cursor = fetched.cursor or self._open(fetched)
            taken += cursor.take(count)  # before the position moves, and so after any interrupt: see `ahead`
        except CorruptRecordError as damage:
            taken.append(self._corrupt(fetched, damage))
            return
        self._moved(fetched, cursor)

    def ahead(self) -> dict[tuple[str, int], int]:
        """The positions of partitions of which more was decoded, because Ctrl-C came in between."""
        return {(fetched.state.topic, fetched.state.partition): fetched.state.position
                for fetched in self._queue.copy()
                if fetched.cursor is not None and fetched.epoch == fetched.state.epoch
                and fetched.cursor.position != fetched.state.position}

    def _decode_rows(self, fetched: CompletedFetch, rows: ArrowBatchBuilder, count: int) -> bool:
        """Add records to columns; False when damage comes next, which waits until the rows are handed out."""
        state = fetched.state
        try:
            cursor = fetched.cursor or self._open(fetched)
            rows.append(cursor, state.topic, state.partition, count, self._waiting_bytes(self._released_bytes))
        except CorruptRecordError as damage:
            if not len(rows):
                raise _raised(self._corrupt(fetched, damage)) from None
            return False
        self._moved(fetched, cursor)
        return True

    def _open(self, fetched: CompletedFetch) -> Cursor:
        """Begin to read a piece; its cursor knows how far that is done."""
        state = fetched.state
        fetched.cursor = cursor = Cursor(
            fetched.data, state.topic, state.partition, fetched.offset, check_crcs=self._check_crcs,
            aborted=fetched.aborted, max_decompressed_bytes=self._max_decompressed)
        state.leader_epoch = fetched.first_epoch
        return cursor

    def _moved(self, fetched: CompletedFetch, cursor: Cursor) -> None:
        state = fetched.state
        state.position = position = cursor.position
        if self._auto_store:
            state.stored = position
        if cursor.exhausted:
            state.leader_epoch = fetched.leader_epoch
            self._finish(fetched)

    def _corrupt(self, fetched: CompletedFetch, damage: CorruptRecordError) -> Message:
        """Report the damage to the application and stop there: going on would lose records in silence."""
        state = fetched.state
        self._finish(fetched)
        message = Message(
            state.topic, state.partition, state.position, error=_damage(damage), timestamp=_NO_TIMESTAMP)
        state.jump("damaged", state.position)
        self._plan.look_at(state)
        return message

    def _finish(self, fetched: CompletedFetch) -> None:
        self._queue.popleft()
        size, state = len(fetched.data), fetched.state
        if fetched.epoch == state.epoch:
            state.released_bytes += size
            state.released_records += fetched.count
        self._released_bytes += size
        plan = self._plan
        if (((state.left_out or plan.starved) and plan.drained(state)) or self._out_of_range
                or state.phase is PositionPhase.VALIDATE):
            self._on_drained()


def _is_current(asked: SessionPartition) -> bool:
    """Whether an answer is still of use: nothing was sought, unassigned, put in doubt or answered by others since."""
    state = asked.state
    return (state.epoch == asked.epoch and state.fetch_offset == asked.fetch_offset
            and state.phase is PositionPhase.FETCH)


def _addresses(reply: FetchResponse) -> list[NodeAddress]:
    return [NodeAddress(node.node_id, node.host, node.port, node.rack) for node in reply.node_endpoints]


def _notice(state: PartitionState, error: KafkaError, offset: int | None = None) -> CompletedFetch:
    """An error for the application, as a message."""
    at = state.fetch_offset if offset is None else offset
    message = Message(state.topic or None, state.partition, at, error=error, timestamp=_NO_TIMESTAMP)
    return CompletedFetch(state, state.epoch, state.fetch_offset, notice=message)


def _raised(event: Message) -> ConsumeError:
    error = event.error()
    assert error is not None
    return ConsumeError(error, kafka_message=event)


def _damage(damage: CorruptRecordError) -> KafkaError:
    return KafkaError(damage.error.code(), f"{damage.error.str()}; the partition is stopped: seek() past the damage to "
                      "go on")
