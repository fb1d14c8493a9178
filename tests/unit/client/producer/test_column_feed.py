"""`produce_arrow()` and `produce_batches()`: whatever has the Arrow PyCapsule protocol, whole and in order."""

import asyncio
import gc
import itertools
import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Consumer, KafkaError, KafkaException, Producer, ProducerInterceptor, TopicPartition
from headrace.aio import AIOProducer
from headrace.broker.settings import BrokerSettings
from headrace.buffers import BufferPool, RecordAccumulator
from headrace.client.producer.column_feed import (
    ColumnFeed,
    ColumnMapping,
    RowRange,
    RowsResult,
    StoredRows,
    records_of,
)
from headrace.errors import BufferFullError, ClientClosedError
from headrace.testing import EmbeddedBroker
from tests.support.ctrl_c import ctrl_c_after

NAMES = (f"topic-{n}" for n in itertools.count())
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
DEAD = {"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def topic(broker):
    name = next(NAMES)
    broker.create_topic(name, 3)
    return name


@pytest.fixture
def producer(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as made:
        yield made


def library(name):
    """A library of the dev extra."""
    return import_module(name) if os.environ.get("CI") else pytest.importorskip(name)


def read(broker, topic, count):
    """The records of all partitions, ordered by partition and offset."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False,
                         "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, p, 0) for p in range(3)])
    found: list[Any] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), 10)
        assert messages, f"{len(found)} of {count}"
        found += messages
    consumer.close()
    return sorted(found, key=lambda m: (m.partition(), m.offset()))


class Stream:
    """Another library's table: it has the protocol and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class Array:
    """Another library's batch."""

    def __init__(self, table):
        (self._batch,) = table.to_batches()

    def __arrow_c_array__(self, requested_schema=None):
        return self._batch.__arrow_c_array__(requested_schema)


def full_table():
    stamp = datetime(2024, 5, 6, 7, 8, 9, 123456, UTC)
    return pa.table({
        "extra": [1, 2, 3],
        "value": pa.array(["värld", None, ""], pa.string()),
        "key": pa.array([b"k", b"gone", None], pa.binary()),
        "headers": pa.array([[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, []], HEADERS),
        "timestamp": pa.array([stamp] * 3, pa.timestamp("us", tz="UTC")),
        "partition": pa.array([0, 1, 2], pa.int64()),
    })


def check_full(messages):
    assert [(m.partition(), m.key(), m.value(), m.headers()) for m in messages] == [
        (0, b"k", "värld".encode(), [("h", b"1"), ("h", None)]), (1, b"gone", None, None), (2, None, b"", None)]
    assert {m.timestamp() for m in messages} == {(1, 1714979289123)}


@pytest.mark.parametrize("given", [
    lambda table: table,
    lambda table: table.to_batches()[0],
    lambda table: table.to_reader(),
    Stream,
    Array,
    lambda table: pa.concat_tables([table.slice(0, 1), table.slice(1)]),
], ids=["table", "batch", "reader", "stream capsule", "array capsule", "chunks"])
def test_every_column_called_like_a_role_arrives(broker, topic, producer, given):
    assert producer.produce_arrow(topic, given(full_table())).result(10) == 3
    check_full(read(broker, topic, 3))


def test_polars_pandas_and_duckdb(broker, producer):
    duckdb, pandas, polars = (library(name) for name in ("duckdb", "pandas", "polars"))
    rows = {"key": [b"a", None], "value": ["x", "y"], "partition": [1, 1]}
    connection = duckdb.connect()
    for made in (polars.DataFrame(rows), pandas.DataFrame(rows),
                 connection.sql("select 'a'::blob as key, 'x' as value, 1 as partition union all select null, 'y', 1")):
        name = next(NAMES)
        broker.create_topic(name, 3)
        assert producer.produce_arrow(name, made).result(10) == 2
        found = [(m.key(), m.value(), m.partition()) for m in read(broker, name, 2)]
        assert sorted(found, key=str) == sorted([(b"a", b"x", 1), (None, b"y", 1)], key=str)


@pytest.mark.parametrize("kind", [
    pa.large_list(HEADERS.value_type), pa.map_(pa.string(), pa.binary()), pa.list_view(HEADERS.value_type),
    pa.list_(pa.struct([("value", pa.binary()), ("key", pa.string())])),
    pa.list_(pa.struct([("name", pa.string_view()), ("content", pa.string())])),
], ids=str)
def test_layouts_of_headers(broker, topic, producer, kind):
    rows: list[Any] = [[("a", b"1")], None, [("b", b"2"), ("c", None)]]
    if not pa.types.is_map(kind):
        names = [field.name for field in kind.value_type]
        first, second = reversed(names) if names == ["value", "key"] else names
        rows = [None if row is None else [{first: n, second: v} for n, v in row] for row in rows]
    headers = pa.array(rows, kind)
    table = pa.table({"v": pa.array(["0", "1", "2"], pa.string_view()), "h": headers, "p": [0, 0, 0]})
    for part in (table, table.slice(2)):
        assert producer.produce_arrow(topic, part, value="v", headers="h", partition="p").result(10) == len(part)
    assert [m.headers() for m in read(broker, topic, 4)] == [
        [("a", b"1")], None, [("b", b"2"), ("c", None)], [("b", b"2"), ("c", None)]]


@pytest.mark.parametrize(("stamps", "expected"), [
    (pa.array([1_700_000_000], pa.timestamp("s")), 1_700_000_000_000),
    (pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", tz="Europe/Berlin")), 1_700_000_000_123),
    (pa.array([1_700_000_000_123], pa.uint64()), 1_700_000_000_123),
], ids=["s", "ns", "int"])
def test_timestamps_of_any_unit(broker, topic, producer, stamps, expected):
    producer.produce_arrow(topic, pa.table({"value": ["x"], "timestamp": stamps})).result(10)
    assert read(broker, topic, 1)[0].timestamp() == (1, expected)


def test_rows_without_a_timestamp_are_of_now_and_those_without_a_partition_follow_the_key(broker, topic, producer):
    before = time.time() * 1000 - 5
    table = pa.table({"value": ["x"] * 50, "key": ["same"] * 50, "timestamp": pa.array([None] * 50, pa.int64()),
                      "partition": pa.nulls(50)})
    producer.produce_arrow(topic, table).result(10)
    messages = read(broker, topic, 50)
    assert all(before <= m.timestamp()[1] <= time.time() * 1000 + 5 for m in messages)
    assert len({m.partition() for m in messages}) == 1


def test_none_takes_no_column_and_other_names_others(broker, topic, producer):
    table = pa.table({"value": ["v"], "key": [1.5], "partition": ["north"], "other": [b"o"]})
    with pytest.raises(TypeError, match=r"column 'key' cannot be the key: it is double, .*key=None"):
        producer.produce_arrow(topic, table)
    producer.produce_arrow(topic, table, value="other", key=None, partition=None).result(10)
    (message,) = read(broker, topic, 1)
    assert (message.value(), message.key()) == (b"o", None)


@pytest.mark.parametrize(("table", "roles", "error", "text"), [
    ({"v": ["x"]}, {}, ValueError, "there is no column 'value' for value.*the columns are v$"),
    ({"value": ["x"]}, {"key": "Key"}, ValueError, "there is no column 'Key' for key.*the columns are value$"),
    ({"value": [1]}, {}, TypeError, "column 'value' cannot be the value: it is int64, and must be binary or string"),
    ({"value": ["x"], "partition": [1.0]}, {}, TypeError, "column 'partition' .* it is double, .* partition=None"),
    ({"value": ["x"], "timestamp": ["y"]}, {}, TypeError, "column 'timestamp' .* it is string, and must be a time"),
    ({"value": ["x"], "headers": [["y"]]}, {}, TypeError, "column 'headers' .* must be a list of structs"),
    ({"value": ["x"]}, {"key": 1}, TypeError, "key takes the name of a column, not 1"),
    ({"value": ["x"]}, {"value": None}, TypeError, "value takes the name of a column, not None"),
    ({"value": ["x"], "partition": [1 << 40]}, {}, TypeError, "column partition must be integers"),
], ids=str)
def test_what_cannot_be_sent_is_named_with_a_remedy(topic, producer, table, roles, error, text):
    with pytest.raises(error, match=text):
        producer.produce_arrow(topic, pa.table(table), **roles)


def test_two_columns_of_one_name_and_what_is_no_table_are_refused(topic, producer):
    twice = pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"])], names=["value", "value"])
    with pytest.raises(ValueError, match="more than one column 'value'"):
        producer.produce_arrow(topic, twice)
    with pytest.raises(TypeError, match="dict has no __arrow_c_stream__"):
        producer.produce_arrow(topic, {"value": ["x"]})
    with pytest.raises(TypeError, match="is no table of named columns"):
        producer.produce_arrow(topic, pa.chunked_array([["x"]]))
    with pytest.raises(KafkaException, match="invalid topic"):
        producer.produce_arrow("a b", pa.table({"value": ["x"]}))


def test_no_rows_are_stored_at_once(topic, producer):
    assert producer.produce_arrow(topic, pa.table({"value": pa.array([], pa.string())})).result(0) == 0
    assert producer.produce_batches(topic, []).result(0) == 0


def test_batches_are_read_one_after_the_other_while_the_buffer_is_small(broker, topic):
    at_most = []

    def batches():
        for start in range(0, 20_000, 1000):
            at_most.append(len(producer))
            yield pa.record_batch({"value": [str(n) for n in range(start, start + 1000)], "partition": [2] * 1000})

    with Producer({"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 700}) as producer:
        assert producer.produce_batches(topic, batches()).result(20) == 20_000
    assert max(at_most) <= 700
    assert [int(m.value()) for m in read(broker, topic, 20_000)] == list(range(20_000))


def test_records_between_rows_have_their_own_reports(broker, topic, producer):
    told = []
    table = pa.table({"value": ["row"] * 10, "partition": [0] * 10})
    futures = []
    for n in range(5):
        producer.produce(topic, f"record {n}", partition=0,
                         callback=lambda e, m: told.append((e, m.value(), m.offset())))
        futures.append(producer.produce_arrow(topic, table))
    assert [future.result(10) for future in futures] == [10] * 5
    producer.flush()
    assert told == [(None, b"record %d" % n, 11 * n) for n in range(5)]


def test_callbacks_that_hold_the_buffer_are_called_while_rows_wait(broker, topic):
    told = []
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 10}) as producer:
        for _ in range(10):
            producer.produce(topic, b"v", callback=lambda e, m: told.append(e))
        assert producer.produce_arrow(topic, pa.table({"value": ["x"] * 25})).result(10) == 25
        assert told == [None] * 10


def test_a_bad_row_is_named_and_those_before_it_are_stored(broker, topic, producer):
    table = pa.table({"value": ["x"] * 5, "partition": [0, 0, 0, 9, 0]})
    with pytest.raises(KafkaException, match=f"{topic} has no partition 9: it has 3") as refused:
        producer.produce_arrow(topic, table)
    assert refused.value.__notes__ == [
        f"at row 3, counted from 0: the 3 rows for {topic} before it were accepted and are on their way"]
    with pytest.raises(ValueError, match="timestamp must not be negative: -5"):
        producer.produce_arrow(topic, pa.table({"value": ["x", "y"], "timestamp": [1, -5]}))
    assert producer.flush(10) == 0
    assert len(read(broker, topic, 4)) == 4


def test_lost_rows_fail_the_future_with_their_number(broker, topic):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 60_000})
    first = producer.produce_arrow(topic, pa.table({"value": ["x"] * 3}))
    second = producer.produce_arrow(topic, pa.table({"value": ["y"] * 4}))
    producer.purge()
    for future, count in ((first, 3), (second, 4)):
        with pytest.raises(KafkaException, match=f"{count} of {count} rows for {topic} were not stored") as lost:
            future.result(10)
        assert lost.value.error == KafkaError._PURGE_QUEUE
    producer.close()


def test_losses_that_nobody_asks_for_are_logged(broker, topic, caplog):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 60_000})
    with caplog.at_level(logging.ERROR, "headrace"):
        producer.produce_arrow(topic, pa.table({"value": ["x"] * 3}))
        with pytest.raises(KafkaException):
            producer.produce_arrow(topic, pa.table({"value": ["x"] * 5, "partition": [0, 0, 9, 0, 0]}))
        producer.purge()
        producer.close()
        gc.collect()
    assert "nobody asked what became of the rows" in caplog.text
    assert f"3 of 3 rows for {topic} were not stored" in caplog.text
    assert f"2 rows for {topic}, accepted before their call failed, were not stored" in caplog.text


