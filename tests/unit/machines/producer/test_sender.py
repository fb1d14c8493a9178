"""The sender drains by leader, within its limits, and reacts to every answer as the table says."""

import math
from types import SimpleNamespace
from uuid import UUID

import pytest

from headrace.errors import KafkaError
from headrace.machines.backoff import Pauses
from headrace.machines.machine import Send
from headrace.machines.producer.batch_queue import BatchQueues, BatchState
from headrace.machines.producer.error_actions import ERROR_ACTIONS, ErrorAction, error_action
from headrace.machines.producer.sender import BatchDone, Limits, ProducerFailed, Sender
from headrace.machines.producer.sequences import Sequences
from headrace.wire.messages.producer.produce import (
    BatchIndexAndErrorMessage,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceLeaderIdAndEpoch,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

TOPIC_ID = UUID(int=5)


class Sealed:
    def __init__(self, size_bytes):
        self.size_bytes = size_bytes
        self.data = b"x" * size_bytes
        self.stamped = None

    def stamp(self, producer_id, epoch, base_sequence, transactional=False):
        self.stamped = (producer_id, epoch, base_sequence)


class Cluster:
    """Buffer, leaders and driver of one sender: what surrounds it in a test."""

    def __init__(self, idempotent=False, topic_id=TOPIC_ID, codec=0, **limits):
        self.leaders = {}
        self.last_error = None
        self.known_id = topic_id
        self.refreshed = 0
        self.opened = []
        self.now = 10.0
        timeout_s = limits.get("message_timeout_s", 300.0)
        self.batch_queues = BatchQueues(self, 0.0, timeout_s, codec, 3, at_once_bytes=0)
        sequences = Sequences(idempotent, 30.0, lambda attempt: 0.1)
        limits = Limits(**{"max_in_flight": 5, **limits})
        self.sender = Sender(self.batch_queues, sequences, self, limits, lambda attempt: 0.1)
        if idempotent:
            (ask,) = self.sender.poll(self.now)
            self.sender.on_reply(ask, InitProducerIdResponse(producer_id=9, producer_epoch=0), self.now)

    def add(self, partition=0, size_bytes=100, count=1):
        self.opened.append(
            SimpleNamespace(topic="t", partition=partition, opened_at=self.now, count=count, size_bytes=size_bytes,
                            seal=lambda codec=0, level=-1: Sealed(size_bytes))
        )
        self.leaders.setdefault(partition, 1)

    def ready(self, opened_before, held):
        taken, self.opened = self.opened, []
        return taken

    def next_deadline(self, linger_s, held):
        return None

    @property
    def updates(self):
        return hash((tuple(self.leaders.items()), self.known_id))

    def leader(self, topic, partition):
        return self.leaders.get(partition), 0

    def topic_id(self, topic):
        return self.known_id

    def refresh(self, now):
        self.refreshed += 1

    def missing(self, topic, partition):
        return None if partition in self.leaders else KafkaError(KafkaError._UNKNOWN_PARTITION, f"no {partition}")

    def update_leader(self, topic, partition, leader_id, leader_epoch, endpoints=()):
        news = self.leaders[partition] != leader_id
        self.leaders[partition] = leader_id
        return news

    def poll(self):
        return [send for send in self.sender.poll(self.now)
                if isinstance(send, Send) and isinstance(send.request, ProduceRequest)]

    def answer(self, send, code=0, *, throttle_ms=0, **fields):
        responses = [
            PartitionProduceResponse(index=b.queue.partition, error_code=code, **fields) for b in send.context
        ]
        topics = [TopicProduceResponse(name="t", topic_id=TOPIC_ID, partition_responses=responses)]
        self.sender.on_reply(send, ProduceResponse(responses=topics, throttle_time_ms=throttle_ms), self.now)

    def reports(self):
        return [event for event in self.sender.events() if isinstance(event, BatchDone)]


def partitions(send):
    return [data.index for topic in send.request.topic_data for data in topic.partition_data]


def test_batches_for_one_leader_share_a_request_one_per_partition():
    cluster = Cluster()
    for partition in (0, 1, 0):
        cluster.add(partition)
    first, second = cluster.poll()
    assert partitions(first) == [0, 1]
    assert partitions(second) == [0]


def test_each_leader_gets_its_own_request():
    cluster = Cluster()
    cluster.leaders = {0: 1, 1: 2}
    cluster.add(0)
    cluster.add(1)
    assert [send.destination for send in cluster.poll()] == [1, 2]


def test_a_request_is_no_larger_than_allowed():
    cluster = Cluster(max_request_bytes=2000)
    for partition in range(3):
        cluster.add(partition, size_bytes=700)
    assert [partitions(send) for send in cluster.poll()] == [[0, 1], [2]]


def test_a_batch_larger_than_a_request_goes_alone():
    cluster = Cluster(max_request_bytes=1000)
    cluster.add(size_bytes=5000)
    assert len(cluster.poll()) == 1


def test_no_more_requests_than_allowed_are_in_flight_for_a_broker():
    cluster = Cluster(max_in_flight=2)
    for _ in range(4):
        cluster.add()
    sends = cluster.poll()
    assert len(sends) == 2
    cluster.answer(sends[0])
    assert len(cluster.poll()) == 1


def test_requests_for_several_partitions_count_for_their_broker():
    cluster = Cluster(max_in_flight=2, max_request_bytes=1000)
    for partition in range(3):
        cluster.add(partition, size_bytes=700)
    first, second = cluster.poll()
    assert cluster.poll() == []
    cluster.answer(first)
    (third,) = cluster.poll()
    assert [partitions(send) for send in (first, second, third)] == [[0], [1], [2]]


def test_without_a_leader_metadata_is_asked_for():
    cluster = Cluster()
    cluster.add()
    cluster.leaders = {}
    assert cluster.poll() == []
    assert cluster.refreshed == 1


def test_topic_names_are_used_while_the_topic_id_is_not_known():
    cluster = Cluster(topic_id=UUID(int=0))
    cluster.add()
    (send,) = cluster.poll()
    assert send.max_version == 12


def test_a_stored_batch_is_reported_with_its_offset():
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, base_offset=42)
    (done,) = cluster.reports()
    assert (done.error, done.base_offset, done.timestamp_type) == (None, 42, 1)


