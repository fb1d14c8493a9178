"""The sender: turns queued batches into produce requests, and answers into delivery reports or retries.

Each poll drains the partitions whose leader has room: one batch per partition and request, as many requests in flight
per broker as allowed. `error_actions` is the table of what each answer means, `sequences` gives the batches their
sequences.

Where batches are compressed, `poll` asks for that with `Seal`, and `on_sealed` takes what came of it (decision 0025).

It must not know sockets or callers. Read next: `net.driver`, which sends what `poll` returns.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from headrace.errors import KafkaError
from headrace.machines.backoff import Pauses
from headrace.machines.machine import REFUSALS, Effect, Event, Send
from headrace.machines.producer.batch_queue import (
    BATCH_TRANSITIONS,
    BatchQueues,
    BatchState,
    DirectSend,
    PartitionQueue,
    ProducerBatch,
    SealedBatch,
    UnsealedBatch,
)
from headrace.machines.producer.error_actions import (
    HOPELESS,
    ErrorAction,
    answer_error,
    answers_by_partition,
    error_action,
    forgotten,
)
from headrace.machines.producer.lone_batch import BrokerLoad, KnownLeaders, LoneBatches, LoneLane
from headrace.machines.producer.message_sets import produce_for_version
from headrace.machines.producer.produce_request import produce_request
from headrace.machines.producer.sequences import Sequences, topic_id
from headrace.machines.producer.split import split, without_headers
from headrace.slotted import slotted
from headrace.types.records import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, NodeAddress
from headrace.wire.messages.producer.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceResponse,
)
from headrace.wire.schema import Struct

if TYPE_CHECKING:
    from headrace.machines.producer.transactional_sequences import OpenTransaction

__all__ = ["BatchDone", "Leaders", "Limits", "ProducerFailed", "Seal", "Sender"]

_ANSWER_SHARE: Final = 0.1
_LONGEST_ANSWER_S: Final = 2.0
_REQUEST_OVERHEAD_BYTES: Final = 512  # header, topic name and lengths; generous
_STORE: Final = BATCH_TRANSITIONS.column("store")
_GIVE_UP: Final = BATCH_TRANSITIONS.column("give up")
_PURGE: Final = BATCH_TRANSITIONS.column("purge")


@slotted(eq=False)
class Seal(Effect):
    """A batch is to be compressed: `batch.open.seal(codec, level)`, in any thread. `Sender.on_sealed` takes the result,
    `Sender.on_seal_failed` the reason why there is none.
    """

    batch: ProducerBatch
    codec: int
    level: int


@slotted(eq=False)
class BatchDone(Event):
    """A batch's delivery report: made exactly once for each batch.

    Attributes:
        error: None when it is stored.
        base_offset: offset of its first record; -1 when not known (acks=0, an old duplicate, an error).
        timestamp_ms: the broker's time if `timestamp_type` is log append time, else -1: each record's own.
    """

    batch: ProducerBatch
    error: KafkaError | None = None
    base_offset: int = -1
    timestamp_type: int = TIMESTAMP_CREATE_TIME
    timestamp_ms: int = -1


@slotted(eq=False)
class ProducerFailed(Event):
    """No record can be stored any more; every batch, also future ones, is reported with this error."""

    error: KafkaError


class Leaders(KnownLeaders, Protocol):
    """What the sender needs of `machines.cluster.metadata`. `last_error` is why no broker could be asked."""

    last_error: KafkaError | None

    def refresh(self, now: float) -> None:
        """Ask for new metadata soon."""
        ...

    def update_leader(
        self, topic: str, partition: int, leader_id: int, leader_epoch: int, endpoints: Iterable[NodeAddress] = ()
    ) -> bool:
        """Take a hint about the new leader (KIP-951); True when that was not known."""
        ...

    def missing(self, topic: str, partition: int) -> KafkaError | None:
        """Why a partition cannot be had as the brokers describe its topic; None when it can, or that is not known."""
        ...


@slotted(frozen=True)
class Limits:
    """The producer's settings, in seconds and bytes."""

    acks: int = -1
    max_in_flight: int = 5
    max_request_bytes: int = 1_000_000
    request_timeout_s: float = 30.0
    retries: int = 2**31 - 1
    message_timeout_s: float = math.inf

    @property
    def reply_timeout_s(self) -> float:
        """Seconds to wait for the reply to a request.

        A broker that waits for all replicas answers when request.timeout.ms is over. Who gives up at that moment loses
        a connection, with all that is in flight on it, for an answer that is on its way.
        """
        extra_s = min(self.request_timeout_s * _ANSWER_SHARE, _LONGEST_ANSWER_S) if self.acks == -1 else 0.0
        return self.request_timeout_s + extra_s


