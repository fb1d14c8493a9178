"""Rules of the brokers that the schedules need, each broken in the models."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import KafkaError as K

from . import model_broker, model_transactions, produce, read_process_write, transactional_replies, transactions
from .model_broker import ModelCluster
from .model_transactions import ModelPartition, ModelTransactions, Phase
from .mutation import Rules

BROKER_RULES = Rules()
broken = BROKER_RULES.broken


@broken("Broker: the last five batches are recognised", produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(model_broker, "_WINDOW", 2)


def _judge(patch: pytest.MonkeyPatch, refusal: int) -> None:
    """Take what would be refused with this error."""
    judge = ModelCluster.judge

    def lenient(self: ModelCluster, *numbers: int) -> tuple[int, int]:
        code, offset = judge(self, *numbers)
        return (0 if code == refusal else code), offset

    patch.setattr(ModelCluster, "judge", lenient)


@broken("Broker: no sequence may be left out", produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    _judge(patch, K.OUT_OF_ORDER_SEQUENCE_NUMBER)


@broken("Broker: nothing of an epoch before is taken", produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    _judge(patch, K.INVALID_PRODUCER_EPOCH)


@broken("Broker: a topic id stands for one topic", produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    made = ModelCluster._make

    def anonymous(self: ModelCluster, partitions: int) -> None:
        self._topics = 0
        made(self, partitions)

    patch.setattr(ModelCluster, "_make", anonymous)


@broken("Leader: nothing of an epoch before is taken", transactions.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    append = ModelPartition.append

    def lenient(self: ModelPartition, producer_id: int, epoch: int, sequence: int, payload: Any) -> tuple[int, int]:
        known = self._epochs.get(producer_id, -1)
        if epoch < known:
            self._epochs[producer_id] = epoch
        return append(self, producer_id, epoch, sequence, payload)

    patch.setattr(ModelPartition, "append", lenient)
    patch.setattr(ModelTransactions, "verify", lambda self, producer_id, epoch, key: 0)


@broken("Leader: the coordinator is asked whether a transaction is open", transactions.run_schedule, 4000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ModelTransactions, "verify", lambda self, producer_id, epoch, key: 0)


def _ignore_epoch(patch: pytest.MonkeyPatch, method: str) -> None:
    original = getattr(ModelTransactions, method)

    def lenient(self: ModelTransactions, producer_id: int, epoch: int, *rest: Any) -> Any:
        return original(self, producer_id, self.transaction.epoch, *rest)

    patch.setattr(ModelTransactions, method, lenient)


@broken("Coordinator: EndTxn of an epoch before is refused, version 1", transactions.run_schedule, 4000)
def _(patch: pytest.MonkeyPatch) -> None:
    _ignore_epoch(patch, "_end_1")


@broken("Coordinator: EndTxn of an epoch before is refused, version 2", transactions.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    _ignore_epoch(patch, "_end_2")


@broken("Coordinator: partitions of an epoch before are refused", transactions.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    _ignore_epoch(patch, "add")


@broken("Coordinator: whoever takes over gets a new epoch", transactions.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    init = ModelTransactions.init

    def same_epoch(self: ModelTransactions, producer_id: int, epoch: int) -> int:
        before = self.transaction.epoch
        code = init(self, producer_id, epoch)
        if not code and epoch < 0 and before >= 0:
            self.transaction.epoch = before
        return code

    patch.setattr(ModelTransactions, "init", same_epoch)


@broken("Coordinator: what is open is aborted when somebody takes over", transactions.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    init = ModelTransactions.init

    def leave_open(self: ModelTransactions, producer_id: int, epoch: int) -> int:
        if self.transaction.phase is Phase.ONGOING:
            self.transaction.phase = Phase.EMPTY
        return init(self, producer_id, epoch)

    patch.setattr(ModelTransactions, "init", leave_open)


@broken("Coordinator: with version 2 each transaction has an epoch of its own", transactions.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    prepare = ModelTransactions._prepare
    patch.setattr(ModelTransactions, "_prepare", lambda self, commit, bump: prepare(self, commit, bump=False))


@broken("Coordinator: the next transaction waits for the markers", transactions.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    add = ModelTransactions.add

    def at_once(self: ModelTransactions, producer_id: int, epoch: int, keys: Any) -> int:
        if self.transaction.phase in model_transactions._PREPARE and self.transaction.epoch == epoch:
            self.transaction.phase = Phase.EMPTY
        return add(self, producer_id, epoch, keys)

    patch.setattr(ModelTransactions, "add", at_once)


@broken("Group: offsets of a member that was replaced are refused", read_process_write.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    answer = transactional_replies._commit_offsets

    def any_member(sim: Any, node: int, request: Any, version: int) -> Any:
        request.generation_id_or_member_epoch = -1
        return answer(sim, node, request, version)

    patch.setattr(transactional_replies, "_commit_offsets", any_member)
