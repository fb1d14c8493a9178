"""The driver and its connections against a broker that answers as the test says, in memory."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import pytest

from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.cluster.coordinator import GROUP
from headrace.machines.machine import ANY_NODE, Effect, Event, Send
from headrace.net import driver
from headrace.wire.frame import RequestFrame, encode_response
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.cluster.session import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.consumer.fetch import FetchRequest
from headrace.wire.messages.groups.classic_groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    ListGroupsRequest,
    ListGroupsResponse,
)
from headrace.wire.messages.producer.produce import ProduceRequest
from headrace.wire.schema import Struct
from tests.support.enough_time import TIMES_S
from tests.support.scripted_broker import HANG_UP, SILENCE, ScriptedBroker, admin_config, api_versions

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def client(broker: ScriptedBroker, **properties: Any) -> ClientCore:
    quick = {"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 20, "retry_backoff_ms": 10,
             "retry_backoff_max_ms": 20}
    return ClientCore(Config(ADMIN, admin_config(**{**quick, **properties})), connector=broker.connector)


class Recorder:
    """A machine that sends what it is given and notes what comes back."""

    alone = idle = False

    def __init__(self, sends: Iterable[Effect]) -> None:
        self.sends = list(sends)
        self.replies: list[tuple[Any, Struct | None]] = []
        self.errors: list[tuple[Any, KafkaError]] = []
        self.expected = len(self.sends)
        self.done = asyncio.Event()

    def poll(self, now: float) -> list[Effect]:
        sends, self.sends = self.sends, []
        return sends

    def deadline(self) -> float | None:
        return None

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        self.replies.append((send.context, reply))
        self._count()

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        self.errors.append((send.context, error))
        self._count()

    def events(self) -> list[Event]:
        return []

    def _count(self) -> None:
        if len(self.replies) + len(self.errors) == self.expected:
            self.done.set()


def test_a_request_gets_its_reply_and_nothing_is_left_open() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(ListGroupsRequest, ListGroupsResponse(groups=[]))
        core = client(broker)
        reply = await core.request(ANY_NODE, ListGroupsRequest(), 5)
        assert isinstance(reply, ListGroupsResponse)
        await core.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


def test_what_a_broker_holds_back_is_not_waited_for_once_it_is_silent_on_another_connection() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, HeartbeatResponse())
        broker.on(JoinGroupRequest, SILENCE)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        joining = Recorder([Send(1, JoinGroupRequest(group_id="g"), 300.0, context="join")])
        core.add(joining)
        while not broker.count(JoinGroupRequest):
            await asyncio.sleep(0.001)
        broker.on(HeartbeatRequest, SILENCE)
        core.add(Recorder([Send(1, HEARTBEAT, 0.1)]))
        await asyncio.wait_for(joining.done.wait(), 5)
        [(_, error)] = joining.errors
        assert (error.code(), error.maybe_applied) == (KafkaError._TIMED_OUT, True)
        await core.close()

    asyncio.run(run())


def test_requests_are_pipelined_and_answered_in_order() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, SILENCE)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        machine = Recorder(Send(1, HEARTBEAT, 5.0, context=n) for n in range(5))
        core.add(machine)
        while broker.count(HeartbeatRequest) < 5:
            await asyncio.sleep(0.001)
        assert machine.replies == []
        waiting = [frame for frame in broker.seen if isinstance(frame.request, HeartbeatRequest)]
        for frame in waiting:
            broker.open[-1].answer(frame, HeartbeatResponse())
        await asyncio.wait_for(machine.done.wait(), 5)
        assert [context for context, _ in machine.replies] == [0, 1, 2, 3, 4]
        await core.close()

    asyncio.run(run())


def test_a_reply_leads_to_the_next_request_within_the_same_turn_of_the_loop() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        turns: list[int] = []

        class Chain(Recorder):
            def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
                before = len(broker.seen)
                self.sends = [Send(1, HEARTBEAT, 5.0)] if len(turns) < 3 else []
                asyncio.get_running_loop().call_soon(lambda: turns.append(len(broker.seen) - before))
                super().on_reply(send, reply, now)

        core.add(Chain([Send(1, HEARTBEAT, 5.0)]))
        for _ in range(200):
            await asyncio.sleep(0)
        assert broker.count(HeartbeatRequest) == 4
        await core.close()

    asyncio.run(run())


def test_fetches_and_joins_do_not_hold_up_other_requests() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(FetchRequest, SILENCE)
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        fetch = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[], forgotten_topics_data=[])
        machine = Recorder([Send(1, fetch, 5.0)])
        core.add(machine)
        reply = await core.request(1, HEARTBEAT, 1)
        assert isinstance(reply, HeartbeatResponse)
        assert broker.connections == 3  # bootstrap, the fetching one, the other one
        await core.close()
        assert machine.errors[0][1] == KafkaError._DESTROY

    asyncio.run(run())


def test_a_request_beside_another_of_its_kind_has_a_connection_of_its_own() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(FetchRequest, SILENCE)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        before = broker.connections
        for beside in (False, True, True):
            fetch = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[], forgotten_topics_data=[])
            core.add(Recorder([Send(1, fetch, 5.0, beside=beside)]))
        while broker.count(FetchRequest) < 3:
            await asyncio.sleep(0)
        assert broker.connections == before + 2
        await core.close()

    asyncio.run(run())


def test_a_request_without_reply_is_done_when_it_is_written() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(ProduceRequest, SILENCE)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        machine = Recorder([Send(1, ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 5.0, expects_reply=False)])
        core.add(machine)
        await asyncio.wait_for(machine.done.wait(), 5)
        assert machine.replies == [(None, None)]
        await core.close()

    asyncio.run(run())


def test_a_lost_connection_fails_what_was_in_flight_and_says_that_it_may_have_been_applied() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, HANG_UP)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        machine = Recorder([Send(1, HEARTBEAT, 5.0)])
        core.add(machine)
        await asyncio.wait_for(machine.done.wait(), 5)
        [(_, error)] = machine.errors
        assert error == KafkaError._TRANSPORT
        assert error.maybe_applied
        assert error.str().startswith("broker:9092: the broker closed the connection at its first request")
        await core.close()

    asyncio.run(run())


def test_a_request_that_may_be_repeated_survives_a_lost_connection() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        answers: list[Any] = [HANG_UP, HANG_UP, ListGroupsResponse(groups=[])]
        broker.on(ListGroupsRequest, lambda frame: answers.pop(0))
        core = client(broker)
        await core.request(ANY_NODE, ListGroupsRequest(), 5)
        assert answers == []
        broker.on(ListGroupsRequest, HANG_UP)
        with pytest.raises(KafkaException) as failed:
            await core.request(ANY_NODE, ListGroupsRequest(), 5, repeatable=False)
        assert failed.value.error.maybe_applied
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize("what", ["a reply", "why there is none"])
def test_what_comes_in_the_turn_in_which_the_time_is_over_is_the_result(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that stops for a moment makes it likely."""
    stopped_s = 0.0

    def stop() -> None:  # nothing runs for ten seconds, as the loop sees it
        nonlocal stopped_s
        stopped_s += 10

    async def run() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: time.monotonic() + stopped_s)
        broker = ScriptedBroker(node1=("broker", 9092))
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)

        def answer_and_stop(asked: RequestFrame) -> None:
            if what == "a reply":
                broker.open[-1].answer(asked, HeartbeatResponse(error_code=27))
                stop()
            else:
                broker.transports[-1].hang_up()
                loop.call_soon(stop)  # that takes a turn more

        def ask(frame: RequestFrame) -> str:
            loop.call_soon(answer_and_stop, frame)
            return SILENCE

        broker.on(HeartbeatRequest, ask)
        if what == "a reply":
            reply = await core.driver.request(1, HEARTBEAT, 5)
            assert reply.error_code == 27  # type: ignore[attr-defined]
        else:
            with pytest.raises(KafkaException, match="the broker closed the connection"):
                await core.driver.request(1, HEARTBEAT, 5)
        assert stopped_s == 10
        await core.close()

    asyncio.run(run())


