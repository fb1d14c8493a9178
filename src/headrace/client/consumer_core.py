"""The inside of a consumer: its machines wired together, their events turned into messages and callbacks.

Both faces use it: everything here runs on the loop's thread, but for `enter`, `leave`, `positions`, `store` and the
queue of callbacks, which belong to the application's. It must not know wire formats or sockets.

Read next: `client.consumer` for the face, `machines.group_classic` for rebalances.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any

from headrace.client.base import ClientCore
from headrace.client.statistics import ConsumerStatistics
from headrace.config import CONSUMER, Config
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.coordinator import GROUP, CoordinatorFinder
from headrace.machines.fetcher import Fetcher, RecordsReady
from headrace.machines.group_classic import Change, ClassicGroup, GroupFailed, Left, Rebalance, State
from headrace.machines.machine import Event
from headrace.machines.metadata import MetadataChanged, MetadataFailed
from headrace.machines.offsets import GroupOffsets, OffsetLookup, PositionFailed
from headrace.machines.subscription import Key, Subscription
from headrace.machines.transactions import GroupMember
from headrace.net.clock import monotonic
from headrace.records import Message
from headrace.slotted import slotted
from headrace.types import TopicPartition

__all__ = ["Callback", "ConsumerCore", "Partitions", "RebalanceCallback", "offsets_of"]

Partitions = list[TopicPartition]

RebalanceCallback = Callable[[Any, Partitions], Any]
"""Called as callback(consumer, partitions); the asyncio consumer also takes coroutine functions."""

_FOREVER = float("inf")
_MOST_MESSAGES = 1_000_000
_LEAVE_TIMEOUT_S = 5.0
_NO_GENERATION = -1
_COMMIT_TIMEOUT_S = 60.0


@slotted()
class Callback:
    """Code of the application, to run inside `poll()`, and what the loop does when it has returned."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    after: Callable[[], Coroutine[Any, Any, None]] | None = None


