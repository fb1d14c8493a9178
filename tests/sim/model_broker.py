"""A model of what Kafka's brokers do with idempotent batches: the rules, without bytes.

The logs are shared by all nodes (acks=all, every replica in sync); what differs between nodes is who leads.
Source: Java's `ProducerStateManager` and `ProducerAppendInfo`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import KafkaError

_WINDOW = 5
_BEFORE_APPEND = (KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.KAFKA_STORAGE_ERROR, KafkaError.INVALID_MSG)
_TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
_AFTER_APPEND = (
    KafkaError.REQUEST_TIMED_OUT, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, KafkaError.NOT_LEADER_FOR_PARTITION
)


@dataclass
class ProducerState:
    """What a partition remembers of a producer: its epoch and its last batches (first, last sequence, offset)."""

    epoch: int
    batches: list[tuple[int, int, int]] = field(default_factory=list)


class ModelCluster:
    """Partitions, their leaders and logs.

    Attributes:
        poison: records that are not stored, nor is the batch that has them.
        names_poison: the answer says which they are (KIP-467).
        largest: most records of a batch; whoever runs the cluster may change it at any time.
    """

    def __init__(self, rng: random.Random, nodes: int, partitions: int, poison: set[int]) -> None:
        self._random = rng
        self.nodes = list(range(1, nodes + 1))
        self.down: set[int] = set()
        self.poison = poison
        self.names_poison = False
        self.largest = 1000
        self.leaders = [rng.choice(self.nodes) for _ in range(partitions)]
        self.leader_epochs = [0] * partitions
        self.logs: list[list[int]] = [[] for _ in range(partitions)]
        self._producers: list[dict[int, ProducerState]] = [{} for _ in range(partitions)]
        self._producer_ids = 1000
        self.forgetful = False  # as brokers before Kafka 2.5: an unknown producer may begin at 0 only
        self._forgotten: dict[tuple[int, int], int] = {}  # the epoch
        self.highest_epoch = 0

    def new_producer_id(self) -> int:
        self._producer_ids += 1
        return self._producer_ids

    def move_leader(self) -> None:
        partition = self._random.randrange(len(self.leaders))
        self.leaders[partition] = self._random.choice(self.nodes)
        self.leader_epochs[partition] += 1

    def forget(self) -> None:
        """Forget the producers of a partition, as after retention. Kinder than Kafka, number 0 is not taken again, nor
        that of an epoch before.
        """
        partition = self._random.randrange(len(self.leaders))
        self._forgotten |= {(partition, key): state.epoch for key, state in self._producers[partition].items()}
        self._producers[partition] = {}

    def heal(self) -> None:
        self.down.clear()

    def produce(self, node: int, partition: int, data: Any, *, faulty: bool) -> tuple[int, int]:
        """Append a batch; returns the error code and the base offset."""
        if self.leaders[partition] != node:
            return KafkaError.NOT_LEADER_FOR_PARTITION, -1
        if faulty and self._random.random() < 0.5:
            return self._random.choice(_BEFORE_APPEND), -1
        producer_id, epoch, sequence, records = data
        if len(records) > self.largest:
            return self._random.choice(_TOO_LARGE), -1
        if self.poison.intersection(records):
            return KafkaError.INVALID_RECORD, -1
        code, offset = self._append(partition, producer_id, epoch, sequence, records)
        if code == 0 and faulty:
            return self._random.choice(_AFTER_APPEND), -1
        return code, offset

    def _append(self, partition: int, producer_id: int, epoch: int, sequence: int, records: Any) -> tuple[int, int]:
        log = self.logs[partition]
        offset = len(log)
        if producer_id >= 0:
            state = self._producers[partition].get(producer_id)
            forgotten = self._forgotten.get((partition, producer_id), -1)
            if state is None and self.forgetful and (sequence or epoch <= forgotten):
                return KafkaError.UNKNOWN_PRODUCER_ID, -1
            self.highest_epoch = max(self.highest_epoch, epoch)
            if state is None:  # nothing is known of this producer: any number is taken
                state = self._producers[partition][producer_id] = ProducerState(epoch)
            elif epoch < state.epoch:
                return KafkaError.INVALID_PRODUCER_EPOCH, -1
            elif epoch > state.epoch:
                if sequence != 0:
                    return KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
                state.epoch, state.batches = epoch, []
            else:
                last = sequence + len(records) - 1
                for first_sequence, last_sequence, base_offset in state.batches:
                    if (first_sequence, last_sequence) == (sequence, last):
                        return 0, base_offset
                if state.batches and sequence != state.batches[-1][1] + 1:
                    return KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            state.batches = [*state.batches[1 - _WINDOW :], (sequence, sequence + len(records) - 1, offset)]
        log.extend(records)
        return 0, offset