def test_the_brokers_append_time_is_reported():
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, base_offset=42, log_append_time_ms=1_700_000_000_000)
    (done,) = cluster.reports()
    assert (done.timestamp_type, done.timestamp_ms) == (2, 1_700_000_000_000)


def test_without_acknowledgements_a_written_request_is_success():
    cluster = Cluster(acks=0)
    cluster.add()
    (send,) = cluster.poll()
    assert not send.expects_reply
    cluster.sender.on_reply(send, None, cluster.now)
    (done,) = cluster.reports()
    assert (done.error, done.base_offset) == (None, -1)


@pytest.mark.parametrize("code", [c for c, action in ERROR_ACTIONS.items()
                                  if action in (ErrorAction.RETRY, ErrorAction.REJECTED)])
def test_a_passing_error_is_retried_after_the_backoff(code):
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, code)
    assert cluster.reports() == []
    assert cluster.poll() == []
    cluster.now += 0.1
    assert len(cluster.poll()) == 1
    assert send.context[0].maybe_stored == (ERROR_ACTIONS[code] is ErrorAction.RETRY)


@pytest.mark.parametrize("code", [code for code, action in ERROR_ACTIONS.items() if action is ErrorAction.MOVED])
def test_a_moved_leader_is_looked_up_before_the_retry(code):
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, code)
    assert cluster.refreshed == 1
    cluster.leaders[0] = 3
    cluster.now += 0.1
    assert [retry.destination for retry in cluster.poll()] == [3]


@pytest.mark.parametrize("broker", [0, 2])
def test_a_hint_at_the_new_leader_is_followed_at_once(broker):
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    hint = ProduceLeaderIdAndEpoch(leader_id=broker, leader_epoch=8)
    cluster.answer(send, KafkaError.NOT_LEADER_FOR_PARTITION, current_leader=hint)
    assert [retry.destination for retry in cluster.poll()] == [broker]
    assert cluster.refreshed == 0


def test_a_hint_that_is_no_news_is_not_believed_but_looked_up():
    # A topic was deleted and made again: the new one's leader has the epoch that the old one's had, and brokers before
    # topic ids name it in vain; the producer asked the old leader again and again.
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, KafkaError.NOT_LEADER_FOR_PARTITION, current_leader=ProduceLeaderIdAndEpoch(leader_id=1))
    assert cluster.refreshed == 1
    assert cluster.poll() == []
    cluster.leaders[0] = 3
    cluster.now += 0.1
    assert [retry.destination for retry in cluster.poll()] == [3]


