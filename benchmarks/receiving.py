"""What no client can go below: the bytes of a topic are received from the broker, and nothing is done with them.

A first pass keeps the requests that read the topic to its end. The measured pass sends the same ones and receives each
reply into one small block of memory, over and over. The next request is on its way before a reply is received, so the
broker is never idle. With `kept` each reply is received whole and its checksum computed, as a client must that hands
out records which it has checked. `benchmarks.consuming` shows both beside the clients.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from typing import Any

from benchmarks.measure import Sample, Stopwatch
from headrace.records import crc32c, scan
from headrace.wire.frame import decode_response, encode_request
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

__all__ = ["measure_receiving"]

_BLOCK = 1 << 18
_VERSION = 12  # the last that names topics


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


def _requests(request: dict[str, Any]) -> Iterable[bytes]:
    """The fetches that read the topic to its end."""
    positions = dict.fromkeys(range(request["partitions"]), 0)
    left = request["records"]
    with _connect(request["bootstrap"]) as connection:
        while left:
            asked = FetchRequest(
                max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, forgotten_topics_data=[], topics=[
                    FetchTopic(topic=request["topic"], partitions=[
                        FetchPartition(partition=partition, fetch_offset=position,
                                       partition_max_bytes=request["fetch_bytes"])
                        for partition, position in positions.items()])])
            frame = b"".join(encode_request(asked, _VERSION, 1, "floor"))
            connection.sendall(frame)
            yield frame
            reply = _reply(connection)
            for part in reply.responses[0].partitions:
                for batch in scan(part.records or b""):
                    positions[part.partition_index] = batch.last_offset + 1
                    left -= batch.count


def _reply(connection: socket.socket) -> FetchResponse:
    (size,) = struct.unpack(">i", _read(connection, 4))
    _, reply = decode_response(FetchRequest, _VERSION, _read(connection, size))
    assert isinstance(reply, FetchResponse)
    return reply


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
