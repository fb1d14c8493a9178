"""How a connection begins: which versions the broker speaks, and who the client is."""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Bytes,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    String,
    Struct,
    field,
)

__all__ = [
    "ApiVersion",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "FinalizedFeatureKey",
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
    "SupportedFeatureKey",
]


class ApiVersionsRequest(Request, key=18, versions="0-5", flexible="3+"):
    """Ask which versions of each API the broker serves (KIP-35); v3 names the client (KIP-511), v5 the cluster and
    node (KIP-1242).
    """

    client_software_name: String = field("3+", ignorable=True)
    client_software_version: String = field("3+", ignorable=True)
    cluster_id: String | None = field("5+", default=None, nullable="5+", ignorable=True)
    node_id: Int32 = field("5+", default=-1, ignorable=True)


class ApiVersion(Struct):
    """One entry: api version."""

    api_key: Int16 = field()
    min_version: Int16 = field()
    max_version: Int16 = field()


class SupportedFeatureKey(Struct):
    """One entry: supported feature key."""

    name: String = field("3+")
    min_version: Int16 = field("3+")
    max_version: Int16 = field("3+")


class FinalizedFeatureKey(Struct):
    """One entry: finalized feature key."""

    name: String = field("3+")
    max_version_level: Int16 = field("3+")
    min_version_level: Int16 = field("3+")


class ApiVersionsResponse(Response, key=18, versions="0-5", flexible="3+"):
    """Answer to `ApiVersionsRequest`."""

    error_code: Int16 = field()
    api_keys: Array[ApiVersion] = field()
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    supported_features: Array[SupportedFeatureKey] = field("3+", tag=0, tagged="3+", ignorable=True)
    finalized_features_epoch: Int64 = field("3+", default=-1, tag=1, tagged="3+", ignorable=True)
    finalized_features: Array[FinalizedFeatureKey] = field("3+", tag=2, tagged="3+", ignorable=True)
    zk_migration_ready: Bool = field("3+", tag=3, tagged="3+", ignorable=True)


ApiVersionsRequest.response_type = ApiVersionsResponse


class SaslHandshakeRequest(Request, key=17, versions="0-1"):
    """Choose the SASL mechanism."""

    mechanism: String = field()


class SaslHandshakeResponse(Response, key=17, versions="0-1"):
    """Answer to `SaslHandshakeRequest`."""

    error_code: Int16 = field()
    mechanisms: Array[String] = field()


SaslHandshakeRequest.response_type = SaslHandshakeResponse


class SaslAuthenticateRequest(Request, key=36, versions="0-2", flexible="2+"):
    """One step of SASL authentication; v1 tells the session's lifetime (KIP-368)."""

    auth_bytes: Bytes = field()


class SaslAuthenticateResponse(Response, key=36, versions="0-2", flexible="2+"):
    """Answer to `SaslAuthenticateRequest`."""

    error_code: Int16 = field()
    error_message: String | None = field(nullable="0+")
    auth_bytes: Bytes = field()
    session_lifetime_ms: Int64 = field("1+", default=0, ignorable=True)


SaslAuthenticateRequest.response_type = SaslAuthenticateResponse
