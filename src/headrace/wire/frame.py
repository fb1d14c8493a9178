"""Frames: a length, a header, a body. Requests and answers find each other by the header's correlation id.

It knows no sockets: bytes come in, parts to write go out. Read next: `wire.api`, `net.connection`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from headrace.errors import ProtocolError
from headrace.wire.api import API
from headrace.wire.codec import decode, encode_parts
from headrace.wire.schema import Request, Response

__all__ = ["FrameSplitter", "RequestFrame", "UnsupportedRequest", "decode_request", "decode_response",
           "encode_request", "encode_response", "peek_correlation_id"]

_API_VERSIONS = 18
_HEAD = struct.Struct(">hhih")
_INT32 = struct.Struct(">i")


@dataclass(slots=True)
class RequestFrame:
    """A request as a broker receives it, with what its header says."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    request: Request


class UnsupportedRequest(ProtocolError):
    """A request of an unknown key or version; the header is told so that a broker can answer."""

    def __init__(self, api_key: int, version: int, correlation_id: int, client_id: str | None) -> None:
        super().__init__(f"request key {api_key} version {version} is not known")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id


def encode_request(
    request: Request, version: int, correlation_id: int, client_id: str | None
) -> list[bytes | memoryview]:
    """Write a request with length and header in front (request header v1, or v2 for flexible versions).

    Returns:
        Parts to be written one after the other; large record batches are the caller's own objects.
    """
    name = client_id.encode() if client_id is not None else b""
    head = _HEAD.pack(request.api_key, version, correlation_id, len(name) if client_id is not None else -1) + name
    if version >= request.flexible_version:
        head += b"\0"
    return _framed(head, encode_parts(request, version))


def encode_response(response: Response, version: int, correlation_id: int) -> list[bytes | memoryview]:
    """Write a response with length and header in front. ApiVersions has header v0 in all versions (KIP-511)."""
    head = _INT32.pack(correlation_id)
    if version >= response.flexible_version and response.api_key != _API_VERSIONS:
        head += b"\0"
    return _framed(head, encode_parts(response, version))


def decode_request(frame: bytes | memoryview) -> RequestFrame:
    """Read a request without its length.

    Raises:
        UnsupportedRequest: key or version are not known; its attributes hold the header.
        ProtocolError: the bytes are not a request.
    """
    try:
        key, version, correlation_id, length = _HEAD.unpack_from(frame)
        position = _HEAD.size
        client_id = None
        if length >= 0:
            raw = bytes(frame[position:position + length])
            if len(raw) != length:
                raise ProtocolError("the request ends inside its client id")
            client_id = raw.decode(errors="replace")
            position += length
        api = API.get(key)
        if api is None or not api.min_version <= version <= api.max_version:
            raise UnsupportedRequest(key, version, correlation_id, client_id)
        if version >= api.request.flexible_version:
            position = _skip_tags(frame, position)
    except (struct.error, IndexError):
        raise ProtocolError("the request ends inside its header") from None
    request = decode(api.request, frame[position:] if position else frame, version)
    return RequestFrame(key, version, correlation_id, client_id, request)


def decode_response(
    request_type: type[Request], version: int, frame: bytes | memoryview
) -> tuple[int, Response]:
    """Read the answer to a request, without its length.

    Returns:
        The correlation id and the message; its `Records` fields are views into `frame`.
    """
    response_type = request_type.response_type
    correlation_id = peek_correlation_id(frame)
    position = 4
    if version >= response_type.flexible_version and response_type.api_key != _API_VERSIONS:
        try:
            position = _skip_tags(frame, position)
        except IndexError:
            raise ProtocolError("the response ends inside its header") from None
    return correlation_id, decode(response_type, memoryview(frame)[position:], version)


def peek_correlation_id(frame: bytes | memoryview) -> int:
    """The correlation id of a response."""
    if len(frame) < 4:
        raise ProtocolError("the response ends inside its header")
    number: int = _INT32.unpack_from(frame)[0]
    return number


def _framed(head: bytes, body: list[bytes | memoryview]) -> list[bytes | memoryview]:
    size = len(head) + sum(map(len, body))
    if body and isinstance(body[0], bytes):
        body[0] = _INT32.pack(size) + head + body[0]
        return body
    return [_INT32.pack(size) + head, *body]


def _skip_tags(frame: bytes | memoryview, position: int) -> int:
    """Step over the tagged fields of a header: none are defined, any may come."""
    count, position = _uvarint(frame, position)
    for _ in range(count):
        _, position = _uvarint(frame, position)
        size, position = _uvarint(frame, position)
        position += size
        if position > len(frame):
            raise ProtocolError("a header's tagged field reaches past the end")
    return position


def _uvarint(frame: bytes | memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = frame[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ProtocolError("a varint is longer than 32 bits")


class FrameSplitter:
    """Cuts a stream of bytes into frames.

    Args:
        max_bytes: the largest frame that is accepted.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[bytes]:
        """Add bytes and take the frames that are now complete, without their lengths.

        Raises:
            ProtocolError: a length is negative or above the limit; the stream can not be read on.
        """
        self._buffer += data
        frames = []
        position = 0
        while len(self._buffer) - position >= 4:
            size = _INT32.unpack_from(self._buffer, position)[0]
            if not 0 <= size <= self._max_bytes:
                raise ProtocolError(f"a frame of {size} bytes; allowed are 0 to {self._max_bytes}")
            if len(self._buffer) - position - 4 < size:
                break
            frames.append(bytes(memoryview(self._buffer)[position + 4:position + 4 + size]))
            position += 4 + size
        if position:
            del self._buffer[:position]
        return frames
