"""What comes back over HTTP: JSON, a refusal, or what is neither. How much of it is read is bounded.

Knows no request. Read next: `client.registry.http_transport`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.errors import SchemaRegistryError

__all__ = ["MOST_ANSWER_BYTES", "MOST_ANSWER_VALUES", "Answer", "bounded", "json_of", "read", "refusal", "retriable"]

MOST_ANSWER_BYTES = 32 * 1024 * 1024
"""Bytes of the largest answer that is read: a hundred thousand subjects with names of three hundred bytes."""

MOST_ANSWER_VALUES = 2_000_000
"""Commas in the largest answer: bytes of JSON may ask for thirty times as many of memory."""

_RETRIABLE = {408, 429, 500, 502, 503, 504}
_SHOWN_CHARACTERS = 200


class Answer(NamedTuple):
    """What came back.

    Args:
        status: of HTTP.
        body: all of it.
        headers: by name.
    """

    status: int
    body: bytes
    headers: Mapping[str, str]


def retriable(status: int) -> bool:
    """Whether an answer is that of a server that may do better soon."""
    return status in _RETRIABLE


async def bounded(response: Any) -> bytes:
    """The body of a response.

    Raises:
        SchemaRegistryError: it is too large, or in an encoding that was not asked for.
    """
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise SchemaRegistryError(response.status_code, SchemaRegistryError.UNKNOWN,
                                  f"the registry answered in the encoding {encoding:.40}, which it was not asked for")
    read_so_far = bytearray()
    async for chunk in response.aiter_raw():
        read_so_far += chunk
        if len(read_so_far) > MOST_ANSWER_BYTES:
            raise SchemaRegistryError(response.status_code, SchemaRegistryError.UNKNOWN,
                                      f"the registry's answer is larger than {MOST_ANSWER_BYTES} bytes")
    return bytes(read_so_far)


def read(answer: Answer) -> Any:
    """The JSON of an answer, None where it is empty.

    Raises:
        SchemaRegistryError: the registry refused, or it is not JSON.
    """
    if not 200 <= answer.status <= 299:
        raise refusal(answer)
    if answer.status == 204 or not answer.body:
        return None
    try:
        return json_of(answer.body)
    except ValueError as error:
        raise SchemaRegistryError(answer.status, SchemaRegistryError.UNKNOWN,
                                  f"the registry's answer cannot be read, {error}: {_shown(answer.body)}") from None


def json_of(body: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none, nests too deep, or has too many values.
    """
    if body.count(b",") > MOST_ANSWER_VALUES:
        raise ValueError(f"it has more than {MOST_ANSWER_VALUES} values")
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ValueError:
        raise ValueError("it is not JSON") from None


def refusal(answer: Answer) -> SchemaRegistryError:
    """The error that an answer says."""
    try:
        said = json_of(answer.body)
        message, code = said["message"], said.get("error_code")
        if isinstance(message, str):
            return SchemaRegistryError(answer.status, code if isinstance(code, int) else SchemaRegistryError.UNKNOWN,
                                       message)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    where = f" (it points to {answer.headers['Location']})" if "Location" in answer.headers else ""
    return SchemaRegistryError(answer.status, SchemaRegistryError.UNKNOWN,
                               f"Unknown Schema Registry Error: {_shown(answer.body)}{where}")


def _shown(body: bytes) -> str:
    text = body[:_SHOWN_CHARACTERS].decode(errors="replace")
    return repr(text) + ("..." if len(body) > _SHOWN_CHARACTERS else "")
