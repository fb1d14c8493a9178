"""Every record gets exactly one report; what a callback raises does not lose the others."""

import math
import threading

import pytest

from headrace.buffers import BufferPool, RecordAccumulator, append_columns
from headrace.buffers.column_input import BinaryInput
from headrace.client.producer.reports import DeliveryReportQueue, IoThreadCallback
from headrace.client.producer.topics import FailedRecord
from headrace.errors import KafkaError
from headrace.machines.producer.batch_queue import PartitionQueue, ProducerBatch
from headrace.machines.producer.sender import BatchDone
from headrace.records import Message


class Producer:
    """The parts round a `DeliveryReportQueue`: an accumulator, its pool and a count of changes."""

    def __init__(self, only_errors=False):
        self.buffer_pool = BufferPool(100, 1_000_000)
        self.buffer = RecordAccumulator("t", 1, self.buffer_pool)
        self.changes = 0
        self.deliveries = DeliveryReportQueue(self.buffer_pool, only_errors, self.on_change)

    def on_change(self):
        self.changes += 1

    def done(self, error=None, base_offset=7):
        (opened,) = self.buffer.open_batches.ready(math.inf)
        self.deliveries.add(BatchDone(ProducerBatch(PartitionQueue("t", 0), 0, opened, 0.0), error, base_offset))


def test_records_without_a_callback_are_released_when_their_batch_is_done():
    producer = Producer()
    producer.buffer.append(b"a")
    producer.buffer.append(b"b")
    assert producer.buffer_pool.messages == 2
    producer.done()
    assert (producer.buffer_pool.messages, producer.buffer_pool.bytes) == (0, 0)
    assert producer.changes == 1
    assert producer.deliveries.serve() == 0


def test_records_with_a_callback_are_counted_until_it_is_called():
    producer, got = Producer(), []
    for value in (b"a", b"b"):
        producer.buffer.append(value, callback=lambda error, message: got.append((error, message)))
    producer.done()
    assert producer.buffer_pool.messages == 2
    assert producer.buffer_pool.ahead_bytes == 0  # no broker is behind for their sake
    assert (len(producer.deliveries), producer.deliveries.waiting()) == (0, 2)  # the pool counts them
    assert producer.deliveries.pending
    assert producer.deliveries.serve() == 2
    assert producer.buffer_pool.bytes == 0
    assert [(error, message.value(), message.offset()) for error, message in got] == [(None, b"a", 7), (None, b"b", 8)]
    assert got[0][1].latency() >= 0
    assert producer.buffer_pool.messages == 0
    assert not producer.deliveries.pending


def test_a_failed_batch_reports_its_error_for_each_record():
    producer, got = Producer(), []
    producer.buffer.append(b"a", b"key", headers={"h": b"1"}, callback=lambda e, m: got.append((e, m)))
    error = KafkaError(KafkaError._MSG_TIMED_OUT, "too late")
    producer.done(error, -1)
    producer.deliveries.serve()
    ((reported, message),) = got
    assert reported == KafkaError._MSG_TIMED_OUT
    assert message.error() == KafkaError._MSG_TIMED_OUT
    assert (message.key(), message.value(), message.offset()) == (b"key", b"a", None)


def test_a_callback_that_raises_does_not_lose_the_reports_behind_it():
    producer, got = Producer(), []

    def report(error, message):
        got.append(message.value())
        if message.value() == b"b":
            raise ValueError("mine")

    for value in (b"a", b"b", b"c"):
        producer.buffer.append(value, callback=report)
    producer.done()
    with pytest.raises(ValueError, match="mine"):
        producer.deliveries.serve()
    assert len(producer.deliveries) == 1
    assert producer.deliveries.serve() == 1
    assert got == [b"a", b"b", b"c"]


def test_a_callback_may_serve_reports_itself():
    producer, got = Producer(), []

    def report(error, message):
        got.append(message.value())
        producer.deliveries.serve()

    for value in (b"a", b"b"):
        producer.buffer.append(value, callback=report)
    producer.done()
    producer.deliveries.serve()
    assert got == [b"a", b"b"]


def test_only_errors_are_reported_if_so_configured():
    producer, got = Producer(only_errors=True), []
    producer.buffer.append(b"a", callback=lambda error, message: got.append(error))
    producer.done()
    assert producer.deliveries.serve() == 0
    producer.buffer.append(b"b", callback=lambda error, message: got.append(error))
    producer.done(KafkaError(KafkaError._PURGE_QUEUE))
    assert producer.deliveries.serve() == 1
    assert got == [KafkaError._PURGE_QUEUE]


class AtOnce(IoThreadCallback):
    """A callback of the loop's own."""

    def __init__(self):
        self.got = []

    def __call__(self, error, message):
        self.got.append((error, message and message.value()))


def failed(callback=None, cost_bytes=None):
    return FailedRecord(callback, Message("t", value=b"v", error=KafkaError(KafkaError._UNKNOWN_TOPIC)), cost_bytes,
                        True)


