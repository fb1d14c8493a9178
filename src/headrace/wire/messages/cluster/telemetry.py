"""Metrics that the cluster asks its clients for (KIP-714).

Read next: `wire.messages.cluster.session`.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Bytes, Int8, Int16, Int32, Request, Response, String, Uuid, field

__all__ = [
    "GetTelemetrySubscriptionsRequest", "GetTelemetrySubscriptionsResponse", "PushTelemetryRequest",
    "PushTelemetryResponse",
]


class GetTelemetrySubscriptionsRequest(Request, key=71, versions="0", flexible="0+"):
    """Ask which metrics the cluster wants."""

    client_instance_id: Uuid = field()
    """Id of this client; zero asks for one."""


class GetTelemetrySubscriptionsResponse(Response, to=GetTelemetrySubscriptionsRequest):
    """Which metrics the cluster wants, how often and in what form."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    client_instance_id: Uuid = field()
    """The id that was given; zero when the client had one."""
    subscription_id: Int32 = field()
    """Number of the subscription; another one when the wanted metrics change."""
    accepted_compression_types: Array[Int8] = field()
    """Codecs that the broker takes, the best first, numbered as in `PushTelemetryRequest.compression_type`."""
    push_interval_ms: Int32 = field()
    """Milliseconds between two pushes."""
    telemetry_max_bytes: Int32 = field()
    """Most bytes of one push."""
    delta_temporality: Bool = field()
    """Counters are differences from the last push, not totals."""
    requested_metrics: Array[String] = field()
    """Prefixes of metric names; none wanted when empty, all with one empty prefix."""


class PushTelemetryRequest(Request, key=72, versions="0", flexible="0+"):
    """Hand metrics in."""

    client_instance_id: Uuid = field()
    """Id of this client."""
    subscription_id: Int32 = field()
    """Number of the subscription that the metrics follow."""
    terminating: Bool = field()
    """The client is closing."""
    compression_type: Int8 = field()
    """Codec of the metrics: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
    metrics: Bytes = field()
    """OpenTelemetry MetricsData, protobuf."""


class PushTelemetryResponse(Response, to=PushTelemetryRequest):
    """Whether the metrics were taken."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
