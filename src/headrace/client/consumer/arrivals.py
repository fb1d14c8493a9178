"""Waits until records arrive behind the ends of logs, by fetches that brokers hold until there is something.

A fetch asks for one byte, and gets one batch, which is thrown away: who waits here plans reads and has others read. A
broker has one such question at a time, without a fetch session. It stays where it is when something comes elsewhere,
and is asked again only while somebody waits; so waiting costs next to nothing, and an arrival is told at once. It must
not know what is planned. Read next: `client.consumer.log_view`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from headrace.client.core import ClientCore
from headrace.client.waits import ThreadWaits, Wait
from headrace.errors import KafkaException
from headrace.machines.consumer.subscription import Key
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

__all__ = ["Arrivals"]

_HELD_S: Final = 10.0
"""How long a broker holds a question."""
_GRACE_S: Final = 30.0
_PAUSE_S: Final = 0.5
"""After an error; leaders may have moved by then."""
_BY_NAME: Final = 12
"""The last version of Fetch that has topics by name."""


class Arrivals:
    """Watches partitions for one caller.

    Args:
        core: has the connections; its metadata has the partitions' topics.
        waits: of the caller's thread.
        isolation_level: 1 to wait for committed records.
    """

    def __init__(self, core: ClientCore, waits: ThreadWaits, isolation_level: int) -> None:
        self._core, self._waits, self._isolation_level = core, waits, isolation_level
        self._ends: dict[Key, int] = {}
        self._asked: dict[int, asyncio.Task[None]] = {}  # by broker
        self._has_come = self._is_awaited = False

    def wait(self, ends: Mapping[Key, int], timeout_s: float) -> bool:
        """Wait until a partition may have records behind its end.

        Args:
            ends: offset behind the last record known, by partition.
            timeout_s: longest wait, in seconds.

        Returns:
            False when nothing has come.
        """
        give_up_at = time.monotonic() + timeout_s
        self._waits.do(self._begin, dict(ends))
        self._waits.wait(Wait(lambda: self._has_come, give_up_at))
        return self._waits.do(self._end)

    # On the loop

    def _begin(self, ends: dict[Key, int]) -> None:
        if self._ends != ends:
            self._ends, self._has_come = ends, False
        self._is_awaited = True
        if not self._has_come:
            self._ask_all()

    def _end(self) -> bool:
        self._is_awaited = False
        return self._has_come

    def _ask_all(self) -> None:
        """Ask each leader that has no question now."""
        parts: dict[int, dict[Key, int]] = {}
        for key, offset in self._ends.items():
            leader, _ = self._core.metadata.leader(*key)
            if leader is not None and leader not in self._asked:
                parts.setdefault(leader, {})[key] = offset
        for node, part in parts.items():
            self._asked[node] = asyncio.get_running_loop().create_task(self._ask(node, part))

    async def _ask(self, node: int, part: dict[Key, int]) -> None:
        try:
            reply = await self._core.driver.request(node, self._question(part), _HELD_S + _GRACE_S,
                                                    max_version=_BY_NAME)
            assert isinstance(reply, FetchResponse)
            is_well = self._heed(reply, part)
        except KafkaException:
            is_well = False
        if not is_well and not self._core.closed:
            self._core.refresh_metadata()
            await asyncio.sleep(_PAUSE_S)
        del self._asked[node]
        if self._is_awaited and not self._has_come and not self._core.closed:
            self._ask_all()

    def _heed(self, reply: FetchResponse, part: dict[Key, int]) -> bool:
        """Tell of records behind ends that are still the ones that matter; False after an error."""
        is_well = not reply.error_code
        for topic in reply.responses:
            for data in topic.partitions:
                key = (topic.topic, data.partition_index)
                if data.error_code:
                    is_well = False
                elif data.records and self._ends.get(key) == part.get(key):
                    self._has_come = True
        if self._has_come:
            self._waits.notify()
        return is_well

    def _question(self, part: Mapping[Key, int]) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for (name, partition), offset in part.items():
            topic = topics.setdefault(name, FetchTopic(topic=name, partitions=[]))
            topic.partitions.append(FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1))
        return FetchRequest(max_wait_ms=int(_HELD_S * 1000), min_bytes=1, max_bytes=1,
                            isolation_level=self._isolation_level, topics=list(topics.values()))
