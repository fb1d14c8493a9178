"""What a task reads: its ranges in their order, as columns, and what is left of them when records are gone."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("pyarrow")

from headrace import Producer
from headrace.admin import AdminClient
from headrace.client.consumer import range_reader
from headrace.client.consumer.log_view import LogView
from headrace.client.consumer.range_reader import FetchedRange, OffsetRange, RangeReader
from headrace.errors import SerializationError
from headrace.slotted import replace
from headrace.spark import range_columns
from headrace.spark.options import SourceOptions
from headrace.spark.plan import DataLossError, Range
from headrace.spark.range_columns import read_columns, rows_of
from headrace.testing import EmbeddedBroker
from headrace.types.records import TopicPartition
from tests.unit.records.samples import batch

COUNT, PATIENCE_S = 200, 10


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 3}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, "batch.num.messages": 10}) as out:
            for n in range(COUNT * 3):
                out.produce("t", b"v%d" % n, partition=n % 3)
            assert out.flush(PATIENCE_S) == 0
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_records([TopicPartition("t", 2, 50)])[TopicPartition("t", 2)].result(PATIENCE_S)
        yield broker


def read(broker: EmbeddedBroker, wanted: list[Range], columns: list[str] | None = None, **given: str) -> list[Any]:
    options = SourceOptions.parse({
        "kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "t", "kafkaConsumer.pollTimeoutMs": "500",
        **given}, streaming=False)
    batches = list(read_columns(options, columns or ["partition", "offset"], wanted))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    """A topic of two partitions that a test may delete."""
    name = f"own-{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def told(caplog: pytest.LogCaptureFixture) -> int:
    """How often a loss was written to the log. Readers that are kept for brokers of other tests write to it as well."""
    return sum("as failOnDataLoss is false" in message for message in caplog.messages)


def fill(broker: EmbeddedBroker, topic: str) -> str:
    """Two records for each partition; returns the topic's id."""
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as out:
        for n in range(4):
            out.produce(topic, b"v", partition=n % 2)
        assert out.flush(PATIENCE_S) == 0
    with LogView({"bootstrap.servers": broker.bootstrap_servers}, [topic]) as view:
        return str(view.topics(PATIENCE_S)[topic].topic_id)


def delete(broker: EmbeddedBroker, topic: str) -> None:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.delete_topics([topic])[topic].result(PATIENCE_S)


def expected(*ranges: tuple[int, int, int]) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, start, end in ranges for offset in range(start, end)]


def test_ranges_are_read_in_their_order_and_columns_as_they_are_named(broker: EmbeddedBroker) -> None:
    wanted = [Range("t", 1, 5, 120), Range("t", 0, 0, COUNT), Range("t", 2, 77, 80)]
    assert read(broker, wanted) == expected((1, 5, 120), (0, 0, COUNT), (2, 77, 80))
    assert read(broker, [Range("t", 1, 3, 5)], ["value", "topic"]) == [(b"v10", "t"), (b"v13", "t")]


