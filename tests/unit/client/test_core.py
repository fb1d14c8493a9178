"""What every client has: requests that are tried again, metadata to wait for, error reports, an end. In memory."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import pytest

from headrace import Producer
from headrace.aio import AIOAdminClient, AIOConsumer, AIOProducer, AIOShareConsumer
from headrace.client.core import ClientCore, ClosesByItself, metadata_from
from headrace.config import ADMIN, Config
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.metadata import Cluster, MetadataChanged
from headrace.machines.machine import ANY_NODE, ErrorEvent, Event, Machine
from headrace.testing import EmbeddedBroker
from headrace.types.records import NodeAddress
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.groups.classic_groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.support.scripted_broker import HANG_UP, SILENCE, ScriptedBroker, admin_config

NODES = {"node1": ("one", 1), "node2": ("two", 2)}
QUIET = logging.Logger("quiet", logging.CRITICAL)
Work = Callable[[ClientCore], Awaitable[None]]


def run(broker: ScriptedBroker, work: Work, **properties: Any) -> None:
    async def main() -> None:
        given = {"logger": QUIET, "retry.backoff.ms": 2, "retry.backoff.max.ms": 4, **properties}
        core = ClientCore(Config(ADMIN, {**admin_config(), **given}), connector=broker.connector)
        try:
            await work(core)
        finally:
            await core.close()

    asyncio.run(main())


def test_a_request_is_answered_by_the_broker_that_is_asked() -> None:
    broker = ScriptedBroker(**NODES)
    broker.on(ListGroupsRequest, ListGroupsResponse(error_code=0))

    async def work(core: ClientCore) -> None:
        await core.wait_for_metadata(lambda cluster: 2 in cluster.nodes, 5)
        assert await core.request(2, ListGroupsRequest(), 5) == ListGroupsResponse()

    run(broker, work)
    assert broker.count(ListGroupsRequest) == 1


def test_a_request_whose_connection_is_lost_is_sent_again() -> None:
    broker = ScriptedBroker(**NODES)
    broker.on(ListGroupsRequest, lambda frame: HANG_UP if broker.count(ListGroupsRequest) < 3 else ListGroupsResponse())

    async def work(core: ClientCore) -> None:
        assert await core.request(ANY_NODE, ListGroupsRequest(), 5) == ListGroupsResponse()

    run(broker, work)
    assert broker.count(ListGroupsRequest) == 3


def test_a_request_finds_brokers_that_have_all_moved_by_the_bootstrap_servers() -> None:
    async def main() -> None:
        broker, gone = ScriptedBroker(node1=("old", 1)), set[str]()
        broker.on(ListGroupsRequest, ListGroupsResponse())

        async def connect(protocol: asyncio.BufferedProtocol, node: NodeAddress) -> None:
            if node.host in gone:
                raise ConnectionRefusedError
            await broker.connector(protocol, node)

        config = Config(ADMIN, {**admin_config(), "logger": QUIET, "retry.backoff.ms": 2, "retry.backoff.max.ms": 4,
                                "reconnect.backoff.ms": 2, "reconnect.backoff.max.ms": 4})
        core = ClientCore(config, connector=connect)
        try:
            await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
            await core.request(1, ListGroupsRequest(), 5)
            broker.nodes = {1: ("new", 1)}
            gone.add("old")
            for transport in broker.transports:
                transport.peer.hang_up()
            assert await core.request(ANY_NODE, ListGroupsRequest(), 20) == ListGroupsResponse()
            assert await core.request(1, ListGroupsRequest(), 20) == ListGroupsResponse()
            assert core.metadata.cluster.nodes[1].host == "new"
        finally:
            await core.close()

    asyncio.run(main())


def test_a_request_that_must_not_be_repeated_is_not_when_it_may_have_been_carried_out() -> None:
    broker = ScriptedBroker(**NODES)
    broker.on(ListGroupsRequest, HANG_UP)

    async def work(core: ClientCore) -> None:
        with pytest.raises(KafkaException, match="ListGroupsRequest failed after") as failed:
            await core.request(ANY_NODE, ListGroupsRequest(), 5, repeatable=False)
        assert failed.value.error.maybe_applied

    run(broker, work)
    assert broker.count(ListGroupsRequest) == 1


def test_a_request_that_nobody_answers_fails_in_its_time() -> None:
    broker = ScriptedBroker(**NODES)
    broker.on(ListGroupsRequest, SILENCE)

    async def work(core: ClientCore) -> None:
        await core.wait_for_metadata(lambda cluster: 2 in cluster.nodes, 5)
        with pytest.raises(KafkaException, match=r"ListGroupsRequest failed after \d\.\d s"):
            await core.request(ANY_NODE, ListGroupsRequest(), 0.1)

    run(broker, work)


def test_metadata_that_is_good_enough_is_not_waited_for() -> None:
    broker = ScriptedBroker(**NODES)

    async def work(core: ClientCore) -> None:
        first = await core.wait_for_metadata(lambda cluster: bool(cluster.nodes), 5)
        asked = broker.count(MetadataRequest)
        assert await core.wait_for_metadata(lambda cluster: bool(cluster.nodes), 0) is first
        assert broker.count(MetadataRequest) == asked

    run(broker, work)


def test_metadata_that_never_comes_is_a_time_out_that_says_why() -> None:
    broker = ScriptedBroker(**NODES)

    async def work(core: ClientCore) -> None:
        with pytest.raises(KafkaException, match=r"no usable metadata after 0\.05 s") as late:
            await core.wait_for_metadata(lambda cluster: 3 in cluster.nodes, 0.05)
        assert late.value.error == KafkaError._TIMED_OUT

    run(broker, work)


def test_metadata_that_come_in_the_turn_in_which_the_time_is_over_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stops for a moment makes it likely."""
    async def work(core: ClientCore) -> None:
        known = await core.wait_for_metadata(lambda cluster: 2 in cluster.nodes, 5)
        came: list[Cluster] = []
        loop, stopped_s = asyncio.get_running_loop(), 0.0
        monkeypatch.setattr(loop, "time", lambda: time.monotonic() + stopped_s)

        def come() -> None:
            came.append(known)
            core._on_event(MetadataChanged(known))

        def stop_and_come() -> None:
            nonlocal stopped_s
            stopped_s += 10  # nothing runs for ten seconds, as the loop sees it
            loop.call_soon(come)  # the loop looks at its timers first

        loop.call_later(0.01, stop_and_come)
        assert await core.wait_for_metadata(lambda cluster: bool(came), 5) is known

    run(ScriptedBroker(**NODES), work)


