"""The table of what is served: request type to handler, and the versions of each. Its rows stand in `broker.apis`.

All versions from 0 on are served, those too that Kafka 4 took away (KIP-896): message sets of old producers become
record batches, and old consumers get message sets. Settings can narrow this down to what an older broker offered.
SASL is not listed, so clients know before they try.

Read next: any module of `broker.apis`; `broker.profiles` for the versions of Kafka's releases.
"""

from __future__ import annotations

from headrace.broker.apis import (
    configs,
    consumer_groups,
    fetch,
    groups,
    list_offsets,
    metadata,
    nodes,
    produce,
    session,
    share_groups,
    share_offsets,
    share_records,
    topics,
    transactions,
    users,
)
from headrace.broker.cluster import ApiCall
from headrace.broker.purgatory import DelayedReply
from headrace.broker.served_api import Handler
from headrace.broker.settings import BrokerSettings
from headrace.wire.schema import Request, Response

__all__ = ["GENERAL_LIMITS", "LIMITS", "SERVED", "SERVICES", "handle", "served_by"]

_FAMILIES = (session, metadata, produce, transactions, fetch, list_offsets, groups, consumer_groups, share_groups,
             share_records, share_offsets, topics, configs, nodes, users)
_ROWS = [row for family in _FAMILIES for row in family.SERVES]

SERVICES: dict[type[Request], Handler] = {row.request: row.handler for row in _ROWS}
"""The handler of each type of request."""

GENERAL_LIMITS = (
    "There is one copy of the data, whatever the replication factor: all replicas of a partition are in one process, "
    "share one log and are always in sync. `acks=1` and `acks=all` are the same.",
    "There is no authentication, no TLS, no access rules; throttle times are 0.",
    "Settings of topics other than `max.message.bytes`, `message.timestamp.type`, `min.insync.replicas`, "
    "`cleanup.policy` (for DeleteRecords and records without a key) and `compression.type` (only whether it is `zstd`) "
    "are checked, kept and shown, but nothing follows from them: nothing is compacted, and nothing is deleted because "
    "of its age or size.",
    "Streams groups, SASL, delegation tokens, changes of features and telemetry are not offered.",
    "Record batches of format 2 are checked by header and checksum and stored as they are; their records are not "
    "looked into, but for the keys in compacted topics. Message sets of formats 0 and 1 are read whole. What is "
    "converted from one to the other may have 64 MiB uncompressed.",
    "Error messages are in this broker's own words, and there may be one where Kafka has none.",
)
"""What this broker does not do, or does otherwise than Kafka, whatever the request."""

LIMITS: dict[type[Request], str] = {row.request: row.limits for row in _ROWS if row.limits}
"""What this broker does not do, or does otherwise than Kafka, by request."""

SERVED: dict[int, tuple[int, int]] = {
    request.api_key: (request.min_version, request.max_version) for request in SERVICES
}
"""Lowest and highest version served, by key."""


def handle(call: ApiCall, request: Request) -> Response | DelayedReply | None:
    """Carry a request out.

    Returns:
        The reply; None where there is none; or what it waits for: the server puts that into the
        purgatory, and looks again when it is due.

    Raises:
        ApiError: no reply can say what went wrong: the connection must be closed.
    """
    with call.cluster.catalog.saved_once():
        return SERVICES[type(request)](call, request)


def served_by(settings: BrokerSettings) -> dict[int, tuple[int, int]]:
    """Lowest and highest version that a broker of these settings offers, by key.

    Raises:
        ValueError: the settings name an API or versions that are not served.
    """
    named = {request.__name__.removesuffix("Request"): request.api_key for request in SERVICES}
    served = dict(SERVED)
    for name, wanted in (settings.api_versions or {}).items():
        if name not in named:
            raise ValueError(f"api_versions names {name!r}, which is not served; there are {', '.join(sorted(named))}")
        key = named[name]
        if wanted is None:
            del served[key]
            continue
        low, high = SERVED[key]
        if not low <= wanted[0] <= wanted[1] <= high:
            raise ValueError(f"api_versions asks for {name} {wanted[0]} to {wanted[1]}; {low} to {high} are served")
        served[key] = wanted
    return served
