"""Counts what goes to brokers and comes back: per request, never per record.

One `ClientStats` belongs to one client; its connections, and the driver for failures, count into it, all on the loop.
It must not know what requests mean. Read next: `client.statistics`, which reads it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakSet

from headrace.errors import KafkaError
from headrace.machines.cluster.in_flight import ClientRequest
from headrace.types.records import NodeAddress, ThrottleEvent
from headrace.wire.schema import Struct

if TYPE_CHECKING:
    from headrace.types.metrics import WindowMetrics

__all__ = ["BrokerStats", "Counted", "ClientStats", "DirectExchange", "Window", "request_name"]

_SAMPLES = 1_000
_LENGTH_BYTES = 4
_OTHER_NAMES = {"ApiVersions": "ApiVersion"}  # where librdkafka names a request otherwise
_names: dict[type, str] = {bytes: "SaslAuthenticate"}  # of the requests that were counted


def request_name(request: object) -> str:
    """The name under which a request is counted."""
    name = _names.get(type(request))
    if name is None:
        name = type(request).__name__.removesuffix("Request")
        name = _names[type(request)] = _OTHER_NAMES.get(name, name)
    return name


class Window:
    """The last values of a quantity."""

    __slots__ = ("_values", "add")

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=_SAMPLES)
        self.add = self._values.append

    def metrics(self) -> WindowMetrics:
        """The figures of the values."""
        values = sorted(self._values) or [0]
        count, total = len(self._values), sum(values)
        mean = total / len(values)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))

        def percentile(share: float) -> int:
            return int(values[max(math.ceil(share * len(values)), 1) - 1])

        return {
            "min": int(values[0]), "max": int(values[-1]), "avg": int(mean), "sum": int(total), "stddev": int(spread),
            "p50": percentile(0.50), "p75": percentile(0.75), "p90": percentile(0.90), "p95": percentile(0.95),
            "p99": percentile(0.99), "p99_99": percentile(0.9999), "cnt": count}


class DirectExchange(NamedTuple):
    """A request and its reply.

    Attributes:
        sent_bytes, received_bytes: of their frames.
        written_at, answered_at: monotonic seconds.
    """

    sent_bytes: int
    received_bytes: int
    written_at: float
    answered_at: float


class Counted(Protocol):
    """What statistics need of a connection."""

    state: Any

    @property
    def queued(self) -> tuple[int, int]:
        """Requests waiting, and in flight."""
        ...


class BrokerStats:
    """What one broker was sent and has answered, over all connections to it.

    Attributes:
        node: the broker, where it was last.
        connections: those to it that are in use.
        tx, tx_bytes: requests written, and their bytes; `requests` counts them by name.
        tx_errors: requests that failed before they were written.
        rx, rx_bytes: replies, and their bytes.
        rx_errors: requests that were written and lost their reply with the connection.
        timeouts: requests that failed because their time was over.
        connects, disconnects: attempts to connect, and connections that came to an end.
        round_trip_us: microseconds from a request to its reply.
        throttle_ms: `throttle_time_ms` of the replies.
    """

    __slots__ = (
        "_client", "_slow_until", "connections", "connects", "disconnects", "node", "requests", "round_trip_us", "rx",
        "rx_bytes", "rx_errors", "throttle_ms", "timeouts", "tx", "tx_bytes", "tx_errors",
    )

    def __init__(self, client: ClientStats, node: NodeAddress) -> None:
        self._client = client
        self.node = node
        self.connections: WeakSet[Counted] = WeakSet()
        self.requests: Counter[str] = Counter()
        self.tx = self.tx_bytes = self.tx_errors = 0
        self.rx = self.rx_bytes = self.rx_errors = 0
        self.timeouts = self.connects = self.disconnects = 0
        self.round_trip_us, self.throttle_ms = Window(), Window()
        self._slow_until = 0.0  # 0 when the client has been told that it is over

    @property
    def name(self) -> str:
        """``host:port/id``, and ``host:port/bootstrap`` before the id is known."""
        node = self.node
        return f"{node.host}:{node.port}/{node.id if node.id >= 0 else 'bootstrap'}"

    def on_sent(self, request: object, size_bytes: int) -> None:
        """A frame was written."""
        self.tx += 1
        self.tx_bytes += size_bytes
        self.requests[_names.get(type(request)) or request_name(request)] += 1

    def on_received(self, frame: bytes | bytearray | memoryview) -> None:
        """A frame has come."""
        self.rx += 1
        self.rx_bytes += _LENGTH_BYTES + len(frame)

    def answered(self, call: ClientRequest, reply: Struct, frame: bytes | bytearray | memoryview, now: float) -> float:
        """A reply has come. Returns the seconds for which the broker slows this client down."""
        self.rx += 1
        self.rx_bytes += _LENGTH_BYTES + len(frame)
        self.round_trip_us.add((now - call.written_at) * 1e6)
        throttle_ms: int = getattr(reply, "throttle_time_ms", 0)
        self.throttle_ms.add(throttle_ms)
        if throttle_ms > 0:
            self._slow_until = now + throttle_ms / 1000.0
            self._tell(throttle_ms / 1000.0)
        elif 0.0 < self._slow_until <= now:  # one that comes sooner, on another connection, says nothing
            self._slow_until = 0.0
            self._tell(0.0)
        return throttle_ms / 1000.0

    def _tell(self, throttle_s: float) -> None:
        if (told := self._client.on_throttle) is not None:
            told(ThrottleEvent(f"{self.node.host}:{self.node.port}", max(self.node.id, -1), throttle_s))

    def on_exchanges(self, name: str, exchanges: Iterable[DirectExchange]) -> None:
        """Requests of one API were written and answered, without anything unusual.

        Args:
            name: as `request_name` gives it.
            exchanges: the requests.
        """
        for exchange in exchanges:
            self.tx += 1
            self.rx += 1
            self.tx_bytes += exchange.sent_bytes
            self.rx_bytes += exchange.received_bytes
            self.requests[name] += 1
            self.round_trip_us.add((exchange.answered_at - exchange.written_at) * 1e6)
            self.throttle_ms.add(0)

    def on_taken_back(self, name: str, exchanges: int, sent_bytes: int, reply_bytes: int) -> None:
        """So many requests of one API were written and answered by a thread that waited for the answers."""
        self.tx += exchanges
        self.rx += exchanges
        self.tx_bytes += sent_bytes
        self.rx_bytes += reply_bytes
        self.requests[name] += exchanges

    def failed(self, call: ClientRequest, error: KafkaError) -> None:
        """A request will not be answered."""
        if error.code() == KafkaError._TIMED_OUT:
            self.timeouts += 1
        elif call.correlation_id < 0:
            self.tx_errors += 1
        else:
            self.rx_errors += 1


class ClientStats:
    """All brokers of one client.

    Attributes:
        brokers: by id; bootstrap servers have negative ones.
        on_throttle: called with replies by which the broker slows the client down, and with the first one after that.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerStats] = {}
        self.on_throttle: Callable[[ThrottleEvent], None] | None = None

    def of(self, node: NodeAddress) -> BrokerStats:
        """The counts of a broker; they go on when it moves to another address."""
        counts = self.brokers.get(node.id)
        if counts is None:
            counts = self.brokers[node.id] = BrokerStats(self, node)
        counts.node = node
        return counts

    def failed(self, call: ClientRequest, error: KafkaError) -> None:
        """A request will not be answered."""
        counts = self.brokers.get(call.send.node_id)
        if counts is not None:
            counts.failed(call, error)
