"""What each refusal of a coordinator does to a transaction: row by row, in both versions."""

import pytest

from headrace.error_codes import CODES
from headrace.errors import KafkaError as K
from headrace.machines.producer.transaction_errors import ErrorClass, class_of, gravest
from headrace.machines.producer.transactions import Operation, TxnState
from headrace.types.records import TopicPartition
from headrace.wire.messages.producer.produce import InitProducerIdRequest
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from tests.support.driven_transactions import MEMBER, Driven

C = ErrorClass
EVERYWHERE = {
    K.NOT_COORDINATOR: C.MOVED,
    K.COORDINATOR_NOT_AVAILABLE: C.MOVED,
    K.COORDINATOR_LOAD_IN_PROGRESS: C.RETRY,
    K.CONCURRENT_TRANSACTIONS: C.RETRY,
    K.UNKNOWN_PRODUCER_ID: C.ABORT_AND_BUMP,
    K.INVALID_PRODUCER_ID_MAPPING: C.ABORT_AND_BUMP,
    K.TRANSACTION_ABORTABLE: C.ABORT,
    K.INVALID_PRODUCER_EPOCH: C.FENCED,
    K.PRODUCER_FENCED: C.FENCED,
    K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: C.FATAL,
    K.CLUSTER_AUTHORIZATION_FAILED: C.FATAL,
    K.UNSUPPORTED_VERSION: C.FATAL,
    K.KAFKA_STORAGE_ERROR: C.RETRY,  # in no table, and retriable
}
ROWS = {
    InitProducerIdRequest: {K.INVALID_TRANSACTION_TIMEOUT: C.FATAL, K.REQUEST_TIMED_OUT: C.RETRY,
                            K.INVALID_TXN_STATE: C.FATAL, K.INVALID_REQUEST: C.FATAL},
    AddPartitionsToTxnRequest: {K.UNKNOWN_TOPIC_OR_PART: C.RETRY, K.TOPIC_AUTHORIZATION_FAILED: C.ABORT,
                                K.OPERATION_NOT_ATTEMPTED: C.ABORT, K.INVALID_TXN_STATE: C.FATAL,
                                K.INVALID_REQUEST: C.ABORT},
    AddOffsetsToTxnRequest: {K.GROUP_AUTHORIZATION_FAILED: C.ABORT, K.INVALID_TXN_STATE: C.FATAL,
                             K.INVALID_GROUP_ID: C.ABORT},
    TxnOffsetCommitRequest: {K.REQUEST_TIMED_OUT: C.MOVED, K.UNKNOWN_TOPIC_OR_PART: C.RETRY,
                             K.GROUP_AUTHORIZATION_FAILED: C.ABORT, K.ILLEGAL_GENERATION: C.ABORT,
                             K.UNKNOWN_MEMBER_ID: C.ABORT, K.FENCED_INSTANCE_ID: C.ABORT, K.STALE_MEMBER_EPOCH: C.ABORT,
                             K.INVALID_TXN_STATE: C.FATAL, K.OFFSET_METADATA_TOO_LARGE: C.ABORT,
                             K.UNSUPPORTED_FOR_MESSAGE_FORMAT: C.FATAL},
    EndTxnRequest: {K.INVALID_TXN_STATE: C.ABORT_AND_BUMP, K.INVALID_REQUEST: C.FATAL, K.UNKNOWN: C.FATAL},
}
TABLE = [(request, code, kind) for request, row in ROWS.items() for code, kind in {**EVERYWHERE, **row}.items()]


@pytest.mark.parametrize(("request_type", "code", "kind"), TABLE, ids=[
    f"{request.__name__}-{CODES[code].name}" for request, code, _ in TABLE])
def test_each_code_has_its_class(request_type, code, kind):
    assert class_of(request_type, code) is kind


def waiting_for(request_type: type, version: int) -> tuple[Driven, Operation | None]:
    """A machine whose next request is of this type, and the operation that waits for it."""
    driven = Driven(version)
    if request_type is InitProducerIdRequest:
        driven.machine.begin(Operation.INIT)
        return driven, Operation.INIT
    driven.initialised().opened()
    if request_type is AddPartitionsToTxnRequest:
        driven.machine.admits("t", 0)
        return driven, None
    if request_type is EndTxnRequest:
        driven.writing().machine.begin(Operation.COMMIT)
        return driven, Operation.COMMIT
    driven.machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    if request_type is TxnOffsetCommitRequest and version == 1:
        driven.accept(driven.expect(AddOffsetsToTxnRequest))
    return driven, Operation.OFFSETS


CASES = [(version, *row) for version in (1, 2) for row in TABLE
         if version == 1 or row[0] not in (AddPartitionsToTxnRequest, AddOffsetsToTxnRequest)]


@pytest.mark.parametrize(("version", "request_type", "code", "kind"), CASES, ids=[
    f"{version}-{request.__name__}-{CODES[code].name}" for version, request, code, _ in CASES])
def test_each_class_does_what_it_says(version, request_type, code, kind):
    driven, operation = waiting_for(request_type, version)
    send = driven.expect(request_type)
    driven.refuse(send, code)
    done = driven.done()
    if kind in (C.RETRY, C.MOVED):
        assert done == {}
        finder = driven.finder if send.destination == driven.finder.found else driven.group_finders["g"]
        assert finder.lost == (kind is C.MOVED)
        driven.wait()
        assert driven.expect(request_type).request == send.request
        return
    fatal = kind in (C.FENCED, C.FATAL) or request_type is InitProducerIdRequest
    assert driven.machine.state is (TxnState.FATAL_ERROR if fatal else TxnState.ABORTABLE_ERROR)
    error = driven.machine.error
    assert error == (K._FENCED if kind is C.FENCED else code)
    assert (error.fatal(), error.txn_requires_abort()) == (fatal, not fatal)
    assert done == ({} if operation is None else {operation: error})
    assert "x" in error.str()  # the transactional id
    if not fatal:
        driven.end(Operation.ABORT)
        wants_epoch = version == 1 and kind is C.ABORT_AND_BUMP
        assert (driven.sent() is not None) == wants_epoch


@pytest.mark.parametrize(("codes", "decides"), [
    ([K.OPERATION_NOT_ATTEMPTED, K.UNKNOWN_TOPIC_OR_PART], K.UNKNOWN_TOPIC_OR_PART),
    ([K.TOPIC_AUTHORIZATION_FAILED, K.OPERATION_NOT_ATTEMPTED], K.TOPIC_AUTHORIZATION_FAILED),
    ([K.UNKNOWN_TOPIC_OR_PART, K.PRODUCER_FENCED, K.TOPIC_AUTHORIZATION_FAILED], K.PRODUCER_FENCED),
    ([K.NOT_COORDINATOR, K.UNKNOWN_TOPIC_OR_PART], K.NOT_COORDINATOR),
    ([K.OPERATION_NOT_ATTEMPTED], K.OPERATION_NOT_ATTEMPTED),
])
def test_the_gravest_code_of_an_answer_decides(codes, decides):
    assert gravest(AddPartitionsToTxnRequest, codes) == decides
