"""`headrace run PIPELINE.toml`: run a declared pipeline with Spark, show how it goes, write an honest report.

The work is done by `headrace.spark.pipeline.run`; this module owns the command line, Ctrl-C and the order of things.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from headrace.errors import DependencyError, KafkaException

if TYPE_CHECKING:
    from headrace.spark.pipeline.display import Display
    from headrace.spark.pipeline.report import Check, Outcome
    from headrace.spark.pipeline.run import Pipeline
    from headrace.spark.pipeline.spec import PipelineSpec

__all__ = ["HELP", "Job", "main", "run_job"]

HELP = "run a pipeline file with Spark"
_POLL_S = 0.2


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
        verify: called when the run finished; gives the totals that were compared.
    """

    spec: PipelineSpec
    master: str
    bootstrap: str
    directory: Path
    report: Path
    settings: dict[str, str] = field(default_factory=dict)
    verify: Callable[[], list[Check]] = list


def main(argv: list[str]) -> int:
    """Run a pipeline file.

    Returns:
        0 when all was read and written, 1 when a query failed, 2 for a wrong file or option, 130 after Ctrl-C.
    """
    options = _parser().parse_args(argv)
    try:
        from headrace.spark import require_spark
        from headrace.spark.pipeline.spec import load_pipeline

        require_spark()
        directory = Path(options.directory)
        spec = load_pipeline(Path(options.pipeline))
        report = Path(options.report) if options.report else directory / "report.html"
        return run_job(Job(spec, options.spark_master, options.bootstrap, directory, report))
    except (DependencyError, KafkaException) as error:
        text = error.error.str() if isinstance(error, KafkaException) else error
        print(f"headrace run: {text}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headrace run", description="Run a declared pipeline: Kafka in, Spark SQL, Kafka or Parquet out.",
        epilog="Ctrl-C lets the running micro-batch end and then stops; a second one stops at once.",
    )
    parser.add_argument("pipeline", help="pipeline file in TOML")
    parser.add_argument("--spark-master", default="local[2]", metavar="URL", help="Spark master (default: %(default)s)")
    parser.add_argument("--bootstrap", default="", metavar="HOST:PORT", help="brokers instead of the ones in the file")
    parser.add_argument("--directory", default=".", metavar="DIR", help="where relative paths start (default: here)")
    parser.add_argument("--report", default="", metavar="FILE", help="where the report goes (default: report.html)")
    return parser


def run_job(job: Job) -> int:
    """Run, show, verify and report.

    Returns:
        Exit status, as of `main`.

    Raises:
        ConfigError: the pipeline cannot start as it is written.
        MissingJavaError: there is no Java for Spark.
    """
    from headrace.spark.pipeline import report
    from headrace.spark.pipeline.display import make_display
    from headrace.spark.pipeline.run import Pipeline

    outcome = report.Outcome("finished", datetime.now(UTC), 0.0, dict(job.settings))
    began = time.monotonic()
    print(f"starting Spark for {job.spec.name} ...", flush=True)
    with Pipeline(job.spec, master=job.master, bootstrap=job.bootstrap, directory=job.directory) as pipeline:
        outcome.settings.update(_settings(job, pipeline))
        with make_display(job.spec.name, pipeline.queries) as display:
            outcome.state = _watch(pipeline, display)
        outcome.seconds = time.monotonic() - began
        if outcome.state == "finished":
            outcome.checks = job.verify()
        report.write_report(job.report, job.spec, pipeline.history, outcome)
        _print_outcome(job, outcome, pipeline)
    return 130 if outcome.state.startswith("stopped") else 0 if outcome.good else 1


def _watch(pipeline: Pipeline, display: Display) -> str:
    """Follow the run to its end; gives its state."""
    from headrace.spark.pipeline.run import PipelineError

    presses = 0

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1

    # PySpark's own handler cancels the running jobs; ours lets them end.
    before: Any = signal.signal(signal.SIGINT, on_interrupt)
    try:
        while pipeline.running and presses < 2:
            display.update(pipeline.poll(), pipeline.history)
            if presses == 1:
                pipeline.request_stop()
                display.note("stopping after the running micro-batch; Ctrl-C again stops at once")
            time.sleep(_POLL_S)
        display.update(pipeline.poll(), pipeline.history)
    except PipelineError as error:
        return f"failed: {error}"
    finally:
        signal.signal(signal.SIGINT, before)
    return "stopped by Ctrl-C" if presses else "finished"


def _settings(job: Job, pipeline: Pipeline) -> dict[str, str]:
    own = " (embedded)" if job.spec.embedded and not job.bootstrap else ""
    return {
        "Spark master": job.master, "trigger": str(job.spec.trigger), "Java": pipeline.java,
        "brokers": pipeline.kafka["bootstrap.servers"] + own,
        "checkpoint": job.spec.checkpoint, **job.spec.spark,
    }


def _print_outcome(job: Job, outcome: Outcome, pipeline: Pipeline) -> None:
    """The last lines: what was read and written, what was compared, where the report is."""
    for sink in job.spec.sinks:
        samples = pipeline.history.of(sink.name)
        read, written = sum(s.rows_in for s in samples), sum(s.rows_out for s in samples)
        print(f"{sink.name}: {read:,} rows read, {written:,} written to {sink.target} in {len(samples)} batches")
    for check in outcome.checks:
        verdict = "equal" if check.equal else f"DIFFERENT: expected {check.expected:,}"
        print(f"checked {check.name}: {check.found:,} {verdict}")
    print(f"{outcome.state} after {outcome.seconds:.1f} s; report: {job.report}", flush=True)
    if outcome.state.startswith("failed"):
        print(f"headrace run: {outcome.state.removeprefix('failed: ')}", file=sys.stderr)
