"""Arrow columns into topics through our producer, without a Python object per record.

`ColumnWriter` belongs to one task of an executor; its producer goes on to the next task of the process, if it did all
that it was given (decision 0014). Interceptors, and partitioners written in Python, must see records: with them rows
become `ProducerRecord`s one by one, at the cost of the columns' speed. This module does not import pyspark.
Read next: `client.producer.kept_producers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import headrace.values.arrow_required  # noqa: F401 - the check is what it is for

import pyarrow

from headrace.client.producer.kept_producers import KeptProducers
from headrace.client.producer.producer import calls_of
from headrace.config import PROPERTIES
from headrace.errors import ConfigError, KafkaError, KafkaException

if TYPE_CHECKING:
    from headrace.client.producer.producer import Producer

__all__ = ["ColumnWriter"]

_DEFAULTS: Final = {"linger.ms": "50", "queue.buffering.max.messages": "1000000", "max.block.ms": "300000",
                    "message.max.bytes": "1048576"}
"""Bulk loads want full batches (`finish()` does not linger), and room is waited for as long as for acknowledgements.
The largest record is the one of Spark's connector, for a program that changes its format by name alone."""
_NAMES: Final = {name: row for row in _DEFAULTS for name in (row, *PROPERTIES[row].aliases)}
_PRODUCERS: Final = KeptProducers()


class ColumnWriter:
    """Writes columns to topics; a context manager.

    Args:
        client: a producer's properties.

    Raises:
        ConfigError: an unknown property or a bad value, or an interceptor that cannot be imported here.
    """

    def __init__(self, client: Mapping[str, str]) -> None:
        given = {_NAMES.get(name) for name in client}
        properties = {name: value for name, value in _DEFAULTS.items() if name not in given} | dict(client)
        self._kept = self._producers()
        self._producer: Producer = self._kept.take(properties)
        self._calls = calls_of(self._producer)
        # Interceptors are closed when their task is over.
        self._may_be_kept = "interceptor.classes" not in properties
        self._finished = False
        self._stored: list[Future[int]] = []

    def _producers(self) -> KeptProducers:
        """Those of which this writer takes one, and to which it gives it back."""
        return _PRODUCERS

    def append(self, topic: str, key: Any, value: Any, partition: Any = None, headers: Any = None) -> None:
        """Append rows behind those that came before. Waits while the producer's buffer is full.

        Args:
            topic: topic name.
            key: Arrow array of binary or string, or None for no keys.
            value: Arrow array of binary or string.
            partition: Arrow array of int32; null and None leave it to the partitioner.
            headers: Arrow array of lists of (key, value), or None.

        Raises:
            ConfigError: a partition is negative: -1 is no other word for null here, as in Spark's connector.
            KafkaException: records were lost, or the topic or a partition does not exist.
        """
        _check_partitions(topic, partition)
        given = {"key": key, "value": value, "partition": partition, "headers": headers}
        arrays = {role: array for role, array in given.items() if array is not None}
        self._stored = [stored for stored in self._stored if not _is_stored(stored)]
        # This may be long where no broker can be asked, but not where one denies the topic.
        self._calls.waits.run(self._calls.topic_answered(topic))
        rows = pyarrow.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
        try:
            self._stored.append(self._producer.produce_arrow(topic, rows))
        except KafkaException as refused:
            if refused.error != KafkaError._UNKNOWN_PARTITION:
                raise
            raise KafkaException(KafkaError(
                refused.error.code(), f"column partition: {refused.error.str()}; null leaves it to the partitioner"
            )) from None

    def finish(self) -> None:
        """Wait until every record is acknowledged.

        Raises:
            KafkaException: a record was not delivered within message.timeout.ms, or was refused.
        """
        self._producer.flush()
        for stored in self._stored:
            stored.result()
        self._finished = True

    def close(self) -> None:
        """Let go of the producer; what was not acknowledged is given up."""
        if self._finished and self._may_be_kept:
            self._kept.give_back(self._producer)
        else:
            self._kept.discard(self._producer)
        for stored in self._stored:
            # The task that failed knows why; the log need not repeat it. Nobody waits: this may be the loop's thread.
            stored.add_done_callback(lambda each: each.exception())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _check_partitions(topic: str, partition: Any) -> None:
    if partition is None or partition.null_count == len(partition):
        return
    import pyarrow.compute  # takes a worker 60 ms, once, which those without the column do not pay

    least = pyarrow.compute.min(partition).as_py()
    if least < 0:
        raise ConfigError(f"a row for topic {topic} has partition {least}, which is negative: null leaves it to the "
                          "partitioner")


def _is_stored(stored: Future[int]) -> bool:
    """Whether rows are acknowledged by now; raises when they were lost."""
    return stored.done() and stored.result() >= 0
