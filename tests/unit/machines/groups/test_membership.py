"""What every kind of group has that a consumer may be a member of."""

from __future__ import annotations

import inspect
from typing import Any
from uuid import uuid4

import pytest

from headrace.config import CONSUMER, Config
from headrace.errors import KafkaException
from headrace.machines.cluster.coordinator import GROUP, CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.groups.classic import ClassicGroup
from headrace.machines.groups.consumer_group import ConsumerGroup
from headrace.machines.groups.membership import Membership, MembershipFactory, heartbeat_timeout_s
from headrace.machines.producer.transaction_requests import ConsumerGroupMetadata
from tests.support.static_membership import StaticMembership


def consumer_group(*parts: Any) -> Membership:
    return ConsumerGroup(*parts, uuid4)


KINDS: list[MembershipFactory] = [ClassicGroup, consumer_group, StaticMembership]
FOREVER = float("inf")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def made(kind: MembershipFactory, **properties: Any) -> tuple[Membership, Subscription]:
    config = Config(CONSUMER, {"bootstrap.servers": "h:1", "group.id": "g", **properties})
    subscription = Subscription("g", "latest")
    return kind(config, subscription, Metadata([("h", 1)]), CoordinatorFinder(GROUP, "g")), subscription


def test_it_has_all_that_the_protocol_names(kind: MembershipFactory) -> None:
    member, _ = made(kind)
    wanted = {name for name, _ in inspect.getmembers(Membership) if not name.startswith("_")}
    assert wanted | set(Membership.__annotations__) <= set(dir(member))


def test_it_is_nobody_and_holds_nothing_before_it_is_subscribed(kind: MembershipFactory) -> None:
    member, _ = made(kind)
    assert member.identity == ConsumerGroupMetadata("g")
    assert (member.is_outside, member.stalled, member.application_at) == (True, False, FOREVER)
    assert (member.owned, member.planned_topics) == (frozenset(), frozenset())


def test_the_time_between_two_polls_begins_with_the_subscription(kind: MembershipFactory) -> None:
    member, subscription = made(kind)
    member.subscribe(["t"], 5.0)
    assert subscription.names == {"t"}
    assert member.application_at == 5.0
    member.subscribe(["u"], 6.0)
    assert subscription.names == {"u"}
    assert member.application_at == 5.0, "the application has not polled meanwhile"
    subscription.subscribe([])
    member.leave()
    member.subscribe(["u"], 900.0)
    assert member.application_at == 900.0, "nobody had to poll in between"


def test_who_subscribes_to_something_else_within_a_poll_stays_inside(kind: MembershipFactory) -> None:
    member, _ = made(kind)
    member.subscribe(["t"], 5.0)
    member.application_at = FOREVER
    member.subscribe(["u"], 6.0)
    assert member.application_at == FOREVER


def test_a_subscription_that_is_refused_changes_nothing(kind: MembershipFactory) -> None:
    member, subscription = made(kind)
    with pytest.raises(KafkaException, match="empty topic name"):
        member.subscribe([""], 5.0)
    assert not subscription.is_subscribed
    assert (member.is_outside, member.application_at) == (True, FOREVER)


@pytest.mark.parametrize("kind", [ClassicGroup, consumer_group])
def test_a_member_of_a_group_keeps_its_instance_id_while_it_is_nobody(kind: MembershipFactory) -> None:
    member, _ = made(kind, **{"group.instance.id": "one"})
    assert member.identity == ConsumerGroupMetadata("g", -1, "", "one")


@pytest.mark.parametrize(("interval_s", "request_timeout_s", "timeout_s"), [(5, 60, 15), (0.5, 60, 10), (5, 7, 7)])
def test_a_heartbeat_waits_for_three_intervals_at_least_ten_seconds_and_no_longer_than_any_request(
    interval_s: float, request_timeout_s: float, timeout_s: float
) -> None:
    assert heartbeat_timeout_s(interval_s, request_timeout_s) == timeout_s
