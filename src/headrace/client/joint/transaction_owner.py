"""The owner of joint transactions: begins, checks, marks, ends and aborts them, in the caller's thread.

It must not know the order in which that is done, or the participants. Read next: `machines.joint.owner_steps`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection, Mapping
from typing import Any, Final

from headrace.client.core import ClientCore
from headrace.client.waits import ThreadWaits
from headrace.config import PRODUCER, Config
from headrace.errors import KafkaException
from headrace.interpreter import SteadyLock
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.joint import owner_steps
from headrace.machines.joint.conversation import Conversation, ConversationEnded, Steps
from headrace.machines.joint.joint_transaction import CommittedMark, JointTransaction
from headrace.machines.machine import Event
from headrace.net.thread import loop_thread
from headrace.net.timers import jitter
from headrace.types.records import TopicPartition

__all__ = ["CommittedMark", "JointTransaction", "TransactionOwner", "kept_owner"]

_PATIENCE_S: Final = 120.0
"""How long brokers that do not answer are asked again."""


class TransactionOwner:
    """A client that owns transactions into which other processes write.

    Args:
        properties: a producer's, of which connection, retries and `transaction.timeout.ms` count.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self._config = Config(PRODUCER, properties)
        self._waits = ThreadWaits(loop_thread())
        self._retries = RetryPolicy.of(self._config, jitter)
        self._finders: dict[tuple[int, str], CoordinatorFinder] = {}
        self._ends: dict[Conversation, asyncio.Future[Any]] = {}
        self._probed: set[str] = set()
        self._core: ClientCore = self._waits.do(self._make_core)

    def _make_core(self) -> ClientCore:
        return ClientCore(self._config, on_event=self._on_event)

    @property
    def _timeout_ms(self) -> int:
        timeout_ms: int = self._config["transaction.timeout.ms"]
        return timeout_ms

    def begin(self, name: str, group: str | None = None) -> tuple[JointTransaction, CommittedMark | None]:
        """Begin a transaction; whoever used the name before is shut out, and what it had open is aborted.

        Args:
            name: transactional id.
            group: where marks are; None for none.

        Returns:
            The transaction, and the mark that was committed last.

        Raises:
            KafkaException: the brokers refuse, are older than Kafka 3.0, or did not answer within two minutes.
        """
        if name not in self._probed:
            self._converse(owner_steps.probe(name))
            self._probed.add(name)
        begun: tuple[JointTransaction, CommittedMark | None] = self._converse(
            owner_steps.begin(name, self._timeout_ms, lambda: self._core.driver.features, group=group))
        return begun

    def check(self, transaction: JointTransaction, written: Collection[tuple[str, int]]) -> None:
        """Make sure that the transaction is open and holds these partitions and no others.

        Raises:
            KafkaException: it must not be committed.
        """
        self._converse(owner_steps.check(transaction, written))

    def mark(
        self, transaction: JointTransaction, group: str, note: CommittedMark, place: tuple[str, int]
    ) -> None:
        """Put a mark into the transaction.

        Args:
            transaction: as it was begun.
            group: where marks are.
            note: the mark.
            place: topic and partition under which the group keeps it; they must exist.

        Raises:
            KafkaException: the brokers refuse, or did not answer in time.
        """
        self._converse(owner_steps.mark(transaction, group, note, place))

    def commit_offsets(
        self, transaction: JointTransaction, group: str, offsets: Mapping[tuple[str, int], int]
    ) -> None:
        """Put offsets of a group into the transaction.

        Args:
            transaction: as it was begun.
            group: whose offsets they are.
            offsets: the next offset to read, by topic and partition.

        Raises:
            KafkaException: the brokers refuse, or did not answer in time.
        """
        self._converse(owner_steps.commit_offsets(transaction, group, [
            TopicPartition(*place, offset) for place, offset in offsets.items()]))

    def end(self, transaction: JointTransaction) -> None:
        """Commit.

        Raises:
            KafkaException: it was not committed, or nobody knows: `begin` finds out by the mark.
        """
        self._converse(owner_steps.end(transaction))

    def abort(self, transaction: JointTransaction) -> None:
        """Abort; nothing happens to a transaction that has ended.

        Raises:
            KafkaException: the brokers refuse, or did not answer in time.
        """
        self._converse(owner_steps.abort(transaction, self._timeout_ms))

    def close(self) -> None:
        """Close all connections; what is open stays so."""
        if not self._core.closed:
            self._waits.thread.call(self._core.close())

    def _converse(self, steps: Steps) -> Any:
        return self._waits.thread.call(self._run(steps))

    async def _run(self, steps: Steps) -> Any:
        core = self._core
        core.check_open()
        conversation = Conversation(
            steps, self._find, self._config.seconds("socket.timeout.ms"),
            lambda attempt: self._retries.wait_s(attempt + 1), time.monotonic() + _PATIENCE_S)
        ended = self._ends[conversation] = core.future()
        core.add(conversation)
        try:
            return await ended
        finally:
            core.remove(conversation)
            del self._ends[conversation]

    def _find(self, kind: int, key: str) -> CoordinatorFinder:
        finder = self._finders.get((kind, key))
        if finder is None:
            finder = self._finders[kind, key] = CoordinatorFinder(kind, key, retries=self._retries)
            self._core.add(finder)
        return finder

    def _on_event(self, event: Event) -> None:
        if isinstance(event, ConversationEnded):
            ended = self._ends.get(event.conversation)
            if ended is not None and not ended.done():
                if event.error is None:
                    ended.set_result(event.result)
                else:
                    ended.set_exception(KafkaException(event.error))


_kept: dict[frozenset[tuple[str, Any]], TransactionOwner] = {}
_lock = SteadyLock()


def kept_owner(properties: Mapping[str, Any]) -> TransactionOwner:
    """The process's owner with these properties: it stays connected from one transaction to the next."""
    key = frozenset(properties.items())
    with _lock:
        owner = _kept.get(key)
        if owner is None:
            owner = _kept[key] = TransactionOwner(properties)
        return owner


def _after_fork() -> None:
    global _kept, _lock
    _kept, _lock = {}, SteadyLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
