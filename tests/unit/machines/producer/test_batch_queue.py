"""The accumulator keeps the order of each partition and knows when time changes something."""

import math
from types import SimpleNamespace

import pytest

from headrace.machines.producer.batch_queue import BatchQueues, BatchState, PartitionQueue, ProducerBatch


def opened(**fields):
    sealed = SimpleNamespace(size_bytes=80, data=b"", stamp=lambda *a: None)
    return SimpleNamespace(**{"topic": "t", "partition": 0, "opened_at": 0.0, "count": 1, "size_bytes": 100,
                              "seal": lambda codec=0, level=-1: sealed, **fields})


class Buffer:
    """Open batches, as the queues see them."""

    rings = False

    def __init__(self):
        self.open = []

    def add(self, partition=0, opened_at=0.0, count=1, full=False):
        self.open.append(opened(partition=partition, opened_at=opened_at, count=count, full=full))

    def ready(self, opened_before, held):
        taken = [b for b in self.open
                 if b.full or (b.opened_at <= opened_before and b.partition not in held.get(b.topic, ()))]
        self.open = [b for b in self.open if b not in taken]
        return taken

    def next_deadline(self, linger_s, held):
        return min((b.opened_at + linger_s for b in self.open if b.partition not in held.get(b.topic, ())),
                   default=None)


def accumulator(buffer, linger_s=0.02, message_timeout_s=10.0, codec=0):
    return BatchQueues(buffer, linger_s, message_timeout_s, codec, 9, at_once_bytes=0)


def three_in_flight(queue: PartitionQueue) -> list[ProducerBatch]:
    queues = accumulator(Buffer())
    for _ in range(4):
        queues.seal(queue.add(opened(), 10.0))
    return [queue.take() for _ in range(3)]


def test_an_open_batch_waits_for_linger():
    buffer = Buffer()
    made = accumulator(buffer)
    buffer.add(opened_at=1.0)
    made.collect(1.01)
    assert made.busy() == []
    assert made.deadline(1.01) == 1.02
    made.collect(1.02)
    assert [queue.partition for queue in made.busy()] == [0]


def test_a_full_batch_does_not_wait():
    buffer = Buffer()
    made = accumulator(buffer)
    buffer.add(opened_at=1.0, full=True)
    made.collect(1.0)
    assert len(made.waiting()) == 1


def test_what_is_purged_is_taken_although_it_lingers_or_its_partition_has_batches_waiting():
    buffer = Buffer()
    made = accumulator(buffer)
    buffer.add(full=True)
    made.collect(0.0)
    buffer.add(opened_at=0.0)
    buffer.add(opened_at=0.0, partition=1)
    made.collect(0.0)
    assert len(buffer.open) == 2
    made.collect(0.0, everything=True)
    assert buffer.open == []


def test_flushing_takes_everything_at_once():
    buffer = Buffer()
    made = accumulator(buffer, linger_s=900.0)
    buffer.add(opened_at=1.0)
    made.flushing = True
    made.collect(1.0)
    assert len(made.waiting()) == 1


def test_retries_return_to_their_place_whatever_the_order_of_their_failures():
    queue = PartitionQueue("t", 0)
    first, second, third = three_in_flight(queue)
    queue.in_flight.clear()
    for batch in (second, third, first):
        queue.requeue(batch)
    assert [batch.position for batch in queue.waiting] == [0, 1, 2, 3]


def test_a_retry_waits_until_nothing_is_in_flight():
    queue = PartitionQueue("t", 0)
    first, second, third = three_in_flight(queue)
    queue.in_flight.remove(first)
    queue.requeue(first)
    assert queue.sendable(0.0, 5) is None
    queue.in_flight.remove(second)
    queue.in_flight.remove(third)
    assert queue.sendable(0.0, 5) is first


def test_a_batch_that_is_still_being_compressed_holds_those_behind_it():
    buffer = Buffer()
    made = accumulator(buffer, codec=1)
    buffer.add(full=True)
    buffer.add(full=True)
    made.collect(0.0)
    first, second = made.start_sealing()
    made.on_sealed(second, second.open.seal())
    assert made.queue("t", 0).sendable(0.0, 5) is None
    made.on_sealed(first, first.open.seal())
    assert made.queue("t", 0).sendable(0.0, 5) is first


