"""Exactly-once micro-batches on real Kafka, without Spark: 4.4.0 speaks transactions version 2, 3.9.2 version 1.

The driver and the tasks are processes of their own, as with Spark; here some of them die where they should not.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import KafkaError, KafkaException
from headrace.spark.exactly_once import driver_transaction, task_transaction
from headrace.spark.exactly_once.batch_marker import BatchMarker
from headrace.spark.exactly_once.spark_task import TaskIdentity
from headrace.spark.exactly_once.task_report import BegunBatch, TaskReport
from headrace.spark.options import SinkOptions
from headrace.spark.sink import append_rows
from tests.support.configuration import GENERAL, OLDER, Configuration
from tests.support.real_kafka import make_topic, read_all, running, until
from tools.kafka import KafkaCluster

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

_QUICK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
_SPAWN = multiprocessing.get_context("spawn")
_ROWS = 4


@pytest.fixture(scope="module", params=[GENERAL, pytest.param(OLDER, marks=pytest.mark.slow)])
def site(request: pytest.FixtureRequest, configured: Configuration) -> Iterator[KafkaCluster]:
    """Brokers whose coordinators look every half second for transactions whose time is over."""
    yield from running(configured.cluster(request.param, properties=_QUICK))


class Query:
    """What Spark does with a sink: one topic of three partitions, two tasks, of which one writes to two of them."""

    def __init__(self, site: KafkaCluster, **options: str) -> None:
        self.site = site
        self.topic = make_topic(site, 3)
        connection = {f"kafka.{name}": str(value) for name, value in site.connection.items()}
        self.given = {**connection, "topic": self.topic, "delivery.guarantee": "exactly_once", "sinkId": self.topic,
                      **options}

    @property
    def options(self) -> SinkOptions:
        return SinkOptions.parse(self.given)

    def begin(self) -> BegunBatch:
        return driver_transaction.begin(self.options)

    def task(self, begun: BegunBatch, batch: int, number: int, **named: Any) -> TaskReport:
        return write(self.given, begun, batch, number, **named)

    def tasks(self, begun: BegunBatch, batch: int) -> list[TaskReport | None]:
        """Each in a process of its own."""
        with _SPAWN.Pool(2) as pool:
            return list(pool.starmap(write, [(self.given, begun, batch, number) for number in range(2)]))

    def run(self, batch: int) -> list[TaskReport | None]:
        begun = self.begin()
        reports: list[TaskReport | None] = [self.task(begun, batch, number) for number in range(2)]
        driver_transaction.commit(self.options, reports)
        return reports

    def holds(self, *batches: int) -> None:
        """The topic has the rows of these micro-batches, once, and in order in each partition."""
        expected = sorted(_value(batch, partition, row)
                          for batch in batches for partition in range(3) for row in range(_ROWS))
        found = read_all(self.site, self.topic, len(expected), **{"isolation.level": "read_committed"})
        assert sorted(message.value() for message in found) == expected
        for partition in range(3):
            inside = [message.value() for message in found if message.partition() == partition]
            assert inside == [_value(batch, partition, row) for batch in batches for row in range(_ROWS)]


def _value(batch: int, partition: int, row: int) -> bytes:
    return b"%03d-%d-%02d" % (batch, partition, row)


def write(
    given: dict[str, str], begun: BegunBatch, batch: int, number: int, attempt: int = 0, dies: bool = False
) -> TaskReport:
    """One task; `dies` has it end after its first partition as if it was killed."""
    options = SinkOptions.parse(given)
    out: list[Any] = []

    def batches() -> Iterator[Any]:
        for partition in ((0, 2) if number == 0 else (1,)):
            yield pyarrow.RecordBatch.from_pydict({
                "value": [_value(batch, partition, row) for row in range(_ROWS)],
                "partition": pyarrow.array([partition] * _ROWS, pyarrow.int32())})
            if dies:
                out[0].finish()
                os.kill(os.getpid(), signal.SIGKILL)

    def append(writer: Any, rows: Any) -> None:
        out.append(writer)
        append_rows(writer, rows, options)

    task = TaskIdentity(BatchMarker("query", batch), number, attempt, 10 * batch + number, False)
    return task_transaction.write(begun, task, options.client, batches(), append)


def begin_and_end(given: dict[str, str], reports: list[TaskReport], stop: str) -> None:
    """A driver's commit that is killed before or behind EndTxn."""
    options = SinkOptions.parse(given)
    work = reports[0]
    driver_transaction.mark(options, work, {key for each in reports for key in each.written})
    if stop == "behind":
        driver_transaction.end(options, work.begun)
    os.kill(os.getpid(), signal.SIGKILL)


