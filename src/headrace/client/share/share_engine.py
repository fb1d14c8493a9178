"""What a share consumer does for its application: each rule once, for both faces.

A coroutine runs on the loop's thread. A generator is a rule about waiting: it runs where the application is, together
with the application's callbacks, and yields what it waits for (`client.waits`). One call at a time may be inside. It
must not know wire formats, sockets or threads.

Read next: `client.share.share_machines` for what runs beside it, `machines.share.held_records`.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import uuid4

from headrace.arguments import instance_of, list_of
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.share.polled_messages import Messages
from headrace.client.share.share_machines import ShareMachines
from headrace.client.waits import Steps, Wait, seconds
from headrace.config import SHARE, Config
from headrace.errors import (
    ConcurrentModificationException,
    CorruptRecordError,
    IllegalStateException,
    KafkaError,
    KafkaException,
)
from headrace.interpreter import SteadyLock
from headrace.machines.consumer.subscription import Key
from headrace.machines.share.acknowledgements import RELEASE, Acknowledgements, gaps_in
from headrace.machines.share.held_records import HeldRecords
from headrace.machines.share.share_fetcher import RECORD_LIMIT, AcquiredBatch, Demand, ShareFailure
from headrace.net.settings import Connector
from headrace.net.timers import Clock, monotonic
from headrace.records import Cursor, Message, acquired
from headrace.types.metrics import Metrics
from headrace.types.records import TIMESTAMP_NOT_AVAILABLE, TopicPartition
from headrace.types.share import AcknowledgeType

__all__ = ["AcknowledgementCallback", "ShareEngine"]

AcknowledgementCallback = Callable[[dict[TopicPartition, set[int]], KafkaException | None], Any]
"""Called as callback(offsets, exception); the asyncio share consumer also takes coroutine functions."""

_ALL = (1 << 31) - 1
_SETTLE_S = 1.0
"""How long a loop may go through a batch before what it has seen of it is settled."""
_NO_TIMESTAMP = (TIMESTAMP_NOT_AVAILABLE, -1)
_BUSY = ("a call to this share consumer goes on, in another thread or task: use one consumer for each, or let them "
         "take turns")
_IN_CALLBACK = "a share consumer cannot be called from its own callbacks"


class _Turn(SteadyLock):
    """What a call has while it is inside; the next one is refused.

    Attributes:
        in_callback: the call inside runs a callback.
    """

    __slots__ = ("in_callback",)

    def __init__(self) -> None:
        self.in_callback = False

    def __enter__(self) -> bool:
        if self._is_owned():  # by this thread, or by another task of it
            raise IllegalStateException(_IN_CALLBACK) if self.in_callback else ConcurrentModificationException(_BUSY)
        for taken in map(self.acquire, (False,)):  # noqa: B007 - as in `SteadyLock`
            break
        if not taken:
            raise ConcurrentModificationException(_BUSY)
        return True


class ShareEngine:
    """One share consumer on the running loop, without a face.

    Args:
        config: properties, see `headrace.config.PROPERTIES`.
        given: holds the application's callbacks for the face, the consumer; when that is let go, this ends.
        on_change: wakes what waits in the face, when there may be something to take or to call.
        awaits: callbacks may be coroutine functions.
        connector: opens streams; real sockets when None.
        clock: monotonic seconds; a simulation gives its own.

    Attributes:
        machines: what runs on the loop.
    """

    def __init__(
        self, config: Mapping[str, Any], given: ApplicationCallbacks, on_change: Callable[[], object], *,
        awaits: bool = False, connector: Connector | None = None, clock: Clock = monotonic,
    ) -> None:
        settings = Config(SHARE, given.lend_properties(config), servers_needed=False)
        self._given, self._awaits, self._clock = weakref.ref(given), awaits, clock
        self.machines = machines = ShareMachines(settings, str(uuid4()), on_change, connector=connector, clock=clock)
        self.machines.on_acknowledged = self._on_acknowledged
        self._group, self._fetcher = self.machines.group, self.machines.fetcher
        self._wake = self.machines.client.driver.wake_threadsafe
        self._explicit = settings["share.acknowledgement.mode"] == "explicit"
        strict = settings["share.acquire.mode"] == RECORD_LIMIT
        self._max_records: int = settings["max.poll.records"] if strict else _ALL  # locked as it is: see `_take`
        self._check_crcs: bool = settings["check.crcs"]
        self._max_decompressed: int = settings["receive.message.max.bytes"]
        self._held = HeldRecords()
        self._answers: dict[Key, KafkaError | None] = {}
        self._tell: AcknowledgementCallback | None = None
        self._turn = _Turn()
        self._wants_one, self._settle_at = False, 0.0
        machines.client.ending = self._end  # it releases what is held
        given.when_let_go(lambda: machines.usable, machines.client.abandon)

    async def log_in(self) -> ShareEngine:
        """This engine, once it has the token of `oauth_cb`, where there is one; else it is closed."""
        await self.machines.client.log_in(self._end)
        return self

    # Choosing what to read

    def subscribe(self, topics: list[str]) -> Steps[None]:
        """Join the group to read these topics, or read these instead of those of before."""
        with self._turn:
            self.machines.check_open()
            names = list_of(str, topics, "topics")
            if not all(names) or len(set(names)) < len(names) or any(name.startswith("^") for name in names):
                raise ValueError(f"subscribe() takes names of topics, each once, and no patterns; not {names}")
            if names:
                yield self._subscribe(names)
            else:
                yield from self._leave()

    async def _subscribe(self, names: list[str]) -> None:
        self._group.subscribe(names, self._clock())
        self.machines.want_topics()
        self.machines.client.driver.wake()

    def unsubscribe(self) -> Steps[None]:
        """Send what is acknowledged, release the rest, and leave the group."""
        with self._turn:
            self.machines.check_open()
            yield from self._leave()

    def _leave(self) -> Steps[None]:
        self._submit()
        self._held.forget()
        if not self._group.is_outside:
            yield self.machines.leave()
        yield from self._serve()

    def subscription(self) -> list[str]:
        """The topics subscribed to."""
        with self._turn:
            self.machines.check_open()
            return list(self._group.topics)

    # Reading

    def want_one(self) -> None:
        """Have the next `poll` give one message: a loop may be left at each, and what it has not seen stays here."""
        self._wants_one = True

    def poll(self, timeout: float | None) -> Steps[Messages]:
        """What is there, or the first that comes; nothing when time is up. Runs callbacks."""
        with self._turn:
            loops, self._wants_one = self._wants_one, False
            self.machines.check_open()
            give_up_at = self._clock() + seconds(timeout)
            if not self._group.topics:
                raise IllegalStateException("Consumer is not subscribed to any topics")
            goes_on = loops and self._is_in_batch()
            if not goes_on:
                self._settle_last_poll()
            elif self._clock() >= self._settle_at:
                self._commit()  # a slow loop would be at the end of a batch when its locks are over
            self._group.application_at = float("inf")
            try:
                if goes_on and (following := self._take(1)):
                    return Messages(following)
                return (yield from self._poll(give_up_at, 1 if loops else self._max_records))
            except BaseException:  # interrupted, or a callback raised: the caller will not see what was taken
                self._give_back()
                raise
            finally:
                self._group.application_at = self._clock()

    def _settle_last_poll(self) -> None:
        if not self._explicit:
            self._held.accept_all()
        elif left := self._held.unacknowledged:
            raise IllegalStateException(f"{left} records from previous poll have not been acknowledged")
        self._submit()

    def _is_in_batch(self) -> bool:
        """Whether a batch is begun: what a loop has seen of it can be settled with the rest."""
        queue = self._fetcher.queue
        return bool(queue) and isinstance(queue[0], AcquiredBatch) and queue[0].cursor is not None

    def _poll(self, give_up_at: float, most: int) -> Steps[Messages]:
        fetches, fetcher, machines = self._fetcher.fetches, self._fetcher, self.machines
        try:
            while True:
                seen = machines.news
                yield from self._serve()
                if self._group.failure is not None:
                    raise KafkaException(self._group.failure)
                if fetcher.queue:  # it empties now, and who reads it must not be taken for one who waits
                    fetcher.demand = Demand.NONE
                messages = self._take(most)
                if messages or not machines.usable:
                    return Messages(messages)
                if fetcher.demand is not Demand.WAITING:
                    fetcher.demand = Demand.WAITING
                    self._wake()
                if self._clock() >= give_up_at:
                    if machines.yield_to_loop() and fetcher.queue:
                        continue
                    return Messages()
                yield Wait(machines.news_since(seen), give_up_at)
        finally:
            if fetcher.demand is Demand.WAITING:  # who only looks in shall find something when he comes again
                fetcher.demand = Demand.ONCE if fetcher.fetches == fetches else Demand.NONE

    def _give_back(self) -> None:
        """Let others have what this call has taken out of the queue, also what was just decoded."""
        for found in self._fetcher.queue.copy():
            if (isinstance(found, AcquiredBatch) and (cursor := found.cursor) is not None
                    and cursor.position != found.position):
                self._fetcher.queue.remove(found)
                self._release(found)
        self._held.give_back()
        self._submit()

    def _take(self, most: int) -> list[Message]:
        """Messages that are there at once: all, also if whole batches are more than was asked for.

        What is left would stay locked, and nobody would have it when its lock is over.
        """
        taken: list[Message] = []
        queue = self._fetcher.queue
        while queue and len(taken) < most:
            found = queue[0]
            if isinstance(found, ShareFailure):
                if found.key is None and taken:
                    break  # these first: the next call raises it
                queue.popleft()
                if found.key is None:
                    raise KafkaException(found.error)
                taken.append(_error_message(found.key, -1, found.error))
            elif found.session.lost or self._clock() >= found.until:
                queue.popleft()  # others may have it by now
            elif found.key[0] not in self._group.topics:
                queue.popleft()
                self._release(found)
            else:
                taken += self._decode(found, most - len(taken))
        return taken

    def _decode(self, found: AcquiredBatch, most: int) -> list[Message]:
        cursor, (topic, partition) = found.cursor, found.key
        if cursor is None:
            found.position = found.ranges[0][0]
            cursor = found.cursor = Cursor(
                found.data, topic, partition, found.position, check_crcs=self._check_crcs,
                max_decompressed_bytes=self._max_decompressed)
        try:
            messages = acquired(cursor.take(most), found.ranges)
        except CorruptRecordError as damage:
            self._drop(found)
            self._release(found)
            return [_error_message(found.key, found.position, damage.error)]
        self._hold(found, messages, found.ranges[-1][1] + 1 if cursor.exhausted else cursor.position)
        if cursor.exhausted:  # not before: Ctrl-C in between would leave the records locked
            self._drop(found)
        return messages

    def _drop(self, found: AcquiredBatch) -> None:
        if self._fetcher.queue and self._fetcher.queue[0] is found:  # else the queue was cleared
            self._fetcher.queue.popleft()

    def _hold(self, found: AcquiredBatch, messages: list[Message], end: int) -> None:
        """The application has these; where there is no record up to `end`, none will come."""
        offsets = [offset for message in messages if (offset := message.offset()) is not None]
        self._held.add(found, offsets)
        gaps = gaps_in(found.ranges, found.position, end, offsets)
        found.position = end
        if gaps:
            self._send([Acknowledgements(found.key, found.topic_id, found.session, {}, gaps)])

    def _release(self, found: AcquiredBatch) -> None:
        """Let others have what the application did not get."""
        runs = [(max(first, found.position), last, RELEASE) for first, last, _ in found.ranges
                if last >= found.position]
        if runs:
            self._send([Acknowledgements(found.key, found.topic_id, found.session, {}, runs)])

    # Acknowledging

    def acknowledge(self, message: Message, kind: int) -> None:
        """Say what became of a record."""
        with self._turn:
            self.machines.check_open()  # closed is said before anything about the message
            instance_of(Message, message, "message")
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if topic is None or partition is None or offset is None:
            raise ValueError("this message has no topic, partition or offset: give one that poll() has returned")
        self.acknowledge_offset(topic, partition, offset, kind)

    def acknowledge_offset(self, topic: str, partition: int, offset: int, kind: int) -> None:
        """Say what became of a record."""
        with self._turn:
            self.machines.check_open()
            key = (instance_of(str, topic, "topic"), instance_of(int, partition, "partition"))
            if partition < 0 or instance_of(int, offset, "offset") < 0:
                raise ValueError(f"partition {partition} and offset {offset} must not be negative")
            if partition >= 1 << 31 or offset >= 1 << 63:
                raise OverflowError(f"partition {partition} and offset {offset} must fit in 32 and 64 bits")
            acknowledged_as = int(AcknowledgeType(instance_of(int, kind, "ack_type")))  # a ValueError for others
            if not self._explicit:
                raise IllegalStateException(
                    'only with "share.acknowledgement.mode": "explicit" are records acknowledged one by one')
            if not self._held.acknowledge(key, offset, acknowledged_as):
                raise IllegalStateException(f"{topic}[{partition}]@{offset} is not held: it was acknowledged before, "
                                            "or poll() has not returned it")

    def commit_sync(self, timeout: float | None) -> Steps[dict[TopicPartition, KafkaException | None]]:
        """Send what is acknowledged and wait for the brokers' answers."""
        with self._turn:
            self.machines.check_open()
            give_up_at = self._clock() + seconds(timeout)
            answers = self._answers = dict[Key, KafkaError | None]()
            sent = self._commit()
            while self._fetcher.unanswered and self.machines.usable and self._clock() < give_up_at:
                seen = self.machines.news
                yield from self._serve()
                if self._fetcher.unanswered:
                    yield Wait(self.machines.news_since(seen), give_up_at)
            yield from self._serve()
            late = KafkaError(KafkaError._TIMED_OUT, "no answer to the acknowledgement in time: it may hold or not")
            found = {**{key: late for key in sent if key not in answers}, **answers}
            return {TopicPartition(*key): None if error is None else KafkaException(error)
                    for key, error in sorted(found.items())}

    def commit_async(self) -> Steps[None]:
        """Send what is acknowledged."""
        with self._turn:
            self.machines.check_open()
            self._commit()
            yield from self._serve()

    def _commit(self) -> set[Key]:
        if not self._explicit:
            self._held.accept_all()
        return self._submit()

    def _submit(self) -> set[Key]:
        """Send what was said of the records; the partitions of these."""
        self._settle_at = self._clock() + _SETTLE_S
        taken = self._held.take()
        self._send(taken)
        return {each.key for each in taken}

    def _send(self, acknowledgements: list[Acknowledgements]) -> None:
        if acknowledgements:
            self._fetcher.acknowledge(acknowledgements)
            self._wake()

    def set_callback(self, callback: AcknowledgementCallback | None) -> None:
        """Have the brokers' answers handed to a function."""
        with self._turn:
            self.machines.check_open()
            if callback is not None and not callable(callback):
                raise TypeError("callback must be callable or None")
            given = self._given()
            assert given is not None, "who calls this holds the face"
            self._tell = given.lend("acknowledgement", callback)

    def _on_acknowledged(self, key: Key, offsets: frozenset[int], error: KafkaError | None) -> None:
        self._answers[key] = error or self._answers.get(key)
        if self._tell is not None:
            self.machines.notify(self._tell, {TopicPartition(*key): set(offsets)},
                                 None if error is None else KafkaException(error))

    # Callbacks, and one call at a time

    def _serve(self) -> Steps[None]:
        """Run the callbacks that wait."""
        callbacks = self.machines.callbacks
        while callbacks:
            function, arguments = callbacks.popleft()
            self._turn.in_callback = True
            try:
                result = function(*arguments)
                if self._awaits and inspect.isawaitable(result):
                    yield _result_of(result)
            finally:
                self._turn.in_callback = False

    # The member, and the end

    def lock_timeout_ms(self) -> int | None:
        """How long a record may be held."""
        with self._turn:
            self.machines.check_open()
            return self._fetcher.lock_timeout_ms

    def metrics(self) -> Metrics:
        """What `stats_cb` gets. On the loop."""
        self.machines.check_open()
        return self.machines.statistics.metrics()

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in as somebody else from now on."""
        with self._turn:
            self.machines.check_open()
            self.machines.client.set_sasl_credentials(username, password)

    def close(self) -> Steps[None]:
        """Send what is acknowledged, release the rest, leave the group and close all connections.

        In a forked child there is nothing to do, and a thread that had its turn there never ends it.
        """
        if not self.machines.usable:
            return
        with self._turn:
            if self.machines.closed:
                return
            self._submit()
            self._held.forget()
            try:
                yield self._end()
            finally:
                self.machines.closed = True
            yield from self._serve()

    async def _end(self) -> None:
        machines = self.machines
        machines.closed = True
        machines.statistics.stop()
        if machines.client.closed:
            return
        try:
            if not self._group.is_outside:
                await machines.leave()
        finally:
            await machines.client.close()
            machines.ready()


async def _result_of(begun: Awaitable[Any]) -> Any:
    return await begun


def _error_message(key: Key | None, offset: int, error: KafkaError) -> Message:
    topic, partition = key or (None, -1)
    return Message(topic, partition, offset, error=error, timestamp=_NO_TIMESTAMP)
