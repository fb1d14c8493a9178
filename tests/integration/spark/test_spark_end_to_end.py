"""format("headrace") in a real Spark: what it reads, writes and says."""

import json
import time

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

pytestmark = pytest.mark.spark

COUNT = 1000


@pytest.fixture
def read(spark, brokers):
    def make(topic, **options):
        frame = spark.read.format("headrace").option("kafka.bootstrap.servers", brokers)
        return frame.option("subscribe", topic).options(**options)

    return make


@pytest.fixture
def filled(make_topic, produce):
    """A topic of two partitions with COUNT records."""
    topic = make_topic(2)
    records = [
        {"value": f"v{n}", "key": None if n % 3 == 0 else f"k{n}", "partition": n % 2,
         "timestamp": 1_700_000_000_000 + n, "headers": [("n", str(n).encode())] if n % 2 else None}
        for n in range(COUNT)
    ]
    produce(topic, records)
    return topic


def test_a_batch_read_gives_the_columns_of_spark_s_own_source(read, filled):
    frame = read(filled).load()
    assert frame.dtypes == [
        ("key", "binary"), ("value", "binary"), ("topic", "string"), ("partition", "int"), ("offset", "bigint"),
        ("timestamp", "timestamp"), ("timestampType", "int"),
    ]
    rows = sorted(frame.collect(), key=lambda row: (row.offset, row.partition))
    assert [bytes(row.value).decode() for row in rows] == [f"v{n}" for n in range(COUNT)]
    assert [row.key and bytes(row.key).decode() for row in rows] == [
        None if n % 3 == 0 else f"k{n}" for n in range(COUNT)]
    assert {row.topic for row in rows} == {filled}
    assert {row.timestampType for row in rows} == {0}
    stamps = frame.selectExpr("min(unix_millis(timestamp)) AS low", "max(unix_millis(timestamp)) AS high").first()
    assert (stamps.low, stamps.high) == (1_700_000_000_000, 1_700_000_000_000 + COUNT - 1)


def test_a_timestamp_is_a_moment_whatever_the_session_takes_the_word_for(spark, read, filled):
    before = spark.conf.get("spark.sql.timestampType")
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        frame = read(filled).load()
        assert dict(frame.dtypes)["timestamp"] == "timestamp"
        assert frame.selectExpr("min(unix_millis(timestamp))").first()[0] == 1_700_000_000_000
    finally:
        spark.conf.set("spark.sql.timestampType", before)


def test_headers_come_when_asked_for(read, filled):
    rows = read(filled, includeHeaders="true").load().select("headers", "value").collect()
    for row in rows:
        n = int(bytes(row.value)[1:])
        found = None if row.headers is None else [(each.key, bytes(each.value).decode()) for each in row.headers]
        assert found == ([("n", str(n))] if n % 2 else None)


def test_offsets_tasks_and_columns_can_be_chosen(read, filled):
    start, end = json.dumps({filled: {"0": 100, "1": -2}}), json.dumps({filled: {"0": 110, "1": -1}})
    frame = read(filled, startingOffsets=start, endingOffsets=end, minPartitions="5")
    frame = frame.schema("offset bigint, value binary").load()
    assert frame.columns == ["offset", "value"]
    assert frame.rdd.getNumPartitions() == 5
    assert frame.count() == 10 + COUNT // 2


def test_an_empty_topic_has_no_rows(read, make_topic):
    assert read(make_topic(2)).load().collect() == []


def test_a_timestamp_chooses_the_start(read, filled):
    assert read(filled, startingTimestamp=str(1_700_000_000_000 + 900)).load().count() == 100


