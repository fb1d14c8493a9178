"""The transaction coordinator: it keeps every transactional id's state, writes markers and ends what takes too long.

A change is in the journal before it is acknowledged (see `broker.storage.journal`), so that transactions outlive the
broker: an open one goes on until its time is up, one whose end was decided gets the markers that are missing. All nodes
share one coordinator, as they share the logs; which node clients must ask is `Cluster.coordinator`.

Read next: `broker.coordinators.transactional_ids` for the rules, `broker.apis.transactions` for the requests.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from pathlib import Path

from headrace.broker.coordinators.committed_offsets import OffsetStore
from headrace.broker.coordinators.transactional_ids import (
    AT_REST,
    OngoingTransaction,
    ProducerIdAndEpoch,
    TransactionState,
)
from headrace.broker.deadlines import Deadline, Deadlines, Now
from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.catalog import Catalog
from headrace.broker.storage.journal import Journal
from headrace.broker.storage.partition import NO_LEADER, ApiError, Partition
from headrace.broker.storage.producer_state import Marker
from headrace.errors import KafkaError

__all__ = ["TransactionCoordinator"]

_COORDINATOR_EPOCH = 0
_AGAIN_AFTER_S = 1.0
"""Until markers are tried again that a disk refused."""


class TransactionCoordinator:
    """All transactional ids.

    Args:
        catalog: where partitions are found, and producer ids are given out.
        offsets: of groups, which are part of transactions.
        settings: the broker's limits.
        deadlines: where it notes when time alone changes a transaction.
        version: of the protocol by which transactions are aborted whose producer is gone: 0 to 2.
        path: the journal; None keeps transactions in memory.
    """

    def __init__(self, catalog: Catalog, offsets: OffsetStore, settings: BrokerSettings, deadlines: Deadlines,
                 version: int, path: Path | None = None) -> None:
        self._catalog = catalog
        self._offsets = offsets
        self._settings = settings
        self._deadlines = deadlines
        self._version = version
        self._known: dict[str, OngoingTransaction] = {}
        self._next_steps: dict[str, Deadline] = {}
        self._journal = Journal(path, lambda: (each.to_json() for each in self._known.values()))
        for entry in self._journal.read():
            self._put(OngoingTransaction.from_json(entry))
        self._journal.begin()
        self._recovered = {name for name, each in self._known.items() if each.is_ending}
        """Some of their markers may be written."""

    # -- what clients ask

    def initialise(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None, now: Now
    ) -> ProducerIdAndEpoch:
        """Give a producer its id and epoch; the producer that had the transactional id before is fenced.

        Args:
            transactional_id: whose.
            timeout_ms: its transactions are aborted after so long.
            expected: what the producer had, when it goes on after an error (KIP-360).
            now: what the clocks say.

        Raises:
            ApiError: it was fenced itself, or the last transaction must be ended first.
        """
        if not transactional_id:
            raise ApiError(KafkaError.INVALID_REQUEST, "A transactional id has at least one character")
        if not 0 < timeout_ms <= self._settings.max_transaction_timeout_ms:
            raise ApiError(KafkaError.INVALID_TRANSACTION_TIMEOUT)
        found = self.get(transactional_id, now)
        if found is None:
            changed = OngoingTransaction(transactional_id, self._catalog.new_producer_id())
        else:
            changed = copy.copy(found)
            if changed.state is TransactionState.ONGOING:
                changed.check_owner(expected)
                self._abort(transactional_id, now)
                raise ApiError(KafkaError.CONCURRENT_TRANSACTIONS)
        changed.initialise(timeout_ms, expected, self._catalog.new_producer_id, now.ms)
        self._save(changed, now)
        return ProducerIdAndEpoch(changed.producer_id, changed.epoch)

    def add(self, transactional_id: str, who: ProducerIdAndEpoch, partitions: list[tuple[str, int]], groups: list[str],
            version: int, now: Now) -> None:
        """Take partitions and groups into the producer's transaction.

        Raises:
            ApiError: it is not this producer's, or the last one is still being ended.
        """
        found = self._of(transactional_id, now)
        found.check(who)
        changed = copy.copy(found)
        if changed.add(partitions, groups, version, now.ms):
            self._save(changed, now)

    def verify(self, transactional_id: str, who: ProducerIdAndEpoch, now: Now) -> OngoingTransaction:
        """The producer's transaction, to look into.

        Raises:
            ApiError: it is not this producer's, or is being ended.
        """
        found = self._of(transactional_id, now)
        found.check(who)
        return found

    def end(self, transactional_id: str, who: ProducerIdAndEpoch, commit: bool, version: int,
            now: Now) -> ProducerIdAndEpoch:
        """End the producer's transaction. The markers may be written after that.

        Returns:
            The identity with which the producer goes on.

        Raises:
            ApiError: it is not this producer's, or there is nothing to end in this way.
        """
        found = self._of(transactional_id, now)
        changed = copy.copy(found)
        if not changed.end(who, commit, version, self._catalog.new_producer_id, now.ms):
            return ProducerIdAndEpoch(found.producer_id, found.epoch)
        self._save(changed, now)
        self._finish_soon(transactional_id, now)
        return changed.successor

    def get(self, transactional_id: str, now: Now) -> OngoingTransaction | None:
        """The state of a transactional id, if it was used and not too long ago."""
        found = self._known.get(transactional_id)
        if found is None or not self._is_expired(found, now):
            return found
        found.go("expire")
        with contextlib.suppress(OSError):  # else it expires once more after the next start
            self._journal.append([found.to_json()])
        del self._known[transactional_id]
        return None

    def all(self, now: Now) -> list[OngoingTransaction]:
        """Every transactional id that is known."""
        return [each for name in list(self._known) if (each := self.get(name, now)) is not None]

    def _of(self, transactional_id: str, now: Now) -> OngoingTransaction:
        if not transactional_id:
            raise ApiError(KafkaError.INVALID_REQUEST, "A transactional id has at least one character")
        found = self.get(transactional_id, now)
        if found is None:
            raise ApiError(KafkaError.INVALID_PRODUCER_ID_MAPPING)
        return found

    def _is_expired(self, transaction: OngoingTransaction, now: Now) -> bool:
        age_ms = now.ms - transaction.updated_ms
        return transaction.state in AT_REST and age_ms > self._settings.transactional_id_expiration_ms

    # -- what time and nodes do

    def resume(self, now: Now) -> None:
        """A node came or went, or the broker begins: go on with what waits for partitions, and watch the clock."""
        for name, each in list(self._known.items()):
            if each.is_ending:
                self._finish(name, now)
            else:
                self._watch(each, now)

    def close(self) -> None:
        """Do nothing more, and close the journal."""
        for step in self._next_steps.values():
            step.cancel()
        self._next_steps.clear()
        self._journal.close()

    def _watch(self, transaction: OngoingTransaction, now: Now) -> None:
        """Abort an open transaction when its time is up."""
        if transaction.state is TransactionState.ONGOING:
            left_ms = transaction.started_ms + transaction.timeout_ms - now.ms
            self._later(transaction.id, left_ms / 1000, self._abort, now)

    def _abort(self, transactional_id: str, now: Now) -> None:
        changed = copy.copy(self._known[transactional_id])
        changed.fence(self._version, self._catalog.new_producer_id, now.ms)
        self._save(changed, now)
        self._finish_soon(transactional_id, now)

    def _later(self, transactional_id: str, seconds: float, action: Callable[[str, Now], None], now: Now) -> None:
        """Do something with a transaction, in place of what was to be done before; again if the disk refuses it."""
        def act(then: Now) -> None:
            try:
                action(transactional_id, then)
            except ApiError:
                self._later(transactional_id, _AGAIN_AFTER_S, action, then)

        self._drop_next_step(transactional_id)
        self._next_steps[transactional_id] = self._deadlines.at(now.s + max(seconds, 0), act)

    def _drop_next_step(self, transactional_id: str) -> None:
        if (step := self._next_steps.pop(transactional_id, None)) is not None:
            step.cancel()

    # -- markers

    def _finish_soon(self, transactional_id: str, now: Now) -> None:
        if self._settings.marker_delay_ms > 0:
            self._later(transactional_id, self._settings.marker_delay_ms / 1000, self._finish, now)
        else:
            self._finish(transactional_id, now)

    def _finish(self, transactional_id: str, now: Now) -> None:
        """Write the markers that can be written; when all are, the transaction is over."""
        transaction = self._known[transactional_id]
        marker = transaction.marker(_COORDINATOR_EPOCH)
        transaction.partitions = {each: None for each in transaction.partitions if not self._mark(
            each, marker, now, twice=transactional_id not in self._recovered)}
        try:
            self._offsets.settle(marker.producer_id, commit=marker.commit)
            if not transaction.partitions:
                changed = copy.copy(transaction)
                changed.complete(now.ms)
                self._save(changed, now)
                self._recovered.discard(transactional_id)
                return
        except (OSError, ApiError):
            pass  # the disk may have room later
        self._later(transactional_id, _AGAIN_AFTER_S, self._finish, now)

    def _mark(self, where: tuple[str, int], marker: Marker, now: Now, *, twice: bool) -> bool:
        """Write a marker into a partition; False when it must be tried again."""
        partition = self._partition(*where)
        if partition is None or (not twice and partition.producers.has_ended(marker.producer_id, marker.epoch)):
            return True
        if partition.leader_id == NO_LEADER:
            return False
        try:
            partition.end_transaction(marker, now.ms)
        except ApiError as error:
            return error.code != KafkaError.KAFKA_STORAGE_ERROR  # else an administrator has ended it
        return True

    def _partition(self, name: str, index: int) -> Partition | None:
        topic = self._catalog.topics.get(name)
        return topic.partitions[index] if topic is not None and index < len(topic.partitions) else None

    # -- keeping

    def _save(self, changed: OngoingTransaction, now: Now) -> None:
        """Make a changed copy the state, once it is in the journal."""
        try:
            self._journal.append(each.to_json() for each in (changed,))
        except OSError as error:
            raise ApiError(KafkaError.COORDINATOR_NOT_AVAILABLE, f"The journal cannot be written: {error}") from error
        before = self._known.get(changed.id)
        self._put(changed)
        if (
            before is None
            or before.state is not TransactionState.ONGOING
            or changed.state is not TransactionState.ONGOING
        ):
            self._drop_next_step(changed.id)
            self._watch(changed, now)

    def _put(self, transaction: OngoingTransaction) -> None:
        self._known[transaction.id] = transaction
        if transaction.state is TransactionState.DEAD:
            del self._known[transaction.id]
