"""The balance weighs partitions by their queues, and looks only when there may be something new."""

import math
from types import SimpleNamespace

from headrace.buffers import OpenBatches
from headrace.machines.cluster.metadata import Cluster, PartitionInfo, TopicInfo
from headrace.machines.producer.batch_queue import BatchQueues
from headrace.machines.producer.partitioner import PartitionLoadStats
from headrace.types.records import NodeAddress


class Buffer:
    def __init__(self, partition_count):
        self.sticky, self.partition_count, self.given = 0, partition_count, []

    def weigh(self, weights):
        self.given.append(weights)


def opened(count=1):
    sealed = SimpleNamespace(size_bytes=100, data=b"", stamp=lambda *of: None)
    return SimpleNamespace(count=count, size_bytes=100, opened_at=0.0, seal=lambda codec=0, level=-1: sealed)


class Setting:
    def __init__(self, leaders=(1, 2, 3), **how):
        self.buffer = Buffer(len(leaders))
        self.buffers = {"t": self.buffer}
        self.accumulator = BatchQueues(OpenBatches(), 0.0, math.inf)
        self.metadata = SimpleNamespace(cluster=None, updates=0)
        self.lead(*leaders)
        self.balance = PartitionLoadStats(self.buffers, self.accumulator, self.metadata, **how)
        self.now = 0.0

    def lead(self, *leaders, topic="t", nodes=()):
        infos = {number: PartitionInfo(leader) for number, leader in enumerate(leaders)}
        before = {} if self.metadata.cluster is None else self.metadata.cluster.topics
        topics = {**before, topic: TopicInfo(topic, partitions=infos)} if leaders else before
        self.metadata.cluster = Cluster({node.id: node for node in nodes}, topics=topics)
        self.metadata.updates += 1

    def fill(self, *lengths):
        for partition, length in enumerate(lengths):
            for _ in range(length):
                queue = self.accumulator.queue("t", partition)
                queue.add(opened(), math.inf)
                self.accumulator.insert(queue.waiting.pop(), -math.inf)

    def take(self, partition, done=True):
        batch = self.accumulator.take(self.accumulator.queue("t", partition))
        if done:
            self.accumulator.settle(batch)
        return batch

    def look(self, after_s=0.01):
        self.now += after_s
        assert list(self.balance.poll(self.now)) == []
        return self.buffer.given[-1] if self.buffer.given else None


def test_a_partition_weighs_the_less_the_longer_its_queue_is():
    setting = Setting()
    assert setting.look() is None
    setting.fill(0, 3, 1)
    assert setting.look() == [4, 1, 3]  # the example of KIP-794's implementation
    for partition in (1, 1, 1, 2):
        setting.take(partition)
    assert setting.look() is None
    assert setting.buffer.given == [[4, 1, 3], None]


def test_equal_queues_are_no_reason_to_weigh():
    setting = Setting()
    setting.fill(2, 2, 2)
    assert setting.look() is None
    assert setting.buffer.given == []


def test_what_is_in_flight_is_not_in_the_queue():
    setting = Setting()
    setting.fill(0, 2, 0)
    setting.take(1, done=False)
    assert setting.look() == [2, 1, 2]


def test_without_adaptive_partitioning_only_leaders_count():
    setting = Setting((1, None, 2), adaptive=False)
    setting.fill(5, 0, 0)
    assert setting.look() == [1, 0, 1]
    setting.lead(1, 3, 2)
    assert setting.look() is None


def test_queues_of_what_is_left_out_do_not_lighten_the_others():
    setting = Setting((1, None, 2))
    setting.fill(1, 50, 0)
    assert setting.look() == [1, 0, 2]


def test_topics_whose_records_all_have_keys_are_not_weighed_by_their_queues():
    setting = Setting()
    setting.buffer.sticky = -1
    setting.fill(0, 3, 1)
    assert setting.look() is None


def test_it_looks_every_five_milliseconds_at_most_unless_metadata_or_topics_are_new():
    setting = Setting()
    setting.look()
    setting.fill(1)
    assert setting.look(0.001) is None
    assert math.isclose(setting.balance.deadline(), 0.015)
    assert setting.look(0.004) == [1, 2, 2]
    assert setting.balance.deadline() is None
    setting.fill(1)
    setting.lead(1, 2, None)
    assert setting.look(0.0001) == [1, 3, 0]
    other = setting.buffers["other"] = Buffer(2)
    setting.metadata.cluster.topics["other"] = TopicInfo("other", partitions={0: PartitionInfo(None),
                                                                              1: PartitionInfo(1)})
    setting.look(0.0001)
    assert other.given == [[0, 1]]


