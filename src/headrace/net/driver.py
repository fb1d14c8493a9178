"""Runs the machines of one client: polls them, moves their requests, hands them the replies, and sleeps in between.

Out: `_step()` polls the machines and gives each request to the connection of its broker.
Back: `on_reply()` hands a reply to the machine that asked, and `on_input()` steps at once, without a turn of the loop.

A step costs nothing for a machine to which nothing has happened (decision 0022). It must not know what the machines
decide. Only the wakers may be called from another thread. Read next: `net.connection`, `machines.machine`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.in_flight import Caller, ClientRequest
from headrace.machines.cluster.metadata import Metadata, MetadataChanged
from headrace.machines.machine import ANY_NODE, CONTROLLER, Effect, ErrorEvent, Event, Machine, Send
from headrace.net.closing import last_replies
from headrace.net.connection import Connection
from headrace.net.errors import ErrorDeduplicator
from headrace.net.pending_reply import PendingReply
from headrace.net.settings import ConnectionState, Connector, connection_settings
from headrace.net.thread import stepping_aside, waking
from headrace.net.timers import Clock, Timers, in_time, jitter, monotonic
from headrace.types.records import NodeAddress
from headrace.wire.schema import Request, Response, Struct

__all__ = ["Driver"]

_FETCH, _JOIN_GROUP, _SYNC_GROUP, _SHARE_FETCH, _SHARE_ACKNOWLEDGE = 1, 11, 14, 78, 79
_LANES = {_FETCH: 1, _JOIN_GROUP: 2, _SYNC_GROUP: 2, _SHARE_FETCH: 1, _SHARE_ACKNOWLEDGE: 1}
"""A broker answers one connection in order. Requests that it may hold back get a connection of their own.

By their API keys, so that a producer does not load a consumer's messages. A share session ends with its connection, so
all of its requests have the same one.
"""
_EAGERNESS = {ConnectionState.READY: 0, ConnectionState.OPENING: 1, ConnectionState.DIALLING: 1,
              ConnectionState.IDLE: 2, ConnectionState.BACKOFF: 3, ConnectionState.CLOSING: 3}
_LATE = 3
_CLOSED = KafkaError(KafkaError._DESTROY, "the client is closed")
_ANY_ADDRESS = NodeAddress(-1, "", 0)
_NOBODY = KafkaError(KafkaError._TRANSPORT, 'no broker is known: "bootstrap.servers" names none')
_NEVER = float("inf")
_FAREWELL_S = 5.0
"""So long a broker that has left the cluster, perhaps only frozen, may answer what it was asked before."""
_SLACK_S = 1.0
"""So much later than its caller a connection gives up a one-shot call: the caller's error is the better one."""
_log = logging.getLogger("headrace")


def _cannot(effect: Effect) -> None:
    raise TypeError(f"this client cannot carry out {type(effect).__name__}")


