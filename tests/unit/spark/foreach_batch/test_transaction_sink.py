"""What a micro-batch's writes do in their tasks, at an embedded broker and without Spark, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa
from pyspark.sql.types import IntegerType, StringType, StructType

from headrace.errors import ConfigError, KafkaException
from headrace.frames.topic_reading import read_topic
from headrace.spark.exactly_once import driver_transaction, spark_task
from headrace.spark.exactly_once.batch_marker import BatchMarker
from headrace.spark.exactly_once.spark_task import TaskIdentity
from headrace.spark.exactly_once.task_report import BegunBatch, TaskReport
from headrace.spark.foreach_batch import transaction_sink
from headrace.spark.foreach_batch.claims import ClaimsServer
from headrace.spark.foreach_batch.transaction_sink import TransactionSink
from headrace.spark.options import SinkOptions
from headrace.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


class Writes:
    """The writes of one micro-batch, task by task."""

    def __init__(self, broker: EmbeddedBroker, server: ClaimsServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topic = f"writes-{uuid4().hex[:8]}"
        broker.create_topic(self.topic, 2)
        self.servers, self.server, self._monkeypatch = broker.bootstrap_servers, server, monkeypatch
        self.options = SinkOptions.parse({
            "kafka.bootstrap.servers": self.servers, "topic": self.topic, "delivery.guarantee": "exactly_once",
            "sinkId": self.topic})
        self.begun = driver_transaction.begin(self.options)
        self.written: dict[tuple[str, int], int] = {}

    def task(self, write: int, partition: int, values: list[str], attempt_id: int, speculative: bool = False) -> Any:
        task = TaskIdentity(BatchMarker("q", 0), partition, 0, attempt_id, speculative)
        self._monkeypatch.setattr(spark_task, "task_identity", lambda: task)
        begun = BegunBatch(self.begun.transaction)
        work = transaction_sink._Work(self.options, begun, self.server.claims, write, dict(self.written))
        rows = [{"value": value, "partition": partition} for value in values]
        kind = pa.struct([("value", pa.string()), ("partition", pa.int32())])
        batches = [pa.array(rows[:2], kind), pa.array(rows[2:], kind)]
        return transaction_sink._writing(work)(iter(batches))

    def run(self, write: int, partition: int, values: list[str], attempt_id: int) -> list[bool]:
        return [each for batch in self.task(write, partition, values, attempt_id) for each in batch.to_pylist()]

    def ended(self) -> list[str]:
        report = TaskReport(self.begun, BatchMarker("q", 0), False, self.written)
        driver_transaction.commit(self.options, [report])
        found = read_topic(self.topic, {"bootstrap.servers": self.servers}, columns=["value"], format="arrow")
        return [value.decode() for value in found.column("value").to_pylist()]


@pytest.fixture
def writes(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writes]:
    with ClaimsServer("127.0.0.1") as server:
        yield Writes(broker, server, monkeypatch)


def test_each_write_tells_the_driver_what_its_tasks_have_written_and_goes_on_where_the_one_before_ended(
    writes: Writes
) -> None:
    assert writes.run(0, 1, ["a", "b", "c"], attempt_id=5) == [True, True, True]
    assert writes.server.reports(0) == [{(writes.topic, 1): 3}]
    writes.written = {(writes.topic, 1): 3}
    assert writes.run(1, 1, ["d"], attempt_id=6) == [True]
    assert writes.server.reports(1) == [{(writes.topic, 1): 1}]
    writes.written = {(writes.topic, 1): 4}
    assert writes.ended() == ["a", "b", "c", "d"]


def test_a_second_attempt_of_a_task_is_refused_before_it_writes_a_row(writes: Writes) -> None:
    next(writes.task(0, 1, ["a", "b", "c"], attempt_id=5))  # and no more is heard of it
    with pytest.raises(KafkaException, match="task 1 may not write: another attempt may have written some"):
        writes.run(0, 1, ["a", "b", "c"], attempt_id=6)
    with pytest.raises(KafkaException, match=r"tasks \[1\] have not reported what they wrote"):
        writes.server.reports(0)


def test_tasks_that_spark_may_run_twice_at_once_write_nothing(writes: Writes) -> None:
    with pytest.raises(ConfigError, match=r"spark\.speculation=false"):
        next(writes.task(0, 1, ["a"], attempt_id=5, speculative=True))
    assert writes.server.reports(0) == []


def test_a_write_that_failed_is_remembered_whatever_the_handler_makes_of_it_and_a_mistake_is_none(
    writes: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(transaction_sink.F, "arrow_udf", failing)
    sink = TransactionSink(writes.options, writes.begun, writes.server)
    frame: Any = SimpleNamespace(schema=StructType().add("value", IntegerType()))
    with pytest.raises(ConfigError, match="column value must be binary or string"):
        sink.write(frame)
    assert not sink.failed
    frame.schema = StructType().add("value", StringType())
    with pytest.raises(KeyboardInterrupt):
        sink.write(frame)
    assert sink.failed


def test_writes_are_numbered_and_added_up_and_two_tasks_of_one_partition_are_refused(
    writes: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {0: [{("t", 0): 3}, {("t", 1): 2}], 1: [{("t", 0): 4}], 2: [{("t", 0): 1}, {("t", 0): 1}]}
    asked: list[transaction_sink._Work] = []
    job = SimpleNamespace(save=lambda: None)
    rows = SimpleNamespace(columns=["value"], select=lambda _: SimpleNamespace(write=SimpleNamespace(
        format=lambda _: SimpleNamespace(mode=lambda _: job))))
    column = SimpleNamespace(alias=lambda _: None)
    monkeypatch.setattr(transaction_sink, "_writing", asked.append)
    monkeypatch.setattr(transaction_sink, "arranged", lambda *_: rows)
    monkeypatch.setattr(transaction_sink.F, "struct", lambda *_: None)
    monkeypatch.setattr(transaction_sink.F, "arrow_udf", lambda *_: SimpleNamespace(
        asNondeterministic=lambda: lambda _: column))
    monkeypatch.setattr(writes.server, "reports", told.__getitem__)
    sink = TransactionSink(writes.options, writes.begun, writes.server)
    frame: Any = SimpleNamespace(schema=StructType().add("value", StringType()))
    assert [sink.write(frame), sink.write(frame, "other")] == [5, 4]
    assert sink.written == {("t", 0): 7, ("t", 1): 2}
    assert [(work.number, work.options.topic, work.before) for work in asked] == [
        (0, writes.topic, {}), (1, "other", {("t", 0): 3, ("t", 1): 2})]
    with pytest.raises(KafkaException, match=r"tasks 0 and 1 have both written t\[0\]"):
        sink.write(frame)
    assert sink.failed
