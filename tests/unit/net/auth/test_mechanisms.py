"""Where authentication comes from: the mechanism that the properties ask for."""

import asyncio
import threading
from typing import Any

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.net.auth.tokens import unsecured_token
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
