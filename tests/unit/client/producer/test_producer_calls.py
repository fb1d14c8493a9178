"""The rules about waiting, step by step: what they yield, and what they do when a wait has ended, or was ended."""

import time
from typing import Any

import pytest

from headrace.buffers import FEW_MESSAGES, BufferPool
from headrace.client.producer.producer_calls import ProducerCalls
from headrace.client.waits import Wait
from headrace.errors import BufferFullError, ClientClosedError, KafkaError, KafkaException
from headrace.machines.producer.transactions import Operation
from headrace.types.records import ConsumerGroupMetadata, TopicPartition

UNKNOWN = KafkaError(KafkaError._UNKNOWN_TOPIC, "denied")
RECORD = ("t", b"v", None, -1, 0, None)


class Config(dict):
    def seconds(self, name):
        return self[name] / 1000


class Buffers:
    def __init__(self):
        self.open, self.all, self.by_function = {}, {}, False
        self.watches, self.open_batches = [], OpenBatches()

    def await_topic(self, topic, watch):
        self.watches.append(watch)
        return topic not in self.all


class OpenBatches:
    def send_open(self):
        return False


class DeliveryReportQueue:
    def __init__(self):
        self.has_at_once = self.pending = self.settling = False
        self.callers, self.served, self.here = 0, 0, False

    def in_callback(self):
        return self.here

    def called_elsewhere(self):
        return self.callers > self.here

    def serve(self):
        self.served += self.pending
        self.pending = False


class Engine:
    """What rules need of an engine; there is room for `room` records."""

    def __init__(self, room=0):
        self.config = Config({"max.block.ms": 60_000})
        self.buffer_pool, self.accumulators, self.deliveries = BufferPool(0, 1 << 20), Buffers(), DeliveryReportQueue()
        self.closed, self.transactions, self.replies, self.flushes = False, None, None, {}
        self.room, self.appended, self.noted = room, [], []

    def produce(self, *record):
        if self.closed:
            raise ClientClosedError("closed")
        if len(self.appended) >= self.room:
            raise BufferFullError("full; call poll()")
        self.appended.append(record)
        self.buffer_pool.take(1, 100)

    def deliver(self, count=1):
        self.buffer_pool.release(count, 100 * count)

    def refuse(self, *, spare_callbacks):
        self.closed = True
        self.noted.append("refused")

    async def close(self):
        self.noted.append("closed")

    def wake(self):
        self.noted.append("woken")

    def flush_now(self):
        self.noted.append("relieved")

    def __len__(self):
        return self.buffer_pool.messages

    @property
    def is_done(self):
        return not (len(self) or self.deliveries.settling)


class Waits:
    """Runs nothing: each test does."""

    def __init__(self):
        self.told, self.asides, self.waits_here = 0, 0, True

    def notify(self):
        self.told += 1

    def may_wait(self):
        return self.waits_here

    def step_aside(self):
        self.asides += 1
        return False


class Chain:
    def __init__(self):
        self.noted = []

    def close(self):
        self.noted.append("closed")


@pytest.fixture
def engine():
    return Engine()


def calls_of(engine: Any, *, serves=True, chain: Any = None) -> Any:
    return ProducerCalls(engine, chain, Waits(), serves=lambda: serves)


def end(steps):
    """The result of a rule that has nothing left to wait for."""
    with pytest.raises(StopIteration) as ended:
        next(steps)
    return ended.value.value


def test_a_topic_that_is_known_is_not_waited_for(engine):
    engine.accumulators.all["t"] = object()
    assert end(calls_of(engine).topic_answered("t")) is True


def test_a_topic_is_waited_for_until_somebody_says_that_it_is_known(engine):
    calls = calls_of(engine)
    steps = calls.topic_answered("t", 5.0)
    wait = next(steps)
    assert (wait.until, bool(wait.happened()), calls.waits.told) == (5.0, False, 0)
    engine.accumulators.watches[0](None, None)
    assert (bool(wait.happened()), calls.waits.told) == (True, 1)
    assert end(steps) is True


def test_a_topic_that_nobody_answers_for_is_no_error_of_its_own(engine):
    steps = calls_of(engine).topic_answered("t", 5.0)
    next(steps)
    assert end(steps) is False


def test_a_topic_that_brokers_deny_is_waited_for_again_as_long_as_there_is_time(engine):
    steps = calls_of(engine).topic_known("t", time.monotonic() + 60)
    next(steps)
    engine.accumulators.watches[0](UNKNOWN, None)
    assert isinstance(next(steps), Wait)
    with pytest.raises(KafkaException, match="denied"):
        next(steps)  # the time is over, and the brokers' word is the last


def test_who_waits_for_the_brokers_answer_hears_that_there_are_none_and_who_waits_for_the_topic_goes_on(engine):
    unknown = KafkaError(KafkaError._RESOLVE)
    answered, known = calls_of(engine).topic_answered("t"), calls_of(engine).topic_known("t", time.monotonic() + 60)
    next(answered)
    next(known)
    for watch in list(engine.accumulators.watches):
        watch(unknown, None)
    with pytest.raises(KafkaException) as caught:
        next(answered)
    assert caught.value.error == KafkaError._RESOLVE
    assert isinstance(next(known), Wait)


