"""A commit on its way to the group's coordinator: one request, for one call of the application or for several.

One request is under way at a time, so that offsets reach the coordinator in the order in which they were given. Who
commits behind each record would be held up by that, were it not for `join`: what waits goes together, and of several
offsets of a partition only the last. Read next: `machines.consumer.group_offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.errors import KafkaError
from headrace.machines.backoff import Pauses
from headrace.machines.consumer.subscription import Key
from headrace.types.records import ConsumerGroupMetadata, TopicPartition

__all__ = ["Committed", "PendingCommit"]

_WITHIN_S = 1.0
_MADE_UP_S = 5.0

Committed = Callable[[list[TopicPartition], KafkaError | None], None]
"""Called once per commit: the partitions, each with its own `error`, and the error of the whole commit."""


class PendingCommit:
    """Offsets that are to be committed as one member.

    Args:
        member: as whom.
        holds: whether that member has these partitions still; what was given up is apart, for it may be refused.
        partitions: with their offsets. They get their errors.
        tenures: since when the member has each of them.
        stored: what was stored of a partition when it was asked for, where that is not what is committed.
        expires_at: in monotonic seconds; fails then.
        done: told what became of it.

    Attributes:
        flying: a request is under way.
        forgotten: topics that are gone since.
    """

    def __init__(self, member: ConsumerGroupMetadata, holds: bool, partitions: list[TopicPartition],
                 tenures: list[tuple[int, int]], stored: Mapping[Key, int], expires_at: float, done: Committed) -> None:
        self.member, self.holds, self.expires_at = member, holds, expires_at
        self.not_before, self.attempts, self.flying = 0.0, 0, False
        self.last_error: KafkaError | None = None
        self.forgotten: set[str] = set()
        self._is_made_up = False
        self._parts = [(partitions, done)]
        self._offsets = {(tp.topic, tp.partition): tp for tp in partitions}
        self._tenures = dict(zip(self._offsets, tenures, strict=False))
        self._settles = {key: min(stored.get(key, tp.offset), tp.offset) for key, tp in self._offsets.items()}

    @property
    def partitions(self) -> list[TopicPartition]:
        """What is to be committed: of each partition the offset that was given last."""
        return [*self._offsets.values()]

    @property
    def tenures(self) -> list[tuple[int, int]]:
        """Since when the member has each of the partitions."""
        return [*self._tenures.values()]

    @property
    def keys(self) -> set[Key]:
        """The partitions."""
        return set(self._offsets)

    def settles(self, key: Key) -> int:
        """What was stored of a partition and needs no other commit when this one has succeeded: nothing behind it."""
        return self._settles[key]

    @property
    def all_forgotten(self) -> bool:
        """Whether nothing is left to commit."""
        return all(topic in self.forgotten for topic, _ in self._offsets)

    def join(self, later: PendingCommit) -> bool:
        """Take over what was to be committed behind this, if the same request can do it."""
        if (self.flying or self.attempts or self.forgotten or self.member != later.member or self.holds != later.holds
                or not 0.0 <= later.expires_at - self.expires_at < _WITHIN_S
                or any(self._tenures.get(key, tenure) != tenure for key, tenure in later._tenures.items())):
            return False
        self._parts += later._parts
        self._offsets.update(later._offsets)
        self._tenures.update(later._tenures)
        self._settles.update(later._settles)
        return True

    def back_off(self, now: float, pauses: Pauses, error: KafkaError | None = None) -> None:
        """It is tried again after a pause."""
        self.flying = False
        self.attempts += 1
        self.last_error = error
        self.not_before = pauses.until(self.attempts, now)

    def make_up(self, now: float) -> None:
        """It gets a little more time, once, if a request has used up all of it: its own, or the one in front of it."""
        if self.expires_at <= now and not self._is_made_up:
            self._is_made_up, self.expires_at = True, now + _MADE_UP_S

    def finish(self, error: KafkaError | None) -> None:
        """Tell each call of the application what became of its partitions; `partitions` have their errors."""
        for partitions, done in self._parts:
            for tp in partitions:
                tp.error = self._offsets[tp.topic, tp.partition].error
            done(partitions, error if any(tp.error is not None for tp in partitions) else None)
