"""`write_topic()`: rows of any frame become records; what it wrote, `read_topic()` gives back."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

import headrace
from headrace.broker.settings import BrokerSettings
from headrace.errors import ConfigError, KafkaException, SerializationError
from headrace.frames import read_topic, write_topic
from headrace.testing import EmbeddedBroker

FRAME = polars.DataFrame({"id": [1, 2, 3], "name": ["a", "b", None], "tags": [["x"], [], None]})
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(registry=True) as broker:
        yield broker


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = f"t-{next(_NUMBERS)}"
    broker.create_topic(name)
    return name


def test_columns_go_by_their_names_and_come_back(broker: EmbeddedBroker, topic: str) -> None:
    stamp = datetime(2026, 1, 2, tzinfo=UTC)
    table = pa.table({"value": ["a", None], "key": [b"k", None], "timestamp": [stamp, stamp], "other": [1, 2]})
    assert headrace.write_topic(table, topic, broker.bootstrap_servers) == 2
    back = read_topic(topic, broker.bootstrap_servers)
    assert back["value"].to_pylist() == [b"a", None]
    assert back["key"].to_pylist() == [b"k", None]
    assert back["timestamp"].to_pylist() == [stamp, stamp]


@pytest.mark.parametrize("value_format", ["avro", "protobuf", "json-schema"])
def test_the_columns_of_a_frame_are_one_value_by_a_schema(
    broker: EmbeddedBroker, topic: str, value_format: str
) -> None:
    frame = FRAME.select("id", "name")
    formats: dict[str, Any] = {"value_format": value_format, "registry": broker.registry_url}
    assert write_topic(frame, topic, broker.bootstrap_servers, **formats) == 3
    back = read_topic(topic, broker.bootstrap_servers, columns=["value"], format="polars", **formats)
    assert back.unnest("value").to_dicts() == frame.to_dicts()


@pytest.mark.parametrize("made", [lambda frame: frame, lambda frame: frame.to_arrow(), lambda frame: frame.to_pandas()],
                         ids=["polars", "pyarrow", "pandas"])
def test_every_kind_of_frame_is_taken(broker: EmbeddedBroker, topic: str, made: Any) -> None:
    formats: dict[str, Any] = {"value_format": "avro", "registry": broker.registry_url}
    write_topic(made(FRAME), topic, broker.bootstrap_servers, **formats)
    back = read_topic(topic, broker.bootstrap_servers, columns=["value"], format="polars", **formats)
    assert back.unnest("value").to_dicts() == FRAME.to_dicts()


def test_columns_of_categories_and_an_index_without_a_name_do_no_harm(broker: EmbeddedBroker, topic: str) -> None:
    frame = pandas.DataFrame({"kind": pandas.Categorical(["a", "b", "a"]), "n": [1, 2, 3]}, index=[7, 9, 8])
    formats: dict[str, Any] = {"value_format": "avro", "registry": broker.registry_url}
    write_topic(frame, topic, broker.bootstrap_servers, **formats)
    back = read_topic(topic, broker.bootstrap_servers, **formats)
    assert back["value"].to_pylist() == [{"kind": "a", "n": 1}, {"kind": "b", "n": 2}, {"kind": "a", "n": 3}]


def test_times_of_any_unit_are_the_same_moments_and_those_without_a_zone_stay_so(
    broker: EmbeddedBroker, topic: str
) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC)
    local = datetime(2026, 1, 2, 3, 4, 5)
    table = pa.table({"at": pa.array([moment], pa.timestamp("ns", "Europe/Berlin")),
                      "local": pa.array([local], pa.timestamp("s"))})
    formats: dict[str, Any] = {"value_format": "avro", "registry": broker.registry_url}
    write_topic(table, topic, broker.bootstrap_servers, **formats)
    assert read_topic(topic, broker.bootstrap_servers, **formats)["value"].to_pylist() == [
        {"at": moment, "local": local}]


def test_roles_take_columns_out_of_the_value_unless_they_are_listed(broker: EmbeddedBroker, topic: str) -> None:
    formats: dict[str, Any] = {"value_format": "json", "schemas": {"key.schema": '"long"'}, "key_format": "avro"}
    write_topic(FRAME, topic, broker.bootstrap_servers, key="id", **formats)
    write_topic(FRAME.head(1), topic, broker.bootstrap_servers, key="id", value=["name", "id"], **formats)
    back = read_topic(topic, broker.bootstrap_servers, key_format="avro", schemas={"key.schema": '"long"'})
    assert back["key"].to_pylist() == [1, 2, 3, 1]
    assert back["value"].to_pylist()[0] == b'{"name":"a","tags":["x"]}'
    assert back["value"].to_pylist()[3] == b'{"name":"a","id":1}'


def test_a_column_of_structs_is_the_value_and_null_a_tombstone(broker: EmbeddedBroker, topic: str) -> None:
    table = pa.table({"value": pa.array([{"n": 1}, None]), "partition": pa.array([0, 0])})
    assert write_topic(table, topic, broker.bootstrap_servers, value_format="json") == 2
    assert read_topic(topic, broker.bootstrap_servers)["value"].to_pylist() == [b'{"n":1}', None]


def test_a_tombstone_is_written_whatever_fields_its_value_would_need(broker: EmbeddedBroker, topic: str) -> None:
    needed = pa.struct([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])
    given = pa.table({"value": pa.array([{"id": 1, "note": None}, None], needed)})
    write_topic(given, topic, broker.bootstrap_servers, value_format="avro", registry=broker.registry_url)
    found = read_topic(topic, broker.bootstrap_servers, columns=["value"], value_format="avro",
                       registry=broker.registry_url)
    assert found.schema.field("value").type == needed
    write_topic(found, topic, broker.bootstrap_servers, value_format="avro", registry=broker.registry_url)
    again = read_topic(topic, broker.bootstrap_servers, columns=["value"], value_format="avro",
                       registry=broker.registry_url)
    assert sorted(again["value"].to_pylist(), key=str) == [None, None, {"id": 1, "note": None}, {"id": 1, "note": None}]


@pytest.mark.parametrize(("more", "error", "said"), [
    ({"value": ["id"]}, ConfigError, "several columns become a value with"),
    ({"value_format": "json", "key": "nr"}, ValueError, "there is no column 'nr' for key"),
    ({"value_format": "json", "value": "nr"}, ValueError, "there is no column 'nr' for value"),
    ({"value_format": "json", "value": ["id", "nr"]}, ValueError, "there is no column 'nr' for value"),
    ({"value_format": "json", "value": []}, ValueError, "no column is left for the value"),
    ({}, ValueError, "no column 'value' for value"),
    ({"value": "id"}, TypeError, "must be binary or string"),
    ({"value_format": "avro", "schemas": {"value.schema": '"long"'}}, SerializationError, "cannot be written as int64"),
])
def test_what_cannot_be_written_is_said_and_nothing_is(
    broker: EmbeddedBroker, topic: str, more: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        write_topic(FRAME, topic, broker.bootstrap_servers, **more)
    assert broker.end_offsets(topic) == [0]


def test_what_is_no_frame_is_refused(broker: EmbeddedBroker, topic: str) -> None:
    with pytest.raises(TypeError, match="no __arrow_c_stream__"):
        write_topic([{"id": 1}], topic, broker.bootstrap_servers)


def test_a_topic_that_does_not_exist_is_said_so_soon() -> None:
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False)) as strict:
        for call in (lambda: write_topic(pa.table({"value": ["a"]}), "nowhere", strict.bootstrap_servers),
                     lambda: read_topic("nowhere", strict.bootstrap_servers)):
            began = time.monotonic()
            with pytest.raises(KafkaException, match="nowhere"):
                call()
            assert time.monotonic() - began < 10