def test_rows_are_written_where_they_say(spark, brokers, make_topic, read):
    one, other = make_topic(2), make_topic(3)
    rows = spark.range(500).selectExpr(
        "CAST(id AS STRING) AS key", "IF(id = 7, NULL, CAST(id AS STRING)) AS value",
        f"IF(id % 2 = 0, '{one}', '{other}') AS topic", "CAST(id % 2 AS INT) AS partition",
        "IF(id = 3, array(named_struct('key', 'h', 'value', binary('x'))), NULL) AS headers",
    )
    rows.write.format("headrace").option("kafka.bootstrap.servers", brokers).mode("append").save()
    back = read(f"{one},{other}", includeHeaders="true").load().collect()
    assert len(back) == 500
    for row in back:
        n = int(row.key)
        assert (row.topic, row.partition) == ((one, other)[n % 2], n % 2)
        assert row.value is None if n == 7 else int(row.value) == n
        assert (row.headers is not None) == (n == 3)


def copy(spark, brokers, source, target, checkpoint, **options):
    """One AvailableNow run from topic to topic; gives the rows of each micro-batch."""
    frame = spark.readStream.format("headrace").option("kafka.bootstrap.servers", brokers).option("subscribe", source)
    frame = frame.option("startingOffsets", "earliest").options(**options).load()
    writer = frame.writeStream.format("headrace").option("topic", target)
    writer = writer.option("kafka.bootstrap.servers", brokers).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [report.numInputRows for report in query.recentProgress if report.numInputRows]


def test_a_stream_copies_everything_once_in_limited_batches_and_goes_on_later(
    spark, brokers, read, filled, make_topic, produce, tmp_path
):
    target = make_topic(2)
    assert copy(spark, brokers, filled, target, tmp_path, maxOffsetsPerTrigger="300") == [300, 300, 300, 100]
    assert copy(spark, brokers, filled, target, tmp_path) == []
    produce(filled, [{"value": "late"}])
    assert copy(spark, brokers, filled, target, tmp_path) == [1]
    values = [bytes(row.value).decode() for row in read(target).load().select("value").collect()]
    assert sorted(values) == sorted([*(f"v{n}" for n in range(COUNT)), "late"])


def test_a_copy_of_a_topic_has_its_headers_too(spark, brokers, read, filled, make_topic, tmp_path):
    target = make_topic(2)
    copy(spark, brokers, filled, target, tmp_path, includeHeaders="true")
    columns = "key", "value", "partition", "offset", "headers"

    def rows(topic):
        return sorted(map(str, read(topic, includeHeaders="true").load().select(*columns).collect()))

    assert rows(target) == rows(filled)


def test_a_stream_reports_how_far_it_is_behind(spark, brokers, filled, tmp_path):
    frame = spark.readStream.format("headrace").option("kafka.bootstrap.servers", brokers).option("subscribe", filled)
    frame = frame.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 100).load()
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    query = query.start()
    query.awaitTermination()
    first = json.loads(query.recentProgress[0].json)["sources"][0]
    assert first["latestOffset"][filled] == {"0": COUNT // 2, "1": COUNT // 2}
    assert first["endOffset"][filled] == {"0": 50, "1": 50}
    assert first["endOffset"]["@from"][filled] == {"0": 0, "1": 0}


def test_a_wrong_topic_is_one_clear_line(read):
    with pytest.raises(Exception, match="topic no-such-topic does not exist: create it or check its name"):
        read("no-such-topic").load().count()


def test_a_wrong_option_is_one_clear_line(read, filled):
    with pytest.raises(Exception, match=r"unknown option 'startingofsets'. Did you mean 'startingOffsets'\?"):
        read(filled, startingOfsets="earliest").load().count()


def test_a_wrong_option_of_a_stream_is_one_clear_line_at_load(spark, brokers, filled):
    frame = spark.readStream.format("headrace").option("kafka.bootstrap.servers", brokers).option("subscribe", filled)
    with pytest.raises(Exception, match="maxTriggerDelay must be a time") as caught:
        frame.option("maxTriggerDelay", "a while").load()
    assert "UnboundLocalError" not in str(caught.value)


@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"processingTime": "0 seconds"}, {"once": True}])
@pytest.mark.parametrize(("schema", "given", "said"), [
    (None, {"endingOffsets": "latest"}, "endingOffsets"),
    ("value binary", {"maxTriggerDelay": "a while"}, "maxTriggerDelay must be a time"),
    ("value string", {}, "column value must be binary and nullable, not string"),
])
def test_what_only_a_started_stream_can_see_is_one_clear_line(
    spark, brokers, filled, tmp_path, trigger, schema, given, said
):
    reading = spark.readStream.format("headrace").option("kafka.bootstrap.servers", brokers).option("subscribe", filled)
    frame = (reading.schema(schema) if schema else reading).options(**given).load()
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(**trigger).start()
    with pytest.raises(Exception, match=said) as caught:
        query.awaitTermination(60)
    assert "ConfigError" in str(caught.value)
    assert "UnboundLocalError" not in str(caught.value)


