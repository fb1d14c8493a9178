"""Seeded simulation of the produce path: batch queues, sequences and sender against a model broker.

One seed is one schedule: records, lost, late and repeated requests and replies, connections that overtake each other,
leaders that move or are missing, brokers that restart, producers that are forgotten, a topic that is deleted and made
anew, refusals, and an application that flushes, purges and closes. Afterwards everything heals. Checked are safety
(nothing acknowledged is lost, nothing is stored twice, order holds, each record is reported once) and progress (the
healed cluster takes everything).

    python -m tests.campaigns.sim.produce --schedules 100000 --jobs 2
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

from headrace.errors import KafkaError
from headrace.machines.machine import Machine, Send
from headrace.machines.producer.batch_queue import BatchQueues
from headrace.machines.producer.lone_batch import Lend
from headrace.machines.producer.sender import BatchDone, Limits, ProducerFailed, Seal, Sender
from headrace.machines.producer.sequences import MAX_EPOCH, Sequences
from headrace.testing.simulated_clock import SimulatedClock
from headrace.wire.messages.producer.produce import (
    BatchIndexAndErrorMessage,
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

from .campaign import Violation, run_campaign
from .direct_ways import DirectWays
from .model_batches import ModelBuffer, ModelSealed
from .model_broker import ModelCluster

TOPIC = "t"
_NO_ID = UUID(int=0)
_SILENCE_S = 200.0
_CODEC = 4
_LINGER_S = 0.005


class Connection:
    """Requests to one broker, in order. When it is cut, what is on the way may still arrive."""

    def __init__(self) -> None:
        self.cut = False
        self.outstanding: list[Send] = []
        self.arrives_at = 0.0
        self.answers_at = 0.0


class Simulation:
    """One schedule. `run` raises `Violation` if a property does not hold.

    Attributes:
        counts: how often what happened.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = rng = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.clock = SimulatedClock()
        self._awake, self._due = True, math.inf  # the machines are asked when something has happened to them, or then
        self.span_s = rng.choice([0.5, 2.0, 5.0])
        self.silence_s = _SILENCE_S if rng.random() < 0.1 else 0.0  # between two bursts of records
        self.heal_at = self.now + 2 * self.span_s + self.silence_s if self.silence_s else self.now + self.span_s
        self.idempotent = rng.random() < 0.9
        self.acks = -1 if self.idempotent else rng.choice([-1, 1, 0])
        self.brisk = rng.random() < 0.2  # threads produce one by one, and send directly
        self.bounded = not self.brisk and rng.random() < 0.3  # records may time out
        self.impatient = rng.random() < 0.1  # the application purges
        self.closes = rng.random() < 0.1
        self.refusing = rng.random() < 0.1  # brokers refuse records for good
        self.recreated = rng.random() < 0.1
        self.faults = rng.choice([0.1, 0.3] if self.recreated or self.silence_s else [0.02, 0.1, 0.3])
        self.partitions = rng.choice([1, 1, 2, 3])
        poison = {rng.randrange(25)} if rng.random() < 0.15 else set()
        self.cluster = self._make_cluster(rng.choice([1, 2, 3]), poison)
        self.cluster.forgetful = self.idempotent and rng.random() < 0.1
        self.cluster.by_id = rng.random() < 0.7
        self.cluster.first_epoch = rng.choice([0, 0, 0, MAX_EPOCH, MAX_EPOCH - 1])
        self.buffer = ModelBuffer(TOPIC, self.partitions, rng.choice([1, 2, 4]), self._sealed)
        self.partition_of: dict[int, int] = {}
        self.reports: dict[int, BatchDone] = {}
        self.failed: KafkaError | None = None
        self.closed = False
        self._under_way = 0  # produce requests that may still arrive
        self.connections: dict[int, Connection] = {}
        self._throttled_until: dict[int, float] = {}
        self._said: dict[Send, list[tuple[UUID, int, Any]]] = {}  # what was sent stays as it was, as bytes do
        self._ways = DirectWays(self)
        self._elsewhere = 40 if self.brisk else rng.choice([0, 3])  # records produced between two steps of the loop
        self.buffer.on_taken, self.buffer.send_directly = self._on_taken, self._ways.send
        self.leaders: Any = self._make_leaders()
        self.sender = self._build()
        self._machines: list[Machine] = [self.sender]

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.clock.now

    def at(self, delay_s: float, action: Callable[[], object]) -> None:
        """Do later what the producer may notice; what it cannot is left to the clock."""

        def act() -> None:
            self._awake = True
            action()

        self.clock.after(delay_s, act)

    def _make_cluster(self, nodes: int, poison: set[int]) -> Any:
        return ModelCluster(self.random, nodes, self.partitions, poison, self.counts)

    def _make_leaders(self) -> Any:
        """What the sender needs of metadata: here the simulation itself, as the model of it."""
        self.updates = 0
        self.known_id = self.cluster.topic_id
        self.known_leaders: list[int | None] = list(self.cluster.leaders)
        self.known_epochs = list(self.cluster.leader_epochs)
        self._refreshing = False
        self.last_error: KafkaError | None = None
        return self

    def _build(self) -> Sender:
        rng = self.random
        timeout_s = rng.choice([0.3, 1.0, 3.0]) if self.bounded else math.inf
        in_flight = rng.choice([1, 2, 5, 5]) if self.idempotent else 1
        self.limits = Limits(
            self.acks, in_flight, rng.choice([700, 5000]), rng.choice([0.2, 1.0]), message_timeout_s=timeout_s)
        linger_s = _LINGER_S * (self.seed % 3 == 0) if self.brisk else rng.choice([0.0, _LINGER_S])
        if linger_s and self.seed % 2:
            self.buffer.linger_s, self.buffer.ring_at = linger_s, self._set_alarm
        self.batch_queues = BatchQueues(
            self.buffer, linger_s, timeout_s,
            0 if self.brisk or self.seed % 4 == 0 else _CODEC, at_once_bytes=150 if self.seed % 5 == 0 else 0)
        sequences = Sequences(self.idempotent, 1.0, self._backoff)
        return Sender(self.batch_queues, sequences, self.leaders, self.limits, self._backoff, lends=True)

    def _backoff(self, attempt: int) -> float:
        return min(0.01 * 2**attempt, 0.2) * (0.8 + 0.4 * self.random.random())

    def _sealed(self, records: list[int]) -> Any:
        """The bytes of a batch, or what stands for them."""
        return ModelSealed(records)

    def _carry_out(self, seal: Seal) -> bool:
        """Compress a batch as another thread does: some are done after later ones. True if it is done."""
        self.counts["batches compressed"] += 1

        def done() -> None:
            if self.refusing and self.random.random() < 0.05:
                self.sender.on_seal_failed(seal.batch, KafkaError(KafkaError._BAD_COMPRESSION))
            else:
                self.sender.on_sealed(seal.batch, seal.batch.open.seal(seal.codec, seal.level))

        if self.random.random() < 0.8:
            done()
            return True
        self.at(0.003, done)
        return False

    # What the sender needs of metadata

    def topic_id(self, topic: str) -> UUID:
        return self.known_id or _NO_ID

    def leader(self, topic: str, partition: int) -> tuple[int | None, int]:
        return self.known_leaders[partition], self.known_epochs[partition]

    def refresh(self, now: float) -> None:
        if self._refreshing:
            return
        self._refreshing = True
        if self.faulty:  # an answer that is old when it comes
            self.counts["metadata late"] += 1
            seen = (self.cluster.topic_id, list(self.cluster.leaders), list(self.cluster.leader_epochs))
            self.at(self.random.uniform(0.001, 0.2), lambda: self._refreshed(*seen))
        else:
            self.at(self.random.uniform(0.001, 0.05), lambda: self._refreshed(
                self.cluster.topic_id, self.cluster.leaders, self.cluster.leader_epochs))

    def _refreshed(self, topic_id: UUID | None, leaders: list[int], epochs: list[int]) -> None:
        self._refreshing = False
        self.updates += 1
        if topic_id is None:
            self.known_leaders = [None] * self.partitions
            return
        if topic_id != self.known_id:
            self.known_id, self.known_epochs = topic_id, [-1] * self.partitions
        for partition in range(self.partitions):
            leader, epoch = leaders[partition], epochs[partition]
            if epoch > self.known_epochs[partition] or (
                    epoch == self.known_epochs[partition] and self.known_leaders[partition] is None):
                self.known_leaders[partition] = leader if leader >= 0 else None
                self.known_epochs[partition] = epoch

    def missing(self, topic: str, partition: int) -> None:
        """No partition goes away."""

    def update_leader(self, topic: str, partition: int, leader_id: int, leader_epoch: int, endpoints: Any = ()) -> bool:
        if leader_epoch <= self.known_epochs[partition]:
            return False
        self.updates += 1
        self.known_leaders[partition], self.known_epochs[partition] = leader_id, leader_epoch
        return True

    # Time

    @property
    def faulty(self) -> bool:
        return self.now < self.heal_at and self.random.random() < self.faults

    def _anytime(self, action: Callable[[], object]) -> None:
        """Let something happen before the cluster heals, not in the time of silence."""
        moment = self.random.uniform(0, self.span_s)
        if self.silence_s and self.random.random() < 0.5:
            moment += self.span_s + self.silence_s
        self.at(moment, action)

    def run(self) -> Counter[str]:
        """Run the schedule; returns how often what happened."""
        rng, cluster = self.random, self.cluster
        if rng.random() < 0.1:
            self._anytime(self._burst)
        for _ in range(rng.choice([5, 12, 25])):
            moment = rng.uniform(0, self.span_s) * rng.random()
            if self.silence_s and rng.random() < 0.5:
                moment += self.span_s + self.silence_s
            self.clock.after(moment, self.append)
        for _ in range(rng.choice([0, 1, 3])):
            self._anytime(cluster.move_leader)
            self._anytime(self._restart_broker)
        for _ in range(rng.choice([0, 1, 3])):
            self._anytime(self._cut_any)
        self._trouble()
        self.at(self.heal_at - self.now, cluster.heal)
        self._loop()
        self.counts["events"] += self.clock.happened
        self._check()
        self.counts["schedules in which nothing may fail"] += self._certain
        return self.counts

    def _trouble(self) -> None:
        """What is rarer."""
        rng, cluster = self.random, self.cluster
        for _ in range(rng.choice([1, 3]) if cluster.forgetful else 0):
            self._anytime(cluster.forget)
        if rng.random() < 0.1:
            self._anytime(lambda: self._lose_leader())
        if self.recreated:
            self._anytime(self._recreate)
        if self.refusing:
            self._anytime(lambda: cluster.refuse(rng.random() < 0.3))
            self._anytime(lambda: setattr(cluster, "refusal", 0))
        if self.silence_s:
            self.at(self.span_s + self.silence_s * 0.9, self._expire_producers)
            self.at(self.span_s + self.silence_s, self._burst)
        if rng.random() < 0.2:
            self._anytime(lambda: setattr(self.batch_queues, "collect_all_once", True))
            self._anytime(self._flush)
        if self.impatient:
            self._anytime(self._purge)
        if self.closes:
            self._anytime(self._close)

    def _loop(self) -> None:
        polled_for, clock = -1.0, self.clock
        for _ in range(20_000):
            if self._awake or self._due <= self.now:
                self._awake = False
                self._step()
                self._due = self._deadline()
            event_at = clock.next()
            if self._is_over and self._all_reported and not self.sender.unresolved():
                return
            if self._due <= self.now and polled_for == self.now and not self._awake:
                raise Violation(f"seed {self.seed}: the deadline stays in the past, the loop would spin")
            moment = min(event_at, self._due)
            if moment == math.inf or moment > self.heal_at + 60:
                break
            polled_for = self.now
            clock.go_to(moment)
        missing = sorted(set(self.partition_of) - set(self.reports))
        if missing:
            raise Violation(f"seed {self.seed}: no progress, records {missing} were never reported")

    @property
    def _is_over(self) -> bool:
        """Nothing more will happen by itself."""
        return self.clock.next() == math.inf

    def _deadline(self) -> float:
        return min([moment for machine in self._machines if (moment := machine.deadline()) is not None],
                   default=math.inf)

    @property
    def _all_reported(self) -> bool:
        return len(self.reports) == len(self.partition_of)

    def _step(self) -> None:
        sealed = False
        self._meanwhile()
        for machine in self._machines:
            for effect in machine.poll(self.now):
                self._meanwhile()
                if isinstance(effect, Seal):
                    sealed |= self._carry_out(effect)
                elif isinstance(effect, Lend):
                    self._ways.lend(effect)
                else:
                    self._transmit(effect)
        self._take_events()
        if sealed:
            self._step()

    def _take_events(self) -> None:
        for event in self.sender.events():
            if isinstance(event, ProducerFailed):
                self._hold(self.failed is None, "the producer failed twice")
                self.failed = event.error
                continue
            if not isinstance(event, BatchDone):
                raise Violation(f"seed {self.seed}: {event}")
            opened: Any = event.batch.open
            for record in opened.records:
                self._hold(record not in self.reports, f"record {record} was reported twice")
                self.reports[record] = event

    # The application

    def append(self) -> None:
        # Records of a partition are appended in the order of their numbers.
        if self.closed:
            return
        number = len(self.partition_of)
        partition = self.random.randrange(self.partitions)
        self.partition_of[number] = partition
        woken = self.buffer.append(partition, number, self.now) or bool(self.batch_queues.flushing)
        self._awake |= woken and (self.batch_queues.linger_s > 0 or not self._ways.send(partition))

    def _set_alarm(self, at: float) -> None:
        """What lingers is sent when its time is over, without the sender if that may be."""
        def ring() -> None:
            self.counts["alarms"] += 1
            lingers = not self.batch_queues.flushing
            self._awake |= not (lingers and self.buffer.send_lone(self.now - self.buffer.linger_s))

        self.clock.after(at - self.now, ring)

    def _meanwhile(self) -> None:
        """The loop is at work; another thread produces, or does not."""
        if self._elsewhere and self.random.random() < (0.3 if self.brisk else 0.1):
            self._elsewhere -= 1
            self.append()

    def _on_taken(self, taken: list[Any]) -> None:
        for opened in taken:
            self._ways.suspend(opened.partition)
        self._meanwhile()

    def _burst(self) -> None:
        """So many that they do not fit into one request."""
        for _ in range(20):
            self.append()

    def _flush(self) -> None:
        """All that was appended is reported although nothing else makes it leave. Who flushes sends what may be."""
        self.counts["flushes"] += 1
        self.batch_queues.flushing = True
        for partition in self.buffer.open_partitions:
            self._awake |= not self._ways.send(partition)
        self.at(1.0, lambda: setattr(self.batch_queues, "flushing", self.closed))

    def _purge(self) -> None:
        self.counts["purges"] += 1
        queued = KafkaError(KafkaError._PURGE_QUEUE) if self.random.random() < 0.7 else None
        flying = KafkaError(KafkaError._PURGE_INFLIGHT, maybe_applied=True) if self.random.random() < 0.7 else None
        self.sender.purge(queued, flying)

    def _close(self) -> None:
        """As the client above: wait for some time, then give everything up."""
        self.counts["closes"] += 1
        self.closed = self.batch_queues.flushing = True

        def give_up() -> None:
            self.sender.purge(KafkaError(KafkaError._PURGE_QUEUE), KafkaError(
                KafkaError._PURGE_INFLIGHT, maybe_applied=True))
            self._step()
            self._hold(self._all_reported, "the producer was closed and has not reported everything")

        self.at(self.random.choice([0.0, 0.1, 3.0]), give_up)

    # The network

    def _machine_of(self, send: Send) -> Machine:
        return self.sender

    def _transmit(self, send: Send) -> None:
        node = send.destination if send.destination >= 0 else self.random.choice(self.cluster.nodes)
        if send.context is not None:
            self.counts["batches sent alone, the short way"] += send.template is not None
            self._look_at(send, node)
            request: Any = send.request
            self._said[send] = [(topic.topic_id, data.index, data.records) for topic in request.topic_data
                                for data in topic.partition_data]
        if node in self.cluster.down:
            self.counts["connections refused"] += 1
            refused = KafkaError(KafkaError._TRANSPORT, "refused")
            self.at(0.005, lambda: self._machine_of(send).on_error(send, refused, self.now))
            return
        connection = self.connections.get(node)
        if connection is None or connection.cut:
            connection = self.connections[node] = Connection()
        self._ways.take_back(connection)
        if send.context is not None and send.version < 0:
            send.version = 13
        self._travel(send, node, connection)

    def sent_directly(self, send: Send, connection: Connection) -> None:
        """The application has sent a batch by itself: see `direct_ways`."""
        node = send.destination
        self._hold(self.now >= self._throttled_until.get(node, 0.0), "sent to a broker that asked for a pause")
        request: Any = send.request
        self._said[send] = [(topic.topic_id, data.index, data.records) for topic in request.topic_data
                            for data in topic.partition_data]
        self._travel(send, node, connection)

    def stands_for(self, taken: Send, send: Send) -> None:
        """A direct request is the sender's now."""
        self._said[taken] = self._said[send]

    def _travel(self, send: Send, node: int, connection: Connection) -> None:
        connection.outstanding.append(send)
        connection.arrives_at = max(self.now + self._delay_s("requests late", 0.02, 0.3), connection.arrives_at)
        self._arrives(connection.arrives_at - self.now, node, connection, send)
        self.clock.after(send.timeout_s, lambda: self._time_out(connection, send))
        if not send.expects_reply:
            self.at(0.0001, lambda: self._deliver(connection, send, None))
        if self.faulty:
            self.at(self.random.uniform(0, 0.05), lambda: self._cut(connection))
        if self.faulty:  # the connection breaks at once, and the request lingers somewhere
            self.counts["requests repeated"] += 1
            self.at(0.0001, lambda: self._cut(connection))
            self._arrives(self.random.uniform(0.001, 0.5), node, connection, send)

    def _look_at(self, send: Send, node: int) -> None:
        """What holds for every produce request that leaves."""
        for batch in send.context:
            self._hold(batch.attempts == 1 or batch.queue.in_flight[0] is batch, "a retry was sent into others' way")
        self._hold(len({batch.queue for batch in send.context}) == len(send.context), "two batches of a partition")
        self._hold(self.now >= self._throttled_until.get(node, 0.0), "sent to a broker that asked for a pause")
        connection = self.connections.get(node)
        flying = [s for s in connection.outstanding if s.context is not None] if connection is not None else []
        self._hold(len(flying) < self.limits.max_in_flight, "more requests in flight than allowed")

    def _delay_s(self, what: str, short: float, long: float) -> float:
        if not self.faulty:
            return 0.0005
        self.counts[what] += 1
        return self.random.choice([0.0005, short, long])

    def _arrives(self, delay_s: float, node: int, connection: Connection, send: Send) -> None:
        self._under_way += 1

        def arrive() -> None:
            self._under_way -= 1
            self._arrive(node, connection, send)

        self.clock.after(delay_s, arrive)

    def _arrive(self, node: int, connection: Connection, send: Send) -> None:
        if node in self.cluster.down or (connection.cut and self.random.random() < 0.5):
            self.counts["requests lost"] += 1
            return
        self.counts["requests behind a cut connection"] += connection.cut
        reply = self._answer(node, send)
        if connection.cut:
            self.counts["replies lost"] += 1
            return
        if not send.expects_reply:
            if any(part.error_code for part in reply.responses[0].partition_responses):
                self._cut(connection)
            return
        connection.answers_at = max(self.now + self._delay_s("replies late", 0.05, 0.4), connection.answers_at)
        self.at(connection.answers_at - self.now, lambda: self._deliver(connection, send, reply))
        if self.faulty:  # nothing awaits the second one: the stream is broken (`machines.cluster.in_flight`)
            self.counts["replies repeated"] += 1
            self.at(connection.answers_at - self.now, lambda: self._cut(connection))

    def _answer(self, node: int, send: Send) -> Any:
        if isinstance(send.request, InitProducerIdRequest):
            return self._producer_id()
        said = self._said[send]
        answers = [self._partition_answer(node, *each) for each in said]
        if send.expects_reply and self.faulty:
            self.counts["partitions missing in answers"] += 1
            answers.pop()
        topic_id = said[0][0]
        reply = ProduceResponse(responses=[TopicProduceResponse(
            name="" if self.cluster.by_id else TOPIC, topic_id=topic_id if self.cluster.by_id else _NO_ID,
            partition_responses=answers)])
        if self.faulty:
            self.counts["pauses asked for"] += 1
            reply.throttle_time_ms = self.random.choice([1, 50, 200])
        return reply

    def _producer_id(self) -> InitProducerIdResponse:
        code = 0
        if self.faulty:
            code = self.random.choice([KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE])
        elif self.refusing and self.random.random() < 0.05:
            code = KafkaError.CLUSTER_AUTHORIZATION_FAILED
        producer_id = self.cluster.new_producer_id()
        return InitProducerIdResponse(
            error_code=code, producer_id=producer_id, producer_epoch=self.cluster.first_epoch)

    def _partition_answer(self, node: int, topic_id: UUID, index: int, records: Any) -> PartitionProduceResponse:
        cluster = self.cluster
        code, offset = cluster.produce(node, index, topic_id, records, faulty=self.faulty)
        answer = PartitionProduceResponse(
            index=index, error_code=code, base_offset=offset, log_start_offset=cluster.log_starts[index])
        if code == KafkaError.NOT_LEADER_FOR_PARTITION and self.random.random() < 0.5:
            answer.current_leader.leader_id = cluster.leaders[index]
            answer.current_leader.leader_epoch = cluster.leader_epochs[index]
        if code == KafkaError.INVALID_RECORD and cluster.names_poison:
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=f"record {place}")
                for place, record in enumerate(records[-1]) if record in cluster.poison
            ]
        return answer

    def _deliver(self, connection: Connection, send: Send, reply: Any) -> None:
        if connection.cut:
            return
        if self._ways.delivered(send, reply):
            connection.outstanding.remove(send)
            self._take_events()
            return
        self._ways.take_back(connection)
        send = self._ways.now(send)
        if send in connection.outstanding:
            connection.outstanding.remove(send)
            if isinstance(reply, ProduceResponse) and reply.throttle_time_ms:
                self._throttled_until[send.destination] = self.now + reply.throttle_time_ms / 1000.0
            self._machine_of(send).on_reply(send, reply, self.now)

    def _time_out(self, connection: Connection, send: Send) -> None:
        if not connection.cut and self._ways.now(send) in connection.outstanding:
            self.counts["requests timed out"] += 1
            self._cut(connection, KafkaError(KafkaError._TIMED_OUT, "no answer", maybe_applied=True))

    def _cut(self, connection: Connection, error: KafkaError | None = None) -> None:
        if connection.cut:
            return
        self.counts["connections cut"] += 1
        self._ways.take_back(connection)
        connection.cut = self._awake = True
        sends, connection.outstanding = connection.outstanding, []
        error = error or KafkaError(KafkaError._TRANSPORT, "cut", maybe_applied=True)
        for send in sends:
            self._machine_of(send).on_error(send, error, self.now)

    def _cut_any(self) -> None:
        if self.connections:
            self._cut(self.random.choice(list(self.connections.values())))

    # The cluster

    def _restart_broker(self) -> None:
        self.counts["brokers restarted"] += 1
        node = self.random.choice(self.cluster.nodes)
        self.cluster.stop(node)
        if node in self.connections:
            self._cut(self.connections[node])
        self.at(self.random.uniform(0.01, 1.0), lambda: self.cluster.start(node))

    def _lose_leader(self) -> None:
        partition = self.cluster.lose_leader()
        self.at(self.random.uniform(0.01, 0.5), lambda: self.cluster.elect(partition))

    def _recreate(self) -> None:
        self.cluster.delete_topic()
        made_in_s = self.random.uniform(0.0, 0.3)
        self.at(made_in_s, self.cluster.make_topic)
        if self.random.random() < 0.5:  # metadata is asked for now and then
            self.at(made_in_s, lambda: self.leaders.refresh(self.now))
        self.at(made_in_s + self.random.uniform(0.0, 0.3), self._burst)

    def _expire_producers(self) -> None:
        if not self._under_way and not self.sender.unresolved():
            self.cluster.expire_producers()

    # The properties

    def _check(self) -> None:
        cluster = self.cluster
        stored: dict[int, list[tuple[int, int]]] = {}
        for partition, log in [*cluster.old_logs, *enumerate(cluster.logs)]:
            last, here = -1, set()
            for offset, record in enumerate(log):
                if self.idempotent and not self._mistaken:
                    self._hold(record not in here, f"record {record} is stored twice")
                    self._hold(record > last or self._given_up(record),
                               f"record {record} is stored behind {last}")
                last = max(last, record)
                here.add(record)
                stored.setdefault(record, []).append((partition, offset))
        if self._certain and not self.recreated:
            self._hold(cluster.highest_epoch <= cluster.first_epoch or not self.idempotent,
                       "a new epoch was begun although no number was ever missing")
        for record in self.partition_of:
            self._check_report(record, self.reports[record], stored.get(record, []))

    def _given_up(self, record: int) -> bool:
        """Its fate was unknown when it was given up, and the producer's epochs were used up: then nothing fences it."""
        error = self.reports[record].error
        return self.cluster.first_epoch > 0 and error is not None and error.maybe_applied

    @property
    def _mistaken(self) -> bool:
        """Before Kafka 4.0 requests name a topic and cannot tell it from the one before: a number that is meant for
        the old one is taken by the new one, that knows nothing of those before.
        """
        return self.recreated and not self.cluster.by_id

    @property
    def _certain(self) -> bool:
        """Nothing can make a record fail for good."""
        cluster = self.cluster
        return not (self.bounded or self.impatient or self.closes or self.refusing or cluster.poison
                    or cluster.forgetful or self._mistaken or self.acks == 0)

    def _check_report(self, record: int, done: BatchDone, places: list[tuple[int, int]]) -> None:
        opened: Any = done.batch.open
        self.counts["records acknowledged" if done.error is None else "records reported as failed"] += 1
        if done.error is None:
            self._hold(bool(places) or self.acks == 0, f"record {record} was acknowledged and is lost")
            offset = done.base_offset + opened.records.index(record)
            exact = done.base_offset >= 0 and self.idempotent
            self._hold(not exact or any(at == offset for _, at in places),
                       f"record {record} was reported at a wrong offset")
        elif places:
            self._hold(done.error.maybe_applied, f"record {record} is stored and was reported as surely failed")
        # In a topic made anew numbers may be missing that the one before has stored.
        missing = self.recreated and done.error is not None and done.error.maybe_applied and (
            done.error.code() == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if self._certain and not missing:
            self._hold(done.error is None, f"record {record} failed although the cluster healed: {done.error!r}")

    def _hold(self, holds: bool, text: str) -> None:
        if not holds:
            raise Violation(f"seed {self.seed}: {text}")


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return Simulation(seed).run()


if __name__ == "__main__":
    sys.exit(run_campaign(run_schedule, "Simulate the produce path."))
