"""What Spark knows of the query to which a micro-batch belongs: its id, whether it goes on, and its offsets.

Spark hands a frame and a number to `foreachBatch`, and nothing else. The rest is asked of its JVM, by names that are
public there and that no Python interface has; a session over Spark Connect has no JVM to ask.

Read next: `headrace.spark.foreach_batch.batches`.
"""

from __future__ import annotations

import hashlib
from operator import attrgetter
from typing import Any, Final

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from pyspark.sql import DataFrame

from headrace.errors import ConfigError
from headrace.spark.plan import Offsets, parse_offsets

__all__ = ["StreamOfBatch"]

_DIGEST_BYTES: Final = 10
_BY_NAME: Final = "OffsetMap"
"""Spark's class for the offsets of a query whose sources have names, or whose log has version 2 by a setting."""


class StreamOfBatch:
    """The query of a micro-batch.

    Args:
        frame: as Spark has given it to `foreachBatch`.

    Attributes:
        query_id: of the query, which its checkpoint keeps.

    Raises:
        ConfigError: the frame belongs to no streaming query, or to a session without a JVM.
    """

    def __init__(self, frame: DataFrame) -> None:
        session = frame.sparkSession
        if not hasattr(session, "_jsparkSession"):
            raise ConfigError("headrace.spark.transactional needs a session with a JVM of its own: over Spark Connect, "
                              "use the sink with delivery.guarantee=exactly_once")
        context = session.sparkContext
        self.query_id: str = context.getLocalProperty("sql.streaming.queryId") or ""
        if not self.query_id:
            raise ConfigError("headrace.spark.transactional makes a function for foreachBatch; no streaming query runs "
                              "in this thread")
        self._run_id: str = context.getLocalProperty("spark.jobGroup.id") or ""
        self._java, self._session = attrgetter("_jvm")(context).java, attrgetter("_jsparkSession")(session)

    @property
    def is_active(self) -> bool:
        """Whether the query goes on: it was not stopped."""
        found = self._execution()
        return found is not None and bool(found.isActive())

    def stopped_text(self, batch_id: int, why: str) -> str:
        """What to tell Spark of a micro-batch amid which its query was stopped, for it to see a stop and no failure.

        It looks for a Java exception's name, "cancelled", and the group of the query's jobs in the text. What Python
        tells of a cancelled job has them as well, but Spark first searches it with an expression that recurses for each
        character: its thread ends with a StackOverflowError, a thousand lines long, and the status says "Processing".

        Args:
            batch_id: of the micro-batch.
            why: the first line of what has ended it.
        """
        return (f"the query was stopped amid micro-batch {batch_id}: what of it is not in the topics is written when "
                f"it starts again (org.apache.spark.SparkException: job group {self._run_id} cancelled; {why})")

    def end_offsets(self, batch_id: int) -> Offsets:
        """Where a micro-batch ends in the topics that the query reads, as Spark has logged it.

        Raises:
            ConfigError: the query does not read Kafka.
        """
        logged = self._logged(batch_id)
        if not logged:
            raise ConfigError(f"Spark has no offsets of micro-batch {batch_id}: its query has ended")
        found = Offsets()
        for text in filter(None, logged):
            found |= parse_offsets(text, "the offset of a source, for option groupId,")
        return found

    def digest(self, batch_id: int) -> str:
        """Stands for where a micro-batch ends in each source, whatever the source is; "" when the query has ended."""
        logged = self._logged(batch_id)
        text = "\n".join(logged).encode()
        return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest() if logged else ""

    def _logged(self, batch_id: int) -> list[str]:
        """The logged end of a micro-batch in each source, "" where it has none; empty when the query has ended."""
        execution = self._execution()
        logged = None if execution is None else execution.offsetLog().get(batch_id)
        if logged is None or not logged.isDefined():
            return []
        return [each.get().json() if each.isDefined() else "" for each in _of_sources(logged.get())]

    def _execution(self) -> Any:
        """The running query; None when it has ended. A micro-batch's session is a copy, and knows no queries itself."""
        running = self._session.sharedState().activeStreamingQueries()
        return running.get(self._java.util.UUID.fromString(self.query_id))


def _of_sources(logged: Any) -> list[Any]:
    """What is logged for each source: in the sources' order, or by their names where the log has these (version 2)."""
    if logged.getClass().getSimpleName() == _BY_NAME:
        by_name = logged.offsetsMap()
        names = by_name.keys().toSeq()
        return [by_name.apply(name) for name in sorted(names.apply(place) for place in range(names.size()))]
    in_order = logged.offsets()
    return [in_order.apply(place) for place in range(in_order.size())]
