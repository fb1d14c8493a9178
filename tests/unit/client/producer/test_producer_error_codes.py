"""Each error code of a produce response has its documented consequence, at a broker that answers with it."""

from __future__ import annotations

import ast
import time
from pathlib import Path
from random import Random

import pytest

from headrace import KafkaError, KafkaException, Producer
from headrace.broker import server
from headrace.broker.storage.producer_state import ProducerStates
from headrace.error_codes import CODES
from headrace.errors import FatalError
from headrace.machines.producer.error_actions import ERROR_ACTIONS, ErrorAction
from headrace.records import scan
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.producer.produce import BatchIndexAndErrorMessage, ProduceRequest
from tools import produce_errors_page

DOCUMENTED = """
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED INVALID_REQUIRED_ACKS
    CORRUPT_MESSAGE MESSAGE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_TIMESTAMP UNSUPPORTED_FOR_MESSAGE_FORMAT
    KAFKA_STORAGE_ERROR NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND DUPLICATE_SEQUENCE_NUMBER
    UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER INVALID_PRODUCER_EPOCH UNKNOWN_PRODUCER_ID
    OUT_OF_ORDER_SEQUENCE_NUMBER TRANSACTION_ABORTABLE INVALID_RECORD UNSUPPORTED_COMPRESSION_TYPE POLICY_VIOLATION
    UNKNOWN_TOPIC_ID THROTTLING_QUOTA_EXCEEDED REQUEST_TIMED_OUT INVALID_TOPIC_EXCEPTION INVALID_TXN_STATE
    INVALID_PRODUCER_ID_MAPPING CONCURRENT_TRANSACTIONS"""


def codes(test):
    """Run a test with each code whose row in the documentation names it."""
    found = produce_errors_page.codes_of(test.__name__)
    return pytest.mark.parametrize("code", found, ids=[KafkaError(code).name() for code in found])(test)


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"t": 1}) as made:
        yield made


@pytest.fixture
def producer(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10, "linger.ms": 50}) as made:
        yield made


def answer(broker, code, **how):
    """Answer a produce request with an error; returns a list that grows with each answer."""
    given = []
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=code, effect=given.append, **how))
    return given


def send(producer, *values):
    """Produce values and wait; returns value, error and offset of each report."""
    reports = []
    for value in values:
        producer.produce("t", value, on_delivery=lambda error, message: reports.append(
            (message.value(), error, message.offset())))
    assert producer.flush(10) == 0
    return reports


@codes
def test_a_passing_state_of_the_broker_is_waited_out(broker, producer, code):
    given = answer(broker, code, times=2)
    assert send(producer, b"v") == [(b"v", None, 0)]
    assert len(given) == 2


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("code", [KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, KafkaError.REQUEST_TIMED_OUT,
                                  KafkaError.NOT_LEADER_FOR_PARTITION])
def test_what_was_appended_although_an_error_says_otherwise_is_stored_once_if_idempotent(broker, code, idempotent):
    broker.add_fault(Fault(action=Action.LATE_ERROR, request=ProduceRequest, error_code=code, times=2))
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10, "linger.ms": 50,
                   "enable.idempotence": idempotent}) as producer:
        first = 0 if idempotent else 4  # the third time, which nobody tells from the first
        assert send(producer, b"a", b"b") == [(b"a", None, first), (b"b", None, first + 1)]
        assert send(producer, b"next") == [(b"next", None, first + 2)]
    assert broker.end_offsets("t") == [first + 3]


@codes
def test_after_new_metadata_the_batch_is_sent_again(broker, producer, code):
    assert send(producer, b"first") == [(b"first", None, 0)]
    asked = []
    broker.add_fault(Fault(action=Action.PASS, request=MetadataRequest, times=None, effect=asked.append))
    given = answer(broker, code)
    assert send(producer, b"v") == [(b"v", None, 1)]
    assert len(given) == 1
    ends = time.monotonic() + 10
    while not asked and time.monotonic() < ends:  # both wait a little, by lot: the batch may be sent again first
        time.sleep(0.01)
    assert asked


def codes_with(*actions):
    found = [code for code, action in ERROR_ACTIONS.items() if action in actions]
    return pytest.mark.parametrize("code", found, ids=[KafkaError(code).name() for code in found])


@codes_with(ErrorAction.REJECTED, ErrorAction.RETRY, ErrorAction.MOVED)
def test_when_retries_are_over_the_error_says_whether_the_record_may_be_stored(broker, code):
    given = answer(broker, code, times=2)
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10, "retries": 1,
                   "enable.idempotence": False}) as producer:
        ((_, error, _),) = send(producer, b"v")
    assert (error.code(), error.maybe_applied) == (code, ERROR_ACTIONS[code] is not ErrorAction.REJECTED)
    assert len(given) == 2


