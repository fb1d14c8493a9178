"""What a consumer does for its application: each rule once, for both faces.

A coroutine runs on the loop's thread. A generator is a rule about waiting: it runs where the application is, in its
thread or its task, together with the application's callbacks, and yields what it waits for (`client.waits`). What reads
and the queue of callbacks belong to the application. It must not know wire formats, sockets or threads.

Read next: `client.consumer.consumer_machines` for what runs beside it, `client.consumer.rebalance` and
`client.consumer.consumer_offsets` for its parts.
"""

from __future__ import annotations

import logging
import operator
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.arguments import instance_of, list_of
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.consumer.consumer_machines import ConsumerMachines
from headrace.client.consumer.consumer_offsets import ConsumerOffsets, Partitions, by_place
from headrace.client.consumer.rebalance import RebalanceCallback, Rebalances
from headrace.client.core import HANDLE_CLOSED
from headrace.client.waits import Steps, Wait, seconds
from headrace.config import CONSUMER, Config
from headrace.errors import KafkaError, KafkaException
from headrace.machines.consumer.subscription import Key
from headrace.machines.groups.group_protocols import membership_of
from headrace.machines.groups.membership import Change, Left, MembershipFactory, Rebalance
from headrace.net.settings import Connector
from headrace.net.timers import Clock, jitter, monotonic
from headrace.records import Message, PollFastPath
from headrace.types.records import TopicPartition

if TYPE_CHECKING:
    from headrace.client.consumer.consumer_health import ConsumerHealth
    from headrace.records.columns.arrow_batch import ArrowBatch, ArrowBatchBuilder
    from headrace.types.metrics import Metrics

__all__ = ["ConsumerEngine"]

Taken = TypeVar("Taken", list[Message], "ArrowBatchBuilder")
_FOREVER = float("inf")
_MOST_MESSAGES = 1_000_000
_ASSIGN_BY = {
    True: "a member of a cooperative group changes its assignment with incremental_assign() and incremental_unassign()",
    False: "a member of an eager group changes its assignment with assign() and unassign()",
}


