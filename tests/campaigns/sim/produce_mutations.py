"""The rules of the produce path, each broken: order, numbers, doubts, pauses, parts of batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from headrace.errors import KafkaError
from headrace.machines.machine import Send
from headrace.machines.producer import sender, sequences, split
from headrace.machines.producer.batch_queue import BatchQueues, BatchState, PartitionQueue, ProducerBatch
from headrace.machines.producer.error_actions import ErrorAction
from headrace.machines.producer.lone_batch import BrokerLoad, Lend, LoneBatches, LoneLane
from headrace.machines.producer.sender import BatchDone, Limits, Sender
from headrace.machines.producer.sequences import Sequences
from headrace.wire.messages.producer.produce import PartitionProduceResponse, ProduceResponse

from . import divided, made_anew, produce
from .direct_ways import DirectWays
from .mutation import Rules

PRODUCE_RULES = Rules()
broken = PRODUCE_RULES.broken


@broken("A retry returns to its place: not to the end", produce.run_schedule, 300, "stored behind")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionQueue, "insert", lambda self, batch: self.waiting.append(batch))


@broken("A retry returns to its place: not to the front", produce.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionQueue, "insert", lambda self, batch: self.waiting.appendleft(batch))


@broken("A retry keeps its sequence", produce.run_schedule, 300, "stored twice")
def _(patch: pytest.MonkeyPatch) -> None:
    assign = Sequences.assign_sequence

    def assign_anew(self: Sequences, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.sequence, batch.stamped = -1, False
        assign(self, queue, batch)

    patch.setattr(Sequences, "assign_sequence", assign_anew)


@broken("A batch is sent again after a passing error", produce.run_schedule, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BatchQueues, "requeue", lambda self, batch, retry_at: None)


@broken("A retry waits until nothing of its partition is in flight", produce.run_schedule, 300, "others' way")
def _(patch: pytest.MonkeyPatch) -> None:
    def eager(self: PartitionQueue, now: float, limit: int) -> ProducerBatch | None:
        ready = self.waiting and now >= self.retry_at and len(self.in_flight) < limit
        return self.waiting[0] if ready and self.waiting[0].state is BatchState.QUEUED else None

    patch.setattr(PartitionQueue, "sendable", eager)


@broken("A batch that is being compressed is not overtaken", produce.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    sendable = PartitionQueue.sendable

    def overtaken(self: PartitionQueue, now: float, limit: int) -> ProducerBatch | None:
        ready = next((batch for batch in self.waiting if batch.state is BatchState.QUEUED), None)
        if ready is not None:
            self.waiting.remove(ready)
            self.waiting.appendleft(ready)
        return sendable(self, now, limit)

    patch.setattr(PartitionQueue, "sendable", overtaken)


@broken("Until the first batch is stored only one is in flight", produce.run_schedule, 700)
def _(patch: pytest.MonkeyPatch) -> None:
    allows = Sequences.allows

    def allows_at_once(self: Sequences, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        queue.partition_sequence.confirmed = True
        return allows(self, queue, batch)

    patch.setattr(Sequences, "allows", allows_at_once)


@broken("Only one is in flight at first also when a topic was made anew", made_anew.run_schedule, 10_000,
        "stored behind")
def _(patch: pytest.MonkeyPatch) -> None:
    def check_known(self: Sequences, queue: PartitionQueue, topic_id: Any, now: float) -> None:
        own = queue.partition_sequence
        own.topic_id = topic_id
        own.confirmed &= now - own.looked_at <= sequences._SILENCE_S
        own.looked_at = now

    patch.setattr(Sequences, "check_known", check_known)


@broken("What the topic before has stored says nothing about one that was made anew", made_anew.run_schedule, 50_000,
        "stored behind")
def _(patch: pytest.MonkeyPatch) -> None:
    def check_known(self: Sequences, queue: PartitionQueue, topic_id: Any, now: float) -> None:
        own = queue.partition_sequence
        if topic_id != own.topic_id or now - own.looked_at > sequences._SILENCE_S:
            own.topic_id, own.confirmed = topic_id, False
        own.looked_at = now

    patch.setattr(Sequences, "check_known", check_known)


@broken("Only one is in flight at first also after a long silence", produce.run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequences, "_SILENCE_S", math.inf)


@broken("No batch goes five places beyond the oldest that is unresolved", produce.run_schedule, 20_000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequences, "_RECOGNISED", 100)


@broken("A refusal says something about the first unresolved batch only", produce.run_schedule, 300, "new epoch")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionQueue, "is_first", lambda self, batch: True)


@broken("A refused sequence is not sent for ever", produce.run_schedule, 600, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sequences, "on_refused", lambda self, batch, forgotten: True)


@broken("What may be stored gets no new sequence", produce.run_schedule, 600, "stored twice")
def _(patch: pytest.MonkeyPatch) -> None:
    on_refused = Sequences.on_refused

    def sure(self: Sequences, batch: ProducerBatch, forgotten: bool) -> bool:
        batch.maybe_stored = False
        return on_refused(self, batch, forgotten)

    patch.setattr(Sequences, "on_refused", sure)


@broken("Numbers begin again in the next epoch only", produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    restart = sequences.restart
    patch.setattr(sequences, "restart", lambda queue, epoch: restart(queue, epoch - 1))


@broken("Batches with sequences are resolved before sequences begin again", produce.run_schedule, 1500)
def _(patch: pytest.MonkeyPatch) -> None:
    allows = Sequences.allows

    def at_once(self: Sequences, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        own = queue.partition_sequence
        if own.needs_epoch_bump:
            sequences.restart(queue, own.epoch + 1)
        return allows(self, queue, batch)

    patch.setattr(Sequences, "allows", at_once)


@broken("A producer id whose epochs are used up is replaced", produce.run_schedule, 600, "OverflowError")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequences, "MAX_EPOCH", 100_000)


@broken("Who has failed for good waits for no moment that has passed", produce.run_schedule, 1000, "spin")
def _(patch: pytest.MonkeyPatch) -> None:
    deadline = Sender.deadline

    def asking(self: Sender) -> float | None:
        failed, self.failed = self.failed, None
        try:
            return deadline(self)
        finally:
            self.failed = failed

    patch.setattr(Sender, "deadline", asking)


@broken("An answer that is missing leaves the batch's fate open", produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    on_error = Sender.on_error

    def sure(self: Sender, send: Send, error: KafkaError, now: float) -> None:
        on_error(self, send, KafkaError(error.code(), error.str(), maybe_applied=False), now)

    patch.setattr(Sender, "on_error", sure)


@broken("An error that may come after the append leaves it open too", produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    error_action = sender.error_action

    def sure(code: int) -> ErrorAction:
        action = error_action(code)
        return ErrorAction.REJECTED if action is ErrorAction.RETRY else action

    patch.setattr(sender, "error_action", sure)


@broken("Who is not the leader may have been when it stored the batch", produce.run_schedule, 1500)
def _(patch: pytest.MonkeyPatch) -> None:
    retry = Sender._retry

    def sure(self: Sender, batch: ProducerBatch, error: KafkaError, now: float, **how: bool) -> None:
        how["maybe_stored"] &= error.code() != KafkaError.NOT_LEADER_FOR_PARTITION
        retry(self, batch, error, now, **how)

    patch.setattr(Sender, "_retry", sure)


@broken("A partition that an answer leaves out counts as not answered", produce.run_schedule, 600, "is lost")
def _(patch: pytest.MonkeyPatch) -> None:
    answers = sender.answers_by_partition
    patch.setattr(sender, "answers_by_partition", lambda *asked: _Stored(answers(*asked)))


class _Stored(dict[Any, Any]):
    """Says that what is not there was stored."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key) or PartitionProduceResponse(index=key[1])


