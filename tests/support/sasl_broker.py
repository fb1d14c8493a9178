"""A broker that wants SASL and takes every token, in memory, and clients of it."""

from typing import Any

from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.cluster.session import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.support.scripted_broker import ScriptedBroker, admin_config

PLAIN = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "u",
         "sasl.password": "hunter2"}
OAUTH = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}


class SaslBroker(ScriptedBroker):
    """Takes every token, and notes it."""

    def __init__(self, lifetime_ms: int = 0, **brokers: tuple[str, int]) -> None:
        super().__init__(**(brokers or {"node1": ("broker", 9092)}))
        self.tokens: list[bytes] = []
        self.lifetime_ms = lifetime_ms
        self.on(SaslHandshakeRequest, SaslHandshakeResponse(mechanisms=["PLAIN", "OAUTHBEARER"]))
        self.on(SaslAuthenticateRequest, self.authenticate)

    def authenticate(self, frame: RequestFrame) -> SaslAuthenticateResponse:
        assert isinstance(frame.request, SaslAuthenticateRequest)
        self.tokens.append(bytes(frame.request.auth_bytes))
        return SaslAuthenticateResponse(error_message=None, auth_bytes=b"", session_lifetime_ms=self.lifetime_ms)

    def refuse(self, times: int = 1_000_000) -> None:
        left = [times]

        def script(frame: RequestFrame) -> SaslAuthenticateResponse:
            left[0] -= 1
            if left[0] < 0:
                return self.authenticate(frame)
            return SaslAuthenticateResponse(error_code=58, error_message="no such user", auth_bytes=b"")

        self.on(SaslAuthenticateRequest, script)


def client(broker: ScriptedBroker, properties: dict[str, Any], **more: Any) -> ClientCore:
    core = ClientCore(Config(ADMIN, {**admin_config(9092, "broker"), "reconnect.backoff.ms": 5, **properties, **more}),
                      connector=broker.connector)
    core.on_error = lambda error: None
    return core


async def known(core: ClientCore) -> None:
    await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