def test_a_full_buffer_is_an_error_after_max_block_ms():
    table = pa.table({"value": ["x"] * 50})
    with EmbeddedBroker(topics={"t": 1}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 20,
                             "max.block.ms": 500, "error_cb": lambda error: None})
        producer.produce_arrow("t", table).result(10)
    with pytest.raises(BufferFullError, match=r"20 messages wait .* no room in 0\.5 s") as full:
        producer.produce_arrow("t", table)
    assert full.value.__notes__ == [
        "at row 20, counted from 0: the 20 rows for t before it were accepted and are on their way"]
    producer.purge()
    producer.close()


def test_an_unknown_topic_is_waited_for(broker):
    name = next(NAMES)
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "max.block.ms": 10_000}) as producer:
        timer = threading.Timer(0.3, broker.create_topic, (name, 3))
        timer.start()
        assert producer.produce_arrow(name, pa.table({"value": ["x"]})).result(10) == 1
        timer.join()
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "max.block.ms": 200}) as producer, \
            pytest.raises(KafkaException) as unknown:
        producer.produce_arrow("nowhere", pa.table({"value": ["x"]}))
    assert unknown.value.error in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)


def test_a_closed_producer_and_one_closed_meanwhile_take_no_rows(broker, topic):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    def batches():
        yield pa.record_batch({"value": ["x"]})
        producer.close()
        yield pa.record_batch({"value": ["y"]})

    with pytest.raises(ClientClosedError):
        producer.produce_batches(topic, batches())
    with pytest.raises(ClientClosedError):
        producer.produce_arrow(topic, pa.table({"value": ["x"]}))
    assert [m.value() for m in read(broker, topic, 1)] == [b"x"]


