"""TODO"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Bytes, Int16, Int32, Int64, Request, Response, String, Struct, field

__all__ = [
    "ApiVersion", "ApiVersionsRequest", "ApiVersionsResponse", "FinalizedFeatureKey", "SaslAuthenticateRequest",
    "SaslAuthenticateResponse", "SaslHandshakeRequest", "SaslHandshakeResponse", "SupportedFeatureKey",
]


class ApiVersionsRequest(Request, key=18, versions="0-5", flexible="3+"):
    """TODO ApiVersionsRequest"""

    client_software_name: String = field("3+", ignorable=True)
    client_software_version: String = field("3+", ignorable=True)
    cluster_id: String | None = field("5+", default=None, ignorable=True)
    node_id: Int32 = field("5+", default=-1, ignorable=True)


class ApiVersion(Struct):
    """TODO ApiVersion"""

    api_key: Int16 = field()
    min_version: Int16 = field()
    max_version: Int16 = field()


class SupportedFeatureKey(Struct):
    """TODO SupportedFeatureKey"""

    name: String = field("3+")
    min_version: Int16 = field("3+")
    max_version: Int16 = field("3+")


class FinalizedFeatureKey(Struct):
    """TODO FinalizedFeatureKey"""

    name: String = field("3+")
    max_version_level: Int16 = field("3+")
    min_version_level: Int16 = field("3+")


class ApiVersionsResponse(Response, to=ApiVersionsRequest):
    """TODO ApiVersionsResponse"""

    error_code: Int16 = field()
    api_keys: Array[ApiVersion] = field()
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    supported_features: Array[SupportedFeatureKey] = field("3+", tag=0, ignorable=True)
    finalized_features_epoch: Int64 = field("3+", default=-1, tag=1, ignorable=True)
    finalized_features: Array[FinalizedFeatureKey] = field("3+", tag=2, ignorable=True)
    zk_migration_ready: Bool = field("3+", tag=3, ignorable=True)


class SaslHandshakeRequest(Request, key=17, versions="0-1"):
    """TODO SaslHandshakeRequest"""

    mechanism: String = field()


class SaslHandshakeResponse(Response, to=SaslHandshakeRequest):
    """TODO SaslHandshakeResponse"""

    error_code: Int16 = field()
    mechanisms: Array[String] = field()


class SaslAuthenticateRequest(Request, key=36, versions="0-2", flexible="2+"):
    """TODO SaslAuthenticateRequest"""

    auth_bytes: Bytes = field()


class SaslAuthenticateResponse(Response, to=SaslAuthenticateRequest):
    """TODO SaslAuthenticateResponse"""

    error_code: Int16 = field()
    error_message: String | None = field()
    auth_bytes: Bytes = field()
    session_lifetime_ms: Int64 = field("1+", ignorable=True)
