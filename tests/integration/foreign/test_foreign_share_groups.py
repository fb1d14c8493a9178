"""Share groups (KIP-932) whose members are Java's, librdkafka's and ours: each record is accepted by one of them."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from .conftest import JAVA, LIBRDKAFKA, OURS, Clients
from .group import Group, group_of, wait
from .sites import SHARE_SITES, Site


@pytest.fixture(scope="session", params=SHARE_SITES)
def share_site(request: pytest.FixtureRequest) -> Site:
    """Each broker that has share groups."""
    found: Site = request.getfixturevalue(request.param)
    return found


def begin_at_the_first_record(site: Site, group: str) -> None:
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    with AdminClient({"bootstrap.servers": site.servers}) as admin:
        [done] = admin.incremental_alter_configs([
            ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])]).values()
        done.result(30)


def come_and_go(group: Group, site: Site, members: tuple[str, ...], **how: Any) -> None:
    """Members come one by one, all get some of the records, and go one by one."""
    begin_at_the_first_record(site, group.name)
    for member in members:
        group.join(member, **how)
    wait(lambda: group.write(1) or all(map(group.received, group.members)),
         lambda: {name: len(group.received(name)) for name in group.members})
    group.check()
    for leaver in list(group.members)[:-1]:
        group.leave(leaver)
        group.settle()
    group.fill()


@pytest.mark.slow
@pytest.mark.parametrize("explicit", [False, True], ids=["implicit", "explicit"])
def test_each_record_is_accepted_by_one_member(clients: Clients, share_site: Site, explicit: bool) -> None:
    with group_of(clients, share_site, protocol="share", explicit=explicit) as group:
        come_and_go(group, share_site, (OURS, JAVA, LIBRDKAFKA))


def test_what_a_member_gives_back_another_client_may_accept(clients: Clients, share_site: Site) -> None:
    """All give back what comes for the first time, and so know from its count what any of the others gave back."""
    with group_of(clients, share_site, protocol="share", releases=True) as group:
        come_and_go(group, share_site, (JAVA, LIBRDKAFKA, OURS))


@pytest.mark.slow
@pytest.mark.parametrize("victim", [OURS, JAVA, LIBRDKAFKA])
def test_what_a_killed_member_held_comes_to_others(clients: Clients, share_site: Site, victim: str) -> None:
    """What it read last it may not have told the broker, and others read that again; nothing is lost."""
    with group_of(clients, share_site, protocol="share") as group:
        begin_at_the_first_record(share_site, group.name)
        killed = group.join(victim, alone=True)
        for client in (OURS, JAVA, LIBRDKAFKA):
            group.join(client)
        wait(lambda: group.write(1) or group.received(killed), lambda: group.members)
        group.kill(killed)
        group.settle()
        group.write(20)
        wait(lambda: set(group.read()) == set(group.values), lambda: set(group.values) - set(group.read()))
        assert all(killed in readers for readers in group.read_twice().values())