def test_without_compression_a_batch_has_its_bytes_when_it_is_queued():
    buffer = Buffer()
    made = accumulator(buffer)
    buffer.add(full=True)
    made.collect(0.0)
    (batch,) = made.waiting()
    assert (batch.state, batch.size_bytes, made.start_sealing()) == (BatchState.QUEUED, 80, [])


def test_each_batch_is_handed_out_once_to_be_compressed():
    buffer = Buffer()
    made = accumulator(buffer, codec=1)
    buffer.add(full=True)
    made.collect(0.0)
    (batch,) = made.start_sealing()
    assert (batch.state, batch.size_bytes, made.start_sealing()) == (BatchState.SEALING, 100, [])


def test_a_batch_that_was_dropped_is_not_compressed_any_more():
    buffer = Buffer()
    made = accumulator(buffer, codec=1)
    buffer.add(full=True)
    made.collect(0.0)
    (batch,) = made.waiting()
    made.drop(batch)
    assert made.start_sealing() == []


def test_a_batch_is_sent_only_from_its_place_in_the_queue():
    queue = PartitionQueue("t", 0)
    first, *_ = three_in_flight(queue)
    assert first.state is BatchState.IN_FLIGHT
    queue.waiting.appendleft(first)
    with pytest.raises(RuntimeError, match=r"^A batch: no way leads from IN_FLIGHT by 'send'$"):
        queue.take()


def test_no_more_than_the_limit_is_in_flight_for_a_partition():
    queue = PartitionQueue("t", 0)
    three_in_flight(queue)
    assert queue.sendable(0.0, 3) is None
    assert queue.sendable(0.0, 4) is not None


def test_partitions_are_served_in_turn():
    buffer = Buffer()
    made = accumulator(buffer, linger_s=0.0)
    for partition in (0, 0, 1):
        buffer.add(partition, full=True)
    made.collect(0.0)
    made.take(made.busy()[0])
    assert [queue.partition for queue in made.busy()] == [1, 0]


def test_a_backoff_sets_the_deadline():
    buffer = Buffer()
    made = accumulator(buffer, linger_s=0.0, message_timeout_s=math.inf)
    buffer.add()
    made.collect(0.0)
    batch = made.take(made.busy()[0])
    made.settle(batch)
    made.requeue(batch, 0.7)
    assert made.deadline(0.0) == 0.7
    assert made.busy()[0].sendable(0.6, 5) is None
    assert made.busy()[0].sendable(0.7, 5) is batch


def test_waiting_batches_expire_at_their_deadline_and_those_in_flight_do_not():
    buffer = Buffer()
    made = accumulator(buffer, linger_s=0.0, message_timeout_s=5.0)
    buffer.add(full=True)
    buffer.add(full=True)
    made.collect(0.0)
    made.take(made.busy()[0])
    assert made.expired(4.9) == []
    assert [batch.position for batch in made.expired(5.0)] == [1]


def test_nothing_to_do_means_no_deadline():
    assert accumulator(Buffer()).deadline(0.0) == math.inf


def test_behind_a_batch_that_waits_the_open_one_grows():
    buffer = Buffer()
    made = accumulator(buffer)
    buffer.add(opened_at=0.0)
    made.collect(1.0)
    buffer.add(opened_at=1.0)
    made.collect(2.0)
    assert len(made.waiting()) == 1
    made.take(made.busy()[0])
    made.collect(2.0)
    assert len(made.waiting()) == 1
    assert buffer.open == []


@pytest.mark.parametrize(("size_bytes", "at_once"), [(8192, True), (8193, False)])
def test_small_batches_are_compressed_at_once(size_bytes, at_once):
    sealed = []
    queues = BatchQueues(Buffer(), 0.0, 10.0, 3, 9)
    batch = queues.queue("t", 0).add(SimpleNamespace(
        topic="t", partition=0, opened_at=0.0, count=1, size_bytes=size_bytes,
        seal=lambda *how: sealed.append(how) or SimpleNamespace(size_bytes=10)), 10.0)
    queues.seal(batch)
    assert sealed == ([(3, 9)] if at_once else [])
    assert queues.start_sealing() == ([] if at_once else [batch])
    assert batch.state is (BatchState.QUEUED if at_once else BatchState.SEALING)
