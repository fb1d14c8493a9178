"""PLAIN: the user's name and password, as they are. Only for connections with TLS. Source: RFC 4616."""

from __future__ import annotations

__all__ = ["Plain"]


class Plain:
    """One authentication with name and password.

    Args:
        username, password: the credentials; neither may contain a NUL.
    """

    name = "PLAIN"
    slow = False
    remedy = 'check "sasl.username" and "sasl.password"'

    def __init__(self, username: str, password: str) -> None:
        self._token = f"\0{username}\0{password}".encode()
        self.done = False

    def first(self) -> bytes:
        """The only token: name and password."""
        return self._token

    def step(self, challenge: bytes) -> None:
        """The broker agrees."""
        self.done = True
