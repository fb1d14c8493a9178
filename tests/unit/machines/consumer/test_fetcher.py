"""The fetcher: what it asks whom, what it keeps, and how it goes on after errors."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.config import CONSUMER, Config
from headrace.errors import ConsumeError, KafkaError, KafkaException
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetcher import Fetcher
from headrace.machines.consumer.subscription import PartitionState, PositionPhase, Subscription
from headrace.machines.machine import Send
from headrace.records import BatchBuilder, set_base_offset
from headrace.records.columns.arrow_batch import ArrowBatchBuilder
from headrace.types.records import TopicPartition
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.consumer.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from tests.support.calls import counted
from tests.unit.records.samples import simple

TOPIC_ID = UUID(int=7)


def batch(base_offset: int, count: int, size: int = 10, epoch: int = 3) -> bytes:
    builder = BatchBuilder(1 << 20, 1 << 20)
    for i in range(count):
        builder.append(1000 + i, None, b"%d" % (base_offset + i) + b"." * size)
    data = bytearray(builder.seal(0).data)
    set_base_offset(memoryview(data), base_offset, epoch)
    return bytes(data)


class Bench:
    """A fetcher with partitions of topic "t", led by broker 1 (even) and broker 2 (odd)."""

    def __init__(self, partitions: int = 1, offset: int = 0, **properties: Any) -> None:
        names = {name.replace("_", "."): value for name, value in properties.items()}
        self.config = Config(CONSUMER, {"bootstrap.servers": "h:1", **names})
        self.metadata = Metadata([("h", 1)])
        self.subscription = Subscription("", self.config["auto.offset.reset"])
        self.drained = 0
        self.fetcher = Fetcher(self.subscription, self.metadata, self.config, self._on_drained, lambda: 0.5)
        self.now = 0.0
        self.set_leaders({p: 1 + p % 2 for p in range(partitions)})
        self.subscription.assign([TopicPartition("t", p, offset) for p in range(partitions)])

    def _on_drained(self) -> None:
        self.drained += 1

    def set_leaders(self, leaders: dict[int, int], epoch: int = 3) -> None:
        self.metadata.want_topics(["t"])
        sends = list(self.metadata.poll(self.now)) or [Send(-1, FetchRequest(max_wait_ms=0, min_bytes=0), 1)]
        self.metadata.on_reply(sends[0], MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=n, host="h", port=n) for n in (0, 1, 2)],
            topics=[MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=[
                MetadataResponsePartition(partition_index=p, leader_id=leader, leader_epoch=epoch)
                for p, leader in leaders.items()])]), self.now)

    def poll(self) -> dict[int, Send]:
        sends = list(self.fetcher.poll(self.now))
        assert len({send.destination for send in sends}) == len(sends), "one request per broker"
        return {send.destination: send for send in sends}

    def reply(self, send: Send, partition: int = 0, data: bytes = b"", code: int = 0, **fields: Any) -> None:
        known = {"high_watermark": 1000, "last_stable_offset": 1000, "log_start_offset": 0, **fields}
        entry = PartitionData(partition_index=partition, error_code=code, records=memoryview(data), **known)
        self.fetcher.on_reply(send, FetchResponse(session_id=5, responses=[
            FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[entry])]), self.now)


def offsets(bench: Bench, count: int = 1000) -> list[int | None]:
    return [message.offset() for message in bench.fetcher.take(count)]


def request_of(send: Send) -> FetchRequest:
    assert isinstance(send.request, FetchRequest)
    return send.request


def fetch_offset(send: Send) -> int:
    return request_of(send).topics[0].partitions[0].fetch_offset


def most_bytes(send: Send) -> int:
    return request_of(send).max_bytes


def test_each_leader_is_asked_for_its_partitions_and_not_twice_at_once() -> None:
    bench = Bench(partitions=4)
    sends = bench.poll()
    asked = {node: [p.partition for t in send.request.topics for p in t.partitions]  # type: ignore[attr-defined]
             for node, send in sends.items()}
    assert asked == {1: [0, 2], 2: [1, 3]}
    assert bench.poll() == {}


def test_the_next_request_leaves_before_the_records_are_taken() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 5))
    assert fetch_offset(bench.poll()[1]) == 5
    assert offsets(bench) == [0, 1, 2, 3, 4]


def test_taking_moves_the_position_and_stores_the_offset() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 5))
    assert offsets(bench, 3) == [0, 1, 2]
    state = bench.subscription.require("t", 0)
    assert (state.position, state.stored) == (3, 3)
    assert offsets(bench) == [3, 4]
    assert state.queued_bytes == 0


@pytest.mark.parametrize(("epochs", "after_one", "after_all"), [((3, 3), 3, 3), ((3, 4), -1, 4)])
def test_the_epoch_of_a_position_is_known_as_soon_as_it_is_certain(
    epochs: tuple[int, int], after_one: int, after_all: int
) -> None:
    bench = Bench()
    data = b"".join(batch(base, 2, epoch=epoch) for base, epoch in zip((0, 2), epochs, strict=True))
    bench.reply(bench.poll()[1], data=data)
    state = bench.subscription.require("t", 0)
    assert state.leader_epoch == -1
    assert offsets(bench, 1) == [0]
    assert state.leader_epoch == after_one
    assert offsets(bench) == [1, 2, 3]
    assert state.leader_epoch == after_all


def test_without_automatic_storing_nothing_is_stored() -> None:
    bench = Bench(enable_auto_offset_store=False)
    bench.reply(bench.poll()[1], data=batch(0, 5))
    offsets(bench)
    assert bench.subscription.require("t", 0).stored < 0


def test_records_before_the_position_are_not_handed_out() -> None:
    bench = Bench(offset=3)
    bench.reply(bench.poll()[1], data=batch(0, 5))
    assert offsets(bench) == [3, 4]


def test_a_seek_drops_what_was_fetched_and_what_is_still_on_its_way() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 5))
    flying = bench.poll()[1]
    bench.subscription.seek("t", 0, 100)
    bench.reply(flying, data=batch(5, 5))
    assert offsets(bench) == []
    again = bench.poll()[1]
    assert fetch_offset(again) == 100
    bench.reply(again, data=batch(100, 2))
    assert offsets(bench) == [100, 101]


def test_paused_partitions_keep_their_records_for_later_and_are_not_fetched() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 3))
    bench.subscription.set_paused([TopicPartition("t", 0)], True)
    assert bench.poll() == {}
    assert offsets(bench) == []
    bench.subscription.set_paused([TopicPartition("t", 0)], False)
    bench.fetcher.resume()
    assert offsets(bench) == [0, 1, 2]
    assert fetch_offset(bench.poll()[1]) == 3


def test_a_full_queue_stops_the_fetching_until_it_drains() -> None:
    bench = Bench(max_partition_fetch_bytes=100, queued_max_messages_kbytes=1)
    data = batch(0, 100, size=20)
    bench.reply(bench.poll()[1], data=data)
    assert len(data) > 1024
    assert bench.poll() == {}
    assert bench.drained == 0
    assert len(offsets(bench)) == 100
    assert bench.drained == 1
    assert fetch_offset(bench.poll()[1]) == 100


def test_what_is_allowed_is_asked_for_until_records_have_come() -> None:
    bench = Bench(partitions=2)
    bench.fetcher.allow(500)
    sends = bench.poll()
    assert {node: most_bytes(send) for node, send in sends.items()} == {1: 500, 2: 500}
    bench.reply(sends[1])  # without records
    sends[1] = bench.poll()[1]
    assert most_bytes(sends[1]) == 500
    bench.reply(sends[1], data=batch(0, 5))
    bench.reply(sends[2], 1, data=batch(0, 5))
    assert bench.fetcher.has_all_allowed
    assert bench.poll() == {}
    assert len(offsets(bench)) == 10
    assert bench.poll() == {}
    bench.fetcher.allow(None)
    assert {most_bytes(send) > 500 for send in bench.poll().values()} == {True}
    assert not bench.fetcher.has_all_allowed


def test_no_more_is_fetched_while_so_many_records_of_a_partition_wait() -> None:
    bench = Bench(queued_min_messages=10)
    bench.reply(bench.poll()[1], data=batch(0, 5) + batch(5, 4))
    assert fetch_offset(bench.poll()[1]) == 9  # 9 are fewer than 10
    bench = Bench(queued_min_messages=10)
    bench.reply(bench.poll()[1], data=batch(0, 5) + batch(5, 5))
    assert bench.poll() == {}
    assert len(offsets(bench, 9)) == 9
    assert (bench.poll(), bench.drained) == ({}, 0)
    assert offsets(bench) == [9]
    assert bench.drained == 1
    send = bench.poll()[1]
    assert fetch_offset(send) == 10
    bench.reply(send, data=batch(10, 30))
    assert bench.poll() == {}
    bench.subscription.seek("t", 0, 3)
    assert fetch_offset(bench.poll()[1]) == 3  # what waited for the old position counts no more


def test_partitions_that_are_drained_together_are_all_fetched_again() -> None:
    bench = Bench(partitions=3, queued_min_messages=10)
    bench.set_leaders(dict.fromkeys(range(3), 1))
    for number in range(3):
        bench.reply(bench.poll()[1], number, data=batch(0, 10))
    assert bench.poll() == {}
    assert len(offsets(bench)) == 30
    assert bench.drained == 1
    [topic] = request_of(bench.poll()[1]).topics
    assert {part.partition: part.fetch_offset for part in topic.partitions} == {0: 10, 1: 10, 2: 10}


def test_a_late_answer_about_a_partition_that_came_back_meanwhile_does_not_have_it_left_out() -> None:
    bench = Bench()
    late = bench.poll()[1]
    bench.subscription.remove([TopicPartition("t", 0)])
    bench.subscription.add([TopicPartition("t", 0, 7)])
    bench.reply(bench.poll()[1], data=batch(7, 1))
    bench.reply(late, data=batch(0, 2))
    assert fetch_offset(bench.poll()[1]) == 8
    assert offsets(bench) == [7]


def test_a_broker_answers_soon_while_a_partition_of_it_is_left_out() -> None:
    bench = Bench(partitions=3, max_partition_fetch_bytes=100, queued_max_messages_kbytes=8)
    first = bench.poll()[1]
    assert first.request.max_wait_ms == 500  # type: ignore[attr-defined]
    bench.reply(first, data=batch(0, 100, size=20))
    assert bench.poll()[1].request.max_wait_ms < 100  # type: ignore[attr-defined]


def test_an_unfinished_batch_at_the_end_is_fetched_again() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 2) + batch(2, 2)[:40])
    assert fetch_offset(bench.poll()[1]) == 2
    assert offsets(bench) == [0, 1]


@pytest.mark.parametrize("code", [
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.INCONSISTENT_TOPIC_ID, KafkaError.KAFKA_STORAGE_ERROR])
def test_a_wrong_leader_makes_it_ask_for_metadata_and_try_again_later(code: int) -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], code=code)
    assert bench.poll() == {}
    due = bench.fetcher.deadline()
    assert due is not None
    assert due > bench.now
    assert list(bench.metadata.poll(bench.now + 1))
    bench.set_leaders({0: 2}, epoch=4)
    bench.now = due
    assert set(bench.poll()) == {2}
    assert bench.fetcher.take(1) == []


def test_a_new_leader_named_in_the_error_is_asked_at_once() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], code=KafkaError.NOT_LEADER_FOR_PARTITION,
                current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=9))
    again = bench.poll()[2]
    assert again.request.topics[0].partitions[0].current_leader_epoch == 9  # type: ignore[attr-defined]


def test_a_leader_that_is_named_in_vain_is_asked_later_and_metadata_at_once() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], code=KafkaError.NOT_LEADER_FOR_PARTITION,
                current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=3))  # no newer than what is known
    assert bench.poll() == {}
    assert bench.metadata.deadline() == bench.now + 0.1
    bench.set_leaders({0: 2}, epoch=3)
    bench.now = bench.fetcher.deadline() or 0.0
    assert set(bench.poll()) == {2}


def test_a_lost_connection_backs_off_and_starts_a_new_session() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 1))
    bench.fetcher.on_error(bench.poll()[1], KafkaError(KafkaError._TRANSPORT), bench.now)
    assert bench.poll() == {}
    assert list(bench.metadata.poll(bench.now + 1))
    bench.now = bench.fetcher.deadline() or 0.0
    again = bench.poll()[1].request
    assert isinstance(again, FetchRequest)
    assert (again.session_epoch, again.topics[0].partitions[0].fetch_offset) == (0, 1)


def test_an_offset_out_of_range_is_reset_by_the_policy() -> None:
    bench = Bench(auto_offset_reset="earliest")
    bench.reply(bench.poll()[1], code=KafkaError.OFFSET_OUT_OF_RANGE)
    assert bench.subscription.require("t", 0).phase is PositionPhase.RESET


def test_an_offset_out_of_range_is_told_when_the_policy_is_error() -> None:
    bench = Bench(offset=70, auto_offset_reset="error")
    bench.reply(bench.poll()[1], code=KafkaError.OFFSET_OUT_OF_RANGE)
    [message] = bench.fetcher.take(10)
    error = message.error()
    assert error is not None
    assert error == KafkaError._AUTO_OFFSET_RESET
    assert "70" in error.str()
    assert "seek()" in error.str()


def test_a_missing_permission_is_told_once_and_retried() -> None:
    bench = Bench()
    for _ in range(3):
        bench.reply(bench.poll()[1], code=KafkaError.TOPIC_AUTHORIZATION_FAILED)
        bench.now += 10
    [message] = bench.fetcher.take(10)
    error = message.error()
    assert error == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert error is not None
    why = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED).str()
    assert error.str() == f"Fetch from t[0] at offset 0 failed: {why}"


def test_the_end_of_a_partition_is_told_once_per_visit() -> None:
    bench = Bench(enable_partition_eof=True, isolation_level="read_uncommitted")
    bench.reply(bench.poll()[1], data=batch(0, 2), high_watermark=2)
    kinds = [message.error() for message in bench.fetcher.take(10)]
    assert kinds == [None, None, KafkaError._PARTITION_EOF]
    bench.reply(bench.poll()[1], high_watermark=2)
    assert bench.fetcher.take(10) == []
    bench.reply(bench.poll()[1], data=batch(2, 1), high_watermark=3)
    assert [message.error() for message in bench.fetcher.take(10)] == [None, KafkaError._PARTITION_EOF]


def test_a_partition_is_not_fetched_beyond_its_stop() -> None:
    bench = Bench()
    bench.subscription.require("t", 0).stop_offset = 4
    bench.reply(bench.poll()[1], data=batch(0, 5))
    assert bench.poll() == {}


def test_damage_is_told_with_its_place_and_stops_the_partition() -> None:
    bench = Bench()
    broken = bytearray(batch(0, 3))
    broken[-1] ^= 1
    bench.reply(bench.poll()[1], data=bytes(broken))
    [message] = bench.fetcher.take(10)
    assert message.error() is not None
    assert bench.subscription.require("t", 0).phase is PositionPhase.FAILED
    assert bench.poll() == {}


def with_bad_header(base_offset: int, count: int) -> bytes:
    broken = bytearray(batch(base_offset, count))
    broken[8:12] = b"\0\0\0\1"
    return bytes(broken)


def with_bad_sum(base_offset: int, count: int) -> bytes:
    broken = bytearray(batch(base_offset, count))
    broken[-1] ^= 1
    return bytes(broken)


@pytest.mark.parametrize("damaged", [with_bad_header, with_bad_sum])
@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_all_in_front_of_damage_is_handed_out_then_the_error_with_its_place_and_seek_goes_on(
    damaged: Any, at_once: int
) -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 2))
    bench.reply(bench.poll()[1], data=batch(2, 2) + batch(4, 1) + damaged(5, 3) + batch(8, 1))
    taken = []
    while messages := bench.fetcher.take(at_once):
        taken += messages
    error = taken.pop()
    assert [(message.offset(), message.error()) for message in taken] == [(offset, None) for offset in range(5)]
    assert (error.topic(), error.partition(), error.offset()) == ("t", 0, 5)
    assert error.error() == KafkaError.INVALID_MSG
    assert "t[0]" in str(error.error())
    state = bench.subscription.require("t", 0)
    assert (state.position, state.stored) == (5, 5)
    assert bench.poll() == {}
    bench.subscription.seek("t", 0, 8)
    assert fetch_offset(bench.poll()[1]) == 8


def test_raw_pieces_end_in_front_of_damage() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 2) + with_bad_header(2, 3))
    whole, told = bench.fetcher.take_fetched(), bench.fetcher.take_fetched()
    assert whole is not None
    assert (bytes(whole.data), whole.next_offset) == (batch(0, 2), 2)
    assert told is not None
    assert told.notice is not None
    assert told.notice.error() == KafkaError.INVALID_MSG


@pytest.mark.parametrize("reset", ["latest", "error"])
def test_what_waits_in_the_queue_is_handed_out_before_a_position_out_of_range_is_given_up(reset: str) -> None:
    bench = Bench(auto_offset_reset=reset)
    bench.reply(bench.poll()[1], data=batch(0, 3))
    bench.reply(bench.poll()[1], code=KafkaError.OFFSET_OUT_OF_RANGE)
    assert bench.poll() == {}
    assert offsets(bench, 2) == [0, 1]
    assert bench.poll() == {}
    drained = bench.drained
    assert offsets(bench, 2) == [2]
    assert bench.drained == drained + 1, "the loop is woken to look again"
    assert bench.poll() == {}
    if reset == "latest":
        assert bench.subscription.require("t", 0).phase is PositionPhase.RESET
    else:
        [message] = bench.fetcher.take(10)
        assert message.error() == KafkaError._AUTO_OFFSET_RESET
        assert message.offset() == 3


def test_who_was_polled_in_front_of_it_is_told_that_a_position_was_given_up() -> None:
    bench = Bench(auto_offset_reset="earliest")
    bench.reply(bench.poll()[1], data=batch(0, 3))
    bench.reply(bench.poll()[1], code=KafkaError.OFFSET_OUT_OF_RANGE)
    assert offsets(bench) == [0, 1, 2]
    drained = bench.drained
    assert bench.poll() == {}
    assert bench.subscription.require("t", 0).phase is PositionPhase.RESET
    assert bench.drained == drained + 1, "nobody else would look up where to go on"


def test_the_last_piece_may_be_taken_while_the_loop_looks_whether_a_position_can_be_given_up(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(auto_offset_reset="earliest")
    bench.reply(bench.poll()[1], data=batch(0, 3))
    bench.reply(bench.poll()[1], code=KafkaError.OFFSET_OUT_OF_RANGE)
    before = PartitionState.queued_bytes

    def queued_bytes(state: PartitionState) -> int:
        monkeypatch.setattr(PartitionState, "queued_bytes", before)
        queued = state.queued_bytes
        assert offsets(bench) == [0, 1, 2]
        return queued

    drained = bench.drained
    monkeypatch.setattr(PartitionState, "queued_bytes", property(queued_bytes))
    assert bench.poll() == {}
    assert bench.drained == drained + 1


def test_a_seek_away_from_a_position_out_of_range_is_kept() -> None:
    bench = Bench(auto_offset_reset="error")
    bench.reply(bench.poll()[1], data=batch(0, 3))
    bench.reply(bench.poll()[1], code=KafkaError.OFFSET_OUT_OF_RANGE)
    bench.subscription.seek("t", 0, 1)
    assert fetch_offset(bench.poll()[1]) == 1
    assert offsets(bench) == []


@pytest.mark.parametrize("follower", [0, 2])
def test_a_preferred_follower_is_read_and_given_up_when_it_fails(follower: int) -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], preferred_read_replica=follower)
    at_follower = bench.poll()
    assert set(at_follower) == {follower}
    bench.fetcher.on_error(at_follower[follower], KafkaError(KafkaError._TRANSPORT), bench.now)
    bench.now += 5
    assert set(bench.poll()) == {1}


def rack(send: Send) -> str:
    return request_of(send).rack_id


@pytest.mark.parametrize("code", [
    KafkaError._TRANSPORT, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.KAFKA_STORAGE_ERROR])
def test_behind_a_follower_that_cannot_be_read_the_leader_is_asked_for_records_and_not_for_another(code: int) -> None:
    bench = Bench(client_rack="r", offset=5)
    first = bench.poll()[1]
    assert rack(first) == "r"
    bench.reply(first, preferred_read_replica=2)
    at_follower = bench.poll()[2]
    if code < 0:
        bench.fetcher.on_error(at_follower, KafkaError(code), bench.now)
    else:
        bench.reply(at_follower, code=code)
    bench.now += 2
    again = bench.poll()[1]
    assert rack(again) == ""
    bench.reply(again, data=batch(5, 2))
    assert rack(bench.poll()[1]) == ""
    assert offsets(bench) == [5, 6]
    bench.now += 10
    bench.fetcher.on_error(Send(1, again.request, 1.0, context=again.context), KafkaError(KafkaError._TRANSPORT), 0.0)
    assert rack(bench.poll()[1]) == "r"


def test_also_a_request_that_is_kept_from_before_names_no_rack_while_leaders_shall_name_nobody() -> None:
    bench = Bench(client_rack="r")
    for offset in range(3):  # from the second one on it is the same request
        bench.reply(bench.poll()[1], data=batch(offset, 1))
    bench.reply(bench.poll()[1], preferred_read_replica=2)
    bench.reply(bench.poll()[2], code=KafkaError.KAFKA_STORAGE_ERROR)
    bench.now += 2
    for offset in range(3, 6):
        send = bench.poll()[1]
        assert rack(send) == ""
        bench.reply(send, data=batch(offset, 1))


def test_a_leader_that_names_a_follower_nobody_knows_is_asked_for_records() -> None:
    bench = Bench(client_rack="r")
    bench.reply(bench.poll()[1], preferred_read_replica=77)
    assert rack(bench.poll()[1]) == ""
    assert list(bench.metadata.poll(bench.now + 1))  # who it is


@pytest.mark.parametrize(("property_ms", "lease_s"), [(2_000, 2.0), (-1, 300.0)])
def test_a_follower_is_read_for_as_long_as_metadata_is_held_for_fresh(property_ms: int, lease_s: float) -> None:
    bench = Bench(client_rack="r", topic_metadata_refresh_interval_ms=property_ms)
    bench.reply(bench.poll()[1], preferred_read_replica=2)
    bench.now = lease_s - 0.01
    bench.reply(bench.poll()[2], data=batch(0, 2))
    bench.now = lease_s
    assert set(bench.poll()) == {1}


def test_of_two_brokers_that_are_asked_at_once_only_the_first_answer_counts() -> None:
    """The lease of a follower ends, or another leads, while a request is on the wire."""
    bench = Bench(client_rack="r")
    bench.reply(bench.poll()[1], preferred_read_replica=2)
    at_follower = bench.poll()[2]
    bench.now = 301.0
    bench.fetcher._plan.touch()
    bench.reply(bench.poll()[1], data=batch(0, 10))
    bench.reply(at_follower, data=batch(0, 4))
    assert fetch_offset(bench.poll()[1]) == 10
    assert offsets(bench) == list(range(10))
    assert bench.subscription.require("t", 0).position == 10


def test_what_a_follower_says_of_the_range_after_its_time_is_no_reason_to_give_a_position_up() -> None:
    bench = Bench(client_rack="r", auto_offset_reset="error", offset=5)
    bench.reply(bench.poll()[1], preferred_read_replica=2)
    at_follower = bench.poll()[2]
    bench.now = 301.0
    bench.fetcher._plan.touch()
    assert set(bench.poll()) == {1}
    bench.reply(at_follower, code=KafkaError.OFFSET_OUT_OF_RANGE)
    assert bench.subscription.require("t", 0).phase is PositionPhase.FETCH


def test_aborted_transactions_reach_the_decoder_with_read_committed_only() -> None:
    for level, expected in (("read_committed", [(9, 0)]), ("read_uncommitted", None)):
        bench = Bench(isolation_level=level)
        bench.reply(bench.poll()[1], data=batch(0, 1),
                    aborted_transactions=[AbortedTransaction(producer_id=9, first_offset=0)])
        fetched = bench.fetcher.take_fetched()
        assert fetched is not None
        assert fetched.aborted == expected


def test_raw_pieces_are_given_whole_and_move_the_position() -> None:
    bench = Bench()
    data = batch(0, 3)
    bench.reply(bench.poll()[1], data=data)
    fetched = bench.fetcher.take_fetched()
    assert fetched is not None
    assert (bytes(fetched.data), fetched.offset, fetched.next_offset) == (data, 0, 3)
    assert bench.subscription.require("t", 0).position == 3


def test_lengths_that_make_no_sense_are_told_and_stop_the_partition() -> None:
    bench = Bench()
    broken = bytearray(batch(0, 3))
    broken[8:12] = b"\0\0\0\1"
    bench.reply(bench.poll()[1], data=bytes(broken))
    [message] = bench.fetcher.take(10)
    error = message.error()
    assert error is not None
    assert "seek()" in error.str()
    assert bench.poll() == {}


@pytest.mark.parametrize("code", [
    KafkaError.UNKNOWN_TOPIC_ID, KafkaError.INCONSISTENT_TOPIC_ID, KafkaError.FETCH_SESSION_TOPIC_ID_ERROR])
def test_a_session_with_a_topic_that_is_another_by_now_begins_anew_after_a_look_at_the_metadata(code: int) -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 1))
    send = bench.poll()[1]
    bench.fetcher.on_reply(send, FetchResponse(session_id=5, error_code=code), bench.now)
    assert list(bench.metadata.poll(bench.now + 1))
    assert bench.poll() == {}
    bench.now = bench.fetcher.deadline() or 0.0
    again = bench.poll()[1].request
    assert isinstance(again, FetchRequest)
    assert (again.session_epoch, len(again.topics)) == (0, 1)


def test_a_lost_session_is_not_tried_again_in_a_tight_loop() -> None:
    bench = Bench()
    send = bench.poll()[1]
    bench.fetcher.on_reply(send, FetchResponse(error_code=KafkaError.UNKNOWN), bench.now)
    assert bench.poll() == {}
    bench.now = bench.fetcher.deadline() or 0.0
    assert set(bench.poll()) == {1}


def rows(bench: Bench, count: int = 1000, max_bytes: int = 1 << 20) -> list[int]:
    """The offsets that `take_rows` gives as columns."""
    arrow = pytest.importorskip("pyarrow")
    taken = ArrowBatchBuilder(max_bytes)
    bench.fetcher.take_rows(taken, count)
    found: list[int] = arrow.record_batch(taken.finish())["offset"].to_pylist()
    return found


def test_columns_and_messages_are_taken_by_turns_and_move_the_position_alike() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 5))
    bench.reply(bench.poll()[1], data=batch(5, 5))
    state = bench.subscription.require("t", 0)
    assert offsets(bench, 1) == [0]
    assert rows(bench, 2) == [1, 2]
    assert (state.position, state.stored) == (3, 3)
    message = bench.fetcher.take_one()
    assert message is not None
    assert message.offset() == 3
    assert rows(bench, 3) == [4, 5, 6]
    assert rows(bench) == [7, 8, 9]
    assert (state.position, state.stored, state.queued_bytes) == (10, 10, 0)
    assert rows(bench) == []


def test_columns_leave_out_aborted_records_and_what_was_sought_away_from() -> None:
    bench = Bench()
    data = simple([b"aborted"] * 3, producer_id=9, transactional=True) + batch(3, 2)
    bench.reply(bench.poll()[1], data=data, aborted_transactions=[AbortedTransaction(producer_id=9, first_offset=0)])
    assert rows(bench) == [3, 4]
    assert bench.subscription.require("t", 0).stored == 5
    bench.reply(bench.poll()[1], data=batch(5, 5))
    bench.subscription.seek("t", 0, 100)
    assert rows(bench) == []


def test_columns_that_are_full_leave_the_rest_for_the_next_ones() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 5))
    assert rows(bench, max_bytes=3 * 39) == [0, 1, 2]
    assert bench.subscription.require("t", 0).position == 3
    assert rows(bench, max_bytes=3 * 39) == [3, 4]


def test_a_paused_partition_gives_no_columns_and_keeps_its_place() -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 3))
    assert rows(bench, 1) == [0]
    bench.subscription.set_paused([TopicPartition("t", 0)], True)
    assert rows(bench) == []
    bench.subscription.set_paused([TopicPartition("t", 0)], False)
    bench.fetcher.resume()
    assert rows(bench) == [1, 2]


@pytest.mark.parametrize("damaged", [with_bad_header, with_bad_sum])
def test_columns_hand_out_all_in_front_of_damage_then_raise_it_and_seek_goes_on(damaged: Any) -> None:
    bench = Bench()
    bench.reply(bench.poll()[1], data=batch(0, 2) + damaged(2, 3))
    assert rows(bench) == [0, 1]
    with pytest.raises(ConsumeError, match="seek") as raised:
        rows(bench)
    event = raised.value.kafka_message
    assert (event.topic(), event.partition(), event.offset()) == ("t", 0, 2)
    state = bench.subscription.require("t", 0)
    assert raised.value.error == KafkaError.INVALID_MSG
    assert (state.position, state.phase) == (2, PositionPhase.FAILED)
    assert rows(bench) == []
    bench.subscription.seek("t", 0, 5)
    bench.reply(bench.poll()[1], data=batch(5, 2))
    assert rows(bench) == [5, 6]


def test_events_are_raised_in_their_place_between_columns() -> None:
    bench = Bench(enable_partition_eof=True)
    bench.reply(bench.poll()[1], data=batch(0, 2), last_stable_offset=2)
    bench.reply(bench.poll()[1], data=batch(2, 1), last_stable_offset=3)
    story: list[Any] = []
    for _ in range(4):
        try:
            story.append(rows(bench))
        except KafkaException as error:
            story.append(error.error.code())
    assert story == [[0, 1], KafkaError._PARTITION_EOF, [2], KafkaError._PARTITION_EOF]


@pytest.mark.parametrize("damaged", [with_bad_header, with_bad_sum])
def test_damage_can_be_passed_offset_by_offset_where_nobody_knows_how_far_it_goes(damaged: Any) -> None:
    bench = Bench()
    told: list[int] = []
    log = [batch(0, 2), damaged(2, 3), batch(5, 2)]
    while bench.subscription.require("t", 0).position < 7:
        position = bench.subscription.require("t", 0).position
        bench.reply(bench.poll()[1], data=b"".join(log[0 if position < 2 else 1 if position < 5 else 2:]))
        try:
            while rows(bench):
                pass
        except ConsumeError as error:
            event = error.kafka_message
            told.append(event.offset())
            bench.subscription.seek(event.topic(), event.partition(), event.offset() + 1)
    assert told == [2, 3, 4]


@pytest.mark.parametrize("moves", ["one and the same", "another one each time"])
def test_partitions_to_which_nothing_happens_cost_nothing(moves: str) -> None:
    def calls_of(partitions: int) -> int:
        bench = Bench(partitions, enable_partition_eof=True)
        bench.set_leaders(dict.fromkeys(range(partitions), 1))
        at = dict.fromkeys(range(3), 0)
        bench.reply(bench.poll()[1])  # the session is open
        with counted() as calls:
            for turn in range(9):
                partition = 0 if moves == "one and the same" else turn % 3
                bench.reply(bench.poll()[1], partition, batch(at[partition], 2))
                at[partition] += 2
                assert len(bench.fetcher.take(10)) == 2
        return calls.here.total()

    calls_of(3)  # what is compiled at its first use is not counted
    assert calls_of(1000) == calls_of(10)