def test_who_gives_up_waiting_for_metadata_leaves_the_others_their_wait() -> None:
    async def work(core: ClientCore) -> None:
        waiting = asyncio.create_task(core.wait_for_metadata(lambda cluster: 3 in cluster.nodes, 5))
        with pytest.raises(KafkaException):
            await core.wait_for_metadata(lambda cluster: 4 in cluster.nodes, 0.02)
        await core.wait_for_metadata(lambda cluster: 2 in cluster.nodes, 5)
        broker.nodes[3] = ("three", 3)
        core.metadata.refresh(time.monotonic())
        core.wake()
        assert 3 in (await waiting).nodes

    broker = ScriptedBroker(**NODES)
    run(broker, work)


def test_who_waits_for_metadata_hears_that_the_client_was_closed() -> None:
    async def work(core: ClientCore) -> None:
        waiting = asyncio.create_task(core.wait_for_metadata(lambda cluster: False, 60))
        await asyncio.sleep(0)
        await core.close()
        with pytest.raises(ClientClosedError):
            await waiting

    run(ScriptedBroker(**NODES), work)


def test_who_waits_for_an_answer_hears_that_the_client_was_closed_before_or_after() -> None:
    async def work(core: ClientCore) -> None:
        waiting = core.future()
        await core.close()
        for each in (waiting, core.future()):
            with pytest.raises(ClientClosedError):
                await asyncio.wait_for(each, 5)

    run(ScriptedBroker(**NODES), work)


