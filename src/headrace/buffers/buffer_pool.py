"""`BufferPool`: how much may wait in a producer at one time, and what a record counts there.

It must not know topics or batches. Read next: `headrace.buffers.record_accumulator`, which takes from it.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from headrace.errors import BufferFullError

__all__ = ["CALLBACK_BYTES", "FEW_MESSAGES", "OVERHEAD_BYTES", "BufferPool", "cost_of", "queue_full"]

AHEAD_BYTES = 16 << 20
"""What keeps brokers busy until more comes; memory that comes back from them is cheaper than new."""

OVERHEAD_BYTES = 16
"""What a record costs of a `BufferPool` beyond its key, value and headers."""
CALLBACK_BYTES = 512
"""What its callback costs: a function that refers to its record takes about 370 bytes, our note of it up to 25."""
FEW_MESSAGES = 64
"""Who has fewer records under way waits for the loop; who has more fills batches meanwhile."""


class BufferPool:
    """How many records, and bytes of them, may wait in a producer at one time.

    Args:
        max_messages: most records; 0 for no limit.
        max_bytes: most bytes of keys, values, headers, `OVERHEAD_BYTES` a record and `CALLBACK_BYTES` a callback.

    Attributes:
        messages: records that wait now.
        bytes: what they cost.
        ahead_bytes: what those of them cost, without callbacks, that no broker has answered for yet.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.max_messages = max_messages or 1 << 62
        self.max_bytes = max_bytes
        self.messages = 0
        self.bytes = self.ahead_bytes = 0
        self._lock = threading.Lock()

    @property
    def is_far_ahead(self) -> bool:
        """So much waits for brokers that more would make nothing faster: a caller with more to send may wait too."""
        return self.ahead_bytes > AHEAD_BYTES

    @property
    def is_roomy(self) -> bool:
        """A sixteenth is free: enough to be worth waking a caller with many records in hand."""
        return self.messages <= self.max_messages - self.max_messages // 16 and (
            self.bytes <= self.max_bytes - self.max_bytes // 16)

    def take(self, messages: int, size_bytes: int) -> bool:
        """Count records in; False, and nothing is counted, if they do not fit. One record alone always fits."""
        with self._lock:
            if not self.fits(messages, size_bytes):
                return False
            self.messages += messages
            self.bytes += size_bytes
            return True

    def fits(self, messages: int, size_bytes: int) -> bool:
        """Whether there is room for them at this moment."""
        return not self.messages or (
            self.messages + messages <= self.max_messages and self.bytes + size_bytes <= self.max_bytes)

    def count_in(self, messages: int, size_bytes: int) -> None:
        """Count records in that have found room: of several threads one may take the last of it twice."""
        with self._lock:
            self.messages += messages
            self.bytes += size_bytes

    def admit(self, queue: deque[Any], record: object, size_bytes: int) -> bool:
        """`take` one record and queue it; in the native twin in one step: Ctrl-C does not come in between."""
        if not self.take(1, size_bytes):
            return False
        queue.append(record)
        return True

    def release(self, messages: int, size_bytes: int) -> None:
        """Count records out."""
        with self._lock:
            self.messages -= messages
            self.bytes -= size_bytes

    def recount(self, counted_bytes: int, size_bytes: int) -> None:
        """A record that is counted costs something else from now on. It fits, for it was never away."""
        with self._lock:
            self.bytes += size_bytes - counted_bytes

    def answer(self, data_bytes: int) -> None:
        """Brokers are done with a batch; its reports may still wait."""
        with self._lock:
            self.ahead_bytes -= data_bytes


def cost_of(key: bytes | None, value: bytes | None, headers: list[tuple[bytes, bytes | None]]) -> int:
    """What a record costs of a `BufferPool`, in bytes."""
    return OVERHEAD_BYTES + len(key or b"") + len(value or b"") + sum(
        len(name) + len(content or b"") for name, content in headers)


def queue_full(pool: BufferPool) -> BufferFullError:
    """The error of a `BufferPool` that is used up."""
    return BufferFullError(
        f"Local: Queue full: {pool.messages} messages ({pool.bytes} bytes) wait for delivery; call poll() and try "
        "again, or raise queue.buffering.max.messages or queue.buffering.max.kbytes")
