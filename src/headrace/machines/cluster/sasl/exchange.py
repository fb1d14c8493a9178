"""How a SASL mechanism's tokens travel: SaslHandshake chooses it, SaslAuthenticate carries token after token.

Brokers before 1.0 have no SaslAuthenticate: there the tokens are frames of their own. Source: KIP-43, KIP-152, KIP-368
(Java: `SaslClientAuthenticator`).

This module knows no mechanism and no socket. Read next: `machines.cluster.sasl.scram`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.wire.api import negotiate
from headrace.wire.frame import decode_response, expect_answer
from headrace.wire.messages.cluster.session import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from headrace.wire.schema import Request, Response

__all__ = ["OPENING_ID", "Later", "Mechanism", "SaslExchange", "Say", "one_line", "refused"]

Say = tuple[Request | bytes, int]
"""What to send next: a request and its version, or a bare token."""

Later = Callable[[], Say | None]
"""Computes what to send next, and takes milliseconds or more for it."""

OPENING_ID = 0
"""The correlation id of all requests of the handshake: one is under way at a time."""
_MOST_TOKEN_BYTES = 65_536
_MOST_TEXT = 300
_FRAMED = 1  # version of SaslHandshake after which tokens travel in SaslAuthenticate


class Mechanism(Protocol):
    """One authentication by one mechanism; made anew for each.

    Attributes:
        name: the mechanism's name in SaslHandshake.
        slow: its next answer takes milliseconds or more, so it should not be made on an event loop.
        done: it is satisfied; the broker, too, has proved what the mechanism wants it to prove.
        remedy: what to do when the broker refuses, in a few words.
    """

    name: str
    slow: bool
    done: bool
    remedy: str

    def first(self) -> bytes:
        """The client's first token."""
        ...

    def step(self, challenge: bytes) -> bytes | None:
        """Take the broker's token. Returns the next one of the client, None when it has nothing more to send.

        Raises:
            KafkaException: the broker did not prove itself, or asks for what must not be given.
        """
        ...


def refused(text: str) -> KafkaException:
    """Authentication failed; trying again with the same credentials is useless."""
    return KafkaException(KafkaError(KafkaError._AUTHENTICATION, text))


def one_line(text: str) -> str:
    """A broker's text as one printable line of bearable length, without what breaks lines or turns their direction."""
    return re.sub(r"[^\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\uffff]+", " ", text).strip()[:_MOST_TEXT]


class SaslExchange:
    """One SASL authentication on a connection. Ask `begin()`, then hand each frame to `on_frame()` until None.

    Args:
        mechanism: makes the tokens.
        ranges: lowest and highest version of each API key that the broker knows.

    Attributes:
        session_s: seconds after which the broker wants a new authentication (KIP-368); 0 for never.
    """

    def __init__(self, mechanism: Mechanism, ranges: Mapping[int, tuple[int, int]]) -> None:
        self.session_s = 0.0
        self._mechanism = mechanism
        self._chosen = False
        if SaslHandshakeRequest.api_key not in ranges:
            raise refused('the broker knows no SASL: set "security.protocol" to "plaintext" or "ssl"')
        self._framed = SaslAuthenticateRequest.api_key in ranges
        self._choice_version = negotiate(SaslHandshakeRequest, ranges, None if self._framed else _FRAMED - 1)
        self._token_version = negotiate(SaslAuthenticateRequest, ranges) if self._framed else 0

    def begin(self) -> Say:
        """Choose the mechanism."""
        return SaslHandshakeRequest(mechanism=self._mechanism.name), self._choice_version

    def on_frame(self, frame: bytes | bytearray | memoryview) -> Say | Later | None:
        """Take the frame that answers what was sent last. A refusal is raised at once, however slow the mechanism is.

        Returns:
            What to send next, or a function that computes it if that is slow; None when authentication succeeded.

        Raises:
            KafkaException: `_AUTHENTICATION`; the text says why and what to do.
        """
        following: Later
        if self._chosen:
            following = partial(self._answer, self._token_of(frame))
        else:
            self._check_choice(frame)
            self._chosen = True
            following = self._begin
        return following if self._mechanism.slow else following()

    def _begin(self) -> Say:
        return self._say(self._mechanism.first())

    def _answer(self, challenge: bytes) -> Say | None:
        token = self._mechanism.step(challenge)
        if token is not None:
            return self._say(token)
        if not self._mechanism.done:
            raise refused(f"{self._mechanism.name}: the broker ended the exchange before it proved who it is")
        return None

    def _say(self, token: bytes) -> Say:
        return (SaslAuthenticateRequest(auth_bytes=token) if self._framed else token), self._token_version

    def _check_choice(self, frame: bytes | bytearray | memoryview) -> None:
        reply = _answer_to(SaslHandshakeRequest, self._choice_version, frame)
        assert isinstance(reply, SaslHandshakeResponse)
        name, offered = self._mechanism.name, one_line(", ".join(reply.mechanisms))
        if reply.error_code == KafkaError.ILLEGAL_SASL_STATE:
            raise refused('this port is without SASL: set "security.protocol" to "plaintext" or "ssl", or dial the '
                          "broker's SASL listener")
        if reply.error_code == KafkaError.UNSUPPORTED_SASL_MECHANISM:
            raise refused(f'the broker does not take SASL mechanism {name} here, it takes {offered or "none"}: change '
                          '"sasl.mechanism"')
        if reply.error_code:
            raise refused(f"the broker refuses SASL mechanism {name}: {KafkaError(reply.error_code).str()}")

    def _token_of(self, frame: bytes | bytearray | memoryview) -> bytes:
        if len(frame) > _MOST_TOKEN_BYTES:
            raise ProtocolError(f"a SASL token of {len(frame)} bytes; at most {_MOST_TOKEN_BYTES} are accepted")
        if not self._framed:
            return bytes(frame)
        reply = _answer_to(SaslAuthenticateRequest, self._token_version, frame)
        assert isinstance(reply, SaslAuthenticateResponse)
        if reply.error_code:
            why = one_line(reply.error_message or "") or KafkaError(reply.error_code).str()
            raise refused(f"SASL {self._mechanism.name} authentication failed: {why.rstrip('.')}: "
                          f"{self._mechanism.remedy}")
        self.session_s = max(reply.session_lifetime_ms, 0) / 1000.0
        return bytes(reply.auth_bytes)


def _answer_to(request_type: type[Request], version: int, frame: bytes | bytearray | memoryview) -> Response:
    expect_answer(frame, request_type, OPENING_ID)
    return decode_response(request_type, version, frame)[1]