@pytest.mark.parametrize("asked", ["a request", "a coordinator"])
def test_who_waits_between_two_attempts_hears_at_once_that_the_client_was_closed(asked: str) -> None:
    broker = ScriptedBroker(**NODES)
    broker.on(FindCoordinatorRequest, lambda frame: FindCoordinatorResponse(
        coordinators=[Coordinator(key="g", error_code=15)]) if frame.version >= 4 else
        FindCoordinatorResponse(error_code=15))

    async def work(core: ClientCore) -> None:
        await core.wait_for_metadata(lambda cluster: True, 5)
        if asked == "a request":
            broker.on(ListGroupsRequest, HANG_UP)
            waiting = asyncio.create_task(core.request(ANY_NODE, ListGroupsRequest(), 600))
        else:
            waiting = asyncio.create_task(core.coordinator(0, "g", 600))
        await asyncio.sleep(0.2)
        began = time.monotonic()
        await core.close()
        with pytest.raises(ClientClosedError):
            await asyncio.wait_for(waiting, 5)
        assert time.monotonic() - began < 1

    run(broker, work, **{"retry.backoff.ms": 60_000, "retry.backoff.max.ms": 60_000})


def test_a_coordinator_is_asked_for_again_while_one_is_being_elected() -> None:
    broker = ScriptedBroker(**NODES)

    def found(frame: Any) -> FindCoordinatorResponse:
        code = 15 if broker.count(FindCoordinatorRequest) < 3 else 0
        if frame.version >= 4:
            return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=2, host="two", port=2,
                                                                     error_code=code)])
        return FindCoordinatorResponse(node_id=2, host="two", port=2, error_code=code)

    broker.on(FindCoordinatorRequest, found)

    async def work(core: ClientCore) -> None:
        assert await core.coordinator(0, "g", 5) == 2

    run(broker, work)
    assert broker.count(FindCoordinatorRequest) == 3


def test_a_coordinator_that_the_metadata_does_not_have_is_waited_for() -> None:
    broker = ScriptedBroker(**NODES)

    def described(frame: Any) -> MetadataResponse:
        reply = broker.metadata(frame)
        if not broker.count(FindCoordinatorRequest):
            reply.brokers = [each for each in reply.brokers if each.node_id == 1]
        return reply

    broker.on(FindCoordinatorRequest, FindCoordinatorResponse(node_id=2, host="two", port=2))
    broker.on(MetadataRequest, described)

    async def work(core: ClientCore) -> None:
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        assert 2 not in core.metadata.cluster.nodes
        assert await core.coordinator(0, "g", 5) == 2
        assert 2 in core.metadata.cluster.nodes

    run(broker, work)


def test_a_coordinator_that_may_not_be_used_is_an_error_at_once() -> None:
    broker = ScriptedBroker(**NODES)
    async def work(core: ClientCore) -> None:
        with pytest.raises(KafkaException) as refused:
            await core.coordinator(0, "g", 5)
        assert refused.value.error == KafkaError.GROUP_AUTHORIZATION_FAILED

    def scripted(frame: Any) -> FindCoordinatorResponse:
        if frame.version >= 4:
            return FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=30)])
        return FindCoordinatorResponse(error_code=30)

    broker.on(FindCoordinatorRequest, scripted)
    run(broker, work)
    assert broker.count(FindCoordinatorRequest) == 1


