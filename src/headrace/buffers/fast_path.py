"""`produce()` with what it needs at hand: an accumulator is found and filled, and anything unusual left to `otherwise`.

The plain twins. They must not know why a record is refused, nor how to wait.
Read next: `headrace.buffers.record_accumulator`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sized
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from headrace.buffers.buffer_pool import FEW_MESSAGES, BufferPool
from headrace.buffers.delivery_future import DeliveryFuture
from headrace.buffers.lanes.direct_lane import DirectReplies
from headrace.buffers.loop_turns import LoopTurns
from headrace.buffers.record_accumulator import RecordAccumulator
from headrace.buffers.refusals import milliseconds
from headrace.errors import BufferFullError

__all__ = ["AIOProduceFastPath", "Accepted", "Polling", "ProduceFastPath", "ServeFastPath"]

_TURNS_S: Final = 0.01
"""How long `AIOProducer.produce` may take records before other tasks of the loop have a turn."""


class ProduceFastPath:
    """`Producer.produce` with what it needs at hand; anything unusual is left to `otherwise`.

    Args:
        open: accumulators by topic.
        pool: counts the records that are under way.
        turns: the loop's. Who has few records under way lets it go first: what it has to do is about them.
        otherwise: called as otherwise(topic, value, key, partition, timestamp_ms, headers, callback) for a topic that
            is not in `open`, and when the pool is used up.
        wake: called when the loop has something to do.
        default: callback of records that are given none.
    """

    __slots__ = ("_default", "_open", "_otherwise", "_pool", "_turns", "_wake")

    def __init__(
        self, open: dict[str, RecordAccumulator], pool: BufferPool, turns: LoopTurns,
        otherwise: Callable[..., object], wake: Callable[[], object], default: Callable[..., object] | None = None,
    ) -> None:
        self._open = open
        self._pool, self._turns = pool, turns
        self._otherwise = otherwise
        self._wake = wake
        self._default = default

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Callable[..., object] | None = None,
        on_delivery: Callable[..., object] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Put a record on its way; see `headrace.Producer.produce`."""
        stamp = milliseconds(timestamp)
        if callback is None:
            callback = self._default if on_delivery is None else on_delivery
        accumulator = self._open.get(topic)
        try:
            if accumulator is not None:
                if self._pool.messages < FEW_MESSAGES:
                    self._turns.step_aside()
                if accumulator.add(value, key, partition, stamp, headers, callback):
                    self._wake()
                return
        except BufferFullError:
            pass
        self._otherwise(topic, value, key, partition, stamp, headers, callback)


class Polling:
    """How a producer is polled: what its `poll()` and the loop know of each other.

    Attributes:
        polls: calls so far.
        replies: where a call takes replies by itself; None for nowhere.
    """

    __slots__ = ("polls", "replies")

    def __init__(self) -> None:
        self.polls = 0
        self.replies: DirectReplies | None = None


class ServeFastPath:
    """`Producer.poll(0)` while no callback is due, as it is called behind each record.

    Args:
        polling: counts the calls.
        queues: what is due; all of them are empty most of the time.
        turns: the loop's, which makes the callbacks due: it goes first where it wants to go on.
        client: its `closed` says that nothing is as usual any more.
        otherwise: called as otherwise(timeout).
    """

    __slots__ = ("_client", "_otherwise", "_polling", "_queues", "_turns")

    def __init__(self, polling: Polling, queues: tuple[Sized, ...], turns: LoopTurns, client: Any,
                 otherwise: Callable[[Any], int]) -> None:
        self._polling, self._queues, self._turns = polling, queues, turns
        self._client, self._otherwise = client, otherwise

    def poll(self, timeout: Any = -1) -> int:
        """Call the callbacks that are due; see `headrace.Producer.poll`."""
        polling = self._polling
        polling.polls += 1
        if polling.replies is not None:
            polling.replies.look()
        if (type(timeout) is int and timeout == 0 and not self._client.closed and not self._is_due()
                and not (self._turns.step_aside() and self._is_due())):
            return 0
        return self._otherwise(timeout)

    def _is_due(self) -> bool:
        return any(map(len, self._queues))


class Accepted(Coroutine[Any, Any, DeliveryFuture]):
    """A coroutine that has done its work when it is made: all that is left is to return the delivery."""

    __slots__ = ("_delivery",)

    def __init__(self, delivery: DeliveryFuture) -> None:
        self._delivery: DeliveryFuture | None = delivery

    def __await__(self) -> Accepted:
        return self

    def __iter__(self) -> Accepted:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, _value: Any) -> Any:
        """Return the delivery, as a coroutine returns."""
        delivery, self._delivery = self._delivery, None
        if delivery is None:
            raise RuntimeError("cannot reuse already awaited coroutine")
        raise StopIteration(delivery)

    def throw(self, kind: Any, value: Any = None, traceback: Any = None) -> Any:
        """Raise an exception, as if it came from inside."""
        self._delivery = None
        raise kind if value is None else value

    def close(self) -> None:
        """Forget the delivery."""
        self._delivery = None


class AIOProduceFastPath:
    """`AIOProducer.produce` with what it needs at hand; anything unusual is left to `otherwise`.

    Args:
        open: accumulators by topic.
        otherwise: awaited as otherwise(topic, value, key, partition, on_delivery, timestamp_ms, headers) for a topic
            that is not in `open`, with a callback, and for what is refused.
        wake: called when the loop has something to do.
        make_future: makes a future of the loop.
        yield_to_loop: awaited when a batch is full, and every 10 ms: the loop needs a turn at least.
    """

    __slots__ = ("_make_future", "_open", "_otherwise", "_turn_at", "_wake", "_yield_to_loop")

    def __init__(self, open: dict[str, Any], otherwise: Callable[..., Any], wake: Callable[[], object],
                 make_future: Callable[[], Any], yield_to_loop: Callable[[], Awaitable[None]]) -> None:
        self._open = open
        self._otherwise = otherwise
        self._wake = wake
        self._make_future = make_future
        self._yield_to_loop = yield_to_loop
        self._turn_at = monotonic() + _TURNS_S

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        on_delivery: Callable[..., object] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> Any:
        """Put a record on its way; see `headrace.aio.AIOProducer.produce`.

        Where there is nothing to wait for it is done before this returns; `await` raises what went wrong.
        """
        stamp = milliseconds(timestamp)
        woken, delivery = -1, DeliveryFuture(self._make_future)
        with suppress(Exception):  # what refused it once refuses it again
            accumulator: Any = self._open.get(topic) if on_delivery is None else None
            if accumulator is not None:
                woken = accumulator.add(value, key, partition, stamp, headers, delivery)
        if woken < 0:
            return self._otherwise(topic, value, key, partition, on_delivery, stamp, headers)
        if woken:
            self._wake()
        now = monotonic()
        if (woken and accumulator.open_batches.full) or now >= self._turn_at:
            self._turn_at = now + _TURNS_S
            return _yielded(self._yield_to_loop, delivery)
        return Accepted(delivery)


async def _yielded(yield_to_loop: Callable[[], Awaitable[None]], delivery: DeliveryFuture) -> DeliveryFuture:
    await yield_to_loop()
    return delivery
