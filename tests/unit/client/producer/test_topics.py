"""Records of a topic that is not known yet wait in order, count against the buffer, and fail in time."""

import time
from types import SimpleNamespace
from uuid import UUID

import pytest

from headrace.buffers import BufferPool, RecordAccumulator
from headrace.client.producer.topics import TopicAccumulators
from headrace.config import PRODUCER, Config
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.cluster.metadata import Cluster, PartitionInfo, TopicInfo


def topics(max_messages=100, **properties):
    config = Config(PRODUCER, {"bootstrap.servers": "localhost:1", **{k.replace("_", "."): v
                                                                      for k, v in properties.items()}})
    pool, wanted = BufferPool(max_messages, 1_000_000), []
    return SimpleNamespace(made=TopicAccumulators(config, pool, wanted.append), buffer_pool=pool, wanted=wanted)


def cluster(partitions=2, error=None, topic_id=0):
    info = TopicInfo("t", UUID(int=topic_id), error=error, partitions={n: PartitionInfo(1) for n in range(partitions)})
    return Cluster(nodes={}, topics={"t": info})


def append(around, value=b"v", key=None, partition=-1, callback=None, timestamp_ms=0, headers=None):
    return around.made.append("t", value, key, partition, timestamp_ms, headers, callback)


def values(buffer):
    return [m.value() for opened in buffer.open_batches.ready(float("inf"))
            for _, m in opened.messages(0, 1, -1, None, 0.0)]


def test_a_topic_that_no_request_could_name_is_refused_and_not_asked_for():
    around = topics()
    with pytest.raises(UnicodeEncodeError):
        around.made.append("\ud800", b"v", None, -1, 0, None, None)
    with pytest.raises(UnicodeEncodeError):
        around.made.await_topic("\ud800", lambda error, message: None)
    append(around)
    assert around.wanted == ["t"]
    assert around.buffer_pool.messages == 1


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
    assert around.made.await_topic("t", print)
    deadline = around.made.deadline()
    assert deadline > time.monotonic() + 59
    assert around.made.expired(deadline - 0.01) == []
    (failed, call) = around.made.expired(deadline + 0.01)
    assert failed.message.error() == KafkaError._MSG_TIMED_OUT
    assert call.message.error() == KafkaError._UNKNOWN_TOPIC  # it has no message that could be late
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


