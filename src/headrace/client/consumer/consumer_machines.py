"""A consumer's machines, wired together, and what they have for the application: records, errors, callbacks.

Everything here runs on the loop's thread. A rebalance is handed on, for partitions come and go in the application's
thread only (decision 0011). It must not know wire formats or sockets, nor what kind of group there is.

Read next: `client.consumer.consumer_engine`, which does what the application asks for.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from headrace.client.core import ClientCore
from headrace.client.statistics import ConsumerStatistics
from headrace.client.waits import threads_may_receive
from headrace.config import Config
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.cluster.coordinator import GROUP, CoordinatorFinder, CoordinatorRefused
from headrace.machines.cluster.metadata import Cluster, MetadataChanged, MetadataFailed
from headrace.machines.consumer.fetcher import Fetcher, PositionsInDoubt, RecordsReady
from headrace.machines.consumer.offsets import OffsetLookup, PositionFailed
from headrace.machines.consumer.recreation import follow
from headrace.machines.consumer.subscription import Key, PartitionState, Subscription
from headrace.machines.groups.membership import (
    EpochMoved,
    GroupFailed,
    Left,
    MemberRefused,
    Membership,
    MembershipFactory,
    Rebalance,
)
from headrace.machines.groups.ownership import Ownership
from headrace.machines.machine import Effect, Event
from headrace.net.settings import Connector
from headrace.net.thread import waking, yielding_to
from headrace.net.timers import Clock
from headrace.records import PollFastPath
from headrace.slotted import slotted

if TYPE_CHECKING:  # few leaders change, fewer lack records, and many consumers are asyncio's
    from headrace.client.consumer.direct_fetches import DirectFetches
    from headrace.machines.consumer.truncation import LogTruncated

__all__ = ["CONSUMER_CLOSED", "Callback", "ConsumerMachines"]

CONSUMER_CLOSED: Final = "Consumer closed"
"""What calls say after `close()`."""

_PROPAGATION_S: Final = 5.0
"""A broker that has not heard of a topic for so long after all others is hardly alive."""


@slotted(eq=False)
class Callback:
    """Code of the application, to run in its thread when it calls the consumer.

    Attributes:
        rebalance: the rebalance that it is for; completed when the code has returned.
        is_report: it puts an error in front of all that can be read, and the application is to have that before
            anything else happens.
        completed: what the code left undone is done, and the group goes on.
        leaves: its partitions are given up because the group is left, not by a rebalance.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    rebalance: Rebalance | None = None
    is_report: bool = False
    completed: bool = False
    leaves: bool = False


