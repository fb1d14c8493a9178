"""Static members (KIP-345) of different clients: the name counts, not the client that bears it."""

from __future__ import annotations

import pytest

from headrace import KafkaError

from .conftest import JAVA, KAFKA_LATER, LIBRDKAFKA, OURS, Clients
from .group import EACH, group_of, wait
from .sites import Site

PAIRS = [(OURS, JAVA), (JAVA, LIBRDKAFKA), (LIBRDKAFKA, OURS)]


@pytest.mark.parametrize(("site", "protocol", "assignor"), [
    ("embedded", "classic", "range"), ("kafka", "consumer", "uniform"),
    pytest.param("kafka", "classic", "range", marks=pytest.mark.slow),
    pytest.param("embedded", "consumer", "uniform", marks=pytest.mark.slow)], indirect=["site"])
def test_a_static_member_comes_back_to_its_partitions_as_another_client(
    clients: Clients, site: Site, protocol: str, assignor: str
) -> None:
    with group_of(clients, site, assignor, protocol) as group:
        names = [group.join(first, instance=instance, name=f"{group.name}-{instance}")
                 for instance, (first, _) in zip("abc", PAIRS, strict=True)]
        described = group.settle()
        assert [described.members[name].instance for name in names] == ["a", "b", "c"]
        for instance, name, (_, second) in zip("abc", names, PAIRS, strict=True):
            group.leave(name)
            group.write(EACH)  # what goes to its partitions waits for it
            group.join(second, instance=instance, name=name)
            assert group.settle().held == described.held
        group.fill()
    assert group.committed() == group.ends


@KAFKA_LATER
@pytest.mark.parametrize("pair", [
    PAIRS[0], *(pytest.param(pair, marks=pytest.mark.slow) for pair in PAIRS[1:])], ids="-by-".join)
def test_a_member_is_fenced_by_a_second_one_of_its_name(
    clients: Clients, site: Site, pair: tuple[str, str]
) -> None:
    first, second = pair
    with group_of(clients, site, "range") as group:
        fenced = group.join(first, instance="a")
        group.wait_committed()  # as the first one cannot any more when it learns of the second
        stays = group.join(second, instance="a", settle=False)
        wait(lambda: KafkaError.FENCED_INSTANCE_ID in group.errors(fenced), lambda: group.errors(fenced))
        wait(lambda: group.assignment(stays) == set(group.keys), lambda: group.assignment(stays))
        group.leave(fenced)
        group.fill()


@KAFKA_LATER
@pytest.mark.parametrize("pair", [
    PAIRS[0], *(pytest.param(pair, marks=pytest.mark.slow) for pair in PAIRS[1:])], ids="-before-".join)
def test_where_the_coordinator_plans_the_second_of_a_name_is_refused(
    clients: Clients, site: Site, pair: tuple[str, str]
) -> None:
    first, second = pair
    with group_of(clients, site, protocol="consumer") as group:
        group.join(first, instance="a")
        refused = group.join(second, instance="a", settle=False)
        wait(lambda: KafkaError.UNRELEASED_INSTANCE_ID in group.errors(refused), lambda: group.errors(refused))
        group.leave(refused)
        group.settle()
        group.fill()
