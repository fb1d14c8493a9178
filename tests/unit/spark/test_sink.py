"""Which frames the sink takes, and what it hands to the producer."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from headrace.errors import ConfigError, SchemaRegistryError
from headrace.spark.options import SinkOptions
from headrace.spark.sink import Written, append_rows, check_columns
from headrace.spark.source import HeadraceSource
from headrace.spark.values.spark_types import spark_schema_of

SERVERS = {"kafka.bootstrap.servers": "b:1"}
HEADERS = pa.array([[{"key": "h", "value": b"x"}], None],
                   pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))


class Appended:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Any]]] = []

    def append(self, topic: str, *columns: Any) -> None:
        self.calls.append((topic, [None if each is None else each.to_pylist() for each in columns]))


def schema(**columns: DataType) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made.add(name, kind)
    return made


def check(columns: StructType, **options: str) -> None:
    check_columns(SinkOptions.parse({**SERVERS, **{name.replace("_", "."): each for name, each in options.items()}}),
                  columns)


@pytest.mark.parametrize("given", [{}, {"includeHeaders": "false"}, {"includeHeaders": "true"}])
def test_headers_are_written_wherever_the_column_is_there(given: dict[str, str]) -> None:
    out: Any = Appended()
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"1", b"2"]), "headers": HEADERS})
    append_rows(out, batch, SinkOptions.parse({**SERVERS, "topic": "t", **given}))
    assert out.calls == [("t", [None, [b"1", b"2"], None, HEADERS.to_pylist()])]


def test_a_row_without_a_topic_is_refused_with_what_to_do() -> None:
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"1", b"2"]), "topic": pa.array(["a", None])})
    out: Any = Appended()
    with pytest.raises(ConfigError, match=r"column topic is null in a row: give each row its topic, or .*option topic"):
        append_rows(out, batch, SinkOptions.parse(SERVERS))


def test_a_frame_as_the_source_reads_it_may_be_written() -> None:
    source = HeadraceSource({**SERVERS, "subscribe": "t", "includeHeaders": "true"})
    columns = spark_schema_of(source._chosen())
    assert len(columns) == 8
    check(columns, topic="copy")
    check(columns)  # each row to the topic where it was


@pytest.mark.parametrize("columns", [
    schema(value=StringType(), vaule=StringType()), schema(value=StringType(), header=ArrayType(StringType())),
    schema(value=StringType(), timestamp=StringType()), schema(value=StringType(), offset=IntegerType()),
    schema(value=StringType(), timestampType=TimestampType()), schema(value=BinaryType(), Offset=LongType()),
])
def test_other_columns_are_refused_for_what_is_in_them_would_be_lost(columns: StructType) -> None:
    with pytest.raises(ConfigError, match=f"column {columns.names[1]} cannot be written to a topic: there are key, "):
        check(columns, topic="t")


@pytest.mark.parametrize(("columns", "said"), [
    (schema(Value=StringType()), r"a topic takes a column named value .*; there are Value: rename Value to value$"),
    (schema(key=StringType()), "there are key$"),
    (schema(value=StringType(), KEY=StringType()), r"column KEY cannot be written to a topic: .*\. Rename KEY to key$"),
])
def test_a_name_in_other_letters_is_told_how_it_is_written(columns: StructType, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(columns, topic="t")


def test_a_column_that_is_there_twice_is_refused_by_its_name() -> None:
    columns = schema(value=StringType(), key=StringType()).add("value", StringType())
    with pytest.raises(ConfigError, match="column value is there more than once: drop all but one, or rename them"):
        check(columns, topic="t")


def test_a_column_topic_is_not_looked_at_where_the_option_names_the_topic() -> None:
    columns = schema(value=StringType(), topic=IntegerType())
    check(columns, topic="t")
    with pytest.raises(ConfigError, match="column topic must be string, not int: cast it"):
        check(columns)


@pytest.mark.parametrize("side", ["key", "value"])
def test_columns_within_a_value_need_a_format_and_other_types_a_cast(side: str) -> None:
    row = schema(a=IntegerType())
    with pytest.raises(ConfigError, match=rf"column {side} must be binary or string, not struct<a:int>: choose option "
                                          rf"{side}\.format: .*avro.*; or write to_json\({side}\)"):
        check(schema(**{"value": StringType(), side: row}), topic="t")
    with pytest.raises(ConfigError, match=f"column {side} must be binary or string, not int: cast it"):
        check(schema(**{"value": StringType(), side: IntegerType()}), topic="t")


@pytest.mark.parametrize("form", ["avro", "json", "json-schema", "protobuf"])
@pytest.mark.parametrize(("kind", "said"), [
    (VariantType(), "field value is a variant, which no format has: write its text: to_json(...) or CAST(... AS STR"),
    (schema(a=schema(v=VariantType())), "field value.a.v is a variant"),
    (schema(a=ArrayType(VariantType())), "field value.a.element is a variant"),
    (schema(a=MapType(StringType(), ArrayType(VariantType()))), "field value.a.value.element is a variant"),
    (schema(tags=ArrayType(NullType(), False)), "field value.tags.element has no type (void): cast what it is in, for "
     "example array() as CAST(array() AS ARRAY<STRING>)"),
    (schema(a=MapType(NullType(), NullType(), False)), "field value.a.key has no type (void): cast"),
    (schema(a=schema(b=YearMonthIntervalType())), "field value.a.b is interval year to month, which no format has: "
     "cast it, for example to string"),
])
def test_types_that_no_format_has_are_refused_by_the_path_of_their_field(
    form: str, kind: DataType, said: str
) -> None:
    for topic in ({"topic": "t"}, {}):
        with pytest.raises(ConfigError) as caught:
            check(schema(value=kind, topic=StringType()), value_format=form, **topic)
        assert said in str(caught.value)


def test_a_value_without_a_type_that_is_always_null_may_be_written() -> None:
    check(schema(value=schema(a=NullType(), b=ArrayType(NullType()))), topic="t", value_format="avro")


def test_a_registry_that_is_away_by_then_does_not_stop_a_commit_or_an_abort() -> None:
    source = HeadraceSource({**SERVERS, "topic": "t", "value.format": "avro", "schema.registry.max.retries": "0",
                             "schema.registry.url": "http://127.0.0.1:1"})
    columns = schema(value=schema(a=IntegerType()))
    with pytest.raises(SchemaRegistryError):
        source.streamWriter(columns, False)
    sent = pickle.loads(pickle.dumps(source)).streamWriter(columns, False)  # as Spark does it, to end a micro-batch
    sent.commit([], 0)
    sent.abort([], 0)


def test_a_task_that_was_handed_no_rows_as_with_a_continuous_trigger_is_not_committed() -> None:
    writer = HeadraceSource({**SERVERS, "topic": "t"}).streamWriter(schema(value=StringType()), False)
    writer.commit([Written(0), Written(3)], 0)
    with pytest.raises(ConfigError, match="no Python sink can have: trigger by processingTime or availableNow"):
        writer.commit([Written(3), None], 1)
    writer.abort([None], 1)
