"""Writing into a transaction that another process has begun and will end.

A partition is claimed before the first record goes there: its leader must not know of any batch of this transaction.
Whoever else writes there shares producer id, epoch and sequences, and a leader takes two batches with the same
sequences for one that was repeated. With version 1 the coordinator also has to learn of the partition first.

It must not know batches or sockets; the sender asks it as it asks `machines.producer.transactions`.
Read next: `machines.joint.joined_sequences`, which begins each partition at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from headrace.error_codes import lacking
from headrace.errors import KafkaError
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.joint.joint_transaction import JointTransaction, Written
from headrace.machines.machine import ANY_VERSION, REFUSALS, Event, Send
from headrace.machines.producer.transaction_errors import ErrorClass, class_of, gravest
from headrace.machines.producer.transaction_requests import LAST_VERSIONS, TransactionalIdentity
from headrace.slotted import slotted
from headrace.wire.messages.producer.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducersTopicRequest,
)
from headrace.wire.schema import Request, Struct

__all__ = ["LET_ONE_WRITE", "JoinedTransaction", "JoinedTransactionFailed", "PartitionLeaders"]

LET_ONE_WRITE: Final = ("The partition has records of this transaction already, of another task or of another attempt "
                        "of this one: let each partition be written by one task")
_LAST_PRODUCE_OF_VERSION_1: Final = 11
_VERSION_2: Final = 2
_NEVER: Final = float("inf")
_NOBODY: Final = JointTransaction("", -1, -1, 1)
_Key = tuple[str, int]


@slotted()
class JoinedTransactionFailed(Event):
    """No more records may be produced: what was written so far must not be committed."""

    error: KafkaError


class PartitionLeaders(Protocol):
    """What it needs of `machines.cluster.metadata`."""

    def leader(self, topic: str, partition: int) -> tuple[int | None, int]:
        """Broker id of a partition's leader, None while it is not known, and its epoch."""
        ...

    def refresh(self, now: float) -> None:
        """Ask for new metadata soon."""
        ...


