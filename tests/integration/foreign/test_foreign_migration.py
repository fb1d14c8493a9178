"""Members of a classic group are replaced one by one by those of the new protocol (KIP-848), and back, on real Kafka.

While both are there the coordinator plans for all, and the old ones notice nothing.
"""

from __future__ import annotations

import pytest

from .conftest import JAVA, LIBRDKAFKA, OURS, Clients
from .group import Group, group_of
from .sites import Site

PLANNED = {"protocol": "consumer", "assignor": ""}
WAYS = [
    ("range", (JAVA, LIBRDKAFKA), (OURS, OURS)),
    ("range", (JAVA, LIBRDKAFKA, OURS), (OURS, JAVA, LIBRDKAFKA)),
    ("roundrobin", (LIBRDKAFKA, OURS, JAVA), (JAVA, LIBRDKAFKA, OURS)),
    ("sticky", (JAVA, OURS, JAVA), (OURS, JAVA, LIBRDKAFKA)),
    ("cooperative-sticky", (JAVA, LIBRDKAFKA, OURS), (OURS, OURS, JAVA)),
]


def replace(group: Group, old: dict[str, str], new: tuple[str, ...], how: dict[str, str]) -> dict[str, str]:
    """Each of the old members goes when one of the new has come; the group is at rest in between.

    Args:
        group: which group.
        old: protocols by member.
        new: clients.
        how: what the new members are told.

    Returns:
        Protocols by member.
    """
    for client in new:
        old[group.join(client, **how)] = how["protocol"]
        leaver = next(iter(old))
        del old[leaver]
        group.leave(leaver)
        described = group.settle()
        assert {name: member.kind for name, member in described.members.items()} == old
        assert described.kind == ("consumer" if "consumer" in old.values() else "classic")
        group.check()
    return old


@pytest.mark.parametrize(("assignor", "old", "new"), [
    way if number == 0 else pytest.param(*way, marks=pytest.mark.slow) for number, way in enumerate(WAYS)
], ids=lambda each: each if isinstance(each, str) else "+".join(each))
def test_members_change_from_one_protocol_to_the_other_and_back(
    clients: Clients, kafka: Site, assignor: str, old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    classic = {"protocol": "classic", "assignor": assignor}
    with group_of(clients, kafka) as group:
        members = {group.join(client, **classic): "classic" for client in old}
        members = replace(group, members, new, PLANNED)
        group.fill()
        replace(group, members, old, classic)
        group.fill()
    assert group.committed() == group.ends
