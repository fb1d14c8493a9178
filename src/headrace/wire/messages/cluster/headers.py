"""What stands before every request and every response, as typed messages.

`wire.frame` writes and steps over the same bytes in place, which costs less; a test holds the two together.
Read next: `wire.frame`.
"""

from __future__ import annotations

from headrace.wire.schema import ApiMessage, Int16, Int32, ShortString, field

__all__ = ["RequestHeader", "ResponseHeader"]


class RequestHeader(ApiMessage, versions="0-2", flexible="2+"):
    """Stands before a request.

    Version 2 before a flexible request, else 1. Version 0 only before ControlledShutdown version 0, which Kafka 4.0
    removed.
    """

    request_api_key: Int16 = field()
    """Number of the API."""
    request_api_version: Int16 = field()
    """Version of the request."""
    correlation_id: Int32 = field()
    """Number that the response will carry."""
    client_id: ShortString | None = field("1+")
    """Name of the client for the broker's logs and quotas; null when it has none. Never compact."""


class ResponseHeader(ApiMessage, versions="0-1", flexible="1+"):
    """Stands before a response. Version 1 before a flexible response, but always 0 before ApiVersions (KIP-511)."""

    correlation_id: Int32 = field()
    """Number of the request that is answered."""
