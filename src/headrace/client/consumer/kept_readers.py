"""Readers of ranges that stay open between uses: what a kept client is for a reader (decision 0014).

It must not know what the tasks are: Spark's are in `headrace.spark.source`.
Read next: `client.kept_clients`, `client.consumer.range_reader`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.client.consumer.range_reader import RangeReader
from headrace.client.kept_clients import KeptClients

__all__ = ["KeptReaders"]


class KeptReaders(KeptClients[RangeReader]):
    """The readers that a process keeps."""

    def make(self, properties: Mapping[str, Any]) -> RangeReader:
        """A new reader."""
        return RangeReader(properties)

    def is_usable(self, client: RangeReader) -> bool:
        """Whether it is open."""
        return not client.closed

    def has_finished(self, client: RangeReader) -> bool:
        """Whether it has handed out all that it was asked for; else replies may still be on their way."""
        return client.finished

    def confirm(self, client: RangeReader) -> bool:
        """Ask brokers for its topics; whether one answers. Whether the topics are the same, a read finds out."""
        return client.confirm()

    def end(self, client: RangeReader) -> None:
        """Close it."""
        client.close()

    def abandon(self, client: RangeReader) -> None:
        """Close it without waiting."""
        client.abandon()
