"""The words around requests: what is said first, and a session that is renewed before it ends (KIP-368)."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from itertools import pairwise
from typing import Any

import pytest

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.machines.cluster.handshake import FIRST_VERSION
from headrace.machines.cluster.sasl.plain import Plain
from headrace.machines.machine import Send
from headrace.net.errors import CANCELLED, Phase
from headrace.net.settings import ConnectionSettings
from headrace.net.setup import ConnectionSetup
from headrace.testing.simulated_clock import SimulatedLoop
from headrace.types.records import NodeAddress
from headrace.wire.frame import decode_request, encode_response
from headrace.wire.messages.cluster.session import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from headrace.wire.messages.consumer.fetch import FetchRequest
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse
from headrace.wire.schema import Response
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


# By itself


NODE = NodeAddress(4, "broker", 9092)
RANGES = {12: (0, 3), 17: (0, 1), 36: (0, 2)}  # Heartbeat, and SASL


class Talk:
    """A setup with nobody else: what it says, and what its owner is told."""

    def __init__(self, **settings: Any) -> None:
        given = {"client_id": "me", "software_version": "1", "connector": None, "clock": lambda: 0.0,
                 "jitter": lambda: 0.5, "setup_timeout_s": 30.0, "backoff_s": 1.0, "backoff_max_s": 10.0,
                 "idle_s": 1.0, "max_reply_bytes": 1 << 20, "protocol": "plaintext", **settings}
        self.said: list[Any] = []
        self.told: list[Any] = []
        self.settings = ConnectionSettings(**given)
        self.setup = ConnectionSetup(self.settings, NODE, FIRST_VERSION, self)

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        self.said.append(decode_request(b"".join(parts)[4:]))

    def on_open(self) -> None:
        self.told.append("open")

    def on_pause(self) -> None:
        self.told.append("pause")

    def close(self, reason: KafkaException) -> None:
        self.told.append(reason.error)

    def answer(self, response: Response) -> None:
        self.setup.on_frame(b"".join(encode_response(response, self.said[-1].version, 0))[4:])

    def versions(self) -> None:
        self.answer(ApiVersionsResponse(api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in RANGES.items()]))

    def chosen(self) -> None:
        self.answer(SaslHandshakeResponse(mechanisms=["PLAIN"]))

    def accepted(self, session_s: float = 0) -> None:
        self.answer(SaslAuthenticateResponse(
            error_message=None, auth_bytes=b"", session_lifetime_ms=int(session_s * 1000)))

    async def opened(self, session_s: float = 0) -> "Talk":
        await self.setup.prepare()
        self.setup.begin(self)  # type: ignore[arg-type]
        self.versions()
        if self.settings.mechanism is not None:
            self.chosen()
            self.accepted(session_s)
        assert self.told == ["open"]
        self.told.clear()
        return self


async def plain(node: NodeAddress) -> Plain:
    assert node == NODE
    return Plain("u", "p")


def simulated(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop = SimulatedLoop()
    loop.run(work())
    assert loop.failures == []


def test_it_says_one_thing_at_a_time_and_knows_how_far_it_is() -> None:
    async def run() -> None:
        talk = Talk(mechanism=plain)
        await talk.setup.prepare()
        assert talk.said == []
        phases = [talk.setup.phase(False)]
        talk.setup.begin(talk)  # type: ignore[arg-type]
        for answer in (talk.versions, talk.chosen, talk.accepted):
            said = len(talk.said)
            assert talk.told == []
            answer()
            phases.append(talk.setup.phase(False))
            assert len(talk.said) <= said + 1
        assert [type(frame.request) for frame in talk.said] == [
            ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest]
        assert talk.told == ["open"]
        assert phases == [Phase.OPENING, Phase.SASL, Phase.SASL, Phase.FIRST_REQUEST]
        assert talk.setup.phase(True) is Phase.OPEN

    simulated(run)


def test_words_are_counted_like_requests() -> None:
    async def run() -> None:
        talk = await Talk(mechanism=plain).opened()
        traffic = talk.settings.traffic.of(NODE)
        assert traffic.requests == {"ApiVersion": 1, "SaslHandshake": 1, "SaslAuthenticate": 1}
        assert traffic.rx == 3

    simulated(run)


@pytest.mark.parametrize(("most", "version"), [(None, 3), (9, 3), (3, 3), (2, 2), (0, 0)])
def test_the_version_of_a_request_is_the_highest_that_all_allow(most: int | None, version: int) -> None:
    async def run() -> None:
        talk = await Talk().opened()
        for _ in range(2):
            assert talk.setup.version(Send(4, HEARTBEAT, 1.0, max_version=most)) == version

    simulated(run)


def test_a_request_that_the_broker_does_not_know_is_refused_each_time() -> None:
    async def run() -> None:
        talk = await Talk().opened()
        for _ in range(2):
            with pytest.raises(KafkaException) as refused:
                talk.setup.version(Send(4, FetchRequest(max_wait_ms=1, min_bytes=1), 1.0))
            assert refused.value.error == KafkaError._UNSUPPORTED_FEATURE

    simulated(run)


def test_what_cannot_be_had_for_the_first_words_ends_the_attempt() -> None:
    async def none(node: NodeAddress) -> Plain:
        raise KafkaException(KafkaError(KafkaError._AUTHENTICATION, "no token"))

    async def run() -> None:
        with pytest.raises(KafkaException, match="no token"):
            await Talk(mechanism=none).setup.prepare()

    simulated(run)


@pytest.mark.parametrize(("chance", "renewed_s"), [(0.0, 85.0), (0.5, 90.0), (1.0, 95.0)])
def test_a_session_is_renewed_after_85_to_95_percent_of_its_life(chance: float, renewed_s: float) -> None:
    async def run() -> None:
        talk = await Talk(mechanism=plain, jitter=lambda: chance).opened(session_s=100)
        await asyncio.sleep(renewed_s - 0.01)
        assert (talk.told, len(talk.said)) == ([], 3)
        await asyncio.sleep(0.02)
        assert talk.told == ["pause"]
        assert isinstance(talk.said[-1].request, SaslHandshakeRequest)
        assert talk.setup.phase(True) is Phase.RENEWAL
        talk.chosen()
        talk.accepted(100)
        assert talk.told == ["pause", "open"]

    simulated(run)


def test_renewals_are_more_than_a_second_apart_however_short_the_sessions_are() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        talk = await Talk(mechanism=plain).opened(session_s=0.1)
        paused_at = []
        for _ in range(4):
            while not talk.told:
                await asyncio.sleep(0.01)
            paused_at.append(loop.time())
            talk.chosen()
            talk.accepted(0.1)
            talk.told.clear()
        assert paused_at[0] == pytest.approx(0.09, abs=0.02)
        assert all(later - earlier > 1 for earlier, later in pairwise(paused_at))

    simulated(run)


def test_a_session_without_end_is_not_renewed_and_neither_is_one_whose_socket_is_gone() -> None:
    async def run() -> None:
        endless = await Talk(mechanism=plain).opened()
        stopped = await Talk(mechanism=plain).opened(session_s=100)
        stopped.setup.stop()
        await asyncio.sleep(100_000)
        assert [len(talk.said) for talk in (endless, stopped)] == [3, 3]

    simulated(run)


@pytest.mark.parametrize(("raised", "code", "text"), [
    (KafkaException(KafkaError(KafkaError._TRANSPORT, "no token now")), KafkaError._TRANSPORT, "no token now"),
    (OSError("no ticket"), KafkaError._AUTHENTICATION, "authentication failed: OSError('no ticket')"),
])
def test_a_renewal_for_which_nothing_can_be_had_closes_the_connection(
    raised: Exception, code: int, text: str
) -> None:
    failing = False

    async def sometimes(node: NodeAddress) -> Plain:
        if failing:
            raise raised
        return Plain("u", "p")

    async def run() -> None:
        nonlocal failing
        talk = await Talk(mechanism=sometimes).opened(session_s=100)
        failing = True
        await asyncio.sleep(95)
        [error] = talk.told
        assert (error.code(), error.str()) == (code, text)
        assert len(talk.said) == 3

    simulated(run)


class Slow(Plain):
    """Its answer takes as long as the test says, and may be no answer."""

    slow = True

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__("u", "p")
        self.may_go_on, self.failure = threading.Event(), failure
        self.thread: threading.Thread | None = None

    def first(self) -> bytes:
        self.thread = threading.current_thread()
        self.may_go_on.wait(10)
        if self.failure is not None:
            raise self.failure
        return super().first()


async def thinking(mechanism: Slow) -> Talk:
    async def source(node: NodeAddress) -> Slow:
        return mechanism

    talk = Talk(mechanism=source)
    await talk.setup.prepare()
    talk.setup.begin(talk)  # type: ignore[arg-type]
    talk.versions()
    talk.chosen()
    return talk


def test_what_takes_long_is_done_off_the_loop_and_said_when_it_is_there() -> None:
    async def run() -> None:
        mechanism = Slow()
        talk = await thinking(mechanism)
        for _ in range(10):
            await asyncio.sleep(0.001)
        assert len(talk.said) == 2
        mechanism.may_go_on.set()
        while len(talk.said) < 3:
            await asyncio.sleep(0.001)
        assert isinstance(talk.said[-1].request, SaslAuthenticateRequest)
        assert mechanism.thread is not threading.current_thread()

    asyncio.run(run())


def test_a_broker_that_goes_on_talking_meanwhile_breaks_the_rules() -> None:
    async def run() -> None:
        mechanism = Slow()
        talk = await thinking(mechanism)
        with pytest.raises(ProtocolError, match="sent more than it was asked"):
            talk.chosen()
        talk.setup.stop()
        mechanism.may_go_on.set()

    asyncio.run(run())


def test_whatever_a_mechanism_raises_off_the_loop_closes_the_connection_with_its_reason() -> None:
    async def run() -> None:
        mechanism = Slow(ZeroDivisionError("in a library"))
        talk = await thinking(mechanism)
        mechanism.may_go_on.set()
        while not talk.told:
            await asyncio.sleep(0.001)
        [error] = talk.told
        assert (error.code(), error.str()) == (
            KafkaError._AUTHENTICATION, "authentication failed: ZeroDivisionError('in a library')")

    asyncio.run(run())


def test_what_is_thought_out_when_the_socket_is_gone_is_not_said() -> None:
    async def run() -> None:
        mechanism = Slow()
        talk = await thinking(mechanism)
        await asyncio.sleep(0.001)
        talk.setup.stop()
        mechanism.may_go_on.set()
        await asyncio.sleep(0.02)
        assert (len(talk.said), talk.told) == (2, [])

    asyncio.run(run())


def test_a_step_that_others_cancel_closes_the_connection_which_would_wait_for_it() -> None:
    async def run() -> None:
        mechanism = Slow()
        talk = await thinking(mechanism)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        mechanism.may_go_on.set()
        while not talk.told:
            await asyncio.sleep(0.001)
        assert talk.told == [CANCELLED.error]

    asyncio.run(run())
