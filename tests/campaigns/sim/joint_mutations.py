"""The rules of joint transactions, each broken: the simulation of micro-batches has to notice."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import KafkaException
from headrace.machines.cluster.coordinator import GROUP, TRANSACTION
from headrace.machines.joint import owner_steps
from headrace.machines.joint.conversation import Ask
from headrace.machines.joint.joined_transaction import JoinedTransaction
from headrace.machines.joint.joint_transaction import CommittedMark, JointTransaction
from headrace.machines.producer.transaction_requests import TransactionalIdentity
from headrace.spark.exactly_once import claims_topic, task_report, task_transaction
from headrace.spark.exactly_once.batch_marker import BatchVerdict
from headrace.wire.messages.consumer.offsets import OffsetFetchRequest

from .joint_transactions import run_schedule
from .mutation import Rules

JOINT_RULES = Rules()
broken = JOINT_RULES.broken


@broken("Joint: a micro-batch that is in the topics is skipped", run_schedule, 300, "committed twice")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(task_transaction, "verdict", lambda last, wanted: BatchVerdict.WRITE)


@broken("Joint: only the micro-batch that the marker names is skipped", run_schedule, 300, "missing")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(task_transaction, "verdict",
                  lambda last, wanted: BatchVerdict.WRITE if last is None else BatchVerdict.SKIP)


@broken("Joint: the marker is part of the transaction", run_schedule, 300, "committed twice")
def _(patch: pytest.MonkeyPatch) -> None:
    def nothing(*given: Any) -> Any:
        return
        yield

    patch.setattr(owner_steps, "mark", nothing)


@broken("Joint: the marker is asked for behind the epoch", run_schedule, 2000, "committed twice")
def _(patch: pytest.MonkeyPatch) -> None:
    def hasty(name: str, timeout_ms: int, features: Any, *, group: str) -> Any:
        question = OffsetFetchRequest(group_id=group, topics=None, require_stable=False)
        fetched = yield Ask(GROUP, group, question, lambda reply: [reply.error_code], 7)
        taken = yield Ask(TRANSACTION, name, TransactionalIdentity(name).initialise(timeout_ms),
                          lambda reply: [reply.error_code])
        version = 2 if features().get("transaction.version", 0) >= 2 else 1
        marks = [CommittedMark(part.committed_offset, part.metadata or "")
                 for topic in fetched.topics for part in topic.partitions if part.committed_offset >= 0]
        return JointTransaction(name, taken.producer_id, taken.producer_epoch, version), max(marks, default=None)

    patch.setattr(owner_steps, "begin", hasty)


@broken("Joint: a transaction with what nobody reported is not committed", run_schedule, 6000, "committed twice")
def _(patch: pytest.MonkeyPatch) -> None:
    def careless(transaction: JointTransaction, written: Any) -> Any:
        return
        yield

    patch.setattr(owner_steps, "check", careless)


@broken("Joint: a partition that has records of the transaction is not claimed", run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JoinedTransaction, "_is_ours", lambda self, known: False)


@broken("Joint: a second attempt writes nothing", run_schedule, 700)
def _(patch: pytest.MonkeyPatch) -> None:
    """What is left are the claim and the check of the owner: without all three rows are doubled."""
    patch.setattr(task_transaction, "check_attempt", lambda task: None)
    patch.setattr(JoinedTransaction, "_is_ours", lambda self, known: False)


@broken("Joint: each partition has one task", run_schedule, 700)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JoinedTransaction, "_is_ours", lambda self, known: False)
    patch.setattr(task_report, "written_partitions", lambda reports: {
        key for each in reports for key in each.written})


@broken("Joint: with version 1 the coordinator learns of each partition", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    add = JoinedTransaction._add

    def silent(self: JoinedTransaction, now: float) -> Any:
        self._added |= self._wanted.keys()
        return add(self, now)

    patch.setattr(JoinedTransaction, "_add", silent)


@broken("Joint: a commit that was refused is no commit", run_schedule, 700, "missing")
def _(patch: pytest.MonkeyPatch) -> None:
    end = owner_steps.end

    def hopeful(transaction: JointTransaction) -> Any:
        try:
            yield from end(transaction)
        except KafkaException:
            return

    patch.setattr(owner_steps, "end", hopeful)


@broken("Joint: who was replaced takes nothing over when it aborts", run_schedule, 700)
def _(patch: pytest.MonkeyPatch) -> None:
    def rude(transaction: JointTransaction, timeout_ms: int) -> Any:
        identity = TransactionalIdentity(transaction.transactional_id, transaction.producer_id, transaction.epoch)
        yield Ask(TRANSACTION, transaction.transactional_id, identity.initialise(timeout_ms),
                  lambda reply: [reply.error_code])

    patch.setattr(owner_steps, "abort", rude)


@broken("Joint: all tasks have reported", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    common = task_report.common_work
    patch.setattr(task_report, "common_work", lambda reports: common(list(reports)[:1]))
    patch.setattr(task_report, "written_partitions", lambda reports: set(next(iter(reports)).written))


__all__ = ["JOINT_RULES"]


@broken("Joint: of the claims in a topic the first one has the work", run_schedule, 30000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claims_topic, "check_first", lambda claims, work, own: None)