def killed(target: Any, *arguments: Any) -> None:
    """Run something in a process that is killed."""
    process = _SPAWN.Process(target=target, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def test_tasks_in_other_processes_write_into_the_drivers_transaction(site: KafkaCluster) -> None:
    query = Query(site)
    begun = query.begin()
    reports = query.tasks(begun, 0)
    assert [each and {partition for _, partition in each.written} for each in reports] == [{0, 2}, {1}]
    driver_transaction.commit(query.options, reports)
    assert all(each is not None and each.skipped for each in query.run(0))
    query.run(1)
    query.holds(0, 1)


@pytest.mark.parametrize("stop", ["before", "behind"])
def test_a_driver_that_is_killed_around_the_end_leaves_each_row_once(site: KafkaCluster, stop: str) -> None:
    query = Query(site)
    begun = query.begin()
    killed(begin_and_end, query.given, [query.task(begun, 0, number) for number in range(2)], stop)
    again = query.run(0)
    assert [each is not None and each.skipped for each in again] == [stop == "behind"] * 2
    query.holds(0)


def test_a_task_that_is_killed_at_work_leaves_nothing_and_its_second_attempt_is_refused(site: KafkaCluster) -> None:
    query = Query(site)
    begun = query.begin()
    killed(write, query.given, begun, 0, 0, 0, True)
    other = query.task(begun, 0, 1)
    with pytest.raises(KafkaException, match="attempt 1 of task 0"):
        query.task(begun, 0, 0, attempt=1)
    with pytest.raises(KafkaException, match="has records of this transaction already"):
        query.task(begun, 0, 0)  # a stage that is tried again calls it attempt 0
    with pytest.raises(KafkaException, match="holds other partitions than were reported"):
        driver_transaction.commit(query.options, [other])
    driver_transaction.abort(query.options, begun)
    query.run(0)
    query.holds(0)


def test_a_replaced_driver_and_its_tasks_can_do_nothing_more(site: KafkaCluster) -> None:
    query = Query(site)
    old = query.begin()
    reports = [query.task(old, 0, 1)]
    new = query.begin()
    with pytest.raises(KafkaException):
        query.task(old, 0, 0)
    with pytest.raises(KafkaException):
        driver_transaction.commit(query.options, list(reports))
    again: list[TaskReport | None] = [query.task(new, 0, number) for number in range(2)]
    driver_transaction.abort(query.options, old)
    driver_transaction.commit(query.options, again)
    query.holds(0)


def test_a_commit_whose_answer_was_lost_is_found_by_its_marker(site: KafkaCluster) -> None:
    query = Query(site)
    begun = query.begin()
    reports: list[TaskReport | None] = [query.task(begun, 0, number) for number in range(2)]
    driver_transaction.commit(query.options, reports)
    driver_transaction.end(query.options, begun)  # as a client asks again that has no answer
    driver_transaction.abort(query.options, begun)  # as Spark does when commit() raises
    assert all(each is not None and each.skipped for each in query.run(0))
    query.holds(0)


def test_a_transaction_that_takes_too_long_is_written_again(site: KafkaCluster) -> None:
    query = Query(site, **{"kafka.transaction.timeout.ms": "4000"})
    begun = query.begin()
    reports: list[TaskReport | None] = [query.task(begun, 0, number) for number in range(2)]
    until(lambda: refused(query, reports), 30)
    driver_transaction.abort(query.options, begun)
    query.run(0)
    query.holds(0)


def refused(query: Query, reports: list[TaskReport | None]) -> bool:
    """Whether the coordinator has aborted by now; asks without ending anything."""
    work = reports[0]
    assert work is not None
    try:
        driver_transaction.mark(query.options, work, {key for each in reports if each for key in each.written})
    except KafkaException as failed:
        return failed.error.code() in (
            KafkaError.INVALID_TXN_STATE, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
    return False


def test_a_micro_batch_without_rows_ends_nothing_and_does_not_hinder_the_next(site: KafkaCluster) -> None:
    query = Query(site)
    begun = query.begin()
    empty = TaskReport(begun, BatchMarker("query", 0))
    driver_transaction.commit(query.options, [empty, empty])
    query.run(1)
    query.holds(1)


def test_a_batch_write_is_one_transaction(site: KafkaCluster) -> None:
    query = Query(site)
    begun = driver_transaction.begin_alone(query.options)
    reports: list[TaskReport | None] = [query.task(begun, 0, number) for number in range(2)]
    driver_transaction.commit(query.options, reports)
    query.holds(0)


def test_claims_in_a_topic_let_one_of_two_attempts_write(site: KafkaCluster) -> None:
    claims = f"claims-{make_topic(site, 1)}"
    query = Query(site, **{"exactlyOnce.claims": "topic", "exactlyOnce.claimsTopic": claims})
    query.run(0)
    begun = query.begin()
    killed(write, query.given, begun, 1, 1, 0, True)
    with pytest.raises(KafkaException, match="another attempt has claimed it"):
        query.task(begun, 1, 1)
    query.run(1)
    assert all(report is not None and report.skipped for report in query.run(1))
    query.holds(0, 1)
