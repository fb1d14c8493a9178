"""`PartitionReader`: the raw bytes of one partition, from one offset to another, over connections of its own.

It must not know Arrow or Spark. Read next: `client.consumer.range_reader`, which does the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from headrace.client.consumer.range_reader import FetchedRange, OffsetRange, RangeReader

__all__ = ["PartitionReader"]


class PartitionReader:
    """Iterates over the offsets [start, end) of a partition. Use it as a context manager, or close it.

    Args:
        config: a consumer's properties; "max.partition.fetch.bytes" is 8 MiB unless it is given.
        topic: topic name.
        partition: partition number.
        start: first offset to read.
        end: offset to stop before; the data may hold records from there on, which the decoder leaves out.
        isolation_level: "read_committed" or "read_uncommitted".
        timeout_s: longest wait for a reply with data, in seconds.

    Raises:
        ConfigError: an unknown property or a bad value.
    """

    def __init__(
        self, config: Mapping[str, Any], topic: str, partition: int, start: int, end: int, *,
        isolation_level: str = "read_committed", timeout_s: float = 60.0,
    ) -> None:
        self._wanted = OffsetRange(topic, partition, start, end)
        self._timeout_s = timeout_s
        self._reader = RangeReader({**config, "isolation.level": isolation_level})

    def __iter__(self) -> Iterator[FetchedRange]:
        return self._reader.read([self._wanted], self._timeout_s)

    def close(self) -> None:
        """Close the connections. Closing twice does no harm."""
        self._reader.close()

    def __enter__(self) -> PartitionReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
