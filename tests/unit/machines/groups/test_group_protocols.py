"""The kind of group is chosen by "group.protocol"."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.config import CONSUMER, Config
from headrace.errors import ConfigError
from headrace.machines.cluster.coordinator import GROUP, CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.groups.classic import ClassicGroup
from headrace.machines.groups.consumer_group import ConsumerGroup
from headrace.machines.groups.group_protocols import membership_of
from headrace.machines.groups.membership import Membership


def member(**properties: Any) -> Membership:
    config = Config(CONSUMER, {"bootstrap.servers": "h:1", "group.id": "g", **properties})
    return membership_of(config, Subscription("g", "latest"), Metadata([("h", 1)]), CoordinatorFinder(GROUP, "g"))


@pytest.mark.parametrize("properties", [{}, {"group.protocol": "classic"}])
def test_the_classic_protocol_is_what_is_spoken_unless_another_is_asked_for(properties: dict[str, Any]) -> None:
    assert isinstance(member(**properties), ClassicGroup)


def test_a_protocol_that_is_not_spoken_is_refused_before_there_is_a_member() -> None:
    with pytest.raises(ConfigError, match=r"group\.protocol"):
        member(**{"group.protocol": "streams"})


def test_each_member_that_the_coordinator_plans_for_has_an_id_of_its_own() -> None:
    one, other = (member(**{"group.protocol": "consumer"}) for _ in range(2))
    assert isinstance(one, ConsumerGroup)
    assert isinstance(other, ConsumerGroup)
    assert one.member_id != other.member_id


@pytest.mark.parametrize(("name", "value"), [
    ("session.timeout.ms", 6000), ("heartbeat.interval.ms", 1000), ("partition.assignment.strategy", "range")])
def test_what_the_coordinator_decides_cannot_be_given_by_a_member(name: str, value: Any) -> None:
    member(**{name: value})
    with pytest.raises(ConfigError, match=f'"{name}" cannot be given with "group.protocol": "consumer"'):
        member(**{"group.protocol": "consumer", name: value})
