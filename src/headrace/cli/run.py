"""`headrace run PIPELINE.toml`: run a declared pipeline with Spark, show how it goes, write an honest report.

The work is done by `headrace.spark.pipeline.run`; this module owns the command line, Ctrl-C and the order of things.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.shared.exits import guarded
from headrace.cli.shared.interruptions import Interruptions
from headrace.cli.shared.output import amount
from headrace.cli.shared.parsers import Parser

if TYPE_CHECKING:
    from headrace.spark.pipeline.display import Display
    from headrace.spark.pipeline.endpoints import Endpoints
    from headrace.spark.pipeline.report import Check, Outcome
    from headrace.spark.pipeline.run import Pipeline
    from headrace.spark.pipeline.spec import PipelineSpec

__all__ = ["POLL_S", "Job", "main", "make_parser", "run_job"]

POLL_S = 0.2
"""Seconds between two looks at the queries."""


@dataclass(slots=True)
class Job:
    """One run of a pipeline.

    Attributes:
        spec: the checked pipeline file.
        master: Spark master.
        bootstrap: brokers instead of the file's; empty for the file's.
        directory: where relative paths start.
        report: file of the report.
        settings: more rows for the report's table of settings.
        registry: URL of a Schema Registry instead of the file's; empty for the file's.
        verify: called when the run finished; gives the totals that were compared.
    """

    spec: PipelineSpec
    master: str
    bootstrap: str
    directory: Path
    report: Path
    settings: dict[str, str] = field(default_factory=dict)
    registry: str = ""
    verify: Callable[[], list[Check]] = list

    @property
    def endpoints(self) -> Endpoints:
        """The options of its reads and writes."""
        from headrace.spark.pipeline.endpoints import Endpoints

        return Endpoints(self.spec, self.directory, bootstrap=self.bootstrap, registry=self.registry)


def main(argv: list[str]) -> int:
    """Run a pipeline file.

    Returns:
        0 when all was read and written, or nothing was found wrong; 1 when a query failed for good, also after its last
        restart, or a check of --dry-run failed; 2 for a wrong file or option; another one where it could not begin for
        a reason with a number of its own, see `cli.shared.exits.MEANINGS`.
    """
    options = make_parser().parse_args(argv)
    return guarded("headrace run", lambda: _run(options))


def make_parser() -> Parser:
    """The parser of `headrace run`."""
    parser = Parser(
        "headrace run", allow_abbrev=True,
        description="Run a declared pipeline: Kafka in, Spark SQL, Kafka or Parquet out.",
        epilog="Ctrl-C or SIGTERM lets the running micro-batch end and then stops; a second one stops at once. Exit "
               "status: 0 all was read and written, 1 a query failed for good or a check failed, 2 wrong file or "
               "option, 3 no broker answers, 4 not allowed, 130 Ctrl-C, 143 SIGTERM.",
    )
    parser.add_argument("pipeline", help="pipeline file in TOML")
    parser.add_argument("--spark-master", default="local[2]", metavar="URL", help="Spark master (default: %(default)s)")
    parser.add_argument("--bootstrap", default="", metavar="HOST:PORT", help="brokers instead of the ones in the file")
    parser.add_argument("--registry", default="", metavar="URL", help="Schema Registry instead of the one in the file")
    parser.add_argument("--directory", default=".", metavar="DIR", help="where relative paths start (default: here)")
    parser.add_argument("--report", default="", metavar="FILE", help="where the report goes (default: report.html)")
    parser.add_argument("--once", action="store_true", help="take all there is now and stop, whatever the trigger says")
    parser.add_argument("--explain", action="store_true", help="print what would run and start nothing")
    parser.add_argument("--dry-run", action="store_true",
                        help="check topics, rights and schemas at the brokers and the registry; start nothing")
    return parser


def _run(options: argparse.Namespace) -> int:
    from headrace.spark import require_spark
    from headrace.spark.pipeline.spec import load_pipeline

    require_spark()
    directory = Path(options.directory)
    spec = load_pipeline(Path(options.pipeline))
    report = Path(options.report) if options.report else directory / "report.html"
    job = Job(spec.once() if options.once else spec, options.spark_master, options.bootstrap, directory, report,
              registry=options.registry)
    return _look(job, options) if options.explain or options.dry_run else run_job(job)


def _look(job: Job, options: argparse.Namespace) -> int:
    """Explain the pipeline, check it at its brokers, or both; no Spark."""
    from headrace.spark.pipeline.preflight.explain import explained

    endpoints = job.endpoints
    endpoints.check()
    if options.explain:
        print("\n".join(explained(endpoints, job.master)))
    if not options.dry_run:
        return 0
    from headrace.spark.pipeline.preflight.dry_run import findings

    good = True
    for finding in findings(endpoints):
        good = good and finding.good
        print(f"{'ok     ' if finding.good else 'PROBLEM'} {finding.what}: {finding.text}", flush=True)
    return 0 if good else 1


def run_job(job: Job) -> int:
    """Run, show, verify and report.

    Returns:
        Exit status, as of `main`.

    Raises:
        ConfigError: the pipeline cannot start as it is written.
        MissingJavaError: there is no Java for Spark.
    """
    from headrace.spark.pipeline import report

    job.endpoints.check()  # before pyspark is imported, which takes a second
    from headrace.spark.pipeline.run import Pipeline
    from headrace.spark.pipeline.session import running_session

    outcome = report.Outcome("finished", datetime.now(UTC), 0.0, dict(job.settings))
    began = time.monotonic()
    print(f"starting Spark for {job.spec.name} ...", flush=True)
    pipeline = Pipeline(job.endpoints, master=job.master, spark=running_session(job.spec))
    run = _Run(pipeline)
    with Interruptions(run.answer) as interruptions:
        outcome.state = run.follow(job, interruptions)
    outcome.seconds = time.monotonic() - began
    if outcome.state == "finished":
        outcome.checks = job.verify()
    outcome.settings.update(_settings(job, pipeline))
    outcome.restarts = dict(pipeline.restarts)
    report.write_report(job.report, job.spec, pipeline.history, outcome)
    _print_outcome(job, outcome, pipeline)
    return 128 + interruptions.number if outcome.state.startswith("stopped") else 0 if outcome.good else 1


class _Run:
    """Follows a pipeline, and answers who wants it to stop."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._display: Display | None = None

    def answer(self, count: int) -> None:
        """Ctrl-C came for the first time, or again; on a thread of its own."""
        if count == 1:
            self.pipeline.request_stop()
            when = "after the running micro-batch" if self._display else "as soon as Spark has started"
            self._say(f"stopping {when}; Ctrl-C again stops at once")
        else:
            self._say("stopping at once")

    def _say(self, text: str) -> None:
        if self._display is not None:
            self._display.note(text)
        else:
            print(text, flush=True)

    def follow(self, job: Job, interruptions: Interruptions) -> str:
        """Start the pipeline and follow it to its end; gives its state."""
        from headrace.spark.pipeline.display import make_display
        from headrace.spark.pipeline.run import JavaEndedError, PipelineError

        try:
            with self.pipeline:
                interruptions.arm()
                interruptions.patient = True
                with make_display(job.spec) as self._display:
                    self._watch(interruptions)
                self._display = None
        except PipelineError as error:
            if not (interruptions.count and isinstance(error, JavaEndedError)):  # the signal may have come to all
                return f"failed: {error}"
        return f"stopped by {interruptions.name}" if interruptions.count else "finished"

    def _watch(self, interruptions: Interruptions) -> None:
        pipeline, display = self.pipeline, self._display
        assert display is not None
        while pipeline.running and interruptions.count < 2:
            self._update(display)
            time.sleep(POLL_S)
        self._update(display)

    def _update(self, display: Display) -> None:
        try:
            display.update(self.pipeline.poll(), self.pipeline.history)
        finally:
            while self.pipeline.notes:
                display.note(self.pipeline.notes.pop(0))


