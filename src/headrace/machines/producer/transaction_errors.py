"""What a coordinator's refusal means for a transaction: one table for each request. `machines.producer.transactions`
acts on it.

Source: Java's `TransactionManager` handlers, KIP-360, KIP-447, KIP-588, KIP-890, KIP-1050.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from headrace.errors import KafkaError
from headrace.wire.messages.producer.produce import InitProducerIdRequest
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from headrace.wire.schema import Request

__all__ = ["UNTOUCHED", "ErrorClass", "class_of", "gravest"]


class ErrorClass(Enum):
    """What to do about a refusal; the later in this list, the graver."""

    RETRY = "a passing state: ask again after a backoff"
    MOVED = "another broker is the coordinator: look for it, then ask again"
    ABORT = "this transaction cannot be committed"
    ABORT_AND_BUMP = "nor can its numbers be used any more"
    FENCED = "another producer has this transactional id now, or the coordinator gave up the transaction"
    FATAL = "this producer can never write"


_K, _C = KafkaError, ErrorClass
_EVERYWHERE: Final[Mapping[int, ErrorClass]] = {
    _K.NOT_COORDINATOR: _C.MOVED,
    _K.COORDINATOR_NOT_AVAILABLE: _C.MOVED,
    _K.COORDINATOR_LOAD_IN_PROGRESS: _C.RETRY,
    _K.CONCURRENT_TRANSACTIONS: _C.RETRY,
    _K.UNKNOWN_PRODUCER_ID: _C.ABORT_AND_BUMP,
    _K.INVALID_PRODUCER_ID_MAPPING: _C.ABORT_AND_BUMP,
    _K.TRANSACTION_ABORTABLE: _C.ABORT,
    _K.INVALID_PRODUCER_EPOCH: _C.FENCED,
    _K.PRODUCER_FENCED: _C.FENCED,
    _K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _C.FATAL,
    _K.CLUSTER_AUTHORIZATION_FAILED: _C.FATAL,
    _K.INVALID_TXN_STATE: _C.FATAL,
    _K.UNSUPPORTED_VERSION: _C.FATAL,
}
_ALSO: Final[Mapping[type[Request], Mapping[int, ErrorClass]]] = {
    InitProducerIdRequest: {_K.INVALID_TRANSACTION_TIMEOUT: _C.FATAL, _K.REQUEST_TIMED_OUT: _C.RETRY},
    AddPartitionsToTxnRequest: {
        _K.UNKNOWN_TOPIC_OR_PART: _C.RETRY,
        _K.TOPIC_AUTHORIZATION_FAILED: _C.ABORT,
        _K.OPERATION_NOT_ATTEMPTED: _C.ABORT,
    },
    AddOffsetsToTxnRequest: {_K.GROUP_AUTHORIZATION_FAILED: _C.ABORT},
    TxnOffsetCommitRequest: {
        _K.REQUEST_TIMED_OUT: _C.MOVED,
        _K.UNKNOWN_TOPIC_OR_PART: _C.RETRY,
        _K.GROUP_AUTHORIZATION_FAILED: _C.ABORT,
        _K.ILLEGAL_GENERATION: _C.ABORT,  # the consumer was replaced: its work is another's now (KIP-447)
        _K.UNKNOWN_MEMBER_ID: _C.ABORT,
        _K.FENCED_INSTANCE_ID: _C.ABORT,
        _K.STALE_MEMBER_EPOCH: _C.ABORT,
        _K.UNSUPPORTED_FOR_MESSAGE_FORMAT: _C.FATAL,  # of the topic of all offsets: the next try ends as this one
    },
    # An abort of what the coordinator does not know: its first request was lost.
    EndTxnRequest: {_K.INVALID_TXN_STATE: _C.ABORT_AND_BUMP},
}

UNTOUCHED: Final = frozenset({_K.CONCURRENT_TRANSACTIONS, _K.COORDINATOR_LOAD_IN_PROGRESS})
"""Refusals by which the coordinator has done nothing (Kafka: `TransactionCoordinator.endTransaction` gives them before
it writes to its log)."""


def class_of(request: type[Request], code: int) -> ErrorClass:
    """What an error code means as the answer to a request.

    What no table here lists is tried again if the table of codes calls it retriable; else an abort may cure it, or,
    at the beginning and the end of a transaction, nothing: the end may be in the log all the same (UNKNOWN says nothing
    about that), and an abort that follows a commit would be told that there is nothing to abort. Java does so too.
    """
    listed = _ALSO.get(request, {}).get(code) or _EVERYWHERE.get(code)
    if listed is not None:
        return listed
    if KafkaError(code).retriable():
        return ErrorClass.RETRY
    return ErrorClass.FATAL if request in (InitProducerIdRequest, EndTxnRequest) else ErrorClass.ABORT


def gravest(request: type[Request], codes: Iterable[int]) -> int:
    """The error code that decides when an answer has several: the rest was not even attempted, or heals with time."""
    order = list(ErrorClass)
    return max(codes, key=lambda code: (code != _K.OPERATION_NOT_ATTEMPTED, order.index(class_of(request, code))))