def test_an_impatient_one_shot_call_does_not_cost_the_connection() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, SILENCE)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        with pytest.raises(KafkaException, match="broker:9092: no reply to HeartbeatRequest"):
            await core.driver.request(1, HEARTBEAT, 1.0)
        [late] = [frame for frame in broker.seen if isinstance(frame.request, HeartbeatRequest)]
        broker.open[-1].answer(late, HeartbeatResponse())
        broker.on(HeartbeatRequest, HeartbeatResponse())
        connections = broker.connections
        await core.driver.request(1, HEARTBEAT, 1)
        assert broker.connections == connections
        await core.close()

    asyncio.run(run())


def test_an_overdue_request_of_a_machine_costs_the_connection_and_fails_the_others_with_it() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, SILENCE)
        for late_s in TIMES_S:  # a machine that stops for longer sends it too late
            core = client(broker)
            await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
            sends = [Send(1, HEARTBEAT, late_s, context="late"), Send(1, HEARTBEAT, 300.0, context="behind")]
            machine = Recorder(sends)
            core.add(machine)
            while not machine.errors:
                await asyncio.sleep(0.001)
            if "not sent" not in machine.errors[0][1].str():
                break
            await core.close()
        await asyncio.wait_for(machine.done.wait(), 20)
        assert [context for context, _ in machine.errors] == ["late", "behind"]
        assert all(error == KafkaError._TIMED_OUT and error.maybe_applied for _, error in machine.errors)
        assert f"HeartbeatRequest was not answered within {late_s:g} s" in machine.errors[0][1].str()
        await core.close()

    asyncio.run(run())


