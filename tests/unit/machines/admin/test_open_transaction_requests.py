"""Transactions and producers as values: what is asked survives the wire, unknown numbers are None."""

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import open_transaction_requests as admin
from headrace.types.cluster_parts import PartitionProducer, TransactionDescription, TransactionListing
from headrace.types.records import TopicPartition
from headrace.wire.messages.producer import transactions as wire
from headrace.wire.messages.producer.produce import InitProducerIdResponse
from tests.support.travelling import travels

A0 = TopicPartition("a", 0)


def test_transactions_are_listed_by_state_producer_age_and_name() -> None:
    request = travels(admin.list_transactions(["Ongoing"], [7], 500, "x.*"), 2, 2)
    assert (request.state_filters, request.producer_id_filters, request.duration_filter,
            request.transactional_id_pattern) == (["Ongoing"], [7], 500, "x.*")
    reply = wire.ListTransactionsResponse(transaction_states=[
        wire.ListedTransaction(transactional_id="x", producer_id=7, transaction_state="Ongoing")])
    assert admin.read_transactions_listed(reply) == [TransactionListing("x", 7, "Ongoing")]
    with pytest.raises(KafkaException):
        admin.read_transactions_listed(wire.ListTransactionsResponse(error_code=15))


def test_a_transaction_that_is_not_open_has_no_begin() -> None:
    assert travels(admin.describe_transactions(["x"]), 0, 0).transactional_ids == ["x"]
    reply = wire.DescribeTransactionsResponse(transaction_states=[
        wire.DescribedTransaction(transactional_id="x", transaction_state="Ongoing", transaction_timeout_ms=60,
                                  transaction_start_time_ms=1000, producer_id=7, producer_epoch=1,
                                  topics=[wire.TransactionTopic(topic="a", partitions=[0])]),
        wire.DescribedTransaction(transactional_id="y", transaction_state="Empty", transaction_start_time_ms=-1),
        wire.DescribedTransaction(transactional_id="z", error_code=53)])
    found = admin.read_transactions(reply, 3)
    assert found["x"] == TransactionDescription(3, "Ongoing", 7, 1, 60, 1000, {A0})
    quiet, refused = found["y"], found["z"]
    assert isinstance(quiet, TransactionDescription)
    assert quiet.transaction_start_time_ms is None
    assert isinstance(refused, KafkaError)
    assert refused.str().endswith('this needs DESCRIBE on transactional id "z"')


def test_what_a_leader_does_not_know_of_a_producer_is_none() -> None:
    assert travels(admin.describe_producers([A0]), 0, 0).topics[0].partition_indexes == [0]
    state = wire.ProducerState(producer_id=7, producer_epoch=1, last_sequence=5, last_timestamp=-1,
                               coordinator_epoch=-1, current_txn_start_offset=30)
    reply = wire.DescribeProducersResponse(topics=[wire.ProducersTopicResponse(name="a", partitions=[
        wire.ProducersPartitionResponse(partition_index=0, active_producers=[state])])])
    assert admin.read_producers(reply) == {A0: [PartitionProducer(7, 1, 5, None, None, 30)]}


def test_a_transaction_that_hangs_is_aborted_in_one_partition() -> None:
    (marker,) = travels(admin.abort(A0, 7, 1, 4), 1, 2).markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result, marker.coordinator_epoch) == (
        7, 1, False, 4)
    reply = wire.WriteTxnMarkersResponse(markers=[wire.WritableTxnMarkerResult(producer_id=7, topics=[
        wire.WritableTxnMarkerTopicResult(name="a", partitions=[
            wire.WritableTxnMarkerPartitionResult(partition_index=0, error_code=31)])])])
    error = admin.read_aborted(reply)[A0]
    assert error is not None
    assert error.str().endswith("this needs ALTER or CLUSTER_ACTION on the cluster")


@pytest.mark.parametrize(("timeout_s", "timeout_ms"), [(0.0001, 1), (1.5, 1500), (3600, 60_000)])
def test_a_broker_that_fences_may_take_the_time_of_the_call_for_its_replicas(timeout_s: float, timeout_ms: int) -> None:
    assert admin.fence("x", timeout_s).transaction_timeout_ms == timeout_ms


def test_producers_are_fenced_by_a_new_epoch() -> None:
    assert travels(admin.fence("x", 5), 0, 4).transactional_id == "x"
    assert admin.read_fenced(InitProducerIdResponse(), "x") is None
    error = admin.read_fenced(InitProducerIdResponse(error_code=53), "x")
    assert error is not None
    assert error.str().endswith('this needs WRITE on transactional id "x"')
