"""Numbers go up, survive retries, and begin again only when nothing numbered is unresolved."""

import math
from types import SimpleNamespace
from uuid import UUID

import pytest

from headrace.buffers import OpenBatches
from headrace.errors import KafkaError
from headrace.machines.producer.batch_queue import BatchQueues, PartitionQueue, ProducerBatch
from headrace.machines.producer.sequences import MAX_EPOCH, Sequences, producer_state, topic_id
from headrace.wire.messages.producer.produce import InitProducerIdResponse


class Sealed:
    size_bytes = 100
    data = b""

    def __init__(self):
        self.stamps = []

    def stamp(self, producer_id, epoch, base_sequence, transactional=False):
        assert not transactional
        self.stamps.append((producer_id, epoch, base_sequence))


@pytest.fixture
def sequences():
    made = Sequences(True, 30.0, lambda attempt: 0.1 * 2**attempt)
    list(made.poll(0.0))
    made.on_reply(InitProducerIdResponse(producer_id=7, producer_epoch=0), 0.0)
    return made


@pytest.fixture
def queue():
    return PartitionQueue("t", 0)


def batch(queue: PartitionQueue, count: int = 3) -> ProducerBatch:
    made = queue.add(SimpleNamespace(
        partition=0, opened_at=0.0, count=count, size_bytes=100, seal=lambda codec=0, level=-1: Sealed()), 10.0)
    BatchQueues(OpenBatches(), 0.0, 10.0).seal(made)
    return made


def send(sequences: Sequences, queue: PartitionQueue) -> ProducerBatch:
    assert sequences.allows(queue, queue.waiting[0])
    taken = queue.take()
    sequences.assign_sequence(queue, taken)
    return taken


def fail(queue: PartitionQueue, failed: ProducerBatch, *, maybe_stored: bool = False) -> None:
    queue.in_flight.remove(failed)
    failed.maybe_stored |= maybe_stored
    queue.requeue(failed)


def store(sequences: Sequences, queue: PartitionQueue, stored: ProducerBatch) -> None:
    queue.in_flight.remove(stored)
    sequences.on_stored(queue)


def confirmed(sequences: Sequences, queue: PartitionQueue) -> None:
    batch(queue, 1)
    store(sequences, queue, send(sequences, queue))


def test_a_producer_id_is_asked_for_once():
    sequences = Sequences(True, 30.0, lambda attempt: 0.1)
    assert len(list(sequences.poll(0.0))) == 1
    assert list(sequences.poll(0.0)) == []
    assert sequences.deadline() == math.inf


def test_batches_that_wait_for_a_producer_id_have_it_asked_for_once_also_when_no_answer_came(queue):
    sequences = Sequences(True, 30.0, lambda attempt: 0.1)
    waits = batch(queue)
    list(sequences.poll(0.0))
    assert not sequences.allows(queue, waits)
    assert list(sequences.poll(0.0)) == []
    assert sequences.on_error(KafkaError(KafkaError._TRANSPORT, "no frame"), 0.0) is None
    assert not sequences.allows(queue, waits)
    assert sequences.deadline() == pytest.approx(0.1)
    assert len(list(sequences.poll(0.1))) == 1