def test_a_reply_to_another_request_closes_the_connection() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))

        def wrong(frame: RequestFrame) -> bytes:
            return b"".join(encode_response(HeartbeatResponse(), frame.version, frame.correlation_id + 7))

        broker.on(HeartbeatRequest, wrong)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        with pytest.raises(KafkaException, match="answered request 7 where 0 \\(HeartbeatRequest\\) was next"):
            await core.driver.request(1, HEARTBEAT, 1)
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize("garbage", [b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02xy", b"HTTP/1.1 400",
                                     b"\x00\x00\x00\x08\x00\x00\x00\x00zzzz"])
def test_hostile_bytes_fail_the_request_with_one_line(garbage: bytes) -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, garbage)
        core = client(broker)
        errors: list[KafkaError] = []
        core.on_error = errors.append
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        with pytest.raises(KafkaException) as failed:
            await core.driver.request(1, HEARTBEAT, 1)
        assert errors[0] == KafkaError._BAD_MSG
        assert failed.value.error == KafkaError._TRANSPORT
        assert failed.value.error.str().startswith("broker:9092: ")
        assert "\n" not in failed.value.error.str()
        await core.close()

    asyncio.run(run())


def test_a_broker_that_garbles_its_versions_is_asked_again_in_version_0() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(ApiVersionsRequest, lambda frame: api_versions(frame) if frame.version == 0
                  else b"\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x7f\x7f")
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        assert broker.count(ApiVersionsRequest) == 2
        await core.close()

    asyncio.run(run())


def test_a_broker_that_does_not_know_our_apiversions_is_asked_again_on_the_same_connection() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))

        def old(frame: RequestFrame) -> Any:
            answer = api_versions(frame)
            if frame.version <= 2:
                return answer
            refusal = ApiVersionsResponse(error_code=KafkaError.UNSUPPORTED_VERSION, api_keys=[
                key for key in answer.api_keys if key.api_key == ApiVersionsRequest.api_key])
            refusal.api_keys[0].max_version = 2
            return b"".join(encode_response(refusal, 0, frame.correlation_id))

        broker.on(ApiVersionsRequest, old)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: True, 5)
        assert [f.version for f in broker.seen[:2] if isinstance(f.request, ApiVersionsRequest)] == [4, 2]
        assert broker.connections == 1
        await core.close()

    asyncio.run(run())


def test_an_unsupported_request_is_told_to_the_machine_and_not_written() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))

        def without_heartbeat(frame: RequestFrame) -> ApiVersionsResponse:
            answer = api_versions(frame)
            answer.api_keys = [key for key in answer.api_keys if key.api_key != HeartbeatRequest.api_key]
            return answer

        broker.on(ApiVersionsRequest, without_heartbeat)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        machine = Recorder([Send(1, HEARTBEAT, 5.0)])
        core.add(machine)
        await asyncio.wait_for(machine.done.wait(), 5)
        assert machine.errors[0][1] == KafkaError._UNSUPPORTED_FEATURE
        assert broker.count(HeartbeatRequest) == 0
        await core.close()

    asyncio.run(run())