def test_a_topic_that_brokers_did_not_have_is_waited_for_while_they_do_not_answer_any_more():
    around = topics(message_timeout_ms=60_000, topic_metadata_propagation_max_ms=1000)
    missing = cluster(0, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    append(around)
    around.made.on_cluster(missing)
    passed = around.made.deadline()
    assert around.made.expired(passed, unanswered=True) == []
    assert around.made.deadline() > passed + 50  # no turn of the loop in vain
    (failed,) = around.made.expired(around.made.deadline(), unanswered=True)
    assert failed.message.error() == KafkaError._MSG_TIMED_OUT


def test_an_answer_that_there_is_still_no_topic_fails_the_records_that_waited_for_one():
    around = topics(topic_metadata_propagation_max_ms=1000)
    missing = cluster(0, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    append(around)
    around.made.on_cluster(missing)
    passed = around.made.deadline()
    assert around.made.expired(passed + 1, unanswered=True) == []
    around.made.on_cluster(missing)
    (failed,) = around.made.expired(passed + 2)
    assert failed.message.error() == KafkaError._UNKNOWN_TOPIC


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
    assert around.buffer_pool.messages == 2  # it counts until its report is served
    assert values(around.made.open["t"]) == [b"good"]


def test_a_record_that_there_is_no_memory_for_fails_alone(monkeypatch):
    def no_memory_for_two(self, accumulator, record, counted_bytes):
        if record.value == b"2":
            raise MemoryError
        appending(self, accumulator, record, counted_bytes)

    appending = TopicAccumulators._append
    monkeypatch.setattr(TopicAccumulators, "_append", no_memory_for_two)
    around = topics()
    for value in (b"1", b"2", b"3"):
        append(around, value, partition=1, callback=print)
    failed, = around.made.on_cluster(cluster())
    assert (failed.message.value(), failed.message.error()) == (b"2", KafkaError._CRIT_SYS_RESOURCE)
    assert values(around.made.open["t"]) == [b"1", b"3"]


def test_a_record_counts_all_the_time_while_it_leaves_for_the_buffer():
    seen = []

    def choose(topic, key, value, partition_count):
        """Called in the midst of it, as other threads may look then: one that flushes, one that waits for room."""
        seen.append(around.buffer_pool.messages)
        with pytest.raises(BufferError):
            around.made.accumulator_of("known").append(b"another")
        return int(value)

    around = topics(max_messages=1, partitioner=choose)
    around.made.await_topic("known", lambda error, message: None)
    known = TopicInfo("known", UUID(int=9), partitions={0: PartitionInfo(1)})
    around.made.on_cluster(Cluster(nodes={}, topics={"known": known}))
    append(around, b"1", callback=print)
    assert around.made.on_cluster(cluster()) == []
    assert seen == [1]
    assert values(around.made.all["t"]) == [b"1"]
    assert around.buffer_pool.messages == 1


def test_a_topic_that_was_made_anew_with_fewer_partitions_has_only_those():
    around = topics()
    append(around, b"first", partition=3)
    around.made.on_cluster(cluster(5, topic_id=1))
    around.made.on_cluster(cluster(4, topic_id=2))
    around.made.on_cluster(cluster(2, topic_id=2))
    assert around.made.open["t"].partition_count == 4  # a broker lags behind
    around.made.on_cluster(cluster(0, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    around.made.on_cluster(cluster(2, topic_id=3))
    assert around.made.open["t"].partition_count == 2
    around.made.on_cluster(cluster(4, topic_id=2))
    around.made.on_cluster(cluster(2, topic_id=3))
    assert around.made.open["t"].partition_count == 2
    with pytest.raises(KafkaException):
        append(around, b"second", partition=3)


def test_records_that_wait_for_their_topic_fill_the_buffer_as_well():
    around = topics(max_messages=1)
    append(around)
    with pytest.raises(BufferError, match=r"Queue full.*poll\(\)"):
        append(around)


@pytest.mark.parametrize(("arguments", "error"), [
    ({"value": 5}, TypeError), ({"key": 5}, TypeError), ({"headers": 5}, TypeError), ({"timestamp_ms": -1}, ValueError),
    ({"value": b"x" * 1_000_001}, KafkaException), ({"partition": "1"}, TypeError), ({"partition": 1.0}, TypeError),
    ({"timestamp_ms": "now"}, TypeError), ({"timestamp_ms": 1.5, "partition": -2}, TypeError),
    ({"partition": 1 << 31}, OverflowError),
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
    around.made.refuse(lambda: ClientClosedError("closed"))
    with pytest.raises(ClientClosedError):
        append(around)
    around.made.on_cluster(cluster())
    assert around.made.open == {}
    assert list(around.made.all) == ["t"]


def test_a_topic_that_is_known_needs_no_waiting():
    around, told = topics(), []
    assert around.made.await_topic("t", lambda *outcome: told.append(outcome))
    assert around.wanted == ["t"]
    assert around.buffer_pool.messages == 0  # no record waits
    around.made.on_cluster(cluster())
    assert told == [(None, None)]
    assert not around.made.await_topic("t", told.append)
    assert len(told) == 1


def test_who_waits_for_a_topic_that_cannot_be_used_is_told_as_its_records_are():
    around = topics(topic_metadata_propagation_max_ms=1000)
    around.made.await_topic("t", print)
    around.made.on_cluster(cluster(0, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    (failed,) = around.made.expired(around.made.deadline())
    assert (failed.callback, failed.error, failed.cost_bytes) == (print, KafkaError._UNKNOWN_TOPIC, None)


def test_the_buffer_of_a_topic_is_had_while_records_are_taken():
    around = topics()
    append(around)
    around.made.on_cluster(cluster())
    assert around.made.accumulator_of("t") is around.made.all["t"]
    assert around.made.is_taking
    around.made.refuse(lambda: ClientClosedError("closed"))
    assert not around.made.is_taking
    with pytest.raises(ClientClosedError):
        around.made.accumulator_of("t")


def test_records_are_taken_again_after_a_pause():
    around = topics()
    append(around)
    around.made.on_cluster(cluster())
    around.made.refuse(lambda: KafkaException(KafkaError(KafkaError._STATE)))
    with pytest.raises(KafkaException):
        append(around)
    around.made.admit()
    append(around)
    assert list(around.made.open) == ["t"]
    assert around.buffer_pool.messages == 2


def test_who_is_spared_may_go_on():
    around, spared = topics(), [True]
    around.made.refuse(lambda: ClientClosedError("closed"), lambda: spared[0])
    append(around)
    spared[0] = False
    with pytest.raises(ClientClosedError):
        append(around)


def test_dropping_takes_out_all_that_waits_for_a_topic():
    around = topics()
    append(around, b"a", callback=print)
    append(around, b"b")
    failed = around.made.drop(KafkaError(KafkaError._PURGE_QUEUE))
    assert [(record.message.value(), record.callback) for record in failed] == [(b"a", print), (b"b", None)]
    assert {record.error.code() for record in failed} == {KafkaError._PURGE_QUEUE}
    assert sum(record.cost_bytes for record in failed) == around.buffer_pool.bytes  # to be released by who reports them
    assert around.made.drop(KafkaError(KafkaError._PURGE_QUEUE)) == []
    assert around.made.deadline() is None


def test_calls_that_wait_for_a_topic_may_be_taken_out_without_its_records():
    around = topics()
    around.made.await_topic("t", print)
    append(around, b"a")
    around.made.await_topic("other", print)
    told = around.made.drop_watchers(KafkaError(KafkaError._RESOLVE))
    assert [(each.message.topic(), each.callback, each.was_accepted) for each in told] == [
        ("t", print, False), ("other", print, False)]
    around.made.await_topic("other", print)
    assert around.wanted == ["t", "other", "other"]
    assert [each.message.value() for each in around.made.drop(KafkaError(KafkaError._PURGE_QUEUE))] == [b"a", None]


def test_a_function_that_chooses_partitions_sees_each_record_and_no_buffer_is_open():
    seen = []

    def choose(topic, key, value, partition_count):
        seen.append((topic, key, value, partition_count))
        return 1

    around = topics(partitioner=choose)
    assert around.made.by_function
    append(around, "waits")
    append(around, "waits, not asked", partition=0)
    around.made.on_cluster(cluster())
    append(around, b"later", "k")
    append(around, b"not asked", partition=0)
    assert around.made.open == {}
    assert seen == [("t", None, b"waits", 2), ("t", b"k", b"later", 2)]
    ready = around.made.open_batches.ready(float("inf"))
    assert sorted((opened.partition, opened.count) for opened in ready) == [(0, 2), (1, 2)]


def test_the_buffer_of_a_topic_is_as_the_properties_say(monkeypatch):
    made = []

    def making(*arguments, **how):
        made.append((*arguments[:2], how))
        return RecordAccumulator(*arguments, **how)

    monkeypatch.setattr("headrace.client.producer.topics.RecordAccumulator", making)
    around = topics(batch_size=2_000, batch_num_messages=7, message_max_bytes=3_000, partitioner="murmur2_random",
                    sticky_partitioning_linger_ms=11)
    append(around)
    around.made.on_cluster(cluster(3))
    ((name, count, how),) = made
    assert (name, count, how.pop("on_no_partition")) == ("t", 3, around.made._look_again)
    assert how == {"partitioner": "murmur2_random", "batch_bytes": 2_000, "batch_count": 7, "message_bytes": 3_000,
                   "turn_ms": 11}


def test_in_a_child_process_nothing_is_taken_although_somebody_held_the_lock():
    around = topics()
    append(around)
    with around.made._lock:
        around.made.after_fork(lambda: ClientClosedError("forked"))
        with pytest.raises(ClientClosedError, match="forked"):
            append(around)


def test_a_record_without_a_partition_has_it_looked_for_and_what_waits_for_a_topic_is_none():
    looked = []
    config = Config(PRODUCER, {"bootstrap.servers": "localhost:1"})
    made = TopicAccumulators(config, BufferPool(10, 1_000_000), lambda topic: None, lambda: looked.append(1))
    assert made.await_topic("t", print)
    made.append("t", b"v", None, -1, 0, None, None)
    assert [failed.was_accepted for failed in made.drop(KafkaError(KafkaError._PURGE_QUEUE))] == [False, True]
    made.append("t", b"v", None, -1, 0, None, None)
    assert made.on_cluster(cluster()) == []
    assert looked == []
    with pytest.raises(KafkaException, match="no partition 2"):
        made.append("t", b"v", None, 2, 0, None, None)
    assert looked == [1]
