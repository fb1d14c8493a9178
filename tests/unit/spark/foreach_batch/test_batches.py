"""Micro-batches as transactions: what is begun, tried again, skipped, committed and aborted."""

from __future__ import annotations

import traceback
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException, PySparkException

from headrace.client.joint.transaction_owner import CommittedMark, JointTransaction
from headrace.errors import ConfigError, KafkaError, KafkaException, SchemaRegistryError
from headrace.spark.exactly_once.batch_marker import BatchMarker
from headrace.spark.exactly_once.task_report import BegunBatch
from headrace.spark.foreach_batch import batches
from headrace.spark.foreach_batch.batches import TransactionalBatches, TransactionalOptions

GIVEN = {"kafka.bootstrap.servers": "b:9092", "sinkId": "s"}
JOB_FAILED = PySparkException("a task failed")
SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT, "no broker answers"))
LOST = KafkaException(KafkaError(KafkaError.NOT_COORDINATOR, "nobody knows"))


class Kafka:
    """Stands for the coordinator: what is asked of it, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.marked: BatchMarker | None = None
        self._mark: BatchMarker | None = None
        self.epoch = 0
        self.active = True
        self.failures: list[Exception | None] = []
        self.silences = 0
        for name in ("begin", "mark", "commit_offsets", "end", "abort"):
            monkeypatch.setattr(batches.driver_transaction, name, getattr(self, name))
        monkeypatch.setattr(batches, "StreamOfBatch", lambda frame: SimpleNamespace(
            query_id="q", is_active=self.active, end_offsets=lambda batch: {("in", 0): 10 * batch},
            digest=lambda batch: f"up to {10 * batch}", stopped_text="stopped amid {}: {}".format))
        settings = SimpleNamespace(get=lambda name: "127.0.0.1")
        context = SimpleNamespace(getConf=lambda: settings)
        self.frame = SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))

    def begin(self, options):
        self.calls.append("begin")
        if self.silences:
            self.silences -= 1
            raise SILENT
        self.epoch += 1
        last = None if self.marked is None else CommittedMark(7, self.marked.text())
        return BegunBatch(JointTransaction("s", 1, self.epoch, 2), last, "s")

    def mark(self, options, report, written):
        self.calls.append(f"mark {sorted(written)}")
        self._mark = report.batch

    def commit_offsets(self, options, begun, group, offsets):
        self.calls.append(f"offsets of {group}: {offsets}")

    def end(self, options, begun):
        failure = self.failures.pop(0) if self.failures else None
        self.calls.append("end")
        if failure is not LOST and failure is not None:
            raise failure
        self.marked, self._mark = self._mark or self.marked, None
        if failure is LOST:
            raise LOST

    def abort(self, options, begun):
        self.calls.append(f"abort {begun.transaction.epoch}")


@pytest.fixture
def kafka(monkeypatch):
    return Kafka(monkeypatch)


def run(kafka, handler, batch=3, **options):
    waits: list[float] = []
    TransactionalBatches(TransactionalOptions.parse({**GIVEN, **options}), handler, waits.append)(kafka.frame, batch)
    return waits


def writes(frame, batch, sink):
    sink.written["out", 0] = 5


def failing(*errors):
    left = list(errors)

    def handler(frame, batch, sink):
        if left:
            raise left.pop(0)
        sink.written["out", 0] = 5

    return handler


def test_records_marker_and_offsets_are_committed_together(kafka):
    assert run(kafka, writes, groupId="g") == []
    assert kafka.calls == ["begin", "mark [('out', 0)]", "offsets of g: {('in', 0): 30}", "end"]


def test_what_the_handler_commits_for_its_own_groups_goes_along(kafka):
    run(kafka, lambda frame, batch, sink: sink.commit_offsets("own", {("in", 2): 8}))
    assert kafka.calls == ["begin", "offsets of own: {('in', 2): 8}", "end"]


def test_a_micro_batch_without_records_or_offsets_ends_nothing(kafka):
    run(kafka, lambda frame, batch, sink: None)
    assert kafka.calls == ["begin"]


def test_a_micro_batch_that_is_in_the_topics_is_skipped(kafka):
    kafka.marked = BatchMarker("q", 3)
    run(kafka, failing(AssertionError("the handler is not called")))
    assert kafka.calls == ["begin"]


@pytest.mark.parametrize("marked", [BatchMarker("q", 4), BatchMarker("q", 3, offsets="up to 25")])
def test_an_old_checkpoint_is_refused_and_not_tried_again(kafka, marked):
    kafka.marked = marked
    with pytest.raises(KafkaException, match="the checkpoint was taken back"):
        run(kafka, writes)
    assert kafka.calls == ["begin"]


def test_a_micro_batch_is_marked_with_what_it_reads_and_known_by_it(kafka):
    run(kafka, writes)
    assert kafka.marked == BatchMarker("q", 3, offsets="up to 30")
    run(kafka, failing(AssertionError("the handler is not called")))


def test_a_failed_job_is_aborted_and_tried_again_with_a_new_epoch(kafka):
    assert run(kafka, failing(JOB_FAILED, JOB_FAILED)) == [1.0, 2.0]
    assert kafka.calls == ["begin", "abort 1", "begin", "abort 2", "begin", "mark [('out', 0)]", "end"]


def test_a_registry_that_does_not_answer_is_asked_again_by_the_next_attempt(kafka):
    assert run(kafka, failing(SchemaRegistryError(-1, -1, "the registry does not answer"))) == [1.0]
    assert kafka.calls == ["begin", "abort 1", "begin", "mark [('out', 0)]", "end"]


def test_brokers_that_do_not_answer_when_the_transaction_begins_are_asked_again_by_the_next_attempt(kafka):
    kafka.silences = 2
    assert run(kafka, writes) == [1.0, 2.0]
    assert kafka.calls == ["begin", "begin", "begin", "mark [('out', 0)]", "end"]


def test_the_query_fails_when_no_attempt_can_begin(kafka):
    kafka.silences = 9
    with pytest.raises(KafkaException, match="no broker answers"):
        run(kafka, writes, maxAttempts="2")
    assert kafka.calls == ["begin", "begin"]


def test_the_query_fails_when_all_attempts_have_failed(kafka):
    with pytest.raises(PySparkException):
        run(kafka, failing(*[JOB_FAILED] * 5), maxAttempts="2")
    assert kafka.calls == ["begin", "abort 1", "begin", "abort 2"]


def test_a_commit_of_which_nobody_knows_is_found_by_its_marker_and_not_written_again(kafka):
    kafka.failures = [LOST]
    assert run(kafka, writes) == [1.0]
    assert kafka.calls == ["begin", "mark [('out', 0)]", "end", "abort 1", "begin"]


def test_a_commit_that_was_refused_is_written_again(kafka):
    kafka.failures = [KafkaException(KafkaError(KafkaError.PRODUCER_FENCED))]
    run(kafka, writes)
    assert kafka.calls == ["begin", "mark [('out', 0)]", "end", "abort 1", "begin", "mark [('out', 0)]", "end"]


@pytest.mark.parametrize("mistake", [ConfigError("no such column"), AnalysisException("no such column"), ValueError()])
def test_a_mistake_is_aborted_and_not_tried_again(kafka, mistake):
    with pytest.raises(type(mistake)):
        run(kafka, failing(mistake))
    assert kafka.calls == ["begin", "abort 1"]


@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt()])
def test_a_handler_that_would_end_the_process_fails_the_query_which_else_waited_for_its_answer(kafka, end):
    with pytest.raises(RuntimeError, match=r"the handler of micro-batch 3 ended with (SystemExit|KeyboardInterrupt)\("):
        run(kafka, failing(end))
    assert kafka.calls == ["begin", "abort 1"]


def test_a_query_that_was_stopped_is_not_tried_again(kafka):
    kafka.active = False
    with pytest.raises(RuntimeError, match="stopped amid 3: a task failed"):
        run(kafka, failing(JOB_FAILED))
    assert kafka.calls == ["begin", "abort 1"]


@pytest.mark.parametrize("failed", [JOB_FAILED, ValueError("the handler's own word for it")])
def test_spark_is_told_of_a_stop_without_the_long_trace_of_the_job_that_was_cancelled(kafka, failed):
    kafka.active = False
    with pytest.raises(RuntimeError) as caught:
        run(kafka, failing(failed))
    assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1


def test_a_thread_of_the_handler_s_own_cannot_write_once_it_has_returned(kafka):
    kept = []

    def handler(frame, batch, sink):
        kept.append(sink)
        sink.written["out", 0] = 5

    run(kafka, handler)
    with pytest.raises(ConfigError, match="writes while its handler runs, and this one has returned"):
        kept[0].write(None, "out")


def test_a_failed_write_is_not_committed_although_the_handler_goes_on(kafka):
    def swallowing(frame, batch, sink):
        sink.written["out", 0] = 5
        sink.failed = True

    with pytest.raises(KafkaException, match="a write of the micro-batch has failed, and the handler went on"):
        run(kafka, swallowing, maxAttempts="1")
    assert kafka.calls == ["begin", "abort 1"]


@pytest.mark.parametrize(("given", "why"), [
    ({"kafka.bootstrap.servers": "b:9092"}, "sinkId"),
    ({**GIVEN, "maxAttempts": "0"}, "option maxAttempts must be a whole number of at least 1, not '0'"),
    ({**GIVEN, "maxAttempts": "often"}, "option maxAttempts"),
    ({**GIVEN, "delivery.guarantee": "at_least_once"}, "option delivery.guarantee is exactly_once here"),
    ({**GIVEN, "sinkld": "x"}, "Did you mean 'sinkId'"),
    ({**GIVEN, "exactlyOnce.claims": "topic"}, "exactlyOnce.claims has no use here"),
])
def test_wrong_options_are_refused_before_the_query_starts(given, why):
    with pytest.raises(ConfigError, match=why):
        TransactionalOptions.parse(given)


def test_names_of_options_have_no_case():
    options = TransactionalOptions.parse({**GIVEN, "GROUPID": "g", "maxattempts": "9"})
    assert (options.group, options.attempts) == ("g", 9)
