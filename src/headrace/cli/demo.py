"""`headrace demo`: 336,776 flights through Kafka and Spark, and the totals checked against the file.

Loads the topics through our producer, runs `examples/flights/pipeline.toml`, reads all results back and compares.
Read next: `headrace.cli.run` for the run, `headrace.cli.shared.flights` for the data and the comparison.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.shared.exits import guarded
from headrace.cli.shared.parsers import Parser
from headrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main", "make_parser"]

_MADE = ("checkpoint", "enriched")


def main(argv: list[str]) -> int:
    """Run the demo.

    Returns:
        0 when all totals are equal, 1 when they differ or a step failed, 2 for a missing package or wrong option,
        another one where it could not begin for a reason with a number of its own, see `cli.shared.exits.MEANINGS`.
    """
    options = make_parser().parse_args(argv)
    return guarded("headrace demo", lambda: _demo(options))


def make_parser() -> Parser:
    """The parser of `headrace demo`."""
    parser = Parser("headrace demo", allow_abbrev=True,
                    description="Run the flights example from end to end and check its totals.",
                    epilog="Exit status: 0 all totals are equal, 1 they differ or a step failed, 2 wrong usage, 3 no "
                    "broker answers, 4 not allowed, 6 a topic of the demo exists, 130 after Ctrl-C, 143 after SIGTERM.")
    parser.add_argument("--bootstrap", default="", metavar="HOST:PORT", help="use these brokers, not an embedded one")
    parser.add_argument("--registry", default="", metavar="URL", help="the Schema Registry of these brokers")
    parser.add_argument("--recreate", action="store_true", help="delete the demo's topics if they exist")
    parser.add_argument("--spark-master", default="local[2]", metavar="URL", help="Spark master (default: %(default)s)")
    parser.add_argument("--output", default="build/demo", metavar="DIR", help="for results (default: %(default)s)")
    parser.add_argument("--pipeline", default="", metavar="FILE", help="another pipeline file over the same topics")
    return parser


def _demo(options: argparse.Namespace) -> int:
    from headrace.cli.run import Job, run_job
    from headrace.cli.shared import flights as _flights
    from headrace.spark import require_spark
    from headrace.spark.pipeline.spec import load_pipeline

    require_spark()
    if bool(options.bootstrap) != bool(options.registry):
        raise ConfigError("--bootstrap and --registry go together: the weather and the delays are Avro")
    spec = load_pipeline(_pipeline_file(options.pipeline))
    output = Path(options.output).resolve()
    for name in _MADE:
        shutil.rmtree(output / name, ignore_errors=True)
    tables = _flights.read_tables()
    with ExitStack() as stack:
        bootstrap, registry = (options.bootstrap, options.registry) if options.bootstrap else _embedded(stack)
        _flights.create_topics(bootstrap, recreate=options.recreate)
        began = time.monotonic()
        for topic, table in tables.items():
            with _progress(topic, table.num_rows) as advance:
                _flights.load_topic(bootstrap, registry, topic, table, advance)
        loaded = sum(table.num_rows for table in tables.values())
        seconds = time.monotonic() - began
        settings = {"loaded": f"{loaded:,} records by our producer in {seconds:.1f} s"}
        print(f"{settings['loaded']} ({bootstrap})", flush=True)
        job = Job(spec, options.spark_master, bootstrap, output, output / "report.html", settings, registry=registry)
        job.verify = lambda: _flights.compare(bootstrap, registry, output / "enriched", tables)
        return run_job(job)


def _embedded(stack: ExitStack) -> tuple[str, str]:
    """Addresses of a broker and a registry that run in this process."""
    from headrace.testing import EmbeddedBroker

    broker = stack.enter_context(EmbeddedBroker(registry=True))
    return broker.bootstrap_servers, broker.registry_url


def _pipeline_file(given: str) -> Path:
    if given:
        return Path(given)
    place = Path("examples", "flights", "pipeline.toml")
    for root in (Path(__file__).parents[3], Path.cwd()):
        if (root / place).exists():
            return root / place
    raise ConfigError(f"{place} is not here: run the demo in the source tree, or name a file with --pipeline")


@contextmanager
def _progress(topic: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, one line elsewhere."""
    if not sys.stdout.isatty():
        yield lambda rows: None
        print(f"loaded {topic}: {total:,} records", flush=True)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns: tuple[Any, ...] = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task(f"loading {topic}", total=total)
        yield lambda rows: bar.advance(task, rows)
