"""A fetch for which one partition has moved goes the short way, with the request that the general way would make."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config import CONSUMER, Config
from headrace.errors import KafkaError
from headrace.machines.cluster.in_flight import ClientRequest, InFlightRequests
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetch_session import FetchSession
from headrace.machines.consumer.fetcher import Fetcher
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.machine import Send
from headrace.records import BatchBuilder, set_base_offset
from headrace.types.records import TopicPartition
from headrace.wire.frame import encode_request, encode_response
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.consumer.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

TOPIC_ID = 7


def batch(base_offset: int, count: int) -> bytes:
    builder = BatchBuilder(1 << 20, 1 << 20)
    for offset in range(base_offset, base_offset + count):
        builder.append(1000, None, b"%d" % offset)
    data = bytearray(builder.seal(0).data)
    set_base_offset(memoryview(data), base_offset, 3)
    return bytes(data)


class Reader:
    """A consumer's fetcher with partitions of one topic, all led by one broker, and the frames between the two.

    Args:
        partitions: how many.
        session_id: of the broker; 0 if it keeps no sessions.
        version: of the requests.
    """

    def __init__(self, partitions: int = 1, *, session_id: int = 5, version: int = 18,
                 isolation: str = "read_committed") -> None:
        self.partitions, self.session_id, self.version = partitions, session_id, version
        config = Config(CONSUMER, {"bootstrap.servers": "h:1", "isolation.level": isolation})
        self.aborted: list[Any] | None = [] if isolation == "read_committed" else None
        self.metadata = Metadata([("h", 1)])
        self.subscription = Subscription("", "latest")
        self.fetcher = Fetcher(self.subscription, self.metadata, config, lambda: None, lambda: 0.5)
        self.lead(3)
        self.assign(range(partitions))

    def assign(self, partitions: Any) -> None:
        self.subscription.assign([TopicPartition("t", p, 0) for p in partitions])

    def lead(self, epoch: int, topic_id: int = TOPIC_ID) -> None:
        """New metadata; ids are other objects with the same numbers."""
        self.metadata.want_topics(["t"])
        send = Send(-1, FetchRequest(max_wait_ms=0, min_bytes=0), 1)
        self.metadata.on_reply(send, MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=node, host="h", port=node) for node in (1, 2)],
            topics=[MetadataResponseTopic(name="t", topic_id=UUID(int=topic_id), partitions=[
                MetadataResponsePartition(partition_index=p, leader_id=1, leader_epoch=epoch)
                for p in range(self.partitions)])]), 0.0)

    def ask(self) -> tuple[Send, bytes] | None:
        """The next request and its frame."""
        self.fetcher._plan.touch()
        sends = list(self.fetcher.poll(0.0))
        if not sends:
            return None
        (send,) = sends
        send.version = self.version
        self.pipeline = InFlightRequests("c")
        return send, b"".join(self.pipeline.push(ClientRequest(self.fetcher, send, math.inf)))

    def answer(self, send: Send, moved: dict[int, bytes], **fields: Any) -> Any:
        """A reply with records for some partitions; gives what the machine was handed."""
        known = {"high_watermark": 1000, "last_stable_offset": 999, "log_start_offset": 2,
                 "aborted_transactions": self.aborted, **fields}
        data = [PartitionData(partition_index=p, records=memoryview(records), **known)
                for p, records in moved.items()]
        reply = FetchResponse(session_id=self.session_id, responses=[] if not data else [
            FetchableTopicResponse(topic="t", topic_id=UUID(int=TOPIC_ID), partitions=data)])
        _, read = self.pipeline.take(b"".join(encode_response(reply, self.version, 0))[4:])
        self.fetcher.on_reply(send, read, 0.0)
        return read

    def turn(self, moved: dict[int, int], **fields: Any) -> tuple[bool, bool]:
        """Ask and answer with so many records for each partition; whether request and reply took the short way."""
        asked = self.ask()
        assert asked is not None
        send, frame = asked
        template, send.template = send.template, None
        assert frame == b"".join(encode_request(send.request, self.version, 0, "c"))
        send.template = template
        offsets = {state.partition: state.fetch_offset for state in self.subscription.states.values()}
        read = self.answer(send, {p: batch(offsets[p], count) for p, count in moved.items()}, **fields)
        return template is not None, template is not None and read is template.reply.reply

    def offsets(self) -> list[int | None]:
        return [message.offset() for message in self.fetcher.take(1000)]


@pytest.mark.parametrize("session_id", [0, 5])
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("version", [11, 12, 18])
def test_from_the_second_request_on_a_lone_partition_goes_the_short_way(
    session_id: int, isolation: str, version: int
) -> None:
    reader = Reader(session_id=session_id, isolation=isolation, version=version)
    assert [reader.turn({0: 2}) for _ in range(4)] == [(False, False)] + [(True, True)] * 3
    assert reader.offsets() == list(range(8))
    state = reader.subscription.require("t", 0)
    assert (state.high_watermark, state.log_start, state.position) == (1000, 2, 8)


def test_a_broker_that_has_become_older_is_written_and_read_by_the_codec() -> None:
    reader = Reader()
    reader.turn({0: 1})
    reader.version = 6
    asked = reader.ask()
    assert asked is not None
    send, reader.session_id = asked[0], 0
    assert send.template is not None
    assert reader.answer(send, {0: batch(1, 1)}) is not send.template.reply.reply
    assert reader.offsets() == [0, 1]


def test_one_of_several_partitions_that_has_moved_goes_the_short_way() -> None:
    reader = Reader(partitions=3)
    reader.turn({0: 1, 1: 1, 2: 1})
    assert reader.turn({1: 1}) == (False, False)  # all had moved
    assert reader.turn({1: 2}) == (True, True)
    assert reader.turn({2: 1}) == (True, False)  # another one has records now
    assert reader.turn({2: 1}) == (True, True)
    assert reader.turn({0: 1, 2: 1}) == (True, False)
    assert reader.turn({0: 1}) == (False, False)


def test_a_broker_without_sessions_is_asked_for_several_partitions_the_general_way() -> None:
    reader = Reader(partitions=2, session_id=0)
    for _ in range(3):
        assert reader.turn({0: 1}) == (False, False)


def test_a_topic_without_an_id_goes_the_short_way_by_its_name_and_in_no_version_without_names() -> None:
    reader = Reader(version=12)
    reader.lead(3, topic_id=0)
    reader.turn({0: 1})
    asked = reader.ask()
    assert asked is not None
    send = asked[0]
    request: Any = send.request
    assert (send.template is not None, send.max_version, request.topics[0].topic) == (True, 12, "t")


def test_new_metadata_with_the_same_topic_change_nothing() -> None:
    reader = Reader(partitions=2)
    reader.turn({0: 1, 1: 1})
    reader.turn({0: 1})
    reader.lead(3)
    assert reader.turn({0: 1}) == (True, True)
    assert reader.turn({0: 1}) == (True, True)


def lead_on(reader: Reader) -> None:
    """A new term of the leader, which has what was read."""
    reader.lead(4)
    assert reader.ask() is None
    for state in reader.subscription:
        state.checked_epoch = 4
        state.go("confirmed")


@pytest.mark.parametrize("happens", [
    lead_on, lambda reader: reader.assign([0]), lambda reader: reader.lead(3, topic_id=8)],
    ids=["leader epoch", "fewer partitions", "topic made anew"])
def test_what_changes_more_than_an_offset_goes_the_general_way(happens: Any) -> None:
    reader = Reader(partitions=2)
    reader.turn({0: 1, 1: 1})
    reader.turn({0: 1})
    assert reader.turn({0: 1})[0]
    happens(reader)
    asked = reader.ask()
    assert asked is not None
    assert asked[0].template is None


def test_errors_and_followers_are_read_by_the_codec() -> None:
    reader = Reader()
    reader.turn({0: 1})
    assert reader.turn({0: 1}, error_code=KafkaError.NOT_LEADER_FOR_PARTITION) == (True, False)
    assert reader.subscription.require("t", 0).attempts == 1
    reader = Reader()
    reader.turn({0: 1})
    assert reader.turn({0: 1}, preferred_read_replica=2) == (True, False)
    assert reader.subscription.require("t", 0).replica == 2


def test_a_seek_while_a_reply_is_on_its_way_drops_it() -> None:
    reader = Reader()
    reader.turn({0: 1})
    asked = reader.ask()
    assert asked is not None
    reader.subscription.seek("t", 0, 100)
    send = asked[0]
    assert send.template is not None
    assert reader.answer(send, {0: batch(1, 1)}) is send.template.reply.reply
    assert reader.offsets() == []
    assert reader.turn({0: 1}) == (True, True)
    assert reader.offsets() == [100]


def test_a_lost_session_begins_again_with_a_full_request() -> None:
    reader = Reader()
    reader.turn({0: 1})
    asked = reader.ask()
    assert asked is not None
    reader.fetcher.on_error(asked[0], KafkaError(KafkaError._TRANSPORT, "lost"), 0.0)
    reader.subscription.require("t", 0).retry_at = 0.0
    again = reader.ask()
    assert again is not None
    request: Any = again[0].request
    assert (again[0].template, request.session_epoch) == (None, 0)


@given(st.integers(1, 4), st.sampled_from([0, 5]), st.lists(
    st.one_of(st.dictionaries(st.integers(0, 3), st.integers(1, 3), max_size=3), st.sampled_from(
        ["metadata", "epoch", "pause", "resume", "seek"])), max_size=20))
def test_requests_and_offsets_are_those_of_the_general_way(
    partitions: int, session_id: int, steps: list[dict[int, int] | str]
) -> None:
    one, other = Reader(partitions, session_id=session_id), Reader(partitions, session_id=session_id)
    session = other.fetcher._plan._sessions[1] = FetchSession()
    session.only_moved = lambda max_bytes: None  # type: ignore[method-assign]
    for epoch, step in enumerate(steps, 10):
        frames = []
        for reader in (one, other):
            if isinstance(step, str):
                happen(reader, step, epoch)
                continue
            asked = reader.ask()
            if asked is None:
                frames.append(b"")
                continue
            send, frame = asked
            frames.append(frame)
            wanted = {state.partition: state.fetch_offset for state in reader.subscription.states.values()
                      if not state.paused}
            reader.answer(send, {p: batch(wanted[p], count) for p, count in step.items() if p in wanted})
        assert len(set(frames)) <= 1
        assert one.offsets() == other.offsets()


def happen(reader: Reader, what: str, epoch: int) -> None:
    state = reader.subscription.require("t", 0)
    if what == "metadata":
        reader.lead(3)
    elif what == "epoch":
        reader.lead(epoch)
    elif what == "seek":
        reader.subscription.seek("t", 0, epoch)
    else:
        state.paused = what == "pause"
        if what == "resume":
            reader.fetcher.resume()
