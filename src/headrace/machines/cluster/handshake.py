"""What a new connection sends first: ApiVersions, then SASL if it is wanted, before any other request may be sent.

The broker's answer gives the version range of every API. A broker that does not know our version of ApiVersions answers
in version 0 and is asked again; one whose answer cannot be read at all is dialled again and, for that connection,
asked in version 0 (librdkafka's mock broker is an example). Source: KIP-35, KIP-511 (Java:
`NetworkClient.handleApiVersionsResponse`).

This module knows no sockets. Read next: `machines.cluster.sasl.exchange` for SASL, `net.connection` for the caller.
"""

from __future__ import annotations

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.machines.cluster.sasl.exchange import OPENING_ID, Later, Mechanism, SaslExchange, Say
from headrace.wire.frame import decode_response, encode_request, expect_answer
from headrace.wire.messages.cluster.session import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.schema import Request

__all__ = ["FIRST_VERSION", "Handshake", "HandshakeRestartError", "Say", "opening_frame"]

FIRST_VERSION = 4
"""The version asked first. 4 shows features whose lowest level is 0; what 5 adds (KIP-1242) is not used."""
_NAME = "headrace"
_LENGTH_BYTES = 4


class HandshakeRestartError(ProtocolError):
    """The answer cannot be read: dial again and begin with version 0."""


class Handshake:
    """The opening of one connection. Ask `begin()`, then hand each frame to `on_frame()` until `ready`.

    Args:
        software_version: version of this client, for the broker's metrics.
        first_version: version of ApiVersions to begin with; 0 after a `HandshakeRestartError`.
        mechanism: how to authenticate; None when SASL is not wanted.

    Attributes:
        ready: other requests may be sent.
        ranges: lowest and highest version of each API key that the broker knows.
        features: finalized level of each cluster feature, for example ``transaction.version``.
        renewal: it is not the connection's first session.
    """

    def __init__(
        self, software_version: str, first_version: int = FIRST_VERSION, mechanism: Mechanism | None = None
    ) -> None:
        self._software_version = software_version
        self.version = first_version
        self.ready = self.renewal = False
        self.ranges: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self._mechanism = mechanism
        self._sasl: SaslExchange | None = None

    @property
    def authenticating(self) -> bool:
        """SASL has begun and has not ended."""
        return self._sasl is not None and not self.ready

    @property
    def session_s(self) -> float:
        """Seconds after which the broker requires re-authentication (KIP-368); 0 for never."""
        return self._sasl.session_s if self._sasl is not None else 0.0

    def renewed(self, mechanism: Mechanism) -> Handshake:
        """The opening of the next session on the same connection: SASL alone."""
        following = Handshake(self._software_version, self.version, mechanism)
        following.ranges, following.features = self.ranges, self.features
        following._sasl = SaslExchange(mechanism, self.ranges)
        following.renewal = True
        return following

    def begin(self) -> Say:
        """The first request and the version to write it in."""
        return self._request() if self._sasl is None else self._sasl.begin()

    def on_frame(self, frame: bytes | bytearray | memoryview) -> Say | Later | None:
        """Take the frame that answers the last request.

        Returns:
            The next request and its version (or a bare token), or None when the connection is ready. Or a slow function
            that gives one of these, to be called off the event loop; the result goes to `settle()`.

        Raises:
            HandshakeRestartError: the answer cannot be read; version 0 may do better.
            KafkaException: the broker refuses the connection.
        """
        following = self._on_versions(frame) if self._sasl is None else self._sasl.on_frame(frame)
        if following is None:
            self.ready = True
        return following

    def settle(self, following: Say | None) -> Say | None:
        """Take what a slow function gave."""
        self.ready = following is None
        return following

    def _on_versions(self, frame: bytes | bytearray | memoryview) -> Say | None:
        expect_answer(frame, ApiVersionsRequest, OPENING_ID)
        refused = _error_code(frame) == KafkaError.UNSUPPORTED_VERSION
        version = 0 if refused else self.version  # a refusal is always written in version 0
        try:
            reply = decode_response(ApiVersionsRequest, version, frame)[1]
        except ProtocolError as error:
            raise HandshakeRestartError(str(error)) if self.version > 0 else error from None
        assert isinstance(reply, ApiVersionsResponse)
        if refused and self.version > 0:
            highest = next((a.max_version for a in reply.api_keys if a.api_key == ApiVersionsRequest.api_key), 0)
            self.version = max(0, min(highest, self.version - 1))
            return self._request()
        if reply.error_code:
            raise KafkaException(KafkaError(reply.error_code))
        self.ranges = {api.api_key: (api.min_version, api.max_version) for api in reply.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in reply.finalized_features}
        if self._mechanism is None:
            return None
        self._sasl = SaslExchange(self._mechanism, self.ranges)
        return self._sasl.begin()

    def _request(self) -> tuple[Request, int]:
        request = ApiVersionsRequest(client_software_name=_NAME, client_software_version=self._software_version)
        return request, self.version


def opening_frame(say: Say, client_id: str) -> list[bytes | memoryview]:
    """A message of the handshake as it goes on the wire: a request, or a bare token behind its length."""
    request, version = say
    if isinstance(request, bytes):
        return [len(request).to_bytes(_LENGTH_BYTES, "big") + request]
    return encode_request(request, version, OPENING_ID, client_id)


def _error_code(frame: bytes | bytearray | memoryview) -> int:
    """The error code stands right behind the correlation id, in every version."""
    return int.from_bytes(frame[4:6], "big", signed=True)
