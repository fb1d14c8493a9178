"""What a connection says before anything else: which versions the broker knows, and who the client is.

Read next: `machines.cluster.handshake`, which speaks these.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Bytes, Int16, Int32, Int64, Request, Response, String, Struct, field

__all__ = [
    "ApiVersion", "ApiVersionsRequest", "ApiVersionsResponse", "FinalizedFeatureKey", "SaslAuthenticateRequest",
    "SaslAuthenticateResponse", "SaslHandshakeRequest", "SaslHandshakeResponse", "SupportedFeatureKey",
]


class ApiVersionsRequest(Request, key=18, versions="0-5", flexible="3+"):
    """Ask which APIs and versions the broker knows (KIP-35).

    v3: the client names itself (KIP-511). v5: cluster and node are checked (KIP-1242).
    """

    client_software_name: String = field("3+", ignorable=True)
    """Name of the client: letters, digits, dots and dashes only."""
    client_software_version: String = field("3+", ignorable=True)
    """Version of the client: letters, digits, dots and dashes only."""
    cluster_id: String | None = field("5+", default=None, ignorable=True)
    """Id of the cluster that the client means to reach; null when not known."""
    node_id: Int32 = field("5+", default=-1, ignorable=True)
    """Node id of the broker that the client means to reach; -1 when not known."""


class ApiVersion(Struct):
    """One API and the versions of it that the broker takes."""

    api_key: Int16 = field()
    """Number of the API."""
    min_version: Int16 = field()
    """Lowest version."""
    max_version: Int16 = field()
    """Highest version."""


class SupportedFeatureKey(Struct):
    """A feature and the levels of it that the broker can run at (KIP-584)."""

    name: String = field("3+")
    """Name of the feature."""
    min_version: Int16 = field("3+")
    """Lowest version."""
    max_version: Int16 = field("3+")
    """Highest version."""


class FinalizedFeatureKey(Struct):
    """A feature and the level of it that the whole cluster has agreed on (KIP-584)."""

    name: String = field("3+")
    """Name of the feature."""
    max_version_level: Int16 = field("3+")
    """Highest agreed level."""
    min_version_level: Int16 = field("3+")
    """Lowest agreed level."""


class ApiVersionsResponse(Response, to=ApiVersionsRequest):
    """The APIs of the broker. Always has header version 0; in version 0 when the request's version is not known."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    api_keys: Array[ApiVersion] = field()
    """Every API that the broker takes."""
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    supported_features: Array[SupportedFeatureKey] = field("3+", tag=0, ignorable=True)
    """Features and levels that the broker could run at."""
    finalized_features_epoch: Int64 = field("3+", default=-1, tag=1, ignorable=True)
    """Grows with every change of the finalized features; -1 when not known."""
    finalized_features: Array[FinalizedFeatureKey] = field("3+", tag=2, ignorable=True)
    """What the cluster has agreed on; valid when `finalized_features_epoch` is 0 or more."""
    zk_migration_ready: Bool = field("3+", tag=3, ignorable=True)
    """A controller is ready to leave ZooKeeper (KIP-866)."""


class SaslHandshakeRequest(Request, key=17, versions="0-1"):
    """Choose a SASL mechanism (KIP-43). v1: the exchange goes on in SaslAuthenticate (KIP-152)."""

    mechanism: String = field()
    """Name of the mechanism, for example PLAIN or SCRAM-SHA-256."""


class SaslHandshakeResponse(Response, to=SaslHandshakeRequest):
    """Whether the mechanism is accepted."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    mechanisms: Array[String] = field()
    """Names of the mechanisms that the broker offers."""


class SaslAuthenticateRequest(Request, key=36, versions="0-2", flexible="2+"):
    """One step of the SASL exchange, from the client (KIP-152)."""

    auth_bytes: Bytes = field()
    """Token of the mechanism."""


class SaslAuthenticateResponse(Response, to=SaslAuthenticateRequest):
    """One step of the SASL exchange, from the broker. v1: how long the session lives (KIP-368)."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    auth_bytes: Bytes = field()
    """Token of the mechanism."""
    session_lifetime_ms: Int64 = field("1+", ignorable=True)
    """Milliseconds after which the client must have authenticated again; 0 for never."""