@pytest.mark.parametrize("only_errors", [False, True])
def test_what_the_loop_calls_by_itself_is_called_when_the_batch_is_done_whatever_is_reported(only_errors):
    producer, mine, others = Producer(only_errors), AtOnce(), []
    producer.deliveries.has_at_once = True
    producer.buffer.append(b"a", callback=mine)
    producer.buffer.append(b"b", callback=lambda error, message: others.append(message.value()))
    producer.done()
    assert mine.got == [(None, b"a")]
    assert (others, producer.deliveries.callers) == ([], 0)
    assert producer.deliveries.serve() == (0 if only_errors else 1)
    assert others == ([] if only_errors else [b"b"])
    assert producer.buffer_pool.messages == 0


def test_records_that_never_got_into_a_batch_are_reported_as_others_are():
    producer, got = Producer(), []
    producer.buffer_pool.take(3, 150)
    producer.deliveries.add_failed(failed(cost_bytes=50))
    producer.deliveries.add_failed(failed(lambda error, message: got.append((error, message.value())), 50))
    assert (got, producer.buffer_pool.messages) == ([], 2)
    assert producer.deliveries.waiting() == 1
    assert producer.deliveries.serve() == 1
    assert got == [(KafkaError(KafkaError._UNKNOWN_TOPIC), b"v")]
    mine = AtOnce()
    producer.deliveries.add_failed(failed(mine, 50))
    assert mine.got == [(KafkaError(KafkaError._UNKNOWN_TOPIC), b"v")]
    assert (producer.buffer_pool.messages, producer.buffer_pool.bytes) == (0, 0)


class Counting(IoThreadCallback):
    """What counts while it is called and while it resolves."""

    def __init__(self, producer):
        self.seen, self._producer = [], producer

    def __call__(self, error, message):
        self.seen.append((self._producer.buffer_pool.messages, self._producer.deliveries.settling))

    def resolve(self):
        self(None, None)


@pytest.mark.parametrize("in_batch", [False, True])
def test_a_record_counts_while_its_callback_runs_but_not_when_its_future_is_resolved(in_batch):
    producer = Producer()
    producer.deliveries.has_at_once = True
    callback = Counting(producer)
    if in_batch:
        producer.buffer.append(b"a", callback=callback)
        producer.done()
    else:
        producer.buffer_pool.take(1, 50)
        producer.deliveries.add_failed(failed(callback, 50))
    assert callback.seen == [(1, False), (0, True)]
    assert not producer.deliveries.settling


def test_notices_are_served_in_their_order_before_reports():
    producer, got = Producer(), []
    producer.buffer.append(b"a", callback=lambda error, message: got.append("report"))
    producer.done()
    producer.deliveries.add_notice(got.append, "first")
    producer.deliveries.add_notice(got.append, "second")
    assert producer.deliveries.waiting() == 3
    assert producer.deliveries.serve() == 3
    assert got == ["first", "second", "report"]


def test_it_is_known_which_threads_are_in_a_callback():
    producer, deliveries = Producer(), None
    entered, leave, seen = threading.Event(), threading.Event(), []
    deliveries = producer.deliveries

    def callback(error, message):
        seen.append((deliveries.in_callback(), deliveries.called_elsewhere(), deliveries.callers))
        entered.set()
        assert leave.wait(10)

    producer.buffer.append(b"a", callback=callback)
    producer.done()
    thread = threading.Thread(target=deliveries.serve)
    thread.start()
    assert entered.wait(10)
    assert (deliveries.in_callback(), deliveries.called_elsewhere(), deliveries.callers) == (False, True, 1)
    leave.set()
    thread.join()
    assert seen == [(True, False, 1)]
    assert (deliveries.called_elsewhere(), deliveries.callers) == (False, 0)


def test_who_waits_for_room_hears_of_it_from_the_thread_that_serves():
    producer, heard = Producer(), []
    producer.deliveries.on_served = lambda: heard.append(producer.buffer_pool.messages)
    producer.buffer.append(b"a", callback=lambda error, message: heard.append("called"))
    producer.done()
    producer.deliveries.serve()
    assert heard == [0, "called", 0]


def test_two_threads_that_serve_call_each_callback_once():
    producer, got, lock = Producer(), [], threading.Lock()

    def report(error, message):
        with lock:
            got.append(message.value())

    for number in range(20):
        for part in range(5):
            producer.buffer.append(b"%d" % (5 * number + part), callback=report)
        producer.done()
    threads = [threading.Thread(target=producer.deliveries.serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.deliveries.serve()
    assert sorted(map(int, got)) == list(range(100))


def test_rows_that_came_together_are_told_together_how_they_ended():
    class Listener:
        def __init__(self):
            self.got = []

        def on_rows_done(self, error, rows):
            self.got.append((error, rows))

    one, two = Listener(), Listener()
    producer = Producer()
    values = BinaryInput(None, b"".join(n.to_bytes(4, "little") for n in range(4)), b"abc", 0, False)
    append_columns(producer.buffer, 0, 2, None, values, None, None, None, one)
    producer.buffer.append(b"alone")
    append_columns(producer.buffer, 0, 3, None, values, None, None, None, two)
    producer.done()
    append_columns(producer.buffer, 0, 1, None, values, None, None, None, one)
    error = KafkaError(KafkaError._MSG_TIMED_OUT)
    producer.done(error)
    assert (one.got, two.got) == ([(None, 2), (error, 1)], [(None, 3)])