def test_the_next_task_goes_on_with_the_connections(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    take = range_columns._READERS.take
    monkeypatch.setattr(range_columns._READERS, "take", lambda given: taken.append(take(given)) or taken[-1])
    for start in (1, 2, 3):
        assert read(broker, [Range("t", 0, start, 9)]) == expected((0, start, 9))
    assert len(set(taken)) == 1


def test_records_that_are_gone_fail_the_task_and_are_named_alone(broker: EmbeddedBroker) -> None:
    with pytest.raises(DataLossError, match=r"of t\[2\] 10\.\.50 are gone.*Set failOnDataLoss to false") as lost:
        read(broker, [Range("t", 2, 10, 60), Range("t", 0, 0, 20)])
    assert "auto.offset.reset" not in str(lost.value)  # nor seek(): there is no such thing in Spark


def test_without_that_each_record_that_is_left_comes_once_and_the_loss_is_logged(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = [Range("t", 0, 0, 20), Range("t", 2, 10, 60), Range("t", 1, 7, 9)]
    found = read(broker, wanted, failOnDataLoss="false")
    assert found == expected((0, 0, 20), (2, 50, 60), (1, 7, 9))
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert caplog.messages[0].startswith("records of t[2] 10..50 are gone")


def test_an_end_that_was_cut_off_is_left_out(broker: EmbeddedBroker) -> None:
    with pytest.raises(DataLossError):
        read(broker, [Range("t", 1, COUNT - 2, COUNT + 5)])
    found = read(broker, [Range("t", 1, COUNT - 2, COUNT + 5)], failOnDataLoss="false")
    assert found == expected((1, COUNT - 2, COUNT))


def test_nothing_is_read_of_another_topic_that_has_the_name(broker: EmbeddedBroker) -> None:
    wanted = [Range("t", 0, 0, 20, str(uuid4()))]
    with pytest.raises(DataLossError, match="made anew") as lost:
        read(broker, wanted)
    assert "auto.offset.reset" not in str(lost.value)
    assert read(broker, wanted, failOnDataLoss="false") == []


def test_a_topic_that_is_made_anew_again_and_again_is_read_by_each_task(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    take = range_columns._READERS.take
    monkeypatch.setattr(range_columns._READERS, "take", lambda given: taken.append(take(given)) or taken[-1])
    for _ in range(3):
        assert read(broker, [Range(topic, 0, 0, 2, fill(broker, topic))], subscribe=topic) == expected((0, 0, 2))
        delete(broker, topic)
        broker.create_topic(topic, 2)
    assert len(taken) == 3
    assert len(set(taken)) == 1


@pytest.mark.parametrize("is_known", [True, False], ids=["the reader knew it", "it did not"])
def test_a_topic_that_was_deleted_since_is_lost_and_not_late(
    broker: EmbeddedBroker, topic: str, caplog: pytest.LogCaptureFixture, is_known: bool
) -> None:
    known = fill(broker, topic)
    wanted = [Range("t", 1, 7, 9), Range(topic, 0, 0, 2, known), Range(topic, 1, 0, 2, known)]
    if is_known:
        assert read(broker, wanted, subscribe=f"t,{topic}") == expected((1, 7, 9), (0, 0, 2), (1, 0, 2))
    delete(broker, topic)
    with pytest.raises(DataLossError, match=rf"of {topic}\[0\] 0\.\.2, {topic}\[1\] 0\.\.2 are gone"):
        read(broker, wanted, subscribe=f"t,{topic}")
    assert read(broker, wanted, subscribe=f"t,{topic}", failOnDataLoss="false") == expected((1, 7, 9))
    assert told(caplog) == 1


@pytest.mark.parametrize("at", [(1 << 63) // 1000 + 1, (1 << 63) - 1])
def test_a_timestamp_beyond_spark_s_type_fails_the_task_unless_its_column_or_the_record_is_left_out(
    broker: EmbeddedBroker, topic: str, at: int
) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as out:
        for timestamp in ((1 << 63) // 1000, 16, at):
            out.produce(topic, b"v", partition=0, timestamp=timestamp)
    wanted = [Range(topic, 0, 1, 3)]
    with pytest.raises(SerializationError, match=rf"timestamp of {topic}\[0\]@2 cannot be read: {at} ms have more"):
        read(broker, wanted, ["timestamp"], subscribe=topic)
    assert read(broker, wanted, ["value"], subscribe=topic) == [(b"v",), (b"v",)]
    assert read(broker, [Range(topic, 0, 0, 2)], ["offset", "timestampType"], subscribe=topic) == [(0, 0), (1, 0)]
    assert len(read(broker, [Range(topic, 0, 1, 2)], subscribe=topic)) == 1


def test_bytes_like_those_of_a_timestamp_beyond_are_none() -> None:
    data = batch([(each, None, b"a", []) for each in (0, 16, (1 << 63) // 1000, -((1 << 63) // 1000))])
    raw = array("q", [1000 * each for each in (0, 16)]).tobytes()
    assert any(each in raw for each in range_columns._BEYOND)
    (rows,) = rows_of(FetchedRange(data, 0, 4, None, 4, 0, "t", 0), 4, ["timestamp"])
    assert rows.column("timestamp").cast("int64").to_pylist() == [
        1000 * each for each in (0, 16, (1 << 63) // 1000, -((1 << 63) // 1000))]


def test_records_that_were_compressed_to_little_come_in_batches_that_are_not_large() -> None:
    data = b"".join(batch([(0, None, bytes(1_000_000), [])], base_offset=n, codec=4) for n in range(40))
    assert len(data) < 1_000_000
    found = list(rows_of(FetchedRange(data, 0, 40, None, 40, 0, "t", 0), 40, ["offset", "value"]))
    assert [row for each in found for row in each.column("offset").to_pylist()] == list(range(40))
    assert max(each.num_rows for each in found) <= 16


@pytest.mark.parametrize("rows_of_batch", [1, 40], ids=["many batches", "one batch"])
def test_no_more_is_decoded_at_once_than_a_batch_may_have(rows_of_batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices share the memory of the whole: a task had 256 MiB of what came as a few KiB."""
    monkeypatch.setattr(range_columns, "_BYTES", 100_000)
    data = b"".join(batch([(0, b"k", bytes(10_000), [(b"h", b"x")])] * rows_of_batch, base_offset=n, codec=4)
                    for n in range(0, 40, rows_of_batch))
    columns = ["offset", "value", "headers"]
    found = list(rows_of(FetchedRange(data, 3, 40, None, 40, 0, "t", 0), 38, columns))
    assert [row for each in found for row in each.column("offset").to_pylist()] == list(range(3, 38))
    assert max(each.column("value").buffers()[2].size for each in found) <= 100_000
    assert {each.column("headers")[0].as_py()[0]["value"] for each in found} == {b"x"}


def test_a_few_rows_too_many_make_no_batch_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The columns' own bytes come to those of keys and values, by which it is seen how much is decoded at once."""
    monkeypatch.setattr(range_columns, "_BYTES", 100_000)
    data = b"".join(batch([(0, None, bytes(1_000), [])] * 100, base_offset=n, codec=4) for n in range(0, 1000, 100))
    columns = ["value", "topic", "partition", "offset", "timestamp"]
    found = list(rows_of(FetchedRange(data, 0, 1000, None, 1000, 0, "a-topic-with-a-long-name" * 4, 0), 1000, columns))
    assert sum(each.num_rows for each in found) == 1000
    assert min(each.num_rows for each in found[:-1]) > 90
    monkeypatch.setattr(range_columns, "_ROWS", 80)
    found = list(rows_of(FetchedRange(data, 0, 1000, None, 1000, 0, "t", 0), 1000, columns))
    assert {each.num_rows for each in found[:-2]} <= {48, 49}


def test_a_range_that_ends_in_a_gap_ends_there() -> None:
    data = batch([(0, None, b"a", [])], base_offset=2) + batch([(0, None, b"b", [])], base_offset=50)
    for stop in (3, 20, 50):
        (rows,) = rows_of(FetchedRange(data, 0, 51, None, 51, 0, "t", 0), stop, ["offset"])
        assert rows.column("offset").to_pylist() == [2]


def test_a_task_is_sure_of_a_deleted_topic_long_before_its_timeout(
    broker: EmbeddedBroker, topic: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "LAGGING_S", 0.3)
    wanted = [Range(topic, 0, 0, 2, fill(broker, topic)), Range("t", 1, 7, 9)]
    delete(broker, topic)
    patient = {"subscribe": f"t,{topic}", "kafkaConsumer.pollTimeoutMs": "60000"}
    with pytest.raises(DataLossError, match="brokers have said for"):
        read(broker, wanted, **patient)
    assert read(broker, wanted, **patient, failOnDataLoss="false") == expected((1, 7, 9))
    assert told(caplog) == 1


def test_brokers_that_lag_behind_lose_nothing(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker says that the topic is another one, and those that are asked then know it."""
    known, reads = fill(broker, topic), []
    whole = RangeReader.read

    def lagging(self: RangeReader, ranges: list[OffsetRange], timeout_s: float) -> Iterator[FetchedRange]:
        reads.append(ranges)
        asked = [replace(each, topic_id=uuid4()) for each in ranges] if len(reads) == 1 else ranges
        return whole(self, asked, timeout_s)

    monkeypatch.setattr(RangeReader, "read", lagging)
    assert read(broker, [Range(topic, 0, 0, 2, known)], subscribe=topic) == expected((0, 0, 2))
    assert len(reads) == 2


def test_records_of_aborted_transactions_are_read_only_where_that_is_asked_for(broker: EmbeddedBroker) -> None:
    broker.create_topic("ended", 1)
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "ends"}) as out:
        out.init_transactions(PATIENCE_S)
        for value, end in ((b"aborted", out.abort_transaction), (b"committed", out.commit_transaction)):
            out.begin_transaction()
            out.produce("ended", value, partition=0)
            assert out.flush(PATIENCE_S) == 0
            end(PATIENCE_S)
    wanted = [Range("ended", 0, 0, 4)]  # each transaction's end is a record, too
    assert read(broker, wanted, ["value"]) == [(b"committed",)]
    given = {"kafka.isolation.level": "read_uncommitted"}
    assert read(broker, wanted, ["value"], **given) == [(b"aborted",), (b"committed",)]


def test_columns_come_in_the_order_in_which_they_were_asked_for(broker: EmbeddedBroker) -> None:
    wanted = [Range("t", 1, 0, 2)]
    assert read(broker, wanted, ["offset", "value", "partition"]) == [(0, b"v1", 1), (1, b"v4", 1)]
    assert read(broker, wanted, ["partition", "offset"]) == [(1, 0), (1, 1)]
