"""A model of what Kafka's brokers do with transactions: the coordinator's states, the leaders' checks, the markers.

State is shared by all nodes, for every broker writes it to a replicated log before it answers; what differs between
nodes is who leads. Source: Java's `TransactionCoordinator`, `TransactionMetadata`, `ReplicaManager` (verification,
KIP-890), `ProducerStateManager`.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from headrace.errors import KafkaError as K

_WINDOW = 5
Key = tuple[str, int | str]
"""A partition: ("t", number), or ("offsets", group id) for the one that holds a group's offsets."""


class Phase(Enum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


_PREPARE = (Phase.PREPARE_COMMIT, Phase.PREPARE_ABORT)


@dataclass
class Transaction:
    """What the coordinator knows of the transactional id."""

    producer_id: int = -1
    epoch: int = -1
    last_epoch: int = -1
    previous_id: int = -1
    next_id: int = -1
    phase: Phase = Phase.EMPTY
    partitions: set[Key] = field(default_factory=set)
    bumped: bool = False  # the phase came with a new epoch (version 2, or fencing)
    started: int = 0
    opened_late: bool = False  # by a request that nobody waits for any more


@dataclass
class Entry:
    """One batch or marker (payload None) of a log."""

    producer_id: int
    epoch: int
    payload: tuple[Any, ...] | None
    commit: bool = False


class ModelPartition:
    """A partition's log, and what its leader remembers of producers."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.leader_epoch = 0
        self.log: list[Entry] = []
        self.log_start = self.log_end = 0
        self.forgetful = False  # as brokers before Kafka 2.5: an unknown producer may begin at 0 only
        self._epochs: dict[int, int] = {}
        self._batches: dict[int, list[tuple[int, int, int]]] = {}
        self._open: dict[int, int] = {}

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        return self._open.get(producer_id) == epoch

    def append(self, producer_id: int, epoch: int, sequence: int, payload: tuple[Any, ...]) -> tuple[int, int]:
        known = self._epochs.get(producer_id, -1)
        if epoch < known:
            return K.INVALID_PRODUCER_EPOCH, -1
        if sequence >= 0:  # offsets have none
            batches = self._batches.get(producer_id, []) if epoch == known else []
            last = sequence + len(payload) - 1
            for first_sequence, last_sequence, offset in batches:
                if (first_sequence, last_sequence) == (sequence, last):
                    return 0, offset
            if self.forgetful and sequence and not batches and known in (-1, epoch):  # at most a marker is left
                return K.UNKNOWN_PRODUCER_ID, -1
            if sequence != (batches[-1][1] + 1 if batches else 0) and known >= 0:
                return K.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self._batches[producer_id] = [*batches[1 - _WINDOW :], (sequence, last, self.log_end)]
        elif epoch > known:
            self._batches.pop(producer_id, None)
        self._epochs[producer_id] = epoch
        self._open[producer_id] = epoch
        self.log.append(Entry(producer_id, epoch, payload))
        self.log_end += len(payload)
        return 0, self.log_end - len(payload)

    def mark(self, producer_id: int, epoch: int, commit: bool) -> None:
        if epoch < self._epochs.get(producer_id, -1):
            return
        if epoch > self._epochs.get(producer_id, -1):
            self._batches.pop(producer_id, None)
        self._epochs[producer_id] = epoch
        self._open.pop(producer_id, None)
        self.log.append(Entry(producer_id, epoch, None, commit))
        self.log_end += 1

    def committed(self) -> list[Any]:
        """What a reader of committed records sees, in order. A marker decides about all that is open."""
        undecided: dict[int, list[int]] = {}
        decided: set[int] = set()
        for offset, entry in enumerate(self.log):
            if entry.payload is not None:
                undecided.setdefault(entry.producer_id, []).append(offset)
            else:
                offsets = undecided.pop(entry.producer_id, [])
                if entry.commit:
                    decided.update(offsets)
        return [item for offset in sorted(decided) for item in self.log[offset].payload or ()]

    def forget(self) -> None:
        """Retention deletes all records, and an old broker forgets their producers with them."""
        self._epochs, self._batches, self.log_start = {}, {}, self.log_end

    def undecided(self) -> set[int]:
        return set(self._open)


class ModelTransactions:
    """Brokers, partitions, groups, and the coordinator of one transactional id.

    Args:
        rng: chance.
        later: runs something after so many seconds.
        max_epoch: after so many epochs the coordinator gives another producer id.
        timeout_s: a transaction that is open longer is aborted.

    Attributes:
        generations: of each group; offsets of a member of another one are refused (KIP-447).
        largest: most records of a batch.
        poison: records that are not stored, nor is the batch that has them.
        counts: how often what happened.
    """

    def __init__(
        self, rng: random.Random, later: Callable[[float, Callable[[], None]], None], nodes: int, partitions: int,
        groups: Iterable[str], max_epoch: int, timeout_s: float,
    ) -> None:
        self._random, self._later = rng, later
        self._max_epoch, self.timeout_s = max_epoch, timeout_s
        self.nodes = list(range(1, nodes + 1))
        self.down: set[int] = set()
        self.coordinator = rng.choice(self.nodes)
        self.partitions: dict[Key, ModelPartition] = {
            **{("t", number): ModelPartition(rng.choice(self.nodes)) for number in range(partitions)},
            **{("offsets", group): ModelPartition(rng.choice(self.nodes)) for group in groups},
        }
        self.transaction = Transaction()
        self.generations = dict.fromkeys(groups, 1)
        self.largest = 1000
        self.poison: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.fences: list[str] = []  # why a producer may be fenced without a rival
        self.late = False  # nobody waits any more for the answer to what is being carried out
        self.completes_first = rng.random() < 0.5  # as Kafka since 4.1; 4.0 looks at the epoch first
        self.marker_delay_s: Callable[[], float] = lambda: 0.0005
        self.ids = itertools.count(1000)
        self._starts = itertools.count(1)

    def stop(self, node: int) -> None:
        self.down.add(node)

    def start(self, node: int) -> None:
        self.down.discard(node)

    def move_coordinator(self) -> None:
        self.coordinator = self._random.choice(self.nodes)
        self.counts["coordinators moved"] += 1

    def rebalance(self) -> None:
        """The group's partitions are others' now."""
        self.generations[self._random.choice(list(self.generations))] += 1
        self.counts["groups rebalanced"] += 1

    def move_leader(self) -> None:
        partition = self._random.choice(list(self.partitions.values()))
        partition.leader = self._random.choice(self.nodes)
        partition.leader_epoch += 1
        self.counts["leaders moved"] += 1

    def lose_leader(self) -> ModelPartition:
        """No leader can be elected for a partition for now."""
        partition = self._random.choice([p for (topic, _), p in self.partitions.items() if topic == "t"])
        partition.leader = -1
        partition.leader_epoch += 1
        self.counts["partitions without a leader"] += 1
        return partition

    def elect(self, partition: ModelPartition) -> None:
        if partition.leader < 0:
            partition.leader = self._random.choice(self.nodes)
            partition.leader_epoch += 1

    # The coordinator

    def init(self, producer_id: int, epoch: int) -> int:
        """InitProducerId; the result is in `transaction`. An epoch of -1: whoever asks takes over."""
        known = self.transaction
        takes_over = epoch < 0
        if known.phase in _PREPARE:
            return K.CONCURRENT_TRANSACTIONS
        if known.producer_id < 0:
            known.producer_id = next(self.ids)
        elif not takes_over and producer_id != known.producer_id and not (
            producer_id == known.previous_id and epoch >= self._max_epoch - 1
        ):
            return K.PRODUCER_FENCED
        if known.phase is Phase.ONGOING:
            if self.late or takes_over or known.opened_late or epoch != known.epoch:
                self.fences.append("InitProducerId in an open transaction")
            self._fence()
            return K.CONCURRENT_TRANSACTIONS
        current = (producer_id, epoch) == (known.producer_id, known.epoch)
        if known.epoch >= self._max_epoch - 1 and (takes_over or current):
            known.previous_id, known.producer_id = known.producer_id, next(self.ids)
            known.last_epoch, known.epoch = (-1 if takes_over else known.epoch), 0
        elif takes_over or known.epoch == -1 or current:
            known.last_epoch, known.epoch = (-1 if takes_over else known.epoch), known.epoch + 1
        elif epoch != known.last_epoch:
            return K.PRODUCER_FENCED
        known.phase, known.bumped = Phase.EMPTY, False
        return 0

    def add(self, producer_id: int, epoch: int, keys: Iterable[Key]) -> int:
        """AddPartitionsToTxn and AddOffsetsToTxn, or a leader that adds what a client writes to (version 2)."""
        known, wanted = self.transaction, set(keys)
        if known.phase in _PREPARE:
            return K.CONCURRENT_TRANSACTIONS
        if known.producer_id != producer_id:
            return K.INVALID_PRODUCER_ID_MAPPING
        if known.epoch != epoch:
            return K.PRODUCER_FENCED
        if known.phase is not Phase.ONGOING:
            known.phase, known.partitions, known.bumped = Phase.ONGOING, set(), False
            known.started = started = next(self._starts)
            known.opened_late = self.late
            self._later(self.timeout_s, lambda: self._time_out(started))
        known.partitions |= wanted
        return 0

    def verify(self, producer_id: int, epoch: int, key: Key) -> int:
        """What a leader asks before the first write of a transaction of version 1."""
        known = self.transaction
        if known.producer_id != producer_id:
            return K.INVALID_PRODUCER_ID_MAPPING
        if known.epoch != epoch:
            return K.INVALID_PRODUCER_EPOCH
        if known.phase in _PREPARE:
            return K.NOT_ENOUGH_REPLICAS
        if known.phase is Phase.ONGOING and key in known.partitions:
            return 0
        return self._random.choice((K.INVALID_TXN_STATE, K.TRANSACTION_ABORTABLE))  # newer brokers say the latter

    def end(self, producer_id: int, epoch: int, commit: bool, version: int) -> int:
        """EndTxn: version 5 is that of transactions version 2."""
        return self._end_2(producer_id, epoch, commit) if version >= 5 else self._end_1(producer_id, epoch, commit)

    def _end_1(self, producer_id: int, epoch: int, commit: bool) -> int:
        known = self.transaction
        if known.producer_id != producer_id:
            return K.INVALID_PRODUCER_ID_MAPPING
        if known.epoch != epoch:
            return K.PRODUCER_FENCED
        if known.phase is Phase.ONGOING:
            self._prepare(commit, bump=False)
            return 0
        if known.phase is (Phase.PREPARE_COMMIT if commit else Phase.PREPARE_ABORT):
            return K.CONCURRENT_TRANSACTIONS
        return 0 if known.phase is (Phase.COMPLETE_COMMIT if commit else Phase.COMPLETE_ABORT) else K.INVALID_TXN_STATE

    def _end_2(self, producer_id: int, epoch: int, commit: bool) -> int:
        known = self.transaction
        if known.phase in _PREPARE and self.completes_first:
            return K.CONCURRENT_TRANSACTIONS
        over = known.previous_id == producer_id and epoch == self._max_epoch - 1 and known.epoch == 0
        if known.producer_id != producer_id and not over:
            return K.INVALID_PRODUCER_ID_MAPPING
        again = over or (known.bumped and known.epoch == epoch + 1)
        current = known.epoch == epoch and known.producer_id == producer_id
        if known.phase in _PREPARE:
            if not again:
                return K.PRODUCER_FENCED
            same = known.phase is (Phase.PREPARE_COMMIT if commit else Phase.PREPARE_ABORT)
            return K.CONCURRENT_TRANSACTIONS if same else K.INVALID_TXN_STATE
        if known.phase in (Phase.COMPLETE_COMMIT, Phase.COMPLETE_ABORT) and again:
            same = known.phase is (Phase.COMPLETE_COMMIT if commit else Phase.COMPLETE_ABORT)
            return 0 if same else K.INVALID_TXN_STATE
        if not current:
            return K.PRODUCER_FENCED
        if known.phase is not Phase.ONGOING and commit:
            return K.INVALID_TXN_STATE
        self._prepare(commit, bump=True)
        return 0

    def numbers(self) -> tuple[int, int]:
        """Producer id and epoch that the next transaction is to be written with."""
        known = self.transaction
        return (known.next_id, 0) if known.next_id >= 0 else (known.producer_id, known.epoch)

    def _time_out(self, started: int) -> None:
        if self.transaction.phase is Phase.ONGOING and self.transaction.started == started:
            self.fences.append("a transaction was open for too long")
            self.counts["transactions timed out"] += 1
            self._fence()

    def _fence(self) -> None:
        known = self.transaction
        known.epoch, known.last_epoch = known.epoch + 1, -1
        self._prepare(False, bump=False)
        known.bumped = True

    def _prepare(self, commit: bool, *, bump: bool) -> None:
        known = self.transaction
        if known.phase is not Phase.ONGOING:
            known.partitions = set()
        known.phase, known.bumped = (Phase.PREPARE_COMMIT if commit else Phase.PREPARE_ABORT), bump
        if bump:
            if known.epoch >= self._max_epoch - 1:
                known.next_id = next(self.ids)
            known.last_epoch, known.epoch = known.epoch, known.epoch + 1
        producer_id, epoch, left = known.producer_id, known.epoch, set(known.partitions)
        for key in known.partitions:
            self._later(self.marker_delay_s(), lambda key=key: self._mark(key, producer_id, epoch, commit, left))
        if not left:
            self._complete(commit)

    def _mark(self, key: Key, producer_id: int, epoch: int, commit: bool, left: set[Key]) -> None:
        self.partitions[key].mark(producer_id, epoch, commit)
        left.discard(key)
        if not left:
            self._complete(commit)

    def _complete(self, commit: bool) -> None:
        known = self.transaction
        known.phase = Phase.COMPLETE_COMMIT if commit else Phase.COMPLETE_ABORT
        known.partitions = set()
        if known.next_id >= 0:
            known.previous_id, known.producer_id, known.epoch, known.next_id = known.producer_id, known.next_id, 0, -1

    # The leaders

    def write(
        self, node: int, key: Key, numbers: tuple[int, int, int], payload: tuple[Any, ...], *, adds: bool
    ) -> tuple[int, int]:
        """Append records or offsets. `adds`: the leader adds the partition to the transaction (version 2)."""
        partition = self.partitions[key]
        producer_id, epoch, sequence = numbers
        if key[0] == "t" and len(payload) > self.largest:
            self.counts["batches too large"] += 1
            return self._random.choice((K.MSG_SIZE_TOO_LARGE, K.RECORD_LIST_TOO_LARGE)), -1
        if key[0] == "t" and self.poison.intersection(payload):
            self.counts["batches with a bad record"] += 1
            return K.INVALID_RECORD, -1
        if partition.leader != node:
            return (K.NOT_LEADER_FOR_PARTITION if key[0] == "t" else K.NOT_COORDINATOR), -1
        if not partition.in_transaction(producer_id, epoch):
            code = self.add(producer_id, epoch, [key]) if adds else self.verify(producer_id, epoch, key)
            if code:
                self.counts["writes refused outside of a transaction"] += 1
                return (K.INVALID_PRODUCER_EPOCH if code == K.PRODUCER_FENCED else code), -1
        return partition.append(producer_id, epoch, sequence, payload)
