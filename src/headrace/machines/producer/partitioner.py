"""The balance of records without a key: which partitions are drawn less often, and which not at all (KIP-794).

A topic's accumulator draws a partition for each turn. This machine looks at the queues behind them, after the sender
has taken what can be sent, and gives the accumulators the partitions' weights: the longer a queue, the less its
partition weighs. A partition that cannot be reached weighs nothing; nor, if so configured, one led outside of the
client's rack.

It sends nothing, and moves no record that has a partition: order and sequences do not depend on it. It must not
know keys. Came from: `machines.producer.batch_queue`. Read next: `buffers.record_accumulator`, which draws.
Source: Java's `BuiltInPartitioner`, `RecordAccumulator.partitionReady`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from headrace.errors import KafkaError
from headrace.machines.cluster.metadata import Cluster, TopicInfo
from headrace.machines.machine import Event, Send
from headrace.machines.producer.batch_queue import BatchQueues, PartitionQueue
from headrace.types.records import NodeAddress
from headrace.wire.schema import Struct

__all__ = ["PartitionLoadStats"]

_PAUSE_S = 0.005
"""Shortest pause between two looks at the queues."""
_PAUSE_PER_PARTITION_S = 0.00005  # a look takes a hundredth of that for each
_MOST_WEIGHT = 1_000


class WeightedBuffer(Protocol):
    """What the balance needs of `buffers.RecordAccumulator`."""

    sticky: int
    partition_count: int

    def weigh(self, weights: Sequence[int] | None) -> None:
        """Set how likely each partition is to be drawn; None: all alike."""
        ...


class LeaderView(Protocol):
    """What the balance needs of `machines.cluster.metadata`."""

    cluster: Cluster
    updates: int


class PartitionLoadStats:
    """The machine that weighs partitions.

    Args:
        accumulators: of the topics; others add to it.
        batch_queues: the queues that are looked at.
        metadata: knows the leaders.
        adaptive: weigh partitions by their queues; else all alike that have a leader.
        patience_s: seconds after which the partitions of a broker that settles none of the batches that wait for it are
            not drawn any more; 0 for ever.
        rack: draw only partitions led in this rack if there are any (KIP-1123); "" draws all.
    """

    alone, idle = True, False  # no other machine asks for the weights

    def __init__(
        self, accumulators: Mapping[str, WeightedBuffer], batch_queues: BatchQueues, metadata: LeaderView, *,
        adaptive: bool = True, patience_s: float = 0.0, rack: str = "",
    ) -> None:
        self._accumulators = accumulators
        self._batch_queues = batch_queues
        self._metadata = metadata
        self._adaptive = adaptive
        self._patience_s = patience_s or math.inf
        self._rack = rack
        self._seen = (-1, -1)
        self._looks_at = -math.inf
        self._again: float | None = None
        self._weights: dict[str, list[int]] = {}  # of topics whose partitions are not all alike
        self._out: dict[str, set[int]] = {}  # by topic: partitions that are not to be drawn
        self._infos: dict[str, TopicInfo | None] = {}  # what `_out` was made from
        self._nodes: Mapping[int, NodeAddress] = {}
        self._stuck: set[int] = set()
        self._stuck_since: dict[int, float] = {}  # by broker: when it last settled a batch, or first had one to settle
        self._watched: dict[PartitionQueue, int] = {}  # had batches waiting, and how many were settled by then

    def poll(self, now: float) -> Iterable[Send]:
        """Look at the queues, if there may be something new in them. Sends nothing."""
        busy = self._batch_queues.busy()
        picture = (self._metadata.updates, len(self._accumulators))
        self._again = None
        if picture != self._seen:
            self._seen = picture
            self._take_picture()
        elif now < self._looks_at:
            if busy or self._weights or self._watched:
                self._again = self._looks_at
            return ()
        elif not (busy or self._weights or self._watched):
            return ()
        partitions = sum(accumulator.partition_count for accumulator in self._accumulators.values())
        self._looks_at = now + max(_PAUSE_S, _PAUSE_PER_PARTITION_S * partitions)
        self._look(busy, now)
        return ()

    def deadline(self) -> float | None:
        """When a look that was put off is due, or a broker's time is over."""
        return self._again

    def _look(self, busy: list[PartitionQueue], now: float) -> None:
        if self._patience_s < math.inf:
            self._watch(busy, now)
        lengths: dict[str, dict[int, int]] = {}
        for queue in busy if self._adaptive else ():
            lengths.setdefault(queue.topic, {})[queue.partition] = len(queue.waiting)
        uneven = [topic for topic in self._accumulators if self._out.get(topic, True)]
        for topic in {**dict.fromkeys(uneven), **lengths, **self._weights}:
            accumulator = self._accumulators[topic]
            drawn = accumulator.sticky >= 0 or topic in self._weights  # else its records have keys
            weights = self._weigh(topic, accumulator.partition_count, lengths.get(topic, {}) if drawn else {})
            if weights == self._weights.get(topic):
                continue
            accumulator.weigh(weights)
            if weights is not None:
                self._weights[topic] = weights
            else:
                del self._weights[topic]

    def _take_picture(self) -> None:
        """Topics that are as they were need no new look: one topic more changes nothing in a thousand others."""
        cluster = self._metadata.cluster
        if self._rack and cluster.nodes != self._nodes:
            self._out.clear()
        self._nodes = cluster.nodes
        for topic in self._accumulators:
            info = cluster.topics.get(topic)
            if info is not self._infos.get(topic):
                self._infos[topic] = info
                self._out.pop(topic, None)

    def _weigh(self, topic: str, count: int, lengths: dict[int, int]) -> list[int] | None:
        """The weights of a topic's partitions, None if they are alike, or none can be reached."""
        out = self._out.get(topic)
        if out is None:
            out = self._out[topic] = self._left_out(topic)
        if not (lengths or out):
            return None
        longest = min(max((length for number, length in lengths.items() if number not in out), default=0), _MOST_WEIGHT)
        weights = [0 if number in out else 1 + max(longest - lengths.get(number, 0), 0) for number in range(count)]
        return None if min(weights) == max(weights) else weights

    def _left_out(self, topic: str) -> set[int]:
        cluster = self._metadata.cluster
        info = cluster.topics.get(topic)
        leaders = {} if info is None else {number: each.leader_id for number, each in info.partitions.items()}
        out = {number for number, leader in leaders.items() if leader is None or leader in self._stuck}
        if self._rack:
            here = {number for number, node in cluster.nodes.items() if node.rack == self._rack}
            away = {number for number, leader in leaders.items() if leader not in here}
            if not leaders.keys() <= out | away:
                return out | away
        return out

    def _watch(self, busy: list[PartitionQueue], now: float) -> None:
        """Find the brokers that have had something to do for too long and have settled nothing meanwhile."""
        settling: set[int | None] = set()  # since the last look
        at_work: set[int] = set()
        for queue in {**self._watched, **dict.fromkeys(busy)}:
            settled = queue.next_position - len(queue.waiting) - len(queue.in_flight)
            leader, before = self._leader(queue), self._watched.pop(queue, settled)
            if settled > before:
                settling.add(leader)
            if queue.waiting or queue.in_flight:
                self._watched[queue] = settled
                if leader is not None:
                    at_work.add(leader)
        self._stuck_since = {leader: now if leader in settling else self._stuck_since.get(leader, now)
                             for leader in at_work}
        ends = {leader: since + self._patience_s for leader, since in self._stuck_since.items()}
        self._again = min((end for end in ends.values() if end > now), default=None)
        stuck = {leader for leader, end in ends.items() if end <= now}
        if stuck != self._stuck:
            self._stuck = stuck
            self._out.clear()

    def _leader(self, queue: PartitionQueue) -> int | None:
        info = self._metadata.cluster.topics.get(queue.topic)
        partition = None if info is None else info.partitions.get(queue.partition)
        return None if partition is None else partition.leader_id

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Nothing was asked."""

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """Nothing was asked."""

    def events(self) -> list[Event]:
        """None."""
        return []
