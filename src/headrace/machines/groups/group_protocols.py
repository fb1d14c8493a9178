"""Which kind of group a consumer is a member of, by "group.protocol". The only place that names the kinds.

Read next: `machines.groups.membership` for what all kinds have in common.
"""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from headrace.config import Config
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.groups.classic import ClassicGroup
from headrace.machines.groups.membership import Membership, MembershipFactory

__all__ = ["membership_of"]


def _consumer_group(
    config: Config, subscription: Subscription, metadata: Metadata, finder: CoordinatorFinder
) -> Membership:
    from headrace.machines.groups.consumer_group import ConsumerGroup  # few consumers are members of such a group

    return ConsumerGroup(config, subscription, metadata, finder, uuid4)


_KINDS: Final[dict[str, MembershipFactory]] = {"classic": ClassicGroup, "consumer": _consumer_group}


def membership_of(
    config: Config, subscription: Subscription, metadata: Metadata, finder: CoordinatorFinder
) -> Membership:
    """The member of the group that a consumer's properties name, which has not joined yet.

    Args:
        config: a consumer's configuration with a group id.
        subscription: the topics asked for.
        metadata: partitions of the topics.
        finder: where the coordinator is.
    """
    return _KINDS[config["group.protocol"]](config, subscription, metadata, finder)
