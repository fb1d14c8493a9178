"""Calls about consumer groups: all kinds are listed and described, members put out, groups deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException
from headrace.admin import AdminClient
from headrace.testing import EmbeddedBroker

PATIENCE_S = 10
EVERY_TYPE = {"classic": ConsumerGroupType.CLASSIC, "consumer": ConsumerGroupType.CONSUMER}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2}) as made:
        yield made


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as made:
        yield made


def member(broker: EmbeddedBroker, group: str, protocol: str = "classic", **properties: Any) -> Consumer:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "group.protocol": protocol,
                         "auto.offset.reset": "earliest", **properties})
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(0.1)
    return consumer


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_found_with_its_members_and_deleted_when_they_are_gone(
    broker: EmbeddedBroker, admin: AdminClient, protocol: str
) -> None:
    group, kind = f"group-{protocol}", EVERY_TYPE[protocol]
    with member(broker, group, protocol):
        listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}, types={kind}).result(PATIENCE_S)
        assert [(each.group_id, each.type, each.state) for each in listed.valid or ()] == [
            (group, kind, ConsumerGroupState.STABLE)]
        found = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
        assert (found.type, found.state, found.is_simple_consumer_group) == (kind, ConsumerGroupState.STABLE, False)
        assert sorted(tp.partition for tp in found.members[0].assignment.topic_partitions) == [0, 1]
        assert (found.members[0].target_assignment is not None) == (protocol == "consumer")
        assert found.coordinator is not None
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
        assert refused.value.error == KafkaError.NON_EMPTY_GROUP
    assert admin.delete_consumer_groups([group])[group].result(PATIENCE_S) is None


def test_a_group_that_is_not_there_is_described_as_dead(admin: AdminClient) -> None:
    found = admin.describe_consumer_groups(["nobody"])["nobody"].result(PATIENCE_S)
    assert (found.state, found.members) == (ConsumerGroupState.DEAD, [])


def test_members_are_put_out(broker: EmbeddedBroker, admin: AdminClient) -> None:
    with member(broker, "put-out") as consumer:
        (name,) = admin.remove_members_from_consumer_group("put-out").result(PATIENCE_S)
        assert name == consumer.memberid()
        assert admin.describe_consumer_groups(["put-out"])["put-out"].result(PATIENCE_S).members == []
    assert admin.remove_members_from_consumer_group("put-out").result(PATIENCE_S) == {}


def test_classic_groups_are_listed_with_their_members_bytes(broker: EmbeddedBroker, admin: AdminClient) -> None:
    with member(broker, "listed"):
        with pytest.deprecated_call():
            (group,) = admin.list_groups("listed", PATIENCE_S)
        assert (group.id, group.state, group.protocol_type, len(group.members)) == ("listed", "Stable", "consumer", 1)
        assert group.members[0].assignment


def test_a_group_that_is_not_classic_is_listed_with_them_as_dead_and_without_an_error(
    broker: EmbeddedBroker, admin: AdminClient
) -> None:
    with member(broker, "planned", "consumer"), pytest.deprecated_call():
        (group,) = admin.list_groups("planned", PATIENCE_S)
    assert (group.state, group.error, group.members) == ("Dead", None, [])


@pytest.mark.parametrize("given", [
    {"states": [ConsumerGroupState.EMPTY]}, {"states": {"Empty"}}, {"types": [ConsumerGroupType.CLASSIC]},
    {"types": {2}}, {"group_types": set()}])
def test_states_and_types_are_sets_of_members(admin: AdminClient, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        admin.list_consumer_groups(**given)


def test_no_group_is_of_unknown_type(admin: AdminClient) -> None:
    with pytest.raises(ValueError, match="no group is of that type"):
        admin.list_consumer_groups(types={ConsumerGroupType.UNKNOWN})