class JoinedTransaction:
    """The machine of a participant. `join` before the first record.

    Args:
        find: gives the machine that finds the coordinator of a transactional id.
        leaders: knows the leaders.
        request_timeout_s: seconds for one request.
        backoff_s: seconds to wait before attempt n (0, 1, ...), jitter included.

    Attributes:
        lost: why nothing more may be written; None if it may.
        last_error: why the last attempt of a request failed; None once one succeeded.
        joined: how often a transaction was joined.
    """

    alone = idle = False  # the sender reads what it decides

    def __init__(
        self, find: Callable[[str], CoordinatorFinder], leaders: PartitionLeaders, request_timeout_s: float,
        backoff_s: Callable[[int], float],
    ) -> None:
        self.lost: KafkaError | None = None
        self.last_error: KafkaError | None = None
        self.joined = 0
        self._transaction = _NOBODY
        self._before: Written = {}
        self._find = find
        self._leaders = leaders
        self._request_timeout_s = request_timeout_s
        self._backoff_s = backoff_s
        self._wanted: dict[_Key, None] = {}
        self._added: set[_Key] = set()
        self._claimed: set[_Key] = set()
        self._flying: dict[Send, set[_Key]] = {}
        self._failures = 0
        self._due = -_NEVER
        self._events: list[Event] = []

    def join(self, transaction: JointTransaction, before: Written | None = None) -> None:
        """Write into this transaction from now on. Nothing of the one before waits or is on its way.

        Args:
            transaction: as its owner has begun it.
            before: records that are in it already, by topic and partition, of participants that have ended.
        """
        self._transaction, self._before = transaction, before or {}
        self.joined += 1
        self._wanted, self._added, self._claimed, self._flying = {}, set(), set(), {}
        self._failures, self._due, self.last_error = 0, -_NEVER, None

    # What the sender asks and reports.

    @property
    def transactional_id(self) -> str:
        """The name under which the coordinator knows the transaction."""
        return self._transaction.transactional_id

    @property
    def producer_id(self) -> int:
        """What batches are stamped with; so is `epoch`."""
        return self._transaction.producer_id

    @property
    def epoch(self) -> int:
        """That of this transaction alone."""
        return self._transaction.epoch

    @property
    def max_produce_version(self) -> int:
        """Highest version for produce requests: from 12 on they add the partition by themselves."""
        return ANY_VERSION if self._transaction.version >= _VERSION_2 else _LAST_PRODUCE_OF_VERSION_1

    def admits(self, topic: str, partition: int) -> bool:
        """May batches for this partition be sent? It is claimed if it is not yet."""
        if self.lost is not None:
            return False
        key = (topic, partition)
        self._wanted[key] = None
        return key in self._claimed and (self._transaction.version >= _VERSION_2 or key in self._added)

    def before(self, topic: str, partition: int) -> int:
        """How many records of others, which have ended, are in the transaction: the first sequence to use."""
        return self._before.get((topic, partition), 0)

    def on_batch_stored(self) -> None:
        """A batch of the transaction is stored."""

    def on_batch_failed(self, error: KafkaError, *, sent: bool, uncertain: bool) -> None:
        """A batch was given up: what is in the transaction is not whole."""
        self.on_record_failed(error)

    def on_record_failed(self, error: KafkaError) -> None:
        """A record was reported as failed."""
        self._fail(error)

    def on_fatal(self, error: KafkaError) -> None:
        """A broker reports that nobody may write under this epoch any more."""
        self._fail(error)

    def _fail(self, error: KafkaError) -> None:
        if self.lost is None:
            self.lost = error
            self._events.append(JoinedTransactionFailed(error))

    # The machine

    def poll(self, now: float) -> Iterator[Send]:
        """What is to be asked before records may go to a partition."""
        if self.lost is not None or now < self._due:
            return
        self._due = -_NEVER
        if self._transaction.version < _VERSION_2:
            yield from self._add(now)
        if self.lost is None:
            yield from self._claim(now)

    def _asked(self, request: type[Request]) -> set[_Key]:
        return {key for send, keys in self._flying.items() if isinstance(send.request, request) for key in keys}

    def _add(self, now: float) -> Iterator[Send]:
        keys = self._wanted.keys() - self._added
        if not keys or self._asked(AddPartitionsToTxnRequest):
            return
        finder = self._find(self.transactional_id)
        if finder.error is not None:
            self._fail(finder.error)
        elif finder.node_id is not None:
            identity = TransactionalIdentity(self.transactional_id, self.producer_id, self.epoch)
            last = LAST_VERSIONS[AddPartitionsToTxnRequest][0]
            yield self._send(finder.node_id, identity.add_partitions(sorted(keys)), keys, last, finder)

    def _claim(self, now: float) -> Iterator[Send]:
        open_ones = self._wanted.keys() - self._claimed
        if not open_ones or not (open_ones := open_ones - self._asked(DescribeProducersRequest)):
            return
        by_leader: dict[int, list[_Key]] = {}
        for key in sorted(open_ones):
            leader, _ = self._leaders.leader(*key)
            if leader is None:
                self._leaders.refresh(now)
            else:
                by_leader.setdefault(leader, []).append(key)
        for leader, keys in by_leader.items():
            topics: dict[str, list[int]] = {}
            for topic, partition in keys:
                topics.setdefault(topic, []).append(partition)
            request = DescribeProducersRequest(topics=[
                ProducersTopicRequest(name=name, partition_indexes=numbers) for name, numbers in topics.items()])
            yield self._send(leader, request, set(keys), None, None)

    def _send(
        self, node_id: int, request: Request, keys: set[_Key], last: int | None, finder: CoordinatorFinder | None
    ) -> Send:
        send = Send(node_id, request, self._request_timeout_s, last, context=finder)
        self._flying[send] = keys
        return send

    def deadline(self) -> float | None:
        """When to ask again after a failure."""
        return self._due if self._due > -_NEVER and self.lost is None else None

    def events(self) -> list[Event]:
        """Its failure, once."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """A coordinator or a leader answered."""
        keys = self._flying.pop(send, None)
        if keys is None:
            return  # of a transaction before
        self.last_error = None
        if isinstance(reply, AddPartitionsToTxnResponse):
            self._on_added(send, reply, now)
        elif isinstance(reply, DescribeProducersResponse):
            self._on_described(reply, now)

    def _on_added(self, send: Send, reply: AddPartitionsToTxnResponse, now: float) -> None:
        refusals = []
        for topic in reply.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                if result.partition_error_code == KafkaError.NO_ERROR:
                    self._added.add((topic.name, result.partition_index))
                else:
                    refusals.append(result.partition_error_code)
        if not refusals:
            self._failures = 0
            return
        code = gravest(AddPartitionsToTxnRequest, refusals)
        kind = class_of(AddPartitionsToTxnRequest, code)
        error = KafkaError(code, f"AddPartitionsToTxn of {self.transactional_id}: {KafkaError(code).str()}")
        if kind is ErrorClass.MOVED:
            send.context.invalidate(now)
        if kind in (ErrorClass.MOVED, ErrorClass.RETRY):
            self._again(error, now)
        else:
            self._fail(error)

    def _on_described(self, reply: DescribeProducersResponse, now: float) -> None:
        for topic in reply.topics:
            for part in topic.partitions:
                where = f"{topic.name}[{part.partition_index}]"
                if part.error_code != KafkaError.NO_ERROR:
                    self._on_unclaimed(where, KafkaError(part.error_code), part.error_message, now)
                elif _last_sequence(filter(self._is_ours, part.active_producers)) != self.before(
                        topic.name, part.partition_index) - 1:
                    self._fail(KafkaError(KafkaError._CONFLICT, f"{where}: {LET_ONE_WRITE}"))
                else:
                    self._claimed.add((topic.name, part.partition_index))

    def _is_ours(self, known: Any) -> bool:
        return (known.producer_id, known.producer_epoch) == (self.producer_id, self.epoch)

    def _on_unclaimed(self, where: str, error: KafkaError, text: str | None, now: float) -> None:
        said = text or error.str()
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:  # who only writes elsewhere does not think of reading
            said = lacking(said, "READ on the topic")
        told = KafkaError(error.code(), f"DescribeProducers of {where}: {said}")
        if error.retriable():
            self._leaders.refresh(now)
            self._again(told, now)
        else:
            self._fail(told)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No answer came: ask again."""
        if self._flying.pop(send, None) is None:
            return
        if error.code() in (KafkaError._UNSUPPORTED_FEATURE, *REFUSALS) and not error.retriable():
            self._fail(error)
            return
        if send.context is not None:
            send.context.invalidate(now)
        else:
            self._leaders.refresh(now)
        self._again(error, now)

    def _again(self, error: KafkaError, now: float) -> None:
        self.last_error = error
        self._due = now + self._backoff_s(self._failures)
        self._failures += 1


def _last_sequence(known: Iterable[Any]) -> int:
    """The highest sequence of a transaction's records in a partition; -1 if there are none."""
    return max((each.last_sequence for each in known), default=-1)
