"""What a reader does when positions are in doubt: it has a machine that asks new leaders (KIP-320, decision 0030).

Few leaders change while something is read, so this is imported when one does. It must not know what the reader does
about records that are gone. Read next: `machines.consumer.truncation`.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.client.core import ClientCore
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.consumer.truncation import LogTruncated, PositionCheck

__all__ = ["compare_positions"]


def compare_positions(
    core: ClientCore, subscription: Subscription, timeout_s: float, on_truncated: Callable[[LogTruncated], None]
) -> None:
    """Ask new leaders whether they have what was read, now and whenever positions are in doubt.

    Args:
        core: runs the machine that asks; a second call changes nothing.
        subscription: the partitions.
        timeout_s: seconds for one request.
        on_truncated: told of each partition that has lost records.
    """
    driver = core.driver
    if LogTruncated not in driver.listeners:
        driver.listeners[LogTruncated] = (on_truncated,)
        driver.add(PositionCheck(subscription, core.metadata, timeout_s, core.retries))
