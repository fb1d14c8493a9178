"""What `AvroProducer` and `AvroConsumer` raise for values."""

from __future__ import annotations

__all__ = ["KeySerializerError", "SerializerError", "ValueSerializerError"]


class SerializerError(Exception):
    """A value cannot be written or read.

    Args:
        message: what happened.
    """

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(error={self.message})"

    def __str__(self) -> str:
        return self.message


class KeySerializerError(SerializerError):
    """A key cannot be written."""


class ValueSerializerError(SerializerError):
    """A value cannot be written."""
