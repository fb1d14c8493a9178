"""The embedded broker as a simulation has it: no loop and no sockets.

Who simulates says what time it is, writes requests (`written`), has them carried out when they arrive (`ask`), and gets
the replies, at once or when they are due, as they come out of their bytes. All the rules are the broker's own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable
from typing import Any
from uuid import UUID

from headrace.broker.cluster import ApiCall, BrokerCluster, BrokerNode
from headrace.broker.deadlines import Now
from headrace.broker.dispatch import handle, served_by
from headrace.broker.error_replies import error_response
from headrace.broker.purgatory import DelayedReply
from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.partition import Partition
from headrace.machines.cluster.in_flight import ClientRequest, InFlightRequests
from headrace.machines.machine import Send
from headrace.records import Batch, BatchBuilder, Cursor
from headrace.testing.simulated_clock import SimulatedClock
from headrace.wire.frame import RequestFrame, decode_request, decode_response, encode_response
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest
from headrace.wire.schema import Response

Answer = Callable[["Response | None"], None]
_PORT = 9000
_LENGTH_BYTES = 4
_PARTS_OF_COORDINATORS_FROM = 4
HEADER_BYTES, RECORD_BYTES = 61, 13
"""Of a batch of numbers."""


class PureBrokers:
    """A cluster of embedded brokers on a simulated clock.

    Args:
        clock: says what time it is, and when to look at the cluster again.
        chance: makes ids, and chooses leaders.
        nodes: how many.
        settings: of the brokers.

    Attributes:
        nodes: the numbers of all brokers.
        down: of those that do not listen.
    """

    def __init__(self, clock: SimulatedClock, chance: random.Random, nodes: int, settings: BrokerSettings) -> None:
        self._clock, self._chance = clock, chance
        known = [BrokerNode(number, f"node-{number}", _PORT + number, is_up=True) for number in range(1, nodes + 1)]
        self.cluster = BrokerCluster(known, settings, served_by(settings), self._new_uuid)
        self.nodes = [node.id for node in known]
        self.down: set[int] = set()
        self._versions: dict[tuple[int, int | None, int | None], int] = {}
        self._rings_at = float("inf")

    def _new_uuid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128) | 1)

    @property
    def now(self) -> Now:
        """What the clocks say."""
        return Now(self._clock.now, self._clock.wall_ms)

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """Where clients begin."""
        return [(node.host, node.port) for node in self.cluster.nodes.values()]

    def written(self, send: Send, client: str, highest: int | None = None) -> bytearray:
        """A request's bytes from now on, whatever becomes of the batches in it; its version is settled.

        Args:
            send: the request, and what the machine allows.
            client: its name.
            highest: the version that is not to be passed.
        """
        asked = (send.request.api_key, highest, send.max_version)
        if asked not in self._versions:
            low, high = self.cluster.served[send.request.api_key]
            self._versions[asked] = max(low, min(each for each in (high, *asked[1:]) if each is not None))
        send.version = self._versions[asked]
        return bytearray().join(_pushed(send, client)[1])[_LENGTH_BYTES:]

    def ask(
        self, node: int, received: RequestFrame, answer: Answer, connection: Hashable = None
    ) -> DelayedReply | None:
        """Carry a request out; `answer` is called with the reply, now or later. What still waits is returned.

        Raises:
            ApiError: nothing but closing the connection can tell the client.
        """
        call = ApiCall(self.cluster, node, received.version, received.client_id or "", "host", self.now, connection)
        result = handle(call, received.request)
        if isinstance(result, DelayedReply):
            self._wait(result, answer)
            self.settle()
            return None if result.is_settled else result
        self.settle()
        answer(result)
        return None

    def answer_of(self, node: int, received: RequestFrame) -> Any:
        """The reply to a request that does not wait."""
        told: list[Response | None] = []
        self.ask(node, received, told.append)
        return told[0]

    def _wait(self, delayed: DelayedReply, answer: Answer) -> None:
        def look_again(now: Now) -> None:
            reply = delayed.look_again(now)
            if reply is not delayed:
                self.cluster.purgatory.remove(delayed)
                answer(reply)  # type: ignore[arg-type]

        delayed.deliver = look_again
        self.cluster.purgatory.put(delayed)

    def settle(self) -> None:
        """Something was done to the cluster: answer what can be answered, and see to what is due later."""
        cluster = self.cluster
        while cluster.purgatory.due:
            for delayed in cluster.purgatory.take_due():
                delayed.deliver(self.now)
        if cluster.deadlines.next_at < self._rings_at:
            self._rings_at = cluster.deadlines.next_at
            self._clock.after(max(self._rings_at - self._clock.now, 0.0), self._ring)

    def _ring(self) -> None:
        self._rings_at = float("inf")
        self.cluster.deadlines.run(self.now)
        self.settle()

    # What happens to a cluster

    def connection_lost(self, connection: Hashable) -> None:
        """The brokers learn that a connection is gone."""
        self.cluster.connection_lost(connection)
        self.settle()

    def stop(self, node: int) -> None:
        """A node is lost; others lead what they can."""
        self.down.add(node)
        self.cluster.node_went(node, self.now, up=False)
        self.settle()

    def start(self, node: int) -> None:
        """It comes back."""
        self.down.discard(node)
        self.cluster.node_went(node, self.now, up=True)
        self.settle()

    def lead(self, partition: Partition) -> None:
        """Another node leads a partition, or the same anew."""
        up = [node.id for node in self.cluster.up_nodes]
        if up:
            node = self._chance.choice(up)
            if node not in partition.replicas:
                partition.replicas.append(node)
            partition.lead(node)
            self.settle()


def arrived(frame: bytearray) -> RequestFrame:
    """A request as the broker reads it."""
    return decode_request(memoryview(frame))


def told(received: RequestFrame, reply: Response) -> Response:
    """A reply as the client reads it."""
    kind = type(received.request)
    frame = b"".join(encode_response(reply, received.version, 0))[_LENGTH_BYTES:]
    return decode_response(kind, received.version, frame)[1]


def handed_over(send: Send, reply: Response) -> Any:
    """A reply as a connection hands it to the machine."""
    pipeline, _ = _pushed(send, "")
    return pipeline.take(b"".join(encode_response(reply, send.version, 0))[_LENGTH_BYTES:])[1]


def _pushed(send: Send, client: str) -> tuple[InFlightRequests, list[bytes | memoryview]]:
    """A connection to which a request was written, and the frame of it."""
    nobody: Any = None
    pipeline = InFlightRequests(client)
    return pipeline, pipeline.push(ClientRequest(nobody, send, float("inf")))


def refused(received: RequestFrame, code: int) -> Any:
    """A reply in which everything that can has an error."""
    reply: Any = error_response(received.request, code)
    if isinstance(received.request, FindCoordinatorRequest) and received.version >= _PARTS_OF_COORDINATORS_FROM:
        reply.error_code = 0
    return reply


def sealed(numbers: Iterable[int], wall_ms: int) -> Batch:
    """A batch of records that are numbers; each takes `RECORD_BYTES`."""
    builder = BatchBuilder(1 << 20, 1 << 20)
    for number in numbers:
        builder.append(wall_ms, None, b"%06d" % number)
    return builder.seal()


def numbers_in(partition: Partition, *, committed: bool = False) -> list[tuple[int, int]]:
    """Offset and number of every record in a log; with `committed` only what readers of committed records see."""
    log = partition.log
    end = partition.last_stable_offset if committed else log.end_offset
    aborted = [(each.producer_id, each.first_offset)
               for each in partition.producers.aborted(log.start_offset, end)] if committed else None
    found = log.read(log.start_offset, log.size_bytes, end)
    cursor: Any = Cursor(found.data, "", partition.index, log.start_offset, aborted=aborted)
    return [(message.offset(), int(message.value())) for message in cursor.take(1 << 30)]
