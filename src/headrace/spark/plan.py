"""Which records a batch holds, and which task reads them: pure functions over offsets.

Spark keeps, per micro-batch, one JSON text: the END offsets. A start that was resolved at run time ("latest") would be
resolved anew after a crash, and records between the two answers would be lost. So a batch's start travels inside its
logged end, under a key that no topic can have:

    {"flights": {"0": 1200, "1": 1180}, "@from": {"flights": {"0": 800, "1": 780}},
     "@ids": {"flights": "6c2e..."}, "@epochs": {"flights": {"0": 3, "1": 3}}, "@v": 2}

The ids tell a topic from another one that got its name, the epochs (terms of leaders) a log that goes on from one that
was cut; either is left out where brokers do not know it. Format 1 had neither. Without "@from" the text is the one of
Spark's own connector, so a checkpoint of that connector can be taken over.

This module knows neither Spark nor Kafka's protocol. Read next: `headrace.spark.source`.
"""

from __future__ import annotations

import heapq
import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.errors import ConfigError

__all__ = [
    "EARLIEST",
    "LARGEST",
    "LATEST",
    "DataLossError",
    "Offsets",
    "Range",
    "Tp",
    "advance",
    "batch_offsets",
    "batch_start",
    "checked_end",
    "checked_start",
    "holds_start",
    "lag",
    "lag_in_progress",
    "lag_of_partitions",
    "limit_bytes",
    "limit_rows",
    "limit_rows_of_partitions",
    "logged_epochs",
    "logged_ids",
    "losses",
    "made_anew",
    "parse_offsets",
    "ranges",
    "share_tasks",
    "split",
    "text_of",
]

Tp = tuple[str, int]
"""Topic and partition."""
Offsets = dict[Tp, int]
"""The next offset to read, per partition."""

EARLIEST: Final = -2
LATEST: Final = -1
LARGEST: Final = (1 << 63) - 1
"""Offsets and times have 64 bits."""
_FROM: Final = "@from"
_VERSION: Final = "@v"
_IDS: Final = "@ids"
_EPOCHS: Final = "@epochs"
_NEWEST: Final = 2
_GONE: Final = "no longer exist, or are no longer among what is read"
_ANEW: Final = "belong to a topic that was deleted and made anew"
_CUT: Final = "lack records that were read, after an election of a leader that had not got them"
_SHRUNK: Final = "end before the offsets reached so far, as after a topic was made anew"
_AGED: Final = "begin behind the offsets reached so far: records are gone that were still to be read"
_BEGUN: Final = "were added after the query began and have lost their first records since"


class DataLossError(RuntimeError):
    """Records that were still to be read are gone: aged out, or their topic or partition was deleted."""


@dataclass(frozen=True, slots=True)
class Range:
    """Records of one partition that one task reads: offsets `start` up to, not including, `end`.

    Attributes:
        topic_id: id of the topic in which the offsets hold; "" when it is not known.
    """

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str = ""

    @property
    def size(self) -> int:
        """Offsets in the range: an upper bound of its records (compaction and transactions leave gaps)."""
        return self.end - self.start

    def __reduce__(self) -> tuple[Any, ...]:  # each goes to its task by pickle: a tenth of what dataclasses take
        return Range, (self.topic, self.partition, self.start, self.end, self.topic_id)

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}] {self.start}..{self.end}"


def parse_offsets(text: str, what: str, *, low: int = 0) -> Offsets:
    """Read offsets as Spark's connector writes them; keys that start with "@" are passed over.

    Args:
        text: JSON, topic to partition to offset.
        what: where the text comes from, for the error.
        low: the least offset that is allowed: `EARLIEST` also allows the logical ones.

    Raises:
        ConfigError: the text is something else.
    """
    try:
        return _offsets(json.loads(text), low)
    except ValueError as error:
        raise ConfigError(f'{what} must be JSON like {{"topic": {{"0": 42}}}}: {error}, in {text!r}') from None


def _offsets(parsed: Mapping[str, Any], low: int = 0) -> Offsets:
    found: Offsets = {}
    if not isinstance(parsed, Mapping):
        raise ValueError("it names no topics")
    for topic, partitions in parsed.items():
        if topic.startswith("@"):
            continue
        if not isinstance(partitions, Mapping):
            words = ", where -2 is earliest and -1 latest" if low == EARLIEST else ""
            raise ValueError(f"{topic} needs a value for each partition{words}, not {json.dumps(partitions)}")
        for partition, offset in partitions.items():
            if not partition.isdecimal():
                raise ValueError(f"{topic} has no partition {partition!r}: name them by their numbers")
            if type(offset) is not int or not low <= offset <= LARGEST:
                raise ValueError(f"the value of {topic}[{partition}] must be a whole number of at least {low}"
                                 f"{f' and at most {LARGEST}' if type(offset) is int and offset > LARGEST else ''}")
            found[topic, int(partition)] = offset
    return found


