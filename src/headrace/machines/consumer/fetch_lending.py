"""Which replies the thread that waits for records takes by itself, past the loop (decision 0052).

Where few records of one topic come at a time, the next request's reply is lent (`LendFetch`), and all that follow
until something unusual comes or the plan has something to look at. Offsets of partitions and of the session move there;
the session's number comes back with the connection. It must not know sockets or threads. Read next:
`client.consumer.direct_fetches`, which carries it out; `machines.consumer.fetcher`, which queues what was received.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from headrace.machines.consumer.fetch_plan import FetchInFlight, FetchPlan
from headrace.machines.consumer.fetch_session import SessionPartition
from headrace.machines.consumer.subscription import Key
from headrace.machines.machine import Effect, Send
from headrace.slotted import slotted
from headrace.wire.messages.consumer.fetch import FetchResponse, PartitionData

if TYPE_CHECKING:
    from headrace.machines.consumer.lone_fetch import LoneFetch

__all__ = ["FetchLending", "Lanes", "LendFetch"]

_USUAL: Final = 3
"""So many usual replies in a row, and the next one is lent."""
_UNUSUAL: Final = -20
"""Where that was wrong, so many more."""
_FEW_BYTES: Final = 16_384


class Lanes(Protocol):
    """What a thread has received by itself; it is queued as what the loop receives.

    Attributes:
        received_bytes: of records, since the beginning.
        answered_at: when a reply came last, in monotonic seconds; 0 before the first.
    """

    received_bytes: int
    answered_at: float


@slotted(eq=False)
class LendFetch(Effect):
    """The thread that waits for records may take the reply to this request by itself, and send what follows.

    Attributes:
        send: the request, which is on the wire.
        lone: what its successors are made of.
        session_epoch: its number in the session.
        known: the session's partitions.
        topic, partition: what it names.
    """

    send: Send
    lone: LoneFetch
    session_epoch: int
    known: Mapping[Key, SessionPartition]
    topic: str
    partition: int


@slotted(eq=False)
class _Lent:
    """A session with whose broker a thread goes on by itself."""

    flight: FetchInFlight
    topic: str
    take_back: Callable[[], None]


class FetchLending:
    """Decides it for one consumer.

    Args:
        plan: of its fetches.
        queue: where what is received waits for the application.
        make: see `headrace.buffers.FetchLanes`.

    Attributes:
        queue, make: as given.
        lends: whether `LendFetch` is carried out.
        lanes: where a thread receives; None before the first.
        lent: what is lent now, by broker.
    """

    def __init__(self, plan: FetchPlan, queue: deque[Any], make: Callable[..., Any]) -> None:
        self._plan, self.queue, self.make = plan, queue, make
        self.lends = False
        self.lanes: Lanes | None = None
        self.lent: dict[int, _Lent] = {}
        self._usual: dict[int, int] = {}  # by broker, replies in a row that a thread could have taken

    def count(self, node: int, parts: Sequence[PartitionData]) -> None:
        """A broker's reply had this, and of no other topic."""
        usual = self._usual.get(node, 0)
        self._usual[node] = usual + 1 if all(map(_is_little, parts)) else min(usual, 0)

    def count_all(self, node: int, reply: FetchResponse) -> None:
        """A broker's reply has come; one without anything new says nothing."""
        topics = reply.responses
        if len(topics) == 1:
            self.count(node, topics[0].partitions)
        elif topics:
            self._usual[node] = min(self._usual.get(node, 0), 0)

    def lend(self, sends: Sequence[Effect]) -> Sequence[Effect]:
        """A step's only request, and that its reply is lent: if those of its broker were usual, and all is settled."""
        (send,) = sends
        assert isinstance(send, Send)
        session = send.context.session
        if self._usual.get(send.destination, 0) < _USUAL or send.template is None or not self._plan.is_settled:
            return sends
        topic, partition = next(reversed(session.known))  # where `fill_alone` has put what the template names
        lone = session.lone_of(topic)
        if lone is None:  # the broker keeps no session
            return sends
        return (send, LendFetch(send, lone, lone.request.session_epoch, session.known, topic, partition))

    def on_lent(self, effect: LendFetch, take_back: Callable[[], None]) -> None:
        """An effect was carried out.

        Args:
            effect: this one.
            take_back: calls `on_taken_back` before it returns.
        """
        self.lent[effect.send.destination] = _Lent(effect.send.context, effect.topic, take_back)

    def take_back(self) -> None:
        """Have all replies come to the loop again, and all that was received counted."""
        for lent in list(self.lent.values()):
            lent.take_back()

    def take_back_for_plan(self, now: float) -> None:
        """The same of a broker if the plan has anything to look at that concerns what is lent."""
        for lent in list(self.lent.values()):
            if self._plan.concerns(lent.flight.session, now):
                lent.take_back()

    def on_taken_back(self, node: int, session_epoch: int, partition: int, *, failed: bool) -> None:
        """Replies of a broker come to the loop again.

        Args:
            node: the broker.
            session_epoch: of the request in flight.
            partition: what that asks for; -1 for nothing new, and for several.
            failed: because something unusual came.
        """
        lent = self.lent.pop(node)
        lent.flight.session.taken_back(lent.topic, session_epoch, partition)
        self._usual[node] = _UNUSUAL if failed else 0


def _is_little(data: PartitionData) -> bool:
    """Whether it is what a thread takes by itself: few records, and nothing else to be said."""
    return 0 < len(data.records or b"") <= _FEW_BYTES and not (
        data.error_code or data.aborted_transactions or data.preferred_read_replica >= 0)
