"""The short way of a batch that is alone: nothing waits, nothing of its partition is in flight, nothing is unusual.

At low rates that is each record, and a request for it costs more than the record (decision 0026). What stays the same
from one such batch to the next is kept for each partition: queue, leader, request, and the bytes around the records.

Where such batches follow each other, the threads that produce may send them by themselves (`Lend`, decision 0027).

It does not decide differently from `machines.producer.sender`, only sooner: where anything is not as usual, the batch
is queued as every other one. Read next: `wire.templates`.
"""

from __future__ import annotations

from typing import Final, Protocol
from uuid import UUID

from headrace.machines.machine import Effect, Send
from headrace.machines.producer.batch_queue import (
    BatchQueues,
    DirectSend,
    PartitionQueue,
    ProducerBatch,
    SealedBatch,
    UnsealedBatch,
)
from headrace.machines.producer.message_sets import UNCHANGED_FROM, produce_for_version
from headrace.machines.producer.produce_request import produce_request
from headrace.machines.producer.sequences import Sequences, topic_id
from headrace.slotted import slotted
from headrace.wire.messages.producer.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.wire.templates import ExchangeTemplate, ReplyTemplate, RequestTemplate

__all__ = ["BrokerLoad", "KnownLeaders", "Lend", "LoneBatches", "LoneLane"]

_FEW: Final = 5
"""Direct requests in flight; brokers recognise no more batches of a producer. Who has more is better off with the loop,
which makes larger batches."""
_LARGE_BYTES: Final = 16_384
"""No larger batches are sent directly (`buffers.lanes.direct_lane`): the next would only take back the way."""
_NUMBERS: Final = ("base_offset", "log_append_time_ms", "log_start_offset")


class KnownLeaders(Protocol):
    """What this needs of `machines.cluster.metadata`; `updates` changes with every answer that it may give."""

    updates: int

    def leader(self, topic: str, partition: int) -> tuple[int | None, int]:
        """Broker id of the leader, None while it is not known, and the leader's epoch."""
        ...

    def topic_id(self, topic: str) -> UUID:
        """A topic's id; zero while it is not known."""
        ...


class BrokerLoad:
    """What the sender knows of the brokers.

    Attributes:
        requests: produce requests in flight, by broker.
        throttled_until: monotonic seconds before which a broker wants no request.
    """

    __slots__ = ("requests", "throttled_until")

    def __init__(self) -> None:
        self.requests: dict[int, int] = {}
        self.throttled_until: dict[int, float] = {}


class LoneLane:
    """What lone batches of one partition have in common.

    Attributes:
        queue: of the partition.
        leader: broker id.
        exchange: their request and its reply.
    """

    __slots__ = ("data", "exchange", "leader", "max_version", "queue", "topic_id")

    def __init__(self, queue: PartitionQueue, leader: int, request: ProduceRequest, max_version: int) -> None:
        self.queue, self.leader, self.topic_id, self.max_version = queue, leader, topic_id(queue), max_version
        (topic,) = request.topic_data
        self.data: PartitionProduceData = topic.partition_data[0]
        stored = PartitionProduceResponse(index=queue.partition)
        reply = ProduceResponse(responses=[
            TopicProduceResponse(name=queue.topic, topic_id=self.topic_id, partition_responses=[stored])])
        self.exchange = ExchangeTemplate(
            RequestTemplate(request, self.data), ReplyTemplate(reply, stored, _NUMBERS), UNCHANGED_FROM)


@slotted(eq=False)
class Lend(Effect):
    """Nothing of a partition waits or is in flight: its lone batches may be sent by the threads that produce them.

    The client lends them the connection to the leader, and says so by `Sender.on_lent`, or does nothing.

    Attributes:
        lane: what such batches have in common.
        version: of the request.
        producer: producer id, epoch and next sequence; -1 for a producer that is not idempotent.
        most: so many requests may be in flight.
        used_at: monotonic seconds; when the last batch was opened.
    """

    lane: LoneLane
    version: int
    producer: tuple[int, int, int]
    most: int
    used_at: float