def test_ctrl_c_ends_the_wait():
    with Producer(DEAD) as producer, pytest.raises(KeyboardInterrupt), ctrl_c_after(0.3):
        producer.produce_arrow("t", pa.table({"value": ["x"]}))


class Seeing(ProducerInterceptor):
    def __init__(self):
        self.sent, self.acknowledged = [], []

    def on_send(self, record):
        self.sent.append(record)
        return record

    def on_acknowledgement(self, metadata, error):
        self.acknowledged.append((metadata.partition, error))


def test_interceptors_see_each_row(broker, topic):
    seeing = Seeing()
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "interceptor.classes": [seeing]}) as producer:
        assert producer.produce_arrow(topic, full_table()).result(10) == 3
    assert [(r.key, r.partition, r.timestamp_ms) for r in seeing.sent] == [
        (b"k", 0, 1714979289123), (b"gone", 1, 1714979289123), (None, 2, 1714979289123)]
    assert sorted(seeing.acknowledged) == [(0, None), (1, None), (2, None)]
    check_full(read(broker, topic, 3))


def test_a_partitioner_in_python_chooses_for_each_row(broker, topic):
    conf = {"bootstrap.servers": broker.bootstrap_servers, "partitioner": lambda topic, key, value, n: int(value) % n}
    with Producer(conf) as producer:
        table = pa.table({"value": ["0", "1", "2", "4"], "headers": pa.array([[("a", b"1")]] * 4,
                                                                             pa.map_(pa.string(), pa.binary()))})
        assert producer.produce_arrow(topic, table).result(10) == 4
    assert [(m.partition(), m.value(), m.headers()) for m in read(broker, topic, 4)] == [
        (p, v, [("a", b"1")]) for p, v in ((0, b"0"), (1, b"1"), (1, b"4"), (2, b"2"))]


