"""Microseconds of CPU to write and to read messages: ours, kafka-python, aiokafka.

    python -m benchmarks.wire --rounds 9

Everybody handles the same bytes: a message is made and written by ours, read by the peers into what they use, and
written by them again; a codec that gives other bytes is not measured. Records are opaque here, 100 bytes a partition.
The highest version that all three know comes first, then the highest of ours.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

from benchmarks.loops import OURS, PEERS, Case, about, arguments_of, effort_of, measure, show, write
from headrace.wire.codec import decode, encode
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.consumer.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headrace.wire.messages.producer.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from headrace.wire.schema import ApiMessage

RECORDS = bytes(100)
KAFKA_PYTHON = {"Metadata": "kafka.protocol.metadata", "Fetch": "kafka.protocol.consumer",
                "Produce": "kafka.protocol.producer"}
SHAPES = {"Metadata": ((1, 1000), (100, 10)), "Fetch": ((1, 4), (10, 10)), "Produce": ((1, 4), (10, 10))}
"""(topics, partitions of each) by API."""


def main(argv: list[str]) -> int:
    """Measure all messages and print a table for each version of each API."""
    arguments = arguments_of("wire", __doc__, argv)
    effort = effort_of(arguments)
    tables = {f"{api} v{version}": _cases(api, version) for api in SHAPES for version in _versions(api)}
    measure([case for cases in tables.values() for case in cases], effort)
    about(effort)
    for title, cases in tables.items():
        show(title, cases, "us")
    write("wire", tables, effort.rounds, arguments.json)
    return 0


def _versions(api: str) -> list[int]:
    """The highest version that everybody knows, and our highest."""
    ours = _request(api, 1, 1).max_version
    theirs = [version for peer in PEERS
              if (version := _highest_of(peer, f"{api}Request", ours)) is not None]
    return list(dict.fromkeys([min([ours, *theirs]), ours]))


def _highest_of(peer: str, name: str, limit: int) -> int | None:
    known = [version for version in range(limit + 1) if _peer_codec(peer, name, version)]
    return known[-1] if known else None


def _cases(api: str, version: int) -> list[Case]:
    cases = []
    for topics, partitions in SHAPES[api]:
        for message in (_request(api, topics, partitions), _response(api, topics, partitions)):
            of = f"{topics} topic{'s' if topics > 1 else ''} of {partitions:,}"
            cases += _write_and_read(message, version, of)
    return cases


def _write_and_read(message: ApiMessage, version: int, of: str) -> list[Case]:
    name, data = type(message).__name__, encode(message, version)
    writes: dict[str, Callable[[], object]] = {OURS: lambda: encode(message, version)}
    reads: dict[str, Callable[[], object]] = {OURS: lambda: decode(type(message), data, version)}
    notes = {}
    for peer in PEERS:
        codec = _peer_codec(peer, name, version)
        if codec is None:
            continue
        peers_encode, peers_decode = codec
        theirs = peers_decode(data)
        if peer == "kafka-python":
            theirs._header = None  # as its constructor does and its reading does not; nothing is written without
        if bytes(peers_encode(theirs)) != data:
            notes[peer] = f"writes {name} v{version} in other bytes"
            continue
        writes[peer] = lambda peers_encode=peers_encode, theirs=theirs: peers_encode(theirs)  # type: ignore[misc]
        reads[peer] = lambda peers_decode=peers_decode: peers_decode(data)  # type: ignore[misc]
    return [Case(f"write {name}, {of}", writes, notes=notes), Case(f"read {name}, {of}", reads, notes=notes)]


def _peer_codec(peer: str, name: str, version: int) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]] | None:
    """How a peer writes and reads a message of a version; None when it does not know it."""
    api = name.removesuffix("Request").removesuffix("Response")
    try:
        if peer == "kafka-python":
            cls = getattr(importlib.import_module(KAFKA_PYTHON[api]), name)
            if version > cls.max_version:
                return None
            return lambda message: cls.encode(message, version=version), lambda data: cls.decode(data, version=version)
        cls = getattr(importlib.import_module(f"aiokafka.protocol.{api.lower()}"), f"{name}_v{version}", None)
        return cls and (cls.encode, cls.decode)
    except (ImportError, AttributeError):
        return None


def _request(api: str, topics: int, partitions: int) -> ApiMessage:
    names = [(f"topic-{number}", UUID(int=number + 1)) for number in range(topics)]
    if api == "Metadata":
        return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name, _ in names])
    if api == "Fetch":
        asked = [FetchPartition(partition=i, current_leader_epoch=3, fetch_offset=1_000_000 + i,
                                partition_max_bytes=1 << 20) for i in range(partitions)]
        return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, session_epoch=0, topics=[
            FetchTopic(topic=name, topic_id=topic_id, partitions=asked) for name, topic_id in names])
    sent = [PartitionProduceData(index=i, records=RECORDS) for i in range(partitions)]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[
        TopicProduceData(name=name, topic_id=topic_id, partition_data=sent) for name, topic_id in names])


def _response(api: str, topics: int, partitions: int) -> ApiMessage:
    names = [(f"topic-{number}", UUID(int=number + 1)) for number in range(topics)]
    if api == "Metadata":
        known = [MetadataResponsePartition(partition_index=i, leader_id=i % 3, leader_epoch=3, replica_nodes=[0, 1, 2],
                                           isr_nodes=[0, 1, 2]) for i in range(partitions)]
        brokers = [MetadataResponseBroker(node_id=i, host=f"broker-{i}", port=9092) for i in range(3)]
        return MetadataResponse(brokers=brokers, cluster_id="cluster", controller_id=1, topics=[
            MetadataResponseTopic(name=name, topic_id=topic_id, partitions=known) for name, topic_id in names])
    if api == "Fetch":
        read = [PartitionData(partition_index=i, high_watermark=1_000_000 + i, last_stable_offset=1_000_000 + i,
                              log_start_offset=0, aborted_transactions=None, records=RECORDS)
                for i in range(partitions)]
        return FetchResponse(session_id=77, responses=[
            FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=read) for name, topic_id in names])
    done = [PartitionProduceResponse(index=i, base_offset=1_000_000 + i, log_start_offset=0) for i in range(partitions)]
    return ProduceResponse(responses=[
        TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=done) for name, topic_id in names])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
