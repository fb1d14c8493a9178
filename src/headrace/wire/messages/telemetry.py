"""Metrics that the cluster asks its clients for (KIP-714).

Read next: `wire.messages.session`.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Bytes, Int8, Int16, Int32, Request, Response, String, Uuid, field

__all__ = [
    "GetTelemetrySubscriptionsRequest", "GetTelemetrySubscriptionsResponse", "PushTelemetryRequest",
    "PushTelemetryResponse",
]


class GetTelemetrySubscriptionsRequest(Request, key=71, versions="0", flexible="0+"):
    """Ask which metrics the cluster wants."""

    client_instance_id: Uuid = field()  # id of this client; zero asks for one


class GetTelemetrySubscriptionsResponse(Response, to=GetTelemetrySubscriptionsRequest):
    """Which metrics the cluster wants, how often and in what form."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    client_instance_id: Uuid = field()  # the id that was given, zero when the client had one
    subscription_id: Int32 = field()  # changes when the wanted metrics change
    accepted_compression_types: Array[Int8] = field()  # codecs that the broker takes, the best first
    push_interval_ms: Int32 = field()  # push this often
    telemetry_max_bytes: Int32 = field()  # most bytes of one push
    delta_temporality: Bool = field()  # counters as differences, not totals
    # prefixes of metric names; none wanted when empty, all with one empty prefix
    requested_metrics: Array[String] = field()


class PushTelemetryRequest(Request, key=72, versions="0", flexible="0+"):
    """Hand metrics in."""

    client_instance_id: Uuid = field()  # id of this client; zero asks for one
    subscription_id: Int32 = field()  # changes when the wanted metrics change
    terminating: Bool = field()  # the client is closing
    compression_type: Int8 = field()  # codec of the metrics
    metrics: Bytes = field()  # OpenTelemetry MetricsData, protobuf


class PushTelemetryResponse(Response, to=PushTelemetryRequest):
    """Whether the metrics were taken."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
