"""Records that cannot be read, set aside in a topic as Kafka Connect sets them aside: key, value and headers as they
were, and headers that say where they come from and what is wrong.

Written by the task that met them, at least once: a task that runs again writes them again. Read next:
`headrace.spark.column_writer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

import headrace.values.arrow_required  # noqa: F401 - the check is what it is for

import pyarrow

from headrace.spark.column_writer import ColumnWriter

__all__ = ["DeadLetterWriter"]

_HEADERS: Final = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
_STAGES: Final = {"key": "KEY_CONVERTER", "value": "VALUE_CONVERTER"}


class DeadLetterWriter:
    """Writes the malformed records of one task; a context manager.

    Args:
        client: properties of the client that reads.
        topic: where to write.
    """

    def __init__(self, client: Mapping[str, str], topic: str) -> None:
        self._out = ColumnWriter(client)  # of a consumer's own properties a producer takes no notice
        self._topic = topic

    def write(self, batch: pyarrow.RecordBatch, dead: Mapping[int, tuple[str, str]]) -> None:
        """Write records.

        Args:
            batch: with the raw columns key, value, headers, topic, partition and offset.
            dead: rows of it, with the side that is malformed, and why.

        Raises:
            KafkaException: earlier ones were lost, or the topic does not exist.
        """
        rows = sorted(dead)
        found = batch.take(pyarrow.array(rows, pyarrow.int32()))
        places = found.select(["topic", "partition", "offset", "headers"]).to_pylist()
        headers = [[*(place["headers"] or ()), *_said(place, *dead[row])]
                   for row, place in zip(rows, places, strict=True)]
        self._out.append(self._topic, found.column("key"), found.column("value"), None,
                         pyarrow.array(headers, _HEADERS))

    def finish(self) -> None:
        """Wait until every record is acknowledged.

        Raises:
            KafkaException: one was not delivered.
        """
        self._out.finish()

    def __enter__(self) -> DeadLetterWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._out.close()


def _said(place: Mapping[str, Any], side: str, why: str) -> list[dict[str, Any]]:
    texts = {"topic": place["topic"], "partition": str(place["partition"]), "offset": str(place["offset"]),
             "stage": _STAGES[side], "exception.message": why}
    return [{"key": f"__connect.errors.{name}", "value": text.encode()} for name, text in texts.items()]

