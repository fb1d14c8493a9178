"""What is counted of requests and replies, broker by broker."""

import gc
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import KafkaError
from headrace.machines.cluster.in_flight import ClientRequest
from headrace.machines.machine import Send
from headrace.net.stats import BrokerStats, ClientStats, DirectExchange, Window, request_name
from headrace.types.records import NodeAddress, ThrottleEvent
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse

NODE = NodeAddress(3, "broker", 9092)
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class Nobody:
    def on_reply(self, send: object, reply: object, now: float) -> None: ...
    def on_error(self, send: object, error: object, now: float) -> None: ...


def call(node_id: int = 3, correlation_id: int = -1, written_at: float = 0.0) -> ClientRequest:
    made = ClientRequest(Nobody(), Send(node_id, HEARTBEAT, 5.0, node_id=node_id), 30.0)
    made.correlation_id, made.written_at = correlation_id, written_at
    return made


def counts() -> BrokerStats:
    return ClientStats().of(NODE)


# Windows


def test_a_window_has_the_percentiles_of_the_last_thousand_values() -> None:
    window = Window()
    assert set(window.metrics().values()) == {0}
    for value in range(1, 2001):
        window.add(value)
    metrics = window.metrics()
    assert (metrics["min"], metrics["max"], metrics["cnt"], metrics["sum"]) == (1001, 2000, 1000, 1_500_500)
    assert (metrics["p50"], metrics["p75"], metrics["p99"], metrics["p99_99"]) == (1500, 1750, 1990, 2000)
    assert metrics["stddev"] == 288


