"""Transactions of one transactional id after the other: what state each is in, and which requests it allows.

A producer that initialises a transactional id gets a higher epoch, so that all before it are fenced. With version 2
(KIP-890) the end of a transaction raises the epoch, too: nothing that comes late can fall into the next one.

These are decisions only: no clock, no files, no partitions. Read next: `broker.coordinators.transaction_coordinator`.
Source: KIP-98, KIP-360, KIP-588, KIP-890, Java's `TransactionMetadata` and `TransactionCoordinator`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from headrace.broker.storage.partition import ApiError
from headrace.broker.storage.producer_state import Marker
from headrace.errors import KafkaError
from headrace.states import Transitions, from_each

__all__ = ["AT_REST", "TRANSACTION_TRANSITIONS", "OngoingTransaction", "ProducerIdAndEpoch", "TransactionState"]

NO_ID, NO_EPOCH = -1, -1
_LAST_EPOCH = (1 << 15) - 1
_OWN_EPOCHS_FROM = 2


class TransactionState(Enum):
    """The state of a transactional id; the values are Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


_ENDING = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
AT_REST = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
"""No transaction is open, and none is being ended."""

TRANSACTION_TRANSITIONS = Transitions("A transactional id", TransactionState.EMPTY, {
    **from_each(AT_REST, "initialise", TransactionState.EMPTY),
    **from_each(AT_REST, "open", TransactionState.ONGOING),
    (TransactionState.ONGOING, "commit"): TransactionState.PREPARE_COMMIT,
    # With epochs of their own an abort may have nothing in it: it gives the producer a new epoch.
    **from_each((TransactionState.ONGOING, *AT_REST), "abort", TransactionState.PREPARE_ABORT),
    (TransactionState.PREPARE_COMMIT, "all marked"): TransactionState.COMPLETE_COMMIT,
    (TransactionState.PREPARE_ABORT, "all marked"): TransactionState.COMPLETE_ABORT,
    **from_each(AT_REST, "expire", TransactionState.DEAD),
})
"""The only ways from one state to another. This broker needs no PREPARE_EPOCH_FENCE."""


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