def test_a_passing_error_is_retried_after_a_backoff():
    sequences = Sequences(True, 30.0, lambda attempt: 0.1)
    list(sequences.poll(0.0))
    loading = InitProducerIdResponse(error_code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    assert sequences.on_reply(loading, 0.0) is None
    assert sequences.deadline() == pytest.approx(0.1)
    assert list(sequences.poll(0.05)) == []
    assert len(list(sequences.poll(0.1))) == 1


def test_the_backoff_grows_until_there_is_a_producer_id():
    sequences = Sequences(True, 30.0, lambda attempt: 0.1 * 2**attempt)
    for wait_s in (0.1, 0.2, 0.4):
        list(sequences.poll(9.0))
        sequences.on_error(KafkaError(KafkaError._TRANSPORT, "no frame"), 0.0)
        assert sequences.deadline() == pytest.approx(wait_s)
    list(sequences.poll(9.0))
    sequences.on_reply(InitProducerIdResponse(producer_id=7, producer_epoch=0), 0.0)
    sequences.on_error(KafkaError(KafkaError._TRANSPORT, "no frame"), 0.0)
    assert sequences.deadline() == pytest.approx(0.1)


def test_why_there_is_no_producer_id_is_known_until_there_is_one():
    sequences = Sequences(True, 30.0, lambda attempt: 0.1)
    list(sequences.poll(0.0))
    assert sequences.last_error is None
    assert sequences.on_error(KafkaError(KafkaError._TRANSPORT, "no frame"), 0.0) is None
    assert sequences.last_error.str() == "no frame"
    list(sequences.poll(1.0))
    sequences.on_reply(InitProducerIdResponse(producer_id=7, producer_epoch=0), 1.0)
    assert sequences.last_error is None


def test_a_refused_authorisation_is_final():
    sequences = Sequences(True, 30.0, lambda attempt: 0.1)
    list(sequences.poll(0.0))
    refused = InitProducerIdResponse(error_code=KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    assert sequences.on_reply(refused, 0.0) == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_nothing_is_numbered_without_idempotence(queue):
    sequences = Sequences(False, 30.0, lambda attempt: 0.1)
    assert list(sequences.poll(0.0)) == []
    batch(queue)
    sent = send(sequences, queue)
    assert sent.sequence == -1
    assert sent.sealed.stamps == []


def test_numbers_follow_each_other_by_record(sequences, queue):
    confirmed(sequences, queue)
    for count in (3, 4, 1):
        batch(queue, count)
    assert [send(sequences, queue).sequence for _ in range(3)] == [1, 4, 8]


def test_the_number_after_the_last_is_zero(sequences, queue):
    confirmed(sequences, queue)
    queue.partition_sequence.next_sequence = 2**31 - 2
    batch(queue, 3)
    batch(queue, 1)
    assert send(sequences, queue).sequence == 2**31 - 2
    assert send(sequences, queue).sequence == 1


def test_until_the_first_batch_is_stored_no_second_one_is_sent(sequences, queue):
    first, second = batch(queue), batch(queue)
    assert send(sequences, queue) is first
    assert not sequences.allows(queue, second)
    store(sequences, queue, first)
    assert sequences.allows(queue, second)


@pytest.mark.parametrize(("topic_id", "now"), [(UUID(int=2), 1.0), (UUID(int=1), 100.0)], ids=["anew", "silent"])
def test_a_leader_that_may_have_forgotten_the_producer_gets_one_batch_first(sequences, queue, topic_id, now):
    # Found by simulation: it takes any number of a producer that it does not know, so a second batch could be stored
    # before the first, which was then refused or, in the next epoch, stored behind it.
    sequences.check_known(queue, UUID(int=1), 0.0)
    confirmed(sequences, queue)
    sequences.check_known(queue, topic_id, now)
    first, second = batch(queue), batch(queue)
    assert send(sequences, queue) is first
    assert not sequences.allows(queue, second)
    store(sequences, queue, first)
    sequences.check_known(queue, topic_id, now + 50.0)
    batch(queue)
    send(sequences, queue)
    assert sequences.allows(queue, queue.waiting[0])


def test_what_a_topic_stored_before_it_was_made_anew_does_not_make_the_producer_known_to_the_new_one(sequences, queue):
    # Found by simulation: the answer came when the new topic was known already, and five batches followed at once. The
    # first was refused, the others were stored, and it was stored behind them.
    sequences.check_known(queue, UUID(int=1), 0.0)
    confirmed(sequences, queue)
    before, first, second = batch(queue), batch(queue), batch(queue)
    assert send(sequences, queue) is before
    sequences.check_known(queue, UUID(int=2), 1.0)
    assert not sequences.allows(queue, first)
    store(sequences, queue, before)
    sequences.check_known(queue, UUID(int=2), 2.0)
    assert send(sequences, queue) is first
    assert topic_id(queue) == UUID(int=2)
    assert not sequences.allows(queue, second)


def test_no_batch_is_sent_that_would_push_an_unresolved_one_out_of_the_brokers_memory(sequences, queue):
    confirmed(sequences, queue)
    first = batch(queue)
    for _ in range(5):
        batch(queue)
    sent = [send(sequences, queue) for _ in range(5)]
    for later in sent[1:4]:
        store(sequences, queue, later)
    assert queue.in_flight == [first, sent[4]]
    assert not sequences.allows(queue, queue.waiting[0])
    store(sequences, queue, sent[4])
    assert queue.in_flight == [first]
    assert not sequences.allows(queue, queue.waiting[0])


def test_no_sequence_is_lent_before_the_leader_has_stored_a_batch(sequences, queue):
    batch(queue)
    sent = send(sequences, queue)
    assert sequences.next_of(queue) is None
    store(sequences, queue, sent)
    assert sequences.next_of(queue) == (7, 0, 3)


def test_a_retry_keeps_its_number(sequences, queue):
    batch(queue)
    sent = send(sequences, queue)
    fail(queue, sent, maybe_stored=True)
    assert send(sequences, queue) is sent
    assert sent.sealed.stamps == [(7, 0, 0)]


def test_a_batch_refused_behind_a_missing_one_is_just_sent_again(sequences, queue):
    confirmed(sequences, queue)
    batch(queue)
    second = batch(queue)
    first = send(sequences, queue)
    send(sequences, queue)
    fail(queue, first)
    queue.in_flight.remove(second)
    assert sequences.on_refused(second)
    assert not queue.partition_sequence.needs_epoch_bump


def test_a_first_batch_that_was_surely_not_stored_begins_the_next_epoch(sequences, queue):
    confirmed(sequences, queue)
    first, second = batch(queue), batch(queue)
    send(sequences, queue)
    send(sequences, queue)
    queue.in_flight.remove(first)
    assert sequences.on_refused(first)
    queue.requeue(first)
    assert not sequences.allows(queue, first)  # the second is still in flight
    assert producer_state(queue) == (7, 0)
    fail(queue, second)
    assert send(sequences, queue) is first
    assert first.sealed.stamps[-1] == (7, 1, 0)
    assert not sequences.allows(queue, second)  # nothing of the new epoch is stored yet


def test_a_first_batch_that_may_be_stored_is_never_renumbered(sequences, queue):
    batch(queue)
    first = send(sequences, queue)
    fail(queue, first, maybe_stored=True)
    send(sequences, queue)
    queue.in_flight.remove(first)
    assert not sequences.on_refused(first)


@pytest.mark.parametrize(("begin", "numbered_as"), [(1, 4), (2**31 - 3, 0)])
def test_after_a_batch_of_unknown_fate_is_given_up_numbered_ones_are_resolved_before_new_ones(
        sequences, queue, begin, numbered_as):
    confirmed(sequences, queue)
    queue.partition_sequence.next_sequence = begin
    lost, numbered, fresh = batch(queue), batch(queue), batch(queue)
    send(sequences, queue)
    send(sequences, queue)
    queue.in_flight.clear()
    lost.maybe_stored = numbered.maybe_stored = True
    queue.requeue(numbered)
    sequences.on_given_up(lost, KafkaError(KafkaError._MSG_TIMED_OUT))
    assert send(sequences, queue) is numbered
    assert numbered.sequence == numbered_as
    assert not sequences.allows(queue, fresh)
    store(sequences, queue, numbered)
    assert send(sequences, queue) is fresh
    assert fresh.sealed.stamps == [(7, 1, 0)]


def test_the_very_first_batch_that_is_given_up_takes_its_number_with_it(sequences, queue):
    batch(queue)
    lost = send(sequences, queue)
    queue.in_flight.remove(lost)
    sequences.on_given_up(lost, KafkaError(KafkaError._MSG_TIMED_OUT))
    batch(queue)
    assert send(sequences, queue).sealed.stamps == [(7, 1, 0)]


def test_the_first_producer_of_a_cluster_has_the_id_0(queue):
    sequences = Sequences(True, 30.0, lambda attempt: 0.1)
    list(sequences.poll(0.0))
    sequences.on_reply(InitProducerIdResponse(producer_id=0, producer_epoch=0), 0.0)
    sequences.check_known(queue, topic := UUID(int=1), 0.0)
    confirmed(sequences, queue)
    batch(queue)
    assert send(sequences, queue).sealed.stamps == [(0, 0, 1)]
    assert sequences.next_of(queue) == (0, 0, 4)
    alone = batch(queue)
    assert sequences.assign_alone(queue, alone, topic, 1.0)
    assert alone.sealed.stamps == [(0, 0, 4)]
    assert list(sequences.poll(1.0)) == []


def test_what_follows_a_batch_that_was_surely_not_stored_is_renumbered_even_if_uncertain(sequences, queue):
    confirmed(sequences, queue)
    rejected, follower = batch(queue), batch(queue)
    send(sequences, queue)
    send(sequences, queue)
    queue.in_flight.clear()
    queue.requeue(follower)
    follower.maybe_stored = True
    sequences.on_given_up(rejected, KafkaError(KafkaError.INVALID_RECORD))
    assert send(sequences, queue) is follower
    assert follower.sealed.stamps[-1] == (7, 1, 0)


def test_what_cannot_have_been_stored_is_sent_again_when_it_is_refused_although_an_attempt_was_uncertain(
        sequences, queue):
    confirmed(sequences, queue)
    rejected, follower = batch(queue), batch(queue)
    send(sequences, queue)
    send(sequences, queue)
    queue.in_flight.remove(rejected)
    follower.maybe_stored = True
    sequences.on_given_up(rejected, KafkaError(KafkaError.INVALID_RECORD))
    queue.in_flight.remove(follower)
    assert sequences.on_refused(follower)


def test_a_batch_that_is_alone_takes_the_long_way_where_the_leader_may_have_forgotten_the_producer(sequences, queue):
    sequences.check_known(queue, topic := UUID(int=1), 1000.0)
    confirmed(sequences, queue)
    assert sequences.assign_alone(queue, batch(queue), topic, 1050.0)
    assert sequences.assign_alone(queue, batch(queue), topic, 1100.0)
    assert not sequences.assign_alone(queue, batch(queue), topic, 1170.0)
    assert not sequences.assign_alone(queue, batch(queue), UUID(int=2), 1101.0)


def test_a_producer_id_whose_epochs_are_used_up_is_replaced(sequences, queue):
    confirmed(sequences, queue)
    queue.partition_sequence.epoch = MAX_EPOCH
    rejected, after = batch(queue), batch(queue)
    send(sequences, queue)
    queue.in_flight.clear()
    sequences.on_given_up(rejected, KafkaError(KafkaError.INVALID_RECORD))
    assert not sequences.allows(queue, after)
    assert len(list(sequences.poll(1.0))) == 1
    sequences.on_reply(InitProducerIdResponse(producer_id=8, producer_epoch=0), 1.0)
    assert send(sequences, queue) is after
    assert after.sealed.stamps == [(8, 0, 0)]


def test_partitions_have_their_own_epochs(sequences, queue):
    confirmed(sequences, queue)
    rejected = batch(queue)
    send(sequences, queue)
    queue.in_flight.clear()
    sequences.on_given_up(rejected, KafkaError(KafkaError.INVALID_RECORD))
    batch(queue)
    send(sequences, queue)
    other = PartitionQueue("t", 1)
    batch(other)
    assert send(sequences, other).sealed.stamps == [(7, 0, 0)]
    assert (producer_state(queue), producer_state(other)) == ((7, 1), (7, 0))
