"""The target `codecs`: frames and the structures within, of every API and version, and back into bytes.

The first byte says what follows, the second is the API's key (of inner structures a sum of the name), the third the
version. What could be read is written and read again, and must be the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

from headrace.errors import ProtocolError
from headrace.wire import codec
from headrace.wire.api import API
from headrace.wire.frame import (
    decode_answer,
    decode_request,
    decode_response,
    encode_request,
    peek_correlation_id,
)
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataResponseTopic
from headrace.wire.schema import ApiMessage
from tests.campaigns.hostile import frames

REQUEST, RESPONSE, INNER = range(3)


@cache
def inner_structures() -> dict[int, type[Any]]:
    """Structures that travel inside of others, by a sum of their names."""
    return {number_of(cls): cls for kind, cls, _ in frames.kinds() if kind == "inner"}


def number_of(cls: type[Any]) -> int:
    """A structure's number in inputs; of its name, so that a new structure leaves the others' numbers alone."""
    return zlib.crc32(cls.__name__.encode()) & 0xFF


def run(data: bytes) -> None:
    """One input. Returns, or raises what must never be raised."""
    if len(data) < 3:
        return
    kind, number, version, body = data[0] % 3, data[1], data[2], data[3:]
    try:
        if kind == REQUEST:
            frame = decode_request(body)
            again = decode_request(b"".join(encode_request(
                frame.request, frame.version, frame.correlation_id, frame.client_id))[4:])
            _hold_same(frame.request, again.request, frame.version)
        elif kind == RESPONSE and number in API:
            request = API[number].request
            if request.min_version <= version <= request.max_version:
                if request is MetadataRequest:
                    _hold_rows_same(version, body)
                _write_again(decode_response(request, version, body)[1], version)
        elif kind == INNER and number in inner_structures():
            _write_again(codec.decode(inner_structures()[number], body, version), version)
    except ProtocolError:
        pass


def _hold_rows_same(version: int, body: bytes) -> None:
    """Topics as clients read them, in the place of the codec's: the same, and refused where those are."""
    stories = [_told(lambda: decode_answer(MetadataRequest, version, peek_correlation_id(body), body)),
               _told(lambda: decode_response(MetadataRequest, version, body)[1])]
    assert stories[0] == stories[1], f"rows of MetadataResponse v{version} are not what the codec reads"


def _told(read: Callable[[], Any]) -> Any:
    try:
        reply = read()
    except ProtocolError as error:
        return str(error)
    topics = reply.topics
    shown = [(topic.name, topic.topic_id, topic.error_code, topic.is_internal, topic.topic_authorized_operations)
             for topic in topics]
    reply.topics = [topic if type(topic) is MetadataResponseTopic else topic.whole() for topic in topics]
    return shown, reply


def _write_again(message: ApiMessage, version: int) -> None:
    _hold_same(message, codec.decode(type(message), codec.encode(message, version), version), version)


def _hold_same(message: ApiMessage, again: ApiMessage, version: int) -> None:
    # Not-a-number is not equal to itself, so what is written decides.
    same = message == again or codec.encode(message, version) == codec.encode(again, version)
    assert same, f"{type(message).__name__} v{version} is not the same when it was written and read"
