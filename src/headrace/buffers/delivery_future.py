"""`DeliveryFuture`: the outcome of one record, for asyncio: a future that is made on demand only.

A batch has one outcome (`ProduceResult`); each of its records has a small `DeliveryFuture` that looks it up. The native
twin has the same names. It must not know event loops: it is given what makes a future. Read next:
`headrace.buffers.closed_batch`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import Any, Protocol

from headrace.errors import KafkaError, KafkaException
from headrace.records.message import Message

__all__ = ["DeliveryFuture", "DoneCallback", "ProduceResult"]


class ProduceResult:
    """The outcome of a batch.

    Args:
        base_offset: offset of its first record, negative when it is not known.
        timestamp_type: 2 when the broker set the timestamps to `timestamp_ms`; otherwise the records' own stand.
        timestamp_ms: the broker's timestamp.
        error: why it was not delivered, or None.
        at_s: monotonic seconds, for the latency.
        on_unretrieved: called with the error when the batch is forgotten and the error was never retrieved.

    Attributes:
        retrieved: the error was raised or returned to a caller.
    """

    __slots__ = ("at_s", "base_offset", "error", "on_unretrieved", "retrieved", "timestamp_ms", "timestamp_type")

    def __init__(self, base_offset: int, timestamp_type: int, timestamp_ms: int, error: KafkaError | None, at_s: float,
                 on_unretrieved: Callable[[KafkaError], object]) -> None:
        self.base_offset = base_offset
        self.timestamp_type = timestamp_type
        self.timestamp_ms = timestamp_ms
        self.error = error
        self.at_s = at_s
        self.on_unretrieved = on_unretrieved
        self.retrieved = False

    def __del__(self) -> None:
        if self.error is not None and not self.retrieved and not sys.is_finalizing():
            self.on_unretrieved(self.error)


class DoneCallback:
    """Calls the callback of a `DeliveryFuture` that is done. Equal to others of the same callback."""

    __slots__ = ("_callback", "_delivery")

    def __init__(self, callback: Callable[[Any], object], delivery: DeliveryFuture) -> None:
        self._callback = callback
        self._delivery = delivery

    def __call__(self, _: Any) -> None:
        """The future behind the delivery is done."""
        self._callback(self._delivery)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DoneCallback) and self._callback == other._callback

    __hash__ = None  # type: ignore[assignment]


class SettledBatch(Protocol):
    """What a `DeliveryFuture` needs of the `ClosedBatch` that its record is in."""

    @property
    def settled(self) -> bool:
        """Whether the batch has its outcome."""
        ...

    def place_of(self, index: int) -> tuple[SettledBatch, int] | None:
        """Where the record at `index` is since the batch was divided; None while it was not."""
        ...

    def message_at(self, index: int, appended_at: float) -> Message:
        """The delivered record at `index`, or what was raised instead of it."""
        ...

    def watch(self, delivery: DeliveryFuture) -> None:
        """Call `resolve()` of a delivery when the batch is settled."""
        ...


class DeliveryFuture:
    """The outcome of one record: `await` gives the delivered `Message`, or raises `KafkaException`.

    It has the methods of an `asyncio.Future`, and goes where asyncio takes one: `gather()`, `wait()`, `wait_for()`.
    Cancelling it does not call the record back.

    Args:
        make_future: makes a future of the loop.
    """

    __slots__ = ("_appended_at", "_batch", "_future", "_index", "_make_future")

    _asyncio_future_blocking = False
    """What asyncio knows a future by."""

    def __init__(self, make_future: Callable[[], Any]) -> None:
        self._make_future = make_future
        self._future: Any = None
        self._batch: SettledBatch | None = None
        self._index, self._appended_at = -1, 0.0

    def __await__(self) -> Generator[Any, None, Message]:
        if self._future is None and self.is_settled():
            return self._outcome()
        message: Message = yield from self._as_future()
        return message

    __iter__ = __await__

    def done(self) -> bool:
        """True when the record is stored or given up, or when this was cancelled."""
        return self.is_settled() or self.cancelled()

    def result(self) -> Message:
        """The delivered message.

        Raises:
            KafkaException: the record was not delivered.
            asyncio.CancelledError: this was cancelled.
            asyncio.InvalidStateError: it is not done.
        """
        if self._future is None and self.is_settled():
            return self._outcome()
        message: Message = self._as_future().result()
        return message

    def exception(self) -> BaseException | None:
        """Why the record was not delivered, None if it was."""
        failed: BaseException | None = self._as_future().exception()
        return failed

    def cancelled(self) -> bool:
        """True when this was cancelled."""
        return self._future is not None and bool(self._future.cancelled())

    def cancel(self, msg: Any = None) -> bool:
        """Stop waiting. The record goes on."""
        return bool(self._as_future().cancel(msg))

    def get_loop(self) -> Any:
        """The event loop that it belongs to."""
        return self._as_future().get_loop()

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Any = None) -> None:
        """Call a function with this when it is done, on the loop."""
        self._as_future().add_done_callback(DoneCallback(callback, self), context=context)

    def remove_done_callback(self, callback: Callable[[Any], object]) -> int:
        """Take back `add_done_callback`. Returns how often it had been added."""
        removed: int = self._as_future().remove_done_callback(DoneCallback(callback, self))
        return removed

    def _as_future(self) -> Any:
        if self._future is None:
            self._future = self._make_future()
            if self.is_settled():
                self.resolve()
            else:
                self.wait()
        return self._future

    def place(self, batch: SettledBatch, index: int, appended_at: float) -> None:
        """The record was appended to a batch: it is the one at `index`."""
        self._batch, self._index, self._appended_at = batch, index, appended_at

    def is_settled(self) -> bool:
        """Whether the record has its outcome. Finds its batch anew if that was divided."""
        if self._batch is None:  # the record was not appended
            return False
        while (place := self._batch.place_of(self._index)) is not None:
            self._batch, self._index = place
        return self._batch.settled

    def wait(self) -> None:
        """Have the batch call `resolve()` when it is settled."""
        if self._batch is not None:
            self._batch.watch(self)

    def resolve(self) -> None:
        """The batch is settled: resolve the future."""
        if self._future.done():  # cancelled
            return
        try:
            message = self._outcome()
        except KafkaException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(message)

    def _outcome(self) -> Message:
        assert self._batch is not None
        return self._batch.message_at(self._index, self._appended_at)
