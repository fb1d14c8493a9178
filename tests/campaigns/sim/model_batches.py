"""Batches of records that are plain numbers: what the accumulator needs, without bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any


class ModelSealed:
    """A sealed batch: `data` is what a broker sees, frozen at the time it is read."""

    def __init__(self, records: list[int]) -> None:
        self.records = tuple(records)
        self.size_bytes = 100 * len(records)
        self._stamp = (-1, -1, -1)

    def stamp(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool = False) -> None:
        if not 0 <= epoch <= 32_767:
            raise OverflowError(f"epoch {epoch}")
        self._stamp = (producer_id, epoch, base_sequence)

    @property
    def data(self) -> Any:
        return (*self._stamp, self.records)


class ModelOpen:
    """A batch that takes records."""

    def __init__(self, topic: str, partition: int, opened_at: float, sealed: Callable[[list[int]], Any]) -> None:
        self.topic, self.partition = topic, partition
        self.opened_at = opened_at
        self.records: list[int] = []
        self._sealed = sealed

    @property
    def count(self) -> int:
        return len(self.records)

    @property
    def size_bytes(self) -> int:
        return 100 * len(self.records)

    def seal(self, codec: int = 0, level: int = -1) -> Any:
        return self._sealed(self.records)

    def split(self, parts: list[int]) -> list[ModelOpen]:
        made = [ModelOpen(self.topic, self.partition, self.opened_at, self._sealed) for _ in set(parts)]
        for part, record in zip(parts, self.records, strict=True):
            made[part].records.append(record)
        return made


class ModelBuffer:
    """The open batches of a topic, at most `batch_count` records each; `sealed` gives records their wire bytes.

    Attributes:
        on_taken: called with the batches that `ready` has taken out.
        send_directly: sends the open batch of a partition if that may be; True if it is sent.
        ring_at: called with the time at which an open batch has lingered, for which `next_deadline` is not asked then.
        linger_s: how long they do; the sender's own, where there is no `ring_at`.
    """

    def __init__(
        self, topic: str, partitions: int, batch_count: int, sealed: Callable[[list[int]], Any] = ModelSealed
    ) -> None:
        self._topic = topic
        self.batch_count = batch_count
        self._sealed = sealed
        self._open: list[list[ModelOpen]] = [[] for _ in range(partitions)]
        self.on_taken: Callable[[list[ModelOpen]], object] = len
        self.send_directly: Callable[[int], bool] = bool
        self.ring_at: Callable[[float], object] | None = None
        self.linger_s = 0.0
        self._rings_at = math.inf

    @property
    def rings(self) -> bool:
        return self.ring_at is not None

    def append(self, partition: int, record: int, now: float) -> bool:
        """Put a record into a batch. True if whoever sends batches has to be woken."""
        batches = self._open[partition]
        opened = not batches or batches[-1].count >= self.batch_count
        if opened:
            batches.append(ModelOpen(self._topic, partition, now, self._sealed))
        batches[-1].records.append(record)
        if self.ring_at is None or batches[-1].count >= self.batch_count:
            return True
        if self._rings_at == math.inf:
            self._ring(now)
        return False

    def _ring(self, opened_at: float) -> None:
        assert self.ring_at is not None
        self._rings_at = opened_at + self.linger_s
        self.ring_at(self._rings_at)

    def _ring_again(self, kept: Collection[int]) -> None:
        self._rings_at = math.inf
        oldest = self._oldest(kept)
        if self.ring_at is not None and oldest is not None:
            self._ring(oldest)

    def _oldest(self, kept: Collection[int]) -> float | None:
        return min([batches[0].opened_at for partition, batches in enumerate(self._open)
                    if batches and partition not in kept], default=None)

    @property
    def open_partitions(self) -> list[int]:
        """Those with batches that were not taken out."""
        return [partition for partition, batches in enumerate(self._open) if batches]

    def take_lone(self, partition: int) -> ModelOpen | None:
        """Take out the batch of a partition if it is not full, or has one record, and none stands before it."""
        batches = self._open[partition]
        return batches.pop() if len(batches) == 1 and (
            batches[0].count == 1 or batches[0].count < self.batch_count) else None

    def send_lone(self, opened_before: float) -> bool:
        due = [batch for batches in self._open for batch in batches if batch.opened_at <= opened_before]
        full = any(batch.count >= self.batch_count > 1 for batches in self._open for batch in batches)
        if len(due) != 1 or full or not self.send_directly(due[0].partition):
            return False
        self._ring_again(())
        return True

    def ready(self, opened_before: float | None, held: Mapping[str, Collection[int]]) -> list[ModelOpen]:
        taken, kept = [], held.get(self._topic, ())
        for partition, batches in enumerate(self._open):
            while batches and (
                batches[0].count >= self.batch_count
                or (opened_before is not None and batches[0].opened_at <= opened_before and partition not in kept)
            ):
                taken.append(batches.pop(0))
        self.on_taken(taken)
        if len(taken) == 1 and not held:
            self._ring_again(kept)
        return taken

    def next_deadline(self, linger_s: float, held: Mapping[str, Collection[int]]) -> float | None:
        oldest = self._oldest(held.get(self._topic, ()))
        self._rings_at = math.inf  # a ring that is still to come is one too many
        return None if oldest is None else oldest + linger_s
