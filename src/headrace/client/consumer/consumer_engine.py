"""The inside of a consumer: its machines wired together, their events turned into messages and callbacks.

Both faces use it: everything here runs on the loop's thread, but for `enter`, `collect`, `meet`, `leave`, `positions`,
`store` and the queue of callbacks, which belong to the application's. A rebalance waits in that queue, with a callback
or without, until the application comes in: partitions come and go in its own thread only (`collect`). It must not know
wire formats or sockets.

Read next: `client.consumer.aio_consumer` for the face, `machines.groups.membership` for rebalances,
`machines.groups.ownership` for commits.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from headrace.arguments import instance_of, list_of
from headrace.client.application_callbacks import ApplicationCallbacks, when_let_go
from headrace.client.core import ClientCore
from headrace.client.statistics import ConsumerStatistics
from headrace.config import CONSUMER, Config
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.cluster.coordinator import GROUP, CoordinatorFinder
from headrace.machines.cluster.metadata import Cluster, MetadataChanged, MetadataFailed
from headrace.machines.consumer.fetcher import Fetcher, RecordsReady
from headrace.machines.consumer.offsets import GroupOffsets, OffsetLookup, PositionFailed
from headrace.machines.consumer.recreation import follow
from headrace.machines.consumer.subscription import Key, Subscription
from headrace.machines.groups.group_protocols import membership_of
from headrace.machines.groups.membership import Change, GroupFailed, Left, Membership, MembershipFactory, Rebalance
from headrace.machines.groups.ownership import Ownership
from headrace.machines.machine import Event
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from headrace.net.settings import Connector
from headrace.net.timers import Clock, monotonic
from headrace.records import Message
from headrace.slotted import slotted
from headrace.types.records import TopicPartition

__all__ = ["NOTHING_TO_COMMIT", "Callback", "ConsumerCore", "Partitions", "RebalanceCallback", "offsets_of"]

Partitions = list[TopicPartition]

RebalanceCallback = Callable[[Any, Partitions], Any]
"""Called as callback(consumer, partitions); the asyncio consumer also takes coroutine functions."""

_FOREVER = float("inf")
_MOST_MESSAGES = 1_000_000
_LEAVE_TIMEOUT_S = 5.0
_COMMIT_TIMEOUT_S = 60.0
NOTHING_TO_COMMIT = KafkaError(KafkaError._NO_OFFSET, "Commit failed: no new offset is stored")


@slotted()
class Callback:
    """Code of the application, to run inside `poll()`.

    Attributes:
        rebalance: what it is told of; the core completes it when the code has returned.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    rebalance: Rebalance | None = None


