"""One broker's connection by itself: in memory, on a clock that is a number, with whoever owns it looking on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.buffers import Lendable
from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.in_flight import ClientRequest
from headrace.machines.machine import Send
from headrace.net.connection import Connection
from headrace.net.settings import ConnectionSettings, ConnectionState, TakenBack
from headrace.net.stats import DirectExchange
from headrace.net.stream import FrameWriter
from headrace.testing.simulated_clock import SimulatedLoop
from headrace.types.records import NodeAddress
from headrace.wire.frame import RequestFrame, encode_response
from headrace.wire.messages.cluster.session import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse
from headrace.wire.schema import Request
from tests.support.scripted_broker import HANG_UP, SILENCE, ScriptedBroker

NODE = NodeAddress(1, "broker", 9092)


class Owner:
    """Notes what it is told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.inputs = 0

    def on_reply(self, call: ClientRequest, reply: object) -> None:
        self.told.append(("reply", call.send.context, getattr(reply, "error_code", None)))

    def on_error(self, call: ClientRequest, error: KafkaError) -> None:
        self.told.append(("error", call.send.context, error))

    def on_input(self) -> None:
        self.inputs += 1

    def on_ready(self) -> None:
        self.told.append(("ready",))

    def on_lost(self, node: NodeAddress, error: KafkaError) -> None:
        self.told.append(("lost", node.id, error))

    def on_open(self) -> None:
        pass

    def on_late(self, waiting: Sequence[ClientRequest]) -> None:
        self.told.append(("late", [call.send.context for call in waiting]))

    def on_hung_up(self) -> None:
        self.told.append(("hung up",))

    def on_silence(self, node: NodeAddress, since: float, reason: KafkaException) -> None:
        self.told.append(("silence", node.id, since))

    def all(self, what: str) -> list[Any]:
        return [entry[1:] for entry in self.told if entry[0] == what]


class Nobody:
    def on_reply(self, send: object, reply: object, now: float) -> None: ...
    def on_error(self, send: object, error: object, now: float) -> None: ...


class Bench:
    """A connection to a broker that answers heartbeats with the code 27, unless it is told otherwise."""

    def __init__(self, **settings: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.broker = ScriptedBroker(node1=("broker", 9092))
        self.broker.on(HeartbeatRequest, HeartbeatResponse(error_code=27))
        self.owner = Owner()
        self.connector: Callable[..., Awaitable[None]] = self.broker.connector
        self.dialled_at: list[float] = []
        given_ = {"client_id": "me", "software_version": "1", "connector": self.connect, "clock": self.loop.time,
                  "jitter": lambda: 0.5, "setup_timeout_s": 30.0, "backoff_s": 1.0, "backoff_max_s": 10.0,
                  "idle_s": float("inf"), "max_reply_bytes": 1 << 20, "protocol": "plaintext", **settings}
        self.connection = Connection(NODE, ConnectionSettings(**given_), self.owner)

    async def connect(self, protocol: asyncio.BufferedProtocol, node: NodeAddress) -> None:
        self.dialled_at.append(self.loop.time())
        await self.connector(protocol, node)

    def call(self, name: object = "a", timeout_s: float = 5.0, **fields: Any) -> ClientRequest:
        request: Request = fields.pop("request", None) or HeartbeatRequest(
            group_id="g", generation_id=1, member_id=str(name))
        grace_s = fields.pop("grace_s", 0.0)
        send = Send(1, request, timeout_s, context=name, **fields)
        return ClientRequest(Nobody(), send, self.loop.time() + timeout_s, grace_s)

    def submit(self, name: object = "a", timeout_s: float = 5.0, **fields: Any) -> ClientRequest:
        call = self.call(name, timeout_s, **fields)
        self.connection.submit(call)
        return call

    async def opened(self) -> "Bench":
        self.submit("first")
        await asyncio.sleep(0.001)
        assert self.connection.state is ConnectionState.READY
        self.owner.told.clear()
        return self

    def asked(self) -> list[str]:
        return [frame.request.member_id for frame in self.broker.seen if isinstance(frame.request, HeartbeatRequest)]

    def fill_with_each_write(self) -> None:
        """Let the kernel take each write, and be full behind it."""
        transport = self.broker.transports[-1]
        write = transport.write

        def full(data: Any) -> None:
            write(data)
            self.connection.pause_writing()

        transport.write = full  # type: ignore[method-assign]


async def refuse(protocol: object, node: object) -> None:
    raise ConnectionRefusedError


async def hang(protocol: object, node: object) -> None:
    await asyncio.get_running_loop().create_future()


def simulated(work: Callable[[], Any]) -> None:
    loop = SimulatedLoop()
    loop.run(work())
    assert loop.failures == []


# Out and back


def test_it_is_dialled_for_the_first_request_and_not_before() -> None:
    async def run() -> None:
        bench = Bench()
        await asyncio.sleep(100)
        assert (bench.connection.state, bench.broker.connections) == (ConnectionState.IDLE, 0)
        bench.submit()
        await asyncio.sleep(0.001)
        assert (bench.connection.state, bench.broker.connections) == (ConnectionState.READY, 1)
        assert bench.owner.told == [("ready",), ("reply", "a", 27)]

    simulated(run)


@given(st.lists(st.booleans(), max_size=30))
def test_requests_are_answered_once_and_in_order_whether_it_is_open_or_not(turns: list[bool]) -> None:
    async def run() -> None:
        bench = Bench()
        for number, turn in enumerate(turns):
            bench.submit(number)
            if turn:
                await asyncio.sleep(0)
        await asyncio.sleep(1)
        assert bench.owner.all("reply") == [(number, 27) for number in range(len(turns))]
        assert bench.owner.all("error") == []
        assert bench.broker.connections == min(len(turns), 1)
        assert bench.connection.load == 0

    simulated(run)


def test_what_waits_and_what_is_in_flight_is_counted() -> None:
    async def run() -> None:
        bench = Bench()
        bench.broker.on(HeartbeatRequest, SILENCE)
        for name in "abc":
            bench.submit(name)
        assert (bench.connection.queued, bench.connection.load) == ((3, 0), 3)
        await asyncio.sleep(0.001)
        assert (bench.connection.queued, bench.connection.load) == ((0, 3), 3)

    simulated(run)


def test_the_owner_may_decide_anew_once_for_all_that_came_in_one_piece() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        for name in "abc":
            bench.submit(name)
        await asyncio.sleep(0.001)
        before = bench.owner.inputs
        peer, sent = bench.broker.open[-1], []
        send, peer.send = peer.send, sent.append  # type: ignore[method-assign]
        for frame in bench.broker.seen[-3:]:
            peer.answer(frame, HeartbeatResponse())
        send(b"".join(sent))
        await asyncio.sleep(0.001)
        assert bench.owner.all("reply") == [("a", 0), ("b", 0), ("c", 0)]
        assert bench.owner.inputs == before + 1

    simulated(run)


def test_a_request_without_a_version_in_common_fails_alone() -> None:
    def heartbeats_are_unknown(frame: RequestFrame) -> ApiVersionsResponse:
        return ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)])

    async def run() -> None:
        bench = Bench()
        bench.broker.on(ApiVersionsRequest, heartbeats_are_unknown)
        bench.submit("unknown")
        bench.submit("versions", request=ApiVersionsRequest())
        await asyncio.sleep(0.001)
        [(name, error)] = bench.owner.all("error")
        assert (name, error.code(), error.maybe_applied) == ("unknown", KafkaError._UNSUPPORTED_FEATURE, False)
        assert bench.owner.all("reply") == [("versions", 0)]

    simulated(run)