@pytest.mark.parametrize("idempotent", [False, True])
def test_what_waits_for_a_partition_that_a_topic_made_anew_does_not_have_is_given_up(idempotent):
    cluster = Cluster(idempotent)
    cluster.add(partition=1)
    [first] = cluster.poll()
    cluster.add(partition=1)
    del cluster.leaders[1]
    assert cluster.poll() == []
    cluster.answer(first, KafkaError.UNKNOWN_TOPIC_ID)
    cluster.now += 1.0
    assert cluster.poll() == []
    assert cluster.sender.events() == []  # a broker may lag behind: it is still the same topic
    cluster.known_id = UUID(int=0)
    assert cluster.poll() == []
    assert cluster.sender.events() == []  # nobody says that it will not come back
    cluster.known_id = UUID(int=6)
    assert cluster.poll() == []
    assert [done.error.code() for done in cluster.sender.events()] == [KafkaError._UNKNOWN_PARTITION] * 2
    assert not cluster.sender.unresolved()


def test_a_hint_at_the_leader_of_a_topic_that_was_made_anew_meanwhile_is_not_followed():
    # Found by simulation: its epoch is higher than those of the new topic, whose leaders were never believed again.
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    send.request.topic_data[0].topic_id = UUID(int=4)  # when it was sent
    hint = ProduceLeaderIdAndEpoch(leader_id=4, leader_epoch=8)
    responses = [PartitionProduceResponse(
        index=0, error_code=KafkaError.NOT_LEADER_FOR_PARTITION, current_leader=hint)]
    topics = [TopicProduceResponse(topic_id=UUID(int=4), partition_responses=responses)]
    cluster.sender.on_reply(send, ProduceResponse(responses=topics), cluster.now)
    assert cluster.leaders == {0: 1}
    assert cluster.refreshed == 1


@pytest.mark.parametrize("code", [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.TOPIC_AUTHORIZATION_FAILED,
                                  KafkaError.INVALID_RECORD, KafkaError.UNKNOWN])
def test_an_error_that_no_retry_cures_is_reported(code):
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, code, error_message="too big")
    (done,) = cluster.reports()
    assert done.error == code
    assert done.error.str() == "t[0]: too big"


def test_a_record_that_the_broker_names_has_its_own_error():
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    bad = [BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="no key")]
    cluster.answer(send, KafkaError.INVALID_RECORD, error_message="rejected", record_errors=bad)
    (done,) = cluster.reports()
    assert done.error.str() == "t[0]: no key"


def test_a_duplicate_counts_as_stored():
    cluster = Cluster(idempotent=True)
    cluster.add(count=3)
    (send,) = cluster.poll()
    cluster.answer(send, base_offset=70)
    cluster.reports()
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, KafkaError.DUPLICATE_SEQUENCE_NUMBER)
    (done,) = cluster.reports()
    assert (done.error, done.base_offset) == (None, -1)
    assert send.context[0].queue.last_offset == 72  # as far as is known


def test_a_refused_number_begins_the_next_epoch():
    cluster = Cluster(idempotent=True)
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    cluster.now += 0.1
    (retry,) = cluster.poll()
    assert retry.context[0].sealed.stamped == (9, 1, 0)


