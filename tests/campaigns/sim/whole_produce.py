"""The simulation of the produce path with the embedded broker in place of the model: real batches, real metadata.

One seed is one schedule, as in `tests.campaigns.sim.produce`, with the same application, network and checks; but the
sender's batches are bytes, leaders are known from the `Metadata` machine, and what is stored is decided by the broker.
So each side tests the other. What this broker does not do is left out: it looks into no record, and never forgets a
producer by retention.

    python -m tests.campaigns.sim.whole --schedules 100000 --jobs 2
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.catalog import Topic
from headrace.broker.storage.partition import NO_LEADER, ApiError, Partition
from headrace.broker.storage.producer_state import ProducerStates
from headrace.errors import KafkaError as K
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.machine import Machine, Send
from headrace.records import scan
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.producer.produce import (
    InitProducerIdRequest,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.wire.schema import Response

from .model_broker import AFTER_APPEND, BEFORE_APPEND, FATAL, REFUSALS
from .produce import TOPIC, Connection, Simulation
from .pure_brokers import (
    HEADER_BYTES,
    RECORD_BYTES,
    PureBrokers,
    arrived,
    handed_over,
    numbers_in,
    refused,
    sealed,
    told,
)

_NAMES, _IDS = 12, 13
"""Versions of Produce in which topics are named, and those in which they have ids."""
_REST_S = 4.0
"""After it no action of the application is left, and no broker that comes back: the last one begins when all heals."""
_UNANSWERED = (K.COORDINATOR_LOAD_IN_PROGRESS, K.COORDINATOR_NOT_AVAILABLE)


class ProduceCluster(PureBrokers):
    """The brokers with one topic, and what happens to it; what `ModelCluster` has for the simulation.

    Attributes:
        by_id: requests name the topic by its id (Produce 13).
        refusal: what every batch is answered with for now.
        first_epoch: that producers get.
        old: the topics of that name that were deleted.
    """

    def __init__(self, sim: WholeProduce, nodes: int, partitions: int) -> None:
        super().__init__(sim.clock, sim.random, nodes, BrokerSettings(auto_create_topics=False))
        self._sim, self._partitions = sim, partitions
        self._replicas = sim.random.randint(1, nodes)
        self.by_id, self.forgetful, self.names_poison = True, False, False
        self.poison: set[int] = set()
        self.refusal = self.first_epoch = 0
        self.old: list[Topic] = []
        self._configs: dict[str, str] = {}
        if sim.random.random() < 0.1:  # so that batches of several records are divided
            self._configs["max.message.bytes"] = str(HEADER_BYTES + RECORD_BYTES)
        self.make_topic()

    @property
    def topic(self) -> Topic | None:
        """The topic, None while it is deleted."""
        return self.cluster.catalog.topics.get(TOPIC)

    @property
    def partitions(self) -> list[Partition]:
        """Those of the topic; none while it is deleted."""
        return self.topic.partitions if self.topic is not None else []

    def move_leader(self) -> None:
        if self.partitions:
            self._sim.counts["leaders moved"] += 1
            self.lead(self._chance.choice(self.partitions))

    def lose_leader(self) -> Partition | None:
        if not self.partitions:
            return None
        self._sim.counts["partitions without a leader"] += 1
        partition = self._chance.choice(self.partitions)
        partition.lead(NO_LEADER)
        return partition

    def elect(self, partition: Partition | None) -> None:
        if partition is not None and partition.leader_id == NO_LEADER:
            self.lead(partition)

    def expire_producers(self) -> None:
        self._sim.counts["producers expired"] += 1
        for partition in self.partitions:
            partition.producers = ProducerStates()

    def delete_topic(self) -> None:
        if self.topic is not None:
            self._sim.counts["topics deleted and made anew"] += 1
            self._sim.keep(self.partitions)
            self.cluster.catalog.delete(self.topic)
            self.settle()

    def make_topic(self) -> None:
        if self.topic is None:
            self.cluster.catalog.create(TOPIC, self._partitions, self._replicas, dict(self._configs))

    def refuse(self, fatal: bool) -> None:
        self.refusal = self._chance.choice(FATAL if fatal else REFUSALS)

    def heal(self) -> None:
        for node in sorted(self.down):
            self.start(node)
        self.refusal = 0
        self.make_topic()
        for partition in self.partitions:
            self.elect(partition)

    # What the checks look at

    @property
    def logs(self) -> list[list[int]]:
        """The numbers in each log, by offset."""
        return [[number for _, number in numbers_in(partition)] for partition in self.partitions]

    @property
    def old_logs(self) -> list[tuple[int, list[int]]]:
        """Those of the topics that were deleted."""
        return self._sim.kept

    @property
    def highest_epoch(self) -> int:
        """Of all that was stored."""
        found = [info.epoch for partition in self.partitions if partition.log.end_offset
                 for info in scan(partition.log.read(0, partition.log.size_bytes).data)]
        return max(found, default=0)


class WholeProduce(Simulation):
    """One schedule."""

    cluster: ProduceCluster

    def __init__(self, seed: int) -> None:
        self.kept: list[tuple[int, list[int]]] = []
        self._written: dict[Send, bytearray] = {}
        super().__init__(seed)
        self.cluster.forgetful = False
        self._machines.append(self.leaders)

    def keep(self, partitions: list[Partition]) -> None:
        """Remember the logs of a topic that is deleted."""
        self.kept += [(each.index, [number for _, number in numbers_in(each)]) for each in partitions]

    def _make_cluster(self, nodes: int, poison: set[int]) -> Any:
        return ProduceCluster(self, nodes, self.partitions)

    def _make_leaders(self) -> Metadata:
        metadata = Metadata(self.cluster.bootstrap, refresh_s=30.0,
                            retries=RetryPolicy(0.01, 0.1, self.random.random))
        metadata.want_topics([TOPIC])
        return metadata

    @property
    def _is_over(self) -> bool:
        """Only metadata is asked for, now and then."""
        return self.now > self.heal_at + _REST_S and not self._under_way

    def _machine_of(self, send: Send) -> Machine:
        return self.leaders if isinstance(send.request, MetadataRequest) else self.sender  # type: ignore[no-any-return]

    def _step(self) -> None:
        super()._step()
        self.leaders.events()

    def _sealed(self, records: list[int]) -> Any:
        return sealed(records, self.clock.wall_ms)

    def _transmit(self, send: Send) -> None:
        highest = None if not isinstance(send.request, ProduceRequest) else _IDS if self.cluster.by_id else _NAMES
        self._written[send] = self.cluster.written(send, "p", highest)
        super()._transmit(send)

    def sent_directly(self, send: Send, connection: Connection) -> None:
        self._written[send] = self.cluster.written(send, "p", _IDS if self.cluster.by_id else _NAMES)
        super().sent_directly(send, connection)

    def stands_for(self, taken: Send, send: Send) -> None:
        super().stands_for(taken, send)
        self._written[taken], taken.version = self._written[send], send.version

    def _deliver(self, connection: Connection, send: Send, reply: Any) -> None:
        if (taken := self._ways.now(send)).template is not None and not connection.cut:
            if taken is not send:
                taken.template.request.part.records = b""  # the request is written once more
            reply = handed_over(taken, reply)
            self.counts["usual replies to batches sent alone"] += reply is taken.template.reply.reply
        super()._deliver(connection, send, reply)

    # What a broker answers, and what goes wrong with it

    def _answer(self, node: int, send: Send) -> Any:
        received = arrived(self._written[send])
        reply = self._carried_out(node, received)
        return told(received, reply) if send.expects_reply else reply

    def _carried_out(self, node: int, received: RequestFrame) -> Response:
        if isinstance(received.request, ProduceRequest):
            return self._produce(node, received, received.request)
        if isinstance(received.request, InitProducerIdRequest):
            return self._producer_id(node, received)
        return refused(received, K.UNKNOWN) if self.faulty else self.cluster.answer_of(node, received)

    def _producer_id(self, node: int, received: RequestFrame) -> Any:
        if self.faulty:
            return refused(received, self.random.choice(_UNANSWERED))
        if self.refusing and self.random.random() < 0.05:
            return refused(received, K.CLUSTER_AUTHORIZATION_FAILED)
        reply = self.cluster.answer_of(node, received)
        reply.producer_epoch = self.cluster.first_epoch
        return reply

    def _produce(self, node: int, received: RequestFrame, request: ProduceRequest) -> ProduceResponse:
        topic, answers, taken = request.topic_data[0], list[PartitionProduceResponse](), []
        for data in topic.partition_data:
            if code := self._refusal():
                answers.append(PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1))
            else:
                taken.append(data)
        reply = ProduceResponse(responses=[TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)])
        topic.partition_data = taken
        if taken:
            try:
                reply = self.cluster.answer_of(node, received) or reply
            except ApiError as why:
                reply = refused(received, why.code)
            answers += [self._changed(each) for each in reply.responses[0].partition_responses]
        if request.acks and self.faulty:
            self.counts["partitions missing in answers"] += 1
            answers.pop()
        reply.responses[0].partition_responses = answers
        if self.faulty:
            self.counts["pauses asked for"] += 1
            reply.throttle_time_ms = self.random.choice([1, 50, 200])
        return reply

    def _refusal(self) -> int:
        """Why a batch is not even looked at; 0 when it is."""
        if self.cluster.refusal and self.random.random() < 0.5:
            self.counts["refused for good"] += 1
            return self.cluster.refusal
        if self.faulty and self.random.random() < 0.5:
            self.counts["errors before the append"] += 1
            return self.random.choice(BEFORE_APPEND)
        return 0

    def _changed(self, answer: PartitionProduceResponse) -> PartitionProduceResponse:
        self.counts[f"brokers said {K(answer.error_code).name()}"] += 1
        if answer.error_code == 0 and self.faulty:
            self.counts["errors after the append"] += 1
            return PartitionProduceResponse(index=answer.index, error_code=self.random.choice(AFTER_APPEND),
                                            base_offset=-1)
        return answer


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return WholeProduce(seed).run()
