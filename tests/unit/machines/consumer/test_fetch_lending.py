"""When replies are lent to the thread that waits for records, when they come back, and what is known then."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest

from headrace.errors import KafkaError
from headrace.machines.consumer.fetch_lending import LendFetch
from headrace.machines.machine import Send
from headrace.types.records import TopicPartition
from headrace.wire.messages.consumer.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

from .test_fetcher import TOPIC_ID, Bench, batch, offsets


class Lanes:
    """What a thread has received, as a test says."""

    def __init__(self) -> None:
        self.received_bytes = 0
        self.answered_at = 0.0


class Lender(Bench):
    """A fetcher whose client lends what it is told to."""

    def __init__(self, partitions: int = 1, **properties: Any) -> None:
        super().__init__(partitions, **properties)
        self.lanes = Lanes()
        self.fetcher.lending.lends = True
        self.fetcher.lending.lanes = self.lanes
        self.lent: LendFetch | None = None
        self.taken_back: list[tuple[int, int, bool]] = []
        self.session_epoch, self.partition, self.failed = 0, 0, False
        self.sent: dict[int, Send] = {}

    def step(self) -> dict[int, Send]:
        """The new requests; what is lent is carried out."""
        effects = list(self.fetcher.poll(self.now))
        sends = {effect.destination: effect for effect in effects if isinstance(effect, Send)}
        self.sent |= sends
        for effect in effects:
            if isinstance(effect, LendFetch):
                assert list(effects) == [effect.send, effect]
                self.lent = effect
                self.session_epoch, self.partition = effect.session_epoch, effect.partition
                self.fetcher.lending.on_lent(effect, partial(self.take_back, effect.send.destination))
        return sends

    def land(self, *pieces: Any) -> None:
        """A thread has received this by itself."""
        lending = self.fetcher.lending
        lending.queue.extend(lending.make(*piece) for piece in pieces)

    def take_back(self, node: int) -> None:
        self.taken_back.append((self.session_epoch, self.partition, self.failed))
        self.lent = None
        self.fetcher.lending.on_taken_back(node, self.session_epoch, self.partition, failed=self.failed)

    def usual(self, partition: int = 0, node: int = 1, size: int = 10, **fields: Any) -> None:
        """A reply with one record, and the next step."""
        offset = self.subscription.require("t", partition).fetch_offset
        self.reply(self.sent[node], partition, batch(offset, 1, size), **fields)
        offsets(self)
        self.step()

    def until_lent(self, node: int = 1, partition: int = 0) -> LendFetch:
        self.step()
        for _ in range(3):
            self.usual(partition, node)
        assert self.lent is not None
        return self.lent


def test_three_usual_replies_in_a_row_and_the_next_is_lent_with_the_request_that_asks_for_it() -> None:
    bench = Lender()
    bench.step()
    for _ in range(3):
        assert bench.lent is None
        bench.usual()
    lent = bench.lent
    assert lent is not None
    assert (lent.topic, lent.partition, lent.session_epoch) == ("t", 0, 3)
    assert lent.send is bench.sent[1]
    assert lent.known["t", 0].fetch_offset == 3
    assert bench.step() == {}


@pytest.mark.parametrize("unusual", [
    {"size": 20_000}, {"aborted_transactions": [AbortedTransaction(producer_id=1, first_offset=0)]},
], ids=["large", "aborted"])
def test_what_is_unusual_begins_the_row_anew(unusual: dict[str, Any]) -> None:
    bench = Lender()
    bench.step()
    for _ in range(3):
        for _ in range(2):
            bench.usual()
        for fields in (unusual, {}):
            bench.usual(**fields)
            assert bench.lent is None


def topic_reply(**fields: Any) -> FetchableTopicResponse:
    """A topic in a reply: of each partition what is given by its number, as `p0`."""
    return FetchableTopicResponse(**fields.pop("topic", {"topic_id": TOPIC_ID}), partitions=[
        PartitionData(partition_index=int(name[1:]), high_watermark=9, records=data) for name, data in fields.items()])


@pytest.mark.parametrize(("topics", "usual"), [
    ([], True), ([topic_reply(p0=batch(2, 1), p1=batch(0, 1))], True),
    ([topic_reply(p0=batch(2, 1), p1=b"")], False), ([topic_reply(p0=batch(2, 1), p1=batch(0, 1, 20_000))], False),
    ([topic_reply(p0=batch(2, 1)), topic_reply(p0=batch(0, 1), topic={"topic_id": UUID(int=99)})], False),
], ids=["none", "two", "nothing of one", "much of one", "two topics"])
def test_a_reply_with_several_partitions_is_usual_if_each_of_them_is(
    topics: list[FetchableTopicResponse], usual: bool
) -> None:
    bench = Lender(partitions=3)
    bench.set_leaders(dict.fromkeys(range(3), 1))
    bench.step()
    bench.usual()
    bench.usual()
    bench.fetcher.on_reply(bench.sent[1], FetchResponse(session_id=5, responses=topics), 0.0)
    offsets(bench)
    bench.step()
    assert bench.lent is None  # the request names two partitions, or this was not the third in a row
    bench.usual(2)
    assert (bench.lent is not None) == usual


def test_what_has_landed_of_several_partitions_is_handed_out_in_that_order() -> None:
    bench = Lender(partitions=2)
    bench.set_leaders({0: 1, 1: 1})
    bench.until_lent()
    states = [bench.subscription.require("t", number) for number in (1, 0)]
    bench.land(*(
        (state, state.epoch, state.fetch_offset, state.fetch_offset + 1, 3, batch(state.fetch_offset, 1), 1, 3)
        for state in states))
    for state in states:
        state.fetch_offset += 1
    assert [message.partition() for message in bench.fetcher.take(10)] == [1, 0]
    assert bench.fetcher.take_one() is None


def test_partitions_may_take_turns() -> None:
    bench = Lender(partitions=3)
    bench.set_leaders(dict.fromkeys(range(3), 1))
    bench.step()
    for partition in (0, 1, 2):
        bench.usual(partition)
    assert bench.lent is not None
    assert bench.lent.partition == 2


@pytest.mark.parametrize("why", [
    "nobody carries it out", "the end is told", "no session", "no session for one partition",
    "paused records are kept"])
def test_nothing_is_lent_where_it_could_not_be_as_without(why: str) -> None:
    partitions = 1 if why == "no session for one partition" else 2
    bench = Lender(partitions, enable_partition_eof=why == "the end is told")
    bench.set_leaders(dict.fromkeys(range(partitions), 1))
    bench.fetcher.lending.lends = why != "nobody carries it out"
    bench.step()
    if why == "paused records are kept":
        bench.reply(bench.sent[1], 1, batch(0, 1))
        bench.subscription.require("t", 1).paused = True
        offsets(bench)
        bench.step()
    for _ in range(8):
        offset = bench.subscription.require("t", 0).fetch_offset
        entry = PartitionData(partition_index=0, high_watermark=1000, records=batch(offset, 1))
        bench.fetcher.on_reply(bench.sent[1], FetchResponse(session_id=5 * ("no session" not in why), responses=[
            FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[entry])]), 0.0)
        offsets(bench)
        bench.step()
        assert bench.lent is None


def test_behind_a_reply_that_could_not_be_taken_it_takes_twenty_more() -> None:
    bench = Lender()
    bench.until_lent()
    bench.failed = True
    bench.fetcher.lending.take_back()
    bench.failed = False
    for turn in range(23):
        assert bench.lent is None, turn
        bench.usual()
    assert bench.lent is not None


def test_nothing_is_lent_while_the_plan_waits_for_a_partition() -> None:
    bench = Lender(partitions=2)
    bench.set_leaders({0: 1, 1: 1})
    bench.step()
    bench.reply(bench.sent[1], 1, code=KafkaError.KAFKA_STORAGE_ERROR)
    bench.step()
    for _ in range(5):
        bench.usual()
        assert bench.lent is None


@pytest.mark.parametrize("topics", [
    [topic_reply(p0=b"")], [topic_reply(), topic_reply(topic={"topic_id": UUID(int=99)})],
], ids=["one topic", "two topics"])
def test_what_is_unusual_meanwhile_makes_these_twenty_no_fewer(topics: list[FetchableTopicResponse]) -> None:
    bench = Lender()
    bench.until_lent()
    bench.failed = True
    bench.fetcher.lending.take_back()
    bench.fetcher.on_reply(bench.sent[1], FetchResponse(session_id=5, responses=topics), 0.0)
    bench.step()
    for turn in range(23):
        assert bench.lent is None, turn
        bench.usual()
    assert bench.lent is not None


def test_the_session_goes_on_from_the_number_and_the_offsets_to_which_it_came() -> None:
    bench = Lender(partitions=3)
    bench.set_leaders(dict.fromkeys(range(3), 1))
    lent = bench.until_lent()
    for partition, offset in ((0, 9), (2, 4)):  # a thread has received so far
        lent.known["t", partition].fetch_offset = offset
        bench.subscription.require("t", partition).fetch_offset = offset
    bench.session_epoch, bench.partition = 17, 2
    bench.fetcher.lending.take_back()
    assert bench.taken_back == [(17, 2, False)]
    bench.fetcher.lending.take_back()
    assert len(bench.taken_back) == 1
    bench.usual(2)
    request = bench.sent[1].request
    assert isinstance(request, FetchRequest)
    ((part,),) = [topic.partitions for topic in request.topics]
    assert (request.session_epoch, part.partition, part.fetch_offset) == (18, 2, 5)


@pytest.mark.parametrize("change", ["seek", "pause", "assign", "metadata", "damage"])
def test_what_the_plan_has_to_look_at_takes_it_back_first(change: str) -> None:
    bench = Lender()
    bench.until_lent()
    state = bench.subscription.require("t", 0)
    if change == "seek":
        bench.subscription.seek("t", 0, 1)
    elif change == "pause":
        state.paused = True
        bench.subscription.version += 1
    elif change == "assign":
        bench.subscription.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
    elif change == "metadata":
        bench.set_leaders({0: 2}, epoch=3)
    else:
        bench.fetcher._plan.look_at(state)
    bench.step()
    assert [failed for _, _, failed in bench.taken_back] == [False]


def test_what_comes_from_another_broker_takes_nothing_back_and_is_lent_as_well() -> None:
    bench = Lender(partitions=2)
    bench.step()
    assert bench.until_lent().send.destination == 1
    bench.usual(1, 2)
    bench.usual(1, 2, size=20_000)  # its row begins anew, and that of the other broker does not count
    for turn in range(3):
        bench.usual(1, 2)
        assert bench.lent is not None
        assert bench.lent.send.destination == (1 if turn < 2 else 2)
    assert bench.taken_back == []
    assert fetches(bench.sent[2]) == 5
    lending = bench.fetcher.lending
    assert sorted(lending.lent) == [1, 2]
    bench.fetcher._plan.look_at(bench.subscription.require("t", 1))
    lending.take_back_for_plan(0.0)
    assert sorted(lending.lent) == [1]
    lending.take_back()
    assert not lending.lent
    assert len(bench.taken_back) == 2


def fetches(send: Send) -> int:
    assert isinstance(send.request, FetchRequest)
    return send.request.topics[0].partitions[0].fetch_offset


def test_a_request_that_fails_behind_that_begins_the_session_anew() -> None:
    bench = Lender()
    bench.until_lent()
    bench.fetcher.lending.take_back()
    bench.fetcher.on_error(bench.sent[1], KafkaError(KafkaError._TRANSPORT), 0.0)
    bench.now = 10.0
    request = bench.step()[1].request
    assert isinstance(request, FetchRequest)
    assert request.session_epoch == 0


@pytest.mark.parametrize("by", ["take", "take_one"])
def test_what_has_landed_is_handed_out_once_and_moves_the_position(by: str) -> None:
    bench = Lender()
    bench.until_lent()
    state = bench.subscription.require("t", 0)
    data = batch(3, 2)
    bench.land((state, state.epoch, 3, 5, 3, data, 2, 3))
    bench.lanes.received_bytes = len(data)
    state.fetch_offset = 5
    state.received_bytes += len(data)
    assert bench.fetcher.has_waiting
    taken = bench.fetcher.take(10) if by == "take" else [bench.fetcher.take_one(), bench.fetcher.take_one()]
    assert [message and message.offset() for message in taken] == [3, 4]
    assert bench.fetcher.take_one() is None
    assert (state.position, state.stored, state.leader_epoch, state.queued_bytes) == (5, 5, 3, 0)
    assert bench.fetcher._waiting_bytes(bench.fetcher._released_bytes) == 0


def test_what_has_landed_for_a_position_that_was_left_is_dropped() -> None:
    bench = Lender()
    bench.until_lent()
    state = bench.subscription.require("t", 0)
    bench.land((state, state.epoch, 4, 6, 3, batch(4, 2), 2, 3))
    bench.subscription.seek("t", 0, 1)
    assert bench.fetcher.take(10) == []
    assert state.position == 1


def test_the_last_answer_may_be_one_that_a_thread_got() -> None:
    bench = Lender()
    assert bench.fetcher.answered_at is None
    bench.now = 3.0
    bench.until_lent()
    assert bench.fetcher.answered_at == 3.0
    bench.lanes.answered_at = 5.0
    assert bench.fetcher.answered_at == 5.0


