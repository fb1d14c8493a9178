"""A model of what Kafka's brokers do with idempotent batches: the rules, without bytes.

The logs are shared by all nodes (acks=all, every replica in sync); what differs between nodes is who leads.
Source: Java's `ProducerStateManager` and `ProducerAppendInfo`.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from headrace.errors import KafkaError as K
from headrace.machines.producer.error_actions import ERROR_ACTIONS, ErrorAction

_WINDOW = 5
_TOO_LARGE = (K.MSG_SIZE_TOO_LARGE, K.RECORD_LIST_TOO_LARGE)
AFTER_APPEND = (K.REQUEST_TIMED_OUT, K.NOT_ENOUGH_REPLICAS_AFTER_APPEND, K.NOT_LEADER_FOR_PARTITION)


def _codes(*actions: ErrorAction) -> list[int]:
    return [code for code, action in ERROR_ACTIONS.items() if action in actions]


BEFORE_APPEND = 3 * _codes(ErrorAction.REJECTED) + _codes(ErrorAction.RETRY, ErrorAction.MOVED)
REFUSALS = _codes(ErrorAction.FAIL)
FATAL = _codes(ErrorAction.FATAL)


@dataclass
class ProducerState:
    """What a partition remembers of a producer: its epoch and its last batches (first, last sequence, offset)."""

    epoch: int
    batches: list[tuple[int, int, int]] = field(default_factory=list)


class ModelCluster:
    """Partitions of one topic, their leaders and logs.

    Attributes:
        poison: records that are not stored, nor is the batch that has them.
        names_poison: the answer says which they are (KIP-467).
        largest: most records of a batch; whoever runs the cluster may change it at any time.
        forgetful: as brokers before Kafka 2.5: an unknown producer may begin at 0 only.
        topic_id: None while the topic is deleted.
        by_id: requests name the topic by its id (Produce 13).
        refusal: what every batch is answered with for now.
        old_logs: those of the topics of that name that were deleted.
    """

    def __init__(self, rng: random.Random, nodes: int, partitions: int, poison: set[int], counts: Counter[str]) -> None:
        self._random = rng
        self._counts = counts
        self.nodes = list(range(1, nodes + 1))
        self.down: set[int] = set()
        self.poison = poison
        self.names_poison = self.forgetful = False
        self.by_id = True
        self.largest = 1000
        self.refusal = 0
        self._topics = 0
        self.first_epoch = self.highest_epoch = 0
        self._producer_ids = 1000
        self.leaders: list[int] = []
        self.old_logs: list[tuple[int, list[int]]] = []
        self._make(partitions)

    def _make(self, partitions: int) -> None:
        self._topics += 1
        self.topic_id: UUID | None = UUID(int=self._topics)
        self.leaders = [self._random.choice(self.nodes) for _ in range(partitions)]
        self.leader_epochs = [0] * partitions
        self.logs: list[list[int]] = [[] for _ in range(partitions)]
        self.log_starts = [0] * partitions
        self._producers: list[dict[int, ProducerState]] = [{} for _ in range(partitions)]
        self._forgotten: dict[tuple[int, int], int] = {}  # the epoch

    def new_producer_id(self) -> int:
        self._producer_ids += 1
        return self._producer_ids

    # What happens to a cluster

    def move_leader(self) -> None:
        partition = self._random.randrange(len(self.leaders))
        self.leaders[partition] = self._random.choice(self.nodes)
        self.leader_epochs[partition] += 1
        self._counts["leaders moved"] += 1

    def lose_leader(self) -> int:
        """No leader can be elected for now; returns the partition."""
        partition = self._random.randrange(len(self.leaders))
        self.leaders[partition] = -1
        self.leader_epochs[partition] += 1
        self._counts["partitions without a leader"] += 1
        return partition

    def elect(self, partition: int) -> None:
        if self.leaders[partition] < 0:
            self.leaders[partition] = self._random.choice(self.nodes)
            self.leader_epochs[partition] += 1

    def forget(self) -> None:
        """Retention deletes all records of a partition, and an old broker forgets their producers with them.

        Kinder than Kafka, number 0 is not taken again, nor that of an epoch before: what is deleted is hours old.
        """
        partition = self._random.randrange(len(self.leaders))
        self._forgotten |= {(partition, key): state.epoch for key, state in self._producers[partition].items()}
        self._producers[partition] = {}
        self.log_starts[partition] = len(self.logs[partition])
        self._counts["producers forgotten after retention"] += 1

    def expire_producers(self) -> None:
        """After a day of silence newer brokers forget a producer as well; they take any number of who is unknown."""
        self._producers = [{} for _ in self._producers]
        self._counts["producers expired"] += 1

    def delete_topic(self) -> None:
        self.topic_id = None
        self.old_logs += enumerate(self.logs)
        self._counts["topics deleted and made anew"] += 1

    def make_topic(self) -> None:
        if self.topic_id is None:
            self._make(len(self.leaders))

    def stop(self, node: int) -> None:
        self.down.add(node)

    def start(self, node: int) -> None:
        self.down.discard(node)

    def heal(self) -> None:
        self.down.clear()
        self.refusal = 0
        self.make_topic()
        for partition in range(len(self.leaders)):
            self.elect(partition)

    # What a leader does

    def produce(self, node: int, partition: int, topic_id: UUID, data: Any, *, faulty: bool) -> tuple[int, int]:
        """Append a batch; returns the error code and the base offset."""
        if self.topic_id is None or (self.by_id and topic_id != self.topic_id):
            return K.UNKNOWN_TOPIC_ID if self.by_id else K.UNKNOWN_TOPIC_OR_PART, -1
        if self.leaders[partition] != node:
            return K.NOT_LEADER_FOR_PARTITION, -1
        if self.refusal and self._random.random() < 0.5:
            self._counts["refused for good"] += 1
            return self.refusal, -1
        if faulty and self._random.random() < 0.5:
            self._counts["errors before the append"] += 1
            return self._random.choice(BEFORE_APPEND), -1
        producer_id, epoch, sequence, records = data
        if len(records) > self.largest:
            self._counts["batches too large"] += 1
            return self._random.choice(_TOO_LARGE), -1
        if self.poison.intersection(records):
            self._counts["batches with a bad record"] += 1
            return K.INVALID_RECORD, -1
        code, offset = self._append(partition, producer_id, epoch, sequence, records)
        if code == 0 and faulty:
            self._counts["errors after the append"] += 1
            return self._random.choice(AFTER_APPEND), -1
        return code, offset

    def _append(self, partition: int, producer_id: int, epoch: int, sequence: int, records: Any) -> tuple[int, int]:
        log = self.logs[partition]
        offset = len(log)
        if producer_id >= 0:
            self.highest_epoch = max(self.highest_epoch, epoch)
            code, known_at = self.judge(partition, producer_id, epoch, sequence, sequence + len(records) - 1)
            if code or known_at >= 0:
                self._counts["numbers refused" if code else "repeated batches recognised"] += 1
                return code, known_at
            state = self._producers[partition].setdefault(producer_id, ProducerState(epoch))
            if epoch > state.epoch:
                self._counts["next epochs"] += 1
                state.epoch, state.batches = epoch, []
            state.batches = [*state.batches[1 - _WINDOW :], (sequence, sequence + len(records) - 1, offset)]
        log.extend(records)
        return 0, offset

    def judge(self, partition: int, producer_id: int, epoch: int, first: int, last: int) -> tuple[int, int]:
        """May a batch with these numbers be appended? An error code, and the offset of one that is there already."""
        state = self._producers[partition].get(producer_id)
        forgotten = self._forgotten.get((partition, producer_id), -1)
        if state is None:
            refused = self.forgetful and (first > 0 or epoch <= forgotten)
            return K.UNKNOWN_PRODUCER_ID if refused else 0, -1  # newer brokers take any number
        if epoch < state.epoch:
            return K.INVALID_PRODUCER_EPOCH, -1
        if epoch > state.epoch:
            return K.OUT_OF_ORDER_SEQUENCE_NUMBER if first else 0, -1
        for first_known, last_known, base_offset in state.batches:
            if (first_known, last_known) == (first, last):
                return 0, base_offset
        gap = state.batches and first != state.batches[-1][1] + 1
        return K.OUT_OF_ORDER_SEQUENCE_NUMBER if gap else 0, -1

    def refuse(self, fatal: bool) -> None:
        """From now on batches are refused for good."""
        self.refusal = self._random.choice(FATAL if fatal else REFUSALS)