class Sender:
    """The machine of the produce path.

    Args:
        batch_queues, sequences: where batches wait, and what gives them their sequences.
        leaders: knows the leaders.
        limits: settings.
        backoff_s: seconds to wait before retry n (0, 1, ...), jitter included.
        transactions: the producer's transactions, None without a `transactional.id`.
        lends: the client can carry out `Lend`.

    Attributes:
        was_let_in: a leader has answered. One that refuses the client now may let it in again: passwords and
            certificates are replaced here and there one after the other, and what knows the users may be away.
    """

    def __init__(
        self,
        batch_queues: BatchQueues,
        sequences: Sequences,
        leaders: Leaders,
        limits: Limits,
        backoff_s: Callable[[int], float],
        transactions: OpenTransaction | None = None,
        lends: bool = False,
    ) -> None:
        self.failed: KafkaError | None = None
        self.was_let_in = False
        self._batch_queues, self._sequences, self._leaders = batch_queues, sequences, leaders
        self._limits, self._pauses = limits, Pauses(backoff_s)
        self._transactions = transactions
        self._load = BrokerLoad()
        self._lone = None if transactions is not None or limits.acks == 0 else LoneBatches(
            batch_queues, sequences, leaders, self._load, acks=limits.acks, max_in_flight=limits.max_in_flight,
            request_timeout_s=limits.request_timeout_s, reply_timeout_s=limits.reply_timeout_s, lends=lends)
        self._polled_at = -math.inf
        self._never_due = False  # what `deadline` returned last
        self.alone = transactions is None
        self.idle = False
        self._events: list[Event] = []

    def poll(self, now: float) -> Sequence[Effect]:
        """Requests to send now, and batches to compress."""
        self._polled_at = now
        was_busy = bool(self._batch_queues.waits)
        if self._lone is not None and self._lone.lent:
            self._lone.check_leaders()
        if was_busy or self._lone is None or self.failed is not None or self._sequences.asks:
            self._batch_queues.collect(now)
        elif (lone := self._lone.poll(now)) is not None:
            # A batch that was opened meanwhile has its own wake-up, but perhaps none for the end of its lingering.
            self.alone = True
            self.idle = self._never_due and not self._events and not self._batch_queues.times_lingering
            return lone
        self.idle = False
        if (lost := self.failed or (self._transactions.lost if self._transactions is not None else None)) is not None:
            self.purge(lost, None)
            return []
        sends: list[Send] = []
        if self._batch_queues.waits:
            if self._lone is not None and self._lone.lent:
                self._lone.take_back()
            for batch in self._batch_queues.expired(now):
                self._batch_queues.drop(batch)
                self._give_up(batch, self._timed_out(batch))
            sends = self._drain(now)
        while was_busy and sends and self._batch_queues.collect(now):  # what was held back behind them
            sends += self._drain(now)
        if self._sequences.asks:
            sends += self._sequences.poll(now)
        self.alone = self._transactions is None and not (was_busy or self._batch_queues.waits)
        if self._lone is not None and not sends and (lend := self._lone.lend(now)) is not None:
            return [lend]
        return sends if not self._batch_queues.unsealed else [*self._seals(), *sends]

    def _seals(self) -> list[Seal]:
        queues = self._batch_queues
        return [Seal(batch, queues.codec, queues.level) for batch in queues.start_sealing()]

    def on_sealed(self, batch: ProducerBatch, sealed: SealedBatch) -> None:
        """A `Seal` was carried out."""
        self._batch_queues.on_sealed(batch, sealed)

    def on_seal_failed(self, batch: ProducerBatch, error: KafkaError) -> None:
        """A `Seal` cannot be carried out: the batch cannot be sent at all."""
        if batch.state is BatchState.SEALING:  # else it was given up meanwhile
            self._batch_queues.drop(batch)
            self._give_up(batch, error)

    def deadline(self) -> float | None:
        """When to poll again although nothing happened."""
        soonest = self._batch_queues.deadline(self._polled_at)
        if self._sequences.asks and not self.failed:
            soonest = min(soonest, self._sequences.deadline())
        for until in self._load.throttled_until.values():
            if self._polled_at < until < soonest:
                soonest = until
        self._never_due = soonest == math.inf
        return None if self._never_due else soonest

    def events(self) -> list[Event]:
        """Delivery reports, and the producer's own failure."""
        taken, self._events = self._events, []
        return taken

    # Draining

    def _drain(self, now: float) -> list[Send]:
        sends: list[Send] = []
        by_leader: dict[int, deque[PartitionQueue]] = {}
        for queue in self._batch_queues.busy():
            leader, _ = self._leaders.leader(queue.topic, queue.partition)
            if leader is None:
                if (gone := self._gone(queue)) is not None:
                    for batch in list(queue.waiting):
                        self._batch_queues.drop(batch)
                        self._give_up(batch, gone)
                elif queue.sendable(now, self._limits.max_in_flight) is not None:
                    self._leaders.refresh(now)
            elif self._has_room(leader) and self._load.throttled_until.get(leader, now) <= now:
                by_leader.setdefault(leader, deque()).append(queue)
        for leader, queues in by_leader.items():
            while queues and self._has_room(leader) and (batches := self._fill(queues, now)):
                self._load.requests[leader] = self._load.requests.get(leader, 0) + 1
                sends.append(self._request(leader, batches, now))
        return sends

    def _gone(self, queue: PartitionQueue) -> KafkaError | None:
        """Why a partition never comes back: its topic was made anew without it. Else a broker may lag behind."""
        before, now = topic_id(queue), self._leaders.topic_id(queue.topic)
        return self._leaders.missing(queue.topic, queue.partition) if before.int and now.int not in (0, before.int) \
            else None

    def _has_room(self, leader: int) -> bool:
        return self._load.requests.get(leader, 0) < self._limits.max_in_flight

    def _next(self, queue: PartitionQueue, now: float) -> ProducerBatch | None:
        batch = queue.sendable(now, self._limits.max_in_flight)
        if batch is None:
            return None
        self._sequences.check_known(queue, self._leaders.topic_id(queue.topic), now)
        return batch if self._sequences.allows(queue, batch) else None

    def _fill(self, queues: deque[PartitionQueue], now: float) -> list[ProducerBatch]:
        """Take batches for one request: one per partition, in turn, together no larger than a request may be."""
        taken: list[ProducerBatch] = []
        room = self._limits.max_request_bytes - _REQUEST_OVERHEAD_BYTES
        for _ in range(len(queues)):
            batch = self._next(queues[0], now)
            if batch is not None and taken and batch.size_bytes > room:
                break
            queue = queues.popleft()  # one without a batch to send has none for the next request either
            if batch is not None:
                room -= batch.size_bytes
                taken.append(self._batch_queues.take(queue))
                self._sequences.assign_sequence(queue, batch)
                if queue.waiting:
                    queues.append(queue)
        return taken

    def _request(self, leader: int, batches: list[ProducerBatch], now: float) -> Send:
        limits = self._limits
        request, highest = produce_request(batches, limits.acks, limits.request_timeout_s, self._transactions)
        ends = batches[0].deadline if len(batches) == 1 else min([batch.deadline for batch in batches])
        left_s = max(ends - now, 0.001)
        return Send(leader, request, min(limits.reply_timeout_s, left_s), max_version=highest,
                    expects_reply=limits.acks != 0, context=batches, for_version=produce_for_version, most_s=left_s)

    # Answers

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """The broker answered, or with acks=0 the request was written."""
        self.idle = False
        if isinstance(reply, InitProducerIdResponse):
            self.fail_on(self._sequences.on_reply(reply, now))
            return
        self._load.requests[send.destination] -= 1
        self.was_let_in = True
        usual = False
        if (template := send.template) is not None:
            template.request.part.records = None  # the memory of the batch is not kept
            usual = reply is template.reply.reply
        if template is not None and usual:
            self._stored(send.context[0], template.reply.part)
        elif isinstance(reply, ProduceResponse):
            self._on_answers(send, reply, now)
            usual = reply.throttle_time_ms == 0
        else:
            for batch in send.context:
                self._stored(batch, None)
            return
        # All is stored and nothing waits: as after most requests that carry a record or two.
        waits = bool(self._batch_queues.waits)
        self.alone = self.alone and not waits
        self.idle = usual and self.alone and not self._sequences.asks
        if self.idle and template is not None and self._lone is not None and self._lone.lends:
            self.idle = not self._lone.offer(send, now)

    def _on_answers(self, send: Send, reply: ProduceResponse, now: float) -> None:
        if reply.throttle_time_ms > 0:
            self._end_lending()
            self._load.throttled_until[send.destination] = now + reply.throttle_time_ms / 1000.0
        answers = answers_by_partition(send.request, reply, self._leaders.topic_id)
        named = reply.node_endpoints
        endpoints = [NodeAddress(n.node_id, n.host, n.port, n.rack) for n in named] if named else []
        for batch in send.context:
            answer = answers.get((batch.queue.topic, batch.queue.partition))
            if answer is None:  # counts as no answer
                answer = PartitionProduceResponse(index=batch.queue.partition, error_code=KafkaError.REQUEST_TIMED_OUT)
            self._react(batch, answer, endpoints, now)

    # Batches that the threads that produce sent by themselves

    def on_lent(self, lane: LoneLane, direct: DirectSend) -> None:
        """A `Lend` was carried out."""
        assert self._lone is not None
        self._lone.on_lent(lane, direct)

    def on_direct_stored(self, lane: LoneLane, opened: UnsealedBatch, base_offset: int, log_append_ms: int) -> None:
        """The usual reply came to a batch that was sent directly."""
        assert self._lone is not None
        answer: PartitionProduceResponse = lane.exchange.reply.part
        answer.base_offset, answer.log_append_time_ms = base_offset, log_append_ms
        self._stored(self._lone.sent(lane, opened, None), answer)

    def on_direct_reported(self, lane: LoneLane, count: int, base_offset: int, sent_at: float) -> None:
        """The same, and it was reported already."""
        assert self._lone is not None
        self._lone.reported(lane, count, base_offset, sent_at)

    def on_direct_taken_back(self, lane: LoneLane, opened: UnsealedBatch, sealed: SealedBatch) -> Send:
        """A batch was sent directly and is in flight. Returns its request, as if it came from `poll`."""
        assert self._lone is not None
        return self._lone.take_over(lane, opened, sealed)

    def _end_lending(self) -> None:
        if self._lone is not None:
            self._lone.end_lending()

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No answer came."""
        if isinstance(send.request, InitProducerIdRequest):
            if error.code() in REFUSALS and not self.was_let_in:  # these records do not wait until we may be let in
                self.purge(error, None)
            self.fail_on(self._sequences.on_error(error, now))
            return
        self._load.requests[send.destination] -= 1
        if send.template is not None:
            send.template.request.part.records = None
        self._leaders.refresh(now)
        for batch in send.context:
            self._batch_queues.settle(batch)
            if error.code() in HOPELESS and not (self.was_let_in and error.code() in REFUSALS):
                for part, why in without_headers(batch, error, self._batch_queues, now):
                    self._give_up(part, why)
            else:
                self._retry(batch, error, now, maybe_stored=error.maybe_applied)

    def _react(
        self, batch: ProducerBatch, answer: PartitionProduceResponse, endpoints: list[NodeAddress], now: float
    ) -> None:
        action = error_action(answer.error_code)
        if action is ErrorAction.STORED:
            self._stored(batch, answer)
            return
        self._batch_queues.settle(batch)
        error = answer_error(_name(batch), answer)
        hinted = False
        if action is ErrorAction.MOVED:
            hinted = self._follow_leader(batch.queue, answer, endpoints, now)
        if action is ErrorAction.FATAL:
            self._give_up(batch, error)
            self.fail_on(error)
        elif action is ErrorAction.DIVIDE and batch.state is BatchState.IN_FLIGHT:
            for part, why in split(batch, answer, error, self._batch_queues, now, self._sequences.transactional):
                self._give_up(part, why)
        elif action in (ErrorAction.FAIL, ErrorAction.DIVIDE):
            self._give_up(batch, error)
        elif action is ErrorAction.SEQUENCE and not self._sequences.on_refused(
                batch, forgotten(answer, batch.queue.last_offset)):
            self._give_up(batch, self._sequences.refusal(error))
        else:
            maybe_stored = action in (ErrorAction.RETRY, ErrorAction.MOVED)
            self._retry(batch, error, now, maybe_stored=maybe_stored, at_once=hinted)

    def _follow_leader(
        self, queue: PartitionQueue, answer: PartitionProduceResponse, endpoints: list[NodeAddress], now: float
    ) -> bool:
        """Take the broker's hint at the new leader; True when it is new. If not, the topic may have been made anew."""
        hint = answer.current_leader
        is_new = hint.leader_id >= 0 and self._leaders.update_leader(
            queue.topic, queue.partition, hint.leader_id, hint.leader_epoch, endpoints)
        if not is_new:
            self._leaders.refresh(now)
        return is_new

    def _stored(self, batch: ProducerBatch, answer: PartitionProduceResponse | None) -> None:
        """A broker has the batch; without an answer, which acks=0 gets none of, the kernel has it."""
        batch.queue.in_flight.remove(batch)
        batch.queue.last_error = None
        self._sequences.on_stored(batch.queue)
        offset, stamp_ms = -1, -1
        if answer is not None:
            offset = -1 if answer.error_code else answer.base_offset  # a duplicate's is not known
            stamp_ms = answer.log_append_time_ms
        if offset >= 0:
            batch.queue.last_offset = offset + batch.count - 1
        time_type = TIMESTAMP_LOG_APPEND_TIME if stamp_ms >= 0 else TIMESTAMP_CREATE_TIME
        self._report(BatchDone(batch, None, offset, time_type, stamp_ms))
        batch.state = _STORE[batch.state]

    def _retry(
        self, batch: ProducerBatch, error: KafkaError, now: float, *, maybe_stored: bool, at_once: bool = False
    ) -> None:
        batch.maybe_stored |= maybe_stored and not batch.void
        before, batch.last_error, batch.queue.last_error = batch.last_error, error, error
        if batch.state is BatchState.PURGED:
            self._sequences.on_given_up(batch, error)
            batch.state = _GIVE_UP[batch.state]
        elif batch.attempts > self._limits.retries:
            self._give_up(batch, error)
        elif batch.deadline <= now:
            self._give_up(batch, self._timed_out(batch, before if error == KafkaError._TIMED_OUT else None))
        else:
            self._batch_queues.requeue(batch, now if at_once else self._pauses.until(batch.attempts - 1, now))

    def _give_up(self, batch: ProducerBatch, error: KafkaError) -> None:
        if batch.maybe_stored and not error.maybe_applied:
            error = KafkaError(error.code(), error.str(), error.fatal(), error.retriable(), maybe_applied=True)
        self._sequences.on_given_up(batch, error)
        self._report(BatchDone(batch, error))
        batch.state = _GIVE_UP[batch.state]

    def _report(self, done: BatchDone) -> None:
        if done.batch.state is not BatchState.PURGED:  # else that was its report
            self._events.append(done)

    def _timed_out(self, batch: ProducerBatch, before: KafkaError | None = None) -> KafkaError:
        """Time is over. `before` failed in front of an attempt for which little time may have been left."""
        last = batch.last_error or batch.queue.last_error or self._sequences.last_error or self._leaders.last_error
        why = f"last error: {last}" if last else "its leader was not reached"
        if before is not None and before != last:
            why += f"; before that: {before}"
        text = f"{_name(batch)}: not delivered within message.timeout.ms ({self._limits.message_timeout_s:g} s); {why}"
        return KafkaError(KafkaError._MSG_TIMED_OUT, text, maybe_applied=batch.maybe_stored)

    def purge(self, queued: KafkaError | None, in_flight: KafkaError | None) -> None:
        """Report batches as failed: those that wait, those in flight, or both; None leaves a kind alone."""
        self._end_lending()
        if queued is not None:
            self._batch_queues.collect(self._polled_at, everything=True)
            for batch in self._batch_queues.waiting():
                self._batch_queues.drop(batch)
                self._give_up(batch, queued)
        if in_flight is not None:
            for batch in self._batch_queues.in_flight():
                if batch.state is BatchState.IN_FLIGHT:
                    self._report(BatchDone(batch, in_flight))
                    batch.state = _PURGE[batch.state]  # its sequence is settled when the answer comes
                if self._transactions is not None:
                    self._transactions.on_record_failed(in_flight)

    def unresolved(self) -> bool:
        """True while a batch is neither stored nor given up."""
        self._end_lending()
        return bool(self._batch_queues.waiting() or self._batch_queues.in_flight())

    def fail_on(self, error: KafkaError | None) -> None:
        """Stop for good; nothing happens without an error, or when it has stopped."""
        if error is None or self.failed is not None:
            return
        self.failed = KafkaError(error.code(), f"The producer cannot go on: {error.str()}", fatal=True)
        if self._transactions is not None:
            self._transactions.on_fatal(self.failed)
        self._events.insert(0, ProducerFailed(self.failed))  # no delivery callback can send another record
        self.purge(self.failed, None)


def _name(batch: ProducerBatch) -> str:
    return f"{batch.queue.topic}[{batch.queue.partition}]"
