"""Records out of topics, portion by portion: ranges that end, partitions that are followed, groups, share groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from headrace import records
from headrace.cli.consuming.portions import Portion, control_portion, portions_of, portions_of_messages
from headrace.client.consumer.range_reader import FetchedRange, OffsetRange, RangeReader
from headrace.errors import ConsumeError, KafkaError, KafkaException
from headrace.records.columns.arrow_batch import ArrowBatchBuilder
from headrace.records.control import control_records
from headrace.types.records import TopicPartition

__all__ = ["FollowedPartitions", "GroupReader", "RangesOfOffsets", "RecordSource", "ShareReader"]

_ROWS = 50_000  # of a batch: much is done at once, and Ctrl-C and the bar need not wait for long
_TURN_S = 0.1  # how long few records may wait for others
_SILENCE_S = 60.0


class RecordSource(Protocol):
    """Gives records, and is told which ones are written."""

    def read(self) -> Iterator[list[Portion]]:
        """Portions as they come; an empty list from time to time while none do. It ends when all is read.

        Raises:
            KafkaException: it cannot be read on.
        """
        ...

    def done(self, portion: Portion) -> None:
        """These records are written, or were not wanted."""
        ...

    def close(self) -> None:
        """Say what is done, and close the connections."""
        ...


class RangesOfOffsets:
    """Ranges, one partition after the other, each in the order of its offsets.

    Args:
        properties: of a consumer.
        ranges: what to read.
        control: give control records too.
    """

    def __init__(
        self, properties: Mapping[str, Any], ranges: Sequence[OffsetRange], *, control: bool = False
    ) -> None:
        self._control = control
        self._last_rows = 0
        self._ranges = ranges
        self._ends = {each.key: each.end for each in ranges}
        self._reader = RangeReader(properties)
        self._check_crcs = str(properties.get("check.crcs", "")).lower() == "true"

    def read(self) -> Iterator[list[Portion]]:
        """See `RecordSource`."""
        for fetched in self._reader.read(self._ranges, _SILENCE_S):
            yield from self._portions(fetched)

    def _portions(self, fetched: FetchedRange) -> Iterator[list[Portion]]:
        where = fetched.topic, fetched.partition
        cursor = records.Cursor(fetched.data, *where, fetched.fetch_offset, check_crcs=self._check_crcs,
                                aborted=fetched.aborted)
        end = min(self._ends[where], fetched.next_offset)
        if self._control:
            for found in control_records(fetched.data, *where):
                if fetched.fetch_offset <= found.offset < end:
                    yield from self._up_to(cursor, where, found.offset, len(fetched.data))
                    yield [control_portion(*where, found)]
        yield from self._up_to(cursor, where, end, len(fetched.data))

    def _up_to(
        self, cursor: records.Cursor, where: tuple[str, int], end: int, waiting_bytes: int
    ) -> Iterator[list[Portion]]:
        """What is in front of an offset."""
        while True:
            made = ArrowBatchBuilder(likely_rows=self._last_rows)
            made.append(cursor, *where, _ROWS, waiting_bytes, end)
            if not len(made):
                return
            self._last_rows = len(made)
            yield list(portions_of(made.finish()))

    def done(self, portion: Portion) -> None:
        """Nobody asks afterwards."""

    def close(self) -> None:
        """See `RecordSource`."""
        self._reader.close()


class FollowedPartitions:
    """Partitions from given offsets on, without an end.

    Args:
        properties: of a consumer.
        starts: partitions with their offsets.
    """

    def __init__(self, properties: Mapping[str, Any], starts: Sequence[TopicPartition]) -> None:
        from headrace import Consumer

        self._consumer = Consumer({"auto.offset.reset": "earliest", **properties, "enable.auto.commit": False})
        self._consumer.assign(list(starts))

    def read(self) -> Iterator[list[Portion]]:
        """See `RecordSource`."""
        while True:
            yield list(portions_of(self._consumer.consume_arrow(_ROWS, _TURN_S)))

    def done(self, portion: Portion) -> None:
        """Nobody asks afterwards."""

    def close(self) -> None:
        """See `RecordSource`."""
        self._consumer.close()


class GroupReader:
    """What a group gives to this member; commits what is done.

    Args:
        properties: of a consumer, with its group.
        topics: names, and patterns that begin with ``^``.
        ends: stop once every partition that it was given is read to its end.
        commits: commit at all.
    """

    def __init__(self, properties: Mapping[str, Any], topics: Sequence[str], *, ends: bool, commits: bool) -> None:
        from headrace import Consumer

        self._ends = ends
        self._at_end: set[tuple[str, int]] = set()
        self._consumer = Consumer({
            "auto.offset.reset": "earliest", **properties, "enable.partition.eof": ends,
            "enable.auto.offset.store": False, "enable.auto.commit": commits})
        self._consumer.subscribe(list(topics))

    def read(self) -> Iterator[list[Portion]]:
        """See `RecordSource`."""
        while not self._ended():
            try:
                batch = self._consumer.consume_arrow(_ROWS, _TURN_S)
            except ConsumeError as told:
                if told.error != KafkaError._PARTITION_EOF:
                    raise
                self._at_end.add((told.kafka_message.topic(), told.kafka_message.partition()))
                continue
            portions = list(portions_of(batch))
            self._at_end -= {(portion.topic, portion.partition) for portion in portions}
            yield portions

    def _ended(self) -> bool:
        if not self._ends or not self._at_end:
            return False
        return {(tp.topic, tp.partition) for tp in self._consumer.assignment()} <= self._at_end

    def done(self, portion: Portion) -> None:
        """The group's offset is behind it from the next commit on."""
        try:
            self._consumer.store_offsets(
                offsets=[TopicPartition(portion.topic, portion.partition, portion.next_offset)])
        except KafkaException as error:
            if error.error.code() not in (KafkaError._STATE, KafkaError._UNKNOWN_PARTITION):  # another member has it
                raise

    def close(self) -> None:
        """See `RecordSource`."""
        self._consumer.close()


class ShareReader:
    """Records that a share group hands out to this member; accepts what is done, and releases the rest.

    Args:
        properties: of a share consumer, with its group.
        topics: names.
    """

    def __init__(self, properties: Mapping[str, Any], topics: Sequence[str]) -> None:
        from headrace import ShareConsumer

        self._consumer = ShareConsumer({**properties, "share.acknowledgement.mode": "explicit"})
        self._consumer.subscribe(list(topics))

    def read(self) -> Iterator[list[Portion]]:
        """See `RecordSource`."""
        while True:
            messages = self._consumer.poll(_TURN_S)
            for message in messages:
                if (error := message.error()) is not None:
                    raise KafkaException(error)
            yield list(portions_of_messages(messages))

    def done(self, portion: Portion) -> None:
        """Accept them."""
        for offset in portion.offsets:
            self._consumer.acknowledge_offset(portion.topic, portion.partition, offset)

    def close(self) -> None:
        """See `RecordSource`."""
        self._consumer.close()
