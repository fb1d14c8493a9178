"""How long something takes, on machines that stop now and then: that makes it longer, never shorter."""

import time
from collections.abc import Callable

ATTEMPTS = 10


def assert_quick(attempt: Callable[[], object], within_s: float) -> None:
    """Do something until it took less than so long once; it is too slow if it never does.

    Args:
        attempt: does it, and is called again where it took longer. What it returns, if it is a number, are the seconds
            that count; else those of the whole call do.
        within_s: less than this, in seconds.
    """
    took_s = []
    for _ in range(ATTEMPTS):
        began_at = time.monotonic()
        told = attempt()
        took_s.append(told if isinstance(told, float) else time.monotonic() - began_at)
        if took_s[-1] < within_s:
            return
    raise AssertionError(f"it took {min(took_s):.3f} s at best, of {took_s}")
