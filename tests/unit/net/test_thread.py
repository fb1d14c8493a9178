"""The loop thread, the two faces of the admin client, forks, and that nothing is left behind."""

import asyncio
import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.admin import AdminClient, ConfigResource, NewTopic
from headrace.aio import AIOAdminClient
from headrace.buffers import Alarm
from headrace.errors import ClientClosedError, ConfigError, KafkaError, KafkaException
from headrace.net.thread import LoopAlarm, LoopCall, loop_thread, waking
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.admin.topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from tests.support.quickest import assert_quick
from tests.support.scripted_broker import SILENCE, ScriptedBroker


@pytest.fixture
def broker() -> Iterator[tuple[ScriptedBroker, str]]:
    """A broker on a loopback socket, on the loop thread."""
    scripted = ScriptedBroker()
    scripted.on(CreateTopicsRequest, create)
    server, port = loop_thread().call(scripted.listen())
    yield scripted, f"127.0.0.1:{port}"
    loop_thread().call(scripted.shut(server))


def create(frame: RequestFrame) -> CreateTopicsResponse:
    request = frame.request
    assert isinstance(request, CreateTopicsRequest)
    return CreateTopicsResponse(topics=[
        CreatableTopicResult(name=topic.name, error_code=36 if topic.name == "old" else 0) for topic in request.topics])


def test_create_topics_gives_a_future_for_each_topic(broker: tuple[ScriptedBroker, str]) -> None:
    with AdminClient({"bootstrap.servers": broker[1]}) as admin:
        futures = admin.create_topics([NewTopic("new", 2), NewTopic("old")])
        futures["new"].result(5)
        with pytest.raises(KafkaException) as failed:
            futures["old"].result(5)
    assert failed.value.error == KafkaError.TOPIC_ALREADY_EXISTS
    assert 'topic "old"' in str(failed.value)


def test_the_asyncio_face_gives_awaitable_futures(broker: tuple[ScriptedBroker, str]) -> None:
    async def run() -> None:
        async with AIOAdminClient({"bootstrap.servers": broker[1]}) as admin:
            await admin.create_topics([NewTopic("new", 2)])["new"]
            assert (await admin.list_topics()).cluster_id == "test"

    asyncio.run(run())


def test_the_two_faces_have_the_same_methods_and_parameters() -> None:
    def shape(face: type) -> dict[str, list[str]]:
        return {name: list(inspect.signature(method).parameters)
                for name, method in inspect.getmembers(face, inspect.isfunction) if not name.startswith("_")}

    blocking = shape(AdminClient)
    del blocking["poll"]  # serves callbacks in the caller's thread; asyncio has no need of it
    assert blocking == shape(AIOAdminClient)


def test_a_closed_client_says_so_and_closes_again_quietly(broker: tuple[ScriptedBroker, str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker[1]})
    admin.close()
    admin.close()
    with pytest.raises(ClientClosedError, match="Handle has been closed: make a new client"):
        admin.list_topics()
    with pytest.raises(ClientClosedError, match="AdminClient has been closed: make a new one"):
        admin.describe_configs([ConfigResource("topic", "t")])


def test_an_unknown_property_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r'Did you mean "bootstrap\.servers"'):
        AdminClient({"bootstrap.server": "localhost:9092"})


def test_close_fails_what_is_still_open() -> None:
    silent = ScriptedBroker()
    silent.on(CreateTopicsRequest, SILENCE)
    server, port = loop_thread().call(silent.listen())
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    future = admin.create_topics([NewTopic("t")])["t"]
    while not silent.count(CreateTopicsRequest):
        time.sleep(0.01)
    admin.close()
    with pytest.raises(KafkaException) as failed:
        future.result(5)
    assert failed.value.error == KafkaError._DESTROY
    loop_thread().call(silent.shut(server))


def test_error_cb_is_served_by_poll_in_the_callers_thread() -> None:
    served: list[tuple[KafkaError, threading.Thread]] = []
    admin = AdminClient({"bootstrap.servers": "127.0.0.1:1",
                         "error_cb": lambda error: served.append((error, threading.current_thread()))})
    deadline = time.monotonic() + 20
    while len(served) < 2 and time.monotonic() < deadline:
        admin.poll(0)
        time.sleep(0.01)
    admin.close()
    assert {error.code() for error, _ in served} == {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}
    assert {thread for _, thread in served} == {threading.current_thread()}


def test_clients_leave_no_threads_descriptors_or_tasks_behind(broker: tuple[ScriptedBroker, str]) -> None:
    def use() -> None:
        with AdminClient({"bootstrap.servers": broker[1]}) as admin:
            admin.list_topics(timeout=5)

    def left() -> tuple[int, ...]:
        return threading.active_count(), len(os.listdir("/proc/self/fd")), tasks()

    use()
    before, uses = left(), 20
    for _ in range(uses):
        use()
    time.sleep(0.1)
    grown = [now - then for now, then in zip(left(), before, strict=True)]
    # What other tests of this process left may end or begin meanwhile: a leak grows with every use.
    assert max(grown) < uses // 2, (before, grown)


def tasks() -> int:
    async def count() -> int:
        return len(asyncio.all_tasks())

    return loop_thread().call(count())


