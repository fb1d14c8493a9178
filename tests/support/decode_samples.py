"""Conversations, captures and segments made in code for the tests of `headrace decode`."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from headrace.records import BatchBuilder
from headrace.wire.frame import encode_request, encode_response
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.cluster.session import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
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
from headrace.wire.schema import Request, Response

TOPIC_ID = UUID("12345678-1234-5678-1234-567812345678")
MOMENT_NS = 1_700_000_000_123_456_000
CLIENT, BROKER = ("10.0.0.1", 40000), ("10.0.0.2", 9092)
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


class Said(NamedTuple):
    """A frame with its prefix and who sent it."""

    by_client: bool
    data: bytes


def request(message: Request, version: int, correlation_id: int, client_id: str | None = "test") -> Said:
    return Said(True, b"".join(encode_request(message, version, correlation_id, client_id)))


def reply(message: Response, version: int, correlation_id: int) -> Said:
    return Said(False, b"".join(encode_response(message, version, correlation_id)))


def batch(values: Sequence[bytes] = (b"one", b"two"), *, codec: int = 0, base_offset: int = 0) -> bytes:
    """A batch of records with the key b"k" and a header."""
    builder = BatchBuilder(1 << 24, 1 << 20)
    for number, value in enumerate(values):
        builder.append(1_700_000_000_000 + number, b"k", value, [(b"h", b"x"), (b"n", None)])
    data = bytearray(builder.seal(codec).data)
    data[:8] = base_offset.to_bytes(8, "big")
    return bytes(data)


def conversation(batches: bytes | None = None) -> list[Said]:
    """ApiVersions, Metadata, Produce and Fetch: the whole life of a record."""
    records = batch() if batches is None else batches
    return [
        request(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3, 1),
        reply(ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=0, max_version=13)]), 3, 1),
        request(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 12, 2),
        reply(_metadata(), 12, 2),
        request(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(
            name="orders", partition_data=[PartitionProduceData(index=0, records=records)])]), 9, 3),
        reply(ProduceResponse(responses=[TopicProduceResponse(name="orders", partition_responses=[
            PartitionProduceResponse(index=0, base_offset=41)])]), 9, 3),
        request(FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(
            topic_id=TOPIC_ID, partitions=[FetchPartition(partition=0, fetch_offset=41, partition_max_bytes=1000)])]),
            13, 4),
        reply(FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[
            PartitionData(partition_index=0, high_watermark=43, aborted_transactions=None, records=records)])]), 13, 4),
    ]


def _metadata() -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="broker", port=9092)], cluster_id="c", controller_id=1,
        topics=[MetadataResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=[
            MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1])])])


class Link(NamedTuple):
    """A type of link and what stands before IP there."""

    number: int
    head: bytes


LINKS = {
    "ethernet": Link(1, bytes(12) + b"\x08\x00"),
    "ethernet with a VLAN tag": Link(1, bytes(12) + b"\x81\x00\x00\x07\x08\x00"),
    "ethernet with two VLAN tags": Link(1, bytes(12) + b"\x88\xa8\x00\x01\x81\x00\x00\x07\x08\x00"),
    "linux cooked": Link(113, bytes(14) + b"\x08\x00"),
    "linux cooked 2": Link(276, b"\x08\x00" + bytes(18)),
    "loopback, little endian": Link(0, b"\x02\x00\x00\x00"),
    "loopback, big endian": Link(108, b"\x00\x00\x00\x02"),
    "raw": Link(101, b""),
    "raw IPv4": Link(228, b""),
}


def tcp(source: tuple[str, int], target: tuple[str, int], sequence: int, data: bytes = b"", flags: int = PSH | ACK,
        acknowledged: int = 0, *, ipv6: bytes | None = None, fragment: int = 0, total: int | None = None) -> bytes:
    """An IP packet with a TCP segment.

    Args:
        ipv6: headers between IPv6 and TCP, which begin with the number of what follows them; None for IPv4.
        fragment: flags and offset of a fragment of IPv4.
        total: total length that the IP header tells; the true one when None.
    """
    options = b"\x01\x01\x08\x0a" + bytes(8)
    segment = struct.pack(">HHIIBBHHH", source[1], target[1], sequence % (1 << 32), acknowledged % (1 << 32),
                          (20 + len(options)) // 4 << 4, flags, 1000, 0, 0) + options + data
    if ipv6 is not None:
        head, extensions = (ipv6[:1] or b"\x06"), ipv6[1:]
        address = [bytes(10) + b"\xff\xff" + _packed(end[0]) for end in (source, target)]
        return (struct.pack(">IHBB", 6 << 28, len(extensions) + len(segment), head[0], 64) + b"".join(address)
                + extensions + segment)
    size = 20 + len(segment) if total is None else total
    return struct.pack(">BBHHHBBH", 0x45, 0, size, 1, fragment, 64, 6, 0) + _packed(source[0]) + _packed(
        target[0]) + segment


def _packed(host: str) -> bytes:
    return bytes(int(part) for part in host.split("."))


def talk(said: Iterable[Said], *, step: int = 1 << 20, opened: bool = True, closed: bool = True,
         first: tuple[int, int] = (1000, 5000), **ip: Any) -> list[bytes]:
    """The packets of a connection in their order.

    Args:
        said: the frames.
        step: most bytes of a segment.
        opened: the capture has the connection's begin.
        closed: the capture has its end.
        first: sequence numbers of both sides before their first byte.
    """
    sides = {True: (CLIENT, BROKER), False: (BROKER, CLIENT)}
    sequence = {True: first[0] + 1, False: first[1] + 1}
    packets = []
    if opened:
        packets += [tcp(CLIENT, BROKER, first[0], flags=SYN, **ip),
                    tcp(BROKER, CLIENT, first[1], flags=SYN | ACK, acknowledged=first[0] + 1, **ip)]
    for by_client, data in said:
        for at in range(0, len(data), step):
            part = data[at:at + step]
            packets.append(tcp(*sides[by_client], sequence[by_client], part, acknowledged=sequence[not by_client],
                               **ip))
            sequence[by_client] += len(part)
    if closed:
        packets += [tcp(*sides[side], sequence[side], flags=FIN | ACK, **ip) for side in (True, False)]
    return packets


def pcap(packets: Iterable[bytes], link: Link = LINKS["ethernet"], *, order: str = "<", nano: bool = False,
         snap: int = 1 << 18) -> bytes:
    """A pcap whose packets are a millisecond apart."""
    out = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snap, link.number)]
    for number, packet in enumerate(packets):
        time, data = MOMENT_NS + number * 10**6, link.head + packet
        fraction = time % 10**9 // (1 if nano else 1000)
        out.append(struct.pack(order + "IIII", time // 10**9, fraction, min(len(data), snap), len(data)) + data[:snap])
    return b"".join(out)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A block of a pcapng."""
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def pcapng(packets: Iterable[bytes], link: Link = LINKS["ethernet"], *, order: str = "<", resolution: int = 9) -> bytes:
    """A pcapng with one section; its times are in units of 10**-resolution seconds."""
    options = struct.pack(order + "HHB3xHHqHH", 9, 1, resolution, 14, 8, 100, 0, 0)
    out = [block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order),
           block(1, struct.pack(order + "HHI", link.number, 0, 0) + options, order),
           block(0x7F, b"unknown", order)]
    for number, packet in enumerate(packets):
        time, data = (MOMENT_NS + number * 10**6 - 100 * 10**9) // 10**(9 - resolution), link.head + packet
        out.append(block(6, struct.pack(order + "IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(data), len(data)) + data,
                         order))
    return b"".join(out)
