"""A batch that cannot be stored as one is sent in parts: which records, in which order, under which numbers."""

import math
from uuid import UUID

import pytest

from headrace.errors import KafkaError
from headrace.machines.producer.batch_queue import BatchQueues
from headrace.machines.producer.sender import BatchDone, Limits, Sender
from headrace.machines.producer.sequences import Sequences
from headrace.records import BufferPool, Cursor, RecordAccumulator, scan
from headrace.wire.messages.producer.produce import (
    BatchIndexAndErrorMessage,
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

TOPIC_ID = UUID(int=5)


class Leader:
    """The only leader of one partition, and a sender with real records for it."""

    updates = 0

    def __init__(self, idempotent=True, **limits):
        self.now = 1e9  # every record has lingered
        self.budget = BufferPool(1000, 1 << 20)
        self.buffer = RecordAccumulator("t", 1, self.budget)
        self.accumulator = BatchQueues({"t": self.buffer}, 0.0, math.inf, self.seal)
        sequences = Sequences(idempotent, 30.0, lambda attempt: 0.1)
        self.sender = Sender(self.accumulator, sequences, self, Limits(**limits), lambda n: 0.1)

    def seal(self, batch):
        batch.sealed = batch.open.seal()

    def leader(self, topic, partition):
        return 1, 0

    def topic_id(self, topic):
        return TOPIC_ID

    def refresh(self, now):
        pass

    def add(self, *values):
        for value in values:
            self.buffer.append(value, callback=print)

    def poll(self):
        sends = list(self.sender.poll(self.now))
        for send in [send for send in sends if isinstance(send.request, InitProducerIdRequest)]:
            sends.remove(send)
            self.sender.on_reply(send, InitProducerIdResponse(producer_id=9, producer_epoch=0), self.now)
            sends += self.sender.poll(self.now)
        return sends

    def answer(self, send, code=0, named=None, **fields):
        errors = [BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=text)
                  for place, text in (named or {}).items()]
        part = PartitionProduceResponse(index=0, error_code=code, record_errors=errors, **fields)
        topics = [TopicProduceResponse(name="t", topic_id=TOPIC_ID, partition_responses=[part])]
        self.sender.on_reply(send, ProduceResponse(responses=topics), self.now)

    def store_all(self):
        """Store whatever comes; returns what came."""
        stored = []
        while sends := self.poll():
            for send in sends:
                stored.append(content(send))
                self.answer(send, base_offset=100 + len(stored))
        return stored

    def reports(self):
        """Values and error of each report."""
        return [(values(event), event.error) for event in self.sender.events() if isinstance(event, BatchDone)]


def content(send):
    """Epoch, first number and values of the batch in a request."""
    data = send.request.topic_data[0].partition_data[0].records
    info = scan(bytes(data))[0]
    return info.epoch, info.base_sequence, [m.value() for m in Cursor(bytes(data), "t", 0, 0).take(1000)]


def values(done):
    return [message.value() for _, message in done.batch.open.messages(-1, 0, -1, done.error, 0.0)]


def first_of(leader, *records):
    leader.add(*records)
    (send,) = leader.poll()
    return send


@pytest.mark.parametrize("code", [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE])
def test_a_batch_that_is_too_large_is_sent_in_halves_under_its_own_numbers(code):
    leader = Leader()
    leader.answer(first_of(leader, b"1", b"2", b"3"), code)
    leader.add(b"4")
    assert leader.store_all() == [(0, 0, [b"1", b"2"]), (0, 2, [b"3"]), (0, 3, [b"4"])]
    assert leader.reports() == [([b"1", b"2"], None), ([b"3"], None), ([b"4"], None)]


def test_halves_are_halved_until_one_record_is_left_that_fails_alone():
    leader = Leader()
    send = first_of(leader, b"1", b"x", b"3", b"4")
    for _ in range(2):
        leader.answer(send, KafkaError.MSG_SIZE_TOO_LARGE)
        (send,) = leader.poll()
    leader.answer(send)
    (send,) = leader.poll()
    assert content(send) == (0, 1, [b"x"])
    leader.answer(send, KafkaError.MSG_SIZE_TOO_LARGE)
    assert leader.store_all() == [(1, 0, [b"3", b"4"])]
    assert [(found, error and error.code()) for found, error in leader.reports()] == [
        ([b"1"], None), ([b"x"], KafkaError.MSG_SIZE_TOO_LARGE), ([b"3", b"4"], None)]