def test_a_client_that_is_dropped_closes_its_connections(broker: tuple[ScriptedBroker, str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker[1]})
    admin.list_topics(timeout=5)
    scripted = broker[0]
    del admin
    gc.collect()
    deadline = time.monotonic() + 10
    while scripted.lost < scripted.connections and time.monotonic() < deadline:
        time.sleep(0.01)
    assert scripted.lost == scripted.connections


def test_many_threads_may_share_a_client(broker: tuple[ScriptedBroker, str]) -> None:
    with AdminClient({"bootstrap.servers": broker[1]}) as admin, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: admin.list_topics(timeout=5).cluster_id, range(80)))
    assert found == ["test"] * 80


def test_a_forked_child_is_told_to_make_a_new_client_and_can(broker: tuple[ScriptedBroker, str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker[1]})
    admin.list_topics(timeout=5)
    child = os.fork()
    if child == 0:
        os._exit(0 if child_is_told_and_goes_on(admin, broker[1]) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert admin.list_topics(timeout=5).cluster_id == "test"
    admin.close()


def child_is_told_and_goes_on(parents: AdminClient, servers: str) -> bool:
    try:
        parents.list_topics(timeout=1)
    except ClientClosedError as error:
        told = "before this process was forked" in str(error)
        parents.close()
        with AdminClient({"bootstrap.servers": servers}) as own:
            return told and own.list_topics(timeout=5).cluster_id == "test"
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_interrupts_a_waiting_call_within_100_ms() -> None:
    code = """
import sys, time
from headrace.admin import AdminClient
admin = AdminClient({"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None})
try:
    print("waiting", flush=True)
    admin.list_topics(timeout=60)
except KeyboardInterrupt:
    print(time.time(), flush=True)
    admin.close()
"""

    def interrupted_after_s() -> float:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        caught = float(process.stdout.readline())
        process.stdout.close()
        assert process.wait(20) == 0
        return caught - sent

    assert_quick(interrupted_after_s, 0.1)


def test_a_blocking_call_on_the_loop_itself_is_refused_instead_of_hanging() -> None:
    async def nested() -> None:
        loop_thread().call(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match=r"use headrace\.aio there"):
        loop_thread().call(nested())


def test_call_gives_up_in_time_and_cancels_the_work() -> None:
    cancelled = threading.Event()

    async def endless() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        loop_thread().call(endless(), timeout_s=0.1)
    assert cancelled.wait(20)


def test_a_result_that_comes_just_when_a_wait_ends_is_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    class JustDone(LoopCall[str]):
        def start(self) -> None:
            self._work.close()
            self._result, self.done = "here", True

    monkeypatch.setattr("headrace.net.thread.LoopCall", JustDone)
    assert loop_thread().call(asyncio.sleep(0, "never"), timeout_s=0) == "here"


def test_a_call_that_is_given_up_before_it_began_never_begins() -> None:
    thread, began = loop_thread(), list[str]()

    async def work() -> None:
        began.append("it did")

    call, given_up = LoopCall(thread, work(), lambda: None), threading.Event()
    thread.call_soon(given_up.wait, 20)
    call.start()
    call.give_up()
    given_up.set()
    thread.call(asyncio.sleep(0))
    assert (began, call.done) == ([], False)


def test_a_timeout_of_the_work_itself_comes_out_of_the_call() -> None:
    async def late() -> None:
        raise TimeoutError("of the work")

    with pytest.raises(TimeoutError, match="of the work"):
        loop_thread().call(late())


def test_a_function_that_raises_does_not_keep_the_loop_from_calling_the_next() -> None:
    thread, logged = loop_thread(), []
    held, called = threading.Event(), threading.Event()
    thread.loop.set_exception_handler(lambda _, context: logged.append(context["exception"]))
    thread.wake(lambda: held.wait(10))  # so that the next two are called in one turn
    thread.wake(lambda: 1 // 0)
    thread.wake(called.set)
    held.set()
    assert called.wait(10)
    thread.loop.set_exception_handler(None)
    assert [type(error) for error in logged] == [ZeroDivisionError]


@pytest.mark.skipif(not Alarm.exists, reason="alarms ring on Linux only, and in the native module")
def test_an_alarm_calls_a_function_on_its_loop_until_it_is_closed() -> None:
    called: list[tuple[float, bool]] = []

    def ring() -> None:
        called.append((time.monotonic(), loop_thread().is_here()))

    async def wait() -> tuple[float, float]:
        alarm = LoopAlarm(asyncio.get_running_loop(), ring)
        at = time.monotonic() + 0.05
        setter = threading.Thread(target=alarm.alarm.set, args=(at,))
        setter.start()
        await asyncio.sleep(0.2)
        setter.join()
        alarm.alarm.set(time.monotonic() + 0.05)
        alarm.close()
        await asyncio.sleep(0.1)
        return at, alarm.alarm.file

    at, file = loop_thread().call(wait())
    ((when, is_here),) = called
    assert (at <= when < at + 0.1, is_here, file) == (True, True, -1)


def test_the_fastest_way_to_a_loop_is_that_loops_own() -> None:
    thread = loop_thread()
    called = threading.Event()
    waking(thread.loop)(called.set)
    assert called.wait(10)
    other = asyncio.new_event_loop()
    assert waking(other) == other.call_soon_threadsafe
    other.close()
