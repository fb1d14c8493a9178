"""Time for the driver: monotonic seconds. A simulation gives its own clock.

Knows nothing else. Read next: `net.driver`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Clock", "monotonic"]

Clock = Callable[[], float]
"""Gives seconds that never run backwards; the zero point has no meaning."""

monotonic: Clock = time.monotonic
"""The clock that asyncio's own loop uses."""
