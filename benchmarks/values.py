"""Avro values into struct columns, on real Kafka: our source beside two other ways, in one session.

    python -m benchmarks.values --records 2000000 --rounds 5

`from_avro` reads behind Spark's JVM connector, with the registry's five bytes cut off by `substring`; `pandas UDF`
reads with fastavro behind our source, raw. Each reads the whole topic into Spark's `noop` sink, all fields of the
values as columns.

Values are records of ten fields: numbers, texts, a decimal, a timestamp, an array, a map and a record.

Rounds are interleaved, in turning order; each way warms up once before, and all are checked to read the same.
Exit status 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks import brokers, report
from benchmarks.measure import machine, version_of
from benchmarks.spark_session import OURS, Session
from tools.kafka import NEWEST, VERSIONS, spark_avro_jars, spark_connector_jars

FROM_AVRO, PANDAS = "from_avro", "pandas UDF"
BARS: Final = {FROM_AVRO: 1.5, PANDAS: 5.0}
"""How many times as fast ours is to be."""
WARM_UP = 5_000
VALUE = """named_struct(
    'id', id, 'customer', concat('customer ', cast(id % 1000 as string)),
    'email', if(id % 3 = 0, null, concat('c', cast(id as string), '@example.org')),
    'price', cast(id % 100000 / 100 as decimal(9,2)), 'at', timestamp_millis(1767225600000 + id),
    'score', if(id % 5 = 0, null, id / 7), 'active', id % 2 = 0,
    'tags', transform(sequence(0, cast(id % 3 as int)), n -> concat('tag', cast(n as string))),
    'counts', map('seen', cast(id % 10 as int), 'bought', cast(id % 4 as int)),
    'address', named_struct('street', concat(cast(id % 500 as string), ' Main Street'), 'zip', 10000 + id % 90000)
) AS value"""


class Ways:
    """The ways to read a topic of Avro values.

    Args:
        session: with the jars of the JVM's ways.
        registry_url: where the schema is.
    """

    def __init__(self, session: Session, registry_url: str) -> None:
        self.session = session
        self._registry_url = registry_url
        self._frames: dict[str, Callable[[str], Any]] = {
            OURS: self._ours, FROM_AVRO: self._from_avro, PANDAS: self._pandas}

    def fill(self, topic: str, records: int, tasks: int) -> None:
        """Write records by our sink, which registers their schema."""
        values = self.session.spark.range(records, numPartitions=tasks).selectExpr(VALUE)
        options = {**self._options(), "value.format": "avro", "topic": topic}
        values.write.format("headrace").options(**options).mode("append").save()

    def read(self, way: str, topic: str) -> float:
        """Read a topic into nothing; seconds that it took."""
        frame = self._frames[way](topic)
        begin = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - begin

    def checksum(self, way: str, topic: str) -> Any:
        """What must be the same for all ways."""
        return self._frames[way](topic).selectExpr(
            "count(*)", "sum(id)", "sum(price)", "max(at)", "count(email)", "sum(size(tags))", "sum(counts['seen'])",
            "sum(address.zip)").first()

    def _options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.session.bootstrap, "schema.registry.url": self._registry_url}

    def _ours(self, topic: str) -> Any:
        options = {**self._options(), "value.format": "avro", "subscribe": topic}
        frame = self.session.spark.read.format("headrace").options(**options).load()
        return frame.select("value.*")

    def _schema(self, topic: str) -> str:
        from headrace.schema_registry import SchemaRegistryClient

        with SchemaRegistryClient({"url": self._registry_url}) as registry:
            text = registry.get_latest_version(f"{topic}-value").schema.schema_str
        assert text is not None
        return text

    def _raw(self, form: str, topic: str) -> Any:
        return (self.session.spark.read.format(form).option("kafka.bootstrap.servers", self.session.bootstrap)
                .option("subscribe", topic).option("startingOffsets", "earliest").load())

    def _from_avro(self, topic: str) -> Any:
        from pyspark.sql import functions
        from pyspark.sql.avro.functions import from_avro

        body = functions.expr("substring(value, 6)")
        return self._raw("kafka", topic).select(from_avro(body, self._schema(topic)).alias("value")).select("value.*")

    def _pandas(self, topic: str) -> Any:
        from pyspark.sql.functions import pandas_udf

        read = pandas_udf(fastavro_reader(self._schema(topic)), self._ours(topic).schema)
        return self._raw("headrace", topic).select(read("value").alias("value")).select("value.*")


def fastavro_reader(text: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for `pandas_udf` that reads framed payloads by fastavro."""
    pandas: Any = importlib.import_module("pandas")
    several: Any = Iterator

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import fastavro

        schema = fastavro.parse_schema(json.loads(text))
        for payloads in batches:
            yield pandas.DataFrame([fastavro.schemaless_reader(io.BytesIO(each[5:]), schema, None)
                                    for each in payloads])

    # pandas_udf takes the kind of the function from its types.
    read.__annotations__ = {"batches": several[pandas.Series], "return": several[pandas.DataFrame]}
    return read


