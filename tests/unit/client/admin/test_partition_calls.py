"""Calls about partitions: offsets are found, records deleted, leaders elected, moves listed."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

from headrace import ElectionType, KafkaError, KafkaException, Producer, TopicPartition
from headrace.admin import AdminClient, IsolationLevel, OffsetSpec
from headrace.testing import EmbeddedBroker
from tests.support.same_as_confluent import QUIET, same

PATIENCE_S = 10
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2, "u": 1}) as made:
        with Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
            for number in range(10):
                producer.produce("t", str(number).encode(), partition=0, timestamp=1000 + number)
                producer.produce("u", str(number).encode())
        yield made


@pytest.fixture(scope="module")
def admin(broker: EmbeddedBroker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as made:
        yield made


@pytest.mark.parametrize(("spec", "offset"), [
    (OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 10), (OffsetSpec.max_timestamp(), 9),
    (OffsetSpec.for_timestamp(1004), 4), (OffsetSpec(1004), 4), (OffsetSpec(-1), 10)])
def test_offsets_are_found_by_what_is_asked_for(admin: AdminClient, spec: OffsetSpec, offset: int) -> None:
    found = admin.list_offsets({T0: spec}, isolation_level=IsolationLevel.READ_COMMITTED)
    assert found[T0].result(PATIENCE_S).offset == offset


def test_records_before_an_offset_are_deleted_and_an_offset_that_is_none_is_refused(admin: AdminClient) -> None:
    wanted = [TopicPartition("u", 0, 3), TopicPartition("t", 1), TopicPartition("nowhere", 0, 1)]
    found = admin.delete_records(wanted)
    assert found[TopicPartition("u", 0)].result(PATIENCE_S).low_watermark == 3
    for partition, code in ((T1, KafkaError.OFFSET_OUT_OF_RANGE),
                            (TopicPartition("nowhere", 0), KafkaError.UNKNOWN_TOPIC_OR_PART)):
        with pytest.raises(KafkaException) as refused:
            found[partition].result(PATIENCE_S)
        assert refused.value.error.code() == code
    assert admin.delete_records([]) == {}


def test_a_leader_that_is_the_preferred_one_is_not_elected_again(admin: AdminClient) -> None:
    found = admin.elect_leaders(ElectionType.PREFERRED, [T0]).result(PATIENCE_S)
    assert found == {T0: KafkaError.ELECTION_NOT_NEEDED}
    assert admin.elect_leaders(ElectionType.PREFERRED).result(PATIENCE_S) == {}


def test_partitions_of_an_election_have_their_errors(admin: AdminClient, broker: EmbeddedBroker) -> None:
    conf = {"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET}

    def elected(kafka: ModuleType) -> Any:
        client = confluent_kafka.admin.AdminClient(conf) if kafka is confluent_kafka else admin
        found = client.elect_leaders(
            kafka.ElectionType.PREFERRED, [kafka.TopicPartition("t", 0), kafka.TopicPartition("nowhere", 0)])
        return {tp.topic: (tp.offset, tp.error.code(), error.code())
                for tp, error in found.result(PATIENCE_S).items()}

    assert same(elected)["t"] == (0, *[KafkaError.ELECTION_NOT_NEEDED] * 2)


def test_nothing_moves_where_there_is_one_broker(admin: AdminClient) -> None:
    assert admin.alter_partition_reassignments({T0: [1]})[T0].result(PATIENCE_S) is None
    assert admin.list_partition_reassignments().result(PATIENCE_S) == {}
    with pytest.raises(KafkaException) as refused:
        admin.alter_partition_reassignments({T0: [2]})[T0].result(PATIENCE_S)
    assert refused.value.error.code() == KafkaError.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(("given", "error"), [
    ((0,), TypeError), ((ElectionType.PREFERRED, "t"), TypeError), ((ElectionType.UNCLEAN, [1]), TypeError),
    ((ElectionType.PREFERRED, [TopicPartition("t")]), ValueError)])
def test_an_election_needs_a_kind_and_partitions_with_numbers(
    admin: AdminClient, given: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        admin.elect_leaders(*given)


def test_the_partition_behind_the_last_is_not_there(admin: AdminClient) -> None:
    behind = TopicPartition("t", 2)
    (told,) = admin.elect_leaders(ElectionType.PREFERRED, [behind]).result(PATIENCE_S).values()
    assert told == KafkaError.UNKNOWN_TOPIC_OR_PART
    with pytest.raises(KafkaException) as refused:
        admin.alter_partition_reassignments({behind: [1]})[behind].result(PATIENCE_S)
    assert refused.value.error == KafkaError.UNKNOWN_TOPIC_OR_PART
