"""Calls about transactions: found, described, fenced; one that hangs is ended where it hangs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace import KafkaError, KafkaException, Producer, TopicPartition
from headrace.admin import AdminClient, OffsetSpec, TransactionListing
from headrace.broker.faults import Action, Fault
from headrace.client.admin.open_transaction_calls import OpenTransactionCalls
from headrace.testing import EmbeddedBroker
from headrace.types.admin import IsolationLevel
from headrace.types.cluster_parts import PartitionProducer
from headrace.wire.messages.producer.transactions import ListTransactionsRequest, WriteTxnMarkersRequest

PATIENCE_S = 10
T0 = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}) as made:
        yield made


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as made:
        yield made


def open_transaction(broker: EmbeddedBroker, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.flush(PATIENCE_S)
    return producer


def test_an_open_transaction_is_listed_described_and_fenced(broker: EmbeddedBroker, admin: AdminClient) -> None:
    producer = open_transaction(broker, "x")
    (listed,) = admin.list_transactions(states=["Ongoing"]).result(PATIENCE_S)
    assert listed == TransactionListing("x", listed.producer_id, "Ongoing")
    found = admin.describe_transactions(["x", "nobody"])
    assert found["x"].result(PATIENCE_S).partitions == {T0}
    with pytest.raises(KafkaException) as missing:
        found["nobody"].result(PATIENCE_S)
    assert missing.value.error == KafkaError.TRANSACTIONAL_ID_NOT_FOUND
    (known,) = [each for each in admin.describe_producers([T0])[T0].result(PATIENCE_S)
                if each.producer_id == listed.producer_id]
    assert known.transaction_start_offset is not None
    assert admin.fence_producers(["x"])["x"].result(PATIENCE_S) is None
    with pytest.raises(KafkaException):
        producer.commit_transaction(PATIENCE_S)
    producer.close()


def test_a_transaction_is_aborted_where_it_began(broker: EmbeddedBroker, admin: AdminClient) -> None:
    def stable() -> int:
        wanted = admin.list_offsets({T0: OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED)
        return wanted[T0].result(PATIENCE_S).offset

    producer = open_transaction(broker, "y")
    begin = stable()
    with pytest.raises(KafkaException) as missing:
        admin.abort_transaction(T0, begin + 1).result(PATIENCE_S)
    assert missing.value.error == KafkaError.INVALID_TXN_STATE
    admin.abort_transaction(T0, begin).result(PATIENCE_S)
    assert stable() == begin + 2  # the record and the marker
    producer.close()


def test_committed_records_of_a_time_are_found_and_no_others(broker: EmbeddedBroker, admin: AdminClient) -> None:
    def first(level: IsolationLevel, spec: OffsetSpec) -> int:
        return admin.list_offsets({T0: spec}, isolation_level=level)[T0].result(PATIENCE_S).offset

    levels = (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
    begin = first(levels[1], OffsetSpec.latest())
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "z"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        later = 4_000_000_000_000
        producer.produce("t", b"v", partition=0, timestamp=later)
        producer.flush(PATIENCE_S)
        assert [first(level, OffsetSpec.for_timestamp(later)) for level in levels] == [begin, -1]
        assert [first(level, OffsetSpec.max_timestamp()) for level in levels] == [begin, -1]
        producer.commit_transaction(PATIENCE_S)
    assert [first(level, OffsetSpec.for_timestamp(later)) for level in levels] == [begin, begin]


def test_a_transaction_is_ended_as_by_the_coordinator_that_ended_the_one_before(
    broker: EmbeddedBroker, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def known(*_: object) -> dict[TopicPartition, list[PartitionProducer]]:
        return {T0: [PartitionProducer(7, 1, None, None, epoch, epoch) for epoch in (3, None)]}

    asked: list[WriteTxnMarkersRequest] = []
    monkeypatch.setattr(OpenTransactionCalls, "_producers", known)
    broker.add_fault(Fault(action=Action.ERROR, request=WriteTxnMarkersRequest, times=None,
                           error_code=KafkaError.CLUSTER_AUTHORIZATION_FAILED,
                           when=lambda request: asked.append(request) or True))
    for begin in 3, None:
        with pytest.raises(KafkaException):
            admin.abort_transaction(T0, begin).result(PATIENCE_S)  # type: ignore[arg-type]
    broker.clear_faults()
    assert [request.markers[0].coordinator_epoch for request in asked] == [3, 0]


def test_a_broker_that_does_not_list_transactions_is_an_error(broker: EmbeddedBroker, admin: AdminClient) -> None:
    broker.add_fault(Fault(action=Action.ERROR, request=ListTransactionsRequest,
                           error_code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
    with pytest.raises(KafkaException) as refused:
        admin.list_transactions().result(PATIENCE_S)
    broker.clear_faults()
    assert refused.value.error == KafkaError.COORDINATOR_LOAD_IN_PROGRESS


def test_partitions_and_ids_must_be_named(admin: AdminClient) -> None:
    with pytest.raises(ValueError, match="empty"):
        admin.describe_transactions([])
    with pytest.raises(ValueError, match="no partition"):
        admin.abort_transaction(TopicPartition("t"), 0)
