"""Classic groups whose members are different clients: all read, nobody reads twice, and what was read is committed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, pairwise

import pytest

from headrace import KafkaError

from .client import Record
from .conftest import FRANZ_GO, JAVA, KAFKA_LATER, KAFKAJS, LIBRDKAFKA, OURS, Clients, make_topic
from .descriptions import Key
from .group import EACH, Group, group_of, wait
from .samples import TIME_MS
from .sites import Site

_NUMBERS = count()


def come_and_go(group: Group, members: Sequence[str], *, sticky: bool) -> None:
    """Members come one by one, and go, the leader first each time; sticky ones keep of theirs what they can."""
    before: dict[str, frozenset[Key]] = {}
    for member in members:
        group.join(member)
        after = group.settle().held
        if sticky:
            assert all(after[name] <= had for name, had in before.items()), (before, after)
        before = after
    group.fill()
    for leaver in list(group.members)[:-1]:
        group.leave(leaver)
        after = group.settle().held
        if sticky:
            assert all(before[name] <= has for name, has in after.items()), (before, after)
        before = after
    group.fill()


@pytest.mark.parametrize(("assignor", "members"), [
    ("range", (OURS, LIBRDKAFKA, FRANZ_GO, JAVA, KAFKAJS)),
    ("roundrobin", (JAVA, FRANZ_GO, OURS, LIBRDKAFKA, KAFKAJS)),
    ("sticky", (OURS, JAVA, OURS, JAVA)),
    ("cooperative-sticky", (FRANZ_GO, OURS, JAVA, LIBRDKAFKA)),
    ("RoundRobinAssigner", (KAFKAJS, KAFKAJS, KAFKAJS)),
], ids=["range", "roundrobin", "sticky", "cooperative-sticky", "kafkajs"])
def test_members_of_different_clients_share_a_topic(
    clients: Clients, site: Site, assignor: str, members: tuple[str, ...]
) -> None:
    with group_of(clients, site, assignor) as group:
        come_and_go(group, members, sticky="sticky" in assignor)
    assert group.committed() == group.ends


MEMBERS = {
    "range": (OURS, JAVA, LIBRDKAFKA, KAFKAJS), "roundrobin": (OURS, JAVA, LIBRDKAFKA, KAFKAJS),
    "sticky": (OURS, JAVA, FRANZ_GO, KAFKAJS), "cooperative-sticky": (OURS, JAVA, LIBRDKAFKA, FRANZ_GO),
}
"""Who knows an assignor. librdkafka has no eager `sticky`, kafkajs nothing cooperative; its eager ones are ours.

Where all are `sticky`, franz-go's and kafkajs's leaders move what they need not.
"""


@pytest.mark.slow
@pytest.mark.parametrize(("assignor", "leader"), [
    (assignor, leader) for assignor, members in MEMBERS.items() for leader in members])
def test_each_client_leads_members_of_all_others(clients: Clients, site: Site, assignor: str, leader: str) -> None:
    """The first member is the leader: it plans for subscriptions of versions 0 to 3, with four kinds of user data."""
    others = [member for member in MEMBERS[assignor] if member != leader]
    with group_of(clients, site, assignor) as group:
        come_and_go(group, [leader, *others, leader], sticky=assignor == "cooperative-sticky")
    assert group.committed() == group.ends


@KAFKA_LATER
def test_a_group_uses_the_assignor_that_all_its_members_know(clients: Clients, site: Site) -> None:
    with group_of(clients, site, "range,roundrobin") as group:
        group.join(OURS)
        group.join(LIBRDKAFKA)
        assert group.settle().assignor == "range"
        fixed = group.join(KAFKAJS, assignor="roundrobin")
        described = group.settle()
        assert described.assignor == "roundrobin"
        assert described.members[fixed].version == 0
        group.leave(fixed)
        group.join(JAVA, assignor="cooperative-sticky,range")
        assert group.settle().assignor == "range"
        group.fill()


@KAFKA_LATER
@pytest.mark.parametrize("order", [(OURS, KAFKAJS), (KAFKAJS, OURS)], ids="-then-".join)
def test_a_member_that_shares_no_assignor_with_the_others_is_refused(
    clients: Clients, site: Site, order: tuple[str, str]
) -> None:
    """kafkajs by itself knows `RoundRobinAssigner` alone, and nobody else does."""
    assignors = {OURS: "roundrobin", KAFKAJS: "RoundRobinAssigner"}
    with group_of(clients, site) as group:
        first, second = order
        group.join(first, assignor=assignors[first])
        refused = group.join(second, assignor=assignors[second], settle=False)
        wait(lambda: group.errors(refused) == [KafkaError.INCONSISTENT_GROUP_PROTOCOL], lambda: group.errors(refused))
        group.leave(refused)
        group.settle()
        group.fill()


@pytest.mark.slow
def test_members_change_from_eager_to_cooperative_one_by_one(clients: Clients, site: Site) -> None:
    """Java's way: a member that knows both gives up everything, and reads beside those that know only the new one."""
    both = "cooperative-sticky,range"
    with group_of(clients, site, "range") as group:
        eager = [group.join(client) for client in (OURS, LIBRDKAFKA, JAVA)]
        for client in (JAVA, JAVA, JAVA):
            group.join(client, assignor=both, settle=False)
            group.leave(eager.pop())
            described = group.settle()
            assert described.assignor == ("range" if eager else "cooperative-sticky")
        for leaver, client in zip(list(group.members), (OURS, LIBRDKAFKA, JAVA), strict=True):
            group.join(client, assignor="cooperative-sticky")
            group.leave(leaver)
            assert group.settle().assignor == "cooperative-sticky"
        group.fill()


@pytest.mark.parametrize(("one", "other"), [*pairwise((OURS, LIBRDKAFKA, KAFKAJS, FRANZ_GO, JAVA, OURS))])
def test_a_client_goes_on_where_another_has_committed(clients: Clients, site: Site, one: str, other: str) -> None:
    topic = group = f"resumed-{next(_NUMBERS)}"
    make_topic(clients, site, topic, 1)
    for client in (one, other):
        records = [Record(0, TIME_MS, None, f"{client}-{number}".encode()) for number in range(EACH)]
        clients[OURS].produce(site.servers, topic, records)
        read = clients[client].consume(site.servers, [topic], EACH, group=group)
        assert list(read.values()) == records
