"""A share consumer's machines, wired together, and what they have for the application: records, errors, answers.

Everything here runs on the loop's thread. It must not know wire formats or sockets.

Read next: `client.share.share_engine`, which does what the application asks for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headrace.client.core import ClientCore
from headrace.client.statistics import Statistics
from headrace.config import Config
from headrace.errors import IllegalStateException, KafkaError
from headrace.machines.cluster.coordinator import GROUP, CoordinatorFinder, CoordinatorRefused
from headrace.machines.cluster.metadata import MetadataChanged, MetadataFailed
from headrace.machines.consumer.fetcher import RecordsReady
from headrace.machines.consumer.subscription import Key
from headrace.machines.groups.membership import GroupFailed, Left
from headrace.machines.groups.share_group import ShareGroup
from headrace.machines.machine import Event
from headrace.machines.share.acknowledgements import Acknowledged
from headrace.machines.share.share_fetcher import SessionsClosed, ShareFetcher
from headrace.net.settings import Connector
from headrace.net.thread import yielding_to
from headrace.net.timers import Clock

__all__ = ["ShareMachines"]

_LEAVE_TIMEOUT_S = 5.0
"""Longest wait for the ends of sessions, and again for that of the membership: brokers find out by themselves."""


class _ShareStatistics(Statistics):
    kind = "consumer"


class ShareMachines:
    """One share consumer's machines on the running loop.

    Args:
        config: the checked properties.
        member_id: what the member calls itself in front of the brokers.
        on_change: called when there is something new to take or to call.
        connector: opens streams; real sockets when None.
        clock: monotonic seconds.

    Attributes:
        callbacks: code of the application that waits for it to come in, in order, with its arguments.
        on_acknowledged: takes what a broker has answered: the partition, the offsets, and the error if there is one.
        closed: the application has closed the consumer.
        news: grows when there may be something new to take or to call.
        yield_to_loop: lets the loop come to the end of its turn; see `LoopTurns.step_aside`.
    """

    def __init__(
        self, config: Config, member_id: str, on_change: Callable[[], object], *, connector: Connector | None,
        clock: Clock,
    ) -> None:
        self.config, self.clock, self.news, self.closed = config, clock, 0, False
        self._on_change = on_change
        self.yield_to_loop = yielding_to(asyncio.get_running_loop())
        self.client = client = ClientCore(
            config, on_event=self._on_event, allow_auto_create=config["allow.auto.create.topics"],
            connector=connector, clock=clock)
        finder = CoordinatorFinder(GROUP, config["group.id"], retries=client.retries)
        self.group = ShareGroup(config, client.metadata, finder, member_id)
        self.fetcher = ShareFetcher(self.group, client.metadata, config, client.retries)
        for machine in (finder, self.group, self.fetcher):
            client.driver.add(machine)
        self.callbacks: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self.on_acknowledged: Callable[[Key, frozenset[int], KafkaError | None], None] = _ignore
        self.statistics = _ShareStatistics(
            config, client.metadata, client.driver, self.notify, lambda: len(self.callbacks))
        client.driver.listeners[CoordinatorRefused] = (self._on_refused,)
        if config["error_cb"] is not None:
            client.on_error = self._on_error
        self._reported_topics: set[str] = set()
        self._refused = False
        self._sessions_closed: asyncio.Future[None] | None = None
        self._left: asyncio.Future[None] | None = None

    def check_open(self) -> None:
        """Raise when the consumer is closed.

        Raises:
            IllegalStateException: it is closed.
            ClientClosedError: the process was forked after it was made.
        """
        if self.closed:
            raise IllegalStateException("Share consumer closed")
        if self.client.closed:
            self.client.check_open()

    @property
    def usable(self) -> bool:
        """False after `close()`, and in a child process that was forked after the consumer was made."""
        return not (self.closed or self.client.closed)

    # For the application

    def ready(self) -> None:
        """There is something new to take or to call."""
        self.news += 1
        self._on_change()

    def news_since(self, seen: int) -> Callable[[], bool]:
        """A function that returns whether `news` has grown since it was `seen`."""
        return lambda: self.news != seen

    def notify(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a callback run when the application comes in."""
        self.callbacks.append((function, arguments))
        self.ready()

    # Coming and going

    def want_topics(self) -> None:
        """Keep the topics in the picture that are subscribed to, and no others."""
        self.client.metadata.want_only(self.group.topics, every=False)

    async def leave(self) -> None:
        """Send what is acknowledged, have the brokers release the rest, and leave the group."""
        loop = asyncio.get_running_loop()
        self._sessions_closed, self._left = loop.create_future(), loop.create_future()
        self.fetcher.close()
        self.client.driver.wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_TIMEOUT_S):
                await self._sessions_closed
        self.group.leave()
        self.want_topics()
        self.client.driver.wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_TIMEOUT_S):
                await self._left

    # Events of the machines

    def _on_event(self, event: Event) -> None:
        if isinstance(event, RecordsReady):
            self.ready()
        elif isinstance(event, Acknowledged):
            if event.offsets:
                self.on_acknowledged(event.key, event.offsets, event.error)
            self.ready()
        elif isinstance(event, GroupFailed):
            self._report(None, event.error)
        elif isinstance(event, MetadataFailed):
            if not self._refused:  # once, until a broker answers again
                self._report(None, event.error)
            self._refused = True
        elif isinstance(event, MetadataChanged):
            self._refused = False
            self._report_topics(event)
        elif isinstance(event, SessionsClosed):
            _done(self._sessions_closed)
        elif isinstance(event, Left):
            _done(self._left)

    def _on_refused(self, event: CoordinatorRefused) -> None:
        self._report(None, event.error)

    def _on_error(self, error: KafkaError) -> None:
        self.notify(self.config["error_cb"], error)

    def _report(self, key: Key | None, error: KafkaError) -> None:
        self.fetcher.fail(key, error)
        self.ready()

    def _report_topics(self, event: MetadataChanged) -> None:
        """Report each topic that is asked for and cannot be read, once."""
        for name in self.group.topics:
            info = event.cluster.topics.get(name)
            if info is None or info.error is None:
                self._reported_topics.discard(name)
            elif name not in self._reported_topics:
                self._reported_topics.add(name)
                error = KafkaError(info.error.code(), f"Subscribed topic not available: {info.error.str()}")
                if error == KafkaError.UNKNOWN_TOPIC_OR_PART:  # it may come, and Java's consumer just waits
                    self.client.on_error(error)
                else:
                    self._report((name, -1), error)


def _done(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _ignore(_key: Key, _offsets: frozenset[int], _error: KafkaError | None) -> None:
    """Takes the place of an engine."""
