"""Requests about transactions and producers, and what their replies mean: pure functions.

Read next: `client.admin.open_transaction_calls`, which sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.errors import KafkaError
from headrace.machines.admin.admin_results import failure, key_of, milliseconds, numbers_by_topic, raise_failure
from headrace.types.cluster_parts import PartitionProducer, TransactionDescription, TransactionListing
from headrace.types.records import TopicPartition
from headrace.wire.messages.producer import transactions as wire
from headrace.wire.messages.producer.produce import InitProducerIdRequest, InitProducerIdResponse

__all__ = [
    "abort",
    "describe_producers",
    "describe_transactions",
    "fence",
    "list_transactions",
    "read_aborted",
    "read_fenced",
    "read_producers",
    "read_transactions",
    "read_transactions_listed",
]

_LONGEST_FENCE_MS = 60_000
"""What producers ask for by default, and so what brokers allow."""
_UNKNOWN = -1


def list_transactions(
    states: Iterable[str], producer_ids: Iterable[int], longer_than_ms: int, pattern: str | None
) -> wire.ListTransactionsRequest:
    """Ask one broker for the transactional ids that it coordinates."""
    return wire.ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producer_ids),
                                        duration_filter=longer_than_ms, transactional_id_pattern=pattern)


def read_transactions_listed(reply: wire.ListTransactionsResponse) -> list[TransactionListing]:
    """The transactional ids of one broker.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("transactions", reply.error_code)
    return [TransactionListing(each.transactional_id, each.producer_id, each.transaction_state)
            for each in reply.transaction_states]


def describe_transactions(ids: Sequence[str]) -> wire.DescribeTransactionsRequest:
    """Ask a coordinator what transactional ids are doing."""
    return wire.DescribeTransactionsRequest(transactional_ids=list(ids))


def read_transactions(
    reply: wire.DescribeTransactionsResponse, coordinator_id: int
) -> dict[str, TransactionDescription | KafkaError]:
    """What each is doing."""
    return {
        each.transactional_id: _ended(each.transactional_id, each.error_code, "DESCRIBE") or TransactionDescription(
            coordinator_id, each.transaction_state, each.producer_id, each.producer_epoch,
            each.transaction_timeout_ms,
            each.transaction_start_time_ms if each.transaction_start_time_ms >= 0 else None,
            {TopicPartition(topic.topic, number) for topic in each.topics for number in topic.partitions})
        for each in reply.transaction_states
    }


def describe_producers(partitions: Iterable[TopicPartition]) -> wire.DescribeProducersRequest:
    """Ask a leader which producers it knows."""
    return wire.DescribeProducersRequest(topics=[
        wire.ProducersTopicRequest(name=topic, partition_indexes=numbers)
        for topic, numbers in numbers_by_topic(partitions).items()])


def read_producers(
    reply: wire.DescribeProducersResponse,
) -> dict[TopicPartition, list[PartitionProducer] | KafkaError]:
    """The producers of each partition."""
    return {
        TopicPartition(topic.name, part.partition_index):
            failure(f"{topic.name}[{part.partition_index}]", part.error_code, part.error_message,
                    f'READ on topic "{topic.name}"') or [_producer(each) for each in part.active_producers]
        for topic in reply.topics for part in topic.partitions
    }


def _producer(state: wire.ProducerState) -> PartitionProducer:
    return PartitionProducer(
        state.producer_id, state.producer_epoch, _known(state.last_sequence), _known(state.last_timestamp),
        _known(state.coordinator_epoch), _known(state.current_txn_start_offset))


def _known(number: int) -> int | None:
    return None if number == _UNKNOWN else number


def abort(
    partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> wire.WriteTxnMarkersRequest:
    """Ask a leader to end a transaction whose coordinator has forgotten it."""
    return wire.WriteTxnMarkersRequest(markers=[wire.WritableTxnMarker(
        producer_id=producer_id, producer_epoch=producer_epoch, transaction_result=False,
        topics=[wire.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
        coordinator_epoch=coordinator_epoch)])


def read_aborted(reply: wire.WriteTxnMarkersResponse) -> dict[TopicPartition, KafkaError | None]:
    """How it ended."""
    found: dict[TopicPartition, KafkaError | None] = {}
    for marker in reply.markers:
        for topic in marker.topics:
            for part in topic.partitions:
                tp = TopicPartition(topic.name, part.partition_index)
                found[tp] = failure(key_of(tp), part.error_code, None, "ALTER or CLUSTER_ACTION on the cluster")
    return found


def fence(transactional_id: str, timeout_s: float) -> InitProducerIdRequest:
    """Ask for a new epoch, which ends the transaction and all producers of a transactional id.

    Args:
        transactional_id: the id.
        timeout_s: seconds of the call. No transaction is to follow, but brokers up to 3.9 give up as well when the
            replicas of the transaction log take longer than a transaction may.
    """
    timeout_ms = min(max(milliseconds(timeout_s), 1), _LONGEST_FENCE_MS)
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)


def read_fenced(reply: InitProducerIdResponse, transactional_id: str) -> KafkaError | None:
    """How it ended."""
    return _ended(transactional_id, reply.error_code, "WRITE")


def _ended(transactional_id: str, code: int, operation: str) -> KafkaError | None:
    thing = f'transactional id "{transactional_id}"'
    return failure(thing, code, None, f"{operation} on {thing}")
