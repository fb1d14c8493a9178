"""A member is killed: the others get its partitions when its session is over, and go on where it had committed."""

from __future__ import annotations

import pytest

from .conftest import JAVA, KAFKA_LATER, KAFKAJS, LIBRDKAFKA, OURS, SESSION_MS, Clients
from .group import group_of
from .sites import Site

WHO = [
    ("classic", "cooperative-sticky", JAVA),
    *(("classic", "range", victim) for victim in (OURS, LIBRDKAFKA, KAFKAJS)),
    *(("classic", "cooperative-sticky", victim) for victim in (OURS, LIBRDKAFKA)),
    *(("consumer", "uniform", victim) for victim in (OURS, JAVA, LIBRDKAFKA)),
]


@KAFKA_LATER
@pytest.mark.parametrize(("protocol", "assignor", "victim"), [
    who if number == 0 else pytest.param(*who, marks=pytest.mark.slow) for number, who in enumerate(WHO)])
def test_the_others_take_over_from_a_member_that_is_killed(
    clients: Clients, site: Site, protocol: str, assignor: str, victim: str
) -> None:
    """It came first, and so is the leader of a classic group."""
    with group_of(clients, site, assignor, protocol, session_ms=SESSION_MS) as group:
        killed = group.join(victim, alone=True)
        for client in (OURS, JAVA, LIBRDKAFKA):
            group.join(client)
        group.fill()
        group.wait_committed()
        group.kill(killed)
        described = group.settle()
        assert killed not in described.members
        group.fill()
    assert group.committed() == group.ends