def test_while_the_kernel_has_no_room_requests_wait_and_then_go_out_in_order() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.connection.pause_writing()
        for name in "abc":
            bench.submit(name)
        await asyncio.sleep(1)
        assert bench.asked() == ["first"]
        assert bench.connection.queued == (3, 0)
        bench.connection.resume_writing()
        await asyncio.sleep(0.001)
        assert bench.asked() == ["first", "a", "b", "c"]
        assert bench.owner.all("reply") == [("a", 27), ("b", 27), ("c", 27)]

    simulated(run)


def test_where_the_kernel_is_full_again_at_once_the_rest_goes_on_waiting() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.fill_with_each_write()
        bench.connection.pause_writing()
        for name in "abc":
            bench.submit(name)
        for written in (["a"], ["a", "b"], ["a", "b", "c"]):
            bench.connection.resume_writing()
            await asyncio.sleep(0.001)
            assert bench.asked() == ["first", *written]
            assert bench.connection.queued == (3 - len(written), 0)

    simulated(run)


def test_a_request_that_gets_no_reply_is_done_when_the_kernel_has_it() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        bench.connection.pause_writing()
        bench.submit(expects_reply=False)
        assert bench.owner.told == []
        bench.connection.resume_writing()
        assert bench.owner.told == [("reply", "a", None)]
        bench.submit("b", expects_reply=False)
        assert bench.owner.all("reply") == [("a", None), ("b", None)]
        assert bench.connection.load == 0

    simulated(run)


def test_a_request_without_reply_that_the_kernel_has_no_room_for_is_not_done_yet() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        bench.fill_with_each_write()
        bench.submit(expects_reply=False)
        assert bench.owner.told == []
        assert bench.connection.load == 1
        bench.connection.resume_writing()
        assert bench.owner.told == [("reply", "a", None)]

    simulated(run)


# Lending


class Borrower:
    """Writes nothing by itself; notes when it might."""

    request_name = "Heartbeat"

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.told: list[Any] = []
        self.calls: list[ClientRequest] = []
        self.rest: bytes | None = None
        self.data, self.taken, self.writes = b"", list[DirectExchange](), True

    @property
    def in_flight(self) -> int:
        return len(self.calls)

    def start(self, lent: Lendable, correlation_id: int, until: float) -> None:
        self.told.append(("start", lent, correlation_id, until - self.bench.loop.time()))
        self.next_id = correlation_id

    def stop(self) -> tuple[int, list[tuple[ClientRequest, int]], bytes | None]:
        self.told.append("stop")
        calls, self.calls = self.calls, []
        return self.next_id, [(call, 30) for call in calls], self.rest

    def take(self, data: memoryview, count: int) -> list[DirectExchange]:
        self.told.append("take")
        return []

    def start_reading(self) -> None:
        self.told.append("read")

    def stop_reading(self) -> bytes:
        self.told.append("read no more")
        return self.data

    def answered(self) -> list[DirectExchange]:
        taken, self.taken = self.taken, []
        return taken

    def end(self) -> None:
        self.told.append("end")

    def wrote(self, bench: Bench, name: str) -> None:
        """As if a request had been written."""
        call = bench.call(name, request=HeartbeatRequest(group_id="g", generation_id=1, member_id=name))
        call.send.version, call.correlation_id = 4, self.next_id
        self.next_id += 1
        self.calls.append(call)


