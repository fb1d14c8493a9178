"""A client's figures: `metrics()`, and these as JSON for `stats_cb`, under librdkafka's names (`types.metrics`).

Counts are kept per request (`net.stats`) and per batch (here); the rest is looked up on request. Fields of
librdkafka's that have no meaning here are left out of `metrics()`, and none is added. Also hands throttling on to
`throttle_cb`.

All on the loop. It must not know sockets. Source of the names: librdkafka, STATISTICS.md. Read next:
`client.peer_statistics`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace.buffers import BufferPool
from headrace.config import Config
from headrace.machines.cluster.metadata import Metadata
from headrace.net.driver import Driver
from headrace.net.settings import ConnectionState
from headrace.net.stats import BrokerStats, Window
from headrace.types.records import OFFSET_INVALID, ThrottleEvent

if TYPE_CHECKING:
    from headrace.machines.cluster.coordinator import CoordinatorFinder
    from headrace.machines.consumer.subscription import Subscription
    from headrace.machines.groups.membership import Membership
    from headrace.machines.producer.batch_queue import BatchQueues, PartitionQueue, ProducerBatch
    from headrace.machines.producer.sender import BatchDone
    from headrace.types.metrics import BrokerMetrics, GroupMetrics, Metrics, TopicMetrics

__all__ = ["ConsumerStatistics", "ProducerStatistics", "Statistics"]

Notify = Callable[..., None]
"""Called as notify(callback, *arguments): have a callback called where the client serves callbacks."""

_MOST_THROTTLES = 100
"""Most calls of `throttle_cb` that wait for `poll()`; further ones are dropped."""
_STATES = {
    ConnectionState.IDLE: "INIT",
    ConnectionState.BACKOFF: "DOWN",
    ConnectionState.CLOSING: "DOWN",
    ConnectionState.DIALLING: "CONNECT",
    ConnectionState.OPENING: "APIVERSION_QUERY",
    ConnectionState.READY: "UP",
}
_FETCH_STATES = {"COMMITTED": "offset-query", "RESET": "offset-query", "FETCH": "active",
                 "VALIDATE": "validate-epoch-wait", "FAILED": "stopped"}
"""By the names of `machines.consumer.subscription.PositionPhase`, which a producer does not load."""
_JOIN_STATES = {"PREPARING": "wait-unassign-call", "JOINING": "wait-join", "SYNCING": "wait-sync",
                "REVOKING": "wait-unassign-call", "ASSIGNING": "wait-assign-call", "STABLE": "steady",
                "LOSING": "wait-unassign-call"}
"""By the names of a member's states, whatever the kind of its group; "init" where it is no member."""
_BEST_STATE = ("UP", "APIVERSION_QUERY", "CONNECT", "DOWN", "INIT")
_numbers = {"producer": itertools.count(1), "consumer": itertools.count(1)}