def test_a_refused_number_of_a_batch_that_may_be_stored_is_reported_as_such():
    cluster = Cluster(idempotent=True)
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, KafkaError.REQUEST_TIMED_OUT)
    cluster.now += 0.1
    (retry,) = cluster.poll()
    cluster.answer(retry, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (done,) = cluster.reports()
    assert done.error == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert done.error.maybe_applied


def test_a_producer_that_is_not_authorised_fails_as_a_whole():
    cluster = Cluster(idempotent=True)
    cluster.add(0)
    cluster.add(0)
    (send,) = cluster.poll()
    cluster.answer(send, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    events = cluster.sender.events()
    assert [type(event) for event in events] == [ProducerFailed, BatchDone, BatchDone]  # whoever hears of one knows it
    assert events[0].error.fatal()
    cluster.add(0)
    assert cluster.poll() == []
    assert [done.error for done in cluster.reports()] == [KafkaError.CLUSTER_AUTHORIZATION_FAILED]


def test_a_producer_that_failed_while_it_needed_a_producer_id_waits_for_nothing():
    # Found by simulation: its deadline was the moment to ask for the id, which never came, and the loop spun.
    cluster = Cluster(idempotent=True)
    cluster.sender.fail_on(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))
    cluster.sender._sequences._producer_id = -1  # its epochs are used up
    assert cluster.poll() == []
    assert cluster.sender.deadline() is None


def test_the_first_failure_is_the_one_that_a_producer_fails_with():
    cluster = Cluster()
    cluster.sender.fail_on(None)
    assert cluster.sender.failed is None
    for code in (KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.PRODUCER_FENCED):
        cluster.sender.fail_on(KafkaError(code))
    (failed,) = cluster.sender.events()
    assert failed.error == cluster.sender.failed == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def without_an_id(**limits):
    """A cluster whose sender has just asked for a producer id, and that request."""
    cluster = Cluster(**limits)
    cluster.sender._sequences = Sequences(True, 30.0, lambda attempt: 0.1)
    cluster.add()
    (ask,) = cluster.sender.poll(cluster.now)
    return cluster, ask


@pytest.mark.parametrize(("message_timeout_s", "polled_after_s"), [(300.0, 0.1), (0.05, 0.05)])
def test_a_producer_id_that_no_broker_has_given_is_asked_for_again(message_timeout_s, polled_after_s):
    cluster, ask = without_an_id(message_timeout_s=message_timeout_s)
    cluster.sender.on_error(ask, KafkaError(KafkaError._TRANSPORT, "no frame"), cluster.now)
    assert cluster.sender.deadline() == pytest.approx(cluster.now + polled_after_s)
    (again,) = cluster.sender.poll(cluster.now + 0.1)
    assert again.request == ask.request


@pytest.mark.parametrize("let_in", [False, True])
def test_records_that_wait_for_a_producer_id_wait_for_brokers_that_have_let_us_in_before_and_for_no_others(let_in):
    cluster, ask = without_an_id()
    cluster.sender.was_let_in = let_in
    refusal = KafkaError(KafkaError._AUTHENTICATION, "who are you?")
    cluster.sender.on_error(ask, refusal, cluster.now)
    assert [done.error for done in cluster.reports()] == ([] if let_in else [refusal])
    assert cluster.sender.failed is None


def test_a_producer_id_that_no_broker_will_give_ends_the_producer():
    cluster, ask = without_an_id()
    cluster.sender.on_error(ask, KafkaError(KafkaError._UNSUPPORTED_FEATURE), cluster.now)
    assert cluster.sender.failed.fatal()
    assert [done.error for done in cluster.reports()] == [KafkaError._UNSUPPORTED_FEATURE]


def test_a_lost_connection_is_retried_and_the_leader_looked_up():
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.on_error(send, KafkaError(KafkaError._TRANSPORT, "cut", maybe_applied=True), cluster.now)
    assert cluster.refreshed == 1
    assert send.context[0].maybe_stored
    cluster.now += 0.1
    assert len(cluster.poll()) == 1


def test_a_failure_that_no_new_connection_cures_is_reported():
    cluster = Cluster()
    cluster.sender.was_let_in = True  # a broker of the cluster may be older than the others
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.on_error(send, KafkaError(KafkaError._UNSUPPORTED_FEATURE, "too old"), cluster.now)
    assert [done.error for done in cluster.reports()] == [KafkaError._UNSUPPORTED_FEATURE]


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError._SSL])
def test_records_wait_for_a_leader_that_refuses_whom_it_has_let_in_before_and_for_no_other(code):
    cluster = Cluster()
    refusal = KafkaError(code, "who are you?")
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.on_error(send, refusal, cluster.now)
    assert [done.error for done in cluster.reports()] == [refusal]
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send)
    assert [done.error for done in cluster.reports()] == [None]
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.on_error(send, refusal, cluster.now)
    assert cluster.reports() == []
    cluster.now += 1
    (send,) = cluster.poll()
    cluster.answer(send)
    assert [done.error for done in cluster.reports()] == [None]


def test_pauses_grow_with_the_attempts():
    cluster, asked = Cluster(), []
    cluster.sender._pauses = Pauses(lambda failures: asked.append(failures) or 0.1)
    cluster.add()
    for _ in range(3):
        (send,) = cluster.poll()
        cluster.answer(send, KafkaError.NOT_ENOUGH_REPLICAS)
        cluster.now += 0.1
    assert asked == [0, 1, 2]


@pytest.mark.parametrize(("message_timeout_s", "polled_after_s"), [(300.0, 0.1), (0.05, 0.05)])
def test_a_retry_is_due_behind_its_pause_or_given_up_when_its_time_is_over(message_timeout_s, polled_after_s):
    cluster = Cluster(message_timeout_s=message_timeout_s)
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, KafkaError.NOT_ENOUGH_REPLICAS)
    assert cluster.sender.deadline() == pytest.approx(cluster.now + polled_after_s)