@pytest.mark.parametrize("by_rows", [False, True], ids=["columns", "rows"])
def test_asyncio(broker, topic, by_rows):
    async def run():
        conf: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 50}
        if by_rows:
            conf["interceptor.classes"] = [Seeing()]
        async with AIOProducer(conf) as producer:
            table = pa.table({"value": [str(n) for n in range(500)], "partition": [1] * 500})
            future = await producer.produce_arrow(topic, table)
            assert await future == 500
            assert await (await producer.produce_batches(topic, table.slice(0, 10).to_batches())) == 10
            with pytest.raises(KafkaException, match="has no partition 7"):
                await producer.produce_arrow(topic, pa.table({"value": ["x"], "partition": [7]}))
            lost = await producer.produce_arrow(topic, pa.table({"value": ["x"] * 5}))
            await producer.purge()
            with pytest.raises(KafkaException, match="5 of 5 rows"):
                await lost

    asyncio.run(run())
    assert [int(m.value()) for m in read(broker, topic, 510)] == [*range(500), *range(10)]


# The parts, without a producer


@pytest.mark.parametrize(("mapping", "roles"), [
    (ColumnMapping(), {"value": 0, "key": 1}), (ColumnMapping(key=None), {"value": 0}),
    (ColumnMapping("other"), {"value": 2, "key": 1}), (ColumnMapping("key", "value"), {"value": 1, "key": 0}),
    (ColumnMapping(partition="number"), {"value": 0, "key": 1, "partition": 3}),
])
def test_roles_are_given_to_columns_by_their_names(mapping, roles):
    schema = pa.schema([("value", pa.binary()), ("key", pa.string()), ("other", pa.binary()), ("number", pa.int32())])
    assert mapping.resolve(schema) == roles