@codes_with(ErrorAction.SEQUENCE)
def test_a_refused_number_of_what_may_be_stored_is_reported_as_such(broker, producer, code):
    assert send(producer, b"first") == [(b"first", None, 0)]
    answer(broker, KafkaError.REQUEST_TIMED_OUT)
    answer(broker, code)
    ((_, error, _),) = send(producer, b"v")
    assert (error.code(), error.fatal(), error.maybe_applied) == (code, False, True)
    assert send(producer, b"next") == [(b"next", None, 1)]


@codes_with(ErrorAction.SEQUENCE)
def test_a_refused_number_dooms_a_transaction(broker, transactional, code):
    answer(broker, code)
    ((_, error, _),) = send(transactional, b"v")
    assert error.code() == code
    with pytest.raises(KafkaException) as caught:
        transactional.commit_transaction(10)
    assert caught.value.error.txn_requires_abort()
    transactional.abort_transaction(10)
    transactional.begin_transaction()
    assert [error for _, error, _ in send(transactional, b"next")] == [None]
    transactional.commit_transaction(10)


@codes
def test_a_repeated_batch_counts_as_delivered(broker, producer, code):
    answer(broker, code)
    assert send(producer, b"v") == [(b"v", None, None)]
    assert broker.end_offsets("t") == [0]


@codes
def test_a_refused_number_is_followed_by_one_of_the_next_epoch(broker, producer, code):
    numbers = []

    def note(request):
        info = scan(bytes(request.topic_data[0].partition_data[0].records))[0]
        numbers.append((info.epoch, info.base_sequence))
        return False

    broker.add_fault(Fault(action=Action.DROP, request=ProduceRequest, when=note))
    send(producer, b"first")
    answer(broker, code)
    assert send(producer, b"v") == [(b"v", None, 1)]
    assert numbers == [(0, 0), (0, 1), (1, 0)]


@codes
def test_what_no_retry_cures_is_reported_and_the_next_record_is_stored(broker, producer, code):
    given = answer(broker, code)
    ((_, error, offset),) = send(producer, b"v")
    assert (error.code(), error.fatal(), error.maybe_applied, offset) == (code, False, False, None)
    assert "t[0]" in error.str()
    assert len(given) == 1
    assert send(producer, b"next") == [(b"next", None, 0)]


@codes
def test_a_producer_that_may_not_write_fails_as_a_whole(broker, producer, code):
    answer(broker, code)
    ((_, error, _),) = send(producer, b"v")
    assert error.code() == code
    with pytest.raises(FatalError, match="cannot go on"):
        producer.produce("t", b"next")
    assert broker.end_offsets("t") == [0]


@codes
def test_a_batch_that_is_too_large_goes_in_halves(broker, producer, code):
    def too_large(request):
        data = bytes(request.topic_data[0].partition_data[0].records)
        return scan(data)[0].count > 3 or b"giant" in data

    answer(broker, code, times=None, when=too_large)
    values = [b"%d" % number if number != 9 else b"giant" for number in range(20)]
    reports = send(producer, *values)
    assert [value for value, _, _ in reports] == values
    assert [(value, error.code()) for value, error, _ in reports if error] == [(b"giant", code)]
    assert [offset for _, _, offset in reports if offset is not None] == list(range(19))


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_real_limit_on_the_size_of_batches_is_met(broker, codec):
    broker.create_topic("small", configs={"max.message.bytes": "2000"})
    found = []
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}) as producer:
        for size in [100] * 200 + [3000]:
            value = Random(len(found) + size).randbytes(size)
            producer.produce("small", value, on_delivery=lambda error, message: found.append(
                (error and error.code(), message.offset())))
    assert found == [(None, number) for number in range(200)] + [(KafkaError.MSG_SIZE_TOO_LARGE, None)]


@codes
def test_the_records_that_the_broker_names_fail_and_no_other(broker, producer, code, monkeypatch):
    error_response = server.error_response

    def naming(request, code):
        reply = error_response(request, code)
        reply.responses[0].partition_responses[0].record_errors = [
            BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key"),
            BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message=None)]
        reply.responses[0].partition_responses[0].error_message = "some are bad"
        return reply

    monkeypatch.setattr(server, "error_response", naming)
    answer(broker, code)
    reports = send(producer, b"0", b"1", b"2", b"3", b"4")
    assert {value: (error.code(), error.str().split(";")[0]) for value, error, _ in reports if error} == {
        b"1": (code, "t[0]: no key"), b"3": (code, "t[0]: some are bad")}
    assert [(value, offset) for value, error, offset in reports if not error] == [(b"0", 0), (b"2", 1), (b"4", 2)]
    assert send(producer, b"next") == [(b"next", None, 3)]


