"""Errors of the REST API: status, error code and message, as Confluent documents them."""

from __future__ import annotations

from http import HTTPStatus

__all__ = ["RestError", "invalid_schema", "not_permitted", "subject_not_found", "version_not_found"]


class RestError(Exception):
    """A request that fails.

    Attributes:
        code: Confluent's error code: the HTTP status and two digits more, or the status alone.
        message: one line.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code if self.code < 1000 else self.code // 100


def subject_not_found(subject: str) -> RestError:
    """40401."""
    return RestError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RestError:
    """40402."""
    return RestError(40402, f"Version {version} not found.")


def invalid_schema(reason: str) -> RestError:
    """42201."""
    return RestError(42201, f"Invalid schema: {reason}")


def not_permitted(reason: str) -> RestError:
    """42205."""
    return RestError(42205, reason)


def no_such_path() -> RestError:
    """404, as any web server says it."""
    return RestError(HTTPStatus.NOT_FOUND, "HTTP 404 Not Found")
