"""`read_topic()`: whole, in order, in the columns of `consume_arrow()`, decoded when asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

import headrace
from headrace import Consumer, KafkaException, Producer, TopicPartition
from headrace.errors import ConfigError, SerializationError
from headrace.frames import read_topic
from headrace.schema_registry import SchemaRegistryClient
from headrace.schema_registry.avro import AvroSerializer
from headrace.serialization import MessageField, SerializationContext
from headrace.testing import EmbeddedBroker

COUNT = 500
ORDER = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "price", "type": ["null", "double"], "default": null}]}"""


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2, "one": 1, "empty": 1, "orders": 1, "bad": 1}, registry=True) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.num.messages": 100}) as producer:
            for number in range(COUNT):
                headers = [("n", b"%d" % number)] if number % 2 else None
                producer.produce("t", b"v%d" % number if number % 5 else None, b"k%d" % number, number % 2,
                                 headers=headers)
            producer.produce("bad", b"not framed")
        yield broker


@pytest.fixture(scope="module")
def orders(broker: EmbeddedBroker) -> str:
    """Ten orders in Avro; the registry's address."""
    client = SchemaRegistryClient({"url": broker.registry_url})
    write = AvroSerializer(client, ORDER)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number in range(10):
            price = number / 2 if number else None
            context = SerializationContext("orders", MessageField.VALUE)
            producer.produce("orders", write({"id": number, "price": price}, context), "customer")
    return broker.registry_url


def read(broker: EmbeddedBroker, topic: str, **more: Any) -> Any:
    return read_topic(topic, broker.bootstrap_servers, **more)


def test_a_topic_is_read_whole_partition_by_partition(broker: EmbeddedBroker) -> None:
    table = read(broker, "t")
    assert table.column_names == ["partition", "offset", "timestamp", "key", "value", "headers"]
    expected = [*range(0, COUNT, 2), *range(1, COUNT, 2)]
    assert table["key"].to_pylist() == [b"k%d" % number for number in expected]
    assert table["value"].to_pylist() == [b"v%d" % number if number % 5 else None for number in expected]
    assert table["partition"].to_pylist() == [number % 2 for number in expected]
    assert table["offset"].to_pylist() == [number // 2 for number in expected]


def test_its_columns_are_those_of_consume_arrow(broker: EmbeddedBroker) -> None:
    names = ["topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"]
    table = read(broker, "t", partitions=[1], columns=names)
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition("t", 1, 0)])
        consumed = pa.table(consumer.consume_arrow(COUNT // 2, 10.0))
    assert table.schema == consumed.schema
    assert table.to_pylist() == consumed.to_pylist()


def test_bounds_and_partitions_and_columns_are_kept_to(broker: EmbeddedBroker) -> None:
    table = read(broker, "t", start=10, end=-200, partitions=[1], columns=["offset"])
    assert table.to_pydict() == {"offset": list(range(10, 50))}
    assert read(broker, "t", start=timedelta(hours=1), end=datetime.now(UTC) - timedelta(minutes=30)).num_rows == 0


def test_a_limit_gives_the_first_rows(broker: EmbeddedBroker) -> None:
    assert read(broker, "t", limit=260, columns=["partition", "offset"]).to_pylist()[-1] == {
        "partition": 1, "offset": 9}
    assert read(broker, "t", limit=3, start=-1).num_rows == 2
    assert read(broker, "t", limit=0).num_rows == 0


def test_frames_of_other_libraries_have_the_same_rows(broker: EmbeddedBroker) -> None:
    frame = headrace.read_topic("t", {"bootstrap.servers": broker.bootstrap_servers}, format="pandas")
    assert isinstance(frame, pandas.DataFrame)
    assert frame["key"].tolist() == read(broker, "t")["key"].to_pylist()
    assert read(broker, "t", format="polars")["offset"].to_list() == frame["offset"].tolist()


def test_an_empty_topic_is_an_empty_frame_with_its_columns(broker: EmbeddedBroker, orders: str) -> None:
    assert read(broker, "empty").schema == read(broker, "t").schema
    frame = read(broker, "empty", value_format="avro", registry=orders, schemas={"value.subject": "orders-value"},
                 columns=["value"], format="polars")
    assert frame.schema == {"value": polars.Struct({"id": polars.Int64, "price": polars.Float64})}


def test_values_become_columns_by_their_schema(broker: EmbeddedBroker, orders: str) -> None:
    table = read(broker, "orders", value_format="avro", key_format="string", registry=orders)
    assert table["value"].to_pylist() == [{"id": n, "price": n / 2 if n else None} for n in range(10)]
    assert set(table["key"].to_pylist()) == {"customer"}
    assert table["offset"].to_pylist() == list(range(10))
    assert read(broker, "orders", value_format="avro", registry=orders, limit=2, columns=["value"]).num_rows == 2


def test_a_value_that_cannot_be_read_is_named_or_null(broker: EmbeddedBroker, orders: str) -> None:
    schemas = {"value.schema": ORDER}
    with pytest.raises(SerializationError, match=r"bad\[0\]@0 cannot be read"):
        read(broker, "bad", value_format="avro", registry=orders, schemas=schemas)
    table = read(broker, "bad", value_format="avro", registry=orders, schemas={**schemas, "value.malformed": "null"})
    assert table["value"].to_pylist() == [None]


def test_records_of_aborted_transactions_are_left_out(broker: EmbeddedBroker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"}) as producer:
        producer.init_transactions(10)
        for number in range(4):
            producer.begin_transaction()
            producer.produce("one", b"%d" % number)
            producer.flush(10)
            producer.commit_transaction(10) if number % 2 else producer.abort_transaction(10)
    assert read(broker, "one")["value"].to_pylist() == [b"1", b"3"]
    dirty = read_topic("one", {"bootstrap.servers": broker.bootstrap_servers, "isolation.level": "read_uncommitted"})
    assert dirty["value"].to_pylist() == [b"0", b"1", b"2", b"3"]


def test_what_is_written_meanwhile_is_not_read(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("growing")
    config = {"bootstrap.servers": broker.bootstrap_servers}

    def send() -> None:
        with Producer(config) as producer:
            producer.produce("growing", b"")

    send()
    from headrace.frames import topic_reading

    settled = topic_reading.ranges_between

    def then_another(*given: Any) -> Any:
        ranges = settled(*given)
        send()
        return ranges

    monkeypatch.setattr(topic_reading, "ranges_between", then_another)
    assert read(broker, "growing").num_rows == 1
    assert broker.end_offsets("growing") == [2]


@pytest.mark.parametrize(("more", "said"), [
    ({"columns": ["ofset"]}, "no column 'ofset': did you mean 'offset'"),
    ({"columns": "offset"}, "columns must be a list"),
    ({"columns": []}, "columns must be a list"),
    ({"limit": -1}, "limit must be a number of rows"),
    ({"format": "spark"}, "format must be arrow, pandas, polars"),
    ({"start": "first"}, "start must be"),
    ({"config": 7}, "config must be a dict of properties"),
    ({"config": {"bootstrap.server": "x"}}, "bootstrap.servers"),
])
def test_each_mistake_is_said_before_a_broker_is_asked(more: dict[str, Any], said: str) -> None:
    config = more.pop("config", "127.0.0.1:1")
    with pytest.raises(ConfigError, match=said):
        read_topic("t", config, **more)


def test_brokers_that_do_not_answer_are_waited_for_no_longer_than_told() -> None:
    with pytest.raises(KafkaException):
        read_topic("t", "127.0.0.1:1", timeout=0.2)
