"""How long to wait before the next try: doubling up to a limit, with jitter so that clients do not retry in step.

Knows no clock and no randomness: the jitter is given. Source: KIP-144, KIP-580 (Java: `ExponentialBackoff`).
"""

from __future__ import annotations

__all__ = ["backoff_s"]

_JITTER = 0.2
_MAX_DOUBLINGS = 30


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
