"""What the property `partitioner` means: the user's functions in Python, `round_robin`, and the weighing of partitions.

Keys are hashed, and random choices made, natively: see `records.hashing`. Read next: `client.producer.topics`,
`machines.producer.partitioner`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.buffers import RecordAccumulator
from headrace.config import Config, is_by_lot
from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.machine import Machine
from headrace.machines.producer.batch_queue import BatchQueues
from headrace.machines.producer.partitioner import PartitionLoadStats
from headrace.records.message import encode_text

__all__ = ["Choice", "balance_of", "choice_of"]

Choice = Callable[[str, Any, Any, int], int]
"""Called as choice(topic, key, value, partition_count); returns a partition that exists, or raises `KafkaException`."""


def choice_of(partitioner: str | Callable[..., Any]) -> Choice | None:
    """The function behind the property `partitioner`, None if records need not be handed to one."""
    if callable(partitioner):
        return _checked(partitioner)
    return _RoundRobin() if partitioner == "round_robin" else None


def balance_of(
    config: Config, accumulators: Mapping[str, RecordAccumulator], batch_queues: BatchQueues, metadata: Metadata
) -> list[Machine]:
    """The load statistics that weigh a producer's partitions; None if its partitioner leaves no record to chance."""
    if not is_by_lot(config["partitioner"]):
        return []
    return [PartitionLoadStats(
        accumulators, batch_queues, metadata, adaptive=config["partitioner.adaptive.partitioning.enable"],
        patience_s=config.seconds("partitioner.availability.timeout.ms"),
        rack=config["client.rack"] if config["partitioner.rack.aware"] else "")]


class _RoundRobin:
    """One partition after the other, whatever the key (Java: `RoundRobinPartitioner`)."""

    def __init__(self) -> None:
        self._turns: dict[str, Iterator[int]] = {}

    def __call__(self, topic: str, key: Any, value: Any, partition_count: int) -> int:
        turns = self._turns.get(topic) or self._turns.setdefault(topic, itertools.count())
        return next(turns) % partition_count


def _checked(partitioner: Callable[..., Any]) -> Choice:
    name = getattr(partitioner, "__qualname__", None) or type(partitioner).__qualname__

    def choose(topic: str, key: Any, value: Any, partition_count: int) -> int:
        raw_key, raw_value = encode_text(key, "key"), encode_text(value, "value")
        try:
            chosen = partitioner(topic, raw_key, raw_value, partition_count)
        except Exception as raised:
            raise _failed(KafkaError._FAIL, name, topic, f"raised {type(raised).__name__}: {raised}") from raised
        try:
            number = operator.index(chosen)
        except TypeError:
            raise _failed(KafkaError._INVALID_ARG, name, topic,
                          f"returned {chosen!r}, not the number of a partition") from None
        if not 0 <= number < partition_count:
            raise _failed(KafkaError._UNKNOWN_PARTITION, name, topic,
                          f"returned {number}, where 0 to {partition_count - 1} exist")
        return number

    return choose


def _failed(code: int, name: str, topic: str, what: str) -> KafkaException:
    return KafkaException(KafkaError(code, f'the partitioner {name} {what} (topic "{topic}")'))