def test_an_unknown_broker_is_an_error_at_once() -> None:
    async def run() -> None:
        core = client(ScriptedBroker(node1=("broker", 9092)))
        with pytest.raises(KafkaException, match="broker 77 is not in the cluster's metadata"):
            await core.driver.request(77, HEARTBEAT, 1)
        await core.close()

    asyncio.run(run())


def test_a_broker_that_is_not_in_the_metadata_is_looked_up_there_anew() -> None:
    """A coordinator that came back: whoever asks for it waits for nothing else that would renew the picture."""
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        broker.nodes[2] = ("broker", 9093)
        machine = Recorder([Send(2, HEARTBEAT, 5.0)])
        core.add(machine)
        await asyncio.wait_for(machine.done.wait(), 5)
        assert machine.errors[0][1] == KafkaError._UNKNOWN_BROKER
        await core.wait_for_metadata(lambda cluster: 2 in cluster.nodes, 5)
        await core.request(2, HEARTBEAT, 1)
        await core.close()

    asyncio.run(run())


def test_a_coordinator_that_is_not_in_the_metadata_is_waited_for_and_asked_for() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(FindCoordinatorRequest, FindCoordinatorResponse(node_id=2, host="broker", port=9093))
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        broker.nodes[2] = ("broker", 9093)
        assert await core.coordinator(GROUP, "g", 5) == 2
        await core.close()

    asyncio.run(run())


def test_a_large_reply_is_received_whole() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        names = [f"group-{n:06d}" for n in range(20_000)]
        broker.on(ListGroupsRequest, lambda frame: _groups(names))
        core = client(broker)
        for _ in range(3):
            reply = await core.request(ANY_NODE, ListGroupsRequest(), 5)
            assert isinstance(reply, ListGroupsResponse)
            assert [group.group_id for group in reply.groups] == names
        await core.close()

    asyncio.run(run())


def _groups(names: list[str]) -> ListGroupsResponse:
    from headrace.wire.messages.groups.classic_groups import ListedGroup

    return ListGroupsResponse(groups=[ListedGroup(group_id=name, protocol_type="consumer") for name in names])


def test_a_connection_that_is_not_used_is_closed_quietly_and_opened_again_when_needed() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, HeartbeatResponse())
        errors: list[KafkaError] = []
        core = client(broker, connections_max_idle_ms=50)
        core.on_error = errors.append
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        await core.request(1, HEARTBEAT, 1)
        before = broker.connections
        await asyncio.sleep(0.3)
        await core.request(1, HEARTBEAT, 1)
        assert broker.connections == before + 1
        assert errors == []
        await core.close()

    asyncio.run(run())


def test_a_defect_in_one_machine_is_reported_and_the_others_go_on() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker)
        errors: list[KafkaError] = []
        core.on_error = errors.append

        class Broken(Recorder):
            def poll(self, now: float) -> list[Effect]:
                raise ZeroDivisionError("oops")

        core.add(Broken([]))
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        await core.request(1, HEARTBEAT, 1)
        assert len(errors) == 1
        assert errors[0].fatal()
        await core.close()

    asyncio.run(run())


def test_what_a_machine_wants_done_beside_requests_is_carried_out_by_the_client() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        effect, carried_out = Effect(), asyncio.Queue[Effect]()
        config = Config(ADMIN, admin_config())
        core = ClientCore(config, on_effect=carried_out.put_nowait, connector=broker.connector)
        core.add(Recorder([effect]))
        assert await carried_out.get() is effect
        assert carried_out.empty()
        await core.close()

    asyncio.run(run())


def test_what_nobody_can_carry_out_is_a_defect_of_the_machine() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        core = client(broker)
        errors: asyncio.Queue[KafkaError] = asyncio.Queue()
        core.on_error = errors.put_nowait
        core.add(Recorder([Effect()]))
        assert (await errors.get()).str() == "Recorder failed: TypeError('this client cannot carry out Effect')"
        await core.close()

    asyncio.run(run())


def test_a_broker_that_moved_is_dialled_at_its_new_address() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        await core.request(1, HEARTBEAT, 1)
        broker.nodes = {1: ("elsewhere", 9093)}
        asked = broker.count(MetadataRequest)
        core.metadata.refresh(asyncio.get_running_loop().time())
        core.wake()
        await core.wait_for_metadata(lambda cluster: cluster.nodes[1].host == "elsewhere", 5)
        assert broker.count(MetadataRequest) == asked + 1
        before = broker.connections
        await core.request(1, HEARTBEAT, 1)
        assert broker.connections == before + 1
        await core.close()

    asyncio.run(run())


