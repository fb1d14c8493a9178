"""Transactions: one producer's conversation with its transaction coordinator (KIP-98, KIP-447, KIP-890).

An operation (`INIT`, `OFFSETS`, `COMMIT`, `ABORT`) is begun by the client and ends with one `OperationDone`. One
request is under way at a time, in this order: a producer id, partitions to add, offsets to add, the end.
`TXN_TRANSITIONS` says what may follow what.

With transactions version 2 (KIP-890) the coordinator learns of partitions by itself, and every transaction has an
epoch of its own, so that nothing late can fall into the next one. With version 1 the same is reached by asking for a
new epoch whenever the fate of a request was uncertain: else a late request could end, or fill, the next transaction
(decision 0007).

A fenced producer sends nothing more. A request for a new epoch would make the coordinator abort what is open, and
that may be the transaction of the producer that took over.

It must not know batches or sockets. It asks `Work` whether records are still on their way, and hands over producer id
and epoch as `producer_id` and `epoch`. Read next: `machines.producer.sequences`. Source: Java's `TransactionManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, Protocol

from headrace.errors import KafkaError
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.machine import ANY_VERSION, REFUSALS, Event, Send
from headrace.machines.producer.transaction_errors import UNTOUCHED, ErrorClass, class_of, gravest
from headrace.machines.producer.transaction_requests import (
    LAST_VERSIONS,
    TransactionalIdentity,
    for_version,
    offset_keys,
)
from headrace.slotted import field, slotted
from headrace.states import Transitions, from_each
from headrace.types.records import ConsumerGroupMetadata, TopicPartition
from headrace.wire.messages.producer.produce import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from headrace.wire.schema import Request, Struct

__all__ = [
    "TXN_TRANSITIONS",
    "ConsumerGroupMetadata",
    "Operation",
    "OperationDone",
    "TxnState",
    "TransactionFailed",
    "Transactions",
    "Work",
]

_LAST_PRODUCE_OF_VERSION_1: Final = 11
_VERSION_2: Final = 2  # of the cluster feature transaction.version
_CONCURRENT_WAIT_S: Final = 0.02  # the markers of the transaction before are still being written
_CONCURRENT_TRIES: Final = 10
_EARLY_TRIES: Final = 30
_UNKNOWN_TRIES: Final = 10
"""A topic that was made just now is known to all brokers sooner: with pauses that grow, this takes seven seconds."""
_WITHOUT_RECOVERY: Final = (0, 1, 2)  # versions of InitProducerId that know no epoch to go on from (KIP-360)
_FENCED: Final = (KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
_NEVER: Final = float("inf")
_PURGED: Final = KafkaError(KafkaError._PURGE_QUEUE)


class TxnState(Enum):
    """Where a transactional producer is in its life."""

    UNINITIALIZED = "init_transactions() was not called"
    INITIALIZING = "init_transactions() is under way"
    READY = "init_transactions() is done, and no transaction is open"
    IN_TRANSACTION = "a transaction is open"
    COMMITTING = "commit_transaction() is under way"
    ABORTING = "abort_transaction() is under way"
    ABORTABLE_ERROR = "the transaction must be aborted"
    FATAL_ERROR = "the producer cannot go on"


_T = TxnState
TXN_TRANSITIONS: Final = Transitions("A transactional producer", TxnState.UNINITIALIZED, {
    (_T.UNINITIALIZED, "init_transactions"): _T.INITIALIZING,
    (_T.READY, "begin_transaction"): _T.IN_TRANSACTION,
    (_T.IN_TRANSACTION, "commit_transaction"): _T.COMMITTING,
    **from_each((_T.IN_TRANSACTION, _T.ABORTABLE_ERROR), "abort_transaction", _T.ABORTING),
    **from_each((_T.INITIALIZING, _T.COMMITTING, _T.ABORTING), "done", _T.READY),
    **from_each((_T.IN_TRANSACTION, _T.COMMITTING), "abortable error", _T.ABORTABLE_ERROR),
    **from_each((state for state in _T if state is not _T.FATAL_ERROR), "fatal error", _T.FATAL_ERROR),
})
"""The only ways from one state to another."""


class Operation(Enum):
    """What the application can ask for."""

    INIT = "init_transactions"
    OFFSETS = "send_offsets_to_transaction"
    COMMIT = "commit_transaction"
    ABORT = "abort_transaction"


@slotted()
class OperationDone(Event):
    """An operation has ended; `error` is None when it did what it should."""

    operation: Operation
    error: KafkaError | None = None


@slotted()
class TransactionFailed(Event):
    """No more records may be produced: the transaction must be aborted, or, if the error is fatal, never again."""

    error: KafkaError


class Work(Protocol):
    """What a transaction needs to know of the records in it."""

    def unresolved(self) -> bool:
        """True while a record of the transaction was neither stored nor given up."""
        ...


@slotted()
class _Offsets:
    """Offsets on their way into the transaction."""

    member: ConsumerGroupMetadata
    left: dict[tuple[str, int], TopicPartition]


@slotted()
class _Contents:
    """What one transaction has touched."""

    wanted: dict[tuple[str, int], None] = field(default_factory=dict)
    added: set[tuple[str, int]] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    doubtful: set[tuple[str, str, int]] = field(default_factory=set)  # group, topic, partition: an answer is missing
    started: bool = False  # the coordinator may know of it
    confirmed: bool = False  # something of it is stored, so the transaction before is over
    uncertain: bool = False  # a request of it may still arrive somewhere
    bump: bool = False  # its epoch cannot be used any more
    ending: bool = False  # the coordinator was asked to end it: nothing more can get in
    end_uncertain: bool = False  # it may have done so
    fenced: bool = False  # a leader knows a later epoch
    early: KafkaError | None = None  # the coordinator said that it is fenced, perhaps only because it came too early


class Transactions:
    """The machine of a producer with a `transactional.id`.

    Args:
        transactional_id: the producer's name for fencing: only the producer that initialised it last may write.
        timeout_ms: the coordinator aborts a transaction that stays open longer.
        finder: finds the transaction coordinator; a machine of its own.
        find_group: gives the machine that finds a group's coordinator; called once for each group.
        features: finalized features of the cluster by name.
        request_timeout_s: seconds for one request.
        backoff_s: seconds to wait before attempt n (0, 1, ...), jitter included.

    Attributes:
        state: where the producer is in its life.
        error: why it is in an error state, None otherwise.
        version: 1 or 2, of the transaction protocol; settled when a transaction begins.
        work: set by the producer once both exist.
    """

    alone = idle = False  # others read what it decides

    work: Work

    def __init__(
        self,
        transactional_id: str,
        timeout_ms: int,
        finder: CoordinatorFinder,
        find_group: Callable[[str], CoordinatorFinder],
        features: Callable[[], Mapping[str, int]],
        request_timeout_s: float,
        backoff_s: Callable[[int], float],
    ) -> None:
        self.state = TXN_TRANSITIONS.first
        self.error: KafkaError | None = None
        self._identity = TransactionalIdentity(transactional_id)
        self.version = 1
        self._timeout_ms = timeout_ms
        self._finder = finder
        self._find_group = find_group
        self._groups: dict[str, CoordinatorFinder] = {}
        self._features = features
        self._request_timeout_s = request_timeout_s
        self._backoff_s = backoff_s
        self._contents = _Contents()
        self._offsets: _Offsets | None = None
        self._flying: Send | None = None
        self._failures = 0
        self._last_error: KafkaError | None = None
        self._due = -_NEVER
        self._known_version = 0
        self._follows_own = False  # the last thing to end with version 2 was a transaction of this producer
        self._used_by_version_1 = False  # the epoch: with version 2 records could fall into a transaction before
        self._recovering = False  # a new epoch is asked for before the next transaction may write
        self._can_recover = True  # the broker can give a new epoch to this producer alone
        self._events: list[Event] = []

    # What the application asks for. Wrong order is the application's mistake and returned at once.

    def begin(self, operation: Operation) -> KafkaError | None:
        """Begin `INIT`, `COMMIT` or `ABORT`; an error if this is not the time for it. `OperationDone` follows else."""
        if self.state is TxnState.FATAL_ERROR:
            return self.error
        if operation is not Operation.ABORT and self.state is TxnState.ABORTABLE_ERROR:
            return self.error  # what the transaction failed with; the application sees that it has to abort
        refused = self._move(operation.value)
        if refused is None and operation is Operation.ABORT:
            self._end_offsets(KafkaError(KafkaError._STATE, "the transaction was aborted meanwhile"))
        return refused

    def open(self) -> KafkaError | None:
        """Open a transaction; an error if this is not the time for it. Takes no request."""
        if self.state in (TxnState.ABORTABLE_ERROR, TxnState.FATAL_ERROR):
            return self.error
        refused = self._move("begin_transaction")
        if refused is None:
            self._contents = _Contents()
            fresh = self._recovering or not self._used_by_version_1
            self.version = 2 if fresh and self._cluster_version() >= _VERSION_2 else 1
        return refused

    def _cluster_version(self) -> int:
        features = self._features()
        if features:  # else no connected broker reports them, or all are old
            self._known_version = features.get("transaction.version", 0)
        return self._known_version

    def add_offsets(self, offsets: Iterable[TopicPartition], member: ConsumerGroupMetadata) -> KafkaError | None:
        """Put a consumer's offsets into the transaction; an error if that cannot be begun."""
        if self.state in (TxnState.ABORTABLE_ERROR, TxnState.FATAL_ERROR):
            return self.error
        if self.state is not TxnState.IN_TRANSACTION:
            return self._wrong_state(Operation.OFFSETS.value)
        if self._offsets is not None:
            return KafkaError(
                KafkaError._CONFLICT, "send_offsets_to_transaction() is under way already", retriable=True)
        wanted = {(tp.topic, tp.partition): tp for tp in offsets}
        if any((member.group_id, *key) in self._contents.doubtful for key in wanted):
            self._doom(KafkaError(
                KafkaError._INCONSISTENT, "an earlier request with offsets of these partitions may still arrive, and "
                "would take them back: abort the transaction and do its work again"), bump=False)
            return self.error
        self._offsets = _Offsets(member, wanted)
        return None

    def _move(self, call: str) -> KafkaError | None:
        if not TXN_TRANSITIONS.allows(self.state, call):
            return self._wrong_state(call)
        self._go(call)
        self._due, self._failures = -_NEVER, 0
        return None

    def _go(self, trigger: str) -> None:
        self.state = TXN_TRANSITIONS.go(self.state, trigger)

    def _wrong_state(self, call: str) -> KafkaError:
        busy = self.state in _UNDER_WAY
        return KafkaError(KafkaError._CONFLICT if busy else KafkaError._STATE,
                          f"{call}() cannot be called now: {self.state.value}", retriable=busy)

    @property
    def last_error(self) -> KafkaError | None:
        """Why the last attempt of what is under way failed; None if it did not, or once one succeeded."""
        return self._last_error or self._finder.last_error

    # What the sender asks and reports.

    @property
    def transactional_id(self) -> str:
        """The producer's name for fencing."""
        return self._identity.transactional_id

    @property
    def producer_id(self) -> int:
        """What batches are stamped with, -1 before `INIT` is done; so is `epoch`."""
        return self._identity.producer_id

    @property
    def epoch(self) -> int:
        """It goes up whenever nothing older may be accepted any more."""
        return self._identity.epoch

    def admits(self, topic: str, partition: int) -> bool:
        """May batches for this partition be sent? With version 1 the coordinator must know of the partition first."""
        may_write = self.state in (TxnState.IN_TRANSACTION, TxnState.COMMITTING)
        if not may_write or self._recovering or self._contents.ending:
            return False
        key = (topic, partition)
        if self.version >= _VERSION_2:
            self._contents.started = True
            return True
        if key not in self._contents.added:
            self._contents.wanted[key] = None
        return key in self._contents.added

    @property
    def lost(self) -> KafkaError | None:
        """Why records that still wait will not be sent in this transaction; None if they may be."""
        return _PURGED if self.state is TxnState.ABORTING else self.error

    @property
    def max_produce_version(self) -> int:
        """Highest version for produce requests: from 12 on they add the partition by themselves."""
        return ANY_VERSION if self.version >= _VERSION_2 else _LAST_PRODUCE_OF_VERSION_1

    def on_batch_failed(self, error: KafkaError, *, sent: bool, uncertain: bool) -> None:
        """A batch of the transaction was given up. `sent`: it has a sequence; `uncertain`: it may get stored still.

        What was purged because the transaction is being aborted changes the sequences only.
        """
        self._contents.bump |= sent
        self._contents.uncertain |= uncertain
        self._contents.fenced |= error.code() in _FENCED
        self.on_record_failed(error)

    def on_batch_stored(self) -> None:
        """A batch of the transaction is stored."""
        self._contents.confirmed = True

    def on_record_failed(self, error: KafkaError) -> None:
        """A record was reported as failed: what it belongs to cannot be committed."""
        if not self._contents.ending:  # else it came too late, and belongs to no transaction
            self._doom(error, bump=False)

    def on_fatal(self, error: KafkaError) -> None:
        """A broker reports that this producer may not write any more."""
        self._fail(error)

    # The machine

    def poll(self, now: float) -> Iterator[Send]:
        """The next request, if one is due."""
        if self._flying is not None or now < self._due or self.state is TxnState.FATAL_ERROR:
            return
        self._due = -_NEVER
        request, finder = self._next()
        if request is None or finder is None:
            return
        if finder.error is not None and not self._may_pass(finder.error):
            self._on_lookup_failed(finder, finder.error)
        elif finder.node_id is not None:
            last = LAST_VERSIONS.get(type(request), (None, None))[self.version - 1]
            self._contents.ending |= isinstance(request, EndTxnRequest)
            self._flying = Send(
                finder.node_id, request, self._request_timeout_s, last, context=finder, for_version=for_version)
            yield self._flying

    def _next(self) -> tuple[Request | None, CoordinatorFinder | None]:
        """What to ask next and of whom; also ends operations that need no request."""
        contents = self._contents
        if self.state is TxnState.INITIALIZING or self._recovering:
            return self._identity.initialise(self._timeout_ms), self._finder
        if self.state in (TxnState.IN_TRANSACTION, TxnState.COMMITTING):
            if contents.wanted:
                contents.started = True
                return self._identity.add_partitions(contents.wanted), self._finder
            if self._offsets is not None:
                return self._offsets_step(self._offsets)
        if self.state in (TxnState.COMMITTING, TxnState.ABORTING) and (contents.ending or not self.work.unresolved()):
            if contents.started:
                return self._identity.end(commit=self.state is TxnState.COMMITTING), self._finder
            self._ended()
            return self._next()
        return None, None

    def _offsets_step(self, offsets: _Offsets) -> tuple[Request, CoordinatorFinder]:
        member, self._contents.started = offsets.member, True
        if self.version < _VERSION_2 and member.group_id not in self._contents.groups:
            return self._identity.add_offsets(member.group_id), self._finder
        return self._identity.commit_offsets(member, offsets.left.values()), self.group_finder(member.group_id)

    def group_finder(self, group_id: str) -> CoordinatorFinder:
        """The machine that finds the coordinator of a group, made on first use."""
        if group_id not in self._groups:
            self._groups[group_id] = self._find_group(group_id)
        return self._groups[group_id]

    def deadline(self) -> float | None:
        """When to try again after a failure."""
        waits = self._flying is None and self._due > -_NEVER and self.state is not TxnState.FATAL_ERROR
        return self._due if waits else None

    def events(self) -> list[Event]:
        """Operations that have ended."""
        events, self._events = self._events, []
        return events

    # Answers

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """A coordinator answered."""
        self._flying, self._due, self._last_error = None, -_NEVER, None
        if self.state is TxnState.FATAL_ERROR:
            return
        if isinstance(reply, InitProducerIdResponse):
            self._can_recover = send.version not in _WITHOUT_RECOVERY
            self._on_code(send, reply.error_code, now, self._initialized, reply)
        elif isinstance(reply, AddPartitionsToTxnResponse):
            self._on_partitions(send, reply, now)
        elif isinstance(reply, AddOffsetsToTxnResponse):
            self._on_code(send, reply.error_code, now, self._announced, reply)
        elif isinstance(reply, TxnOffsetCommitResponse):
            self._on_offsets(send, reply, now)
        elif isinstance(reply, EndTxnResponse):
            self._on_code(send, reply.error_code, now, self._end_answered, reply)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No answer came: ask again, wherever the coordinator is by then."""
        self._flying, self._last_error = None, error
        if error.maybe_applied and not isinstance(send.request, InitProducerIdRequest):
            self._contents.uncertain = True
            self._contents.end_uncertain |= isinstance(send.request, EndTxnRequest)
            if isinstance(send.request, TxnOffsetCommitRequest):
                self._contents.doubtful |= offset_keys(send.request)
        if error.code() in (KafkaError._UNSUPPORTED_FEATURE, *REFUSALS) and not (
                error.retriable() or self._may_pass(error)):
            self._fail(error)
            return
        send.context.invalidate(now)
        self._again(now)

    def _may_pass(self, error: KafkaError) -> bool:
        """Brokers that refuse whom they have given an id to may let it in again, as in `Sender.was_let_in`."""
        return error.code() in REFUSALS and self._identity.producer_id >= 0

    def _on_code(
        self, send: Send, code: int, now: float, done: Callable[[Any], None], reply: Struct
    ) -> None:
        if code == KafkaError.NO_ERROR:
            self._failures = 0
            done(reply)
        else:
            self._on_refusal(send, code, now)

    def _on_refusal(self, send: Send, code: int, now: float) -> None:
        """A request was refused: the table says what that means."""
        kind = class_of(type(send.request), code)
        what = type(send.request).__name__.removesuffix("Request")
        error = self._last_error = KafkaError(code, f"{what} of {self.transactional_id}: {KafkaError(code).str()}")
        if kind in (ErrorClass.MOVED, ErrorClass.RETRY) and code not in UNTOUCHED:
            self._contents.end_uncertain |= isinstance(send.request, EndTxnRequest)  # it may be in the log all the same
        if kind is ErrorClass.MOVED:
            send.context.invalidate(now)
            self._again(now)
        elif (code == KafkaError.UNKNOWN_TOPIC_OR_PART and isinstance(send.request, TxnOffsetCommitRequest)
              and self._failures >= _UNKNOWN_TRIES):  # records have their own time; nothing else would end this
            self._doom(error, bump=False)
        elif kind is ErrorClass.RETRY:
            short = code == KafkaError.CONCURRENT_TRANSACTIONS and self._failures < _CONCURRENT_TRIES
            self._again(now, _CONCURRENT_WAIT_S if short else None)
        elif kind is ErrorClass.FENCED and self._may_be_early(send.request):
            self._contents.early = error
            self._again(now)
        elif kind in (ErrorClass.FENCED, ErrorClass.FATAL) or isinstance(send.request, InitProducerIdRequest):
            self._fail(error)
        elif isinstance(send.request, EndTxnRequest):
            self._on_end_refused(error, kind)
        else:
            self._doom(error, bump=kind is ErrorClass.ABORT_AND_BUMP)

    def _may_be_early(self, request: Request) -> bool:
        """With version 2 the coordinator says "fenced" as well while the transaction before is being completed.

        Only an abort can be that early: all else has to wait for records or offsets to be stored first. It is asked for
        again only where there is a transaction before, and no leader has said "fenced" too. For if another producer has
        taken over and uses version 1, the coordinator would take the late abort for the end of that one's transaction,
        and give its epoch to both.
        """
        early = isinstance(request, EndTxnRequest) and self.version >= _VERSION_2 and not self._contents.confirmed
        return early and self._follows_own and not self._contents.fenced and self._failures < _EARLY_TRIES

    def _on_end_refused(self, error: KafkaError, kind: ErrorClass) -> None:
        """The coordinator knows of nothing that could be ended like this."""
        if self.state is TxnState.ABORTING and self._contents.early is not None:
            self._fail(self._contents.early)  # it was not: the transaction that is over by now is another producer's
        elif self.state is TxnState.ABORTING:  # so nothing is left to abort
            self._contents.bump = True
            self._ended()
        elif self._contents.end_uncertain:  # an earlier attempt may have committed it: "aborted" could be a lie
            self._fail(error)
        else:
            self._contents.ending = False
            self._doom(error, bump=kind is ErrorClass.ABORT_AND_BUMP)

    def _again(self, now: float, wait_s: float | None = None) -> None:
        self._due = now + (self._backoff_s(self._failures) if wait_s is None else wait_s)
        self._failures += 1

    def _initialized(self, reply: InitProducerIdResponse) -> None:
        self._take_numbers(reply)
        self._follows_own = False
        if self.state is TxnState.INITIALIZING:
            self._finish(Operation.INIT)
        self._recovering = False

    def _take_numbers(self, reply: InitProducerIdResponse | EndTxnResponse) -> None:
        self._identity.producer_id, self._identity.epoch = reply.producer_id, reply.producer_epoch
        self._used_by_version_1 = False

    def _on_partitions(self, send: Send, reply: AddPartitionsToTxnResponse, now: float) -> None:
        contents, refusals = self._contents, []
        for topic in reply.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                if result.partition_error_code == KafkaError.NO_ERROR:
                    contents.added.add((topic.name, result.partition_index))
                    contents.wanted.pop((topic.name, result.partition_index), None)
                else:
                    refusals.append(result.partition_error_code)
        if refusals:
            self._on_refusal(send, gravest(AddPartitionsToTxnRequest, refusals), now)
        else:
            self._failures = 0

    def _announced(self, reply: Struct) -> None:
        if self._offsets is not None:
            self._contents.groups.add(self._offsets.member.group_id)

    def _on_offsets(self, send: Send, reply: TxnOffsetCommitResponse, now: float) -> None:
        offsets = self._offsets
        if offsets is None:
            return  # aborted meanwhile
        refusals = []
        for topic in reply.topics:
            for part in topic.partitions:
                if part.error_code == KafkaError.NO_ERROR:
                    offsets.left.pop((topic.name, part.partition_index), None)
                else:
                    refusals.append(part.error_code)
        if refusals:
            self._on_refusal(send, gravest(TxnOffsetCommitRequest, refusals), now)
        elif not offsets.left:
            self._failures = 0
            self._contents.confirmed = True
            self._end_offsets(None)
        else:
            self._again(now)  # an answer that leaves partitions out

    def _end_answered(self, reply: EndTxnResponse) -> None:
        if reply.producer_id >= 0:
            self._take_numbers(reply)
            self._follows_own = True
            self._contents.bump = self._contents.uncertain = False
        elif self.version >= _VERSION_2:  # a coordinator of before
            self._contents.bump = True
        self._ended()

    def _ended(self) -> None:
        """The transaction is over. With version 1 what may still arrive late is shut out by a new epoch.

        It is asked for at once, for the longer this waits the likelier another producer has taken over, and then the
        coordinator would abort what that one has open. This holds for the change to version 2 too.
        """
        self._used_by_version_1 |= self._contents.started and self.version < _VERSION_2
        upgrade = self._used_by_version_1 and self._cluster_version() >= _VERSION_2
        self._recovering |= self._contents.bump or self._contents.uncertain or upgrade
        self._finish(Operation.COMMIT if self.state is TxnState.COMMITTING else Operation.ABORT)
        if self._recovering and not self._can_recover:
            self._fail(KafkaError(KafkaError.UNSUPPORTED_VERSION, "a late request of the last transaction could not be "
                                  "told from the next one's before Kafka 2.5: close this producer and make another"))

    def _finish(self, operation: Operation) -> None:
        self._go("done")
        self.error, self._due, self._failures = None, -_NEVER, 0
        self._events.append(OperationDone(operation))

    def _on_lookup_failed(self, finder: CoordinatorFinder, error: KafkaError) -> None:
        if finder is self._finder:
            self._fail(error)
        else:
            self._doom(error, bump=False)  # another group may do

    def _doom(self, error: KafkaError, *, bump: bool) -> None:
        """Only an abort helps; what is under way ends with the error."""
        self._contents.bump |= bump
        if not TXN_TRANSITIONS.allows(self.state, "abortable error"):
            return
        under_way = Operation.COMMIT if self.state is TxnState.COMMITTING else None
        self._go("abortable error")
        self.error = KafkaError(error.code(), error.str(), retriable=False, txn_requires_abort=True,
                                maybe_applied=error.maybe_applied)
        self._end_with_error(under_way, self.error)

    def _fail(self, error: KafkaError) -> None:
        """Nothing helps any more; what is under way ends with the error."""
        if self.state is TxnState.FATAL_ERROR:
            return
        under_way = _UNDER_WAY.get(self.state)
        code = KafkaError._FENCED if error.code() in _FENCED else error.code()
        committed = self.state is TxnState.COMMITTING and self._contents.end_uncertain
        self._go("fatal error")
        self.error = KafkaError(code, error.str(), fatal=True, retriable=False,
                                maybe_applied=error.maybe_applied or committed)
        self._end_with_error(under_way, self.error)

    def _end_with_error(self, under_way: Operation | None, error: KafkaError) -> None:
        self._events.append(TransactionFailed(error))
        self._end_offsets(error)
        if under_way is not None:
            self._events.append(OperationDone(under_way, error))

    def _end_offsets(self, error: KafkaError | None) -> None:
        if self._offsets is not None:
            self._offsets = None
            self._events.append(OperationDone(Operation.OFFSETS, error))


_UNDER_WAY: Final = {
    TxnState.INITIALIZING: Operation.INIT, TxnState.COMMITTING: Operation.COMMIT, TxnState.ABORTING: Operation.ABORT,
}
