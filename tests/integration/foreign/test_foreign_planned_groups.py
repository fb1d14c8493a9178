"""Groups that the coordinator plans for (KIP-848), whose members are Java's, librdkafka's and ours."""

from __future__ import annotations

from collections import Counter

import pytest

from .conftest import JAVA, KAFKA_LATER, LIBRDKAFKA, OURS, Clients
from .descriptions import Key
from .group import PARTITIONS, group_of, wait
from .sites import Site


@pytest.mark.parametrize(("assignor", "members"), [
    ("uniform", (OURS, JAVA, LIBRDKAFKA)),
    ("range", (LIBRDKAFKA, OURS, JAVA)),
    pytest.param("uniform", (JAVA, LIBRDKAFKA, OURS, OURS, LIBRDKAFKA, JAVA), marks=pytest.mark.slow),
    pytest.param("range", (JAVA, LIBRDKAFKA, OURS, OURS, LIBRDKAFKA, JAVA), marks=pytest.mark.slow),
], ids=["uniform", "range", "uniform of six", "range of six"])
def test_members_of_different_clients_share_a_topic(
    clients: Clients, site: Site, assignor: str, members: tuple[str, ...]
) -> None:
    before: dict[str, frozenset[Key]] = {}
    with group_of(clients, site, assignor, "consumer") as group:
        for member in members:
            group.join(member)
            described = group.settle()
            assert described.assignor == assignor
            if assignor == "uniform":
                assert all(described.held[name] <= had for name, had in before.items())
            before = described.held
        group.fill()
        for leaver in list(group.members)[:-1]:
            group.leave(leaver)
            group.settle()
        group.fill()
    assert group.committed() == group.ends


@KAFKA_LATER
def test_the_assignor_that_most_members_ask_for_plans(clients: Clients, site: Site) -> None:
    with group_of(clients, site, protocol="consumer") as group:
        group.join(OURS, assignor="range")
        assert group.settle().assignor == "range"
        for client in (JAVA, LIBRDKAFKA):
            group.join(client, assignor="uniform")
        described = group.settle()
        assert described.assignor == "uniform"
        group.fill()


@KAFKA_LATER
def test_members_that_name_their_topics_by_a_pattern_read_beside_those_that_list_them(
    clients: Clients, site: Site
) -> None:
    """The coordinator matches the whole name: `group` does not mean `group-1`."""
    with group_of(clients, site, "uniform", "consumer", topics=2) as group:
        first, second = group.topics
        for client in (OURS, JAVA, LIBRDKAFKA):
            group.join(client, pattern=f"{first}(-[0-9])?")
        listing = group.join(OURS)
        half = group.join(JAVA, pattern=f"{first}-1", settle=False)
        wait(lambda: {topic for topic, _ in group.assignment(half)} == {second}, lambda: group.assignment(half))
        group.settle(evenly=False)
        assert {topic for topic, _ in group.assignment(listing)} <= {first, second}
        group.fill()


@pytest.mark.slow
@pytest.mark.parametrize("client", [OURS, JAVA, LIBRDKAFKA])
def test_a_topic_that_comes_later_is_found_by_a_pattern(clients: Clients, site: Site, client: str) -> None:
    with group_of(clients, site, protocol="consumer") as group:
        for member in (client, OURS):
            group.join(member, pattern=f"{group.name}(-later)?")
        group.add_topic(f"{group.name}-later")
        described = group.settle()
        held = Counter(topic for share in described.held.values() for topic, _ in share)
        assert held == dict.fromkeys(group.topics, PARTITIONS)
        group.fill()