@dataclass(slots=True, eq=False)
class OngoingTransaction:
    """A transactional id and its present transaction.

    Attributes:
        id: the transactional id.
        epoch: of the producer id; -1 before the first InitProducerId.
        last_epoch: the epoch before, of which a request may come again; -1 for none.
        previous_id: the producer id before, when its epochs were used up.
        next_id: the producer id that follows when the transaction has ended; -1 for none.
        partitions: topics and partitions in the transaction.
        groups: groups whose offsets are in it.
        started_ms: when it was opened, wall clock; -1 when it never was.
        updated_ms: when anything changed.
        version: of the protocol that its end follows.
    """

    id: str
    producer_id: int
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH
    previous_id: int = NO_ID
    next_id: int = NO_ID
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: dict[tuple[str, int], None] = field(default_factory=dict)
    groups: dict[str, None] = field(default_factory=dict)
    started_ms: int = -1
    updated_ms: int = -1
    version: int = 0

    def go(self, trigger: str) -> None:
        """Another state, by the table."""
        self.state = TRANSACTION_TRANSITIONS.go(self.state, trigger)

    # -- beginning

    def initialise(self, timeout_ms: int, expected: ProducerIdAndEpoch | None, new_producer_id: Callable[[], int],
                   now_ms: int) -> None:
        """Give a producer the next epoch; if it names the one that it had, only if no other producer came between.

        Raises:
            ApiError: PRODUCER_FENCED, or CONCURRENT_TRANSACTIONS while the last transaction is being ended.
        """
        self.check_owner(expected)
        if self.state in _ENDING:
            raise ApiError(KafkaError.CONCURRENT_TRANSACTIONS)
        if self._is_exhausted and (expected is None or expected.epoch == self.epoch):
            self.previous_id, self.producer_id = self.producer_id, new_producer_id()
            self.last_epoch, self.epoch = self.epoch if expected else NO_EPOCH, 0
        elif expected is None:
            self.epoch, self.last_epoch, self.previous_id = self.epoch + 1, NO_EPOCH, self.producer_id
        elif expected.epoch == self.epoch or self.epoch == NO_EPOCH:
            self.epoch, self.last_epoch, self.previous_id = self.epoch + 1, self.epoch, self.producer_id
        elif expected.epoch != self.last_epoch:
            raise ApiError(KafkaError.PRODUCER_FENCED)
        self.go("initialise")
        self.timeout_ms, self.started_ms, self.updated_ms = timeout_ms, -1, now_ms
        self.partitions, self.groups = {}, {}

    def check_owner(self, expected: ProducerIdAndEpoch | None) -> None:
        """Refuse a producer that names an id which is not, or no longer, this one's."""
        if expected is None or self.epoch == NO_EPOCH or expected.producer_id == self.producer_id:
            return
        self._check_successor(expected)
        if expected.producer_id != self.previous_id or expected.epoch < _LAST_EPOCH - 1:
            raise ApiError(KafkaError.PRODUCER_FENCED)

    def check(self, who: ProducerIdAndEpoch) -> None:
        """Refuse all but the present producer, and everybody while its last transaction is being ended."""
        self._check_successor(who)
        if who.producer_id != self.producer_id:
            raise ApiError(KafkaError.INVALID_PRODUCER_ID_MAPPING)
        if who.epoch != self.epoch:
            raise ApiError(KafkaError.PRODUCER_FENCED)
        if self.state in _ENDING:
            raise ApiError(KafkaError.CONCURRENT_TRANSACTIONS)

    def _check_successor(self, who: ProducerIdAndEpoch) -> None:
        """Let a producer wait that goes on already, with the id that is its own once all markers are written."""
        if self.is_ending and who.producer_id == self.next_id:
            raise ApiError(KafkaError.CONCURRENT_TRANSACTIONS)

    def check_has(self, partition: tuple[str, int] | None = None, group: str | None = None) -> None:
        """Refuse what was not added: the transaction can only be aborted then."""
        if (partition is not None and partition not in self.partitions) or (
                group is not None and group not in self.groups):
            raise ApiError(KafkaError.TRANSACTION_ABORTABLE)

    def add(self, partitions: list[tuple[str, int]], groups: list[str], version: int, now_ms: int) -> bool:
        """Take partitions and groups in; the first ones open the transaction.

        Returns:
            Whether anything changed.
        """
        new_partitions = dict.fromkeys(each for each in partitions if each not in self.partitions)
        new_groups = dict.fromkeys(each for each in groups if each not in self.groups)
        if self.state is TransactionState.ONGOING and not new_partitions and not new_groups:
            return False
        if self.state is not TransactionState.ONGOING:
            self.go("open")
            self.started_ms = now_ms
        self.partitions = self.partitions | new_partitions
        self.groups = self.groups | new_groups
        self.updated_ms, self.version = now_ms, version
        return True

    # -- ending

    def end(
        self, who: ProducerIdAndEpoch, commit: bool, version: int, new_producer_id: Callable[[], int], now_ms: int
    ) -> bool:
        """The producer ends its transaction.

        Returns:
            Whether there is something to end: not when the request comes again.

        Raises:
            ApiError: it is not this producer's, or not the time for it.
        """
        if version >= _OWN_EPOCHS_FROM:
            return self._end_with_own_epoch(who, commit, version, new_producer_id, now_ms)
        if who.producer_id != self.producer_id:
            raise ApiError(KafkaError.INVALID_PRODUCER_ID_MAPPING)
        if who.epoch != self.epoch:
            raise ApiError(KafkaError.PRODUCER_FENCED)
        if self._is_completed(commit):
            return False
        if self.state is not TransactionState.ONGOING:
            raise self._end_error(commit)
        self._prepare(commit, 0, now_ms)
        return True

    def _end_with_own_epoch(
        self, who: ProducerIdAndEpoch, commit: bool, version: int, new_producer_id: Callable[[], int], now_ms: int
    ) -> bool:
        self._check_successor(who)
        is_rotated = who.producer_id == self.previous_id and who.epoch >= _LAST_EPOCH - 1 and self.epoch == 0
        if who.producer_id != self.producer_id and not is_rotated:
            raise ApiError(KafkaError.INVALID_PRODUCER_ID_MAPPING)
        # Only an end with a new epoch can be asked for again with the one before. (Kafka does not look, and gives the
        # epoch of a producer of version 1 to the one that it has replaced.)
        comes_again = self.version >= _OWN_EPOCHS_FROM and (is_rotated or who.epoch == self.epoch - 1) and (
            self.state not in (TransactionState.EMPTY, TransactionState.ONGOING))
        if not comes_again and (who.epoch != self.epoch or self.state in _ENDING):
            raise ApiError(KafkaError.PRODUCER_FENCED)
        if comes_again:
            if self._is_completed(commit):
                return False
            raise self._end_error(commit)
        if commit and self.state is not TransactionState.ONGOING:
            raise ApiError(KafkaError.INVALID_TXN_STATE)
        if self.state is not TransactionState.ONGOING:
            self.started_ms = now_ms  # an abort with nothing in it, which gives the producer a new epoch
        if self._is_exhausted:
            self.next_id = new_producer_id()
        self._prepare(commit, version, now_ms)
        return True

    def fence(self, version: int, new_producer_id: Callable[[], int], now_ms: int) -> None:
        """Abort the open transaction without its producer, which cannot go on after it."""
        if version < _OWN_EPOCHS_FROM:
            self.epoch, self.last_epoch = min(self.epoch + 1, _LAST_EPOCH), NO_EPOCH
        elif self._is_exhausted:  # a producer that ends it as well must not get the last epoch
            self.next_id = new_producer_id()
        self._prepare(False, version, now_ms)

    def _prepare(self, commit: bool, version: int, now_ms: int) -> None:
        if self.epoch == _LAST_EPOCH:
            version = 0  # the markers can have no higher epoch than the records
        elif version >= _OWN_EPOCHS_FROM:
            self.last_epoch, self.epoch = self.epoch, self.epoch + 1
        self.go("commit" if commit else "abort")
        self.version, self.updated_ms = version, now_ms

    def complete(self, now_ms: int) -> None:
        """All markers are written."""
        self.go("all marked")
        self.previous_id = self.producer_id
        if self.next_id != NO_ID:
            self.producer_id, self.epoch, self.next_id = self.next_id, 0, NO_ID
        self.partitions, self.groups, self.updated_ms = {}, {}, now_ms

    @property
    def is_ending(self) -> bool:
        """Whether its end is decided and markers are still to be written."""
        return self.state in _ENDING

    def marker(self, coordinator_epoch: int) -> Marker:
        """The marker that is written to each partition at the end."""
        return Marker(
            self.producer_id, self.epoch, self.state is TransactionState.PREPARE_COMMIT, coordinator_epoch, self.version
        )

    @property
    def successor(self) -> ProducerIdAndEpoch:
        """The identity with which the producer goes on after the end."""
        return (
            ProducerIdAndEpoch(self.next_id, 0)
            if self.next_id != NO_ID
            else ProducerIdAndEpoch(self.producer_id, self.epoch)
        )

    @property
    def _is_exhausted(self) -> bool:
        """The last epoch of a producer id is kept for fencing."""
        return self.epoch >= _LAST_EPOCH - 1

    def _is_completed(self, commit: bool) -> bool:
        return self.state is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)

    def _end_error(self, commit: bool) -> ApiError:
        wanted = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
        return ApiError(KafkaError.CONCURRENT_TRANSACTIONS if self.state is wanted else KafkaError.INVALID_TXN_STATE)

    # -- keeping

    def to_json(self) -> dict[str, Any]:
        """As a line of the journal."""
        return {
            "id": self.id, "producer_id": self.producer_id, "epoch": self.epoch, "last_epoch": self.last_epoch,
            "previous_id": self.previous_id, "next_id": self.next_id, "timeout_ms": self.timeout_ms,
            "state": self.state.value, "partitions": list(self.partitions), "groups": list(self.groups),
            "started_ms": self.started_ms, "updated_ms": self.updated_ms, "version": self.version}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> OngoingTransaction:
        """From a line of the journal."""
        return cls(**{**entry, "state": TransactionState(entry["state"]), "groups": dict.fromkeys(entry["groups"]),
                      "partitions": dict.fromkeys((topic, index) for topic, index in entry["partitions"])})
