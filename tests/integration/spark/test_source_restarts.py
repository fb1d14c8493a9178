"""Queries that start again: from which checkpoints, and what has become of the topics meanwhile.

Where each starting option leads, `test_starting_options.py` shows without Spark.
"""

import json
import uuid

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from headrace.admin import AdminClient, NewPartitions, NewTopic
from headrace.spark import lag
from headrace.spark.plan import batch_offsets
from headrace.types.cluster import ConsumerGroupTopicPartitions
from headrace.types.records import TopicPartition

pytestmark = pytest.mark.spark

PATIENCE_S = 20


@pytest.fixture
def admin(brokers):
    with AdminClient({"bootstrap.servers": brokers}) as admin:
        yield admin


@pytest.fixture
def stream(spark, brokers):
    def make(topic, **options):
        frame = spark.readStream.format("headrace").option("kafka.bootstrap.servers", brokers)
        return frame.options(**{"subscribe": topic, **options}).load()

    return make


class Run:
    """One AvailableNow run: the values it read, and its last report."""

    def __init__(self, frame, checkpoint):
        self.values, self.batches = [], []
        query = frame.selectExpr("CAST(value AS STRING) AS value").writeStream.foreachBatch(self.take).option(
            "checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        self.progress = query.lastProgress

    def take(self, frame, batch_id):
        rows = [row.value for row in frame.collect()]
        self.batches.append((batch_id, len(rows)))
        self.values += rows


def values(*names):
    return [{"value": name, "partition": 0} for name in names]


def checkpoint(folder, offset, *, committed=True):
    """The checkpoint of a query whose first batch is planned, or done, as Spark writes it."""
    batch = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_000, "conf": {}})
    files = {"metadata": json.dumps({"id": str(uuid.uuid4())}), "offsets/0": f"v1\n{batch}\n{offset}"}
    if committed:
        files["commits/0"] = 'v1\n{"nextBatchWatermarkMs":0}'
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_first_batch_that_was_planned_before_a_crash_is_read_though_the_query_starts_at_latest(
    stream, make_topic, produce, tmp_path
):
    topic = make_topic(1)
    produce(topic, values("v0", "v1", "v2", "v3"))
    checkpoint(tmp_path, json.dumps(batch_offsets({(topic, 0): 1}, {(topic, 0): 3})), committed=False)
    run = Run(stream(topic, startingOffsets="latest"), tmp_path)
    assert (run.values, run.batches) == (["v1", "v2", "v3"], [(0, 2), (1, 1)])


@pytest.mark.parametrize("text", [
    '{"TOPIC": {"0": 2, "1": 0}, "@from": {"TOPIC": {"0": 0, "1": 0}}, "@v": 1}',
    '{"TOPIC":{"0":2,"1":0}}',
], ids=["format 1", "Spark's own connector"])
def test_a_checkpoint_of_others_is_gone_on_with(stream, make_topic, produce, tmp_path, text):
    topic = make_topic(2)
    produce(topic, values("v0", "v1", "v2"))
    checkpoint(tmp_path, text.replace("TOPIC", topic))
    assert Run(stream(topic, startingOffsets="earliest", maxBytesPerTrigger="1g"), tmp_path).values == ["v2"]
    assert Run(stream(topic, startingOffsets="earliest"), tmp_path).values == []


def test_partitions_that_are_added_are_read_from_their_beginning_and_a_group_shows_the_progress(
    stream, make_topic, produce, admin, tmp_path
):
    topic, group = make_topic(1), f"g-{uuid.uuid4().hex}"
    produce(topic, values("v0"))
    assert Run(stream(topic, startingOffsets="earliest", groupId=group), tmp_path).values == ["v0"]
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(PATIENCE_S)
    produce(topic, [{"value": "v1", "partition": 1}, {"value": "v2", "partition": 1}])
    second = Run(stream(topic, startingOffsets="latest", groupId=group, maxOffsetsPerPartition=1, columns="value"),
                 tmp_path)
    assert (second.values, [rows for _, rows in second.batches]) == (["v1", "v2"], [1, 1])
    assert lag(second.progress) == {(topic, 0): 0, (topic, 1): 0}
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(PATIENCE_S)
    assert {tp.partition: tp.offset for tp in found.topic_partitions} == {0: 1, 1: 2}


