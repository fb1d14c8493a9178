"""A conversation with coordinators driven by hand, for its tests: a clock, and coordinators that answer as told."""

from __future__ import annotations

from typing import Any

from headrace.errors import KafkaError as K
from headrace.machines.cluster.coordinator import GROUP, TRANSACTION
from headrace.machines.joint.conversation import Conversation, ConversationEnded, Steps
from headrace.machines.joint.joint_transaction import JointTransaction
from headrace.machines.machine import Send
from headrace.wire.messages.consumer.offsets import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from headrace.wire.messages.producer.transactions import (
    DescribedTransaction,
    DescribeTransactionsResponse,
    TransactionTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.support.driven_transactions import COORDINATOR, GROUP_COORDINATOR, LOST, Finder

NEW, OLD = JointTransaction("x", 7, 3, 2), JointTransaction("x", 7, 3, 1)
"""A transaction of version 2, and one of version 1."""
PATIENCE_S = 100.0


class DrivenConversation:
    """A conversation, its clock and its coordinators."""

    def __init__(self, steps: Steps) -> None:
        self.finders = {TRANSACTION: Finder(TRANSACTION, COORDINATOR), GROUP: Finder(GROUP, GROUP_COORDINATOR)}
        self.now = 0.0
        self.machine = Conversation(
            steps, lambda kind, key: self.finders[kind], 30.0, lambda attempt: 0.1 * 2**attempt, PATIENCE_S)

    def sent(self) -> Send | None:
        """What is asked by now."""
        found = list(self.machine.poll(self.now))
        assert len(found) <= 1
        return found[0] if found else None

    def expect(self, of: type) -> Send:
        send = self.sent()
        assert send is not None
        assert isinstance(send.request, of)
        return send

    def answer(self, of: type, reply: Any) -> Send:
        send = self.expect(of)
        self.machine.on_reply(send, reply, self.now)
        return send

    def lose(self, of: type, error: K = LOST) -> None:
        self.machine.on_error(self.expect(of), error, self.now)

    def wait(self) -> None:
        deadline = self.machine.deadline()
        assert deadline is not None
        assert deadline > self.now
        self.now = deadline

    def ended(self) -> tuple[Any, K | None] | None:
        """Result and error once it has ended."""
        events = self.machine.events()
        assert len(events) <= 1
        for event in events:
            assert isinstance(event, ConversationEnded)
            assert event.conversation is self.machine
            return event.result, event.error
        return None

    def result(self) -> Any:
        ended = self.ended()
        assert ended is not None
        assert ended[1] is None
        return ended[0]

    def error(self) -> K:
        ended = self.ended()
        assert ended is not None
        assert ended[1] is not None
        return ended[1]


def fetched(*marks: tuple[str, int, str], code: int = 0) -> OffsetFetchResponse:
    """Marks as a group's coordinator gives them: topic, number, text."""
    return OffsetFetchResponse(error_code=code, topics=[
        OffsetFetchResponseTopic(name=topic, partitions=[OffsetFetchResponsePartition(
            partition_index=0, committed_offset=number, metadata=text, error_code=0)])
        for topic, number, text in marks])


def described(
    transaction: JointTransaction, held: dict[str, list[int]], state: str = "Ongoing", code: int = 0
) -> DescribeTransactionsResponse:
    """A transaction as its coordinator describes it."""
    return DescribeTransactionsResponse(transaction_states=[DescribedTransaction(
        error_code=code, transactional_id=transaction.transactional_id, transaction_state=state,
        transaction_timeout_ms=1, transaction_start_time_ms=1, producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=[TransactionTopic(topic=name, partitions=numbers) for name, numbers in held.items()])])


def committed(request: TxnOffsetCommitRequest, code: int = 0) -> TxnOffsetCommitResponse:
    """The answer to a mark."""
    return TxnOffsetCommitResponse(topics=[
        TxnOffsetCommitResponseTopic(name=topic.name, partitions=[
            TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions]) for topic in request.topics])
