"""The brokers under test: where they listen, and the bytes of their logs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from headrace.broker.cluster import BrokerCluster
from headrace.testing import EmbeddedBroker
from tools.kafka import KafkaCluster

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""The codecs by the number that a batch names them with."""

SHARE_SITES = ("embedded", "kafka")
"""The brokers, by the names of their fixtures, that have share groups."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH_ENDS = 12
_NO_TIME = -1


class Batch(NamedTuple):
    """What a stored batch says of itself."""

    base_offset: int
    magic: int
    codec: str
    count: int
    size: int


class Site(Protocol):
    """A broker."""

    name: str
    servers: str

    def log(self, topic: str, partition: int) -> bytes:
        """The bytes of a partition's log."""


class EmbeddedSite:
    """The embedded broker."""

    name = "embedded"

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._broker = broker
        self.servers = broker.bootstrap_servers

    def log(self, topic: str, partition: int) -> bytes:
        def read(cluster: BrokerCluster) -> bytes:
            log = cluster.catalog.topics[topic].partitions[partition].log
            return b"".join(bytes(batch) for batch in log.batches_by_time(_NO_TIME))

        return self._broker.apply(read)


class KafkaSite:
    """A real Kafka of one node."""

    name = "kafka"

    def __init__(self, cluster: KafkaCluster) -> None:
        self._directory = cluster.directory
        self.servers = cluster.bootstrap_servers

    def log(self, topic: str, partition: int) -> bytes:
        segments: list[Path] = sorted(self._directory.glob(f"**/{topic}-{partition}/*.log"))
        return b"".join(segment.read_bytes() for segment in segments)


def batches(log: bytes) -> Iterator[Batch]:
    """The batches of a log of format 2."""
    at = 0
    while at + _HEADER.size <= len(log):
        base, length, _, magic, _, attributes, *_, count = _HEADER.unpack_from(log, at)
        yield Batch(base, magic, CODECS[attributes & 7], count, length + _BEFORE_LENGTH_ENDS)
        at += length + _BEFORE_LENGTH_ENDS
