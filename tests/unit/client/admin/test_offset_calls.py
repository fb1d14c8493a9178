"""Calls about the offsets of groups: set, found, moved and forgotten; a dry run does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

from headrace import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from headrace.admin import AdminClient, OffsetReset, OffsetSpec
from headrace.broker.faults import Action, Fault
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.consumer.offsets import OffsetCommitRequest, OffsetFetchRequest
from tests.support.same_as_confluent import QUIET, same

PATIENCE_S = 10
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2}) as made:
        with Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
            for number in range(10):
                producer.produce("t", str(number).encode(), partition=0, timestamp=1000 + number)
        yield made


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as made:
        made.delete_consumer_groups(["g"])["g"].exception(PATIENCE_S)
        wanted = [ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 4, "note"), TopicPartition("t", 1, 0)])]
        found = made.alter_consumer_group_offsets(wanted)["g"].result(PATIENCE_S)
        assert [tp.error for tp in found.topic_partitions or ()] == [None, None]
        yield made


def offsets(admin: AdminClient) -> dict[int, int]:
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")])["g"].result(PATIENCE_S)
    return {tp.partition: tp.offset for tp in found.topic_partitions or ()}


def test_offsets_are_found_with_what_was_stored_beside_them(admin: AdminClient) -> None:
    wanted = ConsumerGroupTopicPartitions("g", [T0, TopicPartition("t", 5)])
    found = admin.list_consumer_group_offsets([wanted], require_stable=True)["g"].result(PATIENCE_S)
    assert found.group_id == "g"
    assert [(tp.partition, tp.offset, tp.metadata) for tp in found.topic_partitions or ()] == [
        (0, 4, "note"), (5, -1001, None)]


def test_offsets_come_in_the_order_in_which_they_were_asked_for(admin: AdminClient) -> None:
    places = [("t", 1), ("missing", 0), ("t", 0)]
    wanted = ConsumerGroupTopicPartitions("g", [TopicPartition(*place) for place in places])
    found = admin.list_consumer_group_offsets([wanted])["g"].result(PATIENCE_S)
    assert [(tp.topic, tp.partition) for tp in found.topic_partitions or ()] == places


def test_offsets_are_forgotten_by_partition(admin: AdminClient) -> None:
    assert admin.delete_consumer_group_offsets("g", [T0])[T0].result(PATIENCE_S) is None
    assert offsets(admin) == {1: 0}


@pytest.mark.parametrize(("where", "after"), [
    ({"to": OffsetSpec.earliest()}, 0), ({"to": OffsetSpec.latest()}, 10), ({"to": OffsetSpec.for_timestamp(1007)}, 7),
    ({"to": OffsetSpec.for_timestamp(5000)}, 10), ({"shift_by": 3}, 7), ({"shift_by": -100}, 0),
    ({"shift_by": 100}, 10), ({"by_duration": 10.0}, 10), ({"by_duration": 1e10}, 0)], ids=str)
def test_a_group_is_reset_and_a_dry_run_only_says_so(admin: AdminClient, where: dict[str, Any], after: int) -> None:
    said = admin.reset_consumer_group_offsets("g", [T0], **where, dry_run=True).result(PATIENCE_S)
    assert said == {T0: OffsetReset(4, after)}
    assert offsets(admin)[0] == 4
    assert admin.reset_consumer_group_offsets("g", [T0], **where).result(PATIENCE_S) == said
    assert offsets(admin) == {0: after, 1: 0}


def test_offsets_of_a_group_with_members_are_refused_partition_by_partition(
    admin: AdminClient, broker: EmbeddedBroker
) -> None:
    conf = {"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET}
    with Consumer({**conf, "group.id": "busy"}) as consumer:
        consumer.subscribe(["t"])
        while not consumer.assignment():
            consumer.poll(0.1)

        def altered(kafka: ModuleType) -> Any:
            client = confluent_kafka.admin.AdminClient(conf) if kafka is confluent_kafka else admin
            wanted = [kafka.TopicPartition("t", number, 5) for number in range(2)]
            futures = client.alter_consumer_group_offsets([kafka.ConsumerGroupTopicPartitions("busy", wanted)])
            found = futures["busy"].result(PATIENCE_S).topic_partitions
            return [(tp.partition, tp.offset, tp.error.code()) for tp in found]

        assert same(altered) == [(number, 5, KafkaError.UNKNOWN_MEMBER_ID) for number in range(2)]


@pytest.mark.parametrize("request_type", [OffsetFetchRequest, OffsetCommitRequest])
def test_a_reset_of_which_a_partition_is_refused_is_none(
    broker: EmbeddedBroker, admin: AdminClient, request_type: type
) -> None:
    broker.add_fault(Fault(action=Action.ERROR, request=request_type,
                           error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaException) as refused:
        admin.reset_consumer_group_offsets("g", [T0], shift_by=1).result(PATIENCE_S)
    broker.clear_faults()
    assert refused.value.error == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert offsets(admin) == {0: 4, 1: 0}


def test_without_partitions_all_that_the_group_has_are_reset(admin: AdminClient) -> None:
    assert admin.reset_consumer_group_offsets("g", to=OffsetSpec.latest()).result(PATIENCE_S) == {
        T0: OffsetReset(4, 10), T1: OffsetReset(0, 0)}
    assert admin.reset_consumer_group_offsets("nobody", to=OffsetSpec.latest()).result(PATIENCE_S) == {}


def test_what_the_group_has_no_offset_of_can_be_set_and_not_shifted(admin: AdminClient) -> None:
    admin.delete_consumer_group_offsets("g", [T1])[T1].result(PATIENCE_S)
    assert admin.reset_consumer_group_offsets("g", [T1], to=OffsetSpec.latest()).result(PATIENCE_S) == {
        T1: OffsetReset(-1, 0)}
    admin.delete_consumer_group_offsets("g", [T1])[T1].result(PATIENCE_S)
    with pytest.raises(KafkaException) as refused:
        admin.reset_consumer_group_offsets("g", [T1], shift_by=1).result(PATIENCE_S)
    assert refused.value.error == KafkaError._NO_OFFSET


@pytest.mark.parametrize("where", [{}, {"to": OffsetSpec.latest(), "shift_by": 1}])
def test_a_reset_goes_to_one_place(admin: AdminClient, where: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give one of"):
        admin.reset_consumer_group_offsets("g", **where)


G = ConsumerGroupTopicPartitions


@pytest.mark.parametrize(("given", "error"), [
    (None, TypeError), ("", TypeError), ([], ValueError), ([G("a"), G("b")], ValueError), ([G("")], ValueError),
    ([G("g", [])], ValueError), ([G("g", [TopicPartition("", 0)])], ValueError),
    ([G("g", [TopicPartition("t")])], ValueError), ([1], TypeError)])
def test_both_calls_take_one_group_with_numbered_partitions(
    admin: AdminClient, given: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        admin.list_consumer_group_offsets(given)
    with pytest.raises(error):
        admin.alter_consumer_group_offsets(given)


def test_offsets_are_given_where_they_are_set_and_only_there(admin: AdminClient) -> None:
    with pytest.raises(ValueError, match="has an offset"):
        admin.list_consumer_group_offsets([G("g", [TopicPartition("t", 0, 1)])])
    for wrong in (G("g"), G("g", [T0]), G("g", [TopicPartition("t", 0, -2)])):
        with pytest.raises(ValueError, match="offset"):
            admin.alter_consumer_group_offsets([wrong])
