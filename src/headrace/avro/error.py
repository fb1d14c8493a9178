"""What calls of `CachedSchemaRegistryClient` raise."""

from __future__ import annotations

__all__ = ["ClientError"]


class ClientError(Exception):
    """The registry refused, or a schema cannot be read.

    Args:
        message: what happened.
        http_code: the registry's status, where there is one.
    """

    def __init__(self, message: str, http_code: int | None = None) -> None:
        self.message = message
        self.http_code = http_code
        super().__init__(message)

    def __repr__(self) -> str:
        return f"ClientError(error={self.message})"

    def __str__(self) -> str:
        return self.message