def test_a_topic_that_is_made_anew_between_batch_reads_is_read_by_each(spark, brokers, make_topic, produce, admin):
    topic, counts = make_topic(1), []
    frame = spark.read.format("headrace").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    for n in range(4):
        produce(topic, values(f"v{n}"))
        counts.append([bytes(row.value) for row in frame.load().collect()])
        admin.delete_topics([topic])[topic].result(PATIENCE_S)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(PATIENCE_S)
    assert counts == [[b"v0"], [b"v1"], [b"v2"], [b"v3"]]


def test_a_topic_that_is_deleted_between_planning_and_reading_is_lost(spark, brokers, make_topic, produce, admin):
    frames = {}
    for fails in ("true", "false"):
        topic = make_topic(1)
        produce(topic, values("v0"))
        options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "failOnDataLoss": fails,
                   "kafkaConsumer.pollTimeoutMs": "1000"}
        frames[fails] = spark.read.format("headrace").options(**options).load()
        frames[fails].rdd.getNumPartitions()  # plans the tasks, and does not read
        admin.delete_topics([topic])[topic].result(PATIENCE_S)
    with pytest.raises(Exception, match=r"DataLossError: records of t-.*\[0\] 0\.\.1 are gone"):
        frames["true"].rdd.collect()
    assert frames["false"].rdd.collect() == []


@pytest.mark.parametrize("loss", ["made anew", "aged out"])
def test_lost_records_stop_the_query_or_are_left_out(stream, make_topic, produce, admin, tmp_path, loss):
    topic = make_topic(1)
    produce(topic, values("v0", "v1"))
    frame = stream(topic, startingOffsets="earliest")
    assert Run(frame, tmp_path).values == ["v0", "v1"]
    if loss == "made anew":
        admin.delete_topics([topic])[topic].result(PATIENCE_S)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(PATIENCE_S)
        produce(topic, values("w0", "w1", "w2"))
        left, said = ["w0", "w1", "w2"], "made anew"
    else:
        produce(topic, values("v2", "v3", "v4"))
        admin.delete_records([TopicPartition(topic, 0, 4)])[TopicPartition(topic, 0)].result(PATIENCE_S)
        left, said = ["v4"], "are gone"
    with pytest.raises(Exception, match=said):
        Run(frame, tmp_path)
    assert Run(stream(topic, startingOffsets="earliest", failOnDataLoss="false"), tmp_path).values == left


def test_records_that_are_gone_take_no_micro_batches_of_a_stream_with_a_limit(
    stream, make_topic, produce, admin, tmp_path
):
    topic = make_topic(1)
    produce(topic, values("v0"))
    frame = stream(topic, startingOffsets="earliest", failOnDataLoss="false", maxOffsetsPerTrigger="2")
    assert Run(frame, tmp_path).batches == [(0, 1)]
    produce(topic, values(*(f"v{i}" for i in range(1, 40))))
    admin.delete_records([TopicPartition(topic, 0, 37)])[TopicPartition(topic, 0)].result(PATIENCE_S)
    run = Run(frame, tmp_path)
    assert (run.values, run.batches) == (["v37", "v38", "v39"], [(1, 2), (2, 1)])
    produce(topic, values("v40", "v41"))
    admin.delete_records([TopicPartition(topic, 0, 42)])[TopicPartition(topic, 0)].result(PATIENCE_S)
    assert Run(frame, tmp_path).batches == [(3, 0)]  # the place that was reached is in the checkpoint
    produce(topic, values("v42"))
    assert Run(frame, tmp_path).values == ["v42"]