def test_a_table_takes_its_options_with_each_query(spark, brokers, filled, make_topic):
    spark.sql("CREATE TABLE of_headrace USING headrace")
    try:
        given = f"'kafka.bootstrap.servers' = '{brokers}', 'subscribe' = '{filled}'"
        assert spark.sql(f"SELECT value FROM of_headrace WITH ({given})").count() == COUNT
        name, where = make_topic(1), f"'kafka.bootstrap.servers' = '{brokers}'"
        spark.sql(f"INSERT INTO of_headrace WITH ({where}, 'topic' = '{name}') (key, value) "
                  "SELECT CAST('k' AS BINARY), CAST('v' AS BINARY)")
        [row] = spark.sql(f"SELECT key, value FROM of_headrace WITH ({where}, 'subscribe' = '{name}')").collect()
        assert tuple(row) == (b"k", b"v")
    finally:
        spark.sql("DROP TABLE of_headrace")


def test_a_column_that_a_topic_cannot_take_is_named(spark, brokers, filled):
    writer = spark.range(3).write.format("headrace").option("kafka.bootstrap.servers", brokers).option("topic", filled)
    with pytest.raises(Exception, match="a topic takes a column named value"):
        writer.mode("append").save()


def test_rows_pass_interceptors_in_the_tasks_that_write_them(spark, brokers, make_topic, read, tmp_path):
    module = tmp_path / "headrace_shouting.py"
    module.write_text(
        "from headrace import ProducerInterceptor\n"
        "class Shouting(ProducerInterceptor):\n"
        "    def on_send(self, record):\n"
        "        record.value = record.value.upper()\n"
        "        return record\n")
    spark.sparkContext.addPyFile(str(module))
    topic = make_topic(2)
    rows = spark.range(100).selectExpr("concat('v', id) AS value").repartition(2)
    writer = rows.write.format("headrace").option("kafka.bootstrap.servers", brokers).option("topic", topic)
    writer.option("kafka.interceptor.classes", "headrace_shouting.Shouting").mode("append").save()
    back = read(topic).load().select("value").collect()
    assert sorted(bytes(row.value).decode() for row in back) == sorted(f"V{number}" for number in range(100))


def test_a_worker_finds_the_connection_on_which_spark_holds_rows_back_and_spares_collections(spark):
    import pyarrow
    from pyspark.sql import functions

    def ask(rows: pyarrow.Array) -> pyarrow.Array:
        import gc

        from headrace.spark.worker import acknowledge_at_once, spare_collections

        ready = acknowledge_at_once() and spare_collections() and gc.get_freeze_count() > 10_000
        return pyarrow.array([ready] * len(rows))

    found = spark.range(1).select(functions.arrow_udf(ask, "boolean")("id").alias("found")).collect()
    assert [row.found for row in found] == [True]


def test_small_writes_of_a_warm_session_wait_for_nothing(spark, brokers, make_topic, read):
    topic = make_topic(1)
    writer = spark.range(500, numPartitions=1).selectExpr("CAST(id AS STRING) AS value").write.format("headrace")
    writer = writer.option("kafka.bootstrap.servers", brokers).option("topic", topic).mode("append")
    took = []
    for _ in range(6):
        began_at = time.monotonic()
        writer.save()
        took.append(time.monotonic() - began_at)
    assert read(topic).load().count() == 3000
    assert min(took) < 0.9  # it was over a second for every one of them
