"""What a partition knows of its producers: what comes again or too early, what is open and what was aborted."""

from __future__ import annotations

import pytest

from headrace.broker.storage.producer_state import AbortedSpan, Marker, ProducerStates
from headrace.errors import KafkaError
from headrace.records import BatchInfo

LAST = (1 << 31) - 1
TRANSACTIONAL = 0x10


def batch(
    sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 7, transactional: bool = False
) -> BatchInfo:
    return BatchInfo(0, count - 1, 2, TRANSACTIONAL if transactional else 0, -1, 0, 0, producer, epoch, sequence, count,
                     0, 100)


def stored(states: ProducerStates, *batches: BatchInfo) -> None:
    for offset, each in enumerate(batches):
        assert states.check(each) == 0
        states.record(each, 100 + offset)


def test_one_of_the_last_five_batches_that_comes_again_is_known_with_its_offset() -> None:
    states = ProducerStates()
    stored(states, *(batch(number) for number in range(6)))
    found = [states.duplicate(batch(number)) for number in range(6)]
    assert [each and each.base_offset for each in found] == [None, 101, 102, 103, 104, 105]
    assert states.duplicate(batch(5, 2)) is None  # it begins as one of them and is longer
    assert states.duplicate(batch(5, epoch=1)) is None


def test_batches_of_a_producer_follow_one_another_also_where_numbers_begin_anew() -> None:
    states = ProducerStates()
    stored(states, batch(LAST - 1, 3))  # LAST - 1, LAST and 0
    assert states.check(batch(1)) == 0
    assert states.check(batch(2)) == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(batch(0)) == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_is_not_known_may_begin_anywhere_but_in_a_transaction_with_an_epoch_of_its_own() -> None:
    states = ProducerStates()
    assert states.check(batch(40)) == 0
    assert states.check(batch(40), own_epochs=True) == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(batch(0), own_epochs=True) == 0


def test_a_higher_epoch_begins_with_0_and_ends_the_lower_one() -> None:
    states = ProducerStates()
    stored(states, batch(0), batch(1))
    assert states.check(batch(2, epoch=1)) == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    stored(states, batch(0, epoch=1))
    assert states.check(batch(2)) == KafkaError.INVALID_PRODUCER_EPOCH
    assert states.duplicate(batch(1)) is None


def test_a_producer_writes_nothing_beside_its_open_transaction() -> None:
    states = ProducerStates()
    stored(states, batch(0, transactional=True))
    assert states.check(batch(1)) == KafkaError.INVALID_TXN_STATE
    assert states.is_open(7, 0)
    states.end(Marker(7, 0, commit=True, coordinator_epoch=0), 101, 0)
    assert states.check(batch(1)) == 0
    assert states.has_ended(7, 0)


@pytest.mark.parametrize(("marker", "code"), [
    (Marker(7, 1, True, 3), 0),
    (Marker(7, 2, False, 3), 0),
    (Marker(7, 0, True, 3), KafkaError.INVALID_PRODUCER_EPOCH),
    (Marker(7, 1, True, 3, version=2), KafkaError.INVALID_PRODUCER_EPOCH),
    (Marker(7, 2, True, 3, version=2), 0),
    (Marker(8, 0, True, 0), 0),
])
def test_a_marker_that_comes_too_late_is_refused(marker: Marker, code: int) -> None:
    states = ProducerStates()
    stored(states, batch(0, epoch=1, transactional=True))
    assert states.check_marker(marker) == code


def test_a_marker_of_a_coordinator_that_was_replaced_is_refused_and_one_that_comes_again_is_not() -> None:
    states = ProducerStates()
    stored(states, batch(0, transactional=True))
    marker = Marker(7, 1, commit=False, coordinator_epoch=4, version=2)
    states.end(marker, 101, 0)
    assert states.check_marker(marker) == 0
    replaced = marker._replace(epoch=2, coordinator_epoch=3)
    assert states.check_marker(replaced) == KafkaError.TRANSACTION_COORDINATOR_FENCED


def test_readers_stop_before_the_oldest_open_transaction_and_leave_out_what_was_aborted() -> None:
    states = ProducerStates()
    states.record(batch(0, transactional=True), 10)
    states.record(batch(0, producer=8, transactional=True), 11)
    assert states.first_unstable(20) == 10
    states.end(Marker(7, 0, commit=False, coordinator_epoch=0), 12, 0)
    assert states.first_unstable(20) == 11
    states.end(Marker(8, 0, commit=True, coordinator_epoch=0), 13, 0)
    assert states.first_unstable(20) == 20
    aborted = AbortedSpan(7, 10, 12, 11)  # 8 was open still, from 11 on
    assert list(states.aborted(0, 20)) == list(states.aborted(12, 20)) == [aborted]
    assert list(states.aborted(13, 20)) == list(states.aborted(0, 10)) == []
    states.forget_aborted(13)
    assert list(states.aborted(0, 20)) == []


def test_a_transaction_has_ended_until_the_next_of_its_epoch_begins() -> None:
    states = ProducerStates()
    told = []
    stored(states, batch(0, transactional=True))
    told.append(states.has_ended(7, 0))
    states.end(Marker(7, 0, True, 0), 101, 0)
    told += [states.has_ended(7, 0), states.has_ended(7, 1), states.has_ended(8, 0)]
    stored(states, batch(1, transactional=True))
    told.append(states.has_ended(7, 0))
    assert told == [False, True, False, False, False]