@broken("Who gives a batch up says that it may be stored", produce.run_schedule, 600, "surely failed")
def _(patch: pytest.MonkeyPatch) -> None:
    def give_up(self: Sender, batch: ProducerBatch, error: KafkaError) -> None:
        self._sequences.on_given_up(batch, error)
        self._report(BatchDone(batch, error))

    patch.setattr(Sender, "_give_up", give_up)


@broken("A batch is reported once", produce.run_schedule, 600, "reported twice")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sender, "_report", lambda self, done: self._events.append(done))


@broken("A broker that asks for a pause gets one", produce.run_schedule, 600, "asked for a pause")
def _(patch: pytest.MonkeyPatch) -> None:
    on_reply = Sender.on_reply

    def restless(self: Sender, send: Send, reply: Any, now: float) -> None:
        if isinstance(reply, ProduceResponse):
            reply.throttle_time_ms = 0
        on_reply(self, send, reply, now)

    patch.setattr(Sender, "on_reply", restless)


@broken("No more requests are in flight than allowed", produce.run_schedule, 600, "than allowed")
def _(patch: pytest.MonkeyPatch) -> None:
    init: Callable[..., None] = Sender.__init__

    def one_more(self: Sender, *args: Any, **how: Any) -> None:
        init(self, *args, **how)
        limits = self._limits
        self._limits = Limits(limits.acks, limits.max_in_flight + 1, limits.max_request_bytes, limits.request_timeout_s,
                              message_timeout_s=limits.message_timeout_s)

    patch.setattr(Sender, "__init__", one_more)


@broken("Who is not the leader is not asked for ever", produce.run_schedule, 600, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sender, "_follow_leader", lambda self, queue, answer, endpoints, now: False)


