"""Queries that start, and start again: where each starting option leads, and what has become of the topics meanwhile.

Each start costs Spark more than a second, so one query has a source for each starting option.
"""

import json
import uuid

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from headrace.admin import AdminClient, NewPartitions, NewTopic
from headrace.spark import lag
from headrace.types.cluster import ConsumerGroupTopicPartitions
from headrace.types.records import TopicPartition

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

PATIENCE_S = 20
T0 = 1_700_000_000_000


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


def values(*names, partitions=1):
    return [{"value": name, "partition": n % partitions, "timestamp": T0 + n} for n, name in enumerate(names)]


def starting_options(topic):
    at = json.dumps({topic: {"0": T0 + 2}})
    return {
        "earliest": ({"startingOffsets": "earliest"}, ["v0", "v1", "v2", "v3"]),
        "latest": ({"startingOffsets": "latest"}, []),
        "offsets": ({"startingOffsets": json.dumps({topic: {"0": 1}})}, ["v1", "v2", "v3"]),
        "logical offsets": ({"startingOffsets": json.dumps({topic: {"0": -2}})}, ["v0", "v1", "v2", "v3"]),
        "one time": ({"startingTimestamp": str(T0 + 3)}, ["v3"]),
        "times": ({"startingOffsetsByTimestamp": at}, ["v2", "v3"]),
        "a time behind the end": ({"startingTimestamp": str(T0 + 9), "startingOffsetsByTimestampStrategy": "latest"}, []),
    }


def test_each_starting_option_decides_once_and_the_checkpoint_from_then_on(
    stream, make_topic, produce, tmp_path
):
    topic = make_topic(1)
    produce(topic, values("v0", "v1", "v2", "v3"))
    options = starting_options(topic)

    def union():
        frames = [stream(topic, **given).selectExpr(f"concat('{name}: ', CAST(value AS STRING)) AS value")
                  for name, (given, _) in options.items()]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.union(frame)
        return whole

    first = Run(union(), tmp_path)
    assert sorted(first.values) == sorted(f"{name}: {value}" for name, (_, read) in options.items() for value in read)
    produce(topic, [{"value": "v4"}])
    assert sorted(Run(union(), tmp_path).values) == sorted(f"{name}: v4" for name in options)


def test_records_between_a_crash_and_the_next_start_are_read_though_the_query_starts_at_latest(
    stream, make_topic, produce, tmp_path
):
    topic, found = make_topic(1), []
    produce(topic, values("before"))
    query = stream(topic, startingOffsets="latest").selectExpr("CAST(value AS STRING) AS value").writeStream.foreachBatch(
        lambda frame, batch_id: found.extend(row.value for row in frame.collect())).option(
        "checkpointLocation", str(tmp_path)).start()
    query.processAllAvailable()  # it has resolved where it starts
    produce(topic, values("v0", "v1"))
    query.processAllAvailable()
    query.stop()
    assert found == ["v0", "v1"]
    # As after a crash behind the write and before the commit of the first batch.
    (tmp_path / "commits" / "0").unlink()
    for checksum in (tmp_path / "commits").glob(".*"):
        checksum.unlink()
    produce(topic, values("v2"))
    again = Run(stream(topic, startingOffsets="latest"), tmp_path)
    assert (again.values, again.batches) == (["v0", "v1", "v2"], [(0, 2), (1, 1)])


def checkpoint(folder, offset):
    """The checkpoint of a query whose first batch is done, as Spark writes it."""
    for name, text in {
        "metadata": json.dumps({"id": str(uuid.uuid4())}),
        "offsets/0": "v1\n" + json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": T0, "conf": {}}) + "\n" + offset,
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("text", [
    '{"TOPIC": {"0": 2, "1": 0}, "@from": {"TOPIC": {"0": 0, "1": 0}}, "@v": 1}',
    '{"TOPIC":{"0":2,"1":0}}',
], ids=["format 1", "Spark's own connector"])
def test_a_checkpoint_of_others_is_gone_on_with(stream, make_topic, produce, tmp_path, text):
    topic = make_topic(2)
    produce(topic, values("v0", "v1", "v2"))
    checkpoint(tmp_path, text.replace("TOPIC", topic))
    assert Run(stream(topic, startingOffsets="earliest"), tmp_path).values == ["v2"]
    assert Run(stream(topic, startingOffsets="earliest"), tmp_path).values == []


def test_partitions_that_are_added_are_read_from_their_beginning_and_a_group_shows_the_progress(
    stream, make_topic, produce, admin, tmp_path
):
    topic, group = make_topic(1), f"g-{uuid.uuid4().hex}"
    produce(topic, values("v0"))
    assert Run(stream(topic, startingOffsets="earliest", groupId=group), tmp_path).values == ["v0"]
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(PATIENCE_S)
    produce(topic, [{"value": "v1", "partition": 1}, {"value": "v2", "partition": 1}])
    second = Run(stream(topic, startingOffsets="latest", groupId=group), tmp_path)
    assert second.values == ["v1", "v2"]
    assert lag(second.progress) == {(topic, 0): 0, (topic, 1): 0}
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(PATIENCE_S)
    assert {tp.partition: tp.offset for tp in found.topic_partitions} == {0: 1, 1: 2}


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
