"""The records that a share consumer's application has: which of them it has acknowledged, and which it has not.

It belongs to the application's thread. It must not know requests, sockets or threads.

Read next: `machines.share.acknowledgements`, which is what it gives away; `client.share.share_engine`, which asks it.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.machines.consumer.subscription import Key
from headrace.machines.share.acknowledgements import RELEASE, RENEW, Acknowledgements
from headrace.machines.share.share_fetcher import AcquiredBatch

__all__ = ["HeldRecords"]

_ACCEPT = 1


class HeldRecords:
    """Records that were handed out, by partition and offset, until they are acknowledged.

    A record that is renewed stays held, and need not be acknowledged before others are read.
    """

    def __init__(self) -> None:
        self._batches: dict[Key, dict[int, AcquiredBatch]] = {}
        self._types: dict[Key, dict[int, int]] = {}
        self._renewed: dict[Key, set[int]] = {}

    def add(self, batch: AcquiredBatch, offsets: Iterable[int]) -> None:
        """Records are handed out. One that was handed out before, and lost meanwhile, is a new one."""
        new = dict.fromkeys(offsets, batch)
        self._batches.setdefault(batch.key, {}).update(new)
        if batch.key in self._types:
            self._types[batch.key] = {at: kind for at, kind in self._types[batch.key].items() if at not in new}
        if batch.key in self._renewed:
            self._renewed[batch.key] -= new.keys()

    def acknowledge(self, key: Key, offset: int, kind: int) -> bool:
        """Say what became of a record; the last word counts. False when it is not held."""
        if offset not in self._batches.get(key, ()):
            return False
        self._types.setdefault(key, {})[offset] = kind
        return True

    def accept_all(self) -> None:
        """All that is held was processed."""
        self._types = {key: dict.fromkeys(held, _ACCEPT) for key, held in self._batches.items()}

    def give_back(self) -> None:
        """Let others have what was handed out and nobody has said anything of."""
        for key, held in self._batches.items():
            said = self._types.setdefault(key, {})
            said.update(dict.fromkeys(held.keys() - said.keys() - self._renewed.get(key, set()), RELEASE))

    @property
    def unacknowledged(self) -> int:
        """How many records wait for the application's word."""
        return sum(len(held.keys() - self._types.get(key, {}).keys() - self._renewed.get(key, set()))
                   for key, held in self._batches.items())

    def take(self) -> list[Acknowledgements]:
        """What was said since the last call, to be sent. Only renewed records are held further."""
        taken: list[Acknowledgements] = []
        said, self._types = self._types, {}
        for key, types in said.items():
            held = self._batches[key]
            for batch in dict.fromkeys(held[offset] for offset in types):
                own = {offset: kind for offset, kind in types.items() if held[offset] is batch}
                taken.append(Acknowledgements(key, batch.topic_id, batch.session, own))
            self._let_go(key, types)
        return taken

    def forget(self) -> None:
        """Nothing is held any more."""
        self._batches, self._types, self._renewed = {}, {}, {}

    def _let_go(self, key: Key, types: dict[int, int]) -> None:
        held, renewed = self._batches[key], self._renewed.setdefault(key, set())
        for offset, kind in types.items():
            if kind == RENEW:
                renewed.add(offset)
            else:
                del held[offset]
                renewed.discard(offset)
        if not held:
            del self._batches[key]
            del self._renewed[key]