def measured(ways: Ways, topic: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of each round, in turning order."""
    names = (OURS, FROM_AVRO, PANDAS)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    with report.Progress(rounds * len(names)) as progress:
        for turn in range(rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                progress.next(f"values, round {turn + 1}: {name}")
                seconds[name].append(ways.read(name, topic))
    return seconds


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Run the comparison; 0 when both bars hold."""
    arguments = _parser().parse_args(argv)
    from headrace.testing import EmbeddedBroker

    with brokers.kafka(arguments.kafka_version) as broker, EmbeddedBroker(registry=True) as registry:
        session = Session(arguments.master, broker.bootstrap_servers, 0, spark_avro_jars())
        ways = Ways(session, registry.registry_url)
        for topic, records in (("warm", WARM_UP), ("values", arguments.records)):
            broker.create_topic(topic, arguments.partitions)
            ways.fill(topic, records, arguments.partitions)
        sums = {name: ways.checksum(name, "warm") for name in (OURS, FROM_AVRO, PANDAS)}
        if len(set(sums.values())) > 1:
            raise RuntimeError(f"the ways do not read the same: {sums}")
        seconds = measured(ways, "values", arguments.rounds)
        session.spark.stop()
        return _shown(arguments, broker.about, seconds)


def _shown(arguments: argparse.Namespace, about: str, seconds: dict[str, list[float]]) -> int:
    """Print what was measured, and write it as JSON. 1 when a bar is missed."""
    versions = {name: version_of(name) for name in ("headrace", "pyspark", "pyarrow", "fastavro", "pandas")}
    versions |= {jar.stem: "JVM" for jar in (*spark_connector_jars(), *spark_avro_jars())}
    print(f"\n{about}; Spark on {arguments.master}, {arguments.records:,} records, {arguments.partitions} partitions")
    print("; ".join(f"{name} {version}" for name, version in versions.items()))
    ours = statistics.median(seconds[OURS])
    ratios = {name: statistics.median(seconds[name]) / ours for name in BARS}
    missed = [name for name, bar in BARS.items() if ratios[name] < bar]
    report.table("Avro into struct columns", ("", "seconds", "spread", "times as fast is ours", "bar"), [
        (name, f"{statistics.median(each):.3f}", report.spread(each), f"{ratios[name]:.2f}" if name in ratios else "",
         f">= {BARS[name]:g}{'  MISSED' if name in missed else ''}" if name in BARS else "")
        for name, each in seconds.items()])
    whole = {"machine": machine(), "broker": about, "versions": versions, "master": arguments.master,
             "records": arguments.records, "partitions": arguments.partitions, "seconds": seconds, "ratios": ratios}
    print(f"\nwritten to {report.write_json('values', whole, arguments.json)}")
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.values", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
