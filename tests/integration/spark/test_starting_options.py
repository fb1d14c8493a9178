"""Where each starting option leads, and that only the first start asks for it: readers on a broker, without Spark."""

import json

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from headrace import Producer
from headrace.admin import AdminClient, NewPartitions, NewTopic
from headrace.errors import ConfigError
from headrace.spark.options import SourceOptions
from headrace.spark.plan import DataLossError
from headrace.spark.source import BatchReader, StreamReader

T0 = 1_700_000_000_000
COLUMNS = ["value"]


@pytest.fixture(scope="module")
def topic(module_topic):
    """Partition 0 has four records, partition 1 two."""
    return module_topic


@pytest.fixture(scope="module")
def module_topic(brokers):
    name = "starting-options"
    with AdminClient({"bootstrap.servers": brokers}) as admin:
        admin.create_topics([NewTopic(name, 2, 1)])[name].result(10)
    with Producer({"bootstrap.servers": brokers}) as producer:
        for n in range(6):
            producer.produce(name, f"v{n}", partition=n % 2 if n < 4 else 0, timestamp=T0 + n)
        assert producer.flush(10) == 0
    return name


def by_partition(topic, zero, one):
    return json.dumps({topic: {"0": zero, "1": one}})


def values_of(reader, tasks):
    found = [bytes(row).decode() for task in tasks for batch in reader.read(task) for row in batch["value"].to_pylist()]
    return sorted(found)


STARTS = {
    "earliest": (lambda t: {"startingOffsets": "earliest"}, "v0 v1 v2 v3 v4 v5"),
    "latest": (lambda t: {"startingOffsets": "latest"}, ""),
    "the default": (lambda t: {}, ""),
    "offsets": (lambda t: {"startingOffsets": by_partition(t, 1, 2)}, "v2 v4 v5"),
    "logical offsets": (lambda t: {"startingOffsets": by_partition(t, -2, -1)}, "v0 v2 v4 v5"),
    "one time": (lambda t: {"startingTimestamp": str(T0 + 3)}, "v3 v4 v5"),
    "times": (lambda t: {"startingOffsetsByTimestamp": by_partition(t, T0 + 4, T0)}, "v1 v3 v4 v5"),
    "times that are ends": (lambda t: {"startingOffsetsByTimestamp": by_partition(t, -1, -2)}, "v1 v3"),
    "one time that is the end": (lambda t: {"startingTimestamp": "-1"}, ""),
    "a time behind the end": (lambda t: {"startingTimestamp": str(T0 + 4),
                                         "startingOffsetsByTimestampStrategy": "latest"}, "v4 v5"),
    "assigned": (lambda t: {"subscribe": "", "assign": json.dumps({t: [1]}), "startingOffsets": "earliest"}, "v1 v3"),
    "a pattern": (lambda t: {"subscribe": "", "subscribePattern": "starting-opt.*", "startingOffsets": "earliest"},
                  "v0 v1 v2 v3 v4 v5"),
}


@pytest.mark.parametrize(("given", "expected"), STARTS.values(), ids=STARTS)
def test_a_stream_starts_where_it_is_told_and_goes_on_from_there(brokers, topic, given, expected):
    def start():
        options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, **given(topic)}
        return StreamReader(SourceOptions.parse(options, streaming=True), COLUMNS)

    first = start()
    first.prepareForTriggerAvailableNow()
    begin = json.loads(json.dumps(first.initialOffset()))
    end = json.loads(json.dumps(first.latestOffset(begin, ReadAllAvailable())))
    assert values_of(first, first.partitions(begin, end)) == expected.split()
    again = start()
    again.prepareForTriggerAvailableNow()
    assert values_of(again, again.partitions(again.initialOffset(), end)) == expected.split()
    assert again.latestOffset(end, ReadAllAvailable()) == end


ENDS = {
    "behind the log where that may be": (lambda t: {"endingOffsets": by_partition(t, 9, 1), "failOnDataLoss": "false"},
                                         "v0 v1 v2 v4 v5"),
    "before it begins to differ": (lambda t: {"startingOffsets": by_partition(t, 4, 0),
                                              "endingOffsets": by_partition(t, 4, 1)}, "v1"),
    "an offset": (lambda t: {"endingOffsets": by_partition(t, 1, -1)}, "v0 v1 v3"),
    "one time": (lambda t: {"endingTimestamp": str(T0 + 2)}, "v0 v1"),
    "times that are ends": (lambda t: {"endingOffsetsByTimestamp": by_partition(t, -2, -1)}, "v1 v3"),
    "one time that is the beginning": (lambda t: {"endingTimestamp": "-2"}, ""),
    "times": (lambda t: {"endingOffsetsByTimestamp": by_partition(t, T0 + 4, T0 + 99), "endingOffsets": "latest"},
              "v0 v1 v2 v3"),
}


@pytest.mark.parametrize(("given", "expected"), ENDS.values(), ids=ENDS)
def test_a_batch_read_ends_where_it_is_told(brokers, topic, given, expected):
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, **given(topic)}
    reader = BatchReader(SourceOptions.parse(options, streaming=False), COLUMNS)
    assert values_of(reader, reader.partitions()) == expected.split()