@given(st.lists(st.integers(0, 10_000_000), min_size=1, max_size=1_300))
def test_a_window_looks_like_its_last_values(values: list[int]) -> None:
    window = Window()
    for value in values:
        window.add(value)
    metrics, kept = window.metrics(), sorted(values[-1_000:])
    assert (metrics["min"], metrics["max"], metrics["sum"], metrics["cnt"]) == (
        kept[0], kept[-1], sum(kept), len(kept))
    assert metrics["avg"] == sum(kept) // len(kept)
    assert metrics["stddev"] == pytest.approx(statistics.pstdev(kept), abs=1)
    for name, share in (("p50", 5_000), ("p75", 7_500), ("p90", 9_000), ("p95", 9_500), ("p99", 9_900),
                        ("p99_99", 9_999)):
        at_least = -(-share * len(kept) // 10_000)  # so many values are not above it: the least of which that is true
        assert metrics[name] == kept[at_least - 1]  # type: ignore[literal-required]


# Brokers


def test_a_broker_is_named_by_its_address_and_its_id_once_that_is_known() -> None:
    assert ClientStats().of(NODE).name == "broker:9092/3"
    assert ClientStats().of(NodeAddress(-2, "broker", 9092)).name == "broker:9092/bootstrap"


def test_what_is_written_is_counted_with_its_bytes_and_by_its_name() -> None:
    broker = counts()
    broker.on_sent(HEARTBEAT, 8)
    broker.on_sent(HEARTBEAT, 1)
    broker.on_sent(ApiVersionsRequest(), 2)
    broker.on_sent(b"a bare token", 9)
    assert (broker.tx, broker.tx_bytes) == (4, 8 + 1 + 2 + 9)
    assert broker.requests == {"Heartbeat": 2, "ApiVersion": 1, "SaslAuthenticate": 1}


def test_what_comes_is_counted_with_the_four_bytes_of_its_length() -> None:
    broker = counts()
    broker.on_received(b"123")
    broker.answered(call(), HeartbeatResponse(), memoryview(b"12345"), 0.0)
    assert (broker.rx, broker.rx_bytes) == (2, 4 + 3 + 4 + 5)


def test_exchanges_are_counted_as_requests_and_replies() -> None:
    broker = counts()
    broker.on_exchanges(request_name(HEARTBEAT), [DirectExchange(30, 15, 1.75, 2.0), DirectExchange(31, 25, 2.5, 3.0)])
    assert (broker.tx, broker.tx_bytes, broker.rx, broker.rx_bytes) == (2, 61, 2, 40)
    assert broker.requests == {"Heartbeat": 2}
    assert (broker.round_trip_us.metrics()["min"], broker.round_trip_us.metrics()["max"]) == (250_000, 500_000)
    assert broker.throttle_ms.metrics()["cnt"] == 2


def test_a_round_trip_is_from_the_request_to_its_reply_in_microseconds() -> None:
    broker = counts()
    for written_at, now in ((1.0, 1.25), (2.0, 2.75)):
        broker.answered(call(written_at=written_at), HeartbeatResponse(), b"", now)
    metrics = broker.round_trip_us.metrics()
    assert (metrics["min"], metrics["max"], metrics["cnt"]) == (250_000, 750_000, 2)


@pytest.mark.parametrize(("throttle_ms", "told"), [(0, []), (1500, [ThrottleEvent("broker:9092", 3, 1.5)])])
def test_a_broker_that_slows_the_client_down_is_told_of(throttle_ms: int, told: list[ThrottleEvent]) -> None:
    client, events = ClientStats(), list[ThrottleEvent]()
    client.of(NODE).answered(call(), HeartbeatResponse(throttle_time_ms=throttle_ms), b"", 0.0)  # nobody listens
    client.on_throttle = events.append
    client.of(NODE).answered(call(), HeartbeatResponse(throttle_time_ms=throttle_ms), b"", 0.0)
    assert events == told
    assert client.of(NODE).throttle_ms.metrics()["sum"] == 2 * throttle_ms


def test_the_end_of_what_slows_a_client_down_is_told_once_with_zero_as_in_librdkafka() -> None:
    """Else who shows the last figure shows it for ever."""
    client, events = ClientStats(), list[ThrottleEvent]()
    client.on_throttle = events.append
    for throttle_ms, now in ((0, 1.0), (1500, 2.0), (0, 3.0), (0, 3.5), (0, 3.6)):
        client.of(NODE).answered(call(), HeartbeatResponse(throttle_time_ms=throttle_ms), b"", now)
    assert [event.throttle_time for event in events] == [1.5, 0.0]


def test_a_bootstrap_server_that_slows_a_client_down_has_the_id_of_librdkafkas() -> None:
    client, events = ClientStats(), list[ThrottleEvent]()
    client.on_throttle = events.append
    client.of(NodeAddress(-1000, "broker", 9092)).answered(call(), HeartbeatResponse(throttle_time_ms=1), b"", 1.0)
    assert [event.broker_id for event in events] == [-1]


@pytest.mark.parametrize(("code", "correlation_id", "counted"), [
    (KafkaError._TIMED_OUT, 5, "timeouts"),
    (KafkaError._TIMED_OUT, -1, "timeouts"),
    (KafkaError._TRANSPORT, -1, "tx_errors"),
    (KafkaError._UNSUPPORTED_FEATURE, -1, "tx_errors"),
    (KafkaError._TRANSPORT, 0, "rx_errors"),
])
def test_a_failure_is_counted_once_for_what_it_is(code: int, correlation_id: int, counted: str) -> None:
    client = ClientStats()
    broker = client.of(NODE)
    client.failed(call(correlation_id=correlation_id), KafkaError(code))
    assert {name: getattr(broker, name) for name in ("timeouts", "tx_errors", "rx_errors")} == {
        "timeouts": 0, "tx_errors": 0, "rx_errors": 0, counted: 1}


def test_a_request_that_came_to_no_broker_is_no_brokers_failure() -> None:
    client = ClientStats()
    client.failed(call(node_id=-1), KafkaError(KafkaError._TRANSPORT))
    assert client.brokers == {}


def test_counts_go_on_when_a_broker_moves_and_differ_from_broker_to_broker() -> None:
    client = ClientStats()
    client.of(NODE).on_received(b"")
    client.of(NodeAddress(4, "broker", 9092)).on_received(b"")
    moved = client.of(NodeAddress(3, "elsewhere", 9093))
    moved.on_received(b"")
    assert (moved.name, moved.rx) == ("elsewhere:9093/3", 2)
    assert {node_id: broker.rx for node_id, broker in client.brokers.items()} == {3: 2, 4: 1}


def test_connections_that_are_gone_are_not_kept() -> None:
    class Connected:
        state: Any = None
        queued = (0, 0)

    broker, connection = counts(), Connected()
    broker.connections.add(connection)
    assert [*broker.connections] == [connection]
    del connection
    gc.collect()
    assert [*broker.connections] == []
