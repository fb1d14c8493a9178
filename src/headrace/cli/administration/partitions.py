"""Partitions as they are typed and shown: `orders:0`, or `orders` for all of a topic."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headrace.admin import AdminClient, OffsetSpec
from headrace.cli.shared.exits import NOT_FOUND, RefusedError
from headrace.errors import KafkaError, KafkaException
from headrace.types.cluster import TopicCollection
from headrace.types.records import TopicPartition

__all__ = ["Chosen", "broker_ids", "chosen", "exact", "expanded", "order", "partition_name", "watermarks"]


class Chosen(NamedTuple):
    """What was typed: a topic, and which of its partitions.

    Args:
        topic: its name.
        numbers: of partitions; None for all.
    """

    topic: str
    numbers: tuple[int, ...] | None


def chosen(text: str) -> Chosen:
    """`orders`, `orders:0` or `orders:0,3,5-7`, for argparse.

    Raises:
        ArgumentTypeError: it is none of these.
    """
    topic, colon, numbers = text.partition(":")
    found = list[int]()
    for part in numbers.split(",") if colon else ():
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise argparse.ArgumentTypeError(f"{text!r} is neither TOPIC nor TOPIC:0,3,5-7")
        found += range(int(first), int(last if dash else first) + 1)
    if not topic:
        raise argparse.ArgumentTypeError(f"{text!r} names no topic")
    return Chosen(topic, tuple(found) if colon else None)


def broker_ids(text: str) -> list[int]:
    """Ids of different brokers, `1,2,3`, for argparse.

    Raises:
        ArgumentTypeError: they are not.
    """
    ids = text.split(",")
    if not all(each.isascii() and each.isdigit() for each in ids) or len(set(ids)) < len(ids):
        raise argparse.ArgumentTypeError(f"{text!r} is not BROKER,BROKER")
    return [int(each) for each in ids]


def exact(text: str) -> TopicPartition:
    """One partition, `orders:0`, for argparse.

    Raises:
        ArgumentTypeError: it is not one.
    """
    found = chosen(text)
    if found.numbers is None or len(found.numbers) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC:PARTITION")
    return TopicPartition(found.topic, found.numbers[0])


def partition_name(tp: TopicPartition) -> str:
    """A partition as it is typed."""
    return f"{tp.topic}:{tp.partition}"


def order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions by topic and number."""
    return sorted(partitions, key=lambda tp: (tp.topic, tp.partition))


def expanded(admin: AdminClient, given: Sequence[Chosen]) -> list[TopicPartition]:
    """The partitions that were typed.

    Raises:
        KafkaException: a topic is not there, or cannot be seen.
        RefusedError: a topic has no such partition.
    """
    names = list(dict.fromkeys(each.topic for each in given))
    counts = {name: len(found.result().partitions)
              for name, found in admin.describe_topics(TopicCollection(names)).items()}
    for each in given:
        beyond = [number for number in each.numbers or () if number >= counts[each.topic]]
        if beyond:
            raise RefusedError(f"{each.topic} has no partition {beyond[0]}: it has {counts[each.topic]}", NOT_FOUND)
    return order({TopicPartition(each.topic, number) for each in given
                  for number in (range(counts[each.topic]) if each.numbers is None else each.numbers)})


def watermarks(
    admin: AdminClient, partitions: Iterable[TopicPartition]
) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, int | None]]:
    """First and last offsets; None where the leader cannot be asked."""
    wanted = list(partitions)
    first = admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.earliest())) if wanted else {}
    last = admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.latest())) if wanted else {}
    return ({tp: _offset(found) for tp, found in first.items()}, {tp: _offset(found) for tp, found in last.items()})


def _offset(future: Any) -> int | None:
    try:
        return int(future.result().offset)
    except KafkaException as failed:
        if failed.error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.LEADER_NOT_AVAILABLE,
                                   KafkaError._TIMED_OUT, KafkaError.UNKNOWN_TOPIC_OR_PART):
            return None
        raise
