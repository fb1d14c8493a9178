"""Spark on real Kafka: our data source beside Spark's own JVM connector, in one session.

    python -m benchmarks.spark --records 5000000 --rounds 5

`read` is a batch read of a whole topic into Spark's `noop` sink; `write` is a range of numbers, as values of the given
size, through the sink. Rounds are interleaved; each connector warms up once before.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.measure import ROOT, ChildError, machine, run_child, version_of
from tools.kafka import (
    NEWEST,
    VERSIONS,
    KafkaStartError,
    MissingJavaError,
    RegistryError,
    spark_connector_jars,
)

CONNECTORS = {"headrace": "headrace", "JVM connector": "kafka"}
"""Name in the report and the format's name in Spark."""
ACTIONS = ("read", "write")
TARGET = {"read": 1.5, "write": 0.8}
"""What ours is to reach, in rows/s against the JVM connector."""
WARM_UP = 20_000


class Session:
    """A Spark session with both connectors on one broker."""

    def __init__(self, master: str, broker: brokers.Broker, size: int, partitions: int) -> None:
        from headrace.spark.java import prepare_java

        print(prepare_java(), file=sys.stderr)
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # Spark's workers import the source from there
        from pyspark.sql import SparkSession

        self.broker = broker
        self.size = size
        self.partitions = partitions
        self.spark = (
            SparkSession.builder.master(master).appName("benchmark")
            .config("spark.jars", ",".join(map(str, spark_connector_jars())))
            .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "2g").config("spark.log.level", "ERROR").getOrCreate()
        )

    def read(self, name: str, topic: str, records: int) -> float:
        """Read a topic into nothing; seconds that it took."""
        frame = (
            self.spark.read.format(name).option("kafka.bootstrap.servers", self.broker.bootstrap_servers)
            .option("subscribe", topic).option("startingOffsets", "earliest").load()
        )
        if records <= WARM_UP:
            found = frame.count()  # the measured reads are not counted: the first one vouches for them
            if found != records:
                raise RuntimeError(f"{name} reads {found:,} rows of {records:,}")
        begin = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - begin

    def write(self, name: str, topic: str, records: int) -> float:
        """Write a range as values of the right size; seconds that it took."""
        values = self.spark.range(records, numPartitions=self.partitions).selectExpr(
            f"cast(lpad(cast(id as string), {self.size}, 'x') as binary) as value"
        )
        begin = time.perf_counter()
        (
            values.write.format(name).option("kafka.bootstrap.servers", self.broker.bootstrap_servers)
            .option("topic", topic).mode("append").save()
        )
        return time.perf_counter() - begin


def measure(a: argparse.Namespace, broker: brokers.Broker) -> dict[str, dict[str, list[float]]]:
    """Rows per second of every round, by action and connector."""
    for topic, count in (("small", WARM_UP), ("large", a.records)):
        broker.create_topic(topic, a.partitions)
        run_child("benchmarks.peers", {
            "client": "confluent-kafka", "action": "produce", "topic": topic, "warm_topic": topic, "profile": False,
            # The warm-up of the producer goes into the same topic and is counted.
            "records": count - 2_000, "size": a.size, "partitions": a.partitions, "settings": {},
            "bootstrap": broker.bootstrap_servers,
        })
    session = Session(a.master, broker, a.size, a.partitions)
    rates: dict[str, dict[str, list[float]]] = {action: {name: [] for name in a.connectors} for action in a.actions}
    for number, name in enumerate(a.connectors):
        session.read(CONNECTORS[name], "small", WARM_UP)
        if "write" in a.actions:
            broker.create_topic(f"warm-{number}", a.partitions)
            session.write(CONNECTORS[name], f"warm-{number}", WARM_UP)
    with report.Progress(a.rounds * len(a.actions) * len(a.connectors)) as progress:
        for turn in range(a.rounds):
            for action in a.actions:
                for name in a.connectors if turn % 2 == 0 else reversed(a.connectors):
                    progress.next(f"round {turn + 1}: {name}, {action}")
                    rates[action][name].append(a.records / _one(session, action, CONNECTORS[name], turn, a.records))
    session.spark.stop()
    return rates


def _one(session: Session, action: str, connector: str, turn: int, records: int) -> float:
    if action == "read":
        return session.read(connector, "large", records)
    topic = f"written-{connector}-{turn}"
    session.broker.create_topic(topic, session.partitions)
    took_s = session.write(connector, topic, records)
    found = session.broker.record_count(topic, session.partitions)
    session.broker.delete_topic(topic)
    if found != records:
        raise RuntimeError(f"{connector} wrote {found:,} records, expected {records:,}")
    return took_s


def main(argv: list[str]) -> int:
    """Measure both connectors; 0 when it worked."""
    a = _parser().parse_args(argv)
    try:
        with brokers.kafka(a.kafka_version) as broker:
            rates = measure(a, broker)
            about = broker.about
    except (MissingJavaError, RegistryError, KafkaStartError, ChildError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    _show(a, about, rates)
    return 0


def _show(a: argparse.Namespace, about: str, rates: dict[str, dict[str, list[float]]]) -> None:
    versions = {name: version_of(name) for name in ("headrace", "pyspark", "pyarrow")}
    versions |= {jar.stem: "JVM connector" for jar in spark_connector_jars()}
    print(f"\n{about}; Spark on {a.master}, {a.records:,} records of {a.size} B, {a.partitions} partitions")
    print("; ".join(f"{name} {version}" for name, version in versions.items()))
    content: dict[str, Any] = {"machine": machine(), "broker": about, "versions": versions, "master": a.master,
                               "records": a.records, "size_bytes": a.size, "partitions": a.partitions, "rates": rates,
                               "ratios": {}}
    for action, by_name in rates.items():
        report.table(f"{action} ({a.rounds} rounds, median)", ("connector", "rows/s", "spread"),
                     [(name, f"{statistics.median(r):,.0f}", report.spread(r)) for name, r in by_name.items()])
        if len(by_name) == 2:
            ours, theirs = (statistics.median(by_name[name]) for name in CONNECTORS)
            content["ratios"][action] = ours / theirs
            print(f"  ours : JVM connector = {ours / theirs:.2f} (aim {TARGET[action]})")
    print(f"\nwritten to {report.write_json('spark', content, a.json)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS))
    parser.add_argument("--connectors", nargs="+", choices=tuple(CONNECTORS), default=list(CONNECTORS))
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
