"""The short way of a batch that is alone: nothing waits, nothing of its partition is in flight, nothing is unusual.

At low rates that is each record, and a request for it costs more than the record (decision 0026). What stays the same
from one such batch to the next is kept for each partition: queue, leader, request, and the bytes around the records.

It does not decide differently from `machines.producer.sender`, only sooner: where anything is not as usual, the batch
is queued as every other one. Read next: `wire.templates`.
"""

from __future__ import annotations

from typing import Final, Protocol
from uuid import UUID

from headrace.machines.machine import Send
from headrace.machines.producer.batch_queue import BatchQueues, PartitionQueue, ProducerBatch
from headrace.machines.producer.message_sets import UNCHANGED_FROM, produce_for_version
from headrace.machines.producer.produce_request import produce_request
from headrace.machines.producer.sequences import Sequences, topic_id
from headrace.wire.messages.producer.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.wire.templates import ExchangeTemplate, ReplyTemplate, RequestTemplate

__all__ = ["BrokerLoad", "KnownLeaders", "LoneBatches"]

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


class _Lane:
    """What lone batches of one partition have in common."""

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


class LoneBatches:
    """Takes what is ready out of the buffers, and sends it at once if that is one batch with nothing in its way.

    Args:
        batch_queues, sequences, leaders: the sender's.
        load: the sender's, which changes it too.
        acks: how many replicas have to store a batch; not 0.
        max_in_flight: requests that may be in flight to a broker.
        request_timeout_s: seconds for a request; a batch that has less time left is queued.
    """

    def __init__(self, batch_queues: BatchQueues, sequences: Sequences, leaders: KnownLeaders, load: BrokerLoad, *,
                 acks: int, max_in_flight: int, request_timeout_s: float) -> None:
        self._batch_queues, self._sequences, self._leaders, self._load = batch_queues, sequences, leaders, load
        self._acks, self._max_in_flight, self._request_timeout_s = acks, max_in_flight, request_timeout_s
        self._lanes: dict[tuple[str, int], _Lane] = {}
        self._updates = -1

    def poll(self, now: float) -> Send | None:
        """The request with the batch that is alone; None if there is no such batch: then what was ready is queued.

        To be called while nothing waits.
        """
        batch_queues = self._batch_queues
        ready = batch_queues.ready(now)
        if len(ready) != 1:
            batch_queues.enqueue(ready)
            return None
        topic, opened = ready[0]
        lane = self._lanes.get((topic, opened.partition)) if self._updates == self._leaders.updates else None
        queue = batch_queues.queue(topic, opened.partition) if lane is None else lane.queue
        batch = queue.add(opened, opened.opened_at + batch_queues.message_timeout_s)
        batch_queues.seal(batch)
        if lane is None and (lane := self._lane(batch)) is None:
            batch_queues.has_waiting(queue)
            return None
        leader, load = lane.leader, self._load
        in_flight = load.requests.get(leader, 0)
        sealed = batch.sealed
        if (sealed is None or queue.in_flight or now < queue.retry_at or in_flight >= self._max_in_flight
                or load.throttled_until.get(leader, now) > now or batch.deadline - now < self._request_timeout_s
                or not self._sequences.assign_alone(queue, batch, lane.topic_id, now)):
            batch_queues.has_waiting(queue)
            return None
        queue.take()
        load.requests[leader] = in_flight + 1
        lane.data.records = sealed.data
        return Send(leader, lane.exchange.request.request, self._request_timeout_s, lane.max_version, True, [batch],
                    produce_for_version, lane.exchange)

    def _lane(self, batch: ProducerBatch) -> _Lane | None:
        """The lane to the leader as the metadata has it now. None without a leader, or for a topic made anew."""
        if self._updates != self._leaders.updates:
            self._lanes.clear()
            self._updates = self._leaders.updates
        queue = batch.queue
        leader, _ = self._leaders.leader(queue.topic, queue.partition)
        if leader is None or topic_id(queue) != self._leaders.topic_id(queue.topic):
            return None
        request, max_version = produce_request([batch], self._acks, self._request_timeout_s, None)
        lane = self._lanes[queue.topic, queue.partition] = _Lane(queue, leader, request, max_version)
        return lane
