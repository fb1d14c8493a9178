"""Which micro-batch was written last, and what that means for the one that is to be written.

The marker is committed in the transaction that it belongs to, so it says what is in the topics, whatever the driver
remembers. It knows neither Spark nor Kafka. Read next: `headrace.spark.exactly_once.task_report`.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import NamedTuple

from headrace.errors import KafkaError, KafkaException

__all__ = ["BatchMarker", "BatchVerdict", "check_skipped", "verdict"]

_FORMAT = 1
_REMEDY = "Use the newer checkpoint, or a new one with starting offsets behind what is written"


class BatchVerdict(Enum):
    """What to do with a micro-batch."""

    WRITE = "it is not in the topics"
    SKIP = "it is in the topics already"


class BatchMarker(NamedTuple):
    """A micro-batch.

    Attributes:
        query: id of the streaming query, which its checkpoint keeps.
        batch: its number in this query.
        rows: how many it has; None where nobody has counted.
        offsets: stands for what it reads, where that is known; a checkpoint that was taken back plans the same number
            anew, with what has come since.
    """

    query: str
    batch: int
    rows: int | None = None
    offsets: str = ""

    def text(self) -> str:
        """As it is committed."""
        known = {"q": self.query, "b": self.batch, "v": _FORMAT, "n": self.rows, "o": self.offsets or None}
        return json.dumps({name: value for name, value in known.items() if value is not None}, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> BatchMarker:
        """What was committed.

        Raises:
            KafkaException: it is none of ours, or of a later version.
        """
        try:
            found = json.loads(text)
            if found["v"] == _FORMAT:
                rows = found.get("n")
                return cls(str(found["q"]), int(found["b"]), rows if rows is None else int(rows),
                           str(found.get("o", "")))
        except (ValueError, TypeError, LookupError):
            pass
        raise KafkaException(KafkaError(
            KafkaError._INCONSISTENT, f"the sink's group has an offset with the note {text[:100]!r}, which is no "
            "marker of this version of the sink: another program uses this group, or give the sink another sinkId"))


def verdict(last: BatchMarker | None, wanted: BatchMarker) -> BatchVerdict:
    """What to do with a micro-batch, given the one that was committed last.

    Another query numbers its batches anew: its first micro-batch is no repetition.

    Raises:
        KafkaException: the checkpoint is older than what is in the topics.
    """
    if last is None or last.query != wanted.query or last.batch < wanted.batch:
        return BatchVerdict.WRITE
    if last.batch > wanted.batch:
        raise KafkaException(KafkaError(
            KafkaError._STATE, f"the checkpoint is at micro-batch {wanted.batch}, and the topics have micro-batch "
            f"{last.batch} of the same query: the checkpoint was taken back. {_REMEDY}"))
    if last.offsets and wanted.offsets and last.offsets != wanted.offsets:
        raise KafkaException(KafkaError(
            KafkaError._STATE, f"micro-batch {wanted.batch} is in the topics, and was of other offsets then: the "
            f"checkpoint was taken back. {_REMEDY}"))
    return BatchVerdict.SKIP


def check_skipped(last: BatchMarker, rows: int) -> None:
    """Refuse to pass over rows of a micro-batch that were not there when it was written.

    Args:
        last: the micro-batch, as it was committed.
        rows: how many it has now.

    Raises:
        KafkaException: more than it had.
    """
    if last.rows is not None and rows > last.rows:
        raise KafkaException(KafkaError(
            KafkaError._STATE, f"micro-batch {last.batch} is in the topics with {last.rows} rows, and has {rows} now: "
            "the checkpoint was taken back, or a table that the query joins has changed since. "
            f"{_REMEDY}; another sinkId writes all of its rows, those that are there once more"))
