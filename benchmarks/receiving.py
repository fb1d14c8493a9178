"""What no client can go below: the bytes of a topic are received from the broker, and nothing is done with them.

A first pass keeps the requests that read the topic to its end. The measured pass sends the same ones and receives each
reply into one small block of memory, over and over. The next request is on its way before a reply is received, so the
broker is never idle. With `kept` each reply is received whole and its checksum computed, as a client must that hands
out records which it has checked. `benchmarks.consuming` shows both beside the clients, and `benchmarks.spark` what is
left of Spark's speed where a task does no more than that.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.measure import Sample, Stopwatch
from headrace.records import crc32c, scan
from headrace.wire.frame import decode_response, encode_request
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

__all__ = ["measure_receiving", "receive_partition"]

_BLOCK = 1 << 18
_VERSION = 12  # the last that names topics
_PARTITION_BYTES = 8 << 20


def measure_receiving(request: dict[str, Any]) -> Sample:
    """Receive a topic once: `bootstrap`, `topic`, `partitions`, `records`, `kept`, and `fetch_bytes` of a partition."""
    frames = list(_requests(request))
    whole = request["partitions"] * request["fetch_bytes"] + _BLOCK
    receive, size = (_check, whole) if request["kept"] else (_throw_away, _BLOCK)
    block = memoryview(bytearray(size))
    with _connect(request["bootstrap"]) as connection, Stopwatch() as watch:
        connection.sendall(frames[0])
        for following in [*frames[1:], b""]:
            connection.sendall(following)
            receive(connection, block)
    return watch.sample(request["records"])


def receive_partition(bootstrap: str, topic: str, partition: int, records: int) -> Iterator[int]:
    """Receive that many records of one partition; for each reply how many it had, once its checksum is known.

    The next request is on its way meanwhile.
    """
    position, left = 0, records
    with _connect(bootstrap) as connection:
        connection.sendall(_frame(topic, {partition: position}, _PARTITION_BYTES))
        while left > 0:
            frame, reply = _reply(connection)
            batches = scan(reply.responses[0].partitions[0].records or b"")
            position, count = batches[-1].last_offset + 1, sum(batch.count for batch in batches)
            left -= count
            if left > 0:
                connection.sendall(_frame(topic, {partition: position}, _PARTITION_BYTES))
            crc32c(frame)
            yield count


def _requests(request: dict[str, Any]) -> Iterable[bytes]:
    """The fetches that read the topic to its end."""
    positions = dict.fromkeys(range(request["partitions"]), 0)
    left = request["records"]
    with _connect(request["bootstrap"]) as connection:
        while left:
            frame = _frame(request["topic"], positions, request["fetch_bytes"])
            connection.sendall(frame)
            yield frame
            _, reply = _reply(connection)
            for part in reply.responses[0].partitions:
                for batch in scan(part.records or b""):
                    positions[part.partition_index] = batch.last_offset + 1
                    left -= batch.count


def _frame(topic: str, positions: dict[int, int], fetch_bytes: int) -> bytes:
    asked = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, forgotten_topics_data=[], topics=[
        FetchTopic(topic=topic, partitions=[
            FetchPartition(partition=partition, fetch_offset=position, partition_max_bytes=fetch_bytes)
            for partition, position in positions.items()])])
    return b"".join(encode_request(asked, _VERSION, 1, "floor"))


def _reply(connection: socket.socket) -> tuple[bytearray, FetchResponse]:
    (size,) = struct.unpack(">i", _read(connection, 4))
    frame = _read(connection, size)
    _, reply = decode_response(FetchRequest, _VERSION, frame)
    assert isinstance(reply, FetchResponse)
    return frame, reply


def _connect(bootstrap: str) -> socket.socket:
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    return socket.create_connection((host, int(port)), 30)


def _throw_away(connection: socket.socket, block: memoryview) -> None:
    (left,) = struct.unpack(">i", _read(connection, 4))
    while left:
        received = connection.recv_into(block, min(left, _BLOCK))
        if not received:
            raise ConnectionError("the broker hung up")
        left -= received


def _check(connection: socket.socket, block: memoryview) -> None:
    (size,) = struct.unpack(">i", _read(connection, 4))
    reply = block[:size]
    _fill(connection, reply)
    crc32c(reply)


def _read(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    _fill(connection, memoryview(data))
    return data


def _fill(connection: socket.socket, memory: memoryview) -> None:
    at = 0
    while at < len(memory):
        received = connection.recv_into(memory[at:])
        if not received:
            raise ConnectionError("the broker hung up")
        at += received
