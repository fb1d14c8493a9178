"""OAUTHBEARER: a token that a third party has issued, with extensions. Source: RFC 7628, KIP-255, KIP-342."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from headrace.errors import ConfigError
from headrace.machines.cluster.sasl.exchange import one_line, refused

__all__ = ["OAuthBearer"]

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_NAME = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_GIVE_IN = b"\x01"


class OAuthBearer:
    """One authentication with a token.

    Args:
        token: the token as it is sent, a signed JWT as a rule.
        extensions: further names and values for the broker.

    Raises:
        ConfigError: an extension has a name or value that cannot be sent.
        KafkaException: the token has characters that cannot be sent.
    """

    name = "OAUTHBEARER"
    slow = False
    remedy = "check the token's issuer, audience, signature and lifetime, and the clocks"

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        if not _TOKEN.fullmatch(token):
            raise refused("the OAuth token is empty or has characters that a bearer token must not have")
        for name, value in extensions.items():
            if not _NAME.fullmatch(name) or name == "auth" or not _VALUE.fullmatch(value):
                raise ConfigError(f'the SASL extension "{name}" cannot be sent: its name must be letters, and not '
                                  '"auth"; its value printable ASCII')
        parts = [f"auth=Bearer {token}", *(f"{name}={value}" for name, value in extensions.items())]
        self._token = ("n,,\x01" + "\x01".join(parts) + "\x01\x01").encode()
        self._complaint = ""
        self.done = False

    def first(self) -> bytes:
        """The token."""
        return self._token

    def step(self, challenge: bytes) -> bytes | None:
        """Empty: the token is taken. Else the broker's complaint, which must be answered before it refuses."""
        if self._complaint:
            raise refused(f"SASL {self.name} authentication failed: {self._complaint}: {self.remedy}")
        if challenge:
            self._complaint = _complaint(challenge)
            return _GIVE_IN
        self.done = True
        return None


def _complaint(challenge: bytes) -> str:
    """The broker's JSON in words: status, and the scope that is needed."""
    try:
        complaint = json.loads(challenge)
        shown = " ".join(f"{name} {complaint[name]}" for name in ("status", "scope") if complaint.get(name))
    except (ValueError, AttributeError, RecursionError):
        shown = ""
    return one_line(shown) or "that the token is not valid"