def _json_of(offsets: Offsets) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def text_of(offsets: Offsets) -> str:
    """One line for people: topic, partition and offset of each."""
    return ", ".join(f"{topic}[{partition}]@{offset}" for (topic, partition), offset in sorted(offsets.items()))


def batch_offsets(
    start: Offsets, end: Offsets, ids: Mapping[str, str] | None = None, epochs: Offsets | None = None
) -> dict[str, Any]:
    """The value that Spark logs for a batch: its end, with its start inside.

    Args:
        start: where the batch begins.
        end: where it ends.
        ids: ids of its topics, as far as they are known.
        epochs: the leader's term at the end of each log, as far as it is known.
    """
    known = {topic: ids[topic] for topic in sorted({topic for topic, _ in end}) if topic in ids} if ids else {}
    terms = _json_of({tp: epochs[tp] for tp in end if tp in epochs}) if epochs else {}
    return {
        **_json_of(end), _FROM: _json_of(start), **({_IDS: known} if known else {}),
        **({_EPOCHS: terms} if terms else {}), _VERSION: _NEWEST,
    }


def batch_start(logged_start: Mapping[str, Any], logged_end: Mapping[str, Any]) -> tuple[Offsets, Offsets]:
    """Start and end of a batch from what Spark logged.

    The start comes from inside the end. `logged_start` is taken only when there is none, in a checkpoint that Spark's
    own connector wrote.
    """
    version = logged_end.get(_VERSION, 1)
    if version not in range(1, _NEWEST + 1):
        raise ConfigError(f"the checkpoint's offsets have format {version}, this release knows 1 to {_NEWEST}: update "
                          "headrace")
    end = _offsets(logged_end)
    return (_offsets(logged_end[_FROM]) if holds_start(logged_end) else _offsets(logged_start)), end


def holds_start(logged: Mapping[str, Any]) -> bool:
    """Whether a logged end has its batch's start inside; those of Spark's own connector have not."""
    return _FROM in logged


def logged_ids(logged: Mapping[str, Any]) -> dict[str, str]:
    """Ids of the topics in which logged offsets hold, as far as they were known."""
    return dict(logged.get(_IDS, {}))


def logged_epochs(logged: Mapping[str, Any]) -> Offsets:
    """The leader's term at the end of each log when offsets were logged, as far as it was known."""
    return _offsets(logged.get(_EPOCHS, {}))