def _settings(job: Job, pipeline: Pipeline) -> dict[str, str]:
    from headrace.spark.pipeline.endpoints import shown

    own = " (embedded)" if job.spec.embedded and not job.bootstrap else ""
    found = {
        "Spark master": job.master, "trigger": str(job.spec.trigger), "Java": pipeline.java,
        "brokers": pipeline.endpoints.kafka["bootstrap.servers"] + own, "checkpoint": job.spec.checkpoint,
    }
    url = shown(pipeline.endpoints.registry).get("url")
    return {**found, **({"registry": url + own} if url else {}), **shown(job.spec.spark)}


def _print_outcome(job: Job, outcome: Outcome, pipeline: Pipeline) -> None:
    """The last lines: what was read and written, what was compared, where the report is."""
    for sink in job.spec.sinks:
        samples = pipeline.history.of(sink.name)
        read, written = sum(s.rows_in for s in samples), sum(s.rows_out for s in samples)
        print(f"{sink.name}: {amount(read, 'row')} read, {written:,} written to {sink.target} in "
              f"{amount(len(samples), 'batch', 'batches')}")
    for check in outcome.checks:
        verdict = "equal" if check.equal else f"DIFFERENT: expected {check.expected:,}"
        print(f"checked {check.name}: {check.found:,} {verdict}")
    print(f"{outcome.state} after {outcome.seconds:.1f} s; report: {job.report}", flush=True)
    if outcome.state.startswith("failed"):
        print(f"headrace run: {outcome.state.removeprefix('failed: ')}", file=sys.stderr)