class LoneBatches:
    """Takes what is ready out of the buffers, and sends it at once if that is one batch with nothing in its way.

    Args:
        batch_queues, sequences, leaders: the sender's.
        load: the sender's, which changes it too.
        acks: how many replicas have to store a batch; not 0.
        max_in_flight: requests that may be in flight to a broker.
        request_timeout_s: seconds that a broker may wait for replicas.
        reply_timeout_s: seconds for a request; a batch that has less time left is queued.
        lends: the client can carry out `Lend`.

    Attributes:
        lends: the client can carry it out, and this producer's batches may be sent so.
        lent: partitions of which that is done, by leader: at each of them they have one connection.
    """

    def __init__(self, batch_queues: BatchQueues, sequences: Sequences, leaders: KnownLeaders, load: BrokerLoad, *,
                 acks: int, max_in_flight: int, request_timeout_s: float, reply_timeout_s: float, lends: bool) -> None:
        self._batch_queues, self._sequences, self._leaders, self._load = batch_queues, sequences, leaders, load
        self._acks, self._max_in_flight = acks, max_in_flight
        self._request_timeout_s, self._reply_timeout_s = request_timeout_s, reply_timeout_s
        self._lanes: dict[tuple[str, int], LoneLane] = {}
        self._updates = -1
        self._most_s = batch_queues.message_timeout_s - batch_queues.linger_s
        self.lends = lends and batch_queues.message_timeout_s >= reply_timeout_s + batch_queues.linger_s
        self._offered: tuple[LoneLane, Send] | None = None
        self.lent: dict[int, dict[PartitionQueue, None]] = {}

    def poll(self, now: float) -> list[Send] | None:
        """The request with the batch that is alone, or none if it was sent directly.

        None if there is no such batch: then what was ready is queued.

        To be called while nothing waits.
        """
        batch_queues = self._batch_queues
        if self.lent and batch_queues.send_lone(now):
            return []
        ready = batch_queues.ready(now)
        if ready and self.lent:
            self.take_back()
        if len(ready) != 1:
            batch_queues.enqueue(ready)
            return None
        opened = ready[0]
        lane = self._lanes.get((opened.topic, opened.partition)) if self._updates == self._leaders.updates else None
        queue = batch_queues.queue(opened.topic, opened.partition) if lane is None else lane.queue
        batch = queue.add(opened, opened.opened_at + batch_queues.message_timeout_s)
        batch_queues.seal(batch)
        if lane is None and (lane := self._lane(batch)) is None:
            batch_queues.has_waiting(queue)
            return None
        leader, load = lane.leader, self._load
        in_flight = load.requests.get(leader, 0)
        sealed = batch.sealed
        if (sealed is None or queue.in_flight or now < queue.retry_at or in_flight >= self._max_in_flight
                or load.throttled_until.get(leader, now) > now or batch.deadline - now < self._reply_timeout_s
                or not self._sequences.assign_alone(queue, batch, lane.topic_id, now)):
            batch_queues.has_waiting(queue)
            return None
        queue.take()
        load.requests[leader] = in_flight + 1
        lane.data.records = sealed.data
        return [self._send(lane, batch)]

    def _send(self, lane: LoneLane, batch: ProducerBatch) -> Send:
        return Send(lane.leader, lane.exchange.request.request, self._reply_timeout_s, lane.max_version, True,
                    [batch], produce_for_version, lane.exchange, most_s=self._most_s)

    # Batches that the threads that produce send by themselves

    def offer(self, send: Send, now: float) -> bool:
        """The usual reply to a lone batch is here, and nothing waits; True if `lend` has something to say now."""
        batch: ProducerBatch = send.context[0]
        lane = self._lanes.get((batch.queue.topic, batch.queue.partition))
        self._offered = None
        if (lane is not None and batch.open.size_bytes <= _LARGE_BYTES
                and self._numbers_to_lend(lane, send, now) is not None):
            self._offered = lane, send
        return self._offered is not None

    def lend(self, now: float) -> Lend | None:
        """What was offered, as it is now: batches may have been sent since."""
        if self._offered is None:
            return None
        (lane, send), self._offered = self._offered, None
        if (lane.queue.waiting or lane.queue.direct is not None
                or (producer := self._numbers_to_lend(lane, send, now)) is None):
            return None
        batch: ProducerBatch = send.context[0]
        return Lend(lane, send.version, producer, min(self._max_in_flight, _FEW), batch.open.opened_at)

    def _numbers_to_lend(self, lane: LoneLane, send: Send, now: float) -> tuple[int, int, int] | None:
        """The next batch's, as `Sequences.next_of`. None while something of the partition is in flight, or where the
        request that was answered is not what is sent there now.
        """
        if (lane.exchange is not send.template or lane.queue.in_flight or self._updates != self._leaders.updates
                or send.version < UNCHANGED_FROM or self._load.throttled_until.get(lane.leader, now) > now):
            return None
        return self._sequences.next_of(lane.queue)

    def on_lent(self, lane: LoneLane, direct: DirectSend) -> None:
        """A `Lend` was carried out."""
        lane.queue.direct = direct
        self.lent.setdefault(lane.leader, {})[lane.queue] = None

    def end_lending(self) -> None:
        """Have all batches come here again."""
        self._offered = None
        for queues in list(self.lent.values()):
            for queue in list(queues):
                queue.end_direct()
        self.lent.clear()

    def take_back(self) -> None:
        """Before anything is sent: what is in flight directly counts as in flight."""
        for queues in list(self.lent.values()):
            for queue in list(queues):
                if queue.direct is not None:
                    queue.direct.take_back()
                    break
                del queues[queue]  # it has ended

    def check_leaders(self) -> None:
        """The metadata may have changed: what was lent may not be the way to the leader any more."""
        if self._updates != self._leaders.updates:
            self.end_lending()

    def sent(self, lane: LoneLane, opened: UnsealedBatch, sealed: SealedBatch | None) -> ProducerBatch:
        """A batch was sent directly; it counts as sent when it was opened."""
        batch = lane.queue.add_sent(opened, sealed, opened.opened_at + self._batch_queues.message_timeout_s)
        self._sequences.assign_sent(batch, opened.opened_at)
        return batch

    def reported(self, lane: LoneLane, count: int, base_offset: int, sent_at: float) -> None:
        """So many records were sent directly as one batch, which is stored."""
        lane.queue.next_position += 1
        if base_offset >= 0:
            lane.queue.last_offset = base_offset + count - 1
        self._sequences.skip(lane.queue, count, sent_at)

    def take_over(self, lane: LoneLane, opened: UnsealedBatch, sealed: SealedBatch) -> Send:
        """A batch that was sent directly is in flight, and its reply is to be handed to the sender."""
        lane.queue.direct = None
        self.lent.get(lane.leader, {}).pop(lane.queue, None)
        self._load.requests[lane.leader] = self._load.requests.get(lane.leader, 0) + 1
        return self._send(lane, self.sent(lane, opened, sealed))

    def _lane(self, batch: ProducerBatch) -> LoneLane | None:
        """The lane to the leader as the metadata has it now. None without a leader, or for a topic made anew."""
        if self._updates != self._leaders.updates:
            self._lanes.clear()
            self._updates = self._leaders.updates
        queue = batch.queue
        leader, _ = self._leaders.leader(queue.topic, queue.partition)
        if leader is None or topic_id(queue) != self._leaders.topic_id(queue.topic):
            return None
        request, max_version = produce_request([batch], self._acks, self._request_timeout_s, None)
        lane = self._lanes[queue.topic, queue.partition] = LoneLane(queue, leader, request, max_version)
        return lane
