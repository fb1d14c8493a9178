"""Waits until records arrive behind the ends of logs, by fetches that brokers hold until there is something.

A fetch asks for one byte, and gets one batch, which is thrown away: who waits here plans reads and has others read.
Nothing is asked again while a fetch is held, so waiting costs next to nothing, and an arrival is told at once. It must
not know what is planned. Read next: `machines.consumer.fetcher`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from headrace.client.core import ClientCore
from headrace.client.waits import ThreadWaits, Wait
from headrace.config import Config
from headrace.errors import KafkaError
from headrace.machines.consumer.fetcher import Fetcher, RecordsReady
from headrace.machines.consumer.subscription import Key, Subscription
from headrace.machines.machine import Event
from headrace.types.records import TopicPartition

__all__ = ["FETCHES_THAT_WAIT", "Arrivals"]

FETCHES_THAT_WAIT: Final[Mapping[str, Any]] = {
    "fetch.wait.max.ms": 10_000, "fetch.min.bytes": 1, "fetch.max.bytes": 1, "max.partition.fetch.bytes": 1,
}
"""Properties of a consumer whose fetches are held by brokers, and hold next to nothing."""


class Arrivals:
    """Watches partitions for one caller.

    Args:
        core: runs the machine; its metadata has the partitions' topics.
        config: the client's properties, those of `FETCHES_THAT_WAIT` among them.
        waits: of the caller's thread.
    """

    def __init__(self, core: ClientCore, config: Config, waits: ThreadWaits) -> None:
        self._core, self._config, self._waits = core, config, waits
        self._subscription = Subscription("", "error")
        self._watched: dict[Key, int] = {}
        self._news = 0
        self._fetcher: Fetcher | None = None

    def wait(self, ends: Mapping[Key, int], timeout_s: float) -> bool:
        """Wait until a partition may have records behind its end.

        Args:
            ends: offset behind the last record known, by partition. The same ends as before go on with what is held.
            timeout_s: longest wait, in seconds.

        Returns:
            False when nothing has come.
        """
        give_up_at = time.monotonic() + timeout_s
        if self._watched != ends:
            self._watched = dict(ends)
            self._waits.do(self._begin)
        while True:
            seen = self._news
            if self._has_come():
                self._watched = {}
                return True
            if time.monotonic() >= give_up_at:
                return False
            self._waits.wait(Wait(self._news_since(seen), give_up_at))

    def _news_since(self, seen: int) -> Callable[[], bool]:
        return lambda: self._news != seen

    def _begin(self) -> None:
        core = self._core
        if self._fetcher is None:
            self._fetcher = Fetcher(self._subscription, core.metadata, self._config, core.driver.wake_threadsafe)
            core.driver.listeners[RecordsReady] = (self._on_records,)
            core.driver.add(self._fetcher)
        self._subscription.assign([TopicPartition(*key, offset) for key, offset in self._watched.items()])
        core.wake()

    def _on_records(self, _: Event) -> None:
        self._news += 1
        self._waits.notify()

    def _has_come(self) -> bool:
        """Whether there are records. After an error nothing is told until the time is over: who asks anew hears it."""
        assert self._fetcher is not None
        has_come = False
        while (piece := self._fetcher.take_fetched()) is not None:
            if piece.notice is None:
                has_come = True
            elif piece.notice.error() != KafkaError._PARTITION_EOF:
                self._watched = {}
        return has_come
