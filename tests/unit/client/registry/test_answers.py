"""What comes back over HTTP, read. How it comes is in `test_http_transport`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from headrace.client.registry import answers
from headrace.client.registry.answers import Answer, bounded, read, refusal, retriable
from headrace.errors import SchemaRegistryError


class Response:
    """A response that comes in pieces."""

    def __init__(self, *pieces: bytes, encoding: str | None = None) -> None:
        self.status_code = 200
        self.headers = {} if encoding is None else {"Content-Encoding": encoding}
        self.given = 0
        self._pieces = pieces

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.given += 1
            yield piece


def test_an_error_code_that_is_missing_is_unknown() -> None:
    assert refusal(Answer(500, b'{"message": "m"}', {})).error_code == SchemaRegistryError.UNKNOWN
    assert refusal(Answer(500, b'{"message": "m", "error_code": "x"}', {})).error_code == -1
    assert read(Answer(299, b"3", {})) == 3


def test_an_answer_without_a_body_says_nothing_and_a_redirection_is_a_refusal() -> None:
    assert read(Answer(200, b"", {})) is None
    assert read(Answer(204, b"null and void", {})) is None
    with pytest.raises(SchemaRegistryError, match="it points to elsewhere"):
        read(Answer(300, b"", {"Location": "elsewhere"}))


def test_pieces_are_one_body() -> None:
    assert asyncio.run(bounded(Response(b"ab", b"", b"c"))) == b"abc"
    assert asyncio.run(bounded(Response(b"ab", encoding="Identity"))) == b"ab"


def test_a_body_is_read_no_further_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_ANSWER_BYTES", 4)
    assert asyncio.run(bounded(Response(b"ab", b"cd"))) == b"abcd"
    response = Response(b"ab", b"cd", b"e", b"f")
    with pytest.raises(SchemaRegistryError, match="larger than 4 bytes"):
        asyncio.run(bounded(response))
    assert response.given == 3


def test_statuses_that_pass_by_themselves_are_confluent_kafkas() -> None:
    assert [status for status in range(100, 600) if retriable(status)] == [408, 429, 500, 502, 503, 504]


def test_numbers_beyond_all_measure_are_no_json() -> None:
    with pytest.raises(SchemaRegistryError, match="it is not JSON"):
        read(Answer(200, b"9" * 10_000, {}))