def made_anew(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """Topics whose ids have changed: they were deleted, and others got their names."""
    return {topic for topic, topic_id in before.items() if now.get(topic, topic_id) != topic_id}


def lag(start: Mapping[str, Any] | None, end: Mapping[str, Any] | None) -> int:
    """Records between two logged offsets: how far a reader at `start` is behind `end`; 0 when one is not known."""
    return sum(lag_of_partitions(start, end).values())


def lag_of_partitions(start: Mapping[str, Any] | None, end: Mapping[str, Any] | None) -> Offsets:
    """As `lag`, for each partition."""
    if not start or not end:
        return {}
    read, latest = _offsets(start), _offsets(end)
    return {tp: max(0, offset - read.get(tp, 0)) for tp, offset in latest.items()}


def lag_in_progress(sources: Iterable[Mapping[str, Any]]) -> Offsets:
    """Records behind the end of each partition, from the sources in a progress report; those of others are left out."""
    found: Offsets = {}
    for source in sources:
        ends = [json.loads(text) if isinstance(text := source.get(name), str) else text
                for name in ("endOffset", "latestOffset")]
        if all(isinstance(end, Mapping) and _VERSION in end for end in ends):
            for tp, behind in lag_of_partitions(*ends).items():
                found[tp] = found.get(tp, 0) + behind
    return found


def advance(
    start: Offsets, earliest: Offsets, latest: Offsets, *, fail_on_data_loss: bool, anew: Collection[str] = (),
    cut: Offsets | None = None,
) -> Offsets:
    """Where the next batch starts, after partitions appeared, vanished or lost records.

    A new partition starts at its earliest record, whatever startingOffsets says: it came after the query began.

    Args:
        start: end of the batch before.
        earliest: first offset of each partition that exists; may hold only the ones that `start` lacks or that moved,
            and those whose lost records are to be passed over at once.
        latest: end offset of each partition that exists.
        fail_on_data_loss: refuse instead of going on with what is left.
        anew: topics that were deleted and made anew.
        cut: where the logs end that new leaders hold, of partitions that have lost what was read.

    Raises:
        DataLossError: there are `losses`.
    """
    changed = _changed(start, earliest, latest, anew, cut or {})
    if fail_on_data_loss and (lost := _told(changed)):
        raise DataLossError(f"records may be lost: {'; '.join(lost)}. Set failOnDataLoss to false to go on with what "
                            "there is, or start with a new checkpoint")
    again = {*changed[_ANEW], *changed[_SHRUNK]}
    moved = {tp: earliest.get(tp, 0) for tp in latest if tp not in start or tp in again}
    moved |= {tp: end for tp, end in (cut or {}).items() if tp in changed[_CUT]}
    moved |= {tp: min(earliest[tp], latest[tp]) for tp in changed[_AGED]}
    return {tp: moved.get(tp, start.get(tp, 0)) for tp in latest}


def losses(
    start: Offsets, earliest: Offsets, latest: Offsets, *, anew: Collection[str] = (), cut: Offsets | None = None
) -> list[str]:
    """What may be lost, for people: a partition vanished, its topic was made anew, it ends before the place reached so
    far or begins behind it, or it is new and does not begin at offset 0. For the arguments see `advance`.
    """
    return _told(_changed(start, earliest, latest, anew, cut or {}))


def _told(changed: Mapping[str, list[Tp]]) -> list[str]:
    return [f"{', '.join(f'{t}[{p}]' for t, p in sorted(tps))} {why}" for why, tps in changed.items() if tps]


def _changed(
    start: Offsets, earliest: Offsets, latest: Offsets, anew: Collection[str], cut: Offsets
) -> dict[str, list[Tp]]:
    """Partitions that may have lost records, each once, by what is the matter with them."""
    there = [tp for tp in start if tp in latest]
    return {
        _GONE: [tp for tp in start if tp not in latest],
        _ANEW: [tp for tp in there if tp[0] in anew],
        _CUT: [tp for tp in cut if tp in latest and tp[0] not in anew],
        _SHRUNK: [tp for tp in there if latest[tp] < start[tp] and tp not in cut and tp[0] not in anew],
        _AGED: [tp for tp in there if earliest.get(tp, 0) > start[tp] and tp not in cut and tp[0] not in anew],
        _BEGUN: [tp for tp in latest if tp not in start and earliest.get(tp, 0) > 0],
    }


def checked_start(start: Offsets, too_short: Offsets, *, fail_on_data_loss: bool) -> Offsets:
    """Where a query begins whose starting offsets were given: at the end of a log that ends before that.

    Args:
        start: the offset at which each partition starts.
        too_short: where logs end that end before that.
        fail_on_data_loss: refuse instead.

    Raises:
        DataLossError: a log ends before the start.
    """
    if too_short and fail_on_data_loss:
        raise _log_too_short("from", start, too_short, "startingOffsets", "start at")
    return {**start, **too_short}


def checked_end(start: Offsets, end: Offsets, too_short: Offsets, *, fail_on_data_loss: bool) -> Offsets:
    """The end of a batch read, unless it contradicts its start or the topic. Equal ones hold no record.

    Args:
        start: the offset at which each partition starts.
        end: the offset at which it ends.
        too_short: where logs end that end before that.
        fail_on_data_loss: refuse instead of reading up to the end of such a log.

    Raises:
        ConfigError: a partition starts behind its end: silence would look like a topic without records.
        DataLossError: a log ends before the end of the read; without this its task would wait for the rest.
    """
    crossed = [f"{t}[{p}] starts at offset {start[t, p]} and ends at offset {offset}"
               for (t, p), offset in sorted(end.items()) if start.get((t, p), 0) > offset]
    if crossed:
        raise ConfigError(f"a batch read cannot start behind its end: {', '.join(crossed)}. Choose a starting offset "
                          "or timestamp that is neither behind the ending one nor behind the end of the topic")
    if too_short and fail_on_data_loss:
        raise _log_too_short("up to", end, too_short, "endingOffsets", "read up to")
    return {**end, **too_short}


def _log_too_short(where: str, wanted: Offsets, too_short: Offsets, option: str, remedy: str) -> DataLossError:
    what = ", ".join(f"{t}[{p}] is to be read {where} offset {wanted[t, p]}, but its log ends at offset {offset}"
                     for (t, p), offset in sorted(too_short.items()))
    return DataLossError(f"{what}. Lower {option} (-1 is the end), or set failOnDataLoss to false to {remedy} the end")


def limit_rows(start: Offsets, latest: Offsets, max_rows: int | None) -> Offsets:
    """The end of a batch of at most about `max_rows` records: each partition gives its share of the backlog.

    A partition with a backlog gives at least one record, so none starves; the sum may exceed the limit by that.
    """
    sizes = {tp: latest[tp] - start.get(tp, 0) for tp in latest}
    total = sum(size for size in sizes.values() if size > 0)
    if max_rows is None or total <= max_rows:
        return dict(latest)
    end: Offsets = {}
    for tp, size in sizes.items():
        share = max_rows * size / total
        rows = math.ceil(share) if share < 1 else math.floor(share)
        end[tp] = min(start.get(tp, 0) + max(rows, 0), latest[tp])
    return end


def limit_rows_of_partitions(start: Offsets, latest: Offsets, max_rows: int | None) -> Offsets:
    """The end of a batch that has at most `max_rows` records of each partition."""
    if max_rows is None:
        return dict(latest)
    return {tp: min(offset, start.get(tp, 0) + max_rows) for tp, offset in latest.items()}


def limit_bytes(start: Offsets, latest: Offsets, max_bytes: int, record_bytes: Mapping[str, float]) -> Offsets:
    """The end of a batch of about `max_bytes`: each partition gives the same share of its backlog, one record at least.

    Args:
        start: where the batch begins.
        latest: where it may end.
        max_bytes: bytes in all.
        record_bytes: bytes of a record, by topic; a topic that is missing counts nothing.
    """
    sizes = {tp: latest[tp] - start.get(tp, 0) for tp in latest}
    total = sum(size * record_bytes.get(topic, 0.0) for (topic, _), size in sizes.items())
    if total <= max_bytes:
        return dict(latest)
    share = max_bytes / total
    return {tp: start.get(tp, 0) + max(min(size, 1), math.floor(size * share)) for tp, size in sizes.items()}


def ranges(start: Offsets, end: Offsets, ids: Mapping[str, str] | None = None) -> list[Range]:
    """One range per partition that has something to read, in a fixed order."""
    known = ids or {}
    found = (Range(topic, p, start.get((topic, p), 0), offset, known.get(topic, ""))
             for (topic, p), offset in sorted(end.items()))
    return [each for each in found if each.size > 0]


def split(whole: Iterable[Range], min_partitions: int | None = None, max_rows: int | None = None) -> list[Range]:
    """Cut ranges so that there are at least `min_partitions` tasks and none has more than `max_rows` records.

    The range with the largest pieces is cut once more until there are enough. The same input gives the same plan, so a
    batch that runs again after a crash runs with the same tasks.
    """
    pieces = [(each, max(1, math.ceil(each.size / max_rows)) if max_rows else 1) for each in whole]
    missing = (min_partitions or 0) - sum(count for _, count in pieces)
    heap = [(-each.size / count, place, count) for place, (each, count) in enumerate(pieces)]
    heapq.heapify(heap)
    while missing > 0 and heap and heap[0][0] < -1:
        _, place, count = heap[0]
        heapq.heapreplace(heap, (-pieces[place][0].size / (count + 1), place, count + 1))
        missing -= 1
    counts = {place: count for _, place, count in heap}
    return [piece for place, (each, _) in enumerate(pieces) for piece in _cut(each, counts[place])]


def share_tasks(pieces: Iterable[Range], most_rows: int) -> list[list[Range]]:
    """Put small ranges that follow each other into one task, as long as it has no more than `most_rows` records.

    A task costs Spark more than reading some ten thousand records does. The same input gives the same plan, whatever
    the cluster has to offer; a backlog of more than `most_rows` records for each core still gives each core work.
    """
    tasks: list[list[Range]] = []
    room = 0
    for piece in pieces:
        if not tasks or piece.size > room:
            tasks.append([])
            room = most_rows
        tasks[-1].append(piece)
        room -= piece.size
    return tasks


def _cut(whole: Range, count: int) -> Iterable[Range]:
    return (whole,) if count == 1 else _pieces(whole, count)


def _pieces(whole: Range, count: int) -> Iterator[Range]:
    edges = [whole.start + whole.size * i // count for i in range(count + 1)]
    for start, end in itertools.pairwise(edges):
        yield Range(whole.topic, whole.partition, start, end, whole.topic_id)