@pytest.mark.parametrize(("given", "error", "said"), [
    (lambda t: {"startingOffsets": by_partition(t, 3, 0), "endingOffsets": by_partition(t, 2, 1)}, ConfigError,
     r"starting-options\[0\] starts at offset 3 and ends at offset 2\. Choose"),
    (lambda t: {"startingOffsets": by_partition(t, 0, 100)}, ConfigError,
     r"starting-options\[1\] starts at offset 100 and ends at offset 2\. Choose"),
    (lambda t: {"startingOffsets": by_partition(t, 3, 0), "endingTimestamp": str(T0 + 2)}, ConfigError,
     r"starting-options\[0\] starts at offset 3 and ends at offset 1\. Choose"),
    (lambda t: {"endingOffsets": by_partition(t, 9, 1)}, DataLossError,
     r"starting-options\[0\] is to be read up to offset 9, but its log ends at offset 4\. Lower"),
])
def test_a_batch_read_whose_end_does_not_fit_is_refused_when_it_is_planned(brokers, topic, given, error, said):
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, **given(topic)}
    with pytest.raises(error, match=said):
        BatchReader(SourceOptions.parse(options, streaming=False), COLUMNS).partitions()


@pytest.mark.parametrize(("given", "error", "said"), [
    (lambda t: {"startingTimestamp": str(T0 + 4)}, DataLossError, r"no record at or after .* starting-options\[1\]"),
    (lambda t: {"startingOffsetsByTimestamp": json.dumps({t: {"0": 1}})}, ConfigError, r"leave out starting-.*\[1\]"),
    (lambda t: {"startingOffsets": json.dumps({t: {"0": 1, "1": 1, "7": 1}})}, ConfigError, "which is not read"),
])
def test_a_start_that_is_nowhere_is_an_error(brokers, topic, given, error, said):
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, **given(topic)}
    with pytest.raises(error, match=said):
        stream_reader(options).latestOffset()


def stream_reader(options):
    return StreamReader(SourceOptions.parse(options, streaming=True), COLUMNS)


def logged(offsets):
    return json.loads(json.dumps(offsets))


@pytest.mark.parametrize("given", [
    lambda t: {"startingOffsets": json.dumps({t: {"0": 1}})},
    lambda t: {"startingOffsetsByTimestamp": json.dumps({t: {"0": T0 + 1}})},
    lambda t: {"startingTimestamp": str(T0 + 1)},
])
def test_a_first_batch_runs_again_where_it_began_though_the_topic_has_more_partitions_by_now(
    brokers, make_topic, produce, given
):
    topic = make_topic(1)
    produce(topic, [{"value": f"v{n}", "timestamp": T0 + n} for n in range(3)])
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, **given(topic)}
    end = logged(stream_reader(options).latestOffset())
    with AdminClient({"bootstrap.servers": brokers}) as admin:
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(10)
    again = stream_reader(options)
    nowhere = logged(again.initialOffset())  # Spark asks for it, and the batch has its own
    assert values_of(again, again.partitions(nowhere, end)) == ["v1", "v2"]
    produce(topic, [{"value": "v3", "partition": 1}])
    more = logged(again.latestOffset(end, ReadAllAvailable()))
    assert values_of(again, again.partitions(end, more)) == ["v3"]
    with pytest.raises((ConfigError, DataLossError), match=rf"{topic}\[1\]"):
        again.partitions(nowhere, {topic: {"0": 3}})  # of Spark's own connector, without its start


def test_starting_offsets_behind_the_end_of_the_log_are_an_error_or_mean_the_end(brokers, make_topic, produce, caplog):
    topic = make_topic(1)
    produce(topic, [{"value": "v0"}, {"value": "v1"}])
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic,
               "startingOffsets": json.dumps({topic: {"0": 50}})}
    with pytest.raises(DataLossError, match=r"\[0\] is to be read from offset 50, but its log ends at offset 2"):
        stream_reader(options).latestOffset()
    reader = stream_reader({**options, "failOnDataLoss": "false"})
    begin = logged(reader.initialOffset())
    assert "are read from their end on: " + f"{topic}[0]@2" in caplog.text
    produce(topic, [{"value": "v2"}])
    end = logged(reader.latestOffset(begin, ReadAllAvailable()))
    assert values_of(reader, reader.partitions(begin, end)) == ["v2"]


@pytest.mark.parametrize("fails", ["true", "false"])
@pytest.mark.parametrize("of_connector", [True, False], ids=["a checkpoint of the connector", "starting offsets"])
def test_a_place_within_an_open_transaction_is_no_loss_and_nothing_before_it_is_read_again(
    brokers, make_topic, produce, fails, of_connector
):
    topic = make_topic(1)
    produce(topic, [{"value": "v0"}])
    reached = {topic: {"0": 2}}  # behind v1: the connector reads records that are not committed yet
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "failOnDataLoss": fails,
               "startingOffsets": "earliest" if of_connector else json.dumps(reached)}
    reader = stream_reader(options)
    with Producer({"bootstrap.servers": brokers, "transactional.id": topic}) as producer:
        producer.init_transactions(10)
        producer.begin_transaction()
        for value in ("v1", "v2"):
            producer.produce(topic, value)
        assert producer.flush(10) == 0
        start = reached if of_connector else logged(reader.initialOffset())
        assert logged(reader.latestOffset(start, ReadAllAvailable())) == start
        producer.commit_transaction(10)
    end = logged(reader.latestOffset(start, ReadAllAvailable()))
    assert values_of(reader, reader.partitions(start, end)) == ["v2"]