class ConsumerMachines:
    """One consumer's machines on the running loop.

    Args:
        config: the checked properties.
        on_change: called when there is something new to take or to call.
        on_group_event: takes the events of a membership that are the application's.
        membership: makes the member of the group that the properties name.
        connector: opens streams; real sockets when None.
        clock: monotonic seconds.
        jitter: gives numbers in [0, 1).

    Attributes:
        callbacks: code of the application that waits for it to come in, in order.
        closed: the application has closed the consumer.
        news: grows when there may be something new to take or to call.
        direct: lends a connection to the thread that waits for records; None before the first time.
        fast_path: hands out records past the engine while nothing else is to be done; None where nobody uses one.
        group: the membership; None without a "group.id", when there is no `finder` of its coordinator, no `ownership`
            and no `group_offsets` either.
    """

    def __init__(
        self, config: Config, on_change: Callable[[], object], on_group_event: Callable[[Rebalance | Left], None], *,
        membership: MembershipFactory, connector: Connector | None, clock: Clock,
        jitter: Callable[[], float],
    ) -> None:
        self.config, self.clock, self.news = config, clock, 0
        self._on_group_event, self._on_change = on_group_event, on_change
        self.client = client = ClientCore(
            config, on_event=self._on_event, on_effect=self._on_effect,
            allow_auto_create=config["allow.auto.create.topics"], connector=connector, clock=clock, jitter=jitter,
            closed_text=CONSUMER_CLOSED)
        timeout_s, isolation = config.seconds("socket.timeout.ms"), config["isolation.level"]
        retries = client.retries
        group_id: str = config["group.id"]
        self.subscription = Subscription(group_id, config["auto.offset.reset"], _wall_ms)
        self.fetcher = Fetcher(
            self.subscription, client.metadata, config, client.driver.wake_threadsafe, retries.jitter)
        self.lookup = OffsetLookup(self.subscription, client.metadata, isolation, timeout_s, retries)
        client.driver.add(self.lookup)
        self.group: Membership | None = None
        if group_id:
            from headrace.machines.consumer.group_offsets import GroupOffsets

            self.finder = finder = CoordinatorFinder(GROUP, group_id, retries=retries)
            self.group = membership(config, self.subscription, client.metadata, finder)
            self.ownership = Ownership(group_id, self.group.identity.instance_id)
            self.group_offsets = GroupOffsets(
                group_id, self.subscription, finder, self.ownership, isolation, timeout_s, retries,
                is_planned=config["group.protocol"] == "consumer")
            for machine in (finder, self.group, self.group_offsets):
                client.driver.add(machine)
        client.driver.add(self.fetcher)
        self.callbacks: deque[Callback] = deque()
        self.statistics = ConsumerStatistics(
            config, client.metadata, client.driver, self.notify, lambda: len(self.callbacks),
            subscription=self.subscription, take_back=self.fetcher.lending.take_back, group=self.group,
            finder=None if self.group is None else self.finder)
        if config["error_cb"] is not None:
            client.on_error = self._on_error
        client.driver.listeners[RecordsReady] = (self.ready,)
        client.driver.listeners[CoordinatorRefused] = (self._on_refused,)
        self.closed = False
        self.direct: DirectFetches | None = None
        self._yield_to_loop = yielding_to(asyncio.get_running_loop())
        self._look_again: Callable[[], object] | None = None
        self.fast_path: PollFastPath | None = None
        client.on_closed = self.interrupt
        self._topic_reports_at: dict[str, float] = {}
        self._partition_reports_at: dict[Key, float] = {}
        self._refused = False

    def check_open(self, closed_text: str = CONSUMER_CLOSED) -> None:
        """Raise `ClientClosedError`, with this text, when the consumer is closed."""
        if self.closed:
            raise ClientClosedError(closed_text)
        if self.client.closed:
            self.client.check_open()

    @property
    def usable(self) -> bool:
        """False after `close()`, and in a child process that was forked after the consumer was made."""
        return not (self.closed or self.client.closed)

    def require_group(self) -> Membership:
        """The membership, or `KafkaException` when there is no "group.id"."""
        if self.group is None:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_GROUP, 'This needs a "group.id" in the configuration'))
        return self.group

    def wake(self) -> None:
        """Something has changed: poll the machines."""
        self.client.driver.wake()

    def receive_directly(self, look_again: Callable[[], object]) -> None:
        """Let the thread that waits for records receive them by itself, where it can.

        Args:
            look_again: has it see that it may.
        """
        if threads_may_receive():
            self._look_again, self.fetcher.lending.lends = look_again, True

    def receive_now(self) -> bool:
        """Have received what has come, by the loop or where that is not the loop's to do. Whether there may be more."""
        direct, received = self.direct, self._yield_to_loop()
        if direct is not None and direct.ready:
            direct.receive(0.0)
            received = received or bool(direct.lanes.queue)
        return received

    def _on_effect(self, effect: Effect) -> None:
        if self.direct is None:
            from headrace.client.consumer.direct_fetches import DirectFetches

            assert self._look_again is not None
            self.direct = DirectFetches(self.fetcher.lending, self.client.driver, self.config["client.id"],
                                        waking(asyncio.get_running_loop()), self._look_again)
        self.direct.carry_out(effect)

    def end(self) -> None:
        """The connections are closed."""
        if self.direct is not None:
            self.direct.end()

    # For the application

    def interrupt(self) -> None:
        """There is more to do for the application than to hand it the next record."""
        if self.fast_path is not None:
            self.fast_path.close()

    def ready(self, _event: RecordsReady | None = None) -> None:
        """There is something new to take or to call."""
        self.news += 1
        self._on_change()

    def news_since(self, seen: int) -> Callable[[], object]:
        """A function that returns whether `news` has grown since it was `seen`, or records are queued."""
        if self.direct is None:
            return lambda: self.news != seen
        queue = self.direct.lanes.queue
        return lambda: self.news != seen or queue

    def queue(self, callback: Callback) -> None:
        """Have the application's code run when it comes in."""
        self.callbacks.append(callback)
        self.interrupt()
        self.ready()

    def notify(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a callback that belongs to no rebalance run when the application comes in."""
        self.queue(Callback(function, arguments))

    def _report(self, topic: str | None, partition: int, error: KafkaError, offset: int | None = None) -> None:
        self.fetcher.queue_error(topic, partition, error, offset)
        self.ready()

    # What is read

    def want_topics(self) -> None:
        """Keep the topics in the picture that are subscribed to, read or asked about, and no others."""
        wanted = self.subscription.names | self.subscription.topics() | self.lookup.topics()
        if self.group is not None:
            wanted |= self.group.planned_topics
        self.client.metadata.want_only(wanted, every=self._wants_every_topic)

    @property
    def _wants_every_topic(self) -> bool:
        return bool(self.subscription.patterns) and self.group is not None and self.group.resolves_patterns

    def assignment_changed(self, before: Mapping[Key, PartitionState]) -> None:
        """Partitions have come or gone; those that were there `before` have been looked at."""
        self.want_topics()
        self._follow(self.client.metadata.cluster, [
            state for key, state in self.subscription.states.items() if before.get(key) is not state])
        self.wake()

    def _follow(self, cluster: Cluster, states: Iterable[PartitionState] | None = None) -> None:
        """Give up positions in topics that were made anew, and report them."""
        found = follow(self.subscription, cluster, states)
        if self.group is not None:
            self.group_offsets.doubted = cluster.doubted
            if found.lost:
                self.group_offsets.forget(found.lost)
        for state, error in found.errors:
            if state is None:
                self.client.on_error(error)
            else:
                self._report(state.topic, state.partition, error)

    # Events of the machines

    def _on_event(self, event: Event) -> None:
        if isinstance(event, (Rebalance, Left)):
            if isinstance(event, Rebalance):
                self.statistics.on_rebalance()
            self._on_group_event(event)
        elif isinstance(event, MetadataChanged):
            self._refused = False
            self._follow(event.cluster)
            self._report_topics(event)
            self._report_partitions(event)
        elif isinstance(event, MetadataFailed):
            if not self._refused:  # once, until a broker answers again
                self._report(None, -1, event.error)
            self._refused = True
        elif isinstance(event, PositionFailed):
            self._report(event.topic, event.partition, event.error)
        elif isinstance(event, EpochMoved):
            self.ownership.advance(event)
        elif isinstance(event, MemberRefused):
            self.require_group().doubt(event.member)
            self.wake()
        elif isinstance(event, GroupFailed):
            if event.error.code() == KafkaError._MAX_POLL_EXCEEDED:  # the call that comes too late is told why, and the
                self.queue(Callback(self.fetcher.put_first, (event.error,), is_report=True))  # next one what is lost
            else:
                self._report(None, -1, event.error)
        elif isinstance(event, PositionsInDoubt):
            self._compare_positions()

    def _on_refused(self, event: CoordinatorRefused) -> None:
        """As in confluent_kafka, who polls is told: without `error_cb` nobody else would say why nothing comes."""
        self._report(None, -1, event.error)

    def _compare_positions(self) -> None:
        """Ask new leaders whether they have what was read."""
        from headrace.client.consumer.consumer_truncation import compare_positions

        compare_positions(self.client, self.subscription, self.config.seconds("socket.timeout.ms"), self._on_truncated)
        self.wake()

    def _on_truncated(self, event: LogTruncated) -> None:
        if event.goes_on:
            self.client.on_error(event.error)
        else:
            self._report(event.topic, event.partition, event.error, event.offset)

    def _on_error(self, error: KafkaError) -> None:
        self.notify(self.config["error_cb"], error)

    def _report_topics(self, event: MetadataChanged) -> None:
        """Report each topic that is asked for and cannot be read, once.

        One that is assigned and was never there may have been made just now: it has a while to turn up.
        """
        now, names, reports_at = self.clock(), self.subscription.names, self._topic_reports_at
        for name in names | self.subscription.topics():
            info = event.cluster.topics.get(name)
            if info is None and not self._wants_every_topic:  # it was not asked for
                reports_at.pop(name, None)
                continue
            error = _no_topic(name) if info is None else info.error
            if error is None:
                reports_at[name] = now
                continue
            may_come = info is None or (name not in names and error == KafkaError.UNKNOWN_TOPIC_OR_PART)
            report_at = reports_at.setdefault(name, now + _PROPAGATION_S)
            if report_at <= now or (report_at < math.inf and not may_come):
                reports_at[name] = math.inf
                text = f"Subscribed topic not available: {error.str()}"
                self._report(name, -1, KafkaError(error.code(), text))

    def _report_partitions(self, event: MetadataChanged) -> None:
        """Tell of each assigned partition that its topic does not have, once: to `error_cb`, as in librdkafka.

        It may have been added just now, and so has a while to turn up.
        """
        now, topics, reports_at = self.clock(), event.cluster.topics, self._partition_reports_at
        for state in self.subscription:
            info = topics.get(state.topic)
            if info is None or info.error is not None or state.partition in info.partitions:
                reports_at.pop(state.key, None)
                continue
            missing = self.client.metadata.missing(*state.key)
            if missing is not None and reports_at.setdefault(state.key, now + _PROPAGATION_S) <= now:
                reports_at[state.key] = math.inf
                self.client.on_error(missing)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _no_topic(name: str) -> KafkaError:
    """What is said of a topic that is not among all of them, which are asked for where there are patterns."""
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    return KafkaError(error.code(), f'topic "{name}": {error.str()}')
