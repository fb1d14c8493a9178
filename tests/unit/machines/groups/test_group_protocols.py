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
        member(**{"group.protocol": "consumer"})