class Driver:
    """One client's event loop side.

    Args:
        config: the client's properties.
        metadata: knows the brokers' addresses; it is run like the other machines.
        on_event: takes every event of every machine, and `ErrorEvent` for broken connections.
        on_effect: carries out what machines want done that is no request; None where no machine wants any.
        clock: monotonic seconds; a simulation gives its own.
        connector: opens streams; real sockets when None.
        jitter: gives numbers in [0, 1).

    Attributes:
        listeners: functions that take events of a class, one after the other, instead of `on_event`.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        metadata: Metadata,
        *,
        on_event: Callable[[Event], None],
        on_effect: Callable[[Effect], None] | None = None,
        clock: Clock = monotonic,
        connector: Connector | None = None,
        jitter: Callable[[], float] = jitter,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ring, self._step_aside = waking(self._loop), stepping_aside(self._loop)
        self._metadata, self._on_event, self._on_effect = metadata, on_event, on_effect or _cannot
        self.listeners: dict[type[Event], tuple[Callable[[Any], object], ...]] = {}
        self._everybody = (on_event,)
        self._clock, self._jitter = clock, jitter
        self._settings = connection_settings(config, clock, connector, jitter)
        self.traffic, self._reply_grace_s = self._settings.traffic, config["socket.timeout.ms"] / 1000.0
        self._machines: tuple[Machine, ...] = (metadata,)
        self._stirred: set[Machine] = set()  # to be polled in the next step
        self._woken: set[Machine | None] = set()  # by other threads; None for all
        self._has_events: set[Machine] = set()  # had a reply that leaves only events
        self._all_stirred = True
        self._due: dict[Machine, float] = {metadata: _NEVER}
        self._connections: dict[tuple[int, int], Connection] = {}
        self._retired: dict[Connection, asyncio.TimerHandle | None] = {}
        self._alarms, self._deduplicator = Timers(self._loop), ErrorDeduplicator()
        self._wakes_at = _NEVER
        self._scheduled = self._stepping = self._closed = False
        self.wake_threadsafe = self.waker(None)

    @property
    def features(self) -> Mapping[str, int]:
        """Finalized level of each cluster feature, as far as a broker has reported it."""
        return next((c.features for c in self._connections.values() if c.features), {})

    def add(self, machine: Machine) -> None:
        """Run a machine from now on."""
        self._machines = (*self._machines, machine)
        self._due[machine] = _NEVER
        self.wake()

    def remove(self, machine: Machine) -> None:
        """Run a machine no more; replies to what it sent are still handed to it."""
        self._machines = tuple(m for m in self._machines if m is not machine)
        self._due.pop(machine, None)

    def wake(self) -> None:
        """Something has changed: poll all machines in the next turn of the loop."""
        self._all_stirred = True
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._step)

    def stirrer(self, machine: Machine) -> Callable[[], None]:
        """What polls one machine in the next turn of the loop. To be called on the loop."""
        def stir() -> None:
            self._stirred.add(machine)
            self._schedule()

        return stir

    def stepper(self, machine: Machine) -> Callable[[], None]:
        """What polls one machine at once. To be called on the loop, by what it calls itself."""
        def step() -> None:
            self._stirred.add(machine)
            self._step()

        return step

    def waker(self, machine: Machine | None) -> Callable[[], None]:
        """What polls one machine, or with None all, in the next turn of the loop. To be called from any thread.

        While a wake is on its way the caller steps aside for the loop's turn.
        """
        woken, ring, step = self._woken, self._ring, self._step

        def wake() -> None:
            if machine in woken:
                time.sleep(0)  # gives the GIL away; a busy caller would else keep it for 5 ms at a time
            else:
                try:
                    woken.add(machine)
                    ring(step)
                except BaseException:  # Ctrl-C in between: later wakes would count on this one
                    woken.add(machine)
                    ring(step)
                    raise

        return wake

    async def log_in(self) -> None:
        """Get what the first connection authenticates with, unless that depends on the broker: a token.

        Raises:
            KafkaException: it cannot be had.
        """
        if self._settings.mechanism is not None:
            await self._settings.mechanism(_ANY_ADDRESS)

    async def request(
        self, destination: int, request: Request, timeout_s: float, *, max_version: int | None = None
    ) -> Response:
        """Send one request that belongs to no machine, and wait for its reply.

        Raises:
            KafkaException: no reply within `timeout_s` seconds, or none possible.
        """
        return await self.ask(Send(destination, request, timeout_s, max_version))

    async def ask(self, send: Send) -> Response:
        """As `request`; afterwards `send.node_id` says who has answered."""
        caller = PendingReply(self._loop)
        call = ClientRequest(caller, send, self._clock() + send.timeout_s + _SLACK_S, self._reply_grace_s)
        connection = self._dispatch(call)
        try:
            return await in_time(caller.answer, send.timeout_s)
        except (TimeoutError, asyncio.CancelledError) as end:
            connection = self.connection(send.node_id, send.request) or connection  # the first one may have been late
            nobody = KafkaError(KafkaError._UNKNOWN_BROKER, "no broker is known")
            error = nobody if connection is None else connection.withdraw(call)
            if isinstance(end, TimeoutError):
                raise KafkaException(error) from None
            raise

    async def close(self) -> None:
        """Close all connections. Requests in flight fail; machines are asked nothing more."""
        self._closed = True
        self._machines = ()
        self._alarms.cancel_all()
        for farewell in filter(None, self._retired.values()):
            farewell.cancel()
        try:
            await last_replies(connection.pipeline for connection in self._connections.values())
        finally:  # cancelled or not: a second close() would do nothing
            connections = (*self._connections.values(), *self._retired)
            for connection in connections:
                connection.close(KafkaException(_CLOSED))
            self._connections.clear()
        if dialling := [connection.dialling for connection in connections if connection.dialling is not None]:
            await asyncio.wait(dialling)  # what opens a socket may need some turns to give it up
        await asyncio.sleep(0)  # the transports are gone after one turn
        await asyncio.sleep(0)

    # Out: from the machines to the connections.

    def _step(self) -> None:
        """Ask the machines to which something has happened for requests, then for events, then for their deadlines."""
        self._scheduled = False
        if self._closed:
            return
        stirred, only = self._stirred, None
        machines: Sequence[Machine] = self._machines
        while self._woken:  # one by one: other threads go on
            if (woken := self._woken.pop()) is None:
                self._all_stirred = True
            else:
                stirred.add(woken)
        # Only now: what woke a machine came before this time, or wakes it again.
        self._stepping, now, sent = True, self._clock(), False
        if len(stirred) == 1 and self._wakes_at > now and not (self._all_stirred or self._metadata.stirred):
            (only,) = machines = tuple(stirred)
        if only is not None and only.alone:  # as nearly always: `_choose` would choose it too
            stirred.clear()
        else:
            only, machines = None, self._choose(now)
        for machine in machines:
            try:
                for effect in list(machine.poll(now)):
                    if isinstance(effect, Send):
                        sent |= self._dispatch(ClientRequest(machine, effect, now + effect.timeout_s)) is not None
                    else:
                        self._on_effect(effect)
            except Exception as error:  # a defect: the other machines must go on
                self._on_defect(machine, error)
        if sent:
            self._step_aside()  # the rest is bookkeeping: a broker on this machine, which has work now, goes first
        if (only is None or not only.idle or stirred or self._all_stirred or self._metadata.stirred
                or self._has_events or self._retired):
            self._end_step(machines, now)
        self._stepping = False

    def _end_step(self, machines: Sequence[Machine], now: float) -> None:
        """Deliver the events, and see to it that the next step comes."""
        self._deliver_events(machines)
        if self._has_events:
            answered = tuple(self._has_events)
            self._has_events.clear()
            self._deliver_events(answered)
        if self._retired:
            self._dismiss_idle()
        self._stepping = False
        self._follow_up(machines, now)

    def _choose(self, now: float) -> Sequence[Machine]:
        """The machines that were stirred or are due; all, if one of these shares something with others."""
        stirred = self._stirred
        if self._wakes_at <= now:
            self._wakes_at = _NEVER
            stirred.update([machine for machine, due in self._due.items() if due <= now])
        chosen: Sequence[Machine] = self._machines if self._concerns_all() else tuple(stirred)
        self._all_stirred = False
        stirred.clear()
        return chosen

    def _concerns_all(self) -> bool:
        """Something has happened that more than one machine may have to do with."""
        if self._all_stirred or self._metadata.stirred:
            return True
        for machine in self._stirred:  # noqa: SIM110 - any() would be a frame more in each step
            if not machine.alone:
                return True
        return False

    def deliver_events_of(self, machine: Machine) -> None:
        """Hand out what a machine has to say because of something that did not come through the driver."""
        for event in machine.events():
            for listener in self.listeners.get(type(event), self._everybody):
                listener(event)

    def _deliver_events(self, machines: Iterable[Machine]) -> None:
        for machine in machines:
            for event in machine.events():
                if isinstance(event, MetadataChanged):
                    self._follow(event.cluster.nodes)
                    self._all_stirred = True
                for listener in self.listeners.get(type(event), self._everybody):
                    listener(event)

    def _follow_up(self, machines: Iterable[Machine], now: float) -> None:
        """See to it that the next step comes, at once where something has changed for machines that were not polled."""
        for machine in machines:
            if machine in self._due:  # else it was taken out meanwhile
                due = machine.deadline()
                self._due[machine] = _NEVER if due is None else due
                if not machine.alone and machines is not self._machines:
                    self._all_stirred = True
        when = min(self._due.values())
        if when < self._wakes_at:
            self._wakes_at = when
            if when > now:
                self._alarms.set(self._on_timer, when - now)
        if when <= now or self._all_stirred or self._stirred or self._metadata.stirred:
            self._schedule()

    def _on_timer(self) -> None:
        self._wakes_at = -_NEVER  # also if the loop was a moment early, as it may be
        self._step()

    def _dispatch(self, call: ClientRequest) -> Connection | None:
        send = call.send
        node_id = self._choose_node(send)
        node = self._metadata.cluster.nodes.get(node_id)
        if node is None or self._closed:
            self._metadata.refresh(self._clock())  # a coordinator may have come back since
            unknown = KafkaError(KafkaError._UNKNOWN_BROKER, f"broker {node_id} is not in the cluster's metadata")
            self.on_error(call, _CLOSED if self._closed else _NOBODY if node_id == ANY_NODE else unknown)
            return None
        send.node_id = node_id
        lane = _LANES.get(send.request.api_key, 0)
        key = (node.id, -lane if send.beside else lane)
        connection = self._connections.get(key)
        if connection is None:
            connection = self._connections[key] = Connection(node, self._settings, self)
        connection.submit(call)
        return connection

    def _choose_node(self, send: Send) -> int:
        node_id = send.destination
        if node_id == CONTROLLER:
            controller_id = self._metadata.cluster.controller_id
            node_id = ANY_NODE if controller_id is None else controller_id
        return self.any_node() if node_id == ANY_NODE else node_id

    def connection(self, node_id: int, request: Request) -> Connection | None:
        """The connection to a broker for requests of this kind; None before the first."""
        return self._connections.get((node_id, _LANES.get(request.api_key, 0)))

    def log_in_anew(self) -> None:
        """There are other credentials: no connection rests because those before were refused. From any thread."""
        def dial() -> None:
            for connection in self._connections.values():
                connection.log_in_anew()

        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(dial)

    def any_node(self) -> int:
        """The least busy of the best connected brokers; where there is a choice, a random one."""
        def reluctance(node_id: int) -> tuple[int, int, int, float]:
            c = self._connections.get((node_id, 0))
            state, failures, load = (ConnectionState.IDLE, 0, 0) if c is None else (c.state, c.failures, c.load)
            late = c is not None and c.late
            return (_LATE if late else _EAGERNESS[state], failures, load, self._jitter())
        return min(self._metadata.cluster.nodes, key=reluctance, default=ANY_NODE)

    # Back: from the connections to the machines.

    def on_reply(self, call: ClientRequest, reply: Struct | None) -> None:
        """A connection has a reply: hand it to the caller."""
        try:
            call.caller.on_reply(call.send, reply, self._clock())
        except Exception as error:  # a defect: the other machines must go on
            self._on_defect(call.caller, error)
        caller = call.caller
        if caller in self._due:
            (self._has_events if caller.idle else self._stirred).add(caller)
        if reply is None:  # written, and no bytes will come that lead to a step
            self._schedule()

    def on_error(self, call: ClientRequest, error: KafkaError) -> None:
        """A connection cannot deliver a request or its reply: fail the caller."""
        self.traffic.failed(call, error)
        try:
            call.caller.on_error(call.send, error, self._clock())
        except Exception as defect:  # a defect: the other machines must go on
            self._on_defect(call.caller, defect)
        self.wake()

    def on_input(self) -> None:
        """A connection handed over all it had: decide at once, and deliver events.

        Events of machines that share something are delivered first, for they may change what is decided.
        """
        if self._stepping:
            self._schedule()
        elif self._stirred or self._all_stirred or self._metadata.stirred or self._retired:
            if self._concerns_all():
                self._deliver_events(self._machines)
            self._step()
        elif self._has_events:
            answered = tuple(self._has_events)
            self._has_events.clear()
            self._deliver_events(answered)

    def on_ready(self) -> None:
        """A connection can be used."""
        self._deduplicator.over()

    def report_again(self) -> None:
        """Tell of the next failure of each connection, also if it is the one that was told of last."""
        self._deduplicator.over()

    def on_open(self) -> None:
        """A connection is open: what waits for one that takes long may go this way."""
        for late in [each for each in self._connections.values() if each.late]:
            late.offer()

    def on_late(self, waiting: Sequence[ClientRequest]) -> None:
        """A connection takes long to open: what waits for it goes to another broker, where any broker will do.

        Where others take as long it stays, until one of them is open: nothing would fetch it from there in time.
        """
        for call in waiting:
            send, late = call.send, self.connection(call.send.node_id, call.send.request)
            node_id = self._choose_node(send)
            other = self.connection(node_id, send.request)
            if late is not None and node_id != send.node_id and (other is None or not other.late):
                late.withdraw(call)
                self._dispatch(call)

    def on_lost(self, node: NodeAddress, error: KafkaError) -> None:
        """A connection could not be opened, or broke."""
        nodes = self._metadata.cluster.nodes
        if not self._closed and (node.id in nodes or error == KafkaError._BAD_MSG):
            for unreported in self._deduplicator.lost(node, error, len(nodes), all(map(self._is_down, nodes))):
                self._on_event(ErrorEvent(unreported))

    def on_hung_up(self) -> None:
        """A broker ended a connection that awaited nothing: it leaves, or refused a request that gets no reply."""
        self._metadata.refresh(self._clock())

    def on_silence(self, node: NodeAddress, since: float, reason: KafkaException) -> None:
        """A connection was given up for want of a reply: what the way to this broker lost, it lost for all of them."""
        for connection in [c for (owner, _), c in self._connections.items() if owner == node.id]:
            connection.doubt(since, reason)

    def _is_down(self, node_id: int) -> bool:
        connections = [c for (owner, _), c in self._connections.items() if owner == node_id]
        return any(c.failures for c in connections) and all(c.state is not ConnectionState.READY for c in connections)

    def _follow(self, nodes: Mapping[int, NodeAddress]) -> None:
        """Let go of connections to brokers that left the cluster or moved to another address.

        A bootstrap server has not left: it is known by its id now, and answers what it was asked before.
        """
        for key, connection in list(self._connections.items()):
            if nodes.get(key[0]) != connection.node:
                retired = self._connections.pop(key)
                farewell = None
                if connection.node.id >= 0:
                    farewell = self._loop.call_later(_FAREWELL_S, self._dismiss, retired)
                self._retired[retired] = farewell

    def _dismiss_idle(self) -> None:
        """Close retired connections that owe no reply any more."""
        for connection in [c for c in self._retired if not c.load]:
            self._dismiss(connection)

    def _dismiss(self, connection: Connection) -> None:
        if (farewell := self._retired.pop(connection)) is not None:
            farewell.cancel()
        connection.close(KafkaException(KafkaError(KafkaError._TRANSPORT, "the broker left the cluster")))

    def _on_defect(self, machine: Caller | Machine, error: Exception) -> None:
        _log.error("defect in %s", type(machine).__name__, exc_info=error)
        self._on_event(ErrorEvent(KafkaError(KafkaError._FAIL, f"{type(machine).__name__} failed: {error!r}", True)))
        self.remove(machine)  # type: ignore[arg-type]