async def ended(bench: Bench, ends: str) -> None:
    """The connection is closed from here, or lost."""
    if ends == "closed":
        bench.connection.close(KafkaException(KafkaError(KafkaError._TRANSPORT)))
    else:
        bench.broker.transports[-1].abort()
    await asyncio.sleep(0.001)


@pytest.fixture
def plain_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in memory has no descriptor."""
    monkeypatch.setattr(FrameWriter, "lendable", 99)


def test_what_is_in_memory_cannot_be_lent() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        assert not bench.connection.lend(Borrower(bench))

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_a_connection_is_lent_while_no_request_is_under_way() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        borrower = Borrower(bench)
        assert bench.connection.lend(borrower)
        ((_, lent, first, lent_s),) = borrower.told
        assert (lent, 0 < lent_s <= 30) == (99, True)
        bench.submit("a")
        assert borrower.told[1:] == ["stop"]
        await asyncio.sleep(0.001)
        assert bench.owner.all("reply") == [("a", 27)]
        assert borrower.told[2][:3] == ("start", 99, first + 1)

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_a_connection_is_not_lent_again_to_who_has_nothing_to_write() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        borrower, other = Borrower(bench), Borrower(bench)
        bench.connection.lend(borrower)
        borrower.writes = False
        bench.submit("a")
        await asyncio.sleep(0.001)
        assert borrower.told[1:] == ["stop", "end"]
        assert bench.connection.lend(other)

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_what_a_borrower_wrote_is_in_flight_before_what_is_submitted() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        borrower = Borrower(bench)
        bench.connection.lend(borrower)
        borrower.wrote(bench, "theirs")
        assert bench.connection.queued == (0, 1)
        bench.submit("ours")
        assert [call.send.context for call in bench.connection.pipeline.in_flight] == ["theirs", "ours"]
        ids = [call.correlation_id for call in bench.connection.pipeline.in_flight]
        assert ids == [ids[0], ids[0] + 1]

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_what_the_kernel_did_not_take_is_written_before_what_is_submitted() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        written: list[bytes] = []
        bench.broker.transports[-1].write = lambda data: written.append(bytes(data))  # type: ignore[method-assign]
        borrower = Borrower(bench)
        bench.connection.lend(borrower)
        borrower.rest = b"the rest"
        bench.submit("a")
        assert written[0] == b"the rest"
        assert len(written) > 1

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
@pytest.mark.parametrize("ends", ["closed", "lost"])
def test_a_connection_that_ends_fails_what_a_borrower_wrote_and_is_lent_no_more(ends: str) -> None:
    async def run() -> None:
        bench = await Bench().opened()
        borrower = Borrower(bench)
        bench.connection.lend(borrower)
        borrower.wrote(bench, "theirs")
        await ended(bench, ends)
        assert borrower.told[1:] == ["stop", "end"]
        assert [name for name, _ in bench.owner.all("error")] == ["theirs"]

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_a_reply_to_a_borrower_that_does_not_come_costs_the_connection() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        borrower = Borrower(bench)
        bench.connection.lend(borrower)
        borrower.wrote(bench, "theirs")
        await asyncio.sleep(31)
        ((name, error),) = bench.owner.all("error")
        assert (name, error.code()) == ("theirs", KafkaError._TIMED_OUT)

    simulated(run)


# Lending the replies as well


async def borrowed() -> tuple[Bench, Borrower]:
    """A connection whose replies are lent together with it."""
    bench = await Bench().opened()
    borrower = Borrower(bench)
    assert not bench.connection.lend_replies()
    bench.connection.lend(borrower)
    assert bench.connection.lend_replies()
    assert not bench.connection.lend_replies()
    assert borrower.told[1:] == ["read"]
    bench.broker.on(HeartbeatRequest, SILENCE)
    borrower.wrote(bench, "theirs")
    return bench, borrower


@pytest.mark.usefixtures("plain_socket")
def test_replies_that_are_lent_do_not_come_to_the_loop() -> None:
    async def run() -> None:
        bench, borrower = await borrowed()
        bench.broker.transports[-1].deliver(answer_to(borrower.calls[0]))
        await asyncio.sleep(0.001)
        assert (bench.owner.told, borrower.told[2:]) == ([], [])
        bench.connection.take_back_replies()
        bench.connection.take_back_replies()
        await asyncio.sleep(0.001)
        assert borrower.told[2:5] == ["read no more", "take", "stop"]
        assert bench.owner.all("reply") == [("theirs", 27)]

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
@pytest.mark.parametrize("cut", [3, 100])
def test_what_a_borrower_received_and_did_not_take_is_read_first(cut: int) -> None:
    async def run() -> None:
        bench, borrower = await borrowed()
        reply = answer_to(borrower.calls[0])
        borrower.data = reply[:cut]
        if reply[cut:]:
            bench.broker.transports[-1].deliver(reply[cut:])
        await asyncio.sleep(0.001)
        after = bench.submit("ours")
        assert borrower.told[2:] == ["read no more", "stop"]
        bench.broker.transports[-1].deliver(answer_to(after, 0))
        await asyncio.sleep(0.001)
        assert bench.owner.all("reply") == [("theirs", 27), ("ours", 0)]

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_what_a_borrower_did_not_take_may_be_more_than_is_received_at_a_time() -> None:
    async def run() -> None:
        bench, borrower = await borrowed()
        for number in range(6_000):
            borrower.wrote(bench, str(number))
        borrower.data = b"".join(answer_to(call) for call in borrower.calls)
        assert len(borrower.data) > 65_536
        bench.connection.take_back()
        await asyncio.sleep(0.001)
        assert bench.owner.all("reply") == [("theirs", 27), *((str(number), 27) for number in range(6_000))]

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_what_a_borrower_took_is_counted_once() -> None:
    async def run() -> None:
        bench, borrower = await borrowed()
        counts = bench.connection._traffic
        before = counts.tx, counts.rx, counts.tx_bytes, counts.rx_bytes
        now = bench.loop.time()
        borrower.taken = [DirectExchange(30, 20, now, now), DirectExchange(31, 21, now, now + 0.25)]
        bench.connection.count_replies()
        borrower.calls.clear()
        bench.connection.take_back()
        after = counts.tx, counts.rx, counts.tx_bytes, counts.rx_bytes
        assert [new - old for new, old in zip(after, before, strict=True)] == [2, 2, 61, 41]
        assert counts.round_trip_us.metrics()["max"] == 250_000

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
@pytest.mark.parametrize("ends", ["closed", "lost"])
def test_a_connection_that_ends_under_a_borrower_that_reads_fails_what_it_wrote(ends: str) -> None:
    async def run() -> None:
        bench, borrower = await borrowed()
        await ended(bench, ends)
        assert borrower.told[2:] == ["read no more", "stop", "end"]
        assert [name for name, _ in bench.owner.all("error")] == ["theirs"]

    simulated(run)


# Lending what comes back


class OtherReader:
    """Takes replies from another thread, as far as a test says."""

    request_name = "Heartbeat"

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.data, self.rest, self.exchanges = b"", None, 0
        self.next: ClientRequest | None = None

    def start(self, lent: Lendable, call: ClientRequest) -> None:
        self.told.append(("start", lent, call.send.context))
        self.call = call

    def stop(self) -> TakenBack:
        self.told.append("stop")
        return TakenBack(self.next or self.call, self.data, self.rest, self.exchanges, 40 * self.exchanges,
                         20 * self.exchanges)


async def reading(**settings: Any) -> tuple[Bench, OtherReader, ClientRequest]:
    """A connection whose reply is awaited by another thread."""
    bench, reader = await Bench(**settings).opened(), OtherReader()
    bench.broker.on(HeartbeatRequest, SILENCE)
    call = bench.submit("theirs")
    assert bench.connection.lend_reading(reader, call.send)
    assert reader.told == [("start", 99, "theirs")]
    return bench, reader, call


def answer_to(call: ClientRequest, code: int = 27) -> bytes:
    return b"".join(encode_response(HeartbeatResponse(error_code=code), call.send.version, call.correlation_id))


def test_replies_in_memory_or_encrypted_cannot_be_lent() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        assert not bench.connection.lend_reading(OtherReader(), bench.submit("a").send)

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_only_the_reply_to_the_only_request_is_lent_before_it_begins_to_come() -> None:
    async def run() -> None:
        bench, reader = await Bench().opened(), OtherReader()
        bench.broker.on(HeartbeatRequest, SILENCE)
        first = bench.submit("a")
        assert not bench.connection.lend_reading(reader, bench.call("another").send)
        bench.broker.transports[-1].deliver_now(answer_to(first)[:3])
        assert not bench.connection.lend_reading(reader, first.send)
        bench.broker.transports[-1].deliver_now(answer_to(first)[3:])
        assert bench.owner.all("reply") == [("a", 27)]
        second, third = bench.submit("b"), bench.submit("c")
        assert not bench.connection.lend_reading(reader, second.send)
        assert not bench.connection.lend_reading(reader, third.send)
        assert reader.told == []

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
@pytest.mark.parametrize("cut", [0, 3, 100])
def test_what_came_and_was_not_taken_is_read_before_what_comes_later(cut: int) -> None:
    async def run() -> None:
        bench, reader, call = await reading()
        assert bench.connection.queued == (0, 1)
        transport = bench.broker.transports[-1]
        reader.data, rest = answer_to(call)[:cut], answer_to(call)[cut:]
        if rest:
            transport.deliver(rest)  # while nobody of the loop reads
        await asyncio.sleep(0.001)
        assert bench.owner.told == []
        after = bench.submit("ours")
        assert reader.told[1:] == ["stop"]
        assert after.correlation_id == call.correlation_id + 1
        transport.deliver(answer_to(after, 0))
        await asyncio.sleep(0.001)
        assert bench.owner.all("reply") == [("theirs", 27), ("ours", 0)]

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_the_request_that_is_in_flight_when_it_is_taken_back_is_awaited_like_others() -> None:
    async def run() -> None:
        bench, reader, call = await reading()
        reader.exchanges, reader.next = 3, bench.call("the fourth")
        reader.next.send.version, reader.next.correlation_id = call.send.version, call.correlation_id + 3
        bench.connection.take_back()
        bench.connection.take_back()
        assert reader.told[1:] == ["stop"]
        assert bench.submit("ours").correlation_id == call.correlation_id + 4
        counts = bench.connection._traffic
        assert (counts.requests["Heartbeat"], counts.rx) == (2 + 3 + 1, 2 + 3)
        bench.broker.transports[-1].deliver(answer_to(reader.next))
        await asyncio.sleep(0.001)
        assert bench.owner.all("reply") == [("the fourth", 27)]

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_the_rest_of_a_request_is_written_first() -> None:
    async def run() -> None:
        bench, reader, _ = await reading()
        written: list[bytes] = []
        bench.broker.transports[-1].write = lambda data: written.append(bytes(data))  # type: ignore[method-assign]
        reader.rest = b"the rest"
        bench.submit("a")
        assert written[0] == b"the rest"
        assert len(written) > 1

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
@pytest.mark.parametrize("ends", ["closed", "lost"])
def test_a_connection_that_ends_fails_what_another_thread_awaits(ends: str) -> None:
    async def run() -> None:
        bench, reader, call = await reading()
        reader.data = answer_to(call)  # of a connection that is no more
        await ended(bench, ends)
        assert reader.told[1:] == ["stop"]
        assert [name for name, _ in bench.owner.all("error")] == ["theirs"]
        assert bench.owner.all("reply") == []

    simulated(run)


@pytest.mark.usefixtures("plain_socket")
def test_nothing_is_lent_for_longer_than_half_a_minute_and_what_is_overdue_costs_the_connection() -> None:
    async def run() -> None:
        bench, reader, _ = await reading()
        await asyncio.sleep(4)
        assert reader.told[1:] == []
        await asyncio.sleep(2)  # it was to be answered within 5 s
        assert reader.told[1:] == ["stop"]
        ((name, error),) = bench.owner.all("error")
        assert (name, error.code()) == ("theirs", KafkaError._TIMED_OUT)
        bench, reader = await Bench().opened(), OtherReader()
        bench.broker.on(HeartbeatRequest, SILENCE)
        bench.connection.lend_reading(reader, bench.submit("long", timeout_s=100).send)
        await asyncio.sleep(31)
        assert reader.told[1:] == ["stop"]
        assert bench.owner.told == []

    simulated(run)


# Giving up


def test_a_request_that_is_withdrawn_before_it_is_written_never_is() -> None:
    async def run() -> None:
        bench = Bench()
        kept, withdrawn = bench.submit("kept"), bench.submit("withdrawn")
        error = bench.connection.withdraw(withdrawn)
        assert (error.code(), error.maybe_applied) == (KafkaError._TIMED_OUT, False)
        await asyncio.sleep(0.001)
        assert bench.asked() == ["kept"]
        assert bench.owner.all("reply") == [(kept.send.context, 27)]
        assert bench.owner.all("error") == []

    simulated(run)


def test_a_request_that_is_withdrawn_behind_that_may_have_been_carried_out() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        error = bench.connection.withdraw(bench.submit())
        assert (error.code(), error.maybe_applied) == (KafkaError._TIMED_OUT, True)
        assert "no reply to HeartbeatRequest" in error.str()
        assert bench.connection.queued == (0, 1)

    simulated(run)


def test_a_request_that_is_withdrawn_as_its_connection_is_lost_hears_what_ended_it() -> None:
    async def run() -> None:
        bench = Bench()
        bench.connector = refuse
        call = bench.submit()
        await asyncio.sleep(0.001)
        assert [name for name, _ in bench.owner.all("error")] == ["a"]
        error = bench.connection.withdraw(call)  # its owner had given up a moment before, and did not listen
        assert (error.code(), error.maybe_applied) == (KafkaError._TRANSPORT, False)
        assert "refused" in error.str()

    simulated(run)


def test_time_that_ends_short_of_the_next_answer_does_not_hide_what_the_last_one_was() -> None:
    async def run() -> None:
        bench = Bench()
        bench.broker.on(HeartbeatRequest, b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
        bench.submit("first")
        await asyncio.sleep(0.001)
        bench.broker.on(HeartbeatRequest, SILENCE)
        bench.submit("cut", timeout_s=2.0)
        await asyncio.sleep(1.5)  # it was dialled anew, and the request is written
        given_up = bench.submit("given up")
        assert "503 Service Unavailable" in bench.connection.withdraw(given_up).str()
        await asyncio.sleep(2.0)
        errors = dict(bench.owner.all("error"))
        assert errors["cut"] == KafkaError._TIMED_OUT
        assert "was not answered within 2 s, the connection is given up; last error: " in errors["cut"].str()
        assert "503 Service Unavailable" in errors["cut"].str()
        bench.submit("next", timeout_s=5.0)
        await asyncio.sleep(10.0)
        error = dict(bench.owner.all("error"))["next"]
        assert "was not answered within 5 s" in error.str()
        assert "last error" not in error.str()  # no chain of them

    simulated(run)


def test_a_request_that_cannot_be_written_in_time_fails_at_its_time_and_the_others_go_on_waiting() -> None:
    async def run() -> None:
        bench = Bench()
        bench.connector = hang
        bench.submit("soon", 1.0)
        bench.submit("late", 20.0)
        await asyncio.sleep(0.999)
        assert bench.owner.told == []
        await asyncio.sleep(0.002)
        [(name, error)] = bench.owner.all("error")
        assert (name, error.code(), error.maybe_applied) == ("soon", KafkaError._TIMED_OUT, False)
        assert "not sent within 1 s: broker:9092: still connecting" in error.str()
        assert bench.connection.queued == (1, 0)

    simulated(run)


def test_each_request_that_cannot_be_written_fails_at_its_own_time() -> None:
    async def run() -> None:
        bench = Bench()
        bench.connector = hang
        for timeout_s in (3.0, 1.0, 4.0, 2.0):
            bench.submit(timeout_s, timeout_s)
        for second in (1.0, 2.0, 3.0, 4.0):
            await asyncio.sleep(second - bench.loop.time() + 0.01)
            assert bench.owner.all("error")[-1][0] == second
        assert len(bench.owner.all("error")) == 4

    simulated(run)


@pytest.mark.parametrize("grace_s", [0.0, 7.0])
def test_a_reply_that_is_overdue_costs_the_connection_and_grace_puts_that_off(grace_s: float) -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        bench.submit("slow", 2.0, grace_s=grace_s)
        bench.submit("behind", 60.0)
        await asyncio.sleep(2.0 + grace_s - 0.01)
        assert bench.owner.told == []
        await asyncio.sleep(0.02)
        errors = dict(bench.owner.all("error"))
        assert set(errors) == {"slow", "behind"}
        assert {error.code() for error in errors.values()} == {KafkaError._TIMED_OUT}
        assert all(error.maybe_applied for error in errors.values())
        assert f"HeartbeatRequest was not answered within {2 + grace_s:g} s" in errors["slow"].str()
        assert len(bench.owner.all("silence")) == 1
        assert bench.broker.transports[-1].closed

    simulated(run)


def throttle_once(frame: RequestFrame) -> HeartbeatResponse | str:
    """Slows down for 10 seconds who sends the request "throttled"; others get no answer."""
    assert isinstance(frame.request, HeartbeatRequest)
    return HeartbeatResponse(throttle_time_ms=10_000) if frame.request.member_id == "throttled" else SILENCE


@pytest.mark.parametrize(("most_s", "until"), [(float("inf"), 12.0), (6.0, 6.0)])
def test_what_waits_behind_a_throttled_reply_is_not_late_for_that_unless_it_must_not_wait(
    most_s: float, until: float
) -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, throttle_once)
        bench.submit("throttled", 2.0)
        bench.submit("behind", 2.0, most_s=most_s)
        await asyncio.sleep(until - 0.01)
        assert bench.owner.told == [("reply", "throttled", 0)]
        await asyncio.sleep(0.02)
        assert bench.broker.transports[-1].closed

    simulated(run)


def test_a_request_to_a_broker_that_reads_nothing_yet_is_not_late_for_that() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, throttle_once)
        bench.submit("throttled")
        await asyncio.sleep(4.0)
        bench.submit("behind", 2.0)
        await asyncio.sleep(7.9)
        assert bench.owner.all("error") == []
        await asyncio.sleep(0.2)
        assert bench.broker.transports[-1].closed

    simulated(run)


GIVEN_UP = KafkaException(KafkaError(KafkaError._TIMED_OUT, "another one was given up"))


@pytest.mark.parametrize(("asked_at", "stays"), [(4.0, True), (6.0, False)])
def test_a_connection_is_given_up_with_another_one_unless_something_has_come_since(
    asked_at: float, stays: bool
) -> None:
    async def run() -> None:
        bench = await Bench().opened()
        start = bench.loop.time()
        await asyncio.sleep(5.0)
        bench.submit("answered")
        await asyncio.sleep(0.001)
        bench.broker.on(HeartbeatRequest, SILENCE)
        bench.submit("held back", 300.0)
        bench.owner.told.clear()
        bench.connection.doubt(start + asked_at, GIVEN_UP)
        await asyncio.sleep(0.001)
        assert [name for name, _ in bench.owner.all("error")] == ([] if stays else ["held back"])

    simulated(run)


def test_a_connection_that_nobody_uses_is_given_up_with_another_one_and_nobody_is_told() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        await asyncio.sleep(5.0)
        bench.connection.doubt(bench.loop.time() - 1.0, GIVEN_UP)
        await asyncio.sleep(0.001)
        assert (bench.owner.told, bench.connection.state) == ([], ConnectionState.IDLE)
        bench.submit("next")
        await asyncio.sleep(0.001)
        assert bench.owner.all("reply") == [("next", 27)]

    simulated(run)


# Endings


def test_a_lost_connection_fails_what_was_written_and_what_waits_and_tells_them_apart() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.on(HeartbeatRequest, HANG_UP)
        bench.submit("written")
        bench.connection.pause_writing()
        bench.submit("waiting")
        await asyncio.sleep(0.001)
        assert [(name, error.code(), error.maybe_applied) for name, error in bench.owner.all("error")] == [
            ("written", KafkaError._TRANSPORT, True), ("waiting", KafkaError._TRANSPORT, False)]
        assert [node for node, _ in bench.owner.all("lost")] == [1]
        assert bench.connection.last_error == KafkaError._TRANSPORT

    simulated(run)


def test_a_broker_that_hangs_up_when_nothing_is_awaited_has_done_no_harm() -> None:
    async def run() -> None:
        bench = await Bench().opened()
        bench.broker.open[-1].hang_up()
        await asyncio.sleep(0.001)
        assert bench.owner.told == [("hung up",)]
        assert (bench.connection.state, bench.connection.failures) == (ConnectionState.IDLE, 0)
        bench.submit("again")
        await asyncio.sleep(0.001)
        assert bench.owner.all("reply") == [("again", 27)]

    simulated(run)


async def failures(bench: Bench, count: int) -> list[float]:
    """The waits between attempts of which all fail."""
    bench.connector = refuse
    bench.dialled_at.clear()
    for number in range(count):
        bench.submit(number, 100.0)
        while len(bench.dialled_at) <= number:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
    return [later - earlier for earlier, later in zip(bench.dialled_at, bench.dialled_at[1:], strict=False)]


def test_the_waits_between_attempts_double_up_to_their_limit() -> None:
    async def run() -> None:
        bench = Bench(backoff_s=1.0, backoff_max_s=4.0)
        assert await failures(bench, 6) == pytest.approx([1, 2, 4, 4, 4], abs=0.05)
        assert bench.connection.failures == 6
        assert bench.connection.last_error == KafkaError._TRANSPORT
        assert "6 attempts in" in bench.owner.all("error")[-1][1].str()

    simulated(run)


@pytest.mark.parametrize("stage", ["not begun", "dialling", "connected"])
def test_a_dial_that_others_cancel_is_tried_again_and_nobody_is_told(stage: str) -> None:
    """As programs do that cancel all tasks of their loop and then flush or commit; and `asyncio.run` as it ends."""
    async def run() -> None:
        bench = Bench()

        async def never_returns(protocol: asyncio.BufferedProtocol, node: NodeAddress) -> None:
            if stage == "connected":
                bench.broker.on(ApiVersionsRequest, SILENCE)
                await bench.broker.connector(protocol, node)
            try:
                await hang(protocol, node)
            except asyncio.CancelledError:
                for open_ in bench.broker.open[:]:  # as asyncio does
                    open_.hang_up()
                raise

        bench.connector = never_returns
        bench.submit("lost")
        if stage != "not begun":
            await asyncio.sleep(0.001)
        assert bench.connection.dialling is not None
        bench.connection.dialling.cancel()
        await asyncio.sleep(0.001)
        assert [entry[0] for entry in bench.owner.told] == ["error"], "a call may be made again"
        healthy = Bench().broker
        bench.connector = healthy.connector
        bench.submit("again")
        await asyncio.sleep(1.1)  # the first wait between attempts
        assert bench.owner.all("reply") == [("again", 27)]
        assert not bench.owner.all("lost")

    simulated(run)


def test_one_answer_ends_a_row_of_failures() -> None:
    async def run() -> None:
        bench = Bench(backoff_s=1.0, backoff_max_s=4.0)
        await failures(bench, 4)
        bench.connector = bench.broker.connector
        bench.submit("at last")
        await asyncio.sleep(4)
        assert bench.owner.all("reply") == [("at last", 27)]
        assert (bench.connection.failures, bench.connection.last_error) == (0, None)
        bench.broker.open[-1].hang_up()
        await asyncio.sleep(0.001)
        assert await failures(bench, 3) == pytest.approx([1, 2], abs=0.05)

    simulated(run)


def test_it_is_closed_when_it_was_not_used_for_long_enough_and_nobody_is_told() -> None:
    async def run() -> None:
        bench = await Bench(idle_s=10.0).opened()
        await asyncio.sleep(9)
        bench.submit("keeps it open")
        await asyncio.sleep(9)
        assert not bench.broker.transports[-1].closed
        bench.owner.told.clear()
        await asyncio.sleep(2)
        assert bench.broker.transports[-1].closed
        assert (bench.owner.told, bench.connection.state) == ([], ConnectionState.IDLE)

    simulated(run)


def test_it_is_not_closed_while_a_reply_is_awaited() -> None:
    async def run() -> None:
        bench = await Bench(idle_s=10.0).opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        bench.submit(timeout_s=60.0)
        await asyncio.sleep(50)
        assert not bench.broker.transports[-1].closed

    simulated(run)


@pytest.mark.parametrize("dialling", [True, False], ids=["no socket", "no answer"])
def test_an_opening_that_takes_long_is_told_and_in_the_end_given_up(dialling: bool) -> None:
    async def run() -> None:
        bench = Bench(setup_timeout_s=3.0)
        if dialling:
            bench.connector = hang
        bench.broker.on(ApiVersionsRequest, SILENCE)
        bench.submit(timeout_s=60.0)
        await asyncio.sleep(1.99)
        assert bench.owner.told == []
        await asyncio.sleep(1.0)
        assert bench.owner.told == [("late", ["a"])]
        assert bench.connection.late
        await asyncio.sleep(0.02)
        assert not bench.connection.late
        [(_, error)] = bench.owner.all("error")
        assert (error.code(), error.maybe_applied) == (KafkaError._TRANSPORT, False)
        assert "no connection after 3 s" in error.str()
        assert bench.connection.state is ConnectionState.BACKOFF

    simulated(run)


def test_a_renewal_waits_for_what_the_broker_holds_back_and_is_given_up_when_it_says_nothing_then() -> None:
    async def run() -> None:
        bench = await Bench(setup_timeout_s=3.0).opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        bench.submit("held", timeout_s=60.0)
        await asyncio.sleep(0.001)
        bench.connection._opening.handshake.ready = False  # as is that of the next session
        bench.connection.on_pause()
        await asyncio.sleep(10.0)
        assert bench.owner.told == []
        bench.broker.open[-1].answer(bench.broker.seen[-1], HeartbeatResponse())
        await asyncio.sleep(3.0)
        assert bench.owner.all("reply") == [("held", 0)]
        [(_, error)] = bench.owner.all("lost")
        assert "no connection after 3 s" in error.str()

    simulated(run)


def test_one_that_is_open_in_time_stays_open() -> None:
    async def run() -> None:
        bench = await Bench(setup_timeout_s=3.0).opened()
        await asyncio.sleep(100)
        assert bench.connection.state is ConnectionState.READY
        assert bench.owner.told == []

    simulated(run)


@pytest.mark.parametrize("opened", [True, False])
def test_closing_fails_all_that_waits_for_it_once_however_often_it_is_said(opened: bool) -> None:
    async def run() -> None:
        bench = Bench()
        if opened:
            await bench.opened()
        bench.broker.on(HeartbeatRequest, SILENCE)
        for name in "ab":
            bench.submit(name)
        for _ in range(3):
            bench.connection.close(KafkaException(KafkaError(KafkaError._DESTROY, "the client is closed")))
        await asyncio.sleep(0.001)
        assert [(name, error.code()) for name, error in bench.owner.all("error")] == [
            ("a", KafkaError._DESTROY), ("b", KafkaError._DESTROY)]
        assert bench.connection.load == 0
        assert all(transport.closed for transport in bench.broker.transports)

    simulated(run)


def test_the_features_of_the_cluster_are_known_once_it_is_open() -> None:
    from headrace.wire.messages.cluster.session import FinalizedFeatureKey

    def with_features(frame: RequestFrame) -> ApiVersionsResponse:
        return ApiVersionsResponse(api_keys=[ApiVersion(api_key=12, min_version=0, max_version=4)],
                                   finalized_features_epoch=1, finalized_features=[FinalizedFeatureKey(
                                       name="transaction.version", max_version_level=2, min_version_level=0)])

    async def run() -> None:
        bench = Bench()
        assert bench.connection.features == {}
        bench.broker.on(ApiVersionsRequest, with_features)
        await bench.opened()
        assert bench.connection.features == {"transaction.version": 2}

    simulated(run)


CLOSED = KafkaException(KafkaError(KafkaError._DESTROY, "the client is closed"))


def test_what_is_closed_while_it_waits_to_dial_again_fails_its_requests_and_dials_no_more() -> None:
    async def run() -> None:
        bench = Bench(setup_timeout_s=2.0)
        bench.broker.on(ApiVersionsRequest, SILENCE)
        bench.submit("a")
        while bench.connection.state is not ConnectionState.BACKOFF:  # it has closed by itself
            await asyncio.sleep(0.1)
        bench.submit("b", timeout_s=1000.0)
        bench.connection.close(CLOSED)
        assert [name for name, _ in bench.owner.all("error")] == ["a", "b"]
        assert bench.owner.all("error")[-1][1] == KafkaError._DESTROY
        await asyncio.sleep(100)
        assert len(bench.dialled_at) == 1

    simulated(run)


def test_what_is_closed_while_it_closes_to_begin_anew_does_not_begin() -> None:
    async def run() -> None:
        bench = Bench()

        def unreadable(frame: RequestFrame) -> bytes:
            bench.loop.call_soon(lambda: bench.loop.call_soon(close))  # right behind the answer
            return b"\x00\x00\x00\x06" + b"\x00\x00\x00\x00\x00\x00"

        def close() -> None:
            seen.append(bench.connection.state)
            bench.connection.close(CLOSED)

        seen: list[ConnectionState] = []
        bench.broker.on(ApiVersionsRequest, unreadable)
        bench.submit("a", timeout_s=1000.0)
        await asyncio.sleep(100)
        assert seen[0] is ConnectionState.CLOSING
        assert len(bench.dialled_at) == 1
        assert bench.owner.all("error") == [("a", KafkaError._DESTROY)]

    simulated(run)