@pytest.mark.parametrize(("mapping", "error", "text"), [
    (ColumnMapping("nope"), ValueError, "there is no column 'nope' for value: name the right one with value=..."),
    (ColumnMapping("number"), TypeError, "column 'number' cannot be the value: it is int32, and must be binary"),
    (ColumnMapping(timestamp="value"), TypeError, "column 'value' cannot be the timestamp"),
    (ColumnMapping(headers="number"), TypeError, "column 'number' cannot be the headers"),
    (ColumnMapping(partition="value"), TypeError, "must be integers"),
    (ColumnMapping(5), TypeError, "value takes the name of a column, not 5"),
])
def test_a_role_that_no_column_can_have_is_named_with_a_remedy(mapping, error, text):
    schema = pa.schema([("value", pa.binary()), ("number", pa.int32())])
    with pytest.raises(error, match=re.escape(text)):
        mapping.resolve(schema)


def resolved():
    """A `RowsResult`, and what it was resolved with."""
    told = []
    return RowsResult("t", lambda rows, error: told.append((rows, error and error.error))), told


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5)), max_size=6), st.integers(0, 6))
def test_rows_are_settled_once_all_that_were_accepted_are_stored_or_given_up(outcomes, expected_after):
    report, told = resolved()
    error = KafkaError(KafkaError._MSG_TIMED_OUT)
    total = sum(rows for _, rows in outcomes)
    for index, (stored, rows) in enumerate([*outcomes, (True, 0)]):
        if index == min(expected_after, len(outcomes)):
            report.expect(total)
        if rows:
            assert told == [] or total == 0
            report.on_rows_done(None if stored else error, rows)
    good = sum(rows for stored, rows in outcomes if stored)
    ((rows, why),) = told
    assert (rows, why) == (good, None if good == total else error)


def test_the_first_error_is_the_one_that_is_told_with_the_counts():
    report, told = resolved()
    report.on_rows_done(KafkaError(KafkaError._MSG_TIMED_OUT, "late"), 2)
    report.on_rows_done(KafkaError(KafkaError._PURGE_QUEUE), 1)
    report.on_rows_done(None, 4)
    report.expect(7)
    ((rows, error),) = told
    assert (rows, error) == (4, KafkaError._MSG_TIMED_OUT)
    assert error.str() == "3 of 7 rows for t were not stored, 4 were; the first error: late"


