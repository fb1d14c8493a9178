"""Which micro-batch was written last, and what that means for the one that is to be written.

The marker is committed in the transaction that it belongs to, so it says what is in the topics, whatever the driver
remembers. It knows neither Spark nor Kafka. Read next: `headrace.spark.exactly_once.task_report`.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import NamedTuple

from headrace.errors import KafkaError, KafkaException

__all__ = ["BatchMarker", "BatchVerdict", "verdict"]

_FORMAT = 1


class BatchVerdict(Enum):
    """What to do with a micro-batch."""

    WRITE = "it is not in the topics"
    SKIP = "it is in the topics already"


class BatchMarker(NamedTuple):
    """A micro-batch.

    Attributes:
        query: id of the streaming query, which its checkpoint keeps.
        batch: its number in this query.
    """

    query: str
    batch: int

    def text(self) -> str:
        """As it is committed."""
        return json.dumps({"q": self.query, "b": self.batch, "v": _FORMAT}, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> BatchMarker:
        """What was committed.

        Raises:
            KafkaException: it is none of ours, or of a later version.
        """
        try:
            found = json.loads(text)
            if found["v"] == _FORMAT:
                return cls(str(found["q"]), int(found["b"]))
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
    if last.batch == wanted.batch:
        return BatchVerdict.SKIP
    raise KafkaException(KafkaError(
        KafkaError._STATE, f"the checkpoint is at micro-batch {wanted.batch}, and the topics have micro-batch "
        f"{last.batch} of the same query: the checkpoint was taken back. Use the newer checkpoint, or a new one with "
        "starting offsets behind what is written"))