class ConsumerCore:
    """One consumer's machines on the running loop.

    Args:
        config: properties, see `headrace.config.PROPERTIES`.
        face: the consumer that callbacks get to see.
        on_ready: called on the loop's thread when there is something to take or to call.

    Attributes:
        handled: a rebalance callback has changed the assignment itself.
    """

    def __init__(self, config: Mapping[str, Any], face: Any, on_ready: Callable[[], None]) -> None:
        self.config = settings = Config(CONSUMER, config, servers_needed=False)
        self.client = client = ClientCore(
            settings, on_event=self._on_event, allow_auto_create=settings["allow.auto.create.topics"])
        timeout_s = settings.seconds("socket.timeout.ms")
        group_id: str = settings["group.id"]
        isolation: int = settings["isolation.level"]
        self.subscription = Subscription(group_id, settings["auto.offset.reset"])
        self.fetcher = Fetcher(self.subscription, client.metadata, settings, client.driver.wake_threadsafe)
        self.lookup = OffsetLookup(self.subscription, client.metadata, isolation, timeout_s)
        client.driver.add(self.lookup)
        self.group: ClassicGroup | None = None
        if group_id:
            finder = CoordinatorFinder(GROUP, group_id)
            self.group = ClassicGroup(settings, self.subscription, client.metadata, finder)
            self.offsets = GroupOffsets(group_id, self.subscription, finder, self.group, isolation, timeout_s)
            for machine in (finder, self.group, self.offsets):
                client.driver.add(machine)
        client.driver.add(self.fetcher)
        self.callbacks: deque[Callback] = deque()
        self.statistics = ConsumerStatistics(
            settings, client.metadata, client.driver, self._notify, lambda: len(self.callbacks),
            subscription=self.subscription)
        if settings["error_cb"] is not None:
            client.on_error = self._on_error
        self.handled = False
        self.closed = False
        self._face = face
        self.on_ready = on_ready
        self._rebalance_callbacks: dict[Change, RebalanceCallback | None] = {}
        self._left: asyncio.Future[None] | None = None
        self._reported_topics: set[str] = set()
        self._read_as = (_NO_GENERATION, "")
        self._refused = False
        self._commit_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # The application's thread

    def check_open(self) -> None:
        """Raise `ClientClosedError` when the consumer is closed."""
        if self.closed:
            raise ClientClosedError("Consumer closed")
        self.client.check_open()

    @property
    def usable(self) -> bool:
        """False after `close()`, and in a child process that was forked after the consumer was made."""
        return not (self.closed or self.client.closed)

    def enter(self, num_messages: int = 1) -> None:
        """The application came in to read; it is not late for `max.poll.interval.ms` while it is inside."""
        self.check_open()
        if not 0 <= num_messages <= _MOST_MESSAGES:
            raise ValueError(f"num_messages must be between 0 and {_MOST_MESSAGES}, not {num_messages}")
        if self.group is not None:
            self.group.application_at = _FOREVER
            if self.group.state is State.STALLED:
                self.client.driver.wake_threadsafe()

    def leave(self) -> None:
        """The application goes to work on what it got."""
        group = self.group
        if group is not None:
            group.application_at = monotonic()
            if group.generation not in (self._read_as[0], _NO_GENERATION):
                self._read_as = (group.generation, group.member_id)

    def group_member(self) -> GroupMember | None:
        """The member that this consumer was when the application last read; None without a "group.id".

        A rebalance may have come since, in the background. Offsets of what was read before it must not pass as those
        of the new generation: another consumer may have the partitions by now (KIP-447).
        """
        self.check_open()
        if self.group is None:
            return None
        return GroupMember(self.config["group.id"], *self._read_as, self.group.instance_id)

    def give_back(self, messages: list[Message]) -> None:
        """The call that took these was interrupted: hand them out again (loop's thread)."""
        first: dict[Key, int] = {}
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if message.error() is None and topic is not None and partition is not None and offset is not None:
                first.setdefault((topic, partition), offset)
        for (topic, partition), offset in first.items():
            state = self.subscription.get(topic, partition)
            if state is not None:
                if self.config["enable.auto.offset.store"]:
                    state.stored = offset
                self.subscription.seek(topic, partition, offset)
        self.client.driver.wake()

    def positions(self, partitions: Iterable[TopicPartition]) -> Partitions:
        """The offset of the next record of each partition."""
        self.check_open()
        found = []
        for tp in partitions:
            state = self.subscription.get(tp.topic, tp.partition)
            found.append(TopicPartition(tp.topic, tp.partition, *(() if state is None else (state.position,))))
        return found

    def store(self, message: Message | None, offsets: Partitions | None) -> None:
        """Choose what the next commit covers."""
        self.check_open()
        if self.config["enable.auto.offset.store"]:
            raise KafkaException(KafkaError(
                KafkaError._INVALID_ARG, 'store_offsets() needs "enable.auto.offset.store": false'))
        for tp in offsets_of(message, offsets) or ():
            state = self.subscription.require(tp.topic, tp.partition)
            state.stored_metadata = tp.metadata
            state.stored = tp.offset

    # Choosing what to read

    def require_group(self) -> ClassicGroup:
        """The group, or `KafkaException` when there is no "group.id"."""
        if self.group is None:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_GROUP, 'This needs a "group.id" in the configuration'))
        return self.group

    def subscribe(self, topics: list[str], callbacks: dict[Change, RebalanceCallback | None]) -> None:
        """Join the group to read these topics."""
        self.check_open()
        group = self.require_group()
        self.subscription.subscribe(topics)
        self._rebalance_callbacks = callbacks
        if group.application_at == _FOREVER:
            self.leave()
        self._start_auto_commit()
        self.client.driver.wake()

    def change_assignment(self, change: Callable[[Partitions], None], partitions: Partitions) -> None:
        """Change the assignment by hand, with a method of the subscription."""
        self.check_open()
        self.handled = True
        change(partitions)
        self._on_assignment()

    def _on_assignment(self) -> None:
        self.client.metadata.want_topics(sorted(self.subscription.topics()))
        self._start_auto_commit()
        self.client.driver.wake()

    # Offsets

    def commit(self, offsets: Partitions) -> None:
        """Commit; `on_commit` is told how it went."""
        self.offsets.commit(offsets, monotonic() + _COMMIT_TIMEOUT_S, self._on_committed)
        self.client.driver.wake()

    async def commit_and_wait(self, offsets: Partitions, timeout_s: float = _COMMIT_TIMEOUT_S) -> Partitions:
        """Commit and say how it went; raises `KafkaException` when no partition was committed."""
        outcome: asyncio.Future[tuple[Partitions, KafkaError | None]] = self.client.future()
        self.offsets.commit(
            offsets, monotonic() + timeout_s, lambda done, error: _resolve(outcome, (done, error)))
        self.client.driver.wake()
        partitions, error = await outcome
        if error is not None and all(tp.error is not None for tp in partitions):
            raise KafkaException(error)
        return partitions

    async def committed(self, partitions: Partitions, timeout: float | None) -> Partitions:
        """What the group has for these partitions."""
        self.require_group()
        return await self._ask(
            partitions, timeout, lambda tp, expires_at, found: self.offsets.ask([tp], expires_at, found))

    async def look_up(self, partitions: Partitions, timeout: float | None) -> Partitions:
        """What the leaders have at the times in `offset`, EARLIEST and LATEST included."""
        self.client.metadata.want_topics(sorted({tp.topic for tp in partitions}))
        return await self._ask(partitions, timeout, lambda tp, expires_at, found: self.lookup.ask(
            tp.topic, tp.partition, tp.offset, expires_at, found))

    async def _ask(
        self, partitions: Partitions, timeout: float | None,
        ask: Callable[[TopicPartition, float, Callable[[TopicPartition], None]], None],
    ) -> Partitions:
        self.check_open()
        expires_at = _FOREVER if timeout is None or timeout < 0 else monotonic() + timeout
        answers = []
        for tp in partitions:
            answer: asyncio.Future[TopicPartition] = self.client.future()
            answers.append(answer)
            ask(tp, expires_at, _resolver(answer))
        self.client.driver.wake()
        return list(await asyncio.gather(*answers))

    def _start_auto_commit(self) -> None:
        if self._commit_timer is None and self.group is not None and self.config["enable.auto.commit"]:
            self._commit_timer = asyncio.get_running_loop().call_later(
                self.config.seconds("auto.commit.interval.ms"), self._auto_commit)

    def _auto_commit(self) -> None:
        self._commit_timer = None
        stored = self.subscription.to_commit()
        if stored and not self.offsets.is_committing:
            self.commit(stored)
        self._start_auto_commit()

    def _on_committed(self, partitions: Partitions, error: KafkaError | None) -> None:
        on_commit = self.config["on_commit"]
        if on_commit is not None:
            self.callbacks.append(Callback(on_commit, (error, partitions)))
            self.on_ready()

    async def _commit_stored(self) -> None:
        """Commit before partitions are given up; a failure is told to `on_commit` and stops nothing."""
        if self.group is None or not self.config["enable.auto.commit"]:
            return
        stored = self.subscription.to_commit()
        if stored:
            try:
                await self.commit_and_wait(stored, _LEAVE_TIMEOUT_S)
            except KafkaException as failure:
                self._on_committed(stored, failure.error)

    # Ending

    def revocation(self) -> list[Callback]:
        """The callback to run before the group is left, if there is one. Others are not served any more."""
        self.callbacks.clear()
        if not self.usable:
            return []
        function = self._rebalance_callbacks.get(Change.REVOKE)
        held = self.subscription.positions()
        if function is None or not held or self.group is None or not self.group.owned:
            return []
        return [Callback(function, (self._face, held))]

    async def leave_group(self) -> None:
        """Commit what is stored, give everything up, and say goodbye to the group."""
        await self._commit_stored()
        self.subscription.assign([])
        self.subscription.subscribe([])
        if self.group is None or self.group.state is State.OUTSIDE:
            return
        self._left = asyncio.get_running_loop().create_future()
        self.group.leave()
        self.client.driver.wake()
        with suppress(TimeoutError):  # the group finds out by itself when the session ends
            await asyncio.wait_for(self._left, _LEAVE_TIMEOUT_S)
        self._left = None

    async def close(self) -> None:
        """Everything that ends a consumer, but for the application's callbacks."""
        self.closed = True
        self.statistics.stop()
        if self.client.closed:
            return
        try:
            await self.leave_group()
        finally:
            if self._commit_timer is not None:
                self._commit_timer.cancel()
            await self.client.close()
            self.on_ready()

    # Events of the machines

    def _on_event(self, event: Event) -> None:
        if isinstance(event, RecordsReady):
            self.on_ready()
        elif isinstance(event, Rebalance):
            self._on_rebalance(event)
        elif isinstance(event, MetadataChanged):
            self._refused = False
            self._report_topics(event)
        elif isinstance(event, MetadataFailed):
            if not self._refused:  # once, until a broker answers again
                self._tell(None, -1, event.error)
            self._refused = True
        elif isinstance(event, PositionFailed):
            self._tell(event.topic, event.partition, event.error)
        elif isinstance(event, GroupFailed):
            self._tell(None, -1, event.error)
        elif isinstance(event, Left) and self._left is not None:
            _resolve(self._left, None)

    def _on_error(self, error: KafkaError) -> None:
        self._notify(self.config["error_cb"], error)

    def _notify(self, callback: Callable[..., Any], *arguments: Any) -> None:
        self.callbacks.append(Callback(callback, arguments))
        self.on_ready()

    def _tell(self, topic: str | None, partition: int, error: KafkaError) -> None:
        self.fetcher.tell(topic, partition, error)
        self.on_ready()

    def _on_rebalance(self, event: Rebalance) -> None:
        function = self._rebalance_callbacks.get(event.change)

        async def complete() -> None:
            await self._complete(event)

        if function is not None:
            self.callbacks.append(Callback(function, (self._face, event.partitions), complete))
            self.on_ready()
            return
        self.handled = False
        task = asyncio.get_running_loop().create_task(complete())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _complete(self, event: Rebalance) -> None:
        """Do what the application's callback left undone, and let the group go on."""
        if event.change is Change.REVOKE:
            await self._commit_stored()
        if not self.handled:
            self._apply(event)
        assert self.group is not None
        self.group.callback_done(monotonic())
        self._on_assignment()

    def _apply(self, event: Rebalance) -> None:
        subscription = self.subscription
        if event.change is not Change.ASSIGN:
            subscription.remove(tp for tp in event.partitions if subscription.get(tp.topic, tp.partition) is not None)
        elif event.incremental:
            subscription.add(event.partitions)
        else:
            subscription.assign(event.partitions)

    def _report_topics(self, event: MetadataChanged) -> None:
        """Tell once about each topic that is asked for and can not be read."""
        for name in self.subscription.names | self.subscription.topics():
            info = event.cluster.topics.get(name)
            if info is None or info.error is None:
                self._reported_topics.discard(name)
            elif name not in self._reported_topics:
                self._reported_topics.add(name)
                text = f"Subscribed topic not available: {info.error}"
                self._tell(name, -1, KafkaError(info.error.code(), text))


def _resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _resolver(future: asyncio.Future[TopicPartition]) -> Callable[[TopicPartition], None]:
    return lambda found: _resolve(future, found)


def offsets_of(message: Message | None, offsets: Partitions | None) -> Partitions | None:
    """The offsets that `commit` and `store_offsets` were given, in either form; None for none."""
    if message is not None and offsets is not None:
        raise ValueError("message and offsets are mutually exclusive")
    if message is None:
        return offsets
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None or offset is None:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "The message has no topic, partition and offset"))
    return [TopicPartition(topic, partition, offset + 1, None, message.leader_epoch())]
