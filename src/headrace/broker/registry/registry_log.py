"""The topic `_schemas` in the embedded log: one partition, one record for each change.

Clients may read it and write to it as to any other topic, so records are looked for before every call, and those that
are damaged are passed over. Read next: `broker.registry.registry_state`, which takes the records in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from headrace.broker.cluster import BrokerCluster
from headrace.broker.registry.rest_errors import RestError
from headrace.broker.storage.catalog import Topic
from headrace.broker.storage.partition import ApiError, Partition
from headrace.errors import CorruptRecordError, KafkaError
from headrace.records.batch_writer import write_batch
from headrace.records.compression import MAX_DECOMPRESSED_BYTES, decompress
from headrace.records.header import HEADER_BYTES, read_info
from headrace.records.record import read_all

__all__ = ["TOPIC", "SchemaLog"]

TOPIC: Final = "_schemas"
_READ_BYTES: Final = 1 << 20

_Pair = tuple[bytes | None, bytes | None]


class SchemaLog:
    """The records of a cluster's `_schemas`.

    Args:
        cluster: where the topic is, or is made when something is to be kept.
    """

    def __init__(self, cluster: BrokerCluster) -> None:
        self._cluster = cluster
        self._read: Partition | None = None
        self._offset = 0

    def new(self) -> tuple[bool, Iterator[_Pair]]:
        """The records that were not given out yet, and whether all are given out anew: the topic is another one."""
        topic = self._cluster.catalog.topics.get(TOPIC)
        partition = None if topic is None else topic.partitions[0]
        anew = partition is not self._read
        if anew:
            self._read, self._offset = partition, 0 if partition is None else partition.log.start_offset
        return anew, self._rows(partition)

    def append(self, key: dict[str, Any], value: dict[str, Any] | None, now_ms: int) -> None:
        """Write a record.

        Raises:
            RestError: 50001, the log cannot be written; 42209, it is too large for the topic.
        """
        pair = [None if each is None else json.dumps(each, separators=(",", ":")).encode() for each in (key, value)]
        batch = memoryview(write_batch([(0, now_ms, pair[0], pair[1], [])]))
        try:
            topic = self._cluster.catalog.topics.get(TOPIC) or self._made()
            topic.partitions[0].append(batch, topic.configs, now_ms)
        except ApiError as error:
            if error.code == KafkaError.MSG_SIZE_TOO_LARGE:
                raise RestError(42209, f"The schema is too large: {error.reason}") from None
            raise RestError(50001, f"Error in the backend data store: {error.reason}") from None

    def _made(self) -> Topic:
        return self._cluster.catalog.create(TOPIC, 1, self._cluster.default_replication_factor,
                                            {"cleanup.policy": "compact"})

    def _rows(self, partition: Partition | None) -> Iterator[_Pair]:
        while partition is not None and self._offset < partition.log.end_offset:
            part = partition.log.read(self._offset, _READ_BYTES)
            self._offset = part.end_offset
            yield from _records(memoryview(part.data))


def _records(data: memoryview) -> Iterator[_Pair]:
    position = 0
    while (info := read_info(data, position)) is not None:
        if not info.is_control:
            plain = data[position + HEADER_BYTES : position + info.size]
            try:
                body = memoryview(decompress(info.codec, plain, MAX_DECOMPRESSED_BYTES)) if info.codec else plain
                for record in read_all(body, info.count):
                    yield record.key, record.value
            except CorruptRecordError:
                pass  # the broker does not look into records: anybody may have written these
        position += info.size