def test_retries_end_with_the_setting():
    cluster = Cluster(retries=1)
    cluster.add()
    for _ in range(2):
        (send,) = cluster.poll()
        cluster.answer(send, KafkaError.NOT_ENOUGH_REPLICAS)
        cluster.now += 0.1
    assert [done.error for done in cluster.reports()] == [KafkaError.NOT_ENOUGH_REPLICAS]


def test_retries_end_with_the_time_and_the_report_names_the_last_error():
    cluster = Cluster(message_timeout_s=1.0)
    cluster.add()
    (send,) = cluster.poll()
    assert (send.timeout_s, send.most_s) == (1.0, 1.0)
    cluster.answer(send, KafkaError.NOT_ENOUGH_REPLICAS, error_message="2 of 3")
    cluster.now += 1.0
    assert cluster.poll() == []
    (done,) = cluster.reports()
    assert done.error == KafkaError._MSG_TIMED_OUT
    assert "message.timeout.ms" in done.error.str()
    assert "2 of 3" in done.error.str()


def test_the_report_names_what_failed_in_front_of_a_last_attempt_for_which_no_time_was_left():
    cluster = Cluster(message_timeout_s=1.0)
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.on_error(send, KafkaError(KafkaError._TRANSPORT, "no frame"), cluster.now)
    cluster.now += 0.99
    (send,) = cluster.poll()
    cluster.now += 0.01
    cluster.sender.on_error(send, KafkaError(KafkaError._TIMED_OUT, "not answered within 0.01 s"), cluster.now)
    (done,) = cluster.reports()
    assert done.error == KafkaError._MSG_TIMED_OUT
    assert "not answered within 0.01 s" in done.error.str()
    assert "no frame" in done.error.str()


@pytest.mark.parametrize("idempotent", [False, True])
def test_the_report_of_a_batch_that_was_never_sent_names_what_was_in_its_way(idempotent):
    cluster = Cluster(message_timeout_s=1.0)
    if idempotent:
        cluster.sender._sequences = sequences = Sequences(True, 30.0, lambda attempt: 0.1)
        sequences.on_error(KafkaError(KafkaError._TRANSPORT, "no frame"), cluster.now)
    else:
        cluster.leaders[0] = None
        cluster.last_error = KafkaError(KafkaError._TRANSPORT, "no frame")
    cluster.add()
    assert cluster.poll() == []
    cluster.now += 1.0
    cluster.sender.poll(cluster.now)
    (done,) = cluster.reports()
    assert done.error == KafkaError._MSG_TIMED_OUT
    assert "no frame" in done.error.str()
    assert not done.error.maybe_applied


def test_a_batch_that_waited_behind_one_that_was_refused_names_the_refusal_until_one_is_stored():
    cluster = Cluster(message_timeout_s=1.0, max_in_flight=1)
    cluster.add()
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, KafkaError.NOT_ENOUGH_REPLICAS)
    cluster.now += 1.0
    assert cluster.poll() == []
    errors = [done.error for done in cluster.reports()]
    assert errors == [KafkaError._MSG_TIMED_OUT] * 2
    assert ["NOT_ENOUGH_REPLICAS" in error.str() for error in errors] == [True, True]
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, base_offset=1)
    cluster.leaders[0] = None
    cluster.add()
    assert cluster.poll() == []
    cluster.now += 1.0
    assert cluster.poll() == []
    assert "its leader was not reached" in cluster.reports()[-1].error.str()


def test_a_throttled_broker_gets_nothing_until_its_time_is_over():
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.answer(send, throttle_ms=500)
    cluster.add()
    assert cluster.poll() == []
    assert cluster.sender.deadline() == cluster.now + 0.5
    cluster.now += 0.5
    assert len(cluster.poll()) == 1


def test_purging_reports_what_waits_and_what_is_in_flight_once():
    cluster = Cluster(max_in_flight=1)
    cluster.add()
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.purge(KafkaError(KafkaError._PURGE_QUEUE), KafkaError(KafkaError._PURGE_INFLIGHT))
    cluster.answer(send)
    assert [done.error for done in cluster.reports()] == [KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT]
    assert cluster.poll() == []


def test_a_purged_batch_is_not_sent_again():
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.purge(None, KafkaError(KafkaError._PURGE_INFLIGHT))
    cluster.answer(send, KafkaError.NOT_ENOUGH_REPLICAS)
    cluster.now += 1.0
    assert cluster.poll() == []
    assert len(cluster.reports()) == 1


