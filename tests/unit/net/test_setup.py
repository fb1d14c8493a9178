"""The words around requests: what is said first, and a session that is renewed before it ends (KIP-368)."""

import asyncio

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.wire.messages.cluster.session import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse
from tests.support.sasl_broker import PLAIN, SaslBroker, client, known
from tests.support.scripted_broker import SILENCE

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def test_nothing_but_versions_is_said_before_the_broker_knows_who_we_are() -> None:
    async def run() -> None:
        broker = SaslBroker()
        core = client(broker, PLAIN)
        await known(core)
        assert [type(frame.request).__name__ for frame in broker.seen[:4]] == [
            "ApiVersionsRequest", "SaslHandshakeRequest", "SaslAuthenticateRequest", "MetadataRequest"]
        assert broker.tokens[0] == b"\0u\0hunter2"
        await core.close()

    asyncio.run(run())


def test_a_session_is_renewed_on_the_same_connection_but_not_twice_within_a_second_which_kafka_refuses() -> None:
    async def run() -> None:
        broker = SaslBroker(lifetime_ms=100)
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker, PLAIN)
        await known(core)
        await core.driver.request(1, HEARTBEAT, 5)
        connections, started = broker.connections, len(broker.tokens)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + 1.3
        while loop.time() < ends_at:
            await core.driver.request(1, HEARTBEAT, 5)
        assert broker.connections == connections
        assert 1 <= len(broker.tokens) - started <= 2  # after 0.09 s, which may be over by now, and 1.14 s
        await core.close()

    asyncio.run(run())


def test_during_a_renewal_replies_in_flight_arrive_and_new_requests_wait() -> None:
    async def run() -> None:
        broker = SaslBroker(lifetime_ms=60)
        broker.on(HeartbeatRequest, SILENCE)
        core = client(broker, PLAIN)
        await known(core)
        before = asyncio.create_task(core.driver.request(1, HEARTBEAT, 5))
        while not broker.count(HeartbeatRequest):
            await asyncio.sleep(0.001)
        connection = broker.open[-1]
        broker.on(SaslHandshakeRequest, SILENCE)  # of the renewal: it comes behind the request in flight
        handshakes = broker.count(SaslHandshakeRequest)
        while broker.count(SaslHandshakeRequest) == handshakes:
            await asyncio.sleep(0.001)
        renewal = broker.seen[-1]
        assert isinstance(renewal.request, SaslHandshakeRequest)
        after = asyncio.create_task(core.driver.request(1, HEARTBEAT, 5))
        await asyncio.sleep(0.02)
        assert broker.count(HeartbeatRequest) == 1, "written in the middle of a renewal"
        first = next(frame for frame in broker.seen if isinstance(frame.request, HeartbeatRequest))
        connection.answer(first, HeartbeatResponse(error_code=27))
        reply = await before
        assert isinstance(reply, HeartbeatResponse)
        assert reply.error_code == 27
        assert not after.done()
        broker.on(HeartbeatRequest, HeartbeatResponse())
        broker.lifetime_ms = 0
        connection.answer(renewal, SaslHandshakeResponse(mechanisms=["PLAIN"]))
        await after
        await core.close()

    asyncio.run(run())


def test_a_renewal_that_is_refused_closes_the_connection() -> None:
    async def run() -> None:
        broker = SaslBroker(lifetime_ms=60)
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker, PLAIN)
        await known(core)
        await core.driver.request(1, HEARTBEAT, 5)
        connection, transport = broker.open[-1], broker.transports[-1]
        broker.refuse()
        broker.on(SaslHandshakeRequest, SILENCE)
        while not isinstance(broker.seen[-1].request, SaslHandshakeRequest):
            await asyncio.sleep(0.001)
        late = asyncio.create_task(core.driver.request(1, HEARTBEAT, 5))
        await asyncio.sleep(0)
        connection.answer(broker.seen[-1], SaslHandshakeResponse(mechanisms=["PLAIN"]))
        with pytest.raises(KafkaException, match="no such user") as failed:
            await asyncio.wait_for(late, 1)
        assert failed.value.error == KafkaError._AUTHENTICATION
        assert transport.closed
        await core.close()

    asyncio.run(run())


def test_renewals_do_not_keep_an_unused_connection_open() -> None:
    async def run() -> None:
        broker = SaslBroker(lifetime_ms=40)
        core = client(broker, PLAIN, **{"connections.max.idle.ms": 150})
        errors: list[KafkaError] = []
        core.on_error = errors.append
        await known(core)
        await asyncio.sleep(0.5)
        assert all(transport.closed for transport in broker.transports)
        assert errors == []
        await core.close()

    asyncio.run(run())
