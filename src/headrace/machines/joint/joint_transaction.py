"""What those who share a transaction know of it. It knows no requests. Read next: `machines.joint.owner_steps`."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CommittedMark", "JointTransaction", "Written"]

Written = dict[tuple[str, int], int]
"""Records by topic and partition."""


class JointTransaction(NamedTuple):
    """A transaction that one process has begun and others write into. Plain values: it travels to them.

    Attributes:
        transactional_id: under which the coordinator knows it.
        producer_id: of all who write into it.
        epoch: of the producer id; each joint transaction has its own.
        version: 1 or 2, of the transaction protocol.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    version: int


class CommittedMark(NamedTuple):
    """What the last joint transaction of a name left when it was committed.

    Attributes:
        number: counts them.
        text: the owner's note.
    """

    number: int
    text: str