@pytest.fixture
def transactional(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x", "retry.backoff.ms": 10,
                   "linger.ms": 50}) as made:
        made.init_transactions(10)
        made.begin_transaction()
        yield made


@codes
def test_a_refusal_dooms_the_transaction_and_no_more(broker, transactional, code):
    answer(broker, code)
    ((_, error, _),) = send(transactional, b"v")
    assert error.code() == code
    with pytest.raises(KafkaException) as caught:
        transactional.commit_transaction(10)
    assert caught.value.error.txn_requires_abort()
    transactional.abort_transaction(10)
    transactional.begin_transaction()
    ((_, error, _),) = send(transactional, b"next")
    assert error is None
    transactional.commit_transaction(10)


def forget(log_start_offset, monkeypatch):
    """What a broker before Kafka 2.5 does when retention has removed a producer's records; returns the effect."""
    error_response = server.error_response

    def refusal(request, code):
        reply = error_response(request, code)
        reply.responses[0].partition_responses[0].log_start_offset = log_start_offset
        return reply

    monkeypatch.setattr(server, "error_response", refusal)

    def effect(cluster):
        cluster.catalog.topics["t"].partitions[0].producers = ProducerStates()

    return effect


@codes
def test_a_transaction_goes_on_when_the_broker_forgot_the_producer_and_nothing_was_lost(
    broker, transactional, code, monkeypatch
):
    assert send(transactional, b"first") == [(b"first", None, 0)]
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=code,
                           effect=forget(1, monkeypatch)))
    assert send(transactional, b"v", b"w") == [(b"v", None, 1), (b"w", None, 2)]
    transactional.commit_transaction(10)


def test_a_transaction_must_be_aborted_when_the_broker_forgot_what_it_had_acknowledged(
    broker, transactional, monkeypatch
):
    assert send(transactional, b"first") == [(b"first", None, 0)]
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.UNKNOWN_PRODUCER_ID,
                           effect=forget(0, monkeypatch)))
    ((_, error, _),) = send(transactional, b"v")
    assert error.code() == KafkaError.UNKNOWN_PRODUCER_ID
    with pytest.raises(KafkaException) as caught:
        transactional.commit_transaction(10)
    assert caught.value.error.txn_requires_abort()
    transactional.abort_transaction(10)


def test_a_producer_without_transactions_goes_on_in_the_next_epoch_when_the_broker_forgot_it(
    broker, producer, monkeypatch
):
    for number, log_start_offset in enumerate((-1, 0, 100)):
        assert send(producer, b"v") == [(b"v", None, 2 * number)]
        with monkeypatch.context() as patch:
            broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, effect=forget(log_start_offset, patch),
                                   error_code=KafkaError.UNKNOWN_PRODUCER_ID))
            assert send(producer, b"w") == [(b"w", None, 2 * number + 1)]


@pytest.mark.parametrize("config", [{}, {"enable.idempotence": False}])
def test_records_follow_a_topic_that_was_deleted_and_made_again(broker, config):
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10, **config}) as producer:
        assert [offset for _, _, offset in send(producer, b"a", b"b")] == [0, 1]
        broker.apply(lambda cluster: cluster.catalog.delete(cluster.catalog.topics["t"]))
        broker.create_topic("t")
        assert send(producer, b"c") == [(b"c", None, 0)]
        assert send(producer, b"d") == [(b"d", None, 1)]


def test_the_brokers_time_is_reported_where_it_sets_the_timestamps(broker, producer):
    broker.create_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
    stamps = []
    producer.produce("stamped", b"v", timestamp=1, on_delivery=lambda _, message: stamps.append(message.timestamp()))
    producer.flush(10)
    ((kind, stamp),) = stamps
    assert kind == 2
    assert abs(stamp - time.time() * 1000) < 60_000


def test_every_documented_code_has_an_action_and_a_test_that_is_run_with_it():
    listed = {CODES[code].kafka_name for code in ERROR_ACTIONS}
    assert set(DOCUMENTED.split()) <= listed
    made = [node for node in ast.parse(Path(__file__).read_text()).body if isinstance(node, ast.FunctionDef)]
    with_codes = {node.name for node in made if any(ast.unparse(each) == "codes" for each in node.decorator_list)}
    for code in ERROR_ACTIONS:
        if code:
            outcome, test = produce_errors_page.row_of(code)
            assert outcome
            assert test in with_codes


def test_the_page_of_error_codes_is_what_the_table_says_and_no_cell_of_it_is_empty():
    written = produce_errors_page.PAGE.read_text()
    assert written == produce_errors_page.page(), "run python -m tools.produce_errors_page"
    rows = [line for line in written.splitlines() if line.startswith("|")]
    assert all(cell.strip() for line in rows for cell in line.strip("|").split("|"))
