"""What a query's driver asks the brokers: which partitions there are, where they begin and end, and what is new.

It rides out brokers that restart: leaders move, and the answer comes a little later. This module does not import
pyspark. Read next: `headrace.spark.source`, `client.consumer.log_view`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from headrace.client.consumer.log_view import LogView
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.spark.options import Position, Retries, TopicSelection
from headrace.spark.plan import EARLIEST, LATEST, DataLossError, Offsets, Tp

__all__ = ["ClusterView"]

_ATTEMPT_S: Final = 20.0
_FRESH_S: Final = 1.0
_T = TypeVar("_T")


class ClusterView:
    """A view of the topics that a query reads. It connects at the first question and belongs to one process.

    Args:
        client: properties of the client, without the prefix ``kafka.``.
        subscription: what to read.
        retries: how often, or how long, brokers that do not answer are asked again.
    """

    def __init__(
        self, client: Mapping[str, str], subscription: TopicSelection, retries: Retries = Retries()  # noqa: B008
    ) -> None:
        self._log = LogView(client, subscription.names)
        self._subscription = subscription
        self._retries = retries
        self._ids: dict[str, str] = {}
        self._epochs: Offsets = {}

    def partitions(self) -> list[Tp]:
        """The partitions to read, in order. New ones are seen within a second.

        Raises:
            ConfigError: a topic or partition that was asked for by name does not exist.
            KafkaException: the brokers did not answer in time.
        """
        return self._patiently(lambda: self._partitions(missing_ones=False, max_age_s=_FRESH_S))

    def ends(self) -> Offsets:
        """The end of each partition to read that exists. New partitions are seen within a second."""
        return self._patiently(self._ends)

    @property
    def topic_ids(self) -> dict[str, str]:
        """Ids of the topics, as of the last look; without those whose brokers give them none."""
        return dict(self._ids)

    @property
    def end_epochs(self) -> Offsets:
        """The leader's term of the last record of each partition, as of the last `ends`; where brokers tell it."""
        return dict(self._epochs)

    def log_ends(self, epochs: Offsets) -> Offsets:
        """Where the log of each partition ends for records of a leader's term or an earlier one.

        Args:
            epochs: the term, by partition.
        """
        return self._patiently(lambda: self._log.epoch_ends(epochs, _ATTEMPT_S)) if epochs else {}

    def wait_for_records(self, ends: Offsets, timeout_s: float) -> bool:
        """Wait until something may have come behind the ends, at most so many seconds. False when nothing has."""
        return self._log.wait_for_records(ends, timeout_s)

    def begin_commit(self, group_id: str, offsets: Offsets) -> Callable[[float], None]:
        """Begin to set offsets of a group; see `LogView.commit`."""
        return self._log.commit(group_id, offsets, _ATTEMPT_S)

    def _ends(self) -> Offsets:
        found = self._list(self._partitions(missing_ones=True, max_age_s=_FRESH_S), LATEST)
        self._epochs = {tp: epoch for tp, (_, epoch) in found.items() if epoch >= 0}
        return {tp: offset for tp, (offset, _) in found.items()}

    def _partitions(self, *, missing_ones: bool, max_age_s: float = 0.0) -> list[Tp]:
        """The partitions to read; what is asked for by name and missing is left out, or refused."""
        chosen = self._subscription
        topics = self._topics(max_age_s)
        if chosen.assigned:
            missing = [f"{t}[{p}]" for t, p in chosen.assigned if p not in topics.get(t, ())]
            found = [(t, p) for t, p in chosen.assigned if p in topics.get(t, ())]
        else:
            wanted = [topic for topic in topics if chosen.reads(topic)] if chosen.pattern else chosen.topics
            missing = [topic for topic in wanted if topic not in topics]
            found = [(topic, partition) for topic in wanted for partition in topics.get(topic, ())]
        if missing and not missing_ones:
            what = "partition" if chosen.assigned else "topic"
            raise ConfigError(f"{what} {', '.join(missing)} does not exist: create it or check its name")
        return sorted(found)

    def _topics(self, max_age_s: float) -> dict[str, list[int]]:
        """The partitions of the topics that are there: of those that are read, or of all where a pattern chooses."""
        found = self._log.topics(_ATTEMPT_S, max_age_s=max_age_s)
        for name, topic in found.items():
            missing = topic.error is not None and topic.error == KafkaError.UNKNOWN_TOPIC_OR_PART
            if topic.error is not None and not missing and name in self._subscription.topics:
                if topic.error == KafkaError.TOPIC_EXCEPTION:  # no broker will ever have one of this name
                    raise ConfigError(topic.error.str())
                raise KafkaException(topic.error)
        # As in Spark's connector a pattern passes Kafka's own topics over; who names one gets it.
        there = {name: topic for name, topic in found.items()
                 if topic.error is None and not (topic.is_internal and self._subscription.pattern)}
        self._ids = {name: str(topic.topic_id) for name, topic in there.items() if topic.topic_id.int}
        return {name: list(topic.partitions) for name, topic in there.items()}

    def earliest(self, partitions: Iterable[Tp]) -> Offsets:
        """The first offset of each partition."""
        return self._listed(partitions, EARLIEST)

    def latest(self, partitions: Iterable[Tp]) -> Offsets:
        """The offset after the last record of each partition; of the last committed one, with read_committed."""
        return self._listed(partitions, LATEST)

    def too_short(self, wanted: Offsets) -> Offsets:
        """The ends of the logs that end before an offset, by partition. An open transaction's records count: they may
        be committed soon.
        """
        ends = self._offsets(lambda: self._list(wanted, LATEST, uncommitted=True))
        return {tp: end for tp, end in ends.items() if end < wanted[tp]}

    def resolve(self, position: Position, partitions: list[Tp]) -> Offsets:
        """The offset of each partition at a position.

        Raises:
            ConfigError: the position names offsets or times, and they do not fit the partitions.
            DataLossError: no record at or after the timestamp, and `else_latest` is not set.
        """
        if position.timestamp_ms is not None:
            return self._at(dict.fromkeys(partitions, position.timestamp_ms), position.else_latest)
        if position.timestamps:
            _check_named(position.timestamps, partitions, "timestamps")
            return self._at(position.timestamps, position.else_latest)
        if not position.offsets:
            return self.earliest(partitions) if position.logical == EARLIEST else self.latest(partitions)
        _check_named(position.offsets, partitions, "offsets")
        found = dict(position.offsets)
        found |= self.earliest(tp for tp, offset in position.offsets.items() if offset == EARLIEST)
        found |= self.latest(tp for tp, offset in position.offsets.items() if offset == LATEST)
        return found

    def _at(self, timestamps_ms: Offsets, else_latest: bool) -> Offsets:
        found = self._offsets(lambda: self._list_at(timestamps_ms))
        missing = [tp for tp, offset in found.items() if offset < 0]
        if missing and not else_latest:
            what = ", ".join(f"{t}[{p}] ({timestamps_ms[t, p]})" for t, p in sorted(missing))
            raise DataLossError(f"no record at or after the time given for {what}: set "
                                "startingOffsetsByTimestampStrategy to latest to start at the end there")
        return found | self.latest(missing)

    def _listed(self, partitions: Iterable[Tp], where: int) -> Offsets:
        wanted = list(partitions)
        return self._offsets(lambda: self._list(wanted, where))

    def _offsets(self, ask: Callable[[], dict[Tp, tuple[int, int]]]) -> Offsets:
        return {tp: offset for tp, (offset, _) in self._patiently(ask).items()}

    def _list(self, partitions: Iterable[Tp], where: int, *, uncommitted: bool = False) -> dict[Tp, tuple[int, int]]:
        return self._list_at(dict.fromkeys(partitions, where), uncommitted=uncommitted)

    def _list_at(self, wanted: Offsets, *, uncommitted: bool = False) -> dict[Tp, tuple[int, int]]:
        """Offset and leader's term of each partition at a time, or at its beginning or end."""
        if not wanted:
            return {}
        self._log.topics(_ATTEMPT_S, max_age_s=_FRESH_S)
        found = self._log.offsets(wanted, _ATTEMPT_S, uncommitted=uncommitted)
        return {tp: (each.offset, -1 if each.leader_epoch is None else each.leader_epoch) for tp, each in found.items()}

    def _patiently(self, ask: Callable[[], _T]) -> _T:
        began, failures = time.monotonic(), 0
        while True:
            try:
                return ask()
            except KafkaException as failed:
                error = failed.error
                self._log.forget_topics()  # a leader may have moved, a partition may be gone
                failures += 1
                passing = error.retriable() or error in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
                spent_s = time.monotonic() - began
                # A running query rides out a name service that is down; to one that begins its hosts are unknown.
                unknown = error == KafkaError._RESOLVE and not self._log.answered
                if not passing or unknown or self._retries.are_over(failures, spent_s):
                    raise
            time.sleep(self._retries.pause_s)

    def close(self) -> None:
        """Close the connections."""
        self._log.close()

    def __enter__(self) -> ClusterView:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_named(given: Mapping[Tp, int], partitions: list[Tp], what: str) -> None:
    unnamed = [f"{t}[{p}]" for t, p in partitions if (t, p) not in given]
    unknown = [f"{t}[{p}]" for t, p in given if (t, p) not in partitions]
    if unnamed:
        raise ConfigError(f"the {what} that were given leave out {', '.join(unnamed)}: name every partition")
    if unknown:
        raise ConfigError(f"the {what} that were given name {', '.join(unknown)}, which is not read")
