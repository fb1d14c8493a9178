"""Which offsets of the source are to be copied, and whether they fit into the target."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.cli.consuming.beginnings import ANSWER_S, partitions_of, stored_offsets
from headrace.cli.consuming.offset_expressions import BEGINNING, OffsetSpan, resolve
from headrace.cli.consuming.record_sources import FollowedPartitions, RangesOfOffsets, RecordSource
from headrace.cli.copying.copy_options import CopyOptions
from headrace.cli.shared.output import amount
from headrace.client.consumer.log_view import LogView
from headrace.client.consumer.range_reader import OffsetRange
from headrace.errors import ConfigError
from headrace.types.records import TopicPartition

__all__ = ["CopyPlan", "plan_copy"]

Key = tuple[str, int]


class CopyPlan:
    """What is to be copied.

    Args:
        options: the command line.
        spans: the first offset of each partition, and the one behind the last.
    """

    def __init__(self, options: CopyOptions, spans: Mapping[Key, tuple[int, int]]) -> None:
        self._options = options
        self._spans = spans

    @property
    def total(self) -> int | None:
        """How many offsets there are; None without an end."""
        return None if self._options.follow else sum(end - start for start, end in self._spans.values())

    def source(self) -> RecordSource:
        """What reads them."""
        reading = {**self._options.reading, "group.id": ""}
        if self._options.follow:
            starts = [TopicPartition(*key, start) for key, (start, _) in self._spans.items()]
            return FollowedPartitions(reading, starts)
        return RangesOfOffsets(reading, [OffsetRange(*key, *span) for key, span in self._spans.items()])


def plan_copy(options: CopyOptions) -> CopyPlan:
    """Ask both clusters.

    Raises:
        ConfigError: the target has not the partitions that the source has.
        KafkaException: a topic is not there, or no broker answered.
    """
    with LogView(options.writing, [options.target]) as view:
        there = {partition for _, partition in partitions_of(view, [options.target], None)}
    with LogView(options.reading, [options.source]) as view:
        wanted = partitions_of(view, [options.source], options.partitions)
        missing = [partition for _, partition in wanted if partition not in there]
        if missing and not options.repartition:
            has = f"{options.target} has {amount(len(there), 'partition')}"
            raise ConfigError(f"{has}, and no partition {missing[0]} for that of {options.source}: --repartition lets "
                              "the keys choose, and so does a larger topic")
        stored = {} if options.group is None else stored_offsets(
            {**options.reading, "group.id": options.group}, wanted)
        start = options.span.start or BEGINNING
        spans = resolve(OffsetSpan(start, options.span.end), wanted, view, {}, ANSWER_S)
    return CopyPlan(options, {key: (_begin(stored.get(key, -1), *span), span[1]) for key, span in spans.items()})


def _begin(stored: int, start: int, end: int) -> int:
    """Where the group is, if it is anywhere; what is gone since is passed over by the reader's rule for such."""
    return start if stored < 0 else min(stored, max(start, end))
