"""What a task learns from Spark, told by a stand-in."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from headrace.spark.exactly_once import spark_task
from headrace.spark.exactly_once.batch_marker import BatchMarker
from headrace.spark.exactly_once.spark_task import TaskIdentity, task_identity

STREAM = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "7"}


@pytest.mark.parametrize(("properties", "batch", "speculative"), [
    (STREAM, BatchMarker("q", 7), False), ({**STREAM, "streaming.sql.batchId": "0"}, BatchMarker("q", 0), False),
    ({}, None, False), ({"sql.streaming.queryId": "q"}, None, False), ({"streaming.sql.batchId": "7"}, None, False),
    ({**STREAM, "spark.speculation": "True"}, BatchMarker("q", 7), True),
    ({"spark.speculation": "true"}, None, True), ({"spark.speculation": "false"}, None, False),
])
def test_a_task_knows_its_micro_batch_its_attempt_and_whether_it_may_run_twice_at_once(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], batch: BatchMarker | None, speculative: bool
) -> None:
    context = SimpleNamespace(getLocalProperty=properties.get, partitionId=lambda: 3, attemptNumber=lambda: 1,
                              taskAttemptId=lambda: 40)
    monkeypatch.setattr(spark_task, "TaskContext", SimpleNamespace(get=lambda: context))
    assert task_identity() == TaskIdentity(batch, 3, 1, 40, speculative)