def test_rows_of_a_call_that_failed_half_way_are_logged_when_they_are_lost(caplog):
    report, told = resolved()
    report.on_rows_done(None, 1)
    report.give_up()
    assert caplog.records == []
    report.on_rows_done(KafkaError(KafkaError._MSG_TIMED_OUT, "late"), 3)
    assert "3 rows for t, accepted before their call failed, were not stored" in caplog.text
    assert told == []


def test_an_error_of_rows_that_nobody_asks_for_is_logged_and_another_is_not(caplog):
    for ask in (True, False):
        stored = StoredRows("t")
        stored.resolve(1, KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT, "late")))
        if ask:
            assert isinstance(stored.exception(0), KafkaException)
        del stored
        gc.collect()
        assert ("nobody asked what became of the rows" in caplog.text) is not ask
    asked = StoredRows("t")
    assert not asked.cancel()  # what was sent cannot be taken back
    asked.resolve(5, None)
    assert asked.result(0) == 5


def test_rows_are_appended_as_far_as_there_is_room_and_later_the_rest():
    rows = RowRange({"value": pa.array([b"%d" % number for number in range(5)])})
    pool = BufferPool(3, 100_000)
    buffer = RecordAccumulator("t", 1, pool)
    assert (rows.append_to(buffer), rows.done, rows.left) == (3, 3, 2)
    assert rows.append_to(buffer) == 0
    (opened,) = buffer.open_batches.ready(float("inf"))
    pool.release(opened.count, opened.cost_bytes)
    assert (rows.append_to(buffer), rows.left) == (2, 0)


def test_rows_become_records_one_by_one():
    arrays = {"value": pa.array([b"a", None]), "key": pa.array(["k", None]), "partition": pa.array([1, None]),
              "timestamp": pa.array([1_500_000, None], pa.timestamp("us")),
              "headers": pa.array([[{"key": "h", "value": b"x"}], None], HEADERS)}
    first, second = records_of("t", arrays)
    assert (first.topic, first.value, first.key, first.partition, first.timestamp_ms, first.headers) == (
        "t", b"a", "k", 1, 1500, [("h", b"x")])
    assert (second.value, second.key, second.partition, second.timestamp_ms, second.headers) == (
        None, None, None, None, [])


@pytest.mark.parametrize("header", [{"key": None, "value": b"x"}, None])
def test_no_record_is_made_of_a_row_with_a_header_that_has_no_name(header):
    arrays = {"value": pa.array([b"a"]), "headers": pa.array([[header]], HEADERS)}
    with pytest.raises(ValueError, match="name cannot be null"):
        list(records_of("t", arrays))


def test_tables_of_one_call_may_have_their_columns_in_another_order():
    report, _ = resolved()
    feed = ColumnFeed("t", ColumnMapping(), report)
    tables = [pa.table({"value": [b"a"], "key": [b"k"]}), pa.table({"key": [b"l"], "value": [b"b"]})]
    assert [(part["value"].to_pylist(), part["key"].to_pylist()) for part in feed.arrays(tables)] == [
        ([b"a"], [b"k"]), ([b"b"], [b"l"])]


def test_a_call_that_fails_says_how_many_rows_are_on_their_way():
    report, told = resolved()
    feed = ColumnFeed("t", ColumnMapping(), report)
    feed.accepted = 3
    with pytest.raises(ValueError, match="mine") as failed, feed.accepting():
        raise ValueError("mine")
    assert failed.value.__notes__ == [
        "at row 3, counted from 0: the 3 rows for t before it were accepted and are on their way"]
    assert told == []
    report, told = resolved()
    with ColumnFeed("t", ColumnMapping(), report).accepting():
        pass
    assert told == [(0, None)]


def test_a_topic_that_cannot_be_is_refused_before_a_table_is_read():
    with pytest.raises(KafkaException, match="invalid topic"):
        ColumnFeed("a b", ColumnMapping(), resolved()[0])
