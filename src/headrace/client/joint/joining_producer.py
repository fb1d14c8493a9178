"""A producer that writes into a transaction which another process begins and ends.

Its properties are an ordinary producer's, without a `transactional.id`. It may join one transaction after the other, so
it can be kept between tasks. Read next: `machines.joint.joined_transaction`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headrace.client.producer.kept_producers import KeptProducers
from headrace.client.producer.producer import Producer
from headrace.client.producer.producer_engine import ProducerEngine
from headrace.config import Config
from headrace.errors import KafkaException
from headrace.machines.cluster.coordinator import TRANSACTION, CoordinatorFinder
from headrace.machines.joint.joined_sequences import JoinedSequences
from headrace.machines.joint.joined_transaction import JoinedTransaction, JoinedTransactionFailed
from headrace.machines.joint.joint_transaction import JointTransaction, Written
from headrace.machines.machine import Event
from headrace.machines.producer.sender import Sender

__all__ = ["JoiningEngine", "JoiningProducer", "KeptJoiningProducers"]


class JoiningEngine(ProducerEngine):
    """The engine: the sender's batches wait for what `JoinedTransaction` admits."""

    def __init__(self, config: Config, on_change: Callable[[], None], *, same_thread: bool = False) -> None:
        super().__init__(config, on_change, same_thread=same_thread)
        self.client.add(self._joined)  # behind the sender, which says what is to be claimed

    def _make_sender(self) -> Sender:
        self._finders: dict[str, CoordinatorFinder] = {}
        limits, backoff_s = self._limits()
        self._joined = JoinedTransaction(
            self._find, self.client.metadata, self.config.seconds("socket.timeout.ms"), backoff_s)
        self._sequences = JoinedSequences(self._joined)
        return Sender(
            self._batch_queues, self._sequences, self.client.metadata, limits, backoff_s, self._joined)

    def _find(self, name: str) -> CoordinatorFinder:
        finder = self._finders.get(name)
        if finder is None:
            finder = self._finders[name] = CoordinatorFinder(TRANSACTION, name, retries=self.client.retries)
            self.client.add(finder)
        return finder

    def join(self, transaction: JointTransaction, before: Written | None = None) -> None:
        """Write into this transaction from now on; nothing of the one before is left. On the loop."""
        self._joined.join(transaction, before)

    def written(self) -> Written:
        """Records in the transaction by topic and partition. On the loop, when nothing waits."""
        return self._sequences.written()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, JoinedTransactionFailed):
            self.accumulators.refuse(partial(KafkaException, event.error))
            self._fail(self.accumulators.drop(event.error))
            self._driver.wake()
        else:
            super()._on_event(event)


class JoiningProducer(Producer):
    """The producer. `join` before the first record; when it has failed it joins no other transaction."""

    _engine_class = JoiningEngine

    def join(self, transaction: JointTransaction, before: Written | None = None) -> None:
        """Write into this transaction from now on. Nothing of the one before waits.

        Args:
            transaction: as its owner has begun it.
            before: records that are in it already, by topic and partition, of participants that have ended.
        """
        self._waits.do(self._joining_engine.join, transaction, before)

    def written(self) -> Written:
        """Records in the transaction by topic and partition, after a `flush()` that left none."""
        return self._waits.do(self._joining_engine.written)

    @property
    def _joining_engine(self) -> JoiningEngine:
        assert isinstance(self._engine, JoiningEngine)
        return self._engine


class KeptJoiningProducers(KeptProducers):
    """Those that a process keeps, apart from producers with transactions of their own, or with none."""

    def make(self, properties: Mapping[str, Any]) -> JoiningProducer:
        """A new producer."""
        return JoiningProducer(properties)