def test_behind_a_purged_batch_of_unknown_fate_the_next_epoch_begins():
    cluster = Cluster(idempotent=True)
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.purge(None, KafkaError(KafkaError._PURGE_INFLIGHT))
    cluster.sender.on_error(send, KafkaError(KafkaError._TRANSPORT, "cut", maybe_applied=True), cluster.now)
    cluster.add()
    (after,) = cluster.poll()
    assert after.context[0].sealed.stamped == (9, 1, 0)


def test_a_batch_that_was_stored_after_it_was_purged_is_reported_once():
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.purge(None, KafkaError(KafkaError._PURGE_INFLIGHT))
    assert send.context[0].state is BatchState.PURGED
    cluster.answer(send)
    assert send.context[0].state is BatchState.STORED
    assert [done.error for done in cluster.reports()] == [KafkaError._PURGE_INFLIGHT]


def test_a_batch_to_compress_is_asked_for_and_sent_when_it_is_sealed():
    cluster = Cluster(codec=2)
    cluster.add()
    (seal,) = cluster.sender.poll(cluster.now)
    assert (seal.codec, seal.level) == (2, 3)
    assert cluster.poll() == []
    sealed = Sealed(40)
    cluster.sender.on_sealed(seal.batch, sealed)
    (send,) = cluster.poll()
    assert send.request.topic_data[0].partition_data[0].records == sealed.data


def test_a_batch_that_cannot_be_compressed_is_reported_and_those_behind_it_are_sent():
    cluster = Cluster(codec=2)
    cluster.add()
    cluster.add()
    first, second = cluster.sender.poll(cluster.now)
    cluster.sender.on_sealed(second.batch, Sealed(40))
    cluster.sender.on_seal_failed(first.batch, KafkaError(KafkaError._BAD_COMPRESSION))
    assert [done.error for done in cluster.reports()] == [KafkaError._BAD_COMPRESSION]
    (send,) = cluster.poll()
    assert send.context == [second.batch]


@pytest.mark.parametrize("failed", [False, True])
def test_a_batch_that_was_given_up_while_it_was_compressed_is_reported_once_and_not_sent(failed):
    cluster = Cluster(codec=2)
    cluster.add()
    (seal,) = cluster.sender.poll(cluster.now)
    cluster.sender.purge(KafkaError(KafkaError._PURGE_QUEUE), None)
    if failed:
        cluster.sender.on_seal_failed(seal.batch, KafkaError(KafkaError._BAD_COMPRESSION))
    else:
        cluster.sender.on_sealed(seal.batch, Sealed(40))
    assert cluster.sender.poll(cluster.now) == []
    assert [done.error for done in cluster.reports()] == [KafkaError._PURGE_QUEUE]


def test_what_is_purged_as_soon_as_it_is_closed_is_not_compressed():
    cluster = Cluster(codec=2)
    cluster.add()
    cluster.sender.purge(KafkaError(KafkaError._PURGE_QUEUE), None)
    assert len(cluster.reports()) == 1
    assert cluster.sender.poll(cluster.now) == []


def test_an_answer_that_leaves_a_batch_out_is_retried():
    cluster = Cluster()
    cluster.add()
    (send,) = cluster.poll()
    cluster.sender.on_reply(send, ProduceResponse(), cluster.now)
    cluster.now += 0.1
    assert len(cluster.poll()) == 1


def test_every_code_that_the_error_table_calls_retriable_is_retried():
    assert error_action(KafkaError.COORDINATOR_LOAD_IN_PROGRESS) is ErrorAction.RETRY
    assert error_action(KafkaError.TOPIC_EXCEPTION) is ErrorAction.FAIL


def test_an_endless_message_timeout_leaves_the_request_timeout():
    cluster = Cluster(message_timeout_s=math.inf, request_timeout_s=30.0)
    cluster.add()
    (send,) = cluster.poll()
    assert (send.timeout_s, send.most_s) == (32.0, math.inf)


@pytest.mark.parametrize(("acks", "request_timeout_s", "reply_timeout_s"), [
    (-1, 30.0, 32.0), (-1, 1.0, 1.1), (1, 30.0, 30.0), (0, 30.0, 30.0)])
def test_a_broker_that_waits_for_replicas_is_waited_for_until_its_answer_that_they_did_not_come_can_be_there(
    acks: int, request_timeout_s: float, reply_timeout_s: float
) -> None:
    limits = Limits(acks=acks, request_timeout_s=request_timeout_s)
    assert limits.reply_timeout_s == pytest.approx(reply_timeout_s)
