"""What the owner of a joint transaction asks of coordinators: to begin it, to check it, to end it.

Each is a conversation (`machines.joint.conversation`). The order of questions is what makes a transaction exactly once:

* `begin` takes a producer epoch first, which ends what was open under the name and shuts out all that is late, and
  only then asks for the last mark: no other can come after it.
* `mark` and `end` come after `check`: what is in the transaction is what the participants have reported.
* EndTxn is the one moment at which records and mark come to be, or do not.
* `abort` never takes the name over: a process that was replaced must not end what its successor has opened.

It must not know who the participants are, or what marks mean. Read next: `machines.joint.joined_transaction`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.coordinator import GROUP, TRANSACTION
from headrace.machines.joint.conversation import Ask, Steps
from headrace.machines.joint.joint_transaction import CommittedMark, JointTransaction
from headrace.machines.producer.transaction_requests import LAST_VERSIONS, TransactionalIdentity
from headrace.types.records import ConsumerGroupMetadata, TopicPartition
from headrace.wire.messages.consumer.offsets import OffsetFetchRequest, OffsetFetchResponse
from headrace.wire.messages.producer.transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from headrace.wire.schema import Request

__all__ = ["abort", "begin", "check", "commit_offsets", "end", "mark", "probe"]

_VERSION_2: Final = 2  # of the cluster feature transaction.version
_LAST_FOR_ONE_GROUP: Final = 7  # of OffsetFetch
_ONGOING: Final = "Ongoing"
_OFFSETS_TOPIC: Final = "__consumer_offsets"
_OVER: Final = frozenset({
    KafkaError.INVALID_TXN_STATE, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.UNKNOWN_PRODUCER_ID,
})
"""Answers to an abort by which nothing is left to abort: it has ended already, or there is another owner."""


def probe(name: str) -> Steps:
    """Find out, before anything is begun, whether `check` will be possible.

    Args:
        name: transactional id.

    Raises:
        KafkaException: the brokers are too old, or a right is missing.
    """
    try:
        question = DescribeTransactionsRequest(transactional_ids=[name])
        yield _ask(TRANSACTION, name, question, _described_codes)
    except KafkaException as refused:
        if refused.error.code() == KafkaError._UNSUPPORTED_FEATURE:
            raise KafkaException(KafkaError(
                KafkaError._UNSUPPORTED_FEATURE, "a transaction that several processes write into needs Kafka 3.0 or "
                f"later, best 3.6: {refused.error.str()}")) from None
        if refused.error.code() != KafkaError.TRANSACTIONAL_ID_NOT_FOUND:
            raise


def begin(name: str, timeout_ms: int, features: Callable[[], Mapping[str, int]], *, group: str | None) -> Steps:
    """Begin a transaction under a name, for which its owner is the only one from now on.

    Args:
        name: transactional id.
        timeout_ms: after so long the coordinator aborts it.
        features: finalized features of the cluster by name, as known when it is called.
        group: where marks are; None for none.

    Returns:
        The `JointTransaction`, and the last `CommittedMark` of the group or None.
    """
    taken = yield _ask(TRANSACTION, name, TransactionalIdentity(name).initialise(timeout_ms), _code)
    version = _VERSION_2 if features().get("transaction.version", 0) >= _VERSION_2 else 1
    begun = JointTransaction(name, taken.producer_id, taken.producer_epoch, version)
    if group is None:
        return begun, None
    question = OffsetFetchRequest(group_id=group, topics=None, require_stable=True)
    fetched = yield _ask(GROUP, group, question, _offset_codes, _LAST_FOR_ONE_GROUP)
    return begun, _last_mark(fetched)


def check(transaction: JointTransaction, written: Collection[tuple[str, int]]) -> Steps:
    """Ask the coordinator whether the transaction is still open, and holds what was reported and nothing else.

    What somebody has written who reported nothing would be committed as well: a participant that was given up, and
    replaced by another, for example.

    Args:
        transaction: as it was begun.
        written: the partitions that participants have reported.

    Raises:
        KafkaException: it must not be committed.
    """
    question = DescribeTransactionsRequest(transactional_ids=[transaction.transactional_id])
    reply = yield _ask(TRANSACTION, transaction.transactional_id, question, _described_codes)
    found: DescribedTransaction = reply.transaction_states[0]
    if (found.producer_id, found.producer_epoch) != (transaction.producer_id, transaction.epoch) or (
            found.transaction_state != _ONGOING):
        raise KafkaException(KafkaError(
            KafkaError.INVALID_TXN_STATE, f"the transaction of {transaction.transactional_id} is not open any more "
            f"({found.transaction_state}): it took longer than transaction.timeout.ms, or another process has taken "
            "over its name"))
    held = {(topic.topic, number) for topic in found.topics for number in topic.partitions if topic.topic
            != _OFFSETS_TOPIC}
    if held != set(written):
        names = ", ".join(f"{topic}[{number}]" for topic, number in sorted(held ^ set(written)))
        raise KafkaException(KafkaError(
            KafkaError._INCONSISTENT, f"the transaction of {transaction.transactional_id} holds other partitions than "
            f"were reported: {names}. Something that was given up has written, or still writes"))


def mark(transaction: JointTransaction, group: str, note: CommittedMark, place: tuple[str, int]) -> Steps:
    """Put a mark into the transaction.

    Args:
        transaction: as it was begun.
        group: where marks are.
        note: the new mark.
        place: topic and partition under which the group keeps it; they must exist.
    """
    yield from commit_offsets(transaction, group, [TopicPartition(*place, note.number, note.text)])


def commit_offsets(transaction: JointTransaction, group: str, offsets: Iterable[TopicPartition]) -> Steps:
    """Put offsets of a group into the transaction.

    Args:
        transaction: as it was begun.
        group: whose offsets they are; it needs no members.
        offsets: which; their topics must exist.
    """
    identity = _identity(transaction)
    if transaction.version < _VERSION_2:
        yield _ask(TRANSACTION, transaction.transactional_id, identity.add_offsets(group), _code)
    request = identity.commit_offsets(ConsumerGroupMetadata(group), offsets)
    yield _ask(GROUP, group, request, _committed_codes, _last(TxnOffsetCommitRequest, transaction))


def end(transaction: JointTransaction) -> Steps:
    """Commit.

    Raises:
        KafkaException: it was not committed, or nobody knows: the next `begin` finds out.
    """
    request = _identity(transaction).end(commit=True)
    yield _ask(TRANSACTION, transaction.transactional_id, request, _code, _last(EndTxnRequest, transaction))


def abort(transaction: JointTransaction, timeout_ms: int) -> Steps:
    """Abort what is open of the transaction; nothing happens if it has ended, even with a commit.

    With version 1 the epoch stays as it is when a transaction is aborted, and a participant that is still at work
    would open the next one: so a new epoch is asked for, by the owner of the name only. From anybody else that request
    would end what the owner has open: coordinators compare the epoch after that.

    Args:
        transaction: as it was begun.
        timeout_ms: as it was begun.
    """
    identity = _identity(transaction)
    requests = [identity.end(commit=False)]
    if transaction.version < _VERSION_2:
        requests.append(identity.initialise(timeout_ms))
    for request in requests:
        try:
            yield _ask(TRANSACTION, transaction.transactional_id, request, _code, _last(type(request), transaction))
        except KafkaException as refused:
            if refused.error.code() not in _OVER:
                raise
            if refused.error.code() != KafkaError.INVALID_TXN_STATE:
                return


def _identity(transaction: JointTransaction) -> TransactionalIdentity:
    return TransactionalIdentity(transaction.transactional_id, transaction.producer_id, transaction.epoch)


def _ask(
    kind: int, key: str, request: Request, codes: Callable[[Any], list[int]], max_version: int | None = None
) -> Ask:
    return Ask(kind, key, request, codes, max_version)


def _last(request: type[Request], transaction: JointTransaction) -> int | None:
    versions = LAST_VERSIONS.get(request)
    return None if versions is None else versions[transaction.version - 1]


def _code(reply: Any) -> list[int]:
    return [reply.error_code]


def _offset_codes(reply: OffsetFetchResponse) -> list[int]:
    return [reply.error_code, *(part.error_code for topic in reply.topics for part in topic.partitions)]


def _committed_codes(reply: TxnOffsetCommitResponse) -> list[int]:
    return [part.error_code for topic in reply.topics for part in topic.partitions]


def _described_codes(reply: DescribeTransactionsResponse) -> list[int]:
    return [each.error_code for each in reply.transaction_states]


def _last_mark(reply: OffsetFetchResponse) -> CommittedMark | None:
    """The one with the highest number: the topic under which marks are kept may have been another one before."""
    found = [CommittedMark(part.committed_offset, part.metadata or "")
             for topic in reply.topics for part in topic.partitions if part.committed_offset >= 0]
    return max(found, default=None)
