"""How large the records of a topic are, by a look at some of them: what `maxBytesPerTrigger` counts with.

Brokers do not say how many bytes lie between two offsets. So the driver reads the first 64 KiB of a topic's backlog
(the partition with the largest one), all topics in one request, and again after half a minute. Bytes are those that
brokers store and send: of compressed batches, compressed. This module does not import pyspark.
Read next: `headrace.spark.plan`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from headrace.client.consumer.range_reader import OffsetRange, RangeReader
from headrace.errors import KafkaException
from headrace.spark.plan import Offsets, Tp

__all__ = ["RecordSizes"]

_SAMPLE_BYTES: Final = 64 << 10
_FRESH_S: Final = 30.0
_ANSWER_S: Final = 20.0
_USUAL_BYTES: Final = 1024.0
"""For a topic whose records could not be looked at."""


class RecordSizes:
    """Average sizes of records, by topic. It connects at the first question and belongs to one process.

    Args:
        client: properties of the client, without the prefix ``kafka.``.
    """

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = {**client, "max.partition.fetch.bytes": str(_SAMPLE_BYTES)}
        self._client.pop("fetch.message.max.bytes", None)
        self._reader: RangeReader | None = None
        self._known: dict[str, float] = {}
        self._known_at: dict[str, float] = {}

    def of(self, start: Offsets, latest: Offsets) -> Mapping[str, float]:
        """Bytes of a record of each topic that has a backlog.

        Args:
            start: where the backlog begins.
            latest: where it ends.
        """
        largest: dict[str, Tp] = {}
        for tp in latest:
            size, topic = latest[tp] - start.get(tp, 0), tp[0]
            if size > 0 and (topic not in largest or size > latest[largest[topic]] - start.get(largest[topic], 0)):
                largest[topic] = tp
        now = time.monotonic()
        old = [tp for topic, tp in largest.items() if now - self._known_at.get(topic, -_FRESH_S) >= _FRESH_S]
        if old:
            self._look([OffsetRange(*tp, start.get(tp, 0), start.get(tp, 0) + 1) for tp in old])
            self._known_at |= {topic: now for topic, _ in old}
        return {topic: self._known.get(topic, _USUAL_BYTES) for topic in largest}

    def _look(self, ranges: list[OffsetRange]) -> None:
        if self._reader is None:
            self._reader = RangeReader(self._client)
        try:
            for piece in self._reader.read(ranges, _ANSWER_S):
                self._known[piece.topic] = len(piece.data) / max(piece.next_offset - piece.fetch_offset, 1)
        except KafkaException:  # the tasks that read will say what is wrong
            self._reader.close()
            self._reader = None
