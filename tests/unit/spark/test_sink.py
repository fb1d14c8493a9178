"""Which frames the sink takes, and what it hands to the producer."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

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

from headrace.admin import AdminClient
from headrace.errors import ConfigError, SchemaRegistryError
from headrace.frames.topic_reading import read_topic
from headrace.spark.exactly_once import spark_task
from headrace.spark.exactly_once.batch_marker import BatchMarker
from headrace.spark.options import SinkOptions
from headrace.spark.sink import Written, append_rows, check_columns
from headrace.spark.source import HeadraceSource
from headrace.spark.values.spark_types import spark_schema_of
from headrace.testing import EmbeddedBroker

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


def test_rows_that_name_their_topics_go_there_in_their_order() -> None:
    out: Any = Appended()
    batch = pa.RecordBatch.from_pydict({
        "key": pa.array([b"a", b"b", b"c", b"d"]), "value": pa.array([b"1", b"2", b"3", b"4"]),
        "topic": pa.array(["y", "x", "y", "x"]), "partition": pa.array([0, 1, 2, None], pa.int32())})
    append_rows(out, batch, SinkOptions.parse(SERVERS))
    assert out.calls == [("y", [[b"a", b"c"], [b"1", b"3"], [0, 2], None]),
                         ("x", [[b"b", b"d"], [b"2", b"4"], [1, None], None])]


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


def test_a_key_with_a_format_may_have_columns_within_it() -> None:
    check(schema(value=StringType(), key=schema(a=IntegerType())), topic="t", key_format="avro")
    with pytest.raises(ConfigError, match=r"option key\.format is avro, and the frame has no column key"):
        check(schema(value=StringType()), topic="t", key_format="avro")


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


class Writes:
    """What Spark does with a writer: planned here, pickled for the tasks, and ended in a process of its own."""

    def __init__(
        self, broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, *, streaming: bool, **given: str
    ) -> None:
        self.servers, self.streaming, self._monkeypatch = broker.bootstrap_servers, streaming, monkeypatch
        self.topic = f"sink-{uuid4().hex[:8]}"
        broker.create_topic(self.topic, 2)
        self.source = HeadraceSource({"kafka.bootstrap.servers": self.servers, "topic": self.topic, **given})

    def planned(self) -> tuple[Any, list[bytes]]:
        """The driver's writer, and what is sent to tasks; Spark pickles it twice."""
        columns = schema(value=StringType(), partition=IntegerType())
        kind = self.source.streamWriter if self.streaming else self.source.writer
        writer = kind(columns, False)
        return writer, [pickle.dumps(writer) for _ in range(2)]

    def task(self, sent: bytes, batch: int, partition: int, values: list[str]) -> Written:
        marker = BatchMarker("q", batch) if self.streaming else None
        self._monkeypatch.setattr(
            spark_task, "task_identity", lambda: spark_task.TaskIdentity(marker, partition, 0, partition, False))
        rows = pa.RecordBatch.from_pydict({
            "value": values, "partition": pa.array([partition] * len(values), pa.int32())})
        report = pickle.loads(sent).write(iter([rows]))
        assert isinstance(report, Written)
        return report

    def run(self, batch: int, *, abort: bool = False) -> list[Written]:
        _, (sent, again) = self.planned()
        reports = [self.task(sent, batch, 0, ["a", "b"]), self.task(again, batch, 1, ["c"])]
        ended = pickle.loads(pickle.dumps(self.source))
        writer = ended.streamWriter(None, False) if self.streaming else ended.writer(schema(value=StringType()), False)
        number = (batch,) if self.streaming else ()
        (writer.abort if abort else writer.commit)(reports, *number)
        return reports

    def stored(self) -> list[str]:
        found = read_topic(self.topic, {"bootstrap.servers": self.servers}, columns=["value"], format="arrow")
        return sorted(value.decode() for value in found.column("value").to_pylist())

    def open_transactions(self) -> list[str]:
        with AdminClient({"bootstrap.servers": self.servers}) as admin:
            return [each.transactional_id for each in admin.list_transactions(states=["Ongoing"]).result(10)]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


ONCE = {"delivery.guarantee": "exactly_once"}


@pytest.mark.parametrize("streaming", [False, True])
def test_rows_are_there_when_tasks_have_ended_at_least_once_and_when_all_is_committed_exactly_once(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, streaming: bool
) -> None:
    often = Writes(broker, monkeypatch, streaming=streaming)
    assert [each.rows for each in often.run(0, abort=True)] == [2, 1]
    assert often.stored() == ["a", "b", "c"]
    once = Writes(broker, monkeypatch, streaming=streaming, **ONCE, sinkId=f"once-{streaming}")
    assert [each.rows for each in once.run(0)] == [2, 1]
    assert once.stored() == ["a", "b", "c"]


@pytest.mark.parametrize("streaming", [False, True])
def test_rows_of_a_write_that_spark_gives_up_are_aborted_and_keep_no_reader_waiting(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, streaming: bool
) -> None:
    write = Writes(broker, monkeypatch, streaming=streaming, **ONCE, sinkId=f"given-up-{streaming}")
    write.run(0, abort=True)
    assert write.open_transactions() == []
    assert write.stored() == []


def test_a_micro_batch_that_runs_again_is_passed_over_by_its_tasks_and_by_the_commit(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Writes(broker, monkeypatch, streaming=True, **ONCE, sinkId="again")
    write.run(0)
    assert [each.rows for each in write.run(0)] == [0, 0]
    write.run(0, abort=True)
    assert write.stored() == ["a", "b", "c"]


def test_a_writer_begins_one_transaction_however_often_it_is_sent_and_none_at_least_once(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Writes(broker, monkeypatch, streaming=True, **ONCE, sinkId="sent")
    writer, sent = write.planned()
    begun = [pickle.loads(each)._begun.transaction for each in sent]
    assert begun[0] == begun[1] == writer._begun.transaction
    _, sent = Writes(broker, monkeypatch, streaming=True).planned()
    assert [pickle.loads(each)._begun for each in sent] == [None, None]


def test_a_stream_without_a_name_is_refused_when_it_is_planned() -> None:
    with pytest.raises(ConfigError, match="exactly_once needs a name for this stream"):
        HeadraceSource({**SERVERS, "topic": "t", **ONCE}).streamWriter(schema(value=StringType()), False)
