"""A request that is written and read in each version: what the newest one carries."""

from typing import Any

from headrace.wire.codec import decode, encode
from headrace.wire.schema import Request


def travels(request: Request, first: int, last: int) -> Any:
    """Write and read the request in each version; the newest is returned."""
    for version in range(first, last + 1):
        travelled = decode(type(request), encode(request, version), version)
    return travelled
