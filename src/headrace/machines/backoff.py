"""How long to wait before the next try: doubling up to a limit, with jitter so that clients do not retry in step.

Knows no clock and no randomness: the jitter is given. Source: KIP-144, KIP-580 (Java: `ExponentialBackoff`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from headrace.config import Config
from headrace.slotted import slotted

__all__ = ["Pauses", "RetryPolicy", "backoff_s"]

_JITTER = 0.2
_MAX_DOUBLINGS = 30
_MIDDLE = 0.5
"""The jitter that does not spread the wait."""


def backoff_s(failures: int, first_s: float, limit_s: float, random: float) -> float:
    """Seconds to wait after so many failures in a row.

    Args:
        failures: tries that failed, at least 1.
        first_s: wait after the first failure, seconds.
        limit_s: longest wait before jitter, seconds.
        random: a number in [0, 1) that spreads the result by 20 % to both sides.
    """
    wait = min(max(limit_s, first_s), first_s * 2.0 ** min(max(failures - 1, 0), _MAX_DOUBLINGS))
    return wait * (1.0 - _JITTER + 2.0 * _JITTER * random)


@slotted(frozen=True)
class RetryPolicy:
    """How long a client waits before it asks again; times in seconds.

    Attributes:
        first_s: wait after the first failure (retry.backoff.ms).
        limit_s: longest wait before jitter (retry.backoff.max.ms).
        jitter: gives numbers in [0, 1).
    """

    first_s: float = 0.1
    limit_s: float = 1.0
    jitter: Callable[[], float] = lambda: _MIDDLE

    @classmethod
    def of(cls, config: Config, jitter: Callable[[], float] = lambda: _MIDDLE) -> RetryPolicy:
        """What a client's properties say."""
        return cls(config.seconds("retry.backoff.ms"), config.seconds("retry.backoff.max.ms"), jitter)

    def wait_s(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row."""
        return backoff_s(failures, self.first_s, self.limit_s, self.jitter())


class Pauses:
    """The pauses of many that fail: what fails at the same moment is tried again at the same moment.

    Else thousands of partitions whose broker has died would come back one by one, and be looked at each time.

    Args:
        wait_s: seconds of a pause by failures in a row, such as `RetryPolicy.wait_s`.
    """

    __slots__ = ("_now", "_until", "_wait_s")

    def __init__(self, wait_s: Callable[[int], float]) -> None:
        self._wait_s = wait_s
        self._now = -math.inf
        self._until: dict[int, float] = {}

    def until(self, failures: int, now: float) -> float:
        """When to try again after so many failures in a row, the last of them now."""
        if now != self._now:
            self._now, self._until = now, {}
        until = self._until.get(failures)
        if until is None:
            until = self._until[failures] = now + self._wait_s(failures)
        return until