def test_topics_are_listed_with_who_answered() -> None:
    broker = ScriptedBroker(**NODES)

    def described(frame: Any) -> MetadataResponse:
        reply = broker.metadata(frame)
        reply.topics = [MetadataResponseTopic(name=topic.name, partitions=[
            MetadataResponsePartition(partition_index=0, leader_id=1)]) for topic in frame.request.topics or ()]
        return reply

    broker.on(MetadataRequest, described)

    async def work(core: ClientCore) -> None:
        await core.wait_for_metadata(lambda cluster: bool(cluster.nodes), 5)
        one = await core.list_topics("t", 5)
        assert (list(one.topics), one.topics["t"].partitions[0].leader) == (["t"], 1)
        assert one.orig_broker_name in ("one:1/1", "two:2/2")
        assert list((await core.list_these(["a", "b"], 5)).topics) == ["a", "b"]
        with pytest.raises(TypeError, match="topic must be str or None, not int"):
            await core.list_topics(5, 5)  # type: ignore[arg-type]

    run(broker, work)
    listed = [frame.request for frame in broker.seen if isinstance(frame.request, MetadataRequest)][-2:]
    assert [request.allow_auto_topic_creation for request in listed] == [False, False]


def test_a_closed_client_says_so_and_may_be_closed_again() -> None:
    async def work(core: ClientCore) -> None:
        assert not core.closed
        await core.close()
        await core.close()
        assert core.closed
        for call in (lambda: core.request(ANY_NODE, ListGroupsRequest(), 5),
                     lambda: core.wait_for_metadata(lambda cluster: True, 5)):
            with pytest.raises(ClientClosedError, match="make a new one"):
                await call()
        with pytest.raises(ClientClosedError, match="Handle has been closed: make a new client"):
            await core.list_topics(None, 5)

    run(ScriptedBroker(**NODES), work)


def test_an_error_that_belongs_to_no_call_goes_to_error_cb_or_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    error, got = KafkaError(KafkaError._ALL_BROKERS_DOWN, "nobody is there"), []

    async def heard(core: ClientCore) -> None:
        core.driver.add(Telling(error))
        for _ in range(50):
            await asyncio.sleep(0)
        assert got == [error]

    run(ScriptedBroker(**NODES), heard, error_cb=got.append)

    async def logged(core: ClientCore) -> None:
        core.driver.add(Telling(error))
        for _ in range(50):
            await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING, "headrace"):
        run(ScriptedBroker(**NODES), logged, logger=logging.getLogger("headrace"))
    assert "nobody is there" in caplog.text


def test_of_a_logger_nothing_is_used_but_its_method_log() -> None:
    class Log:
        lines: ClassVar[list[tuple[int, str]]] = []

        def log(self, level: int, text: str, *arguments: object, **_: object) -> None:
            self.lines.append((level, text % arguments))

    def wrong(error: KafkaError) -> None:
        raise ValueError("mine")

    async def told(core: ClientCore) -> None:
        core.driver.add(Telling(KafkaError(KafkaError._ALL_BROKERS_DOWN, "nobody is there")))
        for _ in range(50):
            await asyncio.sleep(0)

    for error_cb in (None, wrong):
        run(ScriptedBroker(**NODES), told, logger=Log(), **({"error_cb": error_cb} if error_cb else {}))
    assert {(logging.WARNING, "nobody is there"), (logging.ERROR, "error_cb raised")} <= set(Log.lines)


def test_what_error_cb_raises_is_logged_and_the_client_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    broker = ScriptedBroker(**NODES)
    broker.on(ListGroupsRequest, ListGroupsResponse())

    def wrong(error: KafkaError) -> None:
        raise ValueError("mine")

    async def work(core: ClientCore) -> None:
        core.driver.add(Telling(KafkaError(KafkaError._ALL_BROKERS_DOWN)))
        assert await core.request(ANY_NODE, ListGroupsRequest(), 5) == ListGroupsResponse()

    with caplog.at_level(logging.ERROR, "headrace"):
        run(broker, work, error_cb=wrong, logger=logging.getLogger("headrace"))
    assert "error_cb raised" in caplog.text