@broken("A leader that is named for a topic that was made anew meanwhile is not believed", made_anew.run_schedule, 6000,
        "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    answers = sender.answers_by_partition
    patch.setattr(sender, "answers_by_partition", lambda request, reply, topic_id: answers(
        request, reply, {topic.name: topic.topic_id for topic in request.topic_data}.__getitem__))


# The short way of a batch that is alone

@broken("A batch that is alone gives a broker the pause that it asked for", produce.run_schedule, 600,
        "asked for a pause")
def _(patch: pytest.MonkeyPatch) -> None:
    init: Callable[..., None] = LoneBatches.__init__

    def heedless(self: LoneBatches, *args: Any, **limits: Any) -> None:
        init(self, *args, **limits)
        known = self._load
        self._load = BrokerLoad()
        self._load.requests = known.requests

    patch.setattr(LoneBatches, "__init__", heedless)


@broken("A batch that is alone is no request more than allowed", produce.run_schedule, 600, "than allowed")
def _(patch: pytest.MonkeyPatch) -> None:
    init: Callable[..., None] = LoneBatches.__init__

    def one_more(self: LoneBatches, *args: Any, max_in_flight: int, **limits: Any) -> None:
        init(self, *args, max_in_flight=max_in_flight + 1, **limits)

    patch.setattr(LoneBatches, "__init__", one_more)


@broken("A batch that is alone takes its number from those of the partition", produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    assign_alone = Sequences.assign_alone

    def number_again(self: Sequences, queue: PartitionQueue, *args: Any) -> bool:
        own = queue.partition_sequence
        before = own.next_sequence
        numbered = assign_alone(self, queue, *args)
        own.next_sequence = before
        return numbered

    patch.setattr(Sequences, "assign_alone", number_again)


# Batches that their own threads send

@broken("A batch that was sent directly takes its number from those of the partition", produce.run_schedule, 6_000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sequences, "assign_sent", lambda self, batch, now: None)


@broken("What was sent directly is taken back before the loop sends", produce.run_schedule, 20_000, "than allowed")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LoneBatches, "take_back", lambda self: None)


@broken("A pause that the broker asked for holds for direct requests as well", produce.run_schedule, 20_000,
        "asked for a pause")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sender, "_end_lending", lambda self: None)


@broken("Before a batch is queued, its partition's are no longer sent directly", produce.run_schedule, 20_000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionQueue, "end_direct", lambda self: None)


@broken("What is lent has the partition's next number when it is lent", produce.run_schedule, 6_000)
def _(patch: pytest.MonkeyPatch) -> None:
    offer, lend, numbers = LoneBatches.offer, LoneBatches.lend, {}

    def early(self: LoneBatches, send: Send, now: float) -> bool:
        before = self._offered
        if offer(self, send, now):
            numbers[self] = self._sequences.next_of(send.context[0].queue)
            return True
        self._offered = before
        return False

    def late(self: LoneBatches, now: float) -> Lend | None:
        lent = lend(self, now)
        if lent is not None:
            lent.producer = numbers[self]
        return lent

    patch.setattr(LoneBatches, "offer", early)
    patch.setattr(LoneBatches, "lend", late)


@broken("Nothing is sent directly while a batch of its partition is on its way to its queue", produce.run_schedule,
        6_000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DirectWays, "suspend", lambda self, partition: None)


@broken("What is in flight directly is in flight for the sender when it is taken back", produce.run_schedule, 6_000)
def _(patch: pytest.MonkeyPatch) -> None:
    take_over = LoneBatches.take_over

    def forgetful(self: LoneBatches, lane: LoneLane, *args: Any) -> Send:
        send = take_over(self, lane, *args)
        lane.queue.in_flight.clear()
        return send

    patch.setattr(LoneBatches, "take_over", forgetful)


# Parts of batches

put_in_place = split._put_in_place


def _changed(patch: pytest.MonkeyPatch, change: Callable[[ProducerBatch, list[ProducerBatch]], None]) -> None:
    """Do something to the parts of a batch right after it was divided."""

    def mutated(batch: ProducerBatch, parts: Any, error: KafkaError) -> list[ProducerBatch]:
        made = put_in_place(batch, parts, error)
        change(batch, made)
        return made

    patch.setattr(split, "_put_in_place", mutated)


@broken("Halves keep the sequences of their records", divided.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    def forget_numbers(batch: ProducerBatch, made: list[ProducerBatch]) -> None:
        for part in made:
            part.sequence = -1

    _changed(patch, forget_numbers)


@broken("The fate of halves is as uncertain as that of the whole", divided.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    def be_sure(batch: ProducerBatch, made: list[ProducerBatch]) -> None:
        for part in made:
            part.maybe_stored = False

    _changed(patch, be_sure)


@broken("Each part has a place of its own in the order", divided.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    def stay(batch: ProducerBatch, made: list[ProducerBatch]) -> None:
        for part in made:
            part.position = batch.position
        made[0].position += 1

    _changed(patch, stay)


set_aside = split.set_aside


@broken("Records that the broker does not name are stored", divided.run_schedule, 600, "failed with others")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(split, "set_aside", lambda *args, keep_rest: set_aside(*args, keep_rest=False))


@broken("A rest that may be stored is not sent again", divided.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    def sent_again(batch: ProducerBatch, *args: Any, **kwargs: Any) -> Any:
        batch.maybe_stored = False
        return set_aside(batch, *args, **kwargs)

    patch.setattr(split, "set_aside", sent_again)
