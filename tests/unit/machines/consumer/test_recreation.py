"""Topics that are deleted, or made anew, while they are read: which positions hold, and what is told."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.config import CONSUMER, Config
from headrace.errors import KafkaError
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetcher import Fetcher
from headrace.machines.consumer.recreation import Recreations, follow
from headrace.machines.consumer.subscription import EARLIEST, LATEST, PositionPhase, Subscription
from headrace.machines.machine import Send
from headrace.records import BatchBuilder
from headrace.types.records import OFFSET_INVALID, TopicPartition
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.consumer.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

OLD, NEW, NONE = UUID(int=1), UUID(int=2), UUID(int=0)
UNKNOWN = KafkaError.UNKNOWN_TOPIC_OR_PART


class Bench:
    """A consumer's fetcher with partitions 0 and 1 of topic "t", both led by broker 1."""

    def __init__(self, reset: str = "earliest", group_id: str = "") -> None:
        self.metadata = Metadata([("h", 1)])
        self.subscription = Subscription(group_id, reset)
        config = Config(CONSUMER, {"bootstrap.servers": "h:1"})
        self.fetcher = Fetcher(self.subscription, self.metadata, config, lambda: None, lambda: 0.5)
        self.now = 0.0

    def assign(self, offset: int = 100) -> None:
        self.subscription.assign([TopicPartition("t", partition, offset) for partition in (0, 1)])

    def picture(self, topic_id: UUID = OLD, code: int = 0, epoch: int = 0) -> Recreations:
        """The metadata says this of the topic, for so long that it is believed."""
        partitions = [] if code else [MetadataResponsePartition(partition_index=p, leader_id=1, leader_epoch=epoch)
                                      for p in (0, 1)]
        for _ in range(2):
            self.now += 1000
            self.metadata.refresh(self.now)
            [send] = self.metadata.poll(self.now)
            self.metadata.on_reply(send, MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
                topics=[MetadataResponseTopic(name="t", topic_id=topic_id, error_code=code, partitions=partitions)]),
                self.now)
        return follow(self.subscription, self.metadata.cluster)

    def fetch(self) -> Send:
        [send] = self.fetcher.poll(0.0)
        return send

    def fetched(self, send: Send, topic_id: UUID) -> None:
        builder = BatchBuilder(1 << 20, 1 << 20)
        builder.append(1000, None, b"value")
        data = PartitionData(partition_index=0, high_watermark=1000, last_stable_offset=1000, log_start_offset=0,
                             records=memoryview(builder.seal(0).data))
        self.fetcher.on_reply(send, FetchResponse(session_id=5, responses=[
            FetchableTopicResponse(topic_id=topic_id, partitions=[data])]), 0.0)

    def states(self) -> list[tuple[PositionPhase, int]]:
        return [(state.phase, state.position) for state in self.subscription]


def reading(reset: str = "earliest") -> Bench:
    bench = Bench(reset)
    bench.assign()
    assert bench.picture(OLD) == Recreations()
    return bench


def texts(found: Recreations) -> list[str]:
    return [error.str() for _, error in found.errors]


@pytest.mark.parametrize(("reset", "timestamp"), [("earliest", EARLIEST), ("latest", LATEST)])
@pytest.mark.parametrize("between", [False, True], ids=["at once", "after it was gone"])
def test_the_policy_decides_where_a_topic_that_was_made_anew_is_read(reset: str, timestamp: int, between: bool) -> None:
    bench = reading(reset)
    if between:
        assert bench.picture(NONE, UNKNOWN).lost == {"t"}
        assert bench.states() == [(PositionPhase.FETCH, 100)] * 2
    found = bench.picture(NEW)
    assert found.lost == {"t"}
    assert [(state, error.code()) for state, error in found.errors] == [(None, KafkaError.UNKNOWN_TOPIC_ID)]
    assert str(OLD) in texts(found)[0]
    assert str(NEW) in texts(found)[0]
    assert bench.states() == [(PositionPhase.RESET, OFFSET_INVALID)] * 2
    assert {state.reset_timestamp for state in bench.subscription} == {timestamp}
    assert bench.picture(NEW) == Recreations(), "it is told once"


def test_without_a_policy_each_partition_stops_and_is_told() -> None:
    bench = reading("error")
    found = bench.picture(NEW)
    assert [(state and state.partition, error.code()) for state, error in found.errors] == [
        (None, KafkaError.UNKNOWN_TOPIC_ID), (0, KafkaError._AUTO_OFFSET_RESET), (1, KafkaError._AUTO_OFFSET_RESET)]
    assert "seek()" in texts(found)[1]
    assert bench.states() == [(PositionPhase.FAILED, OFFSET_INVALID)] * 2
    bench.subscription.seek("t", 0, 3)
    assert bench.picture(NEW) == Recreations()
    assert bench.states()[0] == (PositionPhase.FETCH, 3)


