"""Direct sends in the simulated schedules: the application's side, and the connection's, of what the sender lends.

As the client does it (`client.producer.direct_sends`): a record that opens a batch of a partition that is lent leaves
at once, unless the loop has a request under way on the connection. Whatever else happens there takes back what is in
flight.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headrace.machines.machine import Send
from headrace.machines.producer.lone_batch import Lend
from headrace.machines.producer.message_sets import produce_for_version
from headrace.machines.producer.produce_request import produce_request
from headrace.wire.messages.producer.produce import ProduceResponse

_MASK = 2**31 - 1


class DirectWay:
    """One partition that is lent."""

    def __init__(self, ways: DirectWays, lend: Lend) -> None:
        self.lane, self.most = lend.lane, lend.most
        self.producer_id, self.epoch, self.sequence = lend.producer
        self._ways = ways

    def take_back(self) -> None:
        """The sender wants what is in flight."""
        self._ways.take_back_from(self)

    def end(self) -> None:
        """The sender wants the partition back."""
        self._ways.end(self)


class DirectWays:
    """All partitions that are lent, and what is in flight on their ways.

    Args:
        sim: the schedule.
    """

    def __init__(self, sim: Any) -> None:
        self._sim = sim
        self._lent: dict[int, DirectWay] = {}
        self._in_flight: dict[Send, tuple[DirectWay, Any, Any]] = {}
        self._taken_back: dict[Send, Send] = {}

    def lend(self, lend: Lend) -> None:
        """Carry out what the sender said."""
        way = self._lent[lend.lane.queue.partition] = DirectWay(self, lend)
        self._sim.counts["partitions lent"] += 1
        self._sim.sender.on_lent(lend.lane, way)

    def end(self, way: DirectWay) -> None:
        """One is lent no more."""
        self._lent.pop(way.lane.queue.partition, None)
        self.take_back_from(way)

    def suspend(self, partition: int) -> None:
        """A batch of a partition was taken out of its buffer: what was sent directly now would overtake it."""
        self._lent.pop(partition, None)

    def take_back_from(self, way: DirectWay) -> None:
        """What is in flight on a partition's connection is the sender's."""
        connection = self._sim.connections.get(way.lane.leader)
        if connection is not None and any(send in self._in_flight for send in connection.outstanding):
            self.take_back(connection)

    def send(self, partition: int) -> bool:
        """The application has appended a record: send its batch if it is alone and may go. True if it went."""
        sim, way = self._sim, self._lent.get(partition)
        if way is None:
            return False
        connection = sim.connections.get(way.lane.leader)
        if (connection is None or connection.cut or len(connection.outstanding) >= way.most
                or any(send not in self._in_flight for send in connection.outstanding)
                or (opened := sim.buffer.take_lone(partition)) is None):
            return False
        sealed = opened.seal()
        if way.producer_id >= 0:
            sealed.stamp(way.producer_id, way.epoch, way.sequence)
            way.sequence = way.sequence + opened.count & _MASK
        alone: Any = SimpleNamespace(queue=way.lane.queue, sealed=sealed)
        request, highest = produce_request([alone], sim.acks, sim.limits.request_timeout_s, None)
        send = Send(way.lane.leader, request, sim.limits.request_timeout_s, highest, for_version=produce_for_version)
        self._in_flight[send] = way, opened, sealed
        sim.counts["batches sent directly"] += 1
        sim.sent_directly(send, connection)
        return True

    def now(self, send: Send) -> Send:
        """The request as the sender has it, if it was taken back."""
        return self._taken_back.get(send, send)

    def delivered(self, send: Send, reply: Any) -> bool:
        """The reply to a direct request is here. False if it is not the usual one: then it is the sender's to read."""
        if send not in self._in_flight:
            return False
        way, opened, _ = self._in_flight[send]
        if not isinstance(reply, ProduceResponse) or reply.throttle_time_ms:
            return False
        answers = reply.responses[0].partition_responses
        if len(answers) != 1 or answers[0].error_code:
            return False
        del self._in_flight[send]
        self._sim.sender.on_direct_stored(way.lane, opened, answers[0].base_offset, answers[0].log_append_time_ms)
        return True

    def take_back(self, connection: Any) -> None:
        """The loop wants the connection: what is in flight directly becomes a request like any other."""
        for place, send in enumerate(connection.outstanding):
            if send in self._in_flight:
                way, opened, sealed = self._in_flight.pop(send)
                self._lent.pop(way.lane.queue.partition, None)
                self._sim.counts["direct requests taken back"] += 1
                taken = self._sim.sender.on_direct_taken_back(way.lane, opened, sealed)
                self._sim.stands_for(taken, send)
                self._taken_back[send] = connection.outstanding[place] = taken