def test_a_topic_that_may_not_be_used_is_not_waited_for_again(engine):
    steps = calls_of(engine).topic_known("t", time.monotonic() + 60)
    next(steps)
    engine.accumulators.watches[0](KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), None)
    with pytest.raises(KafkaException) as refused:
        next(steps)
    assert refused.value.error == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_record_for_which_there_is_room_is_appended_at_once():
    engine = Engine(room=1)
    assert calls_of(engine).append(RECORD, None) == ()
    assert engine.appended == [(*RECORD, None)]


@pytest.mark.parametrize(("under_way", "asides"), [(0, 1), (FEW_MESSAGES - 1, 1), (FEW_MESSAGES, 0)])
def test_the_loop_goes_first_while_few_records_are_under_way(under_way, asides):
    engine = Engine(room=FEW_MESSAGES + 1)
    engine.buffer_pool.take(under_way, 0)
    calls = calls_of(engine)
    calls.append(RECORD, None)
    assert calls.waits.asides == asides


def test_a_record_is_tried_again_whenever_there_may_be_room():
    engine = Engine(room=1)
    calls = calls_of(engine)
    calls.append(RECORD, None)
    steps = calls.append(RECORD, None)
    wait = next(steps)
    assert not wait.happened()
    engine.deliver()
    assert wait.happened()
    wait = next(steps)  # another was faster
    assert not wait.happened()
    engine.room = 2
    assert end(steps) is None
    assert len(engine.appended) == 2


def test_who_waits_for_room_hears_that_the_producer_was_closed(engine):
    steps = calls_of(engine).append(RECORD, None)
    wait = next(steps)
    engine.closed = True
    assert wait.happened()
    with pytest.raises(ClientClosedError):
        next(steps)


def test_a_callback_may_go_on_waiting_for_room_while_the_producer_is_closed(engine):
    engine.deliveries.here = True
    wait = next(calls_of(engine).append(RECORD, None))
    engine.closed = True
    assert not wait.happened()


def test_there_is_no_room_in_time_and_the_error_says_how_long_that_was(engine):
    steps = calls_of(engine).append(RECORD, None, time.monotonic() + 0.3)
    next(steps)
    time.sleep(0.35)
    with pytest.raises(BufferFullError, match=r"no room in 0\.\d s"):
        next(steps)


def test_where_nobody_may_wait_a_full_buffer_is_a_plain_error(engine):
    calls = calls_of(engine)
    for until in (0.0, -1.0):
        with pytest.raises(BufferFullError, match="call poll"):
            calls.append(RECORD, None, until)
    calls.waits.waits_here = False
    with pytest.raises(BufferFullError, match="call poll"):
        calls.append(RECORD, None)


def test_whom_others_serve_is_not_told_to_poll(engine):
    with pytest.raises(BufferFullError, match=r"no room in 0\.0 s"):
        next(calls_of(engine, serves=False).append(RECORD, None, 0.0))


def test_rows_are_appended_in_part_and_reports_are_served_while_there_is_no_room(engine):
    appended = iter([0, 3])
    steps = calls_of(engine).append_rows(lambda: next(appended), time.monotonic() + 60)
    wait = next(steps)
    assert engine.noted == ["woken", "relieved"]
    engine.deliveries.pending = True
    assert wait.happened()
    assert end(steps) == 3
    assert (engine.deliveries.served, engine.noted[-1]) == (1, "woken")


def test_rows_before_one_that_is_refused_are_sent(engine):
    def append():
        raise ValueError("timestamp")

    with pytest.raises(ValueError, match="timestamp"):
        next(calls_of(engine).append_rows(append, time.monotonic() + 60))
    assert engine.noted == ["woken"]


def flush_of_a_record():
    """An engine with one record under way, a flush that has begun, and what it waits for."""
    engine = Engine(room=1)
    calls = calls_of(engine)
    calls.append(RECORD, None)
    steps = calls.flush(time.monotonic() + 60)
    return engine, steps, next(steps)


def test_flush_serves_reports_until_nothing_is_under_way():
    engine, steps, wait = flush_of_a_record()
    assert not wait.happened()
    assert len(engine.flushes) == 1
    engine.deliver()
    engine.deliveries.pending = True
    assert wait.happened()
    assert end(steps) == 0
    assert (engine.deliveries.served, engine.noted, engine.flushes) == (1, ["woken"], {})


def test_flush_wakes_the_loop_for_what_this_thread_could_not_send_and_for_what_lingers_again():
    engine = Engine(room=1)
    engine.accumulators.open_batches.send_open = lambda: True
    calls = calls_of(engine)
    calls.append(RECORD, None)
    steps = calls.flush(time.monotonic() + 60)
    next(steps)
    assert engine.noted == []
    steps.close()
    assert engine.noted == ["woken"]
    engine.deliver()
    assert end(calls.flush(time.monotonic() + 60)) == 0
    assert engine.noted == ["woken"]


