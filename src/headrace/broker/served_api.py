"""A row of the table of what is served: each file of requests here ends with its rows, in `SERVES`.

Read next: `broker.dispatch`, which puts the rows together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.broker.cluster import ApiCall
from headrace.broker.purgatory import DelayedReply
from headrace.wire.schema import Request, Response

__all__ = ["Handler", "ServedApi"]

Handler = Callable[[ApiCall, Any], Response | DelayedReply | None]
"""Answers with a response, with one that is delayed where it must wait, or with None where there is none."""


class ServedApi(NamedTuple):
    """A type of request, who carries it out, and what is not done, or done otherwise than by Kafka."""

    request: type[Request]
    handler: Handler
    limits: str = ""
