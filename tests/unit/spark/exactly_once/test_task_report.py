"""Which reports together may be committed."""

import pickle

import pytest

from headrace import KafkaError, KafkaException
from headrace.client.joint.transaction_owner import JointTransaction
from headrace.spark.exactly_once.batch_marker import BatchMarker
from headrace.spark.exactly_once.task_report import BegunBatch, TaskReport, common_work, written_partitions

BEGUN = BegunBatch(JointTransaction("x", 7, 3, 2), None, "x")
BATCH = BatchMarker("q", 5)


def report(**changes):
    return TaskReport(**{"begun": BEGUN, "batch": BATCH, **changes})


def refused(call, *arguments):
    with pytest.raises(KafkaException) as raised:
        call(*arguments)
    assert raised.value.error == KafkaError._INCONSISTENT
    return raised.value.error.str()


def test_reports_of_the_same_work_have_it_in_common():
    assert common_work([report(written={("t", 0): 1}), report()]).batch == BATCH
    assert common_work([]) is None


def test_a_task_that_has_not_reported_is_missed():
    assert "a task has not reported" in refused(common_work, [report(), None])
    assert "a task has not reported" in refused(common_work, [None])


@pytest.mark.parametrize("other", [
    {"begun": BegunBatch(JointTransaction("x", 7, 4, 2), None, "x")}, {"batch": BatchMarker("q", 6)},
    {"batch": None}, {"skipped": True}])
def test_tasks_that_did_other_work_are_found(other):
    assert "tasks worked for micro-batch 5 of q under epoch 3 of producer 7 and for" in refused(
        common_work, [report(), report(**other)])


def test_each_partition_has_one_task():
    reports = [report(written={("t", 0): 1, ("t", 1): 2}), report(written={("u", 0): 1}), report()]
    assert written_partitions(reports) == {("t", 0), ("t", 1), ("u", 0)}
    again = [*reports, report(written={("t", 1): 2})]
    assert "tasks 0 and 3 have both written t[1]" in refused(written_partitions, again)


def test_a_report_travels_to_the_driver():
    sent = report(written={("t", 0): 1})
    assert pickle.loads(pickle.dumps(sent)) == sent
