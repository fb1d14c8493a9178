"""SCRAM-SHA-256 and SCRAM-SHA-512: both sides prove that they know the password, and neither sends it.

Name and password are taken as UTF-8 as they are. RFC 5802 would have them prepared by SASLprep; Kafka's broker and
tools store credentials without it, so that a client which prepares a password cannot log in where SASLprep changes it.
Source: RFC 5802, RFC 7677, KIP-84, KIP-48 (Java: `ScramSaslClient`, `ScramFormatter`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

from headrace.errors import ProtocolError
from headrace.machines.cluster.sasl.exchange import one_line, refused

__all__ = ["MOST_ITERATIONS", "Scram"]

LEAST_ITERATIONS = 4_096
"""Kafka's own lower bound: fewer would make the password easy to guess for an eavesdropper."""
MOST_ITERATIONS = 1_000_000
"""About a second of work. Kafka stores at most 16,384; a hostile server could ask for any number."""

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_CHANNEL_BINDING = "n,,"
_FIRST = re.compile(r"r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/=]+),i=([0-9]{1,9})(?:,.*)?", re.DOTALL)


class Scram:
    """One authentication with name and password.

    Args:
        name: ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
        username, password: the credentials.
        nonce: printable text without commas that was never used before.
        delegation_token: the credentials are a delegation token's id and key.
    """

    remedy = 'check "sasl.username" and "sasl.password", and that the user has credentials for this mechanism'

    def __init__(self, name: str, username: str, password: str, nonce: str, *, delegation_token: bool = False) -> None:
        self.name = name
        self.done = self.slow = False
        self._hash = _HASHES[name]
        self._password = password.encode()
        self._nonce = nonce
        quoted = username.replace("=", "=3D").replace(",", "=2C")
        self._said = f"n={quoted},r={nonce}{',tokenauth=true' if delegation_token else ''}"
        self._signature: bytes | None = None  # what the server must answer

    def first(self) -> bytes:
        """The user's name, and the client's nonce."""
        self.slow = True  # thousands of hashes come next
        return f"{_NO_CHANNEL_BINDING}{self._said}".encode()

    def step(self, challenge: bytes) -> bytes | None:
        """Answer the server's salt with the proof, or check the server's own proof."""
        try:
            text = challenge.decode()
        except UnicodeDecodeError:
            raise ProtocolError(f"{self.name}: the broker's message is not UTF-8") from None
        if text.startswith("e="):
            raise refused(f"SASL {self.name} authentication failed: {one_line(text[2:])}: {self.remedy}")
        if self._signature is not None:
            self._check_server(text, self._signature)
            return None
        return self._prove(text)

    def _prove(self, text: str) -> bytes:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise ProtocolError(f"{self.name}: the broker's first message is malformed, or asks for an extension")
        nonce, salt_text, iterations = found[1], found[2], int(found[3])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise refused(f"{self.name}: the broker does not answer this client's nonce: is something between them?")
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise refused(f"{self.name}: the broker asks for {iterations} iterations; {LEAST_ITERATIONS} to "
                          f"{MOST_ITERATIONS} are accepted: store the user's credentials with as many")
        final = f"c={_encode(_NO_CHANNEL_BINDING.encode())},r={nonce}"
        signed = f"{self._said},{text},{final}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, self._decode(salt_text), iterations)
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.slow = False
        self._signature = self._mac(self._mac(salted, b"Server Key"), signed)
        return f"{final},p={_encode(proof)}".encode()

    def _check_server(self, text: str, expected: bytes) -> None:
        given = text.partition(",")[0]
        if not given.startswith("v=") or not hmac.compare_digest(self._decode(given[2:]), expected):
            raise refused(f"{self.name}: the broker does not prove that it knows the password: is it the right one?")
        self.done = True

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)

    def _decode(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise ProtocolError(f"{self.name}: the broker's message is not base64 where it must be") from None


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