def test_followers_in_flight_are_sent_again_behind_the_halves_with_their_numbers():
    leader = Leader()
    leader.answer(first_of(leader, b"0"))
    leader.reports()
    large = first_of(leader, b"1", b"2")
    follower = first_of(leader, b"3")
    leader.answer(large, KafkaError.MSG_SIZE_TOO_LARGE)
    assert leader.poll() == []  # until it is known what became of the follower
    leader.answer(follower, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    leader.now += 0.1
    assert leader.store_all() == [(0, 1, [b"1"]), (0, 2, [b"2"]), (0, 3, [b"3"])]


def test_halves_of_a_batch_that_may_be_stored_may_be_stored():
    leader = Leader()
    send = first_of(leader, b"1", b"2")
    leader.answer(send, KafkaError.REQUEST_TIMED_OUT)
    leader.now += 0.1
    (send,) = leader.poll()
    leader.answer(send, KafkaError.MSG_SIZE_TOO_LARGE)
    for _ in range(2):
        (send,) = leader.poll()
        leader.answer(send, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert [(found, error.maybe_applied) for found, error in leader.reports()] == [([b"1"], True), ([b"2"], True)]


@pytest.mark.parametrize("code", [KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP])
def test_only_the_records_that_the_broker_names_fail_and_the_rest_is_sent_in_order_with_new_numbers(code):
    leader = Leader()
    leader.answer(first_of(leader, b"0"))
    leader.reports()
    send = first_of(leader, b"1", b"x", b"3", b"y", b"5")
    follower = first_of(leader, b"6")
    leader.answer(send, code, {1: "no key", 3: "too old"}, error_message="some are wrong")
    leader.answer(follower, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    leader.now += 0.1
    assert leader.store_all() == [(1, 0, [b"1", b"3", b"5"]), (1, 3, [b"6"])]
    told = [(found, error and (error.code(), error.str(), error.maybe_applied)) for found, error in leader.reports()]
    assert told == [
        ([b"x"], (code, "t[0]: no key", False)), ([b"y"], (code, "t[0]: too old", False)),
        ([b"1", b"3", b"5"], None), ([b"6"], None)]


def test_a_broker_that_names_no_record_fails_the_batch():
    leader = Leader()
    leader.answer(first_of(leader, b"1", b"2"), KafkaError.INVALID_RECORD, {7: "no such place", -1: "nor this"})
    assert [(found, error.code()) for found, error in leader.reports()] == [([b"1", b"2"], KafkaError.INVALID_RECORD)]
    assert leader.poll() == []


def test_a_rest_of_a_batch_that_may_be_stored_is_reported_as_such_and_not_sent():
    leader = Leader()
    send = first_of(leader, b"1", b"x")
    leader.answer(send, KafkaError.REQUEST_TIMED_OUT)
    leader.now += 0.1
    (send,) = leader.poll()
    leader.answer(send, KafkaError.INVALID_TIMESTAMP, {1: "too old"})
    assert leader.poll() == []
    assert [(found, error.maybe_applied) for found, error in leader.reports()] == [([b"x"], True), ([b"1"], True)]


def test_a_batch_that_was_purged_while_in_flight_is_not_divided():
    leader = Leader()
    for code, named in ((KafkaError.MSG_SIZE_TOO_LARGE, None), (KafkaError.INVALID_RECORD, {0: "no key"})):
        send = first_of(leader, b"1", b"2")
        leader.sender.purge(None, KafkaError(KafkaError._PURGE_INFLIGHT))
        leader.answer(send, code, named)
        assert leader.poll() == []
        assert [found for found, _ in leader.reports()] == [[b"1", b"2"]]


def test_without_idempotence_parts_have_no_numbers_and_keep_their_order():
    leader = Leader(idempotent=False, max_in_flight=1)
    leader.add(b"0", b"x", b"2", b"3")
    (send,) = leader.poll()
    leader.answer(send, KafkaError.INVALID_RECORD, {1: "no key"})
    (send,) = leader.poll()
    leader.answer(send, KafkaError.MSG_SIZE_TOO_LARGE)
    assert leader.store_all() == [(-1, -1, [b"0", b"2"]), (-1, -1, [b"3"])]


def test_every_byte_of_a_divided_batch_is_reported_once():
    leader = Leader()
    leader.answer(first_of(leader, b"1", b"x", b"3", b"y", b"5"), KafkaError.INVALID_RECORD, {1: "no", 3: "no"})
    leader.answer(leader.poll()[0], KafkaError.MSG_SIZE_TOO_LARGE)
    leader.store_all()
    done = [event.batch.open for event in leader.sender.events() if isinstance(event, BatchDone)]
    assert sum(opened.count for opened in done) == leader.budget.messages == 5
    assert sum(opened.cost_bytes for opened in done) == leader.budget.bytes


def test_a_batch_that_shared_its_request_with_one_that_has_headers_is_sent_again_whole():
    leader = Leader(idempotent=False)
    send = first_of(leader, b"1", b"2")
    refused = KafkaError(KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT, "too old for headers")
    leader.sender.on_error(send, refused, leader.now)
    assert leader.store_all() == [(-1, -1, [b"1", b"2"])]


def test_a_purged_batch_is_not_parted_from_its_records_with_headers():
    leader = Leader(idempotent=False)
    leader.buffer.append(b"1", callback=print)
    leader.buffer.append(b"2", headers={"h": b"x"}, callback=print)
    (send,) = leader.poll()
    leader.sender.purge(None, KafkaError(KafkaError._PURGE_INFLIGHT))
    leader.sender.on_error(send, KafkaError(KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT), leader.now)
    assert leader.poll() == []
    assert [found for found, _ in leader.reports()] == [[b"1", b"2"]]
