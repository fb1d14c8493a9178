"""The torn transactions of Jepsen's report on Bufstream 0.1.0 (2024; Kafka: KAFKA-17754), with this project's machines.

The protocol leaves requests of one producer without an order: they go over several connections and are sent again. One
that is delayed, EndTxn above all, then ends half of the next transaction, if that has the same epoch: what was aborted
is read, or what was committed is lost. With version 1 the producer asks for a new epoch after everything uncertain
(decision 0007); with version 2 each transaction has an epoch of its own (KIP-890). Each schedule is run with the rule,
and without it, where it tears.
"""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.machine import Machine, Send
from headrace.machines.producer import transactions
from headrace.machines.producer.transactions import Operation, Transactions, TxnState
from headrace.wire.messages.producer.produce import ProduceRequest
from headrace.wire.messages.producer.transactions import EndTxnRequest

from .transactional_producer import Producer, Step, Txn
from .transactional_replies import NEWEST, answer
from .transactions import Simulation

COMMIT, ABORT = Operation.COMMIT, Operation.ABORT
FIRST, HALF, REST = 0, 1, 2  # records: one of the first transaction, two of the second


class Author(Producer):
    """Writes a transaction and ends it, then another in two steps; between these the delayed request arrives."""

    def __init__(self, sim: Story) -> None:
        self.story = sim
        super().__init__(sim, 0, last=True)

    def _run(self) -> Step:
        first, second = Txn(), Txn()
        yield from self._do(Operation.INIT)
        self.machine.open()
        yield from self._write(first, 0)
        yield from self._do(self.story.ends[0])
        self.machine.open()
        if self.story.delayed is ProduceRequest:  # before there is anything of the second one in the partition
            self.machine.admits("t", 0)
            yield 1.0
            self.story.release()
        yield from self._write(second, 0)
        if self.story.delayed is EndTxnRequest:
            self.story.release()
        yield 1.0
        yield from self._write(second, 1)
        yield from self._do(self.story.ends[1])

    def _write(self, txn: Txn, partition: int) -> Any:
        record = self.sim.new_record()
        txn.records[record] = partition
        self.buffer.append(partition, record, self.sim.now)
        yield lambda: record in self.reports


class Story(Simulation):
    """One producer, a cluster without any trouble but that one request is delayed for long.

    Args:
        version: of the transactions.
        delayed: the first request of this kind is.
        ends: how the application ends the first and the second transaction.
    """

    def __init__(self, version: int, delayed: type, ends: tuple[Operation, Operation]) -> None:
        self.version, self.delayed, self.ends = version, delayed, ends
        self.held: tuple[int, Producer, Send] | None = None
        super().__init__(1)

    def _trouble(self) -> None:
        self.faults, self.bounded, self.forgetful = 0.0, False, False
        self.level, self.newest, self.request_timeout_s = (2 if self.version == 2 else 0), NEWEST, 0.2
        self.heal_at = self.now
        self.cluster.timeout_s, self.partitions = 60.0, 2
        self.cluster.partitions.setdefault(("t", 1), type(self.cluster.partitions["t", 0])(1))

    def _start(self) -> None:
        author = Author(self)
        author.batch_queues.message_timeout_s = 0.5 if self.delayed is ProduceRequest else 60.0
        self.producers = [author]

    def _transmit(self, producer: Producer, machine: Machine, send: Send) -> None:
        again = self.delayed is ProduceRequest and len(producer.reports) == 0  # no attempt for the record gets through
        if type(send.request) is self.delayed and (self.held is None or again):
            self.held = self.held or (send.destination, producer, send)
            self.at(send.timeout_s, lambda: machine.on_error(
                send, K(K._TIMED_OUT, "no answer", maybe_applied=True), self.now))
        else:
            super()._transmit(producer, machine, send)

    def release(self) -> None:
        """The delayed request arrives, and nobody waits for the answer."""
        assert self.held is not None
        node, producer, send = self.held
        answer(self, producer, node, send, late=True)

    def read(self) -> set[int]:
        """What a reader of committed records sees when all is over."""
        self._loop()
        return {record for partition in self.cluster.partitions.values() for record in partition.committed()}


STORIES = {
    "a late commit, then an abort": (EndTxnRequest, (COMMIT, ABORT), {FIRST}, {FIRST, HALF}),
    "a late abort, then a commit": (EndTxnRequest, (ABORT, COMMIT), {HALF, REST}, {REST}),
    "a late record of an aborted transaction, then a commit": (
        ProduceRequest, (ABORT, COMMIT), {HALF, REST}, {FIRST, HALF, REST}),
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("story", STORIES)
def test_the_torn_transaction_of_jepsens_report_stays_whole(story, version):
    delayed, ends, whole, _ = STORIES[story]
    assert Story(version, delayed, ends).read() == whole


def without_new_epochs(self: Transactions) -> None:
    """A client that does not mind what was uncertain, as all were before KIP-890."""
    self._finish(COMMIT if self.state is TxnState.COMMITTING else ABORT)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("story", STORIES)
def test_without_a_new_epoch_the_torn_transaction_of_jepsens_report_tears(monkeypatch, story, version):
    delayed, ends, _, torn = STORIES[story]
    monkeypatch.setattr(Transactions, "_ended", without_new_epochs)
    # With version 2 the coordinator gives an epoch with each end: a client that asks as before gets none.
    monkeypatch.setitem(transactions.LAST_VERSIONS, EndTxnRequest, (4, 4))
    assert Story(version, delayed, ends).read() == torn


@pytest.mark.parametrize("version", [1, 2])
def test_the_late_request_is_of_an_epoch_before(version):
    story = Story(version, EndTxnRequest, (COMMIT, COMMIT))
    assert story.read() == {FIRST, HALF, REST}
    _, producer, send = story.held
    assert send.request.producer_epoch < producer.machine.epoch
