"""Which offsets of the source are to be copied, and whether they fit into the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.cli.consuming.beginnings import ANSWER_S, partitions_of
from headrace.cli.consuming.offset_expressions import BEGINNING, OffsetSpan, resolve
from headrace.cli.consuming.record_sources import FollowedPartitions, RangesOfOffsets, RecordSource
from headrace.cli.copying.copy_options import CopyOptions
from headrace.cli.copying.copy_positions import CopyPositions, OffsetsOfSource, TextsAtTarget
from headrace.cli.shared.exits import needing
from headrace.cli.shared.output import amount
from headrace.client.consumer.log_view import LogView
from headrace.client.consumer.range_reader import OffsetRange
from headrace.errors import ConfigError
from headrace.types.records import TopicPartition

__all__ = ["COMMIT_S", "CopyPlan"]

Key = tuple[str, int]
COMMIT_S = 30.0
"""Longest wait until offsets are stored, in seconds."""


class CopyPlan:
    """What is to be copied. It asks both clusters; a context manager, which ends the connections.

    Args:
        options: the command line.

    Raises:
        ConfigError: the target has not the partitions that the source has.
        KafkaException: a topic is not there, or no broker answered.
    """

    def __init__(self, options: CopyOptions) -> None:
        self._options = options
        self._spans: dict[Key, tuple[int, int]] = {}
        with LogView(options.writing, [options.target]) as view, needing("WRITE", [options.target]):
            there = [partition for _, partition in partitions_of(view, [options.target], None)]
        self._view = LogView(options.reading, [options.source])
        try:
            with needing("READ", [options.source]):
                self._partitions = partitions_of(self._view, [options.source], options.partitions)
            self._check(there)
            self._positions = self._positions_at(there)
        except BaseException:
            self._view.close()
            raise

    def _check(self, there: Sequence[int]) -> None:
        options = self._options
        missing = [partition for _, partition in self._partitions if partition not in there]
        if missing and not options.repartition:
            has = f"{options.target} has {amount(len(there), 'partition')}"
            raise ConfigError(f"{has}, and no partition {missing[0]} for that of {options.source}: --repartition lets "
                              "the keys choose, and so does a larger topic")

    def _positions_at(self, there: Sequence[int]) -> CopyPositions | None:
        options = self._options
        if options.group is None:
            return None
        if options.exactly_once and options.elsewhere:
            topic = self._view.topics(ANSWER_S, max_age_s=ANSWER_S)[options.source]
            return TextsAtTarget(options.writing, options.group, options.source, str(topic.topic_id), options.target,
                                 there)
        return OffsetsOfSource(options.reading, options.group)

    def find_offsets(self) -> None:
        """Look where to begin and to end. Exactly once, nobody else may write any more for this copy.

        Raises:
            KafkaException: a broker did not answer, or refused.
            RefusedError: the group keeps the positions of another copy.
        """
        options, partitions = self._options, self._partitions
        kept = {} if self._positions is None else self._positions.load(partitions)
        span = OffsetSpan(options.span.start or BEGINNING, options.span.end)
        with needing("READ", [options.source]):
            spans = resolve(span, partitions, self._view, {}, ANSWER_S)
        self._spans = {key: (_begin(kept.get(key, -1), *span), span[1]) for key, span in spans.items()}

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

    def committable(self, positions: Mapping[Key, int]) -> list[TopicPartition]:
        """How far the copy is, as offsets of the group in a transaction."""
        assert self._positions is not None
        return self._positions.committable(positions)

    def keep(self, positions: Mapping[Key, int]) -> None:
        """How far the copy is, outside of transactions; nobody keeps it without a group.

        Raises:
            KafkaException: the coordinator did not answer, or refused.
        """
        if (group := self._options.group) is not None:
            self._view.commit(group, positions, COMMIT_S)(COMMIT_S)

    def __enter__(self) -> CopyPlan:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._view.close()


def _begin(stored: int, start: int, end: int) -> int:
    """Where the group is, if it is anywhere; what is gone since is passed over by the reader's rule for such."""
    return start if stored < 0 else min(stored, max(start, end))
