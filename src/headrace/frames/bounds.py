"""Where a bounded read begins and ends: what a caller may say, and which offsets that is in each partition.

Read next: `headrace.frames.topic_reading`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from headrace.client.consumer.log_view import LogView, patiently
from headrace.client.consumer.range_reader import OffsetRange
from headrace.errors import ConfigError, KafkaError, KafkaException

__all__ = ["Bound", "checked_bound", "ranges_between"]

Bound = str | int | datetime | timedelta | Mapping[int, int]
"""`"earliest"`, `"latest"`, an offset, a time, how long ago, or an offset for each partition. An offset below zero
counts from the end of the log, as in a slice."""

_EARLIEST: Final = -2
_LATEST: Final = -1


def checked_bound(name: str, given: Any) -> Bound:
    """A bound that can be used.

    Args:
        name: of the argument, for errors.
        given: what the caller said.

    Raises:
        ConfigError: it is no bound; a time without a zone is none.
    """
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ConfigError(f"{name} has no time zone: say which one is meant, such as {name}.replace(tzinfo=UTC)")
        return given
    if given in ("earliest", "latest") or isinstance(given, timedelta):
        return given  # type: ignore[no-any-return]
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, Mapping) and all(isinstance(each, int) for pair in given.items() for each in pair):
        return given
    raise ConfigError(f"{name} must be 'earliest', 'latest', an offset, a datetime, a timedelta (so long ago), or a "
                      f"dict of partitions to offsets, not {given!r}")


def ranges_between(
    view: LogView, topic: str, partitions: Collection[int] | None, start: Bound, end: Bound, timeout_s: float
) -> list[OffsetRange]:
    """The ranges of offsets between two bounds, in the order of partitions; those without an offset are left out.

    Args:
        view: of the topic.
        topic: its name.
        partitions: which to read; all with None. With a bound that is a dict, those that it names.
        start: first offset, or the first record at a time or later.
        end: the offset behind the last one, or the first record that is not wanted any more. Behind the end of the log
            it is the end of the log.
        timeout_s: longest wait for the brokers, in seconds.

    Raises:
        ConfigError: there is no such partition.
        KafkaException: the topic does not exist, the brokers did not answer in time, or the start is an offset whose
            record is gone.
    """
    until = time.monotonic() + timeout_s
    info = patiently(lambda left_s: _topic(view, topic, left_s), until)
    chosen = _chosen(topic, info.partitions, partitions, start, end)
    keys = [(topic, number) for number in chosen]

    def at(moments: Mapping[tuple[str, int], int]) -> dict[int, int]:
        found = patiently(lambda left_s: view.offsets(moments, left_s), until)
        return {number: found[topic, number].offset for number in chosen}

    ends = at(dict.fromkeys(keys, _LATEST))
    firsts = at(dict.fromkeys(keys, _EARLIEST))
    ranges = []
    starts, stops = (_offsets(bound, firsts, ends, lambda ms: at(dict.fromkeys(keys, ms))) for bound in (start, end))
    topic_id = info.topic_id if info.topic_id.int else None
    for number in chosen:
        _check_is_there(topic, number, starts[number], firsts[number], start)
        first, stop = max(starts[number], firsts[number]), min(stops[number], ends[number])
        if first < stop:
            ranges.append(OffsetRange(topic, number, first, stop, topic_id))
    return ranges


def _topic(view: LogView, topic: str, timeout_s: float) -> Any:
    info = view.topics(timeout_s)[topic]
    if info.error is not None:
        raise KafkaException(info.error)
    return info


def _chosen(
    topic: str, known: Collection[int], partitions: Collection[int] | None, start: Bound, end: Bound
) -> list[int]:
    wanted = set(known) if partitions is None else set(partitions)
    named = [set(bound) for bound in (start, end) if isinstance(bound, Mapping)]
    for each in (wanted, *named):
        if missing := sorted(each - set(known)):
            raise ConfigError(f"{topic} has no partition {missing[0]}: it has {len(known)}")
    return sorted(wanted.intersection(*named))


def _offsets(
    bound: Bound, firsts: Mapping[int, int], ends: Mapping[int, int], at_time: Callable[[int], Mapping[int, int]]
) -> Mapping[int, int]:
    """The offset of a bound in each partition."""
    if isinstance(bound, str):
        return firsts if bound == "earliest" else ends
    if isinstance(bound, (datetime, timedelta)):
        moment = datetime.now(UTC) - bound if isinstance(bound, timedelta) else bound
        found = at_time(_milliseconds(moment))
        return {number: offset if offset >= 0 else ends[number] for number, offset in found.items()}
    told = bound if isinstance(bound, Mapping) else dict.fromkeys(ends, bound)
    return {number: told[number] if told[number] >= 0 else max(ends[number] + told[number], firsts[number])
            for number in ends}


def _milliseconds(moment: datetime) -> int:
    """Since the epoch; a part of one counts as a whole, so that no record from before the moment is meant."""
    return -((datetime(1970, 1, 1, tzinfo=UTC) - moment) // timedelta(milliseconds=1))


def _check_is_there(topic: str, number: int, start: int, first: int, said: Bound) -> None:
    if start < first and isinstance(said, (int, Mapping)):
        raise KafkaException(KafkaError(
            KafkaError.OFFSET_OUT_OF_RANGE, f"{topic}[{number}] begins at offset {first}: the records from offset "
            f"{start} on are gone. Start at 'earliest' to read what there is"))
