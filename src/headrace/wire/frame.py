"""Frames: the length prefix and the header that stand before every request and every response.

A request header is version 1, or 2 when the request is flexible; a response header version 0, or 1 when flexible.
ApiVersions responses always have header version 0, so that a client can read an answer in a version it did not ask for
(KIP-511); ControlledShutdown requests of version 0 are the only ones with header version 0, without a client id.
`wire.messages.cluster.headers` has the headers as messages. Source: Java's `RequestHeader`, `ResponseHeader`,
`ApiKeys.responseHeaderVersion`.

This module is pure: it knows no sockets. Read next: `wire.api`, the list of all requests.
"""

from __future__ import annotations

from functools import cache
from struct import Struct as Packer
from struct import error as StructError  # noqa: N812  it is a class
from typing import NamedTuple

from headrace.errors import ProtocolError
from headrace.wire.api import API
from headrace.wire.codec import Part, assemble, decode_from, encode_into
from headrace.wire.layout import is_flexible
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.primitives import as_view, read_uvarint
from headrace.wire.schema import Request, Response
from headrace.wire.topic_rows import decode_metadata

__all__ = [
    "RequestFrame", "UnsupportedRequest", "decode_answer", "decode_request", "decode_response",
    "encode_request", "encode_response", "expect_answer", "peek_correlation_id",
]

_REQUEST_HEAD = Packer(">ihhih")
_KEY_VERSION_ID_CLIENT = Packer(">hhih")
_RESPONSE_HEAD = Packer(">ii")
_LENGTH = Packer(">i")
_HEAD_WITHOUT_CLIENT = Packer(">ihhi")
_NO_CLIENT_ID = -1
_CONTROLLED_SHUTDOWN = 7