def test_a_broker_that_settles_nothing_is_left_out_when_its_time_is_over():
    setting = Setting((1, 2, 1), patience_s=1.0, adaptive=False)
    setting.fill(2)
    assert setting.look(0.1) is None
    assert math.isclose(setting.balance.deadline(), 1.1)
    setting.take(0, done=False)
    assert setting.look(0.9) is None
    assert setting.look(0.1) == [0, 1, 0]
    setting.accumulator.settle(setting.accumulator.queue("t", 0).in_flight[0])
    assert setting.look() is None
    assert setting.look(1.1) == [0, 1, 0]
    setting.take(0)
    assert setting.look() is None
    assert setting.balance.deadline() is None


def test_sending_again_and_again_settles_nothing():
    setting = Setting(patience_s=1.0, adaptive=False)
    setting.fill(1)
    setting.look()
    for _ in range(12):
        batch = setting.take(0, done=False)
        setting.look(0.05)
        setting.accumulator.settle(batch)
        setting.accumulator.requeue(batch, 0.0)
        setting.look(0.05)
    assert setting.look() == [0, 1, 1]


def test_a_new_leader_has_its_own_time():
    setting = Setting(patience_s=1.0, adaptive=False)
    setting.fill(1)
    setting.look()
    assert setting.look(1.1) == [0, 1, 1]
    setting.lead(3, 2, 3)
    assert setting.look() is None
    assert setting.look(1.1) == [0, 1, 0]


def test_the_own_rack_is_not_insisted_on():
    setting = Setting(rack="here")
    assert setting.look() is None


def test_where_the_own_rack_leads_nothing_what_has_no_leader_is_left_out_all_the_same():
    setting = Setting(leaders=(1, None, 2), rack="near")
    setting.lead(1, None, 2, nodes=[NodeAddress(1, "h", 1, "far"), NodeAddress(2, "h", 2, "far")])
    assert setting.look() == [1, 0, 1]


def test_a_broker_that_answers_nothing_is_left_out_although_nothing_more_waits_for_it():
    setting = Setting(leaders=(1, 2), patience_s=5.0, adaptive=False)
    setting.fill(1)
    setting.look()
    setting.take(0, done=False)
    assert setting.look(1.0) is None
    assert setting.balance.deadline() == 0.01 + 5.0
    setting.look(0.0)
    assert setting.balance.deadline() is not None, "the look is put off"
    assert setting.look(5.0) == [0, 1]


def test_topics_that_are_as_they_were_are_not_weighed_anew_when_another_comes(monkeypatch):
    setting, looked_at = Setting(leaders=(1, 2)), []
    for number in range(100):
        setting.buffers[f"t{number}"] = Buffer(2)
        setting.lead(1, 2, topic=f"t{number}")
    left_out = PartitionLoadStats._left_out
    monkeypatch.setattr(PartitionLoadStats, "_left_out", lambda self, topic: looked_at.append(topic) or left_out(
        self, topic))
    setting.look()
    assert len(looked_at) == 101
    looked_at.clear()
    setting.buffers["new"] = Buffer(2)
    setting.lead(1, None, topic="new")
    setting.look()
    assert (looked_at, setting.buffers["new"].given) == (["new"], [[1, 0]])
    setting.lead(None, 2, topic="t7")
    setting.look()
    assert (looked_at, setting.buffers["t7"].given) == (["new", "t7"], [[0, 1]])


def test_all_topics_are_weighed_anew_when_brokers_come_into_the_own_rack():
    away, here = NodeAddress(1, "h", 1, "far"), NodeAddress(2, "h", 2, "near")
    setting = Setting(leaders=(1, 2), rack="near")
    setting.lead(nodes=[away])
    assert setting.look() is None, "none is near"
    setting.lead(nodes=[away, here])
    assert setting.look() == [0, 1]


def test_a_topic_that_grows_behind_the_picture_is_weighed_when_it_has_grown():
    setting = Setting(leaders=(None,))
    assert setting.look() is None
    setting.lead(None, 2)
    setting.fill(1)
    assert setting.look() is None, "the buffer knows of one partition"
    setting.buffer.partition_count = 2
    assert setting.look() == [0, 1]
