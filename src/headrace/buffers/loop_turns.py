"""`LoopTurns`: who is in the way of loops' threads steps aside while one of them has something to do. The plain twin.

It must not know what the loops run. Read next: `headrace.net.thread`, whose loops wait with it.
"""

from __future__ import annotations

import time
from selectors import SelectorKey
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.buffers.alarm import Alarm

__all__ = ["LoopTurn", "LoopTurns"]

_IN_A_ROW = 64
_ASIDE_S = 50e-6  # as long as a step of a loop


class LoopTurns:
    """Whether a thread of a loop has something to do, and so wants the GIL, of which a caller that never waits would
    let go every 5 ms only.

    The native twin knows that on Linux, where the loops wait for their sockets in `LoopTurn.select`. Elsewhere nobody
    can know; there a caller steps aside for a moment once in many calls.

    Attributes:
        selects: whether the loops are to wait in `LoopTurn.select`.
    """

    __slots__ = ("_calls",)

    selects = False

    def __init__(self) -> None:
        self._calls = 0

    def watch(self, alarm: Alarm) -> None:
        """Where `LoopTurn.select` hears an alarm, what has lingered is sent there, if it may be sent directly."""

    def unwatch(self, alarm: Alarm) -> None:
        """Leave an alarm to who watches its file."""

    def step_aside(self) -> bool:
        """Let a loop's thread come to the end of its turn, if it is in one; for a millisecond at most.

        Returns:
            Whether it may have gone on.
        """
        self._calls = (self._calls + 1) % _IN_A_ROW
        if self._calls:
            return False
        time.sleep(_ASIDE_S)
        return True


class LoopTurn:
    """The turns of one loop: from the end of a wait for its sockets to the beginning of the next.

    Args:
        all_turns: those of all loops.
    """

    __slots__ = ()

    def __init__(self, all_turns: LoopTurns) -> None:
        del all_turns

    def select(
        self, file: int, keys: dict[int, SelectorKey], timeout: float | None = None
    ) -> list[tuple[SelectorKey, int]]:
        """What `selectors.EpollSelector.select` does. On the loop's thread.

        Args:
            file: the descriptor of an epoll object.
            keys: by descriptor, what is registered.
            timeout: longest wait, in seconds; None for ever, 0 and less not at all.

        Raises:
            OSError: the kernel refuses to wait.
        """
        raise NotImplementedError("only the native module waits for sockets by itself")

    def end(self) -> None:
        """The loop runs no more."""