class RequestFrame(NamedTuple):
    """A request as it arrived at a broker."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    request: Request


class UnsupportedRequest(ProtocolError):
    """The request's API key or version is not known; its header could be read and is kept here.

    A broker answers an ApiVersions request of an unknown version in version 0 (KIP-511) and closes otherwise.
    """

    def __init__(self, api_key: int, version: int, correlation_id: int, client_id: str | None) -> None:
        super().__init__(f"a request with API key {api_key}, version {version}, which is not known here")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id


def encode_request(request: Request, version: int, correlation_id: int, client_id: str | None) -> list[Part]:
    """A request with its length prefix and header, in parts to be sent one after the other. Records are not copied.

    Args:
        request: the request.
        version: version to write it in.
        correlation_id: number that the response will carry.
        client_id: name of the client for the broker's logs and quotas.

    Raises:
        ProtocolError: a value does not fit its field.
        KafkaException: a field is set that this version does not carry.
    """
    name = None if client_id is None else client_id.encode()
    size = _NO_CLIENT_ID if name is None else len(name)
    if version == 0 and request.api_key == _CONTROLLED_SHUTDOWN:
        out = bytearray(_HEAD_WITHOUT_CLIENT.pack(0, request.api_key, version, correlation_id))
    else:
        out = bytearray(_REQUEST_HEAD.pack(0, request.api_key, version, correlation_id, size))
        out += name or b""
    if is_flexible(type(request), version):
        out.append(0)
    cuts = encode_into(out, request, version)
    length = len(out) - _LENGTH.size
    for _, records in cuts:
        length += len(records)
    _LENGTH.pack_into(out, 0, length)
    return assemble(out, cuts)


def encode_response(response: Response, version: int, correlation_id: int) -> list[Part]:
    """A response with its length prefix and header, in parts to be sent one after the other."""
    out = bytearray(_RESPONSE_HEAD.pack(0, correlation_id))
    if _has_tags(type(response), version):
        out.append(0)
    cuts = encode_into(out, response, version)
    _LENGTH.pack_into(out, 0, len(out) - _LENGTH.size + sum([len(records) for _, records in cuts]))
    return assemble(out, cuts)


@cache
def _has_tags(response: type[Response], version: int) -> bool:
    return response.api_key != ApiVersionsRequest.api_key and is_flexible(response, version)


def decode_request(frame: bytes | bytearray | memoryview) -> RequestFrame:
    """Read a request from a frame without its length prefix.

    Raises:
        UnsupportedRequest: the API key or version is unknown.
        ProtocolError: the bytes are not a request.
    """
    data = as_view(frame)
    try:
        key, version, correlation_id, size = _KEY_VERSION_ID_CLIENT.unpack_from(data)
        if key == _CONTROLLED_SHUTDOWN and version == 0:
            return _without_client_id(data, correlation_id)
        position = _KEY_VERSION_ID_CLIENT.size + max(size, 0)
        if position > len(data):
            raise ValueError(f"the client id ends at byte {position}, the frame at byte {len(data)}")
        client_id = None if size < 0 else str(data[_KEY_VERSION_ID_CLIENT.size:position], "utf-8")
    except (StructError, ValueError) as error:
        raise ProtocolError(f"a request header cannot be read: {error}") from None
    api = API.get(key)
    if api is None or not api.min_version <= version <= api.max_version:
        raise UnsupportedRequest(key, version, correlation_id, client_id)
    if is_flexible(api.request, version):
        position = _skip_tags(data, position)
    # As Kafka does, a request is read and what follows it ignored: librdkafka leaves three bytes behind Metadata for
    # all topics in flexible versions.
    request = decode_from(api.request, frame if isinstance(frame, bytes) else data, version, position,
                          to_the_end=False)
    return RequestFrame(key, version, correlation_id, client_id, request)


def _without_client_id(data: memoryview, correlation_id: int) -> RequestFrame:
    request_type = API[_CONTROLLED_SHUTDOWN].request
    start = _HEAD_WITHOUT_CLIENT.size - _LENGTH.size
    request = decode_from(request_type, data, 0, start, to_the_end=False)
    return RequestFrame(_CONTROLLED_SHUTDOWN, 0, correlation_id, None, request)


def decode_response(
    request_type: type[Request], version: int, frame: bytes | bytearray | memoryview
) -> tuple[int, Response]:
    """Read the response to a request from a frame without its length prefix.

    Args:
        request_type: class of the request.
        version: version in which the request was sent.
        frame: the bytes; records in the response are views of them.

    Returns:
        The correlation id and the response.

    Raises:
        ProtocolError: the bytes are not such a response.
    """
    start = _body(request_type, version, frame)
    return peek_correlation_id(frame), decode_from(request_type.response_type, frame, version, start)


def decode_answer(
    request_type: type[Request], version: int, correlation_id: int, frame: bytes | bytearray | memoryview
) -> Response:
    """Read the response to a request that was sent with this number; as `decode_response`, but that topics of Metadata
    are read as `decode_metadata` does.

    Raises:
        ProtocolError: the bytes are not such a response, or answer another request.
    """
    if len(frame) < _LENGTH.size or _LENGTH.unpack_from(frame)[0] != correlation_id:
        expect_answer(frame, request_type, correlation_id)
    start = _body(request_type, version, frame)
    if request_type is MetadataRequest:
        return decode_metadata(frame, version, start)
    return decode_from(request_type.response_type, frame, version, start)


def _body(request_type: type[Request], version: int, frame: bytes | bytearray | memoryview) -> int:
    """Where the message begins behind the header."""
    response_type = request_type.response_type
    position = _LENGTH.size
    if _has_tags(response_type, version):
        if type(frame) is bytes and len(frame) > position and not frame[position]:
            position += 1
        else:
            position = _skip_tags(as_view(frame), position)
    return position


def peek_correlation_id(frame: bytes | bytearray | memoryview) -> int:
    """The correlation id of a response frame.

    Raises:
        ProtocolError: the frame is too short.
    """
    if len(frame) < _LENGTH.size:
        raise ProtocolError(f"a response of {len(frame)} bytes is too short for a header")
    correlation_id: int = _LENGTH.unpack_from(frame)[0]
    return correlation_id


def expect_answer(frame: bytes | bytearray | memoryview, request_type: type[Request], correlation_id: int) -> None:
    """Make sure that a response frame answers a request.

    Raises:
        ProtocolError: it answers another one, or is too short.
    """
    answered = peek_correlation_id(frame)
    if answered != correlation_id:
        raise ProtocolError(f"the broker answered request {answered} where {correlation_id} ({request_type.__name__}) "
                            "was next")


def _skip_tags(data: memoryview, position: int) -> int:
    """Step over the tagged fields of a header; none are defined that we need, and as a rule there are none."""
    if position < len(data) and not data[position]:
        return position + 1
    try:
        count, position = read_uvarint(data, position)
        for _ in range(count):
            _, position = read_uvarint(data, position)
            size, position = read_uvarint(data, position)
            position += size
        if position > len(data):
            raise IndexError
    except IndexError:
        raise ProtocolError("a header ends within its tagged fields") from None
    return position