class Telling(Machine):
    """A machine that has one error to tell."""

    def __init__(self, error: KafkaError) -> None:
        self._events: list[Event] = [ErrorEvent(error)]

    def poll(self, now: float) -> list[Any]:
        return []

    def events(self) -> list[Event]:
        told, self._events = self._events, []
        return told

    def deadline(self) -> None:
        return None


def test_a_wait_grows_with_failures_up_to_its_limit() -> None:
    async def work(core: ClientCore) -> None:
        waits = [core.retries.wait_s(failures) for failures in (1, 2, 3, 8, 30)]
        assert all(0 < wait <= 4 * 1.2 for wait in waits)
        assert waits[0] < 0.2 * waits[-1]

    run(ScriptedBroker(**NODES), work, **{"retry.backoff.ms": 100, "retry.backoff.max.ms": 4000})


def test_bootstrap_servers_are_read_with_their_ports_and_without_brackets() -> None:
    metadata = metadata_from(Config(ADMIN, {"bootstrap.servers": "one:1,[::1]:2"}), RetryPolicy())
    assert [(node.host, node.port) for node in metadata.cluster.nodes.values()] == [("one", 1), ("::1", 2)]
    assert all(number < 0 for number in metadata.cluster.nodes)


@pytest.mark.parametrize(("properties", "refresh_s", "rebootstraps_after_s"), [
    ({}, 300.0, 300.0),
    ({"topic.metadata.refresh.interval.ms": -1}, None, 300.0),
    ({"topic.metadata.refresh.interval.ms": 2_500, "metadata.recovery.rebootstrap.trigger.ms": 7_000}, 2.5, 7.0),
    ({"metadata.recovery.strategy": "none"}, 300.0, None),
])
def test_metadata_is_asked_for_as_the_properties_say(
    properties: dict[str, Any], refresh_s: float | None, rebootstraps_after_s: float | None
) -> None:
    metadata = metadata_from(Config(ADMIN, {"bootstrap.servers": "one:1", **properties}), RetryPolicy())
    (send,) = metadata.poll(0.0)
    brokers = [MetadataResponseBroker(node_id=1, host="one", port=1)]
    metadata.on_reply(send, MetadataResponse(brokers=brokers), 0.0)
    assert metadata.deadline() == refresh_s
    metadata.refresh(1000.0)
    list(metadata.poll(1000.0))
    assert metadata.deadline() == (None if rebootstraps_after_s is None else 1000.0 + rebootstraps_after_s)


def test_credentials_without_sasl_are_a_warning_and_the_client_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker, caplog.at_level(logging.WARNING, "headrace"), Producer({
            "bootstrap.servers": broker.bootstrap_servers, "sasl.mechanism": "PLAIN", "sasl.username": "u",
            "sasl.password": "hunter2"}) as producer:
        producer.produce("t", b"v")
        assert producer.flush(60) == 0
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        '"sasl.mechanism" is given and has no effect']
    assert "hunter2" not in caplog.text


async def _begin_when_cancelled(begin: Callable[[], object]) -> None:
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        asyncio.get_running_loop().call_soon(begin)


def test_what_closes_by_itself_is_at_an_end_before_its_loop_is_closed() -> None:
    ended: list[str] = []

    async def closing() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            ended.append("the socket is closed")

    async def main() -> None:
        last = asyncio.create_task(_begin_when_cancelled(ClosesByItself(closing).begin))
        await asyncio.sleep(0)
        assert not last.done()

    asyncio.run(main())
    assert ended == ["the socket is closed"]


def test_what_closes_by_itself_leaves_nothing_on_the_loop() -> None:
    closed: list[int] = []

    async def closing() -> None:
        await asyncio.sleep(0)
        closed.append(5)

    async def main() -> None:
        unattended = ClosesByItself(closing)
        unattended.begin()
        unattended.begin()
        assert unattended.task is not None
        await unattended.task
        await asyncio.sleep(0)
        unattended.begin()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert closed == [5]


