"""What a connection says before anything else: which versions the broker knows, and who the client is.

Read next: `machines.handshake`, which speaks these.
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

    client_software_name: String = field("3+", ignorable=True)  # letters, digits, dots and dashes only
    client_software_version: String = field("3+", ignorable=True)  # letters, digits, dots and dashes only
    cluster_id: String | None = field("5+", default=None, ignorable=True)  # null when it is not known
    # node that the client means to reach, -1 when not known
    node_id: Int32 = field("5+", default=-1, ignorable=True)


class ApiVersion(Struct):
    """One API and the versions of it that the broker takes."""

    api_key: Int16 = field()  # number of the API
    min_version: Int16 = field()  # lowest version
    max_version: Int16 = field()  # highest version


class SupportedFeatureKey(Struct):
    """A feature and the levels of it that the broker can run at (KIP-584)."""

    name: String = field("3+")  # name of the feature
    min_version: Int16 = field("3+")  # lowest version
    max_version: Int16 = field("3+")  # highest version


class FinalizedFeatureKey(Struct):
    """A feature and the level of it that the whole cluster has agreed on (KIP-584)."""

    name: String = field("3+")  # name of the feature
    max_version_level: Int16 = field("3+")  # highest agreed level
    min_version_level: Int16 = field("3+")  # lowest agreed level


class ApiVersionsResponse(Response, to=ApiVersionsRequest):
    """The APIs of the broker. Always has header version 0; in version 0 when the request's version is not known."""

    error_code: Int16 = field()  # 0 when all went well
    api_keys: Array[ApiVersion] = field()  # every API that the broker takes
    # how long a quota held the answer back, or asks to wait
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    # what the broker could run at
    supported_features: Array[SupportedFeatureKey] = field("3+", tag=0, ignorable=True)
    # grows with every change; -1 unknown
    finalized_features_epoch: Int64 = field("3+", default=-1, tag=1, ignorable=True)
    # valid when `finalized_features_epoch` is 0 or more
    finalized_features: Array[FinalizedFeatureKey] = field("3+", tag=2, ignorable=True)
    zk_migration_ready: Bool = field("3+", tag=3, ignorable=True)  # only for controllers that leave ZooKeeper


class SaslHandshakeRequest(Request, key=17, versions="0-1"):
    """Choose a SASL mechanism (KIP-43). v1: the exchange goes on in SaslAuthenticate (KIP-152)."""

    mechanism: String = field()  # for example PLAIN or SCRAM-SHA-256


class SaslHandshakeResponse(Response, to=SaslHandshakeRequest):
    """Whether the mechanism is accepted."""

    error_code: Int16 = field()  # 0 when all went well
    mechanisms: Array[String] = field()  # what the broker offers


class SaslAuthenticateRequest(Request, key=36, versions="0-2", flexible="2+"):
    """One step of the SASL exchange, from the client (KIP-152)."""

    auth_bytes: Bytes = field()  # token of the mechanism


class SaslAuthenticateResponse(Response, to=SaslAuthenticateRequest):
    """One step of the SASL exchange, from the broker. v1: how long the session lives (KIP-368)."""

    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none
    auth_bytes: Bytes = field()  # token of the mechanism
    # authenticate again before this time is over; 0 for never
    session_lifetime_ms: Int64 = field("1+", ignorable=True)