def test_flush_waits_for_futures_of_records_that_count_no_more():
    engine, steps, wait = flush_of_a_record()
    engine.deliveries.settling = True
    engine.deliver()
    assert not wait.happened()
    engine.deliveries.settling = False
    assert wait.happened()
    assert end(steps) == 0


def test_flush_waits_for_others_who_serve(engine):
    engine.deliveries.callers = 1
    steps = calls_of(engine, serves=False).flush(time.monotonic() + 60)
    wait = next(steps)
    assert not wait.happened()
    engine.deliveries.callers = 0
    assert wait.happened()
    assert end(steps) == 0


def test_an_interrupted_flush_has_ended():
    engine = Engine(room=1)
    calls = calls_of(engine)
    calls.append(RECORD, None)
    steps = calls.flush(time.monotonic() + 60)
    next(steps)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    assert (engine.noted, engine.flushes) == (["woken", "woken"], {})


def run_coroutine(work):
    with pytest.raises(StopIteration):
        work.send(None)


def test_an_interrupted_close_gives_up_the_rest_and_closes_everything():
    engine, chain = Engine(room=1), Chain()
    calls = calls_of(engine)
    calls.append(RECORD, None)
    calls.intercepted.chain = chain
    steps = calls.close(spare_callbacks=True)
    assert isinstance(next(steps), Wait)
    assert (engine.noted, calls.waits.told) == (["refused", "woken"], 1)
    run_coroutine(steps.throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        steps.send(None)
    assert (engine.noted[2:], chain.noted) == (["woken", "closed"], ["closed"])


def test_close_waits_for_callbacks_that_run_elsewhere_and_for_what_they_produce():
    engine = Engine(room=1)
    calls = calls_of(engine)
    engine.deliveries.callers = 1
    steps = calls.close(spare_callbacks=True)
    wait = next(steps)
    assert not wait.happened()
    engine.closed = False
    calls.append(RECORD, None)
    engine.deliveries.callers = 0
    assert wait.happened()
    wait = next(steps)  # for the record of the callback
    engine.deliver()
    assert wait.happened()
    run_coroutine(next(steps))
    assert end(steps) is None


def test_a_call_of_transactions_needs_a_transactional_id(engine):
    calls = calls_of(engine)
    offsets = calls.send_offsets_to_transaction([], ConsumerGroupMetadata("g"), 1)
    for call in (calls.init_transactions(1), calls.begin_transaction(), offsets, calls.commit_transaction(1),
                 calls.abort_transaction(1)):
        with pytest.raises(KafkaException, match=r"transactional\.id"):
            next(call)


@pytest.mark.parametrize(("positions", "member", "says"), [
    ([], "g", "group_metadata must be what consumer_group_metadata"),
    (TopicPartition("in", 0, 5), ConsumerGroupMetadata("g"), "positions"),
    ([5], ConsumerGroupMetadata("g"), "positions"),
])
def test_a_call_of_transactions_names_an_argument_that_is_wrong_whatever_the_state(engine, positions, member, says):
    with pytest.raises(TypeError, match=says):
        next(calls_of(engine).send_offsets_to_transaction(positions, member, 1))


class Transactions:
    """What rules need of `TransactionCalls`."""

    can_abort = True
    operation = Operation

    def __init__(self):
        self.noted = []

    async def run(self, operation, timeout_s):
        self.noted.append(operation.value)

    async def not_delivered(self, operation):
        self.noted.append(f"{operation.value} not heard")

    def stop_taking(self):
        self.noted.append("stopped")

    def late(self, call):
        return KafkaError(KafkaError._TIMED_OUT, call)


def test_a_commit_stops_flushes_and_commits(engine):
    engine.transactions = Transactions()
    steps = calls_of(engine).commit_transaction(1)
    run_coroutine(next(steps))
    assert end(steps) is None
    assert (engine.transactions.noted, engine.noted) == (["stopped", "commit_transaction"], ["woken"])


def test_a_commit_that_cannot_flush_in_time_is_late():
    engine = Engine(room=1)
    engine.transactions, calls = Transactions(), calls_of(engine)
    calls.append(RECORD, None)
    with pytest.raises(KafkaException, match="commit_transaction"):
        next(calls.commit_transaction(0))


def test_who_is_interrupted_just_then_has_not_heard_of_the_end(engine):
    engine.transactions = Transactions()
    steps = calls_of(engine).abort_transaction(1)
    run_coroutine(next(steps))
    run_coroutine(steps.throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        steps.send(None)
    assert engine.transactions.noted == ["abort_transaction", "abort_transaction not heard"]


def test_what_a_failed_call_says_was_heard(engine):
    engine.transactions = Transactions()
    steps = calls_of(engine).init_transactions(1)
    next(steps).close()
    with pytest.raises(KafkaException):
        steps.throw(KafkaException(UNKNOWN))
    assert engine.transactions.noted == []
