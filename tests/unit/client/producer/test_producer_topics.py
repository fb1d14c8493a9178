"""Records of a topic that is not known yet wait in order, count against the buffer, and fail in time."""

import time
from types import SimpleNamespace

import pytest

from headrace.buffers import BufferPool
from headrace.client.producer.topics import TopicAccumulators
from headrace.config import PRODUCER, Config
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.cluster.metadata import Cluster, PartitionInfo, TopicInfo


def topics(max_messages=100, **properties):
    config = Config(PRODUCER, {"bootstrap.servers": "localhost:1", **{k.replace("_", "."): v
                                                                      for k, v in properties.items()}})
    pool, wanted = BufferPool(max_messages, 1_000_000), []
    return SimpleNamespace(made=TopicAccumulators(config, pool, wanted.append), buffer_pool=pool, wanted=wanted)


def cluster(partitions=2, error=None):
    info = TopicInfo("t", error=error, partitions={n: PartitionInfo(1) for n in range(partitions)})
    return Cluster(nodes={}, topics={"t": info})


def append(around, value=b"v", key=None, partition=-1, callback=None, timestamp_ms=0, headers=None):
    return around.made.append("t", value, key, partition, timestamp_ms, headers, callback)


def values(buffer):
    return [m.value() for opened in buffer.ready(float("inf")) for _, m in opened.messages(0, 1, -1, None, 0.0)]


def test_a_topic_is_asked_for_once():
    around = topics()
    append(around)
    append(around)
    assert around.wanted == ["t"]
    assert around.buffer_pool.messages == 2


def test_waiting_records_go_into_the_buffer_in_order_and_are_counted_once():
    around = topics()
    for value in (b"1", b"2", b"3"):
        append(around, value, partition=1, callback=print)
    assert around.made.on_cluster(cluster()) == []
    assert around.buffer_pool.messages == 3
    assert values(around.made.open["t"]) == [b"1", b"2", b"3"]


def test_an_unusable_topic_fails_its_records_with_the_brokers_error():
    around = topics()
    append(around, callback=print)
    error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    (failed,) = around.made.on_cluster(cluster(error=error))
    assert failed.message.error() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert failed.callback is print


def test_a_topic_that_is_being_created_is_waited_for():
    around = topics()
    append(around)
    assert around.made.on_cluster(cluster(0, KafkaError(KafkaError.LEADER_NOT_AVAILABLE))) == []
    assert around.buffer_pool.messages == 1


def test_a_topic_that_nobody_could_be_asked_about_fails_its_records_after_message_timeout():
    around = topics(message_timeout_ms=60_000, topic_metadata_propagation_max_ms=10)
    append(around)
    deadline = around.made.deadline()
    assert deadline > time.monotonic() + 59
    assert around.made.expired(deadline - 0.01) == []
    (failed,) = around.made.expired(deadline)
    assert failed.message.error() == KafkaError._MSG_TIMED_OUT
    assert '"t" is not known' in failed.message.error().str()
    assert around.made.deadline() is None


def test_a_topic_that_the_brokers_do_not_have_fails_its_records_after_its_own_time():
    around = topics(topic_metadata_propagation_max_ms=1000)
    append(around)
    around.made.on_cluster(cluster(0, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    append(around)
    deadline = around.made.deadline()
    assert deadline < time.monotonic() + 1
    (failed,) = around.made.expired(deadline)
    assert failed.message.error() == KafkaError._UNKNOWN_TOPIC
    assert around.made.deadline() > deadline
    assert len(around.made.expired(deadline + 1)) == 1


def test_records_without_a_time_limit_wait_for_brokers_for_ever():
    around = topics(message_timeout_ms=0)
    append(around)
    assert around.made.deadline() is None
    assert around.made.expired(time.monotonic() + 1e6) == []


def test_a_partition_that_does_not_exist_fails_its_record_alone():
    around = topics()
    append(around, b"good", partition=0, callback=print)
    append(around, b"bad", partition=5)
    (failed,) = around.made.on_cluster(cluster())
    assert failed.message.error() == KafkaError._UNKNOWN_PARTITION
    assert failed.message.value() == b"bad"
    assert values(around.made.open["t"]) == [b"good"]


def test_records_that_wait_for_their_topic_fill_the_buffer_as_well():
    around = topics(max_messages=1)
    append(around)
    with pytest.raises(BufferError, match=r"Queue full.*poll\(\)"):
        append(around)


@pytest.mark.parametrize(("arguments", "error"), [
    ({"value": 5}, TypeError), ({"key": 5}, TypeError), ({"headers": 5}, TypeError), ({"timestamp_ms": -1}, ValueError),
    ({"value": b"x" * 1_000_001}, KafkaException), ({"partition": "1"}, TypeError), ({"partition": 1.0}, TypeError),
    ({"timestamp_ms": "now"}, TypeError), ({"timestamp_ms": 1.5}, TypeError), ({"partition": 1 << 31}, OverflowError),
    ({"timestamp_ms": 1 << 63}, OverflowError), ({"partition": -2}, KafkaException),
    ({"partition": -1 << 31}, KafkaException), ({"partition": (-1 << 31) - 1}, OverflowError),
])
def test_a_wrong_record_is_refused_at_once_although_the_topic_is_not_known(arguments, error):
    around = topics()
    with pytest.raises(error):
        append(around, **arguments)
    assert around.buffer_pool.messages == 0


def test_added_partitions_are_used():
    around = topics()
    append(around)
    around.made.on_cluster(cluster(2))
    around.made.on_cluster(cluster(4))
    assert around.made.open["t"].partition_count == 4


def test_a_closed_producer_takes_nothing_and_keeps_what_it_has():
    around = topics()
    append(around)
    around.made.refuse(ClientClosedError("closed"))
    with pytest.raises(ClientClosedError):
        append(around)
    around.made.on_cluster(cluster())
    assert around.made.open == {}
    assert list(around.made.all) == ["t"]
