"""A batch that is alone goes the short way, with the same request; and the general way where anything is unusual."""

import math
from types import SimpleNamespace
from uuid import UUID

import pytest

from headrace.buffers import OpenBatches
from headrace.errors import KafkaError
from headrace.machines.cluster.in_flight import ClientRequest, InFlightRequests
from headrace.machines.machine import Send
from headrace.machines.producer.batch_queue import BatchQueues, PartitionQueue
from headrace.machines.producer.lone_batch import BrokerLoad, Lend, LoneBatches
from headrace.machines.producer.sender import Limits, Sender
from headrace.machines.producer.sequences import MAX_EPOCH, Sequences
from headrace.records import BatchBuilder
from headrace.wire.frame import encode_response
from headrace.wire.messages.producer.produce import (
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

FIRST_ID, OTHER_ID = UUID(int=5), UUID(int=6)


class Producer:
    """A sender that has already sent and heard of one batch of partition 0, and what surrounds it."""

    def __init__(self, *, linger_s=0.0, message_timeout_s=300.0, codec=0, idempotent=True, lends=False, **limits):
        self.now, self.updates, self.leads, self.id = 10.0, 1, 1, FIRST_ID
        self.last_error = None
        self.opened, self.waiting_until = [], None
        self.large = False
        self.rings, self.sends_directly, self.asked_to_send = False, True, []
        self.accumulator = BatchQueues(self, linger_s, message_timeout_s, codec)
        self.sequences = Sequences(idempotent, 30.0, lambda attempt: 0.1)
        self.sender = Sender(self.accumulator, self.sequences, self, Limits(**limits), lambda attempt: 0.1,
                             lends=lends)
        for send in list(self.sender.poll(self.now)):
            self.sender.on_reply(send, InitProducerIdResponse(producer_id=9, producer_epoch=0), self.now)
        self.answer(*self.send())
        self.sender.deadline()

    # What surrounds the sender

    def ready(self, opened_before, held):
        taken, self.opened = self.opened, []
        return taken

    def next_deadline(self, linger_s, held):
        return self.waiting_until

    def send_lone(self, opened_before):
        self.asked_to_send.append(opened_before)
        return self.sends_directly and bool(self.opened) and bool(self.opened.pop())

    def leader(self, topic, partition):
        return self.leads, 0

    def topic_id(self, topic):
        return self.id

    def refresh(self, now):
        pass

    # What happens

    def add(self, partition=0, size_bytes=74):
        builder = BatchBuilder(1000, 1000)
        builder.append(1, None, b"value")
        size_bytes += 8192 * self.large
        self.opened.append(SimpleNamespace(
            topic="t", partition=partition, opened_at=self.now, count=1, size_bytes=size_bytes,
            seal=lambda codec=0, level=-1: builder.seal()))

    def send(self, partition=0):
        self.add(partition)
        return self.sender.poll(self.now)

    def answer(self, send):
        if send.expects_reply:
            self.store(send)
        else:
            self.sender.on_reply(send, None, self.now)

    def store(self, send, **said):
        """The usual reply, as a connection hands it over."""
        (batch,) = send.context
        answer = PartitionProduceResponse(index=batch.queue.partition, **{"base_offset": 4, **said})
        reply = ProduceResponse(responses=[
            TopicProduceResponse(name="t", topic_id=self.id, partition_responses=[answer])])
        send.version = 13
        pipeline = InFlightRequests("c")
        pipeline.push(ClientRequest(self.sender, send, math.inf))
        frame = b"".join(encode_response(reply, send.version, 0))[4:]
        _, read = pipeline.take(frame)
        self.sender.on_reply(send, read, self.now)
        return read


def is_short(sends):
    (send,) = sends
    return send.template is not None


def written(send):
    """The frame, and what the codec makes of the same message."""
    send.version = 13
    ours, codec = InFlightRequests("c"), InFlightRequests("c")
    parts = ours.push(ClientRequest(None, send, math.inf))
    template, send.template = send.template, None
    general = codec.push(ClientRequest(None, send, math.inf))
    send.template = template
    return b"".join(parts), b"".join(general)


def test_the_first_batch_of_a_partition_goes_the_general_way_and_those_behind_it_the_short_one():
    producer = Producer()
    assert is_short(producer.send())
    assert not is_short(producer.send(partition=1))


def test_a_request_is_the_one_of_the_general_way():
    producer = Producer()
    (send,) = producer.send()
    frame, general = written(send)
    assert send.template is not None
    assert frame == general
    assert (send.destination, send.timeout_s, send.most_s, send.expects_reply) == (1, 32.0, 300.0, True)


def test_numbers_go_on_from_one_way_to_the_other():
    producer, numbers = Producer(), []
    for short in (True, True, False, True):
        if not short:
            producer.updates += 1
            producer.id = OTHER_ID
        (send,) = producer.send()
        assert is_short([send]) is short
        numbers.append(send.context[0].sequence)
        producer.store(send)
    assert numbers == [1, 2, 3, 4]


def test_a_report_says_where_the_record_is_and_when_it_was_appended():
    producer = Producer()
    producer.sender.events()
    (send,) = producer.send()
    read = producer.store(send, base_offset=77, log_append_time_ms=5)
    assert read is send.template.reply.reply
    (done,) = producer.sender.events()
    assert (done.error, done.base_offset, done.timestamp_type, done.timestamp_ms) == (None, 77, 2, 5)
    assert done.batch.queue.last_offset == 77
    assert not done.batch.queue.in_flight


def test_an_error_is_read_by_the_codec_and_the_batch_sent_again_the_general_way():
    producer = Producer()
    producer.sender.events()
    (send,) = producer.send()
    producer.store(send, error_code=KafkaError.NOT_ENOUGH_REPLICAS, base_offset=-1)
    assert producer.sender.events() == []
    producer.now += 1
    (again,) = producer.sender.poll(producer.now)
    assert again.template is None
    assert again.context[0] is send.context[0]


def test_a_lost_connection_is_a_retry_as_on_the_general_way():
    producer = Producer()
    (send,) = producer.send()
    producer.sender.on_error(send, KafkaError(KafkaError._TRANSPORT, "lost", maybe_applied=True), producer.now)
    producer.now += 1
    (again,) = producer.sender.poll(producer.now)
    assert (again.template, again.context[0].attempts, again.context[0].maybe_stored) == (None, 2, True)


@pytest.mark.parametrize("is_stored", [True, False])
def test_the_records_of_a_batch_are_let_go_when_its_request_has_ended(is_stored):
    producer = Producer()
    (send,) = producer.send()
    (data,) = send.request.topic_data[0].partition_data
    assert data.records is not None
    if is_stored:
        producer.store(send)
    else:
        producer.sender.on_error(send, KafkaError(KafkaError._TRANSPORT, "lost", maybe_applied=True), producer.now)
    assert data.records is None


def second_in_flight(producer):
    producer.send()


def two_are_ready(producer):
    producer.add(partition=0)


def throttled(producer):
    (send,) = producer.send()
    reply = ProduceResponse(throttle_time_ms=1000, responses=[TopicProduceResponse(
        name="t", topic_id=FIRST_ID, partition_responses=[PartitionProduceResponse(index=0)])])
    producer.sender.on_reply(send, reply, producer.now)


def no_leader(producer):
    producer.leads, producer.updates = None, 2


def closing(producer):
    producer.accumulator.queue("t", 0).partition_sequence.needs_epoch_bump = True


def late(producer):
    producer.accumulator.queue("t", 0).retry_at = producer.now + 1


def epochs_are_used_up(producer):
    producer.accumulator.queue("t", 0).partition_sequence.epoch = MAX_EPOCH + 1


def not_sealed(producer):
    producer.accumulator.codec = 4
    producer.large = True


def long_silence(producer):
    producer.now += 100


@pytest.mark.parametrize("happens", [
    second_in_flight, two_are_ready, throttled, no_leader, closing, late, epochs_are_used_up, not_sealed, long_silence])
def test_whatever_is_unusual_goes_the_general_way(happens):
    producer = Producer()
    assert is_short([sent for sent in producer.send() if producer.store(sent)])
    happens(producer)
    assert all(effect.template is None for effect in producer.send() if isinstance(effect, Send))


@pytest.mark.parametrize("config", [{"acks": 0}, {"message_timeout_s": 20.0}])
def test_a_producer_of_another_kind_never_goes_the_short_way(config):
    producer = Producer(idempotent=False, **config)
    for _ in range(3):
        (send,) = producer.send()
        assert send.template is None
        producer.answer(send)


def test_no_more_requests_go_to_a_broker_than_allowed():
    producer = Producer(max_in_flight=1)
    for partition in (0, 1, 1):
        (send,) = producer.send(partition)
        producer.store(send)
    assert is_short(producer.send(0))
    assert producer.send(1) == []


def test_without_idempotence_batches_go_the_short_way_unnumbered():
    producer = Producer(idempotent=False)
    (send,) = producer.send()
    assert is_short([send])
    assert send.context[0].sequence == -1


def test_behind_a_short_way_the_sender_is_asked_neither_for_news_nor_for_a_deadline_unless_it_has_one():
    producer = Producer()
    producer.sender.events()
    producer.store(*producer.send())
    producer.sender.events()
    (send,) = producer.send()
    assert producer.sender.idle
    producer.store(send)
    (send,) = producer.send()  # there is a report to tell of
    assert is_short([send])
    assert not producer.sender.idle
    producer.sender.events()
    producer.waiting_until = producer.now + 5  # an open batch lingers
    producer.sender.deadline()
    producer.store(send)
    producer.sender.events()
    assert is_short(producer.send())
    assert not producer.sender.idle


@pytest.mark.parametrize("rings", [False, True])
def test_where_batches_linger_the_sender_is_asked_for_its_deadline_unless_an_alarm_rings(rings):
    """Another batch may have been opened together with the one that leaves, and nobody wakes the sender for its end."""
    producer = Producer(linger_s=0.005)
    producer.rings = rings
    producer.sender.events()
    (send,) = producer.send()
    assert is_short([send])
    assert producer.sender.idle == rings


def test_a_batch_that_was_purged_in_flight_is_not_reported_again():
    producer = Producer()
    (send,) = producer.send()
    producer.sender.events()
    producer.sender.purge(None, KafkaError(KafkaError._PURGE_INFLIGHT))
    (done,) = producer.sender.events()
    assert done.error == KafkaError._PURGE_INFLIGHT
    producer.store(send)
    assert producer.sender.events() == []


class Way:
    """What a client makes of a `Lend`."""

    def __init__(self, producer, lend):
        self.ended = self.taken_back = 0
        self.lane = lend.lane
        producer.sender.on_lent(lend.lane, self)

    def take_back(self):
        self.taken_back += 1

    def end(self):
        self.ended += 1


def lending(**how):
    """A producer that has just heard of a lone batch, and what its sender says then."""
    producer = Producer(lends=True, **how)
    (send,) = producer.send()
    producer.store(send)
    return producer, list(producer.sender.poll(producer.now))


def lent(**how):
    producer, (lend,) = lending(**how)
    producer.sender.events()
    return producer, Way(producer, lend)


def opened(producer):
    producer.add()
    return producer.opened.pop()


def test_behind_a_lone_batch_its_partition_is_lent_with_the_next_sequence():
    producer, (lend,) = lending()
    assert isinstance(lend, Lend)
    assert (lend.lane.leader, lend.lane.queue.partition, lend.version) == (1, 0, 13)
    assert (lend.producer, lend.most, lend.used_at) == ((9, 0, 2), 5, producer.now)


def test_a_producer_that_is_not_idempotent_lends_without_numbers():
    _, (lend,) = lending(idempotent=False, max_in_flight=1)
    assert (lend.producer, lend.most) == ((-1, -1, -1), 1)


@pytest.mark.parametrize(("size_bytes", "lends"), [(16_384, True), (16_385, False)])
def test_behind_a_batch_that_is_too_large_to_be_sent_directly_nothing_is_lent(size_bytes, lends):
    producer = Producer(lends=True)
    producer.add(size_bytes=size_bytes)
    (send,) = producer.sender.poll(producer.now)
    producer.store(send)
    assert any(isinstance(effect, Lend) for effect in producer.sender.poll(producer.now)) == lends


def test_what_has_lingered_is_sent_directly_where_its_partition_is_lent():
    producer, way = lent(linger_s=0.005)
    assert producer.send() == []
    assert producer.asked_to_send[-1] == producer.now - 0.005
    assert (way.ended, way.taken_back, producer.opened) == (0, 0, [])
    producer.sends_directly = False
    (send,) = producer.send()
    assert (is_short([send]), way.ended) == (True, 1)


def flushes(producer):
    producer.accumulator.flushing = True


def flushes_once(producer):
    producer.accumulator.collect_all_once = True


@pytest.mark.parametrize("happens", [flushes, flushes_once])
def test_who_flushes_has_sent_directly_what_could_be(happens):
    producer, way = lent(linger_s=0.005)
    happens(producer)
    assert len(producer.send()) == 1
    assert (producer.asked_to_send, way.ended) == ([], 1)


def test_what_does_not_linger_is_not_sent_directly_by_the_loop():
    producer, way = lent()
    assert len(producer.send()) == 1
    assert (producer.asked_to_send, way.ended) == ([], 1)


@pytest.mark.parametrize("linger_s", [0.0, 0.005])
def test_what_is_compressed_is_sent_directly_by_the_loop_and_lent_again_while_somebody_flushes(linger_s):
    producer, way = lent(linger_s=linger_s, codec=3)
    assert producer.send() == []
    flushes(producer)
    (send,) = producer.send()
    assert way.ended == 1
    producer.store(send)
    assert [effect for effect in producer.sender.poll(producer.now) if isinstance(effect, Lend)]


@pytest.mark.parametrize("how", [{"message_timeout_s": 20.0}, {"lends": False}])
def test_where_batches_need_the_loop_nothing_is_lent(how):
    producer = Producer(**{"lends": True, **how})
    (send,) = producer.send()
    producer.store(send)
    assert list(producer.sender.poll(producer.now)) == []


@pytest.mark.parametrize("happens", [second_in_flight, throttled, no_leader, closing])
def test_what_has_happened_between_reply_and_poll_keeps_a_partition_from_being_lent(happens):
    producer = Producer(lends=True)
    (send,) = producer.send()
    happens(producer)
    producer.store(send)
    assert not [effect for effect in producer.sender.poll(producer.now) if isinstance(effect, Lend)]


def test_what_is_lent_late_has_the_number_that_is_next_then():
    producer = Producer(lends=True)
    (first,) = producer.send()
    producer.store(first)  # offered
    (second,) = producer.send()  # a thread was faster than the loop
    (third,) = producer.send()
    producer.store(second)  # with the third in flight nothing is offered
    producer.store(third)
    for effect in producer.sender.poll(producer.now):
        assert isinstance(effect, Lend)
        assert effect.producer == (9, 0, 4)


def test_what_is_to_be_sent_is_sent_before_anything_is_lent():
    producer = Producer(lends=True)
    producer.store(*producer.send())
    (send,) = producer.send(partition=1)
    assert send.context[0].queue.partition == 1


def test_behind_a_lone_batch_nothing_is_lent_while_others_wait_and_the_sender_goes_on():
    producer = Producer(lends=True)
    (first,) = producer.send()
    producer.leads, producer.updates = None, 2
    assert producer.send(partition=1) == []
    producer.store(first)
    assert not producer.sender.idle


def test_what_is_sent_directly_counts_before_what_waited_is_sent():
    producer = Producer(lends=True)
    (other,) = producer.send(partition=1)
    (send,) = producer.send()
    producer.sender.on_error(other, KafkaError(KafkaError._TRANSPORT, "lost"), producer.now)
    producer.store(send)
    producer.sender.poll(producer.now)
    way = SimpleNamespace(taken=0, end=lambda: None)
    way.take_back = lambda: setattr(way, "taken", way.taken + 1)
    producer.sender._lone.on_lent(SimpleNamespace(queue=send.context[0].queue, leader=1), way)
    producer.now += 1
    (again,) = producer.sender.poll(producer.now)
    assert (again.context, way.taken) == (other.context, 1)


def test_a_batch_that_was_stored_directly_is_reported_and_the_numbers_go_on_behind_it():
    producer, way = lent()
    producer.sender.on_direct_stored(way.lane, opened(producer), 70, -1)
    producer.sender.on_direct_stored(way.lane, opened(producer), 71, 5)
    first, second = producer.sender.events()
    assert [(done.error, done.base_offset, done.timestamp_type, done.timestamp_ms) for done in (first, second)] == [
        (None, 70, 1, -1), (None, 71, 2, 5)]
    assert way.lane.queue.last_offset == 71
    (send,) = producer.send()
    assert (way.ended, send.context[0].sequence, send.context[0].position) == (1, 4, 4)


def test_the_numbers_go_on_behind_what_was_reported_already():
    producer, way = lent()
    producer.sender.on_direct_reported(way.lane, 3, 70, producer.now)
    assert producer.sender.events() == []
    assert way.lane.queue.last_offset == 72
    producer.sender.on_direct_reported(way.lane, 1, -1, producer.now)  # a duplicate's is not known
    assert way.lane.queue.last_offset == 72
    (send,) = producer.send()
    assert (send.context[0].sequence, send.context[0].position) == (6, 4)


def test_a_batch_that_is_taken_back_is_in_flight_like_any_other():
    producer, way = lent()
    batch = opened(producer)
    sealed = batch.seal()
    send = producer.sender.on_direct_taken_back(way.lane, batch, sealed)
    (taken,) = send.context
    assert (taken.sequence, taken.attempts, taken.sealed, taken.queue.in_flight) == (2, 1, sealed, [taken])
    assert taken.queue.direct is None
    assert producer.sender._lone.lent == {1: {}}
    assert producer.sender._load.requests == {1: 1}
    producer.sender.on_error(send, KafkaError(KafkaError._TRANSPORT, "lost", maybe_applied=True), producer.now)
    producer.now += 1
    (again,) = producer.sender.poll(producer.now)
    assert (again.context, taken.attempts, taken.maybe_stored) == ([taken], 2, True)
    producer.store(again)
    assert [done.batch for done in producer.sender.events()] == [taken]


def test_before_a_batch_is_queued_its_partition_is_no_longer_lent():
    producer, way = lent()
    producer.answer(*producer.send(partition=1))
    assert way.ended == 0
    assert way.taken_back  # the other one goes to the same broker
    before = way.taken_back
    assert is_short(producer.send(partition=1))
    assert way.taken_back > before
    producer.send(partition=0)
    assert way.ended == 1


def other_leader(producer):
    producer.leads, producer.updates = 2, 2
    producer.sender.poll(producer.now)


def purge(producer):
    producer.sender.purge(None, KafkaError(KafkaError._PURGE_INFLIGHT))


def question(producer):
    producer.sender.unresolved()


@pytest.mark.parametrize("happens", [other_leader, purge, question])
def test_what_concerns_all_batches_ends_lending(happens):
    producer, way = lent()
    happens(producer)
    assert way.ended == 1


class LentPartition:
    """A partition that is lent, in a test of who is asked to give back what."""

    def __init__(self, lone, leader, number, asked):
        self.lane = SimpleNamespace(queue=PartitionQueue("t", number), leader=leader)
        self.name, self.asked = number, asked
        lone.on_lent(self.lane, self)

    def take_back(self):
        self.asked.append(self.name)

    def end(self):
        self.asked.append(f"end {self.name}")


def test_of_a_thousand_partitions_at_one_leader_one_gives_the_connection_back():
    asked, sequences = [], Sequences(True, 30.0, lambda attempt: 0.1)
    lone = LoneBatches(BatchQueues(OpenBatches(), 0.0, 300.0), sequences, Producer(), BrokerLoad(), acks=-1,
                       max_in_flight=5, request_timeout_s=30.0, reply_timeout_s=32.0, lends=True)
    ways = [LentPartition(lone, number % 2, number, asked) for number in range(1000)]
    lone.take_back()
    assert asked == [0, 1]
    asked.clear()
    for way in (ways[0], ways[2], ways[1]):
        way.lane.queue.end_direct()
    asked.clear()
    lone.take_back()
    assert asked == [4, 3], "those whose way has ended have nothing to give back"
    asked.clear()
    lone.end_lending()
    assert len(asked) == 997
    asked.clear()
    lone.take_back()
    assert asked == []
