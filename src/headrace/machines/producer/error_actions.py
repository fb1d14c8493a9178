"""What a broker's answer to a produce request says: each partition's part, and what its error code means.

It must not know batches or time. `machines.producer.sender` acts on it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from headrace.errors import KafkaError
from headrace.wire.messages.producer.produce import PartitionProduceResponse, ProduceLeaderIdAndEpoch, ProduceResponse

__all__ = [
    "ERROR_ACTIONS", "HOPELESS", "ErrorAction", "answer_error", "answers_by_partition", "error_action", "forgotten",
]


class ErrorAction(enum.Enum):
    """What an error code in a produce response means for its batch."""

    STORED = "the broker has it"
    RETRY = "a passing state of the leader: send again after a backoff; it may have been stored"
    REJECTED = "not stored, for a passing reason: send again after a backoff"
    MOVED = "ask for metadata, then send to the new leader; it may have been stored"
    SEQUENCE = "the sequence number was refused: `machines.producer.sequences` decides"
    DIVIDE = "not stored as one: `split` sends it in parts, and reports what cannot be stored at all"
    FAIL = "no retry can help: report it"
    FATAL = "no record of this producer can be stored: report all and stop"


ERROR_ACTIONS: Final[Mapping[int, ErrorAction]] = {
    KafkaError.NO_ERROR: ErrorAction.STORED,
    KafkaError.DUPLICATE_SEQUENCE_NUMBER: ErrorAction.STORED,  # a retry of what is stored already; the offset is lost
    KafkaError.INVALID_MSG: ErrorAction.REJECTED,  # damaged on the way
    KafkaError.NOT_ENOUGH_REPLICAS: ErrorAction.REJECTED,
    KafkaError.THROTTLING_QUOTA_EXCEEDED: ErrorAction.REJECTED,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorAction.RETRY,
    KafkaError.REQUEST_TIMED_OUT: ErrorAction.RETRY,
    KafkaError.UNKNOWN_TOPIC_OR_PART: ErrorAction.MOVED,
    KafkaError.LEADER_NOT_AVAILABLE: ErrorAction.MOVED,
    KafkaError.NOT_LEADER_FOR_PARTITION: ErrorAction.MOVED,  # also sent when leadership is lost after the append
    KafkaError.BROKER_NOT_AVAILABLE: ErrorAction.MOVED,
    KafkaError.REPLICA_NOT_AVAILABLE: ErrorAction.MOVED,
    KafkaError.KAFKA_STORAGE_ERROR: ErrorAction.MOVED,
    KafkaError.FENCED_LEADER_EPOCH: ErrorAction.MOVED,
    KafkaError.UNKNOWN_LEADER_EPOCH: ErrorAction.MOVED,
    KafkaError.UNKNOWN_TOPIC_ID: ErrorAction.MOVED,
    KafkaError.INCONSISTENT_TOPIC_ID: ErrorAction.MOVED,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER: ErrorAction.SEQUENCE,
    KafkaError.UNKNOWN_PRODUCER_ID: ErrorAction.SEQUENCE,  # as unsafe as out of order (KIP-360)
    KafkaError.INVALID_PRODUCER_EPOCH: ErrorAction.SEQUENCE,
    KafkaError.CONCURRENT_TRANSACTIONS: ErrorAction.REJECTED,  # the markers of the transaction before are being written
    KafkaError.MSG_SIZE_TOO_LARGE: ErrorAction.DIVIDE,
    KafkaError.RECORD_LIST_TOO_LARGE: ErrorAction.DIVIDE,
    KafkaError.INVALID_RECORD: ErrorAction.DIVIDE,
    KafkaError.INVALID_TIMESTAMP: ErrorAction.DIVIDE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: ErrorAction.FAIL,
    KafkaError.INVALID_REQUIRED_ACKS: ErrorAction.FAIL,
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT: ErrorAction.FAIL,
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: ErrorAction.FAIL,
    KafkaError.POLICY_VIOLATION: ErrorAction.FAIL,
    KafkaError.TOPIC_EXCEPTION: ErrorAction.FAIL,
    KafkaError.INVALID_REQUEST: ErrorAction.FAIL,
    KafkaError.UNSUPPORTED_VERSION: ErrorAction.FAIL,
    KafkaError.TRANSACTION_ABORTABLE: ErrorAction.FAIL,  # and with it the transaction (KIP-890, KIP-1050)
    KafkaError.INVALID_TXN_STATE: ErrorAction.FAIL,
    KafkaError.INVALID_PRODUCER_ID_MAPPING: ErrorAction.FAIL,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: ErrorAction.FATAL,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ErrorAction.FATAL,
    KafkaError.PRODUCER_FENCED: ErrorAction.FATAL,
}
"""Codes that are not listed are retried when the table of error codes calls them retriable, and fail otherwise."""

HOPELESS: Final = (
    KafkaError._UNSUPPORTED_FEATURE, KafkaError._AUTHENTICATION, KafkaError._SSL,
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT, KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
)
"""Failures of a request, not answers to it, that sending again cannot cure."""


def error_action(code: int) -> ErrorAction:
    """What to do about an error code of a produce response."""
    listed = ERROR_ACTIONS.get(code)
    if listed is not None:
        return listed
    return ErrorAction.RETRY if KafkaError(code).retriable() else ErrorAction.FAIL


def forgotten(answer: PartitionProduceResponse, last_offset: int) -> bool:
    """Whether the broker does not know the producer because retention deleted all that it has written.

    Then nothing that was acknowledged is lost, and sequences may begin again. Kafka 1.0 to 2.4 answer so (KAFKA-5793).

    Args:
        answer: the refusal, which has the offset at which the log begins now.
        last_offset: the last record that was acknowledged in this partition, -1 for none.
    """
    return answer.error_code == KafkaError.UNKNOWN_PRODUCER_ID and answer.log_start_offset > last_offset


def answers_by_partition(
    request: Any, reply: ProduceResponse, topic_id: Callable[[str], UUID]
) -> dict[tuple[str, int], PartitionProduceResponse]:
    """Each partition's part of the answer, by topic name and partition.

    Leaders that it names for a topic that was made anew meanwhile are left out: their epochs are those of the topic
    before, and the new one's, which begin at zero again, would count as old for ever.

    Args:
        request: the `ProduceRequest`; it translates topic ids, for the answer has no names from version 13 on.
        reply: the broker's answer.
        topic_id: gives a topic's id as it is now.
    """
    names: dict[int, str] = {}  # by the id as an integer: a UUID is hashed and compared in Python
    anew: set[str] = set()
    for topic in request.topic_data:
        names[topic.topic_id.int] = topic.name
        if topic.topic_id.int != topic_id(topic.name).int:
            anew.add(topic.name)
    answers: dict[tuple[str, int], PartitionProduceResponse] = {}
    for topic in reply.responses:
        name = topic.name or names.get(topic.topic_id.int, "")
        for answer in topic.partition_responses:
            answers[name, answer.index] = answer
            if name in anew:
                answer.current_leader = ProduceLeaderIdAndEpoch()
    return answers


def answer_error(where: str, answer: PartitionProduceResponse) -> KafkaError:
    """The error that an answer reports, with the broker's reasons for the batch and its records (KIP-467)."""
    reasons = [r.batch_index_error_message for r in answer.record_errors if r.batch_index_error_message]
    text = "; ".join(filter(None, [answer.error_message or KafkaError(answer.error_code).str(), *reasons[:3]]))
    return KafkaError(answer.error_code, f"{where}: {text}")
