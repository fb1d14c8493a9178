"""Fetching as a member of a share group: whom to ask, what was acquired, and what becomes of acknowledgements."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.config import SHARE, Config
from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetcher import RecordsReady
from headrace.machines.groups.share_group import ShareGroup
from headrace.machines.machine import Send
from headrace.machines.share.acknowledgements import RENEW, Acknowledged, Acknowledgements
from headrace.machines.share.share_fetcher import AcquiredBatch, Demand, SessionsClosed, ShareFailure, ShareFetcher
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.groups.classic_groups import FindCoordinatorResponse
from headrace.wire.messages.groups.consumer_groups import AssignedTopicPartitions, HeartbeatAssignment
from headrace.wire.messages.groups.share_groups import (
    AcknowledgeLeaderIdAndEpoch,
    AcknowledgePartitionData,
    AcquiredRecords,
    FetchLeaderIdAndEpoch,
    FetchNodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
    ShareFetchableTopicResponse,
    ShareFetchPartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareGroupHeartbeatResponse,
)

T = UUID(int=5)
NOBODY = FetchLeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)


class Bench:
    """A member with two partitions, led by brokers 1 and 2."""

    def __init__(self, jitter: float = 0.5, **properties: Any) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        config = Config(SHARE, {"bootstrap.servers": "h:1", "group.id": "g", **named})
        self.now = 1.0
        self.metadata = Metadata([("h", 1)])
        self.lead(1, 2)
        finder = CoordinatorFinder(0, "g")
        [find] = finder.poll(self.now)
        finder.on_reply(find, FindCoordinatorResponse(node_id=1, host="h", port=1), self.now)
        self.group = ShareGroup(config, self.metadata, finder, "me")
        self.group.subscribe(["t"], self.now)
        self.assign(0, 1)
        self.fetcher = ShareFetcher(self.group, self.metadata, config, RetryPolicy.of(config, lambda: jitter))

    def lead(self, *leaders: int, epoch: int = 1) -> None:
        self.now += 1
        self.metadata.want_topics([f"{self.now}"])
        [send] = self.metadata.poll(self.now)
        self.metadata.on_reply(send, MetadataResponse(
            cluster_id="c", brokers=[MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)],
            topics=[MetadataResponseTopic(name="t", topic_id=T, partitions=[
                MetadataResponsePartition(partition_index=p, leader_id=leader, leader_epoch=epoch)
                for p, leader in enumerate(leaders)])]), self.now)

    def assign(self, *partitions: int) -> None:
        self.now += 10
        [beat] = self.group.poll(self.now)
        self.group.on_reply(beat, ShareGroupHeartbeatResponse(
            member_epoch=1, heartbeat_interval_ms=5000, assignment=HeartbeatAssignment(
                topic_partitions=[AssignedTopicPartitions(topic_id=T, partitions=list(partitions))])), self.now)

    def poll(self, after_s: float = 0.0) -> list[Send]:
        self.now += after_s
        return list(self.fetcher.poll(self.now))

    def fetch(self, demand: Demand = Demand.WAITING) -> dict[int, Send]:
        """The fetches that are sent, by broker."""
        self.fetcher.demand = demand
        sends = self.poll()
        assert {type(send.request) for send in sends} <= {ShareFetchRequest}
        return {send.destination: send for send in sends}

    def give(self, send: Send, first: int = 0, last: int = 9, topic_id: UUID = T, lock_ms: int = 30_000,
             **more: Any) -> None:
        """Answer a fetch with records of the one partition of this broker."""
        acquired = [AcquiredRecords(first_offset=first, last_offset=last, delivery_count=1)] if last >= first else []
        part = ShareFetchPartitionData(**{
            "partition_index": send.destination - 1, "acknowledge_error_code": 0, "error_code": 0,
            "current_leader": NOBODY, "records": b"batches", "acquired_records": acquired, **more})
        self.fetcher.on_reply(send, ShareFetchResponse(
            error_code=0, acquisition_lock_timeout_ms=lock_ms,
            responses=[ShareFetchableTopicResponse(topic_id=topic_id, partitions=[part])]), self.now)

    def nothing(self, send: Send, code: int = 0) -> None:
        reply = ShareFetchResponse if isinstance(send.request, ShareFetchRequest) else ShareAcknowledgeResponse
        self.fetcher.on_reply(send, reply(error_code=code, acquisition_lock_timeout_ms=30_000), self.now)

    def take(self) -> AcquiredBatch:
        found = self.fetcher.queue.popleft()
        assert isinstance(found, AcquiredBatch)
        return found

    def say(self, batch: AcquiredBatch, types: dict[int, int]) -> None:
        self.fetcher.acknowledge([Acknowledgements(batch.key, batch.topic_id, batch.session, types)])

    def answer(self, send: Send, code: int = 0, leader: int = -1) -> None:
        """Answer a ShareAcknowledge."""
        part = AcknowledgePartitionData(
            partition_index=send.destination - 1, error_code=code,
            current_leader=AcknowledgeLeaderIdAndEpoch(leader_id=leader, leader_epoch=9 if leader >= 0 else -1))
        self.fetcher.on_reply(send, ShareAcknowledgeResponse(
            error_code=0, acquisition_lock_timeout_ms=30_000,
            responses=[ShareAcknowledgeTopicResponse(topic_id=T, partitions=[part])]), self.now)

    def acknowledged(self) -> list[tuple[set[int], int | None]]:
        """What was reported of acknowledgements: offsets, and the code of the error."""
        return [(set(event.offsets), None if event.error is None else event.error.code())
                for event in self.fetcher.events() if isinstance(event, Acknowledged)]

    def holding(self, offsets: range = range(10)) -> AcquiredBatch:
        """Records of broker 1, which the application has; broker 2 has answered."""
        sent = self.fetch()
        self.give(sent[1], offsets[0], offsets[-1])
        self.nothing(sent[2])
        self.fetcher.demand = Demand.NONE
        self.fetcher.events()
        return self.take()


def acknowledgements_in(send: Send) -> list[tuple[int, int, int, list[int]]]:
    request = send.request
    assert isinstance(request, (ShareFetchRequest, ShareAcknowledgeRequest))
    return [(part.partition_index, batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for topic in request.topics for part in topic.partitions for batch in part.acknowledgement_batches]


def test_nobody_is_asked_before_the_application_waits() -> None:
    bench = Bench()
    assert bench.poll() == []
    assert set(bench.fetch()) == {1, 2}
    assert bench.poll() == []


def test_a_fetch_says_what_the_properties_say() -> None:
    bench = Bench(max_poll_records=7, fetch_wait_max_ms=99, fetch_min_bytes=3, fetch_max_bytes=2000,
                  share_acquire_mode="record_limit")
    request = bench.fetch()[1].request
    assert isinstance(request, ShareFetchRequest)
    assert (request.group_id, request.member_id, request.max_records, request.batch_size) == ("g", "me", 7, 7)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.share_acquire_mode) == (99, 3, 2000, 1)


def test_what_was_acquired_is_queued_and_nobody_is_asked_until_it_is_taken() -> None:
    bench = Bench()
    sent = bench.fetch()
    bench.give(sent[1], 3, 5)
    assert bench.fetcher.events() == [RecordsReady()]
    assert bench.poll() == []
    batch = bench.take()
    assert (batch.key, batch.topic_id, batch.ranges, batch.data) == (("t", 0), T, [(3, 5, 1)], b"batches")
    assert batch.until == bench.now + 30
    assert bench.fetcher.lock_timeout_ms == 30_000
    assert set(bench.fetch()) == {1}  # broker 2 has not answered yet


@pytest.mark.parametrize(("wait_ms", "left_s"), [(500, 5.0), (7_500, 5.0), (8_000, 30.0)])
def test_a_lock_counts_from_when_it_was_asked_for_unless_the_broker_may_have_waited_for_much_of_it(
    wait_ms: int, left_s: float
) -> None:
    bench = Bench(fetch_wait_max_ms=wait_ms)
    sent = bench.fetch()
    bench.now += 25  # the process stands still, and the reply lies in the kernel
    bench.give(sent[1])
    assert bench.take().until == pytest.approx(bench.now + left_s)


def test_records_are_held_for_as_long_as_the_broker_says() -> None:
    bench = Bench()
    bench.give(bench.fetch()[1], lock_ms=5_000)
    assert bench.take().until == bench.now + 5


def test_records_of_a_topic_that_was_deleted_are_nobodys() -> None:
    bench = Bench()
    bench.give(bench.fetch()[1], topic_id=UUID(int=99))
    assert not bench.fetcher.queue


def test_a_partition_without_a_leader_is_asked_for_when_it_has_one() -> None:
    bench = Bench()
    bench.lead(-1, 2)
    assert set(bench.fetch()) == {2}
    bench.lead(1, 2)
    assert set(bench.fetch()) == {1}


def test_an_empty_answer_is_followed_by_the_next_fetch_while_the_application_waits() -> None:
    bench = Bench()
    sent = bench.fetch()
    bench.nothing(sent[1])
    [again] = bench.poll()
    assert isinstance(again.request, ShareFetchRequest)
    assert (again.request.share_session_epoch, again.request.topics) == (1, [])
    bench.nothing(again)
    bench.fetcher.demand = Demand.NONE
    assert bench.poll() == []


def test_who_looks_in_once_has_one_fetch_sent() -> None:
    bench = Bench()
    sent = bench.fetch(Demand.ONCE)
    assert set(sent) == {1, 2}
    bench.nothing(sent[1])
    assert bench.poll() == []


def test_with_a_strict_limit_brokers_are_asked_in_turn() -> None:
    bench = Bench(share_acquire_mode="record_limit")
    asked = []
    for _ in range(4):
        [send] = bench.fetch().values()
        asked.append(send.destination)
        bench.nothing(send)
    assert asked == [1, 2, 1, 2]


def test_acknowledgements_travel_with_the_next_fetch() -> None:
    bench = Bench()
    bench.say(bench.holding(), {1: 1, 2: 2})
    sent = bench.fetch()
    assert acknowledgements_in(sent[1]) == [(0, 1, 2, [1, 2])]
    assert bench.fetcher.unanswered == 1
    bench.give(sent[1], 20, 29)
    assert bench.acknowledged() == [({1, 2}, None)]
    assert bench.fetcher.unanswered == 0


def test_acknowledgements_travel_alone_where_nobody_waits() -> None:
    bench = Bench()
    bench.say(bench.holding(), {1: 1})
    [send] = bench.poll()
    assert isinstance(send.request, ShareAcknowledgeRequest)
    assert (send.request.member_id, send.request.share_session_epoch, send.request.is_renew_ack) == ("me", 1, False)
    assert acknowledgements_in(send) == [(0, 1, 1, [1])]
    bench.answer(send)
    assert bench.acknowledged() == [({1}, None)]


def test_each_of_several_acknowledgements_of_a_partition_is_answered() -> None:
    bench = Bench()
    batch = bench.holding()
    for offset in range(3):
        bench.say(batch, {offset: 1})
    assert bench.fetcher.unanswered == 3
    [send] = bench.poll()
    request = send.request
    assert isinstance(request, ShareAcknowledgeRequest)
    assert (request.group_id, request.member_id) == ("g", "me")
    bench.answer(send)
    assert bench.acknowledged() == [({0}, None), ({1}, None), ({2}, None)]
    assert bench.fetcher.unanswered == 0


def test_a_renewal_travels_alone_also_where_somebody_waits() -> None:
    bench = Bench()
    bench.say(bench.holding(), {1: RENEW})
    bench.fetcher.demand = Demand.WAITING
    by_broker = {send.destination: send.request for send in bench.poll()}
    assert isinstance(by_broker[1], ShareAcknowledgeRequest)
    assert by_broker[1].is_renew_ack
    assert isinstance(by_broker[2], ShareFetchRequest)


def test_a_broker_that_renews_nothing_keeps_the_session_and_gets_the_rest() -> None:
    bench = Bench()
    batch = bench.holding()
    bench.say(batch, {1: RENEW})
    bench.say(batch, {2: 1})
    [send] = bench.poll()
    bench.fetcher.on_error(send, KafkaError(KafkaError._UNSUPPORTED_FEATURE), bench.now)
    assert bench.acknowledged() == [({1}, KafkaError._UNSUPPORTED_FEATURE)]
    assert not batch.session.lost
    [send] = bench.poll()
    assert acknowledgements_in(send) == [(0, 2, 2, [1])]
    bench.answer(send)
    assert bench.acknowledged() == [({2}, None)]


def test_one_request_of_a_session_is_on_the_wire_at_a_time() -> None:
    bench = Bench()
    batch = bench.holding()
    sent = bench.fetch()
    bench.say(batch, {1: 1})
    assert bench.poll() == []
    bench.fetcher.demand = Demand.NONE
    bench.nothing(sent[1])
    [send] = bench.poll()
    assert isinstance(send.request, ShareAcknowledgeRequest)
    assert send.request.share_session_epoch == 2


@pytest.mark.parametrize("code", [
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID, KafkaError.INVALID_RECORD_STATE, KafkaError.INVALID_REQUEST,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
])
def test_acknowledgements_that_do_not_hold_are_reported(code: int) -> None:
    for alone in (True, False):
        bench = Bench()
        bench.say(bench.holding(), {1: 1})
        if alone:
            [send] = bench.poll()
            bench.answer(send, code)
        else:
            bench.give(bench.fetch()[1], 5, 4, acknowledge_error_code=code)
        assert bench.acknowledged() == [({1}, code)]
        assert bench.fetcher.unanswered == 0


@pytest.mark.parametrize("code", [
    KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.KAFKA_STORAGE_ERROR,
])
def test_acknowledgements_that_were_not_written_down_are_sent_again_while_the_lock_may_last(code: int) -> None:
    bench = Bench()
    bench.say(bench.holding(), {1: 1})
    [send] = bench.poll()
    bench.answer(send, code)
    assert bench.acknowledged() == []
    assert bench.poll() == []
    assert bench.fetcher.deadline() == pytest.approx(bench.now + 0.1)
    [again] = bench.poll(0.1)
    assert acknowledgements_in(again) == [(0, 1, 1, [1])]
    bench.now += 30
    bench.answer(again, code)
    assert bench.acknowledged() == [({1}, code)]


def test_acknowledgements_that_a_reply_leaves_out_do_not_hold() -> None:
    bench = Bench()
    bench.say(bench.holding(), {1: 1})
    [send] = bench.poll()
    bench.nothing(send)
    assert bench.acknowledged() == [({1}, KafkaError.UNKNOWN)]


@pytest.mark.parametrize("code", [
    KafkaError.SHARE_SESSION_NOT_FOUND, KafkaError.INVALID_SHARE_SESSION_EPOCH, KafkaError.SHARE_SESSION_LIMIT_REACHED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
])
def test_a_session_that_is_lost_takes_its_acknowledgements_along_and_another_one_begins(code: int) -> None:
    bench = Bench()
    batch = bench.holding()
    bench.say(batch, {1: 1})
    [send] = bench.poll()
    bench.say(batch, {2: 1})
    bench.poll()
    bench.nothing(send, code)
    assert bench.acknowledged() == [({1}, code), ({2}, KafkaError.SHARE_SESSION_NOT_FOUND)]
    assert batch.session.lost
    bench.say(batch, {3: 1})
    bench.now += 2
    bench.fetcher.queue.clear()
    request = bench.fetch()[1].request
    assert isinstance(request, ShareFetchRequest)
    assert (request.share_session_epoch, len(request.topics)) == (0, 1)
    assert bench.acknowledged() == [({3}, KafkaError.SHARE_SESSION_NOT_FOUND)]


def test_a_lost_session_is_begun_again_at_once_and_a_refused_one_after_a_pause() -> None:
    bench = Bench()
    sent = bench.fetch()
    bench.nothing(sent[1])
    [again] = bench.poll()
    bench.nothing(again, KafkaError.SHARE_SESSION_NOT_FOUND)
    [first] = bench.poll()
    bench.nothing(first, KafkaError.SHARE_SESSION_LIMIT_REACHED)
    assert bench.poll() == []
    assert len(bench.poll(0.11)) == 1


def test_an_error_that_lasts_is_reported_once() -> None:
    bench = Bench()
    bench.fetcher.demand = Demand.WAITING
    found = []
    for _ in range(3):
        [send] = [send for send in bench.poll(2) if send.destination == 1]
        bench.nothing(send, KafkaError.GROUP_AUTHORIZATION_FAILED)
        found += list(bench.fetcher.queue)
        bench.fetcher.queue.clear()
    [failure] = found
    assert isinstance(failure, ShareFailure)
    assert (failure.key, failure.error.code()) == (None, KafkaError.GROUP_AUTHORIZATION_FAILED)


@pytest.mark.parametrize("code", [
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.INVALID_MSG,
    KafkaError.UNKNOWN,
])
def test_an_error_of_a_partition_that_lasts_is_reported(code: int) -> None:
    bench = Bench()
    bench.give(bench.fetch()[1], error_code=code)
    found = bench.fetcher.queue.popleft()
    assert isinstance(found, ShareFailure)
    assert (found.key, found.error.code()) == (("t", 0), code)
    assert bench.poll() == []
    assert len(bench.poll(0.2)) == 1


def test_an_error_of_a_partition_that_lasts_is_reported_once_until_it_works_again() -> None:
    bench = Bench()
    bench.assign(0)
    reported = []
    for code in (KafkaError.UNKNOWN, KafkaError.UNKNOWN, 0, KafkaError.UNKNOWN):
        bench.give(bench.fetch()[1], last=-1, error_code=code)
        reported.append(len(bench.fetcher.queue))
        bench.fetcher.queue.clear()
        bench.now += 2
    assert reported == [1, 0, 0, 1]


@pytest.mark.parametrize("code", [
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID, KafkaError.INCONSISTENT_TOPIC_ID, KafkaError.KAFKA_STORAGE_ERROR,
])
def test_a_passing_error_of_a_partition_is_waited_for_and_the_metadata_asked(code: int) -> None:
    bench = Bench()
    bench.give(bench.fetch()[1], error_code=code)
    assert not bench.fetcher.queue
    assert bench.poll() == []
    assert list(bench.metadata.poll(bench.now + 5))
    assert len(bench.poll(0.2)) == 1


@pytest.mark.parametrize(("jitter", "spread"), [(0.5, 1.0), (0.0, 0.8), (1.0, 1.2)])
def test_the_pause_grows_while_a_partition_is_in_trouble_and_is_short_again_afterwards(
    jitter: float, spread: float
) -> None:
    bench, waited, code = Bench(jitter), [], KafkaError.KAFKA_STORAGE_ERROR
    bench.assign(0)
    [send] = bench.fetch().values()
    for error in (code, code, code, 0, code):
        bench.give(send, 1, 0, error_code=error)
        sends = bench.poll()
        if not sends:
            deadline = bench.fetcher.deadline()
            assert deadline is not None
            waited.append(deadline - bench.now)
            bench.now = deadline
            sends = bench.poll()
        [send] = sends
    assert waited == pytest.approx([spread * wait for wait in (0.1, 0.2, 0.4, 0.1)])


def test_where_a_broker_does_not_say_how_long_a_lock_is_it_is_kafkas_default() -> None:
    bench = Bench()
    send = bench.fetch()[1]
    part = ShareFetchPartitionData(
        partition_index=0, error_code=0, acknowledge_error_code=0, current_leader=NOBODY, records=b"",
        acquired_records=[AcquiredRecords(first_offset=0, last_offset=1, delivery_count=1)])
    bench.fetcher.on_reply(send, ShareFetchResponse(error_code=0, acquisition_lock_timeout_ms=0, responses=[
        ShareFetchableTopicResponse(topic_id=T, partitions=[part])]), bench.now)
    assert bench.take().until == bench.now + 30
    assert bench.fetcher.lock_timeout_ms is None


def test_a_leader_that_is_named_is_asked_at_once() -> None:
    bench = Bench()
    sent = bench.fetch()
    bench.nothing(sent[2])
    part = ShareFetchPartitionData(
        partition_index=0, error_code=KafkaError.NOT_LEADER_FOR_PARTITION, acknowledge_error_code=0, records=b"",
        current_leader=FetchLeaderIdAndEpoch(leader_id=2, leader_epoch=9), acquired_records=[])
    bench.fetcher.on_reply(sent[1], ShareFetchResponse(
        error_code=0, acquisition_lock_timeout_ms=1000, node_endpoints=[FetchNodeEndpoint(node_id=2, host="h", port=2)],
        responses=[ShareFetchableTopicResponse(topic_id=T, partitions=[part])]), bench.now)
    again = {send.destination: send.request for send in bench.poll()}
    assert isinstance(again[2], ShareFetchRequest)
    assert [part.partition_index for topic in again[2].topics for part in topic.partitions] == [0]
    assert isinstance(again[1], ShareFetchRequest)
    assert [part for topic in again[1].forgotten_topics_data for part in topic.partitions] == [0]


def test_a_broker_that_knows_of_no_leader_names_none() -> None:
    bench = Bench()
    bench.give(bench.fetch()[1], error_code=KafkaError.NOT_LEADER_FOR_PARTITION,
               current_leader=FetchLeaderIdAndEpoch(leader_id=-1, leader_epoch=9))
    assert bench.metadata.leader("t", 0) == (1, 1)
    assert [send.destination for send in bench.poll(0.2)] == [1]


def test_a_lost_connection_is_a_lost_session() -> None:
    bench = Bench()
    batch = bench.holding()
    bench.say(batch, {1: 1})
    [send] = bench.poll()
    bench.fetcher.on_error(send, KafkaError(KafkaError._TRANSPORT), bench.now)
    assert bench.acknowledged() == [({1}, KafkaError._TRANSPORT)]
    assert batch.session.lost
    bench.fetcher.demand = Demand.WAITING
    assert [send.destination for send in bench.poll()] == [2]
    [again] = bench.poll(0.2)
    assert isinstance(again.request, ShareFetchRequest)
    assert again.request.share_session_epoch == 0


def test_partitions_that_are_given_to_others_are_forgotten_and_what_is_held_is_acknowledged() -> None:
    bench = Bench()
    batch = bench.holding()
    bench.assign(1)
    [send] = bench.poll()
    assert isinstance(send.request, ShareFetchRequest)
    assert [part for topic in send.request.forgotten_topics_data for part in topic.partitions] == [0]
    bench.nothing(send)
    assert bench.poll() == []
    bench.say(batch, {1: 1})
    [send] = bench.poll()
    assert isinstance(send.request, ShareAcknowledgeRequest)
    bench.answer(send)
    assert bench.acknowledged() == [({1}, None)]


def test_what_is_acknowledged_of_a_partition_that_was_given_to_others_does_not_have_it_fetched_again() -> None:
    bench = Bench()
    bench.lead(1, 1)
    bench.give(bench.fetch()[1])
    batch = bench.take()
    bench.assign(1)
    bench.say(batch, {1: 1})
    [send] = bench.poll()
    assert isinstance(send.request, ShareAcknowledgeRequest)
    bench.answer(send)
    request = bench.fetch()[1].request
    assert isinstance(request, ShareFetchRequest)
    assert [part for topic in request.forgotten_topics_data for part in topic.partitions] == [0]


def test_closing_waits_for_answers_sends_what_is_acknowledged_and_ends_each_session() -> None:
    bench = Bench()
    batch = bench.holding()
    sent = bench.fetch()
    bench.say(batch, {1: 1})
    bench.fetcher.close()
    [last] = bench.poll() or [None]
    assert last is None
    bench.give(sent[1], 20, 29)
    bench.nothing(sent[2])
    ends = {send.destination: send for send in bench.poll()}
    assert {type(send.request) for send in ends.values()} == {ShareAcknowledgeRequest}
    assert [send.request.share_session_epoch for send in ends.values()] == [-1, -1]  # type: ignore[attr-defined]
    assert acknowledgements_in(ends[1]) == [(0, 1, 1, [1])]
    assert not bench.fetcher.queue
    bench.answer(ends[1])
    bench.nothing(ends[2])
    assert bench.poll() == []
    assert SessionsClosed() in bench.fetcher.events()
    assert bench.fetcher.unanswered == 0


def test_closing_does_not_wait_for_the_end_of_a_pause() -> None:
    bench = Bench()
    batch = bench.holding()
    bench.give(bench.fetch()[1], last=-1, error_code=KafkaError.KAFKA_STORAGE_ERROR)
    bench.say(batch, {1: 1})
    bench.fetcher.close()
    [send] = [send for send in bench.poll() if send.destination == 1]
    assert acknowledgements_in(send) == [(0, 1, 1, [1])]


def test_closing_without_a_session_ends_at_once() -> None:
    bench = Bench()
    bench.fetcher.close()
    assert bench.poll() == []
    assert bench.fetcher.events() == [SessionsClosed()]
    assert set(bench.fetch()) == {1, 2}
