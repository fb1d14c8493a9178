"""A transaction machine driven by hand, for its tests: a clock, and coordinators that answer as told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import KafkaError as K
from headrace.machines.cluster.coordinator import GROUP, TRANSACTION, CoordinatorFinder
from headrace.machines.machine import Send
from headrace.machines.producer.transactions import (
    ConsumerGroupMetadata,
    Operation,
    OperationDone,
    Transactions,
)
from headrace.wire.messages.producer.produce import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

LOST = K(K._TRANSPORT, "cut", maybe_applied=True)
COORDINATOR, GROUP_COORDINATOR = 1, 2
MEMBER = ConsumerGroupMetadata("g", 5, "member", "instance")


class Finder(CoordinatorFinder):
    """Has found its coordinator already."""

    def __init__(self, kind: int, node_id: int) -> None:
        super().__init__(kind, "key")
        self.found = self.node_id = node_id
        self.lost = 0

    def invalidate(self, now: float) -> None:
        self.lost += 1


class Driven:
    """A machine with a clock, a coordinator that answers by hand, and work that is done when the test says so."""

    def __init__(self, version: int = 1) -> None:
        self.features: Mapping[str, int] = {"transaction.version": version}
        self.finder = Finder(TRANSACTION, COORDINATOR)
        self.group_finders: dict[str, Finder] = {}
        self.machine = Transactions(
            "x", 60_000, self.finder, self._group_finder, lambda: self.features, 30.0, lambda attempt: 0.1 * 2**attempt)
        self.machine.work = self
        self.busy = False
        self.now = 0.0

    def _group_finder(self, group_id: str) -> Finder:
        return self.group_finders.setdefault(group_id, Finder(GROUP, GROUP_COORDINATOR))

    def unresolved(self) -> bool:
        return self.busy

    # Input

    def sent(self, of: type | None = None) -> Send | None:
        """What the machine sends by now, at most one request."""
        found = list(self.machine.poll(self.now))
        assert len(found) <= 1
        assert of is None or isinstance(found[0].request, of)
        return found[0] if found else None

    def expect(self, of: type) -> Send:
        send = self.sent(of)
        assert send is not None
        return send

    def refuse(self, send: Send, code: int) -> None:
        self.machine.on_reply(send, reply_to(send.request, code), self.now)

    def accept(self, send: Send, producer_id: int = -1, epoch: int = -1) -> None:
        self.machine.on_reply(send, reply_to(send.request, 0, producer_id, epoch), self.now)

    def lose(self, send: Send, error: K = LOST) -> None:
        self.machine.on_error(send, error, self.now)

    def wait(self) -> None:
        deadline = self.machine.deadline()
        assert deadline is not None
        assert deadline > self.now
        self.now = deadline

    # Shortcuts

    def done(self) -> dict[Operation, K | None]:
        return {e.operation: e.error for e in self.machine.events() if isinstance(e, OperationDone)}

    def initialised(self) -> Driven:
        assert self.machine.begin(Operation.INIT) is None
        self.accept(self.expect(InitProducerIdRequest), 7, 0)
        assert self.done() == {Operation.INIT: None}
        return self

    def opened(self) -> Driven:
        assert self.machine.open() is None
        return self

    def writing(self, partition: int = 0) -> Driven:
        """A record is stored in a partition of the open transaction."""
        if not self.machine.admits("t", partition):
            self.accept(self.expect(AddPartitionsToTxnRequest))
            assert self.machine.admits("t", partition)
        self.machine.on_batch_stored()
        return self

    def ending(self, operation: Operation) -> Send:
        assert self.machine.begin(operation) is None
        return self.expect(EndTxnRequest)

    def end(self, operation: Operation) -> None:
        two = self.machine.version == 2
        send = self.ending(operation)
        self.accept(send, 7 if two else -1, send.request.producer_epoch + 1 if two else -1)
        assert self.done() == {operation: None}


def reply_to(request: Any, code: int, producer_id: int = -1, epoch: int = -1) -> Any:
    if isinstance(request, InitProducerIdRequest):
        return InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)
    if isinstance(request, AddOffsetsToTxnRequest):
        return AddOffsetsToTxnResponse(error_code=code)
    if isinstance(request, EndTxnRequest):
        return EndTxnResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)
    if isinstance(request, AddPartitionsToTxnRequest):
        return partitions_reply({(topic.name, index): code
                                 for topic in request.v3_and_below_topics for index in topic.partitions})
    return offsets_reply({(topic.name, part.partition_index): code
                          for topic in request.topics for part in topic.partitions})


def partitions_reply(codes: dict[tuple[str, int], int]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[
        AddPartitionsToTxnTopicResult(name=topic, results_by_partition=[
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)])
        for (topic, index), code in codes.items()])


def offsets_reply(codes: dict[tuple[str, int], int]) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=[
        TxnOffsetCommitResponseTopic(name=topic, partitions=[
            TxnOffsetCommitResponsePartition(partition_index=index, error_code=code)])
        for (topic, index), code in codes.items()])
