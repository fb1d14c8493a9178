"""A frame, without its length prefix, to a header and a message: whole if possible, else as far as it can be read.

Read next: `exchange`, which knows which reply belongs to which request.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from headrace.decode.messages.tolerant import read_partly
from headrace.errors import ProtocolError
from headrace.wire.api import API, Api
from headrace.wire.frame import UnsupportedRequest, decode_request, decode_response
from headrace.wire.layout import is_flexible
from headrace.wire.messages.cluster.headers import RequestHeader, ResponseHeader
from headrace.wire.schema import ApiMessage

__all__ = ["MAX_FRAME_BYTES", "Body", "api_name", "find_api", "is_request", "looks_like_request", "read_reply",
           "read_request", "whole_reply"]

MAX_FRAME_BYTES: Final = 128 << 20
"""Longer frames are taken for damage: brokers refuse requests above 100 MiB."""

_HEAD: Final = struct.Struct(">hhih")
_API_VERSIONS, _UNSUPPORTED_VERSION, _CONTROLLED_SHUTDOWN = 18, 35, 7
_LONGEST_CLIENT_ID: Final = 1024
_HIGHEST_KEY, _HIGHEST_VERSION = 127, 31

class Body(NamedTuple):
    """What a frame says.

    Attributes:
        damage: what of it could not be read; empty when everything could.
        note: why there is no message although nothing is damaged.
    """

    api_key: int | None
    version: int | None
    correlation_id: int | None
    client_id: str | None
    message: ApiMessage | None
    damage: str = ""
    note: str = ""


def api_name(key: int | None) -> str:
    """Kafka's name of an API."""
    if key is None:
        return "unknown"
    api = API.get(key)
    return api.name if api else f"API {key}"


def find_api(text: str) -> Api | None:
    """The API of a name in any case, or of a key."""
    wanted = text.lower().removesuffix("request").removesuffix("response")
    return next((api for api in API.values() if wanted in (api.name.lower(), str(api.key))), None)


def looks_like_request(data: bytes | bytearray, at: int = 0, known_only: bool = False) -> bool:
    """True when a length prefix and a request header may stand here.

    Args:
        data: bytes of a connection.
        at: where the length prefix begins.
        known_only: take only APIs and versions that can be read.
    """
    if len(data) - at < 4 + _HEAD.size:
        return False
    size = int.from_bytes(data[at:at + 4], "big", signed=True)
    key, version, _, name = _HEAD.unpack_from(data, at + 4)
    api = API.get(key)
    if known_only and (api is None or not api.min_version <= version <= api.max_version):
        return False
    if not (_HEAD.size <= size <= MAX_FRAME_BYTES and 0 <= key <= _HIGHEST_KEY and 0 <= version <= _HIGHEST_VERSION
            and -1 <= name <= min(_LONGEST_CLIENT_ID, size - _HEAD.size)):
        return False
    start = at + 4 + _HEAD.size
    return all(0x20 <= byte < 0x7F or byte >= 0x80 for byte in data[start:start + max(name, 0)])


def is_request(frame: bytes) -> bool:
    """True when a frame without its prefix is a request that can be read whole."""
    if not looks_like_request(len(frame).to_bytes(4, "big") + frame[:64 + _LONGEST_CLIENT_ID], known_only=True):
        return False
    try:
        decode_request(frame)
    except ProtocolError:
        return False
    return True


def whole_reply(key: int, version: int, frame: bytes) -> ApiMessage | None:
    """The reply to a request of an API and version, when a frame is one without any damage. Cheap when it is not."""
    api = API.get(key)
    if api is None or not api.min_version <= version <= api.max_version:
        return None
    try:
        return decode_response(api.request, version, frame)[1]
    except ProtocolError:
        return None


def read_request(frame: bytes, missing: int = 0) -> Body:
    """Read a request.

    Args:
        frame: without its length prefix; its head when the capture has no more.
        missing: bytes behind it that are not there.
    """
    try:
        key, version, correlation_id, size = _HEAD.unpack_from(frame)
        has_none = size < 0 or (key, version) == (_CONTROLLED_SHUTDOWN, 0)
        client_id = None if has_none else frame[_HEAD.size:_HEAD.size + size].decode()
    except (struct.error, UnicodeDecodeError):
        return Body(None, None, None, None, None, "its header cannot be read")
    head = (key, version, correlation_id, client_id)
    api = API.get(key)
    if api is None or not api.min_version <= version <= api.max_version:
        return Body(*head, None, note=_unknown(key, version, api))
    try:
        if not missing:
            return Body(*head, decode_request(frame).request)
    except UnsupportedRequest:
        return Body(*head, None, note=_unknown(key, version, api))
    except ProtocolError:
        pass
    header_version = 0 if (key, version) == (_CONTROLLED_SHUTDOWN, 0) else 1 + is_flexible(api.request, version)
    return Body(*head, *_partly(RequestHeader, header_version, api.request, version, frame, missing))


def _unknown(key: int, version: int, api: Api | None) -> str:
    if api is None:
        return f"API key {key} is not known here"
    return f"this version is not known here ({api.name} is known in versions {api.min_version}-{api.max_version})"


def read_reply(key: int, version: int, frame: bytes, missing: int = 0) -> Body:
    """Read the reply to a request of an API and version.

    Args:
        key: the request's API key.
        version: the request's version.
        frame: without its length prefix; its head when the capture has no more.
        missing: bytes behind it that are not there.
    """
    if len(frame) < 4:
        return Body(key, version, None, None, None, "its header cannot be read")
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    api = API.get(key)
    if key == _API_VERSIONS and int.from_bytes(frame[4:6], "big") == _UNSUPPORTED_VERSION:
        version = 0  # a broker that does not know the asked version answers in this one (KIP-511)
    head = (key, version, correlation_id, None)
    if api is None or not api.min_version <= version <= api.max_version:
        return Body(*head, None, note=_unknown(key, version, api))
    try:
        if not missing:
            return Body(*head, decode_response(api.request, version, frame)[1])
    except ProtocolError:
        pass
    header_version = int(key != _API_VERSIONS and is_flexible(api.response, version))
    return Body(*head, *_partly(ResponseHeader, header_version, api.response, version, frame, missing))


def _partly(
    header: type[ApiMessage], header_version: int, cls: type[ApiMessage], version: int, frame: bytes, missing: int
) -> tuple[ApiMessage | None, str]:
    """What can be read of a damaged message, and the damage."""
    cut = f"only the first {len(frame)} of {len(frame) + missing} bytes are there" if missing else ""
    view = memoryview(frame)
    head = read_partly(header, view, header_version, 0)
    if head.problem:
        return None, cut or head.problem
    found = read_partly(cls, view, version, head.position)
    left = len(frame) - found.position
    behind = f"{left} bytes are left behind its end (at byte {found.position} of the frame)" if left else ""
    return found.message, cut or found.problem or behind
