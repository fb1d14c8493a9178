"""`OpenBatches`: the batches of all topics of a producer that take records, oldest first. Plain twin of the native one.

A producer of thousands of topics has few batches open at one time: who asks what is due looks at those only.

It must not know brokers, retries or sequences: the code that takes batches out keeps their order per partition.
Came from: `headrace.buffers.record_accumulator`, which opens them. Read next on the way out:
`headrace.machines.producer.batch_queue`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Protocol

from headrace.buffers.alarm import Alarm
from headrace.buffers.closed_batch import ClosedBatch
from headrace.buffers.lanes.direct_lane import DirectPartition

__all__ = ["OpenBatches"]

_NOTHING_HELD: Mapping[str, Collection[int]] = {}


class _Accumulator(Protocol):
    """What this needs of `RecordAccumulator`."""

    direct: dict[int, DirectPartition]

    def close(self, batch: ClosedBatch) -> None: ...

    def send(self, partition: int) -> bool: ...


class OpenBatches:
    """The batches of all topics that take records, and those that are full.

    Args:
        linger_s: seconds that a batch which is opened waits for more records, also where the thread that appends might
            send it.
        codec, level: how batches are compressed, 0: not at all. Who appends does not send such.

    Attributes:
        lock: guards this and the accumulators.
        linger_s, codec, level: as given.
        open, full: each batch with its accumulator; the open ones with the oldest first. Accumulators change them.
        timed: the next `ready` comes without a wake-up before a batch that is opened now has lingered.
    """

    def __init__(self, linger_s: float = 0.0, codec: int = 0, level: int = -1) -> None:
        self.lock = threading.Lock()
        self.linger_s, self.codec, self.level = linger_s, codec, level
        self.open: dict[ClosedBatch, _Accumulator] = {}
        self.full: dict[ClosedBatch, _Accumulator] = {}
        self.timed = False
        self._alarm: Alarm | None = None
        self._is_set = False  # it rings before a batch that is opened now has lingered; then `ready` is called
        self._flushing: Collection[object] = ()
        self._flushed_at = self._flushed_before = -math.inf  # monotonic seconds: when `send_open` sent a batch

    @property
    def rings(self) -> bool:
        """Whether an alarm says when a batch has lingered."""
        return self._alarm is not None

    def ring(self, alarm: Alarm | None = None, flushing: Collection[object] = ()) -> None:
        """From now on an alarm says when the first batch has lingered, not a wake-up and then `next_deadline`.

        Args:
            alarm: whoever hears it calls `ready` or `send_lone`; None for none any more.
            flushing: while there is something in it, batches do not linger, and whoever sends them is woken.
        """
        with self.lock:
            self._alarm, self._is_set, self._flushing = alarm, False, flushing

    def ready(
        self, opened_before: float | None = None, held: Mapping[str, Collection[int]] = _NOTHING_HELD
    ) -> list[ClosedBatch]:
        """Take out the batches that are due, in order per partition.

        What is sent directly would overtake them: that ends for their partitions (`RecordAccumulator.lend`).

        Args:
            opened_before: monotonic seconds; open batches whose first record came at or before it are taken as well,
                all with `math.inf`, none with None.
            held: by topic, partitions whose open batch stays, because earlier ones cannot be sent yet and it may still
                grow.
        """
        with self.lock:
            if opened_before is not None:
                for batch, accumulator in list(self.open.items()):
                    if batch.opened_at > opened_before:
                        break
                    if batch.partition not in held.get(batch.topic, ()):
                        accumulator.close(batch)
            taken, self.full = self.full, {}
            for batch, accumulator in taken.items():
                accumulator.direct.pop(batch.partition, None)
            if len(taken) == 1 and not held:  # `next_deadline` may not be called
                self._set_alarm()
        return list(taken)

    def _set_alarm(self) -> None:
        """For the oldest open batch, or leave it as it is if it rings before that in any case."""
        if self._alarm is None:
            return
        self.timed = False
        self._is_set = self._is_set and time.monotonic() < self._alarm.at
        if (oldest := next(iter(self.open), None)) is not None:
            at = oldest.opened_at + self.linger_s
            if not (self._is_set and self._alarm.at <= at):
                self._alarm.set(at)
            self._is_set = True

    def is_expected(self, opened_at: float) -> bool:
        """Whether nobody has to be woken for a batch that is opened, because `ready` is called when it has lingered.

        The caller holds the lock.
        """
        if self._alarm is None or self._flushing:
            return self.timed
        if not (self.timed or self._is_set):
            self._alarm.set(opened_at + self.linger_s)
            self._is_set = True
        return True

    def next_deadline(
        self, linger_s: float, held: Mapping[str, Collection[int]] = _NOTHING_HELD
    ) -> float | None:
        """When the oldest open batch has lingered, in monotonic seconds; -inf if a full one waits, None if none.

        Also None where an alarm rings before.

        Args:
            linger_s: seconds that a batch stays open.
            held: partitions that do not count, as in `ready`.

        The caller comes back by itself at that time, and is not woken for batches that are opened meanwhile. Where they
        are sent by `send_open` one after the other, that is a time in which none can have lingered: who flushes behind
        each record would wake the caller for nothing each time.
        """
        with self.lock:
            self.timed, now = True, time.monotonic()
            if self.full:
                return -math.inf
            deadline = next((batch.opened_at + linger_s for batch in self.open
                             if batch.partition not in held.get(batch.topic, ())), math.inf)
            if self._alarm is not None:
                self._is_set = self._is_set and now < self._alarm.at
                if self._is_set and self._alarm.at <= deadline:
                    self.timed = False
                    return None
            if deadline < math.inf:
                return deadline
            self.timed = now - self._flushed_before < self.linger_s
            return now + self.linger_s if self.timed else None

    def send_lone(self, opened_before: float) -> bool:
        """Send what has lingered from this thread, if that is one batch and nothing is full; False if it was not sent.

        Args:
            opened_before: as in `ready`.
        """
        with self.lock:
            due = [batch for batch in islice(self.open, 2) if batch.opened_at <= opened_before]
            if len(due) != 1 or self.full:
                return False
            accumulator = self.open[due[0]]
        if not accumulator.send(due[0].partition):
            return False
        with self.lock:
            self._set_alarm()
        return True

    def send_open(self) -> bool:
        """Send the open batches from this thread, without waiting for more records; False if the loop has to."""
        for batch, accumulator in self.open.copy().items():  # one step, as a list of pairs is not
            if batch in self.open:
                if not accumulator.send(batch.partition):
                    return False
                self._flushed_before, self._flushed_at = self._flushed_at, time.monotonic()
        return not self.full
