"""Exactly-once writes by a real Spark: streams with a checkpoint, batch writes, and what is refused."""

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

pytestmark = pytest.mark.spark

GUARANTEE = {"delivery.guarantee": "exactly_once"}


@pytest.fixture
def stream(spark, brokers):
    """Copies a topic to another in micro-batches of 20 rows, up to its end."""
    from headrace.spark import by_partition

    def run(source, target, checkpoint, **options):
        given = {"kafka.bootstrap.servers": brokers, "topic": target, **GUARANTEE, **options}
        frame = (spark.readStream.format("headrace").option("kafka.bootstrap.servers", brokers)
                 .option("subscribe", source).option("startingOffsets", "earliest")
                 .option("maxOffsetsPerTrigger", "20").load())
        rows = by_partition(frame.selectExpr("key", "value"), given)
        query = (rows.writeStream.format("headrace").options(**given)
                 .option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start())
        query.awaitTermination()
        return query

    return run


@pytest.fixture
def values(spark, brokers):
    """The values of a topic that are committed, in order."""

    def read(topic):
        frame = (spark.read.format("headrace").option("kafka.bootstrap.servers", brokers)
                 .option("subscribe", topic).load())
        return sorted(bytes(row.value).decode() for row in frame.select("value").collect())

    return read


def records(count):
    return [{"key": f"k{number % 7}", "value": f"v{number:03}", "partition": number % 2} for number in range(count)]


def expected(count):
    return [f"v{number:03}" for number in range(count)]


def test_a_stream_writes_each_row_once_also_when_spark_forgets_that_it_did(
    stream, values, make_topic, produce, tmp_path
):
    source, target = make_topic(2), make_topic(3)
    produce(source, records(60))
    stream(source, target, tmp_path / "c")
    assert values(target) == expected(60)
    last = max(int(path.name) for path in (tmp_path / "c/commits").iterdir() if path.name.isdigit())
    assert last == 2
    # As if the driver had died between EndTxn and Spark's note that the micro-batch is done.
    for path in [*(tmp_path / "c/commits").glob(f"*{last}*")]:
        path.unlink()
    produce(source, [{"value": "v060", "partition": 0}])
    stream(source, target, tmp_path / "c")
    assert values(target) == expected(61)


def test_a_batch_write_is_all_or_nothing(spark, brokers, values, make_topic):
    from headrace.spark import by_partition

    target = make_topic(3)
    given = {"kafka.bootstrap.servers": brokers, "topic": target, **GUARANTEE}
    frame = spark.range(60).selectExpr(
        "cast(id % 7 as string) AS key", "concat('v', lpad(cast(id as string), 3, '0')) AS value")
    rows = by_partition(frame, given)
    rows.write.format("headrace").options(**given).mode("append").save()
    assert values(target) == expected(60)
    failing = rows.selectExpr("key", "IF(partition = 2, raise_error('no more'), value) AS value", "partition")
    with pytest.raises(Exception, match="no more"):
        failing.write.format("headrace").options(**given).mode("append").save()
    assert values(target) == expected(60)


def test_keys_go_where_the_sinks_partitioner_puts_them_and_each_partition_is_in_one_task(spark, brokers, make_topic):
    from headrace import consistent, murmur2
    from headrace.spark import by_partition

    given = {"kafka.bootstrap.servers": brokers, "topic": make_topic(3), **GUARANTEE}
    frame = spark.range(40).selectExpr(
        "if(id % 4 = 0, null, cast(id as string)) AS key", "'v' AS value", "if(id = 1, 2, null) AS partition")
    for partitioner, hashed in (("consistent_random", consistent), ("murmur2_random", murmur2)):
        rows = by_partition(frame, {**given, "kafka.partitioner": partitioner})
        found = rows.selectExpr("key", "partition", "spark_partition_id() AS task").collect()
        assert len(found) == 40
        for row in found:
            if row.key == "1":
                assert row.partition == 2
            elif row.key is not None:
                assert row.partition == hashed(row.key.encode(), 3)
        assert len({(row.partition, row.task) for row in found}) == len({row.partition for row in found}) == 3


def test_a_key_with_a_format_goes_where_its_bytes_would_go(spark, brokers, make_topic):
    from headrace import consistent, murmur2
    from headrace.spark import by_partition

    given = {"kafka.bootstrap.servers": brokers, "topic": make_topic(5), "key.format": "json", **GUARANTEE}
    for partitioner, hashed in (("consistent_random", consistent), ("murmur2_random", murmur2)):
        for key, text in (("cast(id as string)", '"%d"'), ("id", "%d"), ("struct(id AS a)", '{"a":%d}')):
            rows = by_partition(spark.range(20).selectExpr(f"{key} AS key", "cast(id as string) AS value"),
                                {**given, "kafka.partitioner": partitioner})
            found = {int(row.value): row.partition for row in rows.collect()}
            assert found == {number: hashed((text % number).encode(), 5) for number in range(20)}


def test_rows_of_one_partition_in_two_tasks_are_refused(spark, brokers, values, make_topic):
    target = make_topic(1)
    frame = spark.range(0, 40, 1, 2).selectExpr("cast(id as string) AS value")
    given = {"kafka.bootstrap.servers": brokers, "topic": target, **GUARANTEE}
    with pytest.raises(Exception, match=r"one task|has records of this transaction already|attempt 1"):
        frame.write.format("headrace").options(**given).mode("append").save()
    assert values(target) == []


def test_a_stream_without_a_name_and_speculation_are_refused(spark, brokers, make_topic, tmp_path):
    target = make_topic(1)
    given = {"kafka.bootstrap.servers": brokers, "topic": target, **GUARANTEE}
    rates = spark.readStream.format("rate").load().selectExpr("cast(value as string) AS value")
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path))
    try:
        query = rates.writeStream.format("headrace").options(**given).trigger(availableNow=True).start()
        with pytest.raises(Exception, match="set option sinkId"):
            query.awaitTermination()
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    spark.sparkContext.setLocalProperty("spark.speculation", "true")  # as Spark hands its settings to tasks
    try:
        with pytest.raises(Exception, match=r"needs spark\.speculation=false"):
            spark.range(1).selectExpr("'v' AS value").write.format("headrace").options(**given).mode("append").save()
    finally:
        spark.sparkContext.setLocalProperty("spark.speculation", None)
