"""A batch that cannot be stored as one is sent in parts: which records, in which order, under which numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import KafkaError
from headrace.machines.producer.sender import BatchDone
from tests.support.driven_sender import Leader, content, first_of


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
    assert sum(opened.count for opened in done) == leader.buffer_pool.messages == 5
    assert sum(opened.cost_bytes for opened in done) == leader.buffer_pool.bytes


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


class Picky:
    """A leader that stores batches of few records, none of them large and none of them wrong, and checks numbers."""

    def __init__(self, leader, most_records, checks_numbers):
        self.leader, self.most_records, self.checks_numbers = leader, most_records, checks_numbers
        self.next = (0, 0)
        self.stored = []

    def answer(self, send):
        epoch, first, found = content(send)
        wrong = {place: "wrong" for place, value in enumerate(found) if value.startswith(b"wrong")}
        in_order = (epoch, first) == self.next or (epoch > self.next[0] and first == 0)
        if self.checks_numbers and not in_order:
            self.leader.answer(send, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
        elif len(found) > self.most_records or any(value.startswith(b"large") for value in found):
            self.leader.answer(send, KafkaError.MSG_SIZE_TOO_LARGE)
        elif wrong:
            self.leader.answer(send, KafkaError.INVALID_RECORD, wrong)
        else:
            self.next = (epoch, first + len(found))
            self.stored += found
            self.leader.answer(send, base_offset=len(self.stored))


@given(st.lists(st.lists(st.sampled_from(["fine", "fine", "wrong", "large"]), min_size=1, max_size=9), max_size=6),
       st.integers(1, 5), st.booleans())
def test_what_can_be_stored_is_stored_once_in_order_and_each_record_is_reported_once(batches, most_records, idempotent):
    leader = Leader(idempotent, max_in_flight=5 if idempotent else 1)
    broker = Picky(leader, most_records, idempotent)
    names = [[b"%s %d %d" % (kind.encode(), which, place) for place, kind in enumerate(kinds)]
             for which, kinds in enumerate(batches)]
    sends = []
    for records in names:
        leader.add(*records)
        sends += leader.poll()
    for _ in range(500):
        if not sends:
            break
        broker.answer(sends.pop(0))
        leader.now += 0.1
        sends += leader.poll()
    assert not leader.sender.unresolved()
    every = [name for records in names for name in records]
    assert broker.stored == [name for name in every if name.startswith(b"fine")]
    if all(name.startswith(b"fine") for name in every):
        assert broker.next[0] <= 0, "nothing failed: there was no need for a new epoch"
    codes = {b"fine": None, b"wrong": KafkaError.INVALID_RECORD, b"large": KafkaError.MSG_SIZE_TOO_LARGE}
    told = [(value, error and error.code()) for found, error in leader.reports() for value in found]
    assert sorted(told) == sorted((name, codes[name.split()[0]]) for name in every)