def test_what_was_closed_by_its_program_is_not_closed_again_at_the_end_of_the_loop() -> None:
    closed: list[int] = []

    async def closing() -> None:
        closed.append(5)

    async def main(*, forgets: bool) -> ClosesByItself:
        unattended = ClosesByItself(closing)
        if forgets:
            unattended.forget()
            unattended.forget()
            unattended.begin()
        return unattended

    kept = asyncio.run(main(forgets=True))
    assert (closed, kept.task) == ([], None)
    kept = asyncio.run(main(forgets=False))
    assert closed == [5]


@pytest.mark.parametrize("kind", [AIOConsumer, AIOShareConsumer, AIOProducer, AIOAdminClient])
def test_a_client_that_the_program_still_holds_is_closed_with_its_loop(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    held: list[Any] = []

    async def main(servers: str) -> None:
        client = kind({"bootstrap.servers": servers} | (
            {"group.id": "g"} if kind in (AIOConsumer, AIOShareConsumer) else {}))
        held.append(client)
        if kind is AIOProducer:
            await (await client.produce("t", b"v"))
        elif kind is AIOAdminClient:
            await client.list_topics(timeout=30)
        else:
            await client.subscribe(["t"])
            await client.poll(0.2)

    async def members(servers: str) -> int:
        async with AIOAdminClient({"bootstrap.servers": servers}) as admin:
            described = admin.describe_consumer_groups(["g"])
            return len((await described["g"]).members)

    with EmbeddedBroker(topics={"t": 1}) as broker, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(main(broker.bootstrap_servers))
        if kind is AIOConsumer:
            assert asyncio.run(members(broker.bootstrap_servers)) == 0
        held.clear()
        gc.collect()
    assert [str(warning.message) for warning in told] == []
    assert not [record for record in caplog.records if record.name == "asyncio"]


@pytest.mark.parametrize("kind", [AIOConsumer, AIOShareConsumer, AIOProducer])
def test_a_client_in_a_task_that_ends_with_the_program_leaves_nothing_behind(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(servers: str, begun: asyncio.Event) -> None:
        client = kind({"bootstrap.servers": servers} | ({} if kind is AIOProducer else {"group.id": kind.__name__}))
        if kind is AIOProducer:
            await (await client.produce("t", b"v"))
        else:
            await client.subscribe(["t"])
            await client.poll(0.2)
        begun.set()
        await asyncio.sleep(60)
        await client.close()

    async def main(servers: str) -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(work(servers, begun))
        await begun.wait()
        assert not task.done()

    with EmbeddedBroker(topics={"t": 1}) as broker:
        for _ in range(3):
            asyncio.run(main(broker.bootstrap_servers))
            gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


@pytest.mark.parametrize("kind", [AIOConsumer, AIOShareConsumer, AIOProducer])
def test_a_client_that_is_let_go_with_the_end_of_the_program_leaves_nothing_behind(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(servers: str) -> None:
        client = kind({"bootstrap.servers": servers} | ({} if kind is AIOProducer else {"group.id": kind.__name__}))
        if kind is AIOProducer:
            for _ in range(100):
                await client.produce("t", b"v")
        else:
            await client.subscribe(["t"])
            await client.poll(0.2)

    with EmbeddedBroker(topics={"t": 1}) as broker, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            asyncio.run(main(broker.bootstrap_servers))
            gc.collect()
    assert [str(warning.message) for warning in told] == []
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_calls_that_wait_fail_together_also_behind_one_that_has_just_ended() -> None:
    async def work(core: ClientCore) -> None:
        ended, given_up, waits = core.future(), core.future(), core.future()
        ended.set_result(1)
        given_up.cancel()
        core.fail_waiting(KafkaException(KafkaError(KafkaError._AUTHENTICATION)))
        assert ended.result() == 1
        assert given_up.cancelled()
        with pytest.raises(KafkaException):
            await waits

    run(ScriptedBroker(**NODES), work)
