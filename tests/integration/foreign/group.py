"""A group whose members are different clients, and what must hold of it whenever it is at rest."""

from __future__ import annotations

import base64
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from .client import Client, Record
from .conftest import LIBRDKAFKA, OURS, Clients, make_topic
from .descriptions import Description, Key, describe
from .samples import TIME_MS
from .sites import Site

PARTITIONS = 8
EACH = 20
SETTLED_WITHIN_S = 45.0
_NUMBERS = count()


class Group:
    """A group of foreign members.

    All that it waits for is what a group must come to: each partition has one reader, the shares are even, and what
    each member holds is what the coordinator says of it. Records that are written while members come and go are read
    once.

    Args:
        clients: who the members are.
        site: where.
        assignor: how they share the partitions; "" is the coordinator's choice.
        protocol: classic, consumer or share.
        topics: how many topics they read.
        how: what else members are told when they join.
    """

    def __init__(self, clients: Clients, site: Site, assignor: str = "", protocol: str = "classic", topics: int = 1,
                 **how: Any) -> None:
        self.name = f"group-{next(_NUMBERS)}"
        self.topics = [self.name, *(f"{self.name}-{number}" for number in range(1, topics))]
        self.values: list[bytes] = []
        self.members: dict[str, Client] = {}
        self._gone: defaultdict[str, list[bytes]] = defaultdict(list)
        self._joined = count()
        self._alone: set[str] = set()
        self._clients = clients
        self._site = site
        self._servers = site.servers
        self._shares = protocol == "share"
        self._how = {"assignor": assignor, "protocol": protocol, **how}
        for topic in self.topics:
            make_topic(clients, site, topic, PARTITIONS)

    def add_topic(self, name: str) -> None:
        """Another topic, which members that read by a pattern are to find."""
        make_topic(self._clients, self._site, name, PARTITIONS)
        self.topics.append(name)

    # Members come and go

    def join(self, client: str, *, name: str = "", alone: bool = False, settle: bool = True, **how: Any) -> str:
        """A member more, and wait until all have their share.

        Args:
            client: which client it is of.
            name: of the member; a new one if none is given.
            alone: it has a process of its own, which can be killed.
            settle: wait.
            how: what it is told beside, or in place of, what all are told.

        Returns:
            The member's name.
        """
        name = name or f"{self.name}-{client}-{next(self._joined)}"
        by = self._clients.alone(client) if alone else self._clients[client]
        self._alone |= {name} if alone else set()
        by.ask("join", servers=self._servers, group=self.name, topics=self.topics, member=name, **{**self._how, **how})
        self.members[name] = by
        if settle:
            self.settle()
        return name

    def leave(self, name: str) -> None:
        """A member less. The others get its partitions."""
        client = self.members.pop(name)
        self._gone[name] += _values(client.ask("leave", member=name))
        if name in self._alone:
            client.close()

    def kill(self, name: str) -> None:
        """A member less, which says nothing any more. What it has read must be committed before: `wait_committed`."""
        client = self.members.pop(name)
        self._gone[name] += _values(client.ask("received", member=name))
        client.close()

    # What must hold

    def settle(self, *, evenly: bool = True) -> Description:
        """Wait until the group is at rest. Records go to every partition meanwhile.

        Args:
            evenly: no member has two partitions more of a topic than another.

        Returns:
            What the coordinator says of the group.
        """
        shares: dict[str, frozenset[Key]] = {}
        described = Description()

        def is_settled() -> bool:
            nonlocal shares, described
            self.write(1)
            described = describe(self._servers, self.name, shares=self._shares)
            if self._shares:  # a partition may have several readers, who do not tell what they hold
                return described.held.keys() == self.members.keys() and described.state == "Stable" and (
                    set().union(*described.held.values()) == set(self.keys))
            shares = {name: self.assignment(name) for name in self.members}
            return (self._is_complete(shares) and (not evenly or self._is_even(shares))
                    and described.state == "Stable" and described.held == shares)

        wait(is_settled, lambda: (shares, described))
        return described

    def _is_complete(self, shares: dict[str, frozenset[Key]]) -> bool:
        """Whether every partition has one reader."""
        return Counter(key for share in shares.values() for key in share) == Counter(self.keys)

    def _is_even(self, shares: dict[str, frozenset[Key]]) -> bool:
        sizes = sorted(len(share) for share in shares.values())
        return sizes[-1] - sizes[0] <= len(self.topics)

    def fill(self, each: int = EACH) -> None:
        """Write records to every partition, and wait until the members have read them, and nothing twice."""
        self.write(each)
        self.check()

    def write(self, each: int) -> None:
        """Write so many records to every partition."""
        number = len(self.values)
        for topic in self.topics:
            records = [Record(partition, TIME_MS, None, f"{topic}-{partition}-{number + step}".encode())
                       for step in range(each) for partition in range(PARTITIONS)]
            self._clients[OURS].produce(self._servers, topic, records)
            self.values += [record.value for record in records if isinstance(record.value, bytes)]

    def check(self) -> None:
        """Wait until all that was written was read, by those who left or by those who are there, and nothing twice."""
        wait(lambda: len(self.read()) >= len(self.values), lambda: f"{len(self.read())} of {len(self.values)}")
        assert (twice := self.read_twice()) == {}, twice
        assert sorted(self.read()) == sorted(self.values)

    def read_twice(self) -> dict[bytes, list[str]]:
        """Values that were read more than once, with the readers."""
        readers = defaultdict(list)
        for name in self._gone.keys() | self.members.keys():
            for value in self._gone[name] + (self.received(name) if name in self.members else []):
                readers[value].append(name)
        return {value: names for value, names in readers.items() if len(names) > 1}

    def read(self) -> list[bytes]:
        """Everything that the members have read, those that left included."""
        return [value for values in self._gone.values() for value in values] + [
            value for name in self.members for value in self.received(name)]

    def received(self, name: str) -> list[bytes]:
        """What one member has read."""
        return _values(self.members[name].ask("received", member=name))

    def errors(self, name: str) -> list[int | None]:
        """The codes of what a member was refused, each once; None for an error of the client's own."""
        found: list[int | None] = self.members[name].ask("errors", member=name)
        return found

    @property
    def keys(self) -> list[Key]:
        """All partitions."""
        return [(topic, partition) for topic in self.topics for partition in range(PARTITIONS)]

    def committed(self) -> dict[Key, int]:
        """Offsets by partition."""
        return {(topic, partition): offset for topic in self.topics for partition, offset in self._clients[
            LIBRDKAFKA].ask("fetch_offsets", servers=self._servers, group=self.name, topic=topic).items()}

    @property
    def ends(self) -> dict[Key, int]:
        """What `committed` comes to."""
        return dict(Counter((topic, int(partition)) for topic, partition, _ in (
            value.decode().rsplit("-", 2) for value in self.values)))

    def wait_committed(self) -> None:
        """Wait until the members have committed all that was written."""
        wait(lambda: self.committed() == self.ends, self.committed)

    def assignment(self, name: str) -> frozenset[Key]:
        """What a member holds, as it says itself."""
        held: list[list[Any]] = self.members[name].ask("assignment", member=name)
        return frozenset((topic, partition) for topic, partition in held)


def wait(happened: Callable[[], Any], shown: Callable[[], Any], timeout_s: float = SETTLED_WITHIN_S) -> None:
    """Wait for something, and show what there is instead when it does not come."""
    deadline = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.05)


def _values(answer: Sequence[Any]) -> list[bytes]:
    return [base64.b64decode(value) if isinstance(value, str) else value for value in answer]


@contextmanager
def group_of(
    clients: Clients, site: Site, assignor: str = "", protocol: str = "classic", **how: Any
) -> Iterator[Group]:
    """A group for the length of a `with` block; at its end, all leave."""
    group = Group(clients, site, assignor, protocol, **how)
    try:
        yield group
    finally:
        for name in list(group.members):
            group.leave(name)