class Statistics:
    """The part that all clients have; begins to call back as soon as it is made. Made on the loop.

    Args:
        config: the client's properties.
        metadata, driver: the client's.
        notify: hands `stats_cb` and `throttle_cb` over.
        waiting: how many callbacks wait.
    """

    kind = "client"

    def __init__(
        self, config: Config, metadata: Metadata, driver: Driver, notify: Notify, waiting: Callable[[], int]
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._driver = driver
        self._notify = notify
        self._waiting = waiting
        self._name = f"{config['client.id']}#{self.kind}-{next(_numbers[self.kind])}"
        self._latest: str | None = None
        self._throttles = 0
        self._timer: asyncio.TimerHandle | None = None
        self._made_at = time.monotonic()
        self._interval_s = config.seconds("statistics.interval.ms") if config["stats_cb"] is not None else 0.0
        if self._interval_s:
            self._sleep()
        if config["throttle_cb"] is not None:
            driver.traffic.on_throttle = self._on_throttle

    def stop(self) -> None:
        """Call back no more."""
        if self._timer is not None:
            self._timer.cancel()

    def metrics(self) -> Metrics:
        """The client's figures now."""
        brokers = {counts.name: self._broker(counts) for counts in self._driver.traffic.brokers.values()}
        return {
            "name": self._name, "client_id": self._config["client.id"], "type": self.kind,
            "ts": time.monotonic_ns() // 1000, "time": int(time.time()),
            "age": int((time.monotonic() - self._made_at) * 1e6), "replyq": self._waiting(),
            "tx": sum(b["tx"] for b in brokers.values()), "tx_bytes": sum(b["txbytes"] for b in brokers.values()),
            "rx": sum(b["rx"] for b in brokers.values()), "rx_bytes": sum(b["rxbytes"] for b in brokers.values()),
            "metadata_cache_cnt": len(self._metadata.cluster.topics), "simple_cnt": 0, "brokers": brokers, "topics": {},
            "msg_cnt": 0, "msg_size": 0, "msg_max": 0, "msg_size_max": 0, "txmsgs": 0, "txmsg_bytes": 0, "rxmsgs": 0,
            "rxmsg_bytes": 0}

    def _broker(self, counts: BrokerStats) -> BrokerMetrics:
        node = counts.node
        queued = [connection.queued for connection in counts.connections]
        state = min((_STATES[c.state] for c in counts.connections), key=_BEST_STATE.index, default="DOWN")
        known = node.id >= 0
        return {
            "name": counts.name, "nodeid": node.id if known else -1, "nodename": f"{node.host}:{node.port}",
            "source": "learned" if known else "configured", "state": state,
            "outbuf_cnt": sum(out for out, _ in queued), "waitresp_cnt": sum(sent for _, sent in queued),
            "tx": counts.tx, "txbytes": counts.tx_bytes, "txerrs": counts.tx_errors, "rx": counts.rx,
            "rxbytes": counts.rx_bytes, "rxerrs": counts.rx_errors, "req_timeouts": counts.timeouts,
            "req": dict(counts.requests), "connects": counts.connects, "disconnects": counts.disconnects,
            "rtt": counts.round_trip_us.metrics(), "throttle": counts.throttle_ms.metrics()}

    def _leader(self, topic: str, partition: int) -> int:
        leader, _ = self._metadata.leader(topic, partition)
        return -1 if leader is None else leader

    # Callbacks

    def _sleep(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._emit)

    def _emit(self) -> None:
        import json  # few programs ask for statistics

        from headrace.client.peer_statistics import whole_statistics

        waits = self._latest is not None  # not polled since: what waits is replaced
        whole = whole_statistics(self.metrics(), self._metadata.cluster.nodes.values())
        self._latest = json.dumps(whole, separators=(",", ":"))
        if not waits:
            self._notify(self._call_stats)
        self._sleep()

    def _call_stats(self) -> Any:
        latest, self._latest = self._latest, None
        return self._config["stats_cb"](latest)

    def _on_throttle(self, event: ThrottleEvent) -> None:
        if self._throttles < _MOST_THROTTLES:
            self._throttles += 1
            self._notify(self._call_throttle, event)

    def _call_throttle(self, event: ThrottleEvent) -> Any:
        self._throttles -= 1
        return self._config["throttle_cb"](event)


class _Acknowledged:
    """What became of the batches of one topic."""

    __slots__ = ("batch_bytes", "batch_records", "bytes", "records")

    def __init__(self) -> None:
        self.records: dict[int, int] = {}
        self.bytes: dict[int, int] = {}
        self.batch_bytes, self.batch_records = Window(), Window()


class ProducerStatistics(Statistics):
    """A producer's; further arguments are its parts.

    Args:
        buffer_pool: what waits.
        batch_queues: where batches wait.

    Attributes:
        settle: has all counted that came past the loop.
    """

    kind = "producer"

    def __init__(
        self, config: Config, metadata: Metadata, driver: Driver, notify: Notify, waiting: Callable[[], int], *,
        buffer_pool: BufferPool, batch_queues: BatchQueues,
    ) -> None:
        super().__init__(config, metadata, driver, notify, waiting)
        self._buffer_pool = buffer_pool
        self._batch_queues = batch_queues
        self.settle: Callable[[], object] = bool
        self._last: PartitionQueue | None = None  # of which a batch was acknowledged last
        self._topics: dict[str, _Acknowledged] = {}

    def on_batch(self, done: BatchDone) -> None:
        """A batch is done."""
        batch = done.batch
        if done.error is None and batch.sealed is not None:
            self.on_stored(batch.queue, batch.count, batch.sealed.size_bytes)

    def on_stored(self, queue: PartitionQueue, count: int, size_bytes: int) -> None:
        """A batch of a partition is stored: so many records in so many bytes."""
        self._last = queue
        counts = self._topics.get(queue.topic)
        if counts is None:
            counts = self._topics[queue.topic] = _Acknowledged()
        partition = queue.partition
        counts.records[partition] = counts.records.get(partition, 0) + count
        counts.bytes[partition] = counts.bytes.get(partition, 0) + size_bytes
        counts.batch_bytes.add(size_bytes)
        counts.batch_records.add(count)

    def metrics(self) -> Metrics:
        """The producer's figures now."""
        self.settle()
        config = self._config
        metrics = super().metrics()
        metrics.update({
            "msg_cnt": self._buffer_pool.messages, "msg_size": self._buffer_pool.bytes,
            "msg_max": config["queue.buffering.max.messages"],
            "msg_size_max": config["queue.buffering.max.kbytes"] * 1024, "topics": self._topic_metrics(),
            "txmsgs": sum(sum(counts.records.values()) for counts in self._topics.values()),
            "txmsg_bytes": sum(sum(counts.bytes.values()) for counts in self._topics.values())})
        if config["enable.idempotence"]:
            from headrace.machines.producer.sequences import producer_state  # a consumer does not load it

            producer_id, epoch = (-1, -1) if self._last is None else producer_state(self._last)
            metrics["eos"] = {"idemp_state": "Init" if producer_id < 0 else "Assigned", "producer_id": producer_id,
                              "producer_epoch": epoch}
        return metrics

    def _topic_metrics(self) -> dict[str, TopicMetrics]:
        waiting, flying = _by_partition(self._batch_queues.waiting()), _by_partition(self._batch_queues.in_flight())
        done = {(topic, number) for topic, counts in self._topics.items() for number in counts.records}
        topics: dict[str, TopicMetrics] = {}
        for topic, number in sorted(done | waiting.keys() | flying.keys()):
            counts = self._topics.get(topic) or _Acknowledged()
            if topic not in topics:
                topics[topic] = {"topic": topic, "batchsize": counts.batch_bytes.metrics(),
                                 "batchcnt": counts.batch_records.metrics(), "partitions": {}}
            records, size = waiting.get((topic, number), (0, 0))
            topics[topic]["partitions"][str(number)] = {
                "partition": number, "leader": self._leader(topic, number), "xmit_msgq_cnt": records,
                "xmit_msgq_bytes": size, "msgs_inflight": flying.get((topic, number), (0, 0))[0],
                "txmsgs": counts.records.get(number, 0), "txbytes": counts.bytes.get(number, 0)}
        return topics


class ConsumerStatistics(Statistics):
    """A consumer's; further arguments are its parts.

    Args:
        subscription: knows its partitions.
        take_back: has all counted that came past the loop.
        group: its membership, and `finder` finds the coordinator; None of a consumer without a group.
    """

    kind = "consumer"

    def __init__(
        self, config: Config, metadata: Metadata, driver: Driver, notify: Notify, waiting: Callable[[], int], *,
        subscription: Subscription, take_back: Callable[[], object], group: Membership | None,
        finder: CoordinatorFinder | None,
    ) -> None:
        super().__init__(config, metadata, driver, notify, waiting)
        self._subscription, self._take_back = subscription, take_back
        self._group, self._finder = group, finder
        self._rebalances = 0
        self._rebalanced_at: float | None = None
        self._committed_only = config["isolation.level"] == 1

    def on_rebalance(self) -> None:
        """Partitions come or go."""
        self._rebalances += 1
        self._rebalanced_at = time.monotonic()

    def metrics(self) -> Metrics:
        """The consumer's figures now."""
        self._take_back()
        metrics = super().metrics()
        topics: dict[str, TopicMetrics] = {}
        states = list(self._subscription)
        for state in states:
            high, stable, position = state.high_watermark, state.last_stable, state.position
            end = min(stable, high) if self._committed_only and stable >= 0 else high
            topic = topics.setdefault(state.topic, {"topic": state.topic, "partitions": {}})
            topic["partitions"][str(state.partition)] = {
                "partition": state.partition, "leader": self._leader(state.topic, state.partition),
                "next_offset": state.fetch_offset, "app_offset": position, "stored_offset": state.stored,
                "committed_offset": state.committed, "lo_offset": state.log_start, "hi_offset": high,
                "ls_offset": stable, "eof_offset": OFFSET_INVALID if state.eof_offset < 0 else state.eof_offset,
                "leader_epoch": state.leader_epoch, "fetch_state": _FETCH_STATES[state.phase.name],
                "consumer_lag": _lag(end, position), "consumer_lag_stored": _lag(end, state.stored),
                "rxmsgs": state.received_records, "rxbytes": state.received_bytes,
                "fetchq_cnt": state.received_records - state.released_records, "fetchq_size": state.queued_bytes}
        metrics.update({
            "topics": topics, "cgrp": self._group_metrics(len(states)),
            "rxmsgs": self._subscription.left_records + sum(state.received_records for state in states),
            "rxmsg_bytes": self._subscription.left_bytes + sum(state.received_bytes for state in states)})
        return metrics

    def _group_metrics(self, size: int) -> GroupMetrics:
        group, finder, age_s = self._group, self._finder, 0.0
        if self._rebalanced_at is not None:
            age_s = time.monotonic() - self._rebalanced_at
        return {
            "state": "init" if finder is None else "query-coord" if finder.node_id is None else "up",
            "join_state": "init" if group is None else _JOIN_STATES.get(group.state.name, "init"),
            "rebalance_age": int(age_s * 1000), "rebalance_cnt": self._rebalances, "assignment_size": size}


def _lag(end: int, offset: int) -> int:
    return max(end - offset, 0) if end >= 0 and offset >= 0 else -1


def _by_partition(batches: Iterable[ProducerBatch]) -> dict[tuple[str, int], tuple[int, int]]:
    """Records and bytes of batches, by topic and partition."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for batch in batches:
        key = (batch.queue.topic, batch.queue.partition)
        records, size = found.get(key, (0, 0))
        found[key] = (records + batch.count, size + batch.size_bytes)
    return found
