"""Classic groups whose members are different clients: all read, nobody reads twice, and what was read is committed."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from typing import Any

import pytest

from .client import Record
from .conftest import FRANZ_GO, JAVA, KAFKAJS, LIBRDKAFKA, OURS, Clients, make_topic
from .samples import TIME_MS
from .sites import Site

PARTITIONS = 8
EACH = 20
_NUMBERS = count()
_SETTLED_WITHIN_S = 30.0


class Group:
    """A group of foreign members, who read one topic.

    Args:
        clients: who they are.
        site: where.
        assignor: how they share the partitions.
    """

    def __init__(self, clients: Clients, site: Site, assignor: str) -> None:
        self.name = f"group-{next(_NUMBERS)}"
        self.values: list[bytes] = []
        self.members: dict[str, str] = {}
        self._gone: list[bytes] = []
        self._clients = clients
        self._servers = site.servers
        self._assignor = assignor
        make_topic(clients, site, self.name, PARTITIONS)

    def join(self, client: str) -> None:
        """A member more, and wait until all have their share."""
        name = f"{self.name}-{client}-{len(self.members)}"
        self._clients[client].ask("join", servers=self._servers, group=self.name, topics=[self.name], member=name,
                                  assignor=self._assignor)
        self.members[name] = client
        self.settle()

    def leave(self, name: str) -> None:
        """A member less. The others get its partitions."""
        self._gone += self._received(name)
        self._clients[self.members.pop(name)].ask("leave", member=name)

    def settle(self) -> None:
        """Wait until every partition has one reader, and no member has two more than another."""
        deadline = time.monotonic() + _SETTLED_WITHIN_S
        while not _is_fair(shares := {name: self._assignment(name) for name in self.members}):
            assert time.monotonic() < deadline, shares
            time.sleep(0.05)

    def fill(self) -> None:
        """Write records to every partition, and wait until the members have read them."""
        records = [Record(partition, TIME_MS, None, f"{partition}-{len(self.values) + number}".encode())
                   for number in range(EACH) for partition in range(PARTITIONS)]
        self._clients[OURS].produce(self._servers, self.name, records)
        self.values += [record.value for record in records if isinstance(record.value, bytes)]
        deadline = time.monotonic() + _SETTLED_WITHIN_S
        while len(read := self.read()) < len(self.values) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert sorted(read) == sorted(self.values)

    def read(self) -> list[bytes]:
        """Everything that the members have read, those that left included."""
        return self._gone + [value for name in self.members for value in self._received(name)]

    def committed(self) -> dict[int, int]:
        """Offsets by partition."""
        found = self._clients[LIBRDKAFKA].ask("fetch_offsets", servers=self._servers, group=self.name,
                                              topic=self.name)
        return dict(found)

    def _assignment(self, name: str) -> list[tuple[str, int]]:
        held: list[list[Any]] = self._clients[self.members[name]].ask("assignment", member=name)
        return [(topic, partition) for topic, partition in held]

    def _received(self, name: str) -> list[bytes]:
        values = self._clients[self.members[name]].ask("received", member=name)
        return [base64.b64decode(value) if isinstance(value, str) else value for value in values]


def _is_fair(shares: dict[str, list[tuple[str, int]]]) -> bool:
    held = [partition for _, partition in sorted(place for share in shares.values() for place in share)]
    sizes = sorted(len(share) for share in shares.values())
    return held == list(range(PARTITIONS)) and sizes[-1] - sizes[0] <= 1


@contextmanager
def group_of(clients: Clients, site: Site, assignor: str) -> Iterator[Group]:
    group = Group(clients, site, assignor)
    try:
        yield group
    finally:
        for name in list(group.members):
            group.leave(name)


@pytest.mark.parametrize(("assignor", "members"), [
    ("range", (OURS, LIBRDKAFKA, FRANZ_GO, JAVA)),
    ("roundrobin", (JAVA, FRANZ_GO, OURS, LIBRDKAFKA)),
    ("cooperative-sticky", (FRANZ_GO, OURS, JAVA, LIBRDKAFKA)),
    ("roundrobin", (KAFKAJS, KAFKAJS, KAFKAJS)),
], ids=["range", "roundrobin", "cooperative-sticky", "kafkajs"])
def test_members_of_different_clients_share_a_topic(
    clients: Clients, site: Site, assignor: str, members: tuple[str, ...]
) -> None:
    with group_of(clients, site, assignor) as group:
        for member in members:
            group.join(member)
        group.fill()
        for leaver in list(group.members)[:-1]:  # the leader goes first, each time
            group.leave(leaver)
            group.settle()
        group.fill()
    assert group.committed() == dict.fromkeys(range(PARTITIONS), 2 * EACH)


@pytest.mark.parametrize(("one", "other"), [*pairwise((OURS, LIBRDKAFKA, KAFKAJS, FRANZ_GO, JAVA, OURS))])
def test_a_client_goes_on_where_another_has_committed(clients: Clients, site: Site, one: str, other: str) -> None:
    topic = group = f"resumed-{next(_NUMBERS)}"
    make_topic(clients, site, topic, 1)
    for client in (one, other):
        records = [Record(0, TIME_MS, None, f"{client}-{number}".encode()) for number in range(EACH)]
        clients[OURS].produce(site.servers, topic, records)
        read = clients[client].consume(site.servers, [topic], EACH, group=group)
        assert list(read.values()) == records