def test_a_broker_that_has_left_the_cluster_is_not_waited_for_much_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen one still has its connection: who has asked it for a transaction's end may ask its successor in time."""
    monkeypatch.setattr(driver, "_FAREWELL_S", 0.1)

    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092), node2=("successor", 9092))
        broker.on(HeartbeatRequest, SILENCE)
        broker.on(ListGroupsRequest, ListGroupsResponse(groups=[]))
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        await core.request(2, ListGroupsRequest(), 5)
        asked = asyncio.ensure_future(core.request(1, HEARTBEAT, 60, repeatable=False))
        while not broker.count(HeartbeatRequest):
            await asyncio.sleep(0.01)
        broker.nodes = {2: ("successor", 9092)}
        core.metadata.refresh(asyncio.get_running_loop().time())
        core.wake()
        with pytest.raises(KafkaException, match="the broker left the cluster") as failed:
            await asyncio.wait_for(asked, 10)
        assert failed.value.error == KafkaError._TRANSPORT
        assert failed.value.error.maybe_applied
        await core.close()

    asyncio.run(run())


def test_brokers_that_fall_silent_are_left_for_the_bootstrap_server_before_their_requests_time_out() -> None:
    async def run() -> None:
        known, at_bootstrap = ScriptedBroker(node1=("known", 1)), ScriptedBroker(node1=("known", 1))
        known.on(MetadataRequest, SILENCE)
        core = ClientCore(
            Config(ADMIN, admin_config(retry_backoff_ms=10, metadata_recovery_rebootstrap_trigger_ms=200)),
            connector=lambda protocol, at: (known if at.host == "known" else at_bootstrap).connector(protocol, at))
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        at_bootstrap.nodes = {2: ("new", 2)}
        started = asyncio.get_running_loop().time()
        core.metadata.refresh(started)
        core.wake()
        await core.wait_for_metadata(lambda cluster: 2 in cluster.nodes, 5)
        assert known.count(MetadataRequest) == 1
        assert 0.2 <= asyncio.get_running_loop().time() - started < 2
        await core.close()

    asyncio.run(run())


def test_the_bootstrap_connection_is_closed_when_its_last_reply_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_FAREWELL_S", 0.0)  # which is for brokers that have left

    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(ListGroupsRequest, SILENCE)
        core = client(broker)
        asked = asyncio.create_task(core.request(ANY_NODE, ListGroupsRequest(), 5))
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        while not broker.count(ListGroupsRequest):
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        assert not broker.transports[0].closed
        [frame] = [frame for frame in broker.seen if isinstance(frame.request, ListGroupsRequest)]
        broker.open[0].answer(frame, ListGroupsResponse(groups=[]))
        await asked
        await asyncio.sleep(0.01)
        assert broker.transports[0].closed
        await core.close()

    asyncio.run(run())


def test_a_client_that_closes_while_it_connects_leaves_no_task_behind() -> None:
    async def unwinding(_protocol: object, _node: object) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(5):  # as attempts on several addresses take some turns to give up
                await asyncio.sleep(0)

    async def scenario() -> None:
        core = ClientCore(Config(ADMIN, admin_config()), connector=unwinding)
        await asyncio.sleep(0.01)
        await core.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_a_close_that_is_cancelled_while_it_waits_for_last_replies_leaves_no_connection_open() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(ProduceRequest, SILENCE)
        broker.on(HeartbeatRequest, SILENCE)
        core = client(broker)
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        machine = Recorder([Send(1, ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 5.0, expects_reply=False),
                            Send(1, HEARTBEAT, 5.0)])
        core.add(machine)
        while not broker.count(HeartbeatRequest):
            await asyncio.sleep(0.001)
        waiting = asyncio.create_task(core.wait_for_metadata(lambda cluster: False, 60))
        closing = asyncio.create_task(core.close())
        await asyncio.sleep(0.01)
        assert not closing.done()
        closing.cancel()
        await asyncio.wait([closing])
        with pytest.raises(ClientClosedError):
            await asyncio.wait_for(waiting, 5)
        assert [transport.closed for transport in broker.transports] == [True] * len(broker.transports)
        assert [error for _, error in machine.errors] == [KafkaError._DESTROY]

    asyncio.run(run())
