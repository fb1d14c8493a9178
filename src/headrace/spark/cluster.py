"""What a query's driver asks the brokers: which partitions there are, and where they begin and end.

It rides out brokers that restart: leaders move, and the answer comes a little later. This module does not import
pyspark. Read next: `headrace.spark.source`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from headrace.admin import AdminClient, IsolationLevel, OffsetSpec
from headrace.client.admin.admin_client import list_these
from headrace.config import ADMIN, Config
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.spark.options import Position, TopicSelection
from headrace.spark.plan import EARLIEST, LATEST, DataLossError, Offsets, Tp, text_of
from headrace.types.records import TopicPartition

__all__ = ["ClusterView"]

_PATIENCE_S: Final = 120.0
_ATTEMPT_S: Final = 20.0
_PAUSE_S: Final = 0.25
_FRESH_S: Final = 1.0
_T = TypeVar("_T")


class ClusterView:
    """A view of the topics that a query reads. It connects at the first question and belongs to one process.

    Args:
        client: properties of the client, without the prefix ``kafka.``.
        subscription: what to read.
        patience_s: how long brokers that do not answer are asked again, in seconds.
    """

    def __init__(
        self, client: Mapping[str, str], subscription: TopicSelection, *, patience_s: float = _PATIENCE_S
    ) -> None:
        self._admin = AdminClient(dict(client))
        self._isolation = IsolationLevel(Config(ADMIN, client)["isolation.level"])
        self._subscription = subscription
        self._patience_s = patience_s
        self._known: list[Tp] = []
        self._known_at_s = -_FRESH_S

    def partitions(self) -> list[Tp]:
        """The partitions to read now, in order.

        Raises:
            ConfigError: a topic or partition that was asked for by name does not exist.
            KafkaException: the brokers did not answer in time.
        """
        return self._patiently(self._partitions)

    def ends(self) -> Offsets:
        """The end of each partition to read. New partitions are seen within a second."""
        return self._patiently(self._ends)

    def _ends(self) -> Offsets:
        if time.monotonic() - self._known_at_s > _FRESH_S:
            self._known, self._known_at_s = self._partitions(), time.monotonic()
        try:
            return self._list(self._known, OffsetSpec.latest())
        except KafkaException:
            self._known_at_s = -_FRESH_S  # a partition may be gone
            raise

    def _partitions(self) -> list[Tp]:
        topics = self._topics()
        if self._subscription.assigned:
            missing = [f"{t}[{p}]" for t, p in self._subscription.assigned if p not in topics.get(t, ())]
            self._refuse(missing, "partition")
            return sorted(self._subscription.assigned)
        if self._subscription.pattern:
            pattern = re.compile(self._subscription.pattern)
            wanted = [topic for topic in topics if pattern.fullmatch(topic)]
        else:
            wanted = list(self._subscription.topics)
            self._refuse([topic for topic in wanted if topic not in topics], "topic")
        return sorted((topic, partition) for topic in wanted for partition in topics[topic])

    def _refuse(self, missing: list[str], what: str) -> None:
        if missing:
            raise ConfigError(f"{what} {', '.join(missing)} does not exist: create it or check its name")

    def _topics(self) -> dict[str, list[int]]:
        """The partitions of the topics that are there: of those that are read, or of all where a pattern chooses."""
        found = list_these(self._admin, self._subscription.names, _ATTEMPT_S).topics
        for name, topic in found.items():
            missing = topic.error is not None and topic.error == KafkaError.UNKNOWN_TOPIC_OR_PART
            if topic.error is not None and not missing and name in self._subscription.topics:
                raise KafkaException(topic.error)
        return {name: list(topic.partitions) for name, topic in found.items() if topic.error is None}

    def earliest(self, partitions: Iterable[Tp]) -> Offsets:
        """The first offset of each partition."""
        return self._listed(partitions, OffsetSpec.earliest())

    def latest(self, partitions: Iterable[Tp]) -> Offsets:
        """The offset after the last record of each partition; of the last committed one, with read_committed."""
        return self._listed(partitions, OffsetSpec.latest())

    def resolve(self, position: Position, partitions: list[Tp]) -> Offsets:
        """The offset of each partition at a position.

        Raises:
            ConfigError: the position names offsets and they do not fit the partitions.
            DataLossError: no record at or after the timestamp, and `else_latest` is not set.
        """
        if position.timestamp_ms is not None:
            return self._at(position.timestamp_ms, partitions, position.else_latest)
        if not position.offsets:
            return self.earliest(partitions) if position.logical == EARLIEST else self.latest(partitions)
        _check_named(position.offsets, partitions)
        found = dict(position.offsets)
        found |= self.earliest(tp for tp, offset in position.offsets.items() if offset == EARLIEST)
        found |= self.latest(tp for tp, offset in position.offsets.items() if offset == LATEST)
        return found

    def _at(self, timestamp_ms: int, partitions: list[Tp], else_latest: bool) -> Offsets:
        found = self._listed(partitions, OffsetSpec.for_timestamp(timestamp_ms))
        missing = [tp for tp, offset in found.items() if offset < 0]
        if missing and not else_latest:
            raise DataLossError(
                f"no record at or after timestamp {timestamp_ms} in {text_of(dict.fromkeys(missing, LATEST))}: "
                "set startingOffsetsByTimestampStrategy to latest to start at the end there"
            )
        return found | self.latest(missing)

    def _listed(self, partitions: Iterable[Tp], spec: OffsetSpec) -> Offsets:
        wanted = list(partitions)
        return self._patiently(lambda: self._list(wanted, spec))

    def _list(self, partitions: list[Tp], spec: OffsetSpec) -> Offsets:
        if not partitions:
            return {}
        wanted = {TopicPartition(topic, partition): spec for topic, partition in partitions}
        replies = self._admin.list_offsets(wanted, isolation_level=self._isolation, request_timeout=_ATTEMPT_S)
        return {(tp.topic, tp.partition): reply.result().offset for tp, reply in replies.items()}

    def _patiently(self, ask: Callable[[], _T]) -> _T:
        end = time.monotonic() + self._patience_s
        while True:
            try:
                return ask()
            except KafkaException as failed:
                error = failed.error
                passing = error.retriable() or error in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
                if not passing or time.monotonic() > end:
                    raise
            time.sleep(_PAUSE_S)


def _check_named(offsets: Offsets, partitions: list[Tp]) -> None:
    unnamed = [f"{t}[{p}]" for t, p in partitions if (t, p) not in offsets]
    unknown = [f"{t}[{p}]" for t, p in offsets if (t, p) not in partitions]
    if unnamed:
        raise ConfigError(f"the offsets that were given leave out {', '.join(unnamed)}: name every partition")
    if unknown:
        raise ConfigError(f"the offsets that were given name {', '.join(unknown)}, which is not read")