def test_what_was_fetched_of_the_old_topic_is_not_handed_out_any_more() -> None:
    bench = Bench()
    bench.metadata.want_topics(["t"])
    bench.assign(0)
    bench.picture(OLD)
    bench.fetched(bench.fetch(), OLD)
    on_its_way = bench.fetch()
    bench.picture(NEW)
    assert bench.fetcher.take(10) == []
    bench.fetched(on_its_way, OLD)
    assert bench.fetcher.take(10) == []


def test_a_fetch_session_forgets_the_old_topic_and_asks_for_the_new() -> None:
    bench = Bench()
    bench.metadata.want_topics(["t"])
    bench.assign(0)
    bench.picture(OLD)
    bench.fetched(bench.fetch(), OLD)
    bench.picture(NEW)
    for state in bench.subscription:
        bench.subscription.positioned(state, 0)
    [again] = bench.fetcher.poll(0.0)
    request = again.request
    assert isinstance(request, FetchRequest)
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data] == [(OLD, [0, 1])]
    assert [(topic.topic_id, [p.fetch_offset for p in topic.partitions]) for topic in request.topics] == [(NEW, [0, 0])]


def test_nothing_is_committed_to_a_topic_that_is_gone() -> None:
    bench = reading()
    state = bench.subscription.require("t", 0)
    state.stored = 120
    assert [tp.offset for tp in bench.subscription.to_commit()] == [120]
    bench.picture(NONE, UNKNOWN)
    assert bench.subscription.to_commit() == []
    bench.picture(OLD)
    assert [tp.offset for tp in bench.subscription.to_commit()] == [120], "it was not known for a while"
    state.committed = 110
    bench.picture(NEW)
    assert bench.subscription.to_commit() == []
    assert (state.stored, state.committed, state.high_watermark) == (OFFSET_INVALID, OFFSET_INVALID, -1)


@pytest.mark.parametrize("offset", [OFFSET_INVALID, -2], ids=["committed", "of the log"])
def test_an_answer_about_the_old_topic_is_no_start_in_the_new(offset: int) -> None:
    bench = Bench(group_id="g")
    bench.assign(offset)
    bench.picture(OLD)
    state = bench.subscription.require("t", 0)
    phase, epoch = state.phase, state.epoch
    state.busy = True
    found = bench.picture(NEW)
    assert found.lost == {"t"}
    assert (state.phase, state.busy) == (phase, False), "it is asked for again"
    assert state.epoch > epoch


def test_a_paused_partition_starts_again_as_well() -> None:
    bench = reading()
    bench.subscription.set_paused([TopicPartition("t", 0)], True)
    bench.picture(NEW)
    assert bench.states() == [(PositionPhase.RESET, OFFSET_INVALID)] * 2
    assert bench.subscription.require("t", 0).paused


@pytest.mark.parametrize("ids", [(NONE, NONE), (OLD, OLD), (OLD, NONE), (NONE, OLD)])
def test_a_topic_without_an_id_is_not_taken_for_another(ids: tuple[UUID, UUID]) -> None:
    bench = Bench()
    bench.assign()
    for topic_id in (*ids, *ids):
        assert bench.picture(topic_id) == Recreations()
    assert bench.states() == [(PositionPhase.FETCH, 100)] * 2


def test_a_topic_that_is_not_there_yet_is_not_gone() -> None:
    bench = Bench()
    bench.assign()
    assert bench.picture(NONE, UNKNOWN) == Recreations()
    assert bench.picture(NEW) == Recreations()
    assert bench.states() == [(PositionPhase.FETCH, 100)] * 2


def test_a_topic_that_may_not_be_read_is_not_gone() -> None:
    bench = reading()
    assert bench.picture(NONE, KafkaError.TOPIC_AUTHORIZATION_FAILED) == Recreations()
    assert bench.states() == [(PositionPhase.FETCH, 100)] * 2


def test_a_partition_that_is_assigned_after_the_topic_was_made_anew_is_none_of_the_old() -> None:
    bench = reading()
    bench.picture(NEW)
    bench.subscription.assign([TopicPartition("t", 0, 7)])
    follow(bench.subscription, bench.metadata.cluster)
    assert bench.picture(NEW) == Recreations()
    assert bench.states() == [(PositionPhase.FETCH, 7)]


def test_a_partition_that_waits_for_its_groups_offset_goes_on_waiting_whatever_the_policy() -> None:
    bench = Bench("error", group_id="g")
    bench.assign(OFFSET_INVALID)
    bench.picture(OLD)
    epochs = [state.epoch for state in bench.subscription]
    found = bench.picture(NEW)
    assert [(state, error.code()) for state, error in found.errors] == [(None, KafkaError.UNKNOWN_TOPIC_ID)]
    assert bench.states() == [(PositionPhase.COMMITTED, OFFSET_INVALID)] * 2
    assert [state.epoch for state in bench.subscription] == [epoch + 1 for epoch in epochs], "asked anew"


def test_a_topic_that_is_not_in_the_picture_yet_hides_nothing_of_the_others() -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("new", 0, 5), TopicPartition("t", 0, 100)])
    bench.picture(OLD)
    assert bench.picture(NEW).lost == {"t"}
    assert bench.states() == [(PositionPhase.FETCH, 5), (PositionPhase.RESET, OFFSET_INVALID)]
