"""What a streaming query costs as topics grow: connections, requests, and the driver's CPU, beside the JVM connector.

    python -m benchmarks.spark_scale --partitions 10 100 1000 --tasks 1 100

An embedded broker of three nodes counts the requests of both connectors, and the kernel their connections. A run has a
few micro-batches of 10 rows in each of as many partitions as there are tasks; `shared` is ours with small ranges in one
task, `tasks` is ours with one for each. Then the query is idle for a while. Counts are exact; CPU is of the driver's
processes (Spark's JVM, and the source's Python process), without this one, which is the broker.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.spark_session import OURS, THEIRS, Session, cpu_of_all_s
from headrace import Producer
from headrace.testing import Action, EmbeddedBroker, Fault

NODES, BATCHES, ROWS = 3, 4, 10
WAYS = {"tasks": OURS, "shared": OURS, "JVM": THEIRS}
_ESTABLISHED = "01"


class Cost(NamedTuple):
    """What one run was seen to cost.

    Attributes:
        connections: most at one time.
        requests: of a micro-batch, by kind.
        idle_requests: in a second, without records.
        cpu_s: of the driver's processes and the workers, for a micro-batch.
        tasks: of a micro-batch.
    """

    connections: int
    requests: Counter[str]
    idle_requests: float
    cpu_s: float
    tasks: int


def main(argv: list[str]) -> int:
    """Run all sizes and print one row for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_scale", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--tasks", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--idle", type=float, default=5.0, help="seconds without records")
    arguments = parser.parse_args(argv)
    rows = []
    with EmbeddedBroker(nodes=NODES) as broker:
        session = Session("local[2]", broker.bootstrap_servers, 100)
        for partitions in arguments.partitions:
            for tasks in (each for each in arguments.tasks if each <= partitions):
                topic = _filled(broker, partitions, tasks)
                for way in arguments.ways:
                    cost = _measure(session, broker, way, topic, tasks, arguments.idle)
                    rows.append(_shown(partitions, tasks, way, cost))
                    print(*rows[-1], file=sys.stderr)
        session.spark.stop()
    report.table(f"{NODES} brokers, {BATCHES} micro-batches", (
        "partitions", "with records", "way", "tasks", "connections", "requests a batch", "of them", "idle, a second",
        "CPU ms a batch"), rows)
    return 0


def _filled(broker: EmbeddedBroker, partitions: int, tasks: int) -> str:
    topic = f"p{partitions}-t{tasks}"
    broker.create_topic(topic, partitions)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for _ in range(BATCHES * ROWS):
            for partition in range(tasks):
                producer.produce(topic, b"x" * 100, partition=partition)
            producer.flush()
    return topic


def _measure(session: Session, broker: EmbeddedBroker, way: str, topic: str, tasks: int, idle_s: float) -> Cost:
    """One run from the beginning of a topic to its end, and then without records."""
    folder = tempfile.mkdtemp(prefix="benchmark-")
    options: dict[str, Any] = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic,
                               "startingOffsets": "earliest", "maxOffsetsPerTrigger": ROWS * tasks}
    if way == "tasks":
        options["maxRecordsPerSharedTask"] = 0
    frame = session.spark.readStream.format("kafka" if way == "JVM" else "headrace").options(**options).load()
    with _counted(broker) as asked:
        before = cpu_of_all_s(but_own=True)
        query = frame.writeStream.format("noop").option("checkpointLocation", folder).start()
        try:
            connections = _until_read(query, broker, ROWS * BATCHES * tasks)
            requests = Counter({name: count // BATCHES for name, count in asked.items()})
            cpu_s = (cpu_of_all_s(but_own=True) - before) / BATCHES
            time.sleep(3)
            asked.clear()
            time.sleep(idle_s)
            idle = sum(asked.values()) / idle_s
        finally:
            query.stop()
            shutil.rmtree(folder, ignore_errors=True)
    shared = 1 if way == "shared" else tasks
    return Cost(connections, requests, idle, cpu_s, shared)


@contextmanager
def _counted(broker: EmbeddedBroker) -> Iterator[Counter[str]]:
    """Requests by kind, as they come."""
    asked: Counter[str] = Counter()

    def note(request: object) -> bool:
        asked[type(request).__name__.removesuffix("Request")] += 1
        return False

    broker.add_fault(Fault(action=Action.DELAY, times=None, when=note))
    yield asked
    broker.clear_faults()


def _until_read(query: Any, broker: EmbeddedBroker, rows: int) -> int:
    """Wait until all is read; the most connections that were seen meanwhile."""
    ports = {int(server.rpartition(":")[2]) for server in broker.bootstrap_servers.split(",")}
    most, end = 0, time.monotonic() + 300
    while sum(each.numInputRows for each in query.recentProgress) < rows:
        if time.monotonic() > end or not query.isActive:
            raise RuntimeError(f"the query did not read {rows} rows: {query.exception()}")
        most = max(most, _connections(ports))
        time.sleep(0.05)
    return most


def _connections(ports: set[int]) -> int:
    """Connections that the broker's side of this machine has (Linux)."""
    count = 0
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            count += state == _ESTABLISHED and int(local.rpartition(":")[2], 16) in ports
    return count


def _shown(partitions: int, tasks: int, way: str, cost: Cost) -> tuple[str, ...]:
    kinds = ", ".join(f"{name} {count}" for name, count in cost.requests.most_common(5) if count)
    return (f"{partitions:,}", str(tasks), way, str(cost.tasks), str(cost.connections), str(cost.requests.total()),
            kinds, f"{cost.idle_requests:.1f}", f"{1000 * cost.cpu_s:.0f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
