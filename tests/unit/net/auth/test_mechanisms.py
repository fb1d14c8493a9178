"""Where authentication comes from: the mechanism that the properties ask for."""

import asyncio
import json
import sys
import threading
from typing import Any

import pytest

from headrace.config import ADMIN, Config
from headrace.errors import ConfigError, DependencyError, KafkaError, KafkaException
from headrace.machines.cluster.sasl.exchange import Mechanism
from headrace.net.auth.mechanisms import MechanismSource, mechanism_source
from headrace.net.auth.tokens import unsecured_token
from headrace.types.records import NodeAddress
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.cluster.session import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse
from tests.support.sasl_broker import OAUTH, SaslBroker, client, known

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_oauth_cb_is_called_off_the_loop_or_awaited(asynchronous: bool) -> None:
    called: list[tuple[str, threading.Thread]] = []

    def plain(config: str) -> tuple[Any, ...]:
        called.append((config, threading.current_thread()))
        token = unsecured_token("principal=a", {}, 2e9)
        return token.value, token.expires_at, "a", {"traceId": "7"}

    async def coroutine(config: str) -> tuple[Any, ...]:
        await asyncio.sleep(0)
        return plain(config)

    async def run() -> None:
        broker = SaslBroker()
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker, OAUTH, **{"oauth_cb": coroutine if asynchronous else plain,
                                        "sasl.oauthbearer.config": "x=1"})
        await known(core)
        assert broker.tokens[0].endswith(b".\x01traceId=7\x01\x01")
        await core.driver.request(1, HEARTBEAT, 5)
        [(config, thread)] = called  # one token for all connections
        assert config == "x=1"
        assert (thread is threading.current_thread()) is asynchronous
        await core.close()

    asyncio.run(run())


def test_a_callback_that_raises_is_an_authentication_error_with_its_reason() -> None:
    def broken(config: str) -> Any:
        raise OSError("the provider is closed on sundays")

    async def run() -> None:
        core = client(SaslBroker(), OAUTH, oauth_cb=broken)
        with pytest.raises(KafkaException, match="oauth_cb raised OSError: the provider is closed") as failed:
            await asyncio.wait_for(core.list_topics(None, 30), 2)
        assert failed.value.error == KafkaError._AUTHENTICATION
        await core.close()

    asyncio.run(run())


NODE = NodeAddress(1, "broker", 9092)
PASSWORD = {"sasl.username": "u", "sasl.password": "hunter2"}


def source(clock: float = 0.0, **properties: Any) -> MechanismSource | None:
    given = {"bootstrap.servers": "b:1", "security.protocol": "sasl_ssl", **properties}
    return mechanism_source(Config(ADMIN, given), lambda: clock, lambda: 0.5)


def made(**properties: Any) -> list[Mechanism]:
    """What two connections get."""
    async def run() -> list[Mechanism]:
        give = source(**properties)
        assert give is not None
        return [await give(NODE), await give(NODE)]

    return asyncio.run(run())


@pytest.mark.parametrize("protocol", ["plaintext", "ssl"])
def test_without_sasl_there_is_none(protocol: str) -> None:
    assert source(**{"security.protocol": protocol}) is None


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_each_connection_gets_the_mechanism_that_is_asked_for_anew(name: str) -> None:
    first, second = made(**PASSWORD, **{"sasl.mechanism": name})
    assert (first.name, second.name, first is second) == (name, name, False)


def test_plain_says_the_name_and_the_password_of_the_properties() -> None:
    assert made(**PASSWORD, **{"sasl.mechanism": "PLAIN"})[0].first() == b"\0u\0hunter2"


@pytest.mark.parametrize("delegated", [False, True])
def test_a_nonce_of_scram_is_long_and_never_the_same_and_a_delegation_token_announced(delegated: bool) -> None:
    said = [mechanism.first().decode() for _ in range(5) for mechanism in made(
        **PASSWORD, **{"sasl.mechanism": "SCRAM-SHA-256", "sasl.scram.tokenauth": delegated})]
    nonces = {text.removeprefix("n,,n=u,r=").removesuffix(",tokenauth=true") for text in said}
    assert len(nonces) == 10
    assert all(len(nonce) >= 24 and "," not in nonce for nonce in nonces)
    assert all(text.endswith(",tokenauth=true") is delegated for text in said)


def test_one_token_without_signature_serves_all_connections_while_it_lives() -> None:
    first, second = made(**{
        "sasl.mechanism": "OAUTHBEARER", "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": "principal=a", "sasl.oauthbearer.extensions": "traceId=7"})
    assert first.first() == second.first()
    assert first.first().endswith(b"\x01traceId=7\x01\x01")
    assert first is not second


def test_amazons_brokers_are_shown_a_signature_that_was_made_for_each_connection(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")

    async def run() -> None:
        broker = SaslBroker()
        answer = SaslAuthenticateResponse(error_message=None, auth_bytes=b'{"version":"2020_10_22","request-id":"7"}')

        def takes(frame: RequestFrame) -> SaslAuthenticateResponse:
            broker.authenticate(frame)
            return answer

        broker.on(SaslHandshakeRequest, SaslHandshakeResponse(mechanisms=["AWS_MSK_IAM"]))
        broker.on(SaslAuthenticateRequest, takes)
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker, {"security.protocol": "sasl_plaintext", "sasl.mechanism": "AWS_MSK_IAM",
                               "sasl.aws.region": "eu-central-1", "client.id": "c"})
        await known(core)
        await core.driver.request(1, HEARTBEAT, 5)
        await core.close()
        for token in broker.tokens:
            shown = json.loads(token)
            assert (shown["host"], shown["user-agent"]) == ("broker", "c")
            assert shown["x-amz-credential"].startswith("me/")
            assert shown["x-amz-credential"].endswith("/eu-central-1/kafka-cluster/aws4_request")
        assert broker.tokens

    asyncio.run(run())


def test_an_extension_that_cannot_be_sent_shows_when_the_client_is_made() -> None:
    with pytest.raises(ConfigError, match="SASL extension"):
        source(**{"sasl.mechanism": "OAUTHBEARER", "oauth_cb": print, "sasl.oauthbearer.extensions": "auth=x"})


def test_a_package_that_is_missing_shows_when_the_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(DependencyError, match="gssapi"):
        source(**{"sasl.mechanism": "GSSAPI"})
