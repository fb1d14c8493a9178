"""What was sent and what was said about it, against what lies in the log: the verdict of a run. Knows no client.

Every record has the name of its producer as its key, and in its value a number that counts the producer's records for
that partition. So a reader can tell what is missing, there twice, or out of order.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

VIOLATIONS: Final = (
    "lost",  # acknowledged, or of a committed transaction, and not there
    "duplicated",
    "out of order",
    "denied",  # reported as surely not stored, and there all the same
    "aborted seen",  # a record of an aborted transaction
    "torn",  # part of a transaction is there, part is not
    "wrong offset",  # a group's, other than the committed transactions left it
    "misplaced",  # not at the offset that the report said
    "damaged",  # other bytes than were sent, or of a record that was never sent
    "unreported",
    "reported twice",
    "unfenced",  # a producer committed although another one had taken over
    "readers differ",  # the concurrent reader and the later one
    "reader error",
    "defects",  # told to error_cb
    "not over",  # something did not come to its end in time
)


class Fate(IntEnum):
    """What a delivery report said."""

    PENDING = 0
    STORED = 1
    DENIED = 2  # failed, and surely not stored
    UNKNOWN = 3  # failed, but it may be stored


class Outcome(IntEnum):
    """What became of a transaction, as its producer was told."""

    OPEN = 0
    COMMITTED = 1
    ABORTED = 2
    UNKNOWN = 3  # the commit failed, but it may have been carried out


class Found(NamedTuple):
    """A record in the log. The name is empty when it is damaged."""

    offset: int
    name: str
    number: int


class Stream:
    """The records of one producer for one partition. Used by one thread at a time."""

    def __init__(self, name: str, partition: int) -> None:
        self.name, self.partition = name, partition
        self.fates, self.reports, self.offsets = bytearray(), bytearray(), array("q")

    def __len__(self) -> int:
        return len(self.fates)

    def add(self) -> int:
        """A record is about to be sent; returns its number."""
        self.fates.append(Fate.PENDING)
        self.reports.append(0)
        self.offsets.append(-1)
        return len(self.fates) - 1

    def take_back(self) -> None:
        """The record added last was not accepted."""
        self.fates.pop()
        self.reports.pop()
        self.offsets.pop()

    def report(self, number: int, fate: Fate, offset: int) -> None:
        self.fates[number], self.offsets[number] = fate, offset
        self.reports[number] = min(self.reports[number] + 1, 255)


@dataclass(slots=True, eq=False)
class Transaction:
    """What is in it.

    Attributes:
        name: of its producer.
        parts: first number and number behind the last, of each stream.
        offset: what was committed for the producer's group; -1 for none.
    """

    name: str = ""
    parts: dict[Stream, tuple[int, int]] = field(default_factory=dict)
    offset: int = -1
    outcome: Outcome = Outcome.OPEN

    def add(self, stream: Stream, number: int) -> None:
        first, _ = self.parts.get(stream, (number, number))
        self.parts[stream] = (first, number + 1)


class Ledger:
    """All records of a run.

    Args:
        transactional: what must be there is decided by transactions; else by delivery reports.
    """

    def __init__(self, transactional: bool) -> None:
        self.transactional = transactional
        self.streams: dict[tuple[str, int], Stream] = {}
        self.transactions: list[Transaction] = []

    def stream(self, name: str, partition: int) -> Stream:
        made = self.streams.get((name, partition))
        if made is None:
            made = self.streams[name, partition] = Stream(name, partition)
        return made

    def begin(self, name: str) -> Transaction:
        begun = Transaction(name)
        self.transactions.append(begun)
        return begun

    def sent(self) -> int:
        return sum(map(len, list(self.streams.values())))

    def fates(self) -> Counter[Fate]:
        return Counter({fate: sum(stream.fates.count(fate) for stream in list(self.streams.values())) for fate in Fate})

    def outcomes(self) -> Counter[Outcome]:
        return Counter(transaction.outcome for transaction in list(self.transactions))

    def check(self, found: Mapping[int, Iterable[Found]]) -> Counter[str]:
        """Compare with all records of a topic by partition, in the order of the log. Counts by kind of violation."""
        counts: Counter[str] = Counter()
        seen = {stream: bytearray(len(stream)) for stream in self.streams.values()}
        for partition, records in found.items():
            self._check_partition(partition, records, seen, counts)
        for stream in self.streams.values():
            counts["unreported"] += stream.reports.count(0)
            counts["reported twice"] += len(stream) - stream.reports.count(0) - stream.reports.count(1)
        if self.transactional:
            for transaction in self.transactions:
                _check_transaction(transaction, seen, counts)
        else:
            for stream, there in seen.items():
                pairs = Counter(zip(stream.fates, there, strict=True))
                counts["lost"] += pairs[Fate.STORED, 0]
                counts["denied"] += pairs[Fate.DENIED, 1]
        return +counts

    def check_offset(self, name: str, offset: int) -> bool:
        """Whether a producer's group can have this offset; a negative one if it has none."""
        possible = {-1}
        for transaction in self.transactions:
            if transaction.name == name and transaction.offset >= 0:
                if transaction.outcome is Outcome.COMMITTED:
                    possible = {transaction.offset}
                elif transaction.outcome is Outcome.UNKNOWN:
                    possible.add(transaction.offset)
        return max(offset, -1) in possible

    def _check_partition(
        self, partition: int, records: Iterable[Found], seen: Mapping[Stream, bytearray], counts: Counter[str]
    ) -> None:
        behind: dict[Stream, int] = {}
        for offset, name, number in records:
            stream = self.streams.get((name, partition))
            if stream is None or number >= len(stream):
                counts["damaged"] += 1
                continue
            if seen[stream][number]:
                counts["duplicated"] += 1
            elif number < behind.get(stream, 0):
                counts["out of order"] += 1
            else:
                behind[stream] = number + 1
            seen[stream][number] = 1
            told = stream.offsets[number]
            counts["misplaced"] += stream.fates[number] == Fate.STORED and told >= 0 and told != offset


def _check_transaction(transaction: Transaction, seen: Mapping[Stream, bytearray], counts: Counter[str]) -> None:
    total = sum(stop - first for first, stop in transaction.parts.values())
    there = sum(sum(seen[stream][first:stop]) for stream, (first, stop) in transaction.parts.items())
    if transaction.outcome is Outcome.COMMITTED:
        counts["lost"] += total - there
        counts["torn"] += 0 < there < total
        stored = sum(stream.fates[first:stop].count(Fate.STORED) for stream, (first, stop) in transaction.parts.items())
        counts["denied"] += total - stored  # the commit succeeded although records failed
    elif transaction.outcome is Outcome.ABORTED:
        counts["aborted seen"] += there
    elif transaction.outcome is Outcome.UNKNOWN:
        counts["torn"] += 0 < there < total
    else:
        counts["not over"] += 1


def value_of(name: str, number: int, size: int = 100) -> bytes:
    """A record's value: its number, then bytes that belong to no other record."""
    head = b"%d " % number
    fill = hashlib.blake2b(b"%s %d" % (name.encode(), number)).hexdigest().encode()
    return (head + fill * (size // len(fill) + 1))[:size]


def found_of(offset: int, key: bytes | None, value: bytes | None) -> Found:
    """What a reader got."""
    try:
        name, number = (key or b"").decode(), int((value or b"").split(b" ", 1)[0])
    except ValueError:
        return Found(offset, "", 0)
    whole = number >= 0 and value == value_of(name, number, len(value or b""))
    return Found(offset, name, number) if whole else Found(offset, "", 0)
