"""headrace.spark.transactional in a real Spark: two topics and a group, in one transaction for each micro-batch."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow

import headrace.spark
from headrace import Consumer, TopicPartition
from tests.support.real_kafka import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

COUNT = 60


@pytest.fixture
def filled(make_topic, produce):
    topic = make_topic(2)
    produce(topic, [{"value": str(n), "key": f"k{n % 7}", "partition": n % 2} for n in range(COUNT)])
    return topic


def run(spark, brokers, source, checkpoint, handler, read=None, **options):
    frame = spark.readStream.format("headrace").option("kafka.bootstrap.servers", brokers).option("subscribe", source)
    frame = frame.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 30).options(**read or {}).load()
    given = {"kafka.bootstrap.servers": brokers, "sinkId": checkpoint.name, **options}
    query = frame.writeStream.foreachBatch(headrace.spark.transactional(given, handler))
    query = query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def committed(spark, brokers, topic):
    frame = spark.read.format("headrace").option("kafka.bootstrap.servers", brokers).option("subscribe", topic).load()
    return Counter(int(bytes(row.value)) for row in frame.select("value").collect())


def test_several_writes_and_the_offsets_of_the_source_are_one_transaction_that_is_tried_again(
    spark, brokers, filled, make_topic, tmp_path
):
    even, odd = make_topic(3), make_topic(1)
    calls = Counter()

    def write(rows, batch_id, sink):
        calls[batch_id] += 1
        number = "cast(cast(value AS string) AS int)"
        assert sink.write(rows.where(f"{number} % 2 = 0").select("key", "value"), topic=even) == 15
        sink.write(rows.where(f"{number} % 2 = 1 AND {number} < 50").select("value"), topic=odd)
        if batch_id == 1 and calls[batch_id] == 1:
            rows.selectExpr("raise_error('the attempt fails when both topics are written')").collect()
        sink.write(rows.where(f"{number} % 2 = 1 AND {number} >= 50").select("value"), topic=odd)  # the same once more

    run(spark, brokers, filled, tmp_path / "q1", write, groupId="g-" + filled)
    assert calls == {0: 1, 1: 2}
    assert committed(spark, brokers, even) == Counter(range(0, COUNT, 2))
    assert committed(spark, brokers, odd) == Counter(range(1, COUNT, 2))
    with Consumer({"bootstrap.servers": brokers, "group.id": "g-" + filled}) as consumer:
        found = consumer.committed([TopicPartition(filled, 0), TopicPartition(filled, 1)], 30)
    assert [each.offset for each in found] == [COUNT // 2, COUNT // 2]

    # Spark forgets that the last micro-batch is done: the topics do not, and the handler is not asked.
    for name in ("1", ".1.crc"):
        (tmp_path / "q1/commits" / name).unlink()
    run(spark, brokers, filled, tmp_path / "q1", write)
    assert calls == {0: 1, 1: 2}
    assert committed(spark, brokers, even) == Counter(range(0, COUNT, 2))
    assert "@from" in json.loads((tmp_path / "q1/offsets/1").read_text().splitlines()[-1])


def test_a_query_that_is_stopped_amid_a_write_ends_as_stopped_and_goes_on_later(
    spark, brokers, filled, make_topic, tmp_path
):
    """Spark's thread ended with a StackOverflowError over the trace of the job that the stop had cancelled."""
    from pyspark.sql import functions

    target, writing = make_topic(2), threading.Event()

    @functions.arrow_udf("binary")
    def asleep(values: pyarrow.Array) -> pyarrow.Array:
        time.sleep(60)
        return values

    def write(rows, batch_id, sink):
        rows = rows.select("value") if writing.is_set() else rows.select(asleep("value").alias("value"))
        writing.set()
        sink.write(rows, topic=target)

    frame = spark.readStream.format("headrace").option("kafka.bootstrap.servers", brokers).option("subscribe", filled)
    given = {"kafka.bootstrap.servers": brokers, "sinkId": tmp_path.name}
    query = (frame.option("startingOffsets", "earliest").load().writeStream
             .foreachBatch(headrace.spark.transactional(given, write)).option("checkpointLocation", str(tmp_path / "c"))
             .start())
    until(lambda: writing.is_set() or not query.isActive, 60)
    tracker = spark.sparkContext.statusTracker()
    until(lambda: tracker.getJobIdsForGroup(str(query.runId)), 60)
    query.stop()
    assert (query.exception(), query.status["message"]) == (None, "Stopped")
    run(spark, brokers, filled, tmp_path / "c", write, sinkId=tmp_path.name)
    assert committed(spark, brokers, target) == Counter(range(COUNT))


def test_offsets_are_found_in_a_log_that_has_sources_by_name_too(spark, brokers, filled, make_topic, tmp_path):
    out = make_topic(2)
    setting = "spark.sql.streaming.offsetLog.formatVersion"  # needed for readStream.name()
    spark.conf.set(setting, "2")
    try:
        run(spark, brokers, filled, tmp_path / "q5", lambda rows, _, sink: sink.write(rows.select("value"), topic=out),
            groupId="g2-" + filled)
    finally:
        spark.conf.unset(setting)
    assert committed(spark, brokers, out) == Counter(range(COUNT))
    with Consumer({"bootstrap.servers": brokers, "group.id": "g2-" + filled}) as consumer:
        found = consumer.committed([TopicPartition(filled, 0), TopicPartition(filled, 1)], 30)
    assert [each.offset for each in found] == [COUNT // 2, COUNT // 2]


def test_a_handler_that_fails_each_time_fails_the_query_and_leaves_nothing(
    spark, brokers, filled, make_topic, tmp_path
):
    out = make_topic(2)

    def write(rows, batch_id, sink):
        sink.write(rows.select("value"), topic=out)
        raise ValueError("the handler does not want it")

    with pytest.raises(Exception, match="the handler does not want it"):
        run(spark, brokers, filled, tmp_path / "q2", write)
    assert committed(spark, brokers, out) == Counter()


def test_headers_are_written_where_the_column_is_there_and_what_the_source_knows_of_a_record_may_stay(
    spark, brokers, make_topic, produce, tmp_path
):
    source, out = make_topic(1), make_topic(1)
    produce(source, [{"value": "v", "headers": [("h", b"x")]}])
    run(spark, brokers, source, tmp_path / "q3", lambda rows, batch_id, sink: sink.write(rows, topic=out),
        read={"includeHeaders": "true"})
    frame = spark.read.format("headrace").option("kafka.bootstrap.servers", brokers).option("subscribe", out)
    (row,) = frame.option("includeHeaders", "true").load().collect()
    assert [(each.key, bytes(each.value)) for each in row.headers] == [("h", b"x")]