class ConsumerEngine:
    """One consumer on the running loop, without a face.

    Args:
        config: properties, see `headrace.config.PROPERTIES`.
        given: holds the application's callbacks for the face, the consumer; when that is let go, this ends.
        on_change: wakes what waits in the face, when there may be something to take or to call.
        awaits: callbacks may be coroutine functions.
        connector: opens streams; real sockets when None.
        clock: monotonic seconds; a simulation gives its own.
        jitter: gives numbers in [0, 1); a simulation gives its own.
        membership: makes the member of the group that the properties name.

    Attributes:
        machines: what runs on the loop; `callbacks` and `group` are theirs.
        offsets: the application's calls about offsets.
        rebalances: the application's callbacks for partitions that come and go.
    """

    def __init__(
        self, config: Mapping[str, Any], given: ApplicationCallbacks, on_change: Callable[[], object], *,
        awaits: bool = False, connector: Connector | None = None, clock: Clock = monotonic,
        jitter: Callable[[], float] = jitter, membership: MembershipFactory = membership_of,
    ) -> None:
        settings = Config(CONSUMER, given.lend_properties(config), servers_needed=False)
        self._clock, self._given = clock, weakref.ref(given)
        self._last_rows = 0  # of the last Arrow batch
        self._is_ending = False
        self.machines = machines = ConsumerMachines(
            settings, on_change, self._on_group_event, membership=membership, connector=connector, clock=clock,
            jitter=jitter)
        self.offsets = ConsumerOffsets(machines)
        self.rebalances = Rebalances(machines, self.offsets, awaits)
        self.callbacks, self.group = machines.callbacks, machines.group
        self._client, self._fetcher, self._subscription = machines.client, machines.fetcher, machines.subscription
        machines.client.ending = self._end_unattended
        given.when_let_go(lambda: machines.usable, machines.client.abandon)

    async def log_in(self) -> ConsumerEngine:
        """This engine, once it has the token of `oauth_cb`, where there is one; else it is closed."""
        await self._client.log_in(lambda: self._end(leaves=False))
        return self

    def _on_group_event(self, event: Rebalance | Left) -> None:
        self.rebalances.on_event(event)

    # Reading

    def take_one(self) -> Message | None:
        """A message that is there at once, if the application has nothing else to do."""
        if self.callbacks or self.machines.closed or self._client.closed:
            return None
        message = self._fetcher.take_one()
        if message is not None and self.group is not None:
            self.group.application_at = self._clock()
        return message

    def lend(self, fast_path: PollFastPath) -> None:
        """Let a fast path hand out records until something else is to be done. Callbacks may come at any moment."""
        self.machines.fast_path = fast_path
        self._fetcher.lend(fast_path, self.group)
        if self.callbacks or not self.machines.usable:
            fast_path.close()

    def take(self, messages: list[Message], num_messages: int) -> bool:
        """Add up to so many messages that are there at once; none while the application has something else to do.

        Returns whether there are so many, and more than none.
        """
        self._enter(num_messages)
        try:
            return not self.callbacks and self._fetcher.take_more(messages, num_messages) and num_messages > 0
        finally:
            self._leave()

    def consume(self, num_messages: int, timeout: float | None, taken: Taken) -> Steps[Taken]:
        """What `take` gave, or no rows yet, and more up to so many; fewer when time is up, or the group rebalances.

        Runs callbacks. A rebalance ends it with what was read before, so that no call hands out records of two
        assignments, or of a partition that was given up meanwhile; without any, the application meets it at once.
        """
        give_up_at = self._clock() + seconds(timeout)
        self._enter(num_messages)
        machines = self.machines
        take: Callable[[Any, int], bool] = (
            self._fetcher.take_more if taken.__class__ is list else self._fetcher.take_rows)
        try:
            while True:
                seen = machines.news
                while self.callbacks:
                    waiting = self.callbacks[0]
                    if taken and self.rebalances.ends_call(waiting):
                        return taken
                    yield from self.rebalances.run_next()
                    if waiting.is_report:
                        take(taken, min(num_messages, 1))
                        return taken
                if take(taken, num_messages) or not machines.usable:
                    return taken
                if self._clock() >= give_up_at:
                    if machines.receive_now():
                        take(taken, num_messages)
                    return taken
                yield Wait(machines.news_since(seen), give_up_at, meanwhile=machines.direct)
        except BaseException:  # interrupted, or a callback raised: the caller will not see what was taken
            yield self._give_back(_starts(taken) if isinstance(taken, list) else taken.starts)
            raise
        finally:
            self._leave()

    def consume_arrow(self, num_messages: int, timeout: float | None) -> Steps[ArrowBatch]:
        """As `consume`, into columns; it also ends when these are full."""
        from headrace.records.columns.arrow_batch import ArrowBatchBuilder

        likely_rows = min(self._last_rows, num_messages) if num_messages.__class__ is int else 0
        rows = yield from self.consume(num_messages, timeout, ArrowBatchBuilder(likely_rows=likely_rows))
        self._last_rows = len(rows)
        return rows.finish()

    def _enter(self, num_messages: int) -> None:
        """The application came in to read; it is not late for `max.poll.interval.ms` while it is inside."""
        self.machines.check_open()
        if num_messages.__class__ is not int:
            operator.index(num_messages)
        if not 0 <= num_messages <= _MOST_MESSAGES:
            raise ValueError("num_messages must be between 0 and 1000000 (1M)")
        if self.group is not None:
            self.group.application_at = _FOREVER
            if self.group.stalled:
                self._client.driver.wake_threadsafe()

    def _leave(self) -> None:
        """The application goes to work on what it got."""
        if self.group is not None:
            self.group.application_at = self._clock()

    async def give_back(self, messages: list[Message]) -> None:
        """The caller did not get to see these, or will not take them yet: hand them out again."""
        await self._give_back(_starts(messages))

    async def _give_back(self, starts: Mapping[Key, int]) -> None:
        """The call that took records from these offsets on was interrupted: hand them out again."""
        for (topic, partition), offset in {**self._fetcher.ahead(), **starts}.items():
            state = self._subscription.get(topic, partition)
            if state is not None:
                if self.machines.config["enable.auto.offset.store"]:
                    state.stored = offset
                self._subscription.seek(topic, partition, offset)
        self.machines.wake()

    # Choosing what to read

    async def subscribe(
        self, topics: list[str], on_assign: RebalanceCallback | None, on_revoke: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
    ) -> None:
        """Join the group to read these topics."""
        for callback in (on_assign, on_revoke, on_lost):
            if callback is not None and not callable(callback):
                raise TypeError(f"a rebalance callback must be callable, not {type(callback).__name__}")
        self.machines.check_open()
        names = list_of(str, topics, "topics")
        if not names or len(set(names)) < len(names):
            raise KafkaException(KafkaError(
                KafkaError._INVALID_ARG, f"subscribe() takes at least one topic, and each once, not {names}: call "
                "unsubscribe() to read none"))
        group = self.machines.require_group()
        group.subscribe(names, self._clock())
        if self.rebalances.incremental is False and self._subscription.states.keys() != group.owned:
            group.enforce_rebalance("subscribed again, after other partitions were assigned by hand")
        given = self._given()
        assert given is not None, "who calls this holds the face"
        callbacks = {Change.ASSIGN: on_assign, Change.REVOKE: on_revoke, Change.LOSE: on_lost or on_revoke}
        self.rebalances.callbacks = {change: given.lend_with_face(change, callbacks[change]) for change in callbacks}
        self.machines.want_topics()
        self.offsets.start_auto_commit()
        self.machines.wake()

    def unsubscribe(self) -> Steps[None]:
        """Give the group's partitions up and leave it; without a subscription there is nothing to do."""
        self.machines.check_open()
        if not self._subscription.is_subscribed:
            return
        try:
            for callback in self.rebalances.revocation():
                yield from self.rebalances.run(callback)
        finally:
            yield from self.rebalances.leave()

    async def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions."""
        self._change_assignment(self._subscription.assign, partitions, incremental=False)

    async def incremental_assign(self, partitions: Partitions) -> None:
        """Read these partitions too."""
        self._change_assignment(self._subscription.add, partitions, incremental=True)

    async def incremental_unassign(self, partitions: Partitions) -> None:
        """Read these partitions no more."""
        self._change_assignment(self._subscription.remove, partitions, incremental=True)

    def _change_assignment(
        self, change: Callable[[Partitions], None], partitions: Partitions, *, incremental: bool
    ) -> None:
        self.machines.check_open()
        wanted = list_of(TopicPartition, partitions, "partitions")
        if self._is_ending:  # in `on_revoke`: all are given up, as by librdkafka, whatever the call
            change, wanted, incremental = self._subscription.assign, [], False
        elif self.rebalances.incremental is (not incremental):  # the group would not learn what is dropped, or kept
            raise KafkaException(KafkaError(KafkaError._STATE, _ASSIGN_BY[self.rebalances.incremental]))
        self.rebalances.handled = True
        before = self._subscription.states
        touched = [before[key] for tp in wanted if (key := (tp.topic, tp.partition)) in before] if incremental else None
        stored = self._subscription.to_commit(touched)
        change(wanted)
        if not self.rebalances.loses:
            self.offsets.commit_given_up([tp for tp in stored if self._subscription.get(tp.topic, tp.partition)
                                          is not before[tp.topic, tp.partition]])
        self.machines.assignment_changed(before)
        self.offsets.start_auto_commit()

    def assignment(self) -> Partitions:
        """The assigned partitions. From any thread."""
        self.machines.check_open()
        return sorted(self._subscription.positions(), key=by_place)

    async def pause(self, partitions: Partitions) -> None:
        """Hand out no records of these partitions."""
        self._set_paused(partitions, True)

    async def resume(self, partitions: Partitions) -> None:
        """Go on with paused partitions. The application reads nothing meanwhile."""
        self._set_paused(partitions, False)
        self._fetcher.resume()
        self.machines.ready()

    def _set_paused(self, partitions: Partitions, paused: bool) -> None:
        self.machines.check_open()
        self._subscription.set_paused(list_of(TopicPartition, partitions, "partitions"), paused)
        self.machines.wake()

    async def seek(self, partition: TopicPartition) -> None:
        """Go on from an offset, absolute or logical."""
        self.machines.check_open()
        instance_of(TopicPartition, partition, "partition")
        self._subscription.seek(partition.topic, partition.partition, partition.offset, partition.leader_epoch)
        self.machines.wake()

    # The group and the cluster

    def lag(self) -> dict[TopicPartition, int | None]:
        """How far behind each assigned partition is. From any thread."""
        from headrace.client.consumer import consumer_health

        self.machines.check_open()
        return consumer_health.lag(self.machines)

    def health(self) -> ConsumerHealth:
        """How the consumer is, as far as it knows. From any thread."""
        from headrace.client.consumer import consumer_health

        self.machines.check_open()
        return consumer_health.health(self.machines, self.rebalances)

    async def metrics(self) -> Metrics:
        """What `stats_cb` gets."""
        self.machines.check_open()
        return self.machines.statistics.metrics()

    def memberid(self) -> str | None:
        """This consumer's id in the group; None while it has none. From any thread."""
        self.machines.check_open()
        return None if self.group is None else self.group.member_id or None

    async def enforce_rebalance(self, reason: str | None) -> None:
        """Have the group rebalance."""
        self.machines.check_open()
        self.machines.require_group().enforce_rebalance(
            instance_of(str, reason, "reason") if reason else "rebalance enforced by the application")
        self.machines.wake()

    async def list_topics(self, topic: str | None, timeout: float | None) -> ClusterMetadata:
        """Brokers, topics and partitions as the cluster knows them."""
        self.machines.check_open(HANDLE_CLOSED)
        return await self._client.list_topics(topic, seconds(timeout))

    async def cluster_id(self, timeout: float | None) -> str | None:
        """Id of the cluster."""
        self.machines.check_open(HANDLE_CLOSED)
        return await self._client.cluster_id(seconds(timeout))

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in as somebody else from now on."""
        self.machines.check_open(HANDLE_CLOSED)
        self.machines.client.set_sasl_credentials(username, password)

    # Ending

    def close(self) -> Steps[None]:
        """Commit, leave the group and close all connections. Closing twice does no harm; nor does it after a fork."""
        if self._is_ending or not self.machines.usable:
            return
        self._is_ending = True  # the callbacks below may call this again
        try:
            for callback in self.rebalances.revocation():
                yield from self.rebalances.run(callback)
        finally:
            try:
                yield self._end()
            except BaseException:  # interrupted, perhaps before it began
                yield self._end(leaves=False)
                raise
        yield from self._last_callbacks()

    def _last_callbacks(self) -> Steps[None]:
        """Run what waits still: what was committed last, say. An exception comes out behind the others.

        Not that of `error_cb`, which is logged: a consumer that could not reach a broker can be closed all the same.
        """
        failures: list[Exception] = []
        while self.callbacks:
            waiting = self.callbacks.popleft()
            if waiting.rebalance is None and not waiting.is_report:
                try:
                    yield from self.rebalances.run(waiting)
                except Exception as failure:
                    if waiting.function is self.machines.config["error_cb"]:
                        self._client.log.log(
                            logging.ERROR, "error_cb raised while the consumer was closed", exc_info=True)
                    else:
                        failures.append(failure)
        if failures:
            raise failures[0]

    async def _end(self, leaves: bool = True) -> None:
        """Everything that ends a consumer, but for the application's callbacks; without a leave, at once."""
        self.machines.closed = True
        self.machines.interrupt()
        self.machines.statistics.stop()
        if self._client.closed:
            return
        try:
            if leaves:
                await self.rebalances.leave_group()
        finally:
            self.offsets.stop_auto_commit()
            try:
                await self._client.close()
            finally:
                self.machines.end()
                self.offsets.end()
            self.machines.ready()

    async def _end_unattended(self) -> None:
        """Nobody closes the consumer: leave the group and close. Commits nothing, as in a crash."""
        self._subscription.assign([])
        await self._end()


def _starts(messages: list[Message]) -> dict[Key, int]:
    """The first offset of each partition."""
    first: dict[Key, int] = {}
    for message in messages:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if message.error() is None and topic is not None and partition is not None and offset is not None:
            first.setdefault((topic, partition), offset)
    return first
