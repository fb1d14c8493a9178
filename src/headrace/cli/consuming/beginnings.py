"""From the command line to a source: which partitions there are, and which of their offsets are meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from headrace.cli.consuming.consume_options import ConsumeOptions
from headrace.cli.consuming.offset_expressions import BEGINNING, END, STORED, OffsetSpan, resolve
from headrace.cli.consuming.record_sources import (
    FollowedPartitions,
    GroupReader,
    RangesOfOffsets,
    RecordSource,
    ShareReader,
)
from headrace.client.consumer.log_view import LogView
from headrace.client.consumer.range_reader import OffsetRange
from headrace.errors import KafkaError, KafkaException
from headrace.types.records import TopicPartition

__all__ = ["ANSWER_S", "committed_offsets", "offsets_of", "open_source", "partitions_of"]

Key = tuple[str, int]
ANSWER_S = 10.0
"""Longest wait for brokers before there is anything to see, in seconds."""


def open_source(options: ConsumeOptions, properties: Mapping[str, Any]) -> tuple[RecordSource, int | None]:
    """A source of the records that are asked for.

    Args:
        options: the command line.
        properties: of the consumer.

    Returns:
        The source, and how many offsets it will pass, None when there is no end.

    Raises:
        KafkaException: a topic or a partition is not there, or no broker answered.
    """
    if options.group is not None:
        if options.share:
            return ShareReader(properties, options.topics), None
        if options.span.start in (BEGINNING, END):
            reset = "earliest" if options.span.start == BEGINNING else "latest"
            properties = {**properties, "auto.offset.reset": reset}
        return GroupReader(properties, options.topics, ends=options.exits, commits=options.commits), None
    with LogView(properties, None if any(name.startswith("^") for name in options.topics) else options.topics) as view:
        partitions = partitions_of(view, options.topics, options.partitions)
        stored = offsets_of(committed_offsets(properties, partitions)) if options.span.start == STORED else {}
        start = options.span.start or (BEGINNING if options.exits else END)
        found = resolve(OffsetSpan(start, options.span.end), partitions, view, stored, ANSWER_S)
    if options.exits:
        ranges = [OffsetRange(*key, *span) for key, span in found.items()]
        return RangesOfOffsets(properties, ranges, control=options.control), sum(
            each.end - each.start for each in ranges)
    return FollowedPartitions(properties, [TopicPartition(*key, span[0]) for key, span in found.items()]), None


def partitions_of(view: LogView, names: Sequence[str], numbers: Sequence[int] | None) -> list[Key]:
    """The partitions of topics, in order.

    Args:
        view: knows the topics.
        names: topics, and patterns that begin with ``^``.
        numbers: only these partitions; None for all.

    Raises:
        KafkaException: a topic or a partition is not there, or cannot be read.
    """
    topics = view.topics(ANSWER_S)
    found: list[Key] = []
    for name in names:
        matching = [name] if not name.startswith("^") else sorted(
            topic for topic in topics if re.match(name, topic) and not topic.startswith("__"))
        if not matching:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC, f"no topic matches {name}"))
        for topic in matching:
            info = topics[topic]
            if info.error is not None:
                raise KafkaException(info.error)
            there = sorted(info.partitions)
            missing = [number for number in numbers or () if number not in there]
            if missing:
                raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION, f"{topic} has no partition "
                                                f"{missing[0]}: it has {len(there)}"))
            found += [(topic, number) for number in (sorted(set(numbers)) if numbers is not None else there)]
    return list(dict.fromkeys(found))


def committed_offsets(properties: Mapping[str, Any], partitions: Collection[Key]) -> list[TopicPartition]:
    """What the group of the properties has committed, and the texts beside it; -1001 where that is nothing.

    Raises:
        KafkaException: the coordinator did not answer, or refused.
    """
    from headrace import Consumer

    with Consumer({**properties, "enable.auto.commit": False}) as consumer:
        committed = consumer.committed([TopicPartition(*key) for key in partitions], ANSWER_S)
    for tp in committed:
        if tp.error is not None:
            raise KafkaException(tp.error)
    return committed


def offsets_of(partitions: Iterable[TopicPartition]) -> dict[Key, int]:
    """The offsets by topic and partition."""
    return {(tp.topic, tp.partition): tp.offset for tp in partitions}
