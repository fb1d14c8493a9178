"""A network without sockets: clients' connections on the one side, the embedded broker's on the other.

Bytes take their time, in order. Links are cut, held back and let go as a schedule says; a client can be cut off from
all brokers. Both sides are the real ones: only what asyncio calls a transport is made here. On a `SimulatedLoop` whole
clients and the broker run under one simulated clock.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

from headrace.broker.clock import BrokerClock
from headrace.broker.cluster import BrokerCluster, BrokerNode
from headrace.broker.dispatch import served_by
from headrace.broker.server import ClientConnection, Listener
from headrace.broker.settings import BrokerSettings
from headrace.types.records import NodeAddress

__all__ = ["Connect", "MemoryNetwork", "MemoryTransport"]

Result = TypeVar("Result")
Connect = Callable[[asyncio.BufferedProtocol, NodeAddress], Awaitable[None]]
"""Opens a connection of a client: joins its protocol to the broker at an address."""
_FIRST_PORT = 9000


class MemoryTransport(asyncio.Transport):
    """One end of a link, as the protocol there sees it.

    Attributes:
        node_id: the broker at one of the ends.
        is_held: what arrives waits for `let_go`.
        peer: the other end.
    """

    def __init__(self, network: MemoryNetwork, protocol: asyncio.BufferedProtocol, node_id: int) -> None:
        super().__init__({"peername": ("client", 0)})
        self.node_id = node_id
        self._network, self._protocol = network, protocol
        self._loop = asyncio.get_running_loop()
        self._held: deque[bytes] = deque()
        self._arrives_at = 0.0
        self._is_open = True
        self.is_held = False
        self.peer: MemoryTransport

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """asyncio: there are none."""

    def get_write_buffer_size(self) -> int:
        """asyncio: everything is on its way at once."""
        return 0

    def is_closing(self) -> bool:
        """asyncio: whether the link is gone."""
        return not self._is_open

    def pause_reading(self) -> None:
        """asyncio: hold back what arrives."""
        self.is_held = True

    def resume_reading(self) -> None:
        """asyncio: hand over what was held back."""
        self.let_go()

    def write(self, data: Any) -> None:
        """asyncio: send bytes."""
        if self._is_open:
            self._at_peer(self.peer.receive, bytes(data))

    def close(self) -> None:
        """asyncio: end the link; what is on its way still arrives."""
        self.abort()

    def abort(self) -> None:
        """asyncio: the same."""
        if self._is_open:
            self._at_peer(self.peer.end)
            self.end()

    def _at_peer(self, action: Callable[..., None], *arguments: Any) -> None:
        """Behind all that is on its way."""
        self._arrives_at = max(self._arrives_at + 1e-6, self._loop.time() + self._network.delay())
        self._loop.call_at(self._arrives_at, action, *arguments)

    def receive(self, data: bytes) -> None:
        """Bytes are here."""
        self._held.append(data)
        if not self.is_held:
            self.let_go()

    def let_go(self) -> None:
        """Hand over what was held back."""
        self.is_held = False
        while self._held and self._is_open and not self.is_held:
            data = self._held.popleft()
            while data and self._is_open:
                with memoryview(self._protocol.get_buffer(len(data))) as buffer:  # it may have to grow afterwards
                    size = min(len(buffer), len(data))
                    buffer[:size] = data[:size]
                self._protocol.buffer_updated(size)
                data = data[size:]

    def end(self) -> None:
        """The link is gone."""
        if self._is_open:
            self._is_open = False
            self._network.ends.pop(self, None)
            self._loop.call_soon(self._protocol.connection_lost, None)


class MemoryNetwork:
    """A cluster and the ways to it. It must be made on the loop that it runs on.

    Args:
        nodes: how many brokers.
        chance: decides about delays.
        settings: of the brokers.
        new_uuid: makes the ids of the cluster, of topics and of members.

    Attributes:
        cluster: the brokers' state.
        slowness_s: the longest time that bytes take.
        ends: the clients' ends of all links, with the name of the client.
    """

    def __init__(self, nodes: int, chance: random.Random, settings: BrokerSettings,
                 new_uuid: Callable[[], UUID]) -> None:
        known = [BrokerNode(number, f"node-{number}", _FIRST_PORT + number, is_up=True)
                 for number in range(1, nodes + 1)]
        self.cluster = BrokerCluster(known, settings, served_by(settings), new_uuid)
        loop = asyncio.get_running_loop()
        self._clock = BrokerClock(self.cluster, lambda: int(loop.time() * 1e9))
        self._clock.start()
        self.slowness_s = 0.001
        self.ends: dict[MemoryTransport, str] = {}
        self._listeners = {node.id: Listener(node.id) for node in known}
        self._chance = chance
        self._cut_off: set[str] = set()

    @property
    def servers(self) -> str:
        """For `bootstrap.servers`."""
        return ",".join(f"{node.host}:{node.port}" for node in self.cluster.nodes.values())

    def delay(self) -> float:
        """Seconds that some bytes take."""
        return self._chance.uniform(0.0, self.slowness_s)

    def way_of(self, client: str) -> Connect:
        """How a client opens its connections."""
        async def connect(protocol: asyncio.BufferedProtocol, address: NodeAddress) -> None:
            await asyncio.sleep(self.delay())
            node_id = address.port - _FIRST_PORT
            if client in self._cut_off or not self.cluster.is_up(node_id):
                raise ConnectionRefusedError(f"{address.host} does not listen")
            served = ClientConnection(self.cluster, self._listeners[node_id], self._clock)
            near, far = MemoryTransport(self, protocol, node_id), MemoryTransport(self, served, node_id)
            near.peer, far.peer = far, near
            self.ends[near] = client
            served.connection_made(far)
            protocol.connection_made(near)

        return connect

    def append(self, topic: str, partition: int, batch: Any) -> None:
        """Store a batch, as if somebody had produced it."""
        def store(cluster: BrokerCluster) -> None:
            found = cluster.catalog.topics[topic]
            found.partitions[partition].append(memoryview(batch), found.configs, self._clock.now().ms)

        self.apply(store)

    # Trouble

    def cut(self, client: str | None = None) -> None:
        """Break the links of a client; of all with None."""
        for end in [end for end, owner in self.ends.items() if client in (None, owner)]:
            end.abort()

    def hold(self, client: str, *, both_ways: bool) -> None:
        """Let nothing through to a client, or in either direction, until `release`."""
        for end in [end for end, owner in self.ends.items() if owner == client]:
            end.is_held = True
            end.peer.is_held = both_ways

    def release(self, client: str) -> None:
        """All that was held back arrives."""
        for end in [end for end, owner in self.ends.items() if owner == client]:
            end.let_go()
            end.peer.let_go()

    def cut_off(self, client: str) -> None:
        """A client's machine is gone."""
        self._cut_off.add(client)
        self.cut(client)

    def stop_node(self, node_id: int) -> None:
        """A broker is lost: its connections end, others lead and coordinate."""
        self.apply(lambda cluster: cluster.node_went(node_id, self._clock.now(), up=False))
        for end in [end for end in self.ends if end.node_id == node_id]:
            end.abort()

    def start_node(self, node_id: int) -> None:
        """It comes back."""
        self.apply(lambda cluster: cluster.node_went(node_id, self._clock.now(), up=True))

    def close(self) -> None:
        """End it all."""
        self.cut()
        self._clock.close()
        self.cluster.close()

    def apply(self, action: Callable[[BrokerCluster], Result]) -> Result:
        """Do something to the cluster, and let those that wait for it know; returns what `action` returned."""
        try:
            return action(self.cluster)
        finally:
            self._clock.settle()
