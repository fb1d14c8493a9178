"""Columns from both consumers: the same records as messages, positions and commits alike, and nothing lost."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from headrace import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from headrace.aio import AIOConsumer
from headrace.records import implementation
from headrace.records.columns.arrow_batch import ArrowBatch
from headrace.testing import EmbeddedBroker

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2, "codecs": 1, "kept": 1, "aborted": 1, "busy": 2}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for i in range(10):
                headers: Any = {"h": b"1"} if i % 3 else None
                producer.produce("t", value=b"%d" % i if i % 4 else None, key=b"k" if i % 2 else None,
                                 partition=i % 2, timestamp=1000 + i, headers=headers)
            assert producer.flush(10) == 0
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            with Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}) as producer:
                for i in range(100):
                    producer.produce("codecs", value=b"%d" % i)
                assert producer.flush(10) == 0
        yield broker


def properties(broker: EmbeddedBroker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50,
            **{name if name == "on_commit" else name.replace("_", "."): value for name, value in more.items()}}


def table(batch: ArrowBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.record_batch(batch).to_pylist()
    return rows


def values(batch: ArrowBatch) -> list[bytes]:
    return [row["value"] for row in table(batch)]


def test_columns_say_what_messages_say(broker: EmbeddedBroker) -> None:
    everything = [TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)]
    with Consumer(properties(broker)) as reader:
        reader.assign(everything)
        batch = reader.consume_arrow(10, 5)
        for tp in everything:
            reader.seek(tp)
        messages = reader.consume(10, 5)

    def place(row: Any) -> tuple[int, int]:
        return row["partition"], row["offset"]

    rows = table(batch)
    assert len(rows) == 10
    for row in rows:
        row["timestamp"] = (row.pop("timestamp_type"), round(row["timestamp"].timestamp() * 1000))
        row["headers"] = row["headers"] and [(header["name"], header["value"]) for header in row["headers"]]
    assert sorted(rows, key=place) == sorted(
        ({"topic": m.topic(), "partition": m.partition(), "offset": m.offset(), "timestamp": m.timestamp(),
          "key": m.key(), "value": m.value(), "headers": m.headers()} for m in messages), key=place)


def test_columns_stop_at_so_many_records_or_when_time_is_up(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker)) as reader:
        reader.assign([TopicPartition("codecs", 0, 0)])
        assert [len(reader.consume_arrow(count, 5)) for count in (1, 99, 250, 0)] == [1, 99, 250, 0]
        assert values(reader.consume_arrow(1000, 0.3)) == [b"%d" % i for i in range(50, 100)] + [
            b"%d" % i for i in range(100)]
        assert reader.position([TopicPartition("codecs", 0)])[0].offset == 500
        assert len(reader.consume_arrow(1000, 0)) == 0
        for bad in (-1, 1_000_001):
            with pytest.raises(ValueError, match="num_messages"):
                reader.consume_arrow(bad)
        with pytest.raises(TypeError):
            reader.consume_arrow("9")  # type: ignore[arg-type]


def test_messages_and_columns_are_read_by_turns_in_the_order_of_the_partition(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker)) as reader:
        reader.assign([TopicPartition("codecs", 0, 95)])
        first = reader.poll(5)
        assert first is not None
        read = [first.value(), *values(reader.consume_arrow(7, 5)), *[m.value() for m in reader.consume(3, 5)]]
        for _, message in zip(range(2), reader, strict=False):
            read.append(message.value())
        read += values(reader.consume_arrow(4, 5))
    assert read[:13] == [b"%d" % (i % 100) for i in range(95, 108)]


def test_offsets_are_stored_and_committed_as_for_messages(broker: EmbeddedBroker) -> None:
    config = properties(broker, group_id="columns", enable_auto_commit=False)
    with Consumer(config) as member:
        member.subscribe(["codecs"])
        assert len(member.consume_arrow(123, 20)) == 123
        committed = member.commit(asynchronous=False)
        assert committed is not None
        assert [(tp.topic, tp.offset) for tp in committed] == [("codecs", 123)]
    with Consumer(properties(broker, group_id="columns", auto_commit_interval_ms=50)) as member:
        member.subscribe(["codecs"])
        assert table(member.consume_arrow(10, 20))[0]["offset"] == 123
    with Consumer(config) as member:
        assert member.committed([TopicPartition("codecs", 0)], 10)[0].offset == 133


def test_without_automatic_storing_columns_store_nothing(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker, group_id="by-hand", enable_auto_offset_store=False)) as member:
        member.subscribe(["codecs"])
        assert len(member.consume_arrow(10, 20)) == 10
        with pytest.raises(KafkaException) as raised:
            member.commit(asynchronous=False)
        assert raised.value.error == KafkaError._NO_OFFSET
        member.store_offsets(offsets=[TopicPartition("codecs", 0, 10)])
        member.commit(asynchronous=False)
        assert member.committed([TopicPartition("codecs", 0)], 10)[0].offset == 10


def test_aborted_transactions_and_markers_are_left_out(broker: EmbeddedBroker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "columns"}) as producer:
        producer.init_transactions(10)
        for kept in (True, False, True):
            producer.begin_transaction()
            for i in range(3):
                producer.produce("aborted", value=b"%d of %s" % (i, str(kept).encode()))
            if kept:
                producer.commit_transaction(10)
            else:
                producer.flush(10)
                producer.abort_transaction(10)
    with Consumer(properties(broker)) as reader:
        reader.assign([TopicPartition("aborted", 0, 0)])
        rows = table(reader.consume_arrow(6, 10))
    assert [(row["offset"], row["value"]) for row in rows] == [
        (offset, b"%d of True" % (offset % 4)) for offset in (0, 1, 2, 8, 9, 10)]


def test_a_rebalance_ends_a_call_that_has_records(broker: EmbeddedBroker) -> None:
    assigned: list[int] = []
    config = properties(broker, group_id="moves", heartbeat_interval_ms=100, session_timeout_ms=6000)
    with Consumer(config) as first, Consumer(config) as second:
        first.subscribe(["t"], on_assign=lambda _, tps: assigned.append(len(tps)))
        assert len(first.consume_arrow(10, 20)) == 10
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for partition in (0, 1):
                producer.produce("t", value=b"late", partition=partition)
            assert producer.flush(10) == 0
            over = threading.Event()

            def join_while_the_other_waits() -> None:
                time.sleep(1)
                second.subscribe(["t"])
                while not over.is_set():
                    second.consume(1, 0.1)

            meanwhile = threading.Thread(target=join_while_the_other_waits)
            meanwhile.start()
            batch = first.consume_arrow(1000, 30)
            assert set(values(batch)) == {b"late"}
            assert assigned == [2], "the callbacks of the rebalance wait for the next call"
            while len(assigned) < 2:
                first.consume_arrow(1000, 0.1)
            assert assigned == [2, 1]
            over.set()
            meanwhile.join()


def test_what_was_taken_before_a_callback_raised_comes_again(broker: EmbeddedBroker) -> None:
    class Broken(Exception):
        """Raised by a callback."""

    def fail(*_: object) -> None:
        raise Broken

    with Consumer(properties(broker, group_id="broken", on_commit=fail, enable_auto_commit=False)) as reader:
        reader.assign([TopicPartition("codecs", 0, 0)])
        assert len(reader.consume_arrow(5, 10)) == 5
        threading.Timer(0.3, reader.commit).start()
        with pytest.raises(Broken):
            reader.consume_arrow(100_000, 10)
        rows = table(reader.consume_arrow(3, 10))
        assert [row["offset"] for row in rows] == [5, 6, 7]


def test_the_end_of_a_partition_is_raised_when_asked_for(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker, enable_partition_eof=True)) as reader:
        reader.assign([TopicPartition("codecs", 0, 490)])
        assert len(reader.consume_arrow(100, 0.5)) == 10
        with pytest.raises(KafkaException) as raised:
            reader.consume_arrow(100, 5)
        assert raised.value.error == KafkaError._PARTITION_EOF
        assert len(reader.consume_arrow(100, 0.1)) == 0


def test_batches_come_one_after_the_other_and_none_is_empty(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker)) as reader:
        reader.assign([TopicPartition("codecs", 0, 0)])
        sizes = [len(batch) for _, batch in zip(range(3), reader.consume_batches(200, 0.2), strict=False)]
    assert sizes == [200, 200, 100]


def test_the_asyncio_consumer_gives_columns_and_batches(broker: EmbeddedBroker) -> None:
    async def main() -> list[int]:
        async with AIOConsumer(properties(broker)) as reader:
            await reader.assign([TopicPartition("codecs", 0, 0)])
            sizes = [len(await reader.consume_arrow(10, 5))]
            batches: AsyncIterator[ArrowBatch] = reader.consume_batches(300, 0.2)
            async for batch in batches:
                sizes.append(len(batch))
                if sum(sizes) == 500:
                    break
        return sizes

    assert asyncio.run(main()) == [10, 300, 190]


def test_a_cancelled_wait_for_columns_loses_nothing(broker: EmbeddedBroker) -> None:
    async def main() -> list[int]:
        async with AIOConsumer(properties(broker)) as reader:
            await reader.assign([TopicPartition("codecs", 0, 490)])
            waiting = asyncio.create_task(reader.consume_arrow(100, -1))
            await asyncio.sleep(0.3)
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
            return [row["offset"] for row in table(await reader.consume_arrow(10, 10))]

    assert asyncio.run(main()) == list(range(490, 500))


@pytest.mark.skipif(implementation == "plain", reason="the plain twin makes messages first")
def test_no_python_object_is_made_for_a_record(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker)) as reader:
        reader.assign([TopicPartition("codecs", 0, 0)])
        while len(reader.consume(1, 5)) < 1:
            pass
        few, many = calls_of(reader, 20), calls_of(reader, 400)
    assert many <= few + 120, "as many calls per batch, and none per record"


def calls_of(reader: Consumer, count: int) -> int:
    """Calls of Python functions while so many records are read."""
    called = 0

    def count_calls(frame: Any, event: str, argument: Any) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    sys.setprofile(count_calls)
    try:
        assert len(reader.consume_arrow(count, 5)) == count
    finally:
        sys.setprofile(None)
    return called