class ConsumerCore:
    """One consumer's machines on the running loop.

    Args:
        config: properties, see `headrace.config.PROPERTIES`.
        face: the consumer, which when it is let go ends this.
        given: holds the application's callbacks for the face.
        on_ready: called on the loop's thread when there is something to take or to call.
        connector: opens streams; real sockets when None.
        clock: monotonic seconds; a simulation gives its own.
        membership: makes the member of the group that the properties name.
    """

    def __init__(
        self, config: Mapping[str, Any], face: Any, given: ApplicationCallbacks, on_ready: Callable[[], None], *,
        connector: Connector | None = None, clock: Clock = monotonic, membership: MembershipFactory = membership_of,
    ) -> None:
        self.config = settings = Config(CONSUMER, given.lend_properties(config), servers_needed=False)
        self._clock = clock
        self.client = client = ClientCore(
            settings, on_event=self._on_event, allow_auto_create=settings["allow.auto.create.topics"],
            connector=connector, clock=clock)
        timeout_s = settings.seconds("socket.timeout.ms")
        group_id: str = settings["group.id"]
        isolation: int = settings["isolation.level"]
        self.subscription = Subscription(group_id, settings["auto.offset.reset"])
        self.fetcher = Fetcher(self.subscription, client.metadata, settings, client.driver.wake_threadsafe)
        self.lookup = OffsetLookup(self.subscription, client.metadata, isolation, timeout_s)
        client.driver.add(self.lookup)
        self.group: Membership | None = None
        if group_id:
            finder = CoordinatorFinder(GROUP, group_id)
            self.group = membership(settings, self.subscription, client.metadata, finder)
            self.ownership = Ownership(group_id, self.group.identity.instance_id)
            self.offsets = GroupOffsets(group_id, self.subscription, finder, self.ownership, isolation, timeout_s)
            for machine in (finder, self.group, self.offsets):
                client.driver.add(machine)
        client.driver.add(self.fetcher)
        self.callbacks: deque[Callback] = deque()
        self.statistics = ConsumerStatistics(
            settings, client.metadata, client.driver, self._notify, lambda: len(self.callbacks),
            subscription=self.subscription)
        if settings["error_cb"] is not None:
            client.on_error = self._on_error
        self.closed = False
        self._handled = False  # a rebalance callback has changed the assignment itself
        self._given = weakref.ref(given)
        self.on_ready = on_ready
        self._rebalance_callbacks: dict[Change, Callable[[Partitions], Any] | None] = {}
        self._left: asyncio.Future[None] | None = None
        self._reported_topics: set[str] = set()
        self._refused = False
        self._commit_timer: asyncio.TimerHandle | None = None
        when_let_go(face, lambda: self.usable, self.abandon)

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
            if self.group.stalled:
                self.client.driver.wake_threadsafe()

    def leave(self) -> None:
        """The application goes to work on what it got."""
        if self.group is not None:
            self.group.application_at = self._clock()

    def collect(self, messages: list[Message], count: int) -> Iterator[Callback | None]:
        """Fill `messages` up to `count`, and end.

        A rebalance ends it with what was read before, so that no call hands out records of two assignments, or of a
        partition that was given up meanwhile; without any, the application meets the rebalance at once.

        Yields:
            A callback to run now, or None when there is nothing to take: go on when there may be.
        """
        callbacks = self.callbacks
        while True:
            while callbacks:
                if messages and callbacks[0].rebalance is not None:
                    return
                yield callbacks.popleft()
            messages += self.fetcher.take(count - len(messages))
            if len(messages) >= count or not self.usable:
                return
            yield None

    def meet(self, callback: Callback) -> None:
        """A callback is about to run."""
        self._handled = False
        if callback.rebalance is not None:
            self.ownership.meet(callback.rebalance)

    def group_member(self) -> ConsumerGroupMetadata | None:
        """The member that this consumer was when the application last read; None without a "group.id".

        A rebalance may have come since, in the background. Offsets of what was read before it must not pass as those
        of the new generation: another consumer may have the partitions by now (KIP-447).
        """
        self.check_open()
        return None if self.group is None else self.ownership.member

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

    def positions(self, partitions: Partitions) -> Partitions:
        """The offset of the next record of each partition."""
        self.check_open()
        found = []
        for tp in list_of(TopicPartition, partitions, "partitions"):
            state = self.subscription.get(tp.topic, tp.partition)
            found.append(TopicPartition(tp.topic, tp.partition, *(() if state is None else (state.position,))))
        return found

    def store(self, message: Message | None, offsets: Partitions | None) -> None:
        """Choose what the next commit covers."""
        self.check_open()
        if self.config["enable.auto.offset.store"]:
            raise KafkaException(KafkaError(
                KafkaError._INVALID_ARG, 'store_offsets() needs "enable.auto.offset.store": false'))
        given = offsets_of(message, offsets)
        if given is None:
            raise ValueError("expected either message or offsets")
        for tp in given:
            state = self.subscription.require(tp.topic, tp.partition)
            state.stored_metadata = tp.metadata
            state.stored = tp.offset

    # Choosing what to read

    def require_group(self) -> Membership:
        """The group, or `KafkaException` when there is no "group.id"."""
        if self.group is None:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_GROUP, 'This needs a "group.id" in the configuration'))
        return self.group

    def subscribe(self, topics: list[str], callbacks: dict[Change, RebalanceCallback | None]) -> None:
        """Join the group to read these topics."""
        self.check_open()
        names = list_of(str, topics, "topics")
        if not names or len(set(names)) < len(names):
            raise KafkaException(KafkaError(
                KafkaError._INVALID_ARG, f"subscribe() takes at least one topic, and each once, not {names}: call "
                "unsubscribe() to read none"))
        self.require_group().subscribe(names, self._clock())
        given = self._given()
        assert given is not None, "who calls this holds the face"
        self._rebalance_callbacks = {change: given.lend_with_face(change, callbacks[change]) for change in callbacks}
        self._want_topics()
        self._start_auto_commit()
        self.client.driver.wake()

    def change_assignment(self, change: Callable[[Partitions], None], partitions: Partitions) -> None:
        """Change the assignment by hand, with a method of the subscription."""
        self.check_open()
        wanted = list_of(TopicPartition, partitions, "partitions")
        self._handled = True
        change(wanted)
        self._on_assignment()

    def _on_assignment(self) -> None:
        self._want_topics()
        self._follow(self.client.metadata.cluster)
        self._start_auto_commit()
        self.client.driver.wake()

    # Offsets

    def commit(self, offsets: Partitions) -> None:
        """Commit; `on_commit` is told how it went."""
        if not offsets:
            self._on_committed([], NOTHING_TO_COMMIT)
            return
        self.offsets.commit(offsets, self._clock() + _COMMIT_TIMEOUT_S, self._on_committed)
        self.client.driver.wake()

    async def commit_and_wait(self, offsets: Partitions, timeout_s: float = _COMMIT_TIMEOUT_S) -> Partitions:
        """Commit and say how it went; raises `KafkaException` when no partition was committed."""
        outcome: asyncio.Future[tuple[Partitions, KafkaError | None]] = self.client.future()
        self.offsets.commit(
            offsets, self._clock() + timeout_s, lambda done, error: _resolve(outcome, (done, error)))
        self.client.driver.wake()
        partitions, error = await outcome
        if error is not None and all(tp.error is not None for tp in partitions):
            raise KafkaException(error)
        return partitions

    async def committed(self, partitions: Partitions, timeout: float | None) -> Partitions:
        """What the group has for these partitions."""
        self.check_open()
        partitions = list_of(TopicPartition, partitions, "partitions")
        self.require_group()
        return await self._ask(
            partitions, timeout, lambda tp, expires_at, found: self.offsets.ask([tp], expires_at, found))

    async def look_up(self, partitions: Partitions, timeout: float | None) -> Partitions:
        """What the leaders have at the times in `offset`, EARLIEST and LATEST included."""
        self.check_open()
        partitions = list_of(TopicPartition, partitions, "partitions")
        self.client.metadata.want_topics(sorted({tp.topic for tp in partitions}))
        try:
            return await self._ask(partitions, timeout, lambda tp, expires_at, found: self.lookup.ask(
                tp.topic, tp.partition, tp.offset, expires_at, found))
        finally:
            self._want_topics()

    async def _ask(
        self, partitions: Partitions, timeout: float | None,
        ask: Callable[[TopicPartition, float, Callable[[TopicPartition], None]], None],
    ) -> Partitions:
        expires_at = _FOREVER if timeout is None or timeout < 0 else self._clock() + timeout
        answers = []
        for tp in partitions:
            answer: asyncio.Future[TopicPartition] = self.client.future()
            answers.append(answer)
            ask(tp, expires_at, _resolver(answer))
        self.client.driver.wake()
        return list(await asyncio.gather(*answers))

    def _start_auto_commit(self) -> None:
        interval_s = self.config.seconds("auto.commit.interval.ms") if self.config["enable.auto.commit"] else 0.0
        if self._commit_timer is None and self.group is not None and interval_s:
            self._commit_timer = asyncio.get_running_loop().call_later(interval_s, self._auto_commit)

    def _auto_commit(self) -> None:
        self._commit_timer = None
        stored = self.subscription.to_commit()
        # While a rebalance waits for the application the group would refuse what was read before it.
        met = self.group is not None and self.group.identity.generation == self.ownership.member.generation
        if stored and met and not self.offsets.is_committing:
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
        """The callbacks to run before the group is left. Others are not served any more.

        The application has come in: what it commits now carries the identity of the newest rebalance.
        """
        lost = []
        for waiting in self.callbacks:
            if waiting.rebalance is not None:
                self.ownership.meet(waiting.rebalance)
                lost += [waiting] if waiting.rebalance.change is Change.LOSE else []
        self.callbacks.clear()
        if not self.usable:
            return []
        function = self._rebalance_callbacks.get(Change.REVOKE)
        held = self.subscription.positions()
        if function is None or not held or self.group is None or not self.group.owned:
            return lost
        return [Callback(function, (held,))]

    async def leave_group(self) -> None:
        """Commit what is stored, give everything up, and say goodbye to the group."""
        await self._commit_stored()
        self.subscription.assign([])
        self.subscription.subscribe([])
        self._want_topics()
        if self.group is None:
            return
        self.ownership.leave()
        if self.group.is_outside:
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

    def abandon(self) -> None:
        """Nobody holds the consumer any more: leave the group and close. Commits nothing, as if it had crashed."""
        self.subscription.assign([])
        self._closing = asyncio.get_running_loop().create_task(self.close())

    # Events of the machines

    def _on_event(self, event: Event) -> None:
        if isinstance(event, RecordsReady):
            self.on_ready()
        elif isinstance(event, Rebalance):
            self._on_rebalance(event)
        elif isinstance(event, MetadataChanged):
            self._refused = False
            self._follow(event.cluster)
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
        function = self._rebalance_callbacks.get(event.change) or _unheard
        self.callbacks.append(Callback(function, (event.partitions,), event))
        self.on_ready()

    async def complete(self, event: Rebalance) -> None:
        """Do what the application's callback left undone, and let the group go on."""
        if event.change is Change.REVOKE:
            await self._commit_stored()
        if not self._handled:
            self._apply(event)
        assert self.group is not None
        self.ownership.part(event)
        self.group.callback_done(self._clock())
        self._on_assignment()

    def _apply(self, event: Rebalance) -> None:
        subscription = self.subscription
        if event.change is not Change.ASSIGN:
            subscription.remove(tp for tp in event.partitions if subscription.get(tp.topic, tp.partition) is not None)
        elif event.incremental:
            subscription.add(event.partitions)
        else:
            subscription.assign(event.partitions)

    def _want_topics(self) -> None:
        """Keep the topics in the picture that are subscribed to, read or asked about, and no others."""
        wanted = self.subscription.names | self.subscription.topics() | self.lookup.topics()
        if self.group is not None:
            wanted |= self.group.planned_topics
        self.client.metadata.want_only(wanted, every=bool(self.subscription.patterns))

    def _follow(self, cluster: Cluster) -> None:
        """Give up positions in topics that were made anew, and tell."""
        found = follow(self.subscription, cluster)
        if found.lost and self.group is not None:
            self.offsets.forget(found.lost)
        for state, error in found.news:
            if state is None:
                self.client.on_error(error)
            else:
                self._tell(state.topic, state.partition, error)

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


def _unheard(partitions: Partitions) -> None:
    """Takes the place of a rebalance callback that the application did not give."""


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
        return None if offsets is None else list_of(TopicPartition, offsets, "offsets")
    error = instance_of(Message, message, "message").error()
    if error is not None:
        raise KafkaException(error)
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None or offset is None:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "The message has no topic, partition and offset"))
    return [TopicPartition(topic, partition, offset + 1, None, message.leader_epoch())]
