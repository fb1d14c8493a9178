"""What every client has: checked properties, metadata, a driver, error reports, one-shot requests, an end.

Producer, consumer and admin client each own one `ClientCore`. It must not know what they are for.
Read next: `net.driver`, or `client.admin.aio_admin_client` for the simplest client.
"""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from types import AsyncGeneratorType
from typing import Any, Final, NoReturn, SupportsIndex, cast

from headrace.client.application_callbacks import ApplicationLog
from headrace.client.cluster_metadata import ClusterMetadata, cluster_metadata
from headrace.config import Config
from headrace.config.security_properties import unheeded_security
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.metadata import Cluster, Metadata, MetadataChanged, MetadataFailed
from headrace.machines.machine import ANY_NODE, LOST, Effect, ErrorEvent, Event, ForVersion, Machine, Send
from headrace.net.driver import Driver
from headrace.net.settings import Connector
from headrace.net.thread import FORKED
from headrace.net.timers import Clock, in_time, jitter, monotonic
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from headrace.wire.schema import Request, Response

__all__ = ["HANDLE_CLOSED", "ClientCore", "ClosesByItself", "LiveClient", "metadata_from"]

HANDLE_CLOSED: Final = "Handle has been closed: make a new client"
"""What is said of a call that confluent_kafka has once for all clients: programs match its words."""

_LONGEST_LOGIN_S = 10.0
_LET_GO = ("the client was closed because nothing in the program held it any more: keep it in a variable until the "
           "futures that it gave are done")
_living: weakref.WeakSet[ClientCore] = weakref.WeakSet()


def metadata_from(config: Config, retries: RetryPolicy, *, allow_auto_create: bool = False) -> Metadata:
    """The metadata machine that a client's properties ask for."""
    refresh_ms = config["topic.metadata.refresh.interval.ms"]
    bootstrap = [(host.strip("[]"), int(port)) for host, _, port in
                 (server.rpartition(":") for server in config["bootstrap.servers"])]
    return Metadata(
        bootstrap,
        refresh_s=refresh_ms / 1000.0 if refresh_ms > 0 else None,
        retries=retries,
        allow_auto_create=allow_auto_create,
        rebootstrap=config["metadata.recovery.strategy"] == "rebootstrap",
        rebootstrap_after_s=config.seconds("metadata.recovery.rebootstrap.trigger.ms"),
    )


class LiveClient:
    """A client that programs hold. What belongs to it lives on a loop: copies would close each other's connections."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object: make a client where it is used, from the same "
                        "properties")


class ClientCore:
    """The common part of a client. Made, used and closed on one event loop.

    Args:
        config: the checked properties.
        on_event: takes the events of the client's own machines.
        on_effect: carries out what these want done that is no request.
        allow_auto_create: let brokers create topics that are asked for and do not exist.
        connector: opens streams; real sockets when None.
        clock: monotonic seconds.
        jitter: gives numbers in [0, 1).
        closed_text: what is said to who calls it after `close()`.

    Attributes:
        metadata: the picture of the cluster.
        driver: runs the machines.
        retries: how long to wait before asking again (retry.backoff.ms, KIP-580).
        closed: after `close()`, and in a child process that was forked after the client was made.
        on_closed: called then.
        ending: closes the client that nobody closes. It begins as `close`, for who has more to end to replace it.
        on_forked: called before it in a child process: nobody is there to release a lock that another thread held.
        on_error: takes the errors that belong to no record and no call. It begins as `error_cb`, or as the log.
        log: the logger to use.
    """

    def __init__(
        self,
        config: Config,
        *,
        on_event: Callable[[Event], None] | None = None,
        on_effect: Callable[[Effect], None] | None = None,
        allow_auto_create: bool = False,
        connector: Connector | None = None,
        clock: Clock = monotonic,
        jitter: Callable[[], float] = jitter,
        closed_text: str = "the client is closed: make a new one",
    ) -> None:
        self.config = config
        self.log = ApplicationLog(config)
        self.on_error: Callable[[KafkaError], None] = config["error_cb"] or self._log_error
        self.log.log(
            logging.DEBUG, "INIT %s %s: %s", config.role, config["client.id"], ", ".join(config["bootstrap.servers"]))
        for name, why in config.without_effect.items():
            self.log.log(logging.DEBUG, 'CONF "%s" has no effect: %s', name, why)
        if unheeded := unheeded_security(config.given, config["security.protocol"]):
            self.log.log(logging.WARNING, "%s", unheeded)
        if not config["bootstrap.servers"]:
            self.log.log(
                logging.WARNING, '"bootstrap.servers" is missing: this client cannot reach any broker')
        self.retries = RetryPolicy.of(config, jitter)
        self.metadata = metadata_from(config, self.retries, allow_auto_create=allow_auto_create)
        self._allow_auto_create = allow_auto_create
        self._clock = clock
        self._hand_out = on_event
        self._watchers: list[tuple[Callable[[Cluster], bool], asyncio.Future[None]]] = []
        self._waiting: set[asyncio.Future[Any]] = set()
        self.closed = False
        self.on_closed: Callable[[], object] = _nothing
        self.on_forked: Callable[[], object] = _nothing
        self._closed_text = closed_text
        self._unusable: str | None = None
        self.driver = Driver(config, self.metadata, on_event=self._on_event, on_effect=on_effect, clock=clock,
                             jitter=jitter, connector=connector)
        self.driver.wake()
        self.ending: Callable[[], Coroutine[Any, Any, object]] = self.close
        self._unattended = ClosesByItself(lambda: self.ending())
        _living.add(self)

    def check_open(self, closed_text: str | None = None) -> None:
        """Raise when the client cannot be used any more.

        Args:
            closed_text: what this call says after `close()`, where the others say something else.

        Raises:
            ClientClosedError: after `close()` or in a forked child.
        """
        if self._unusable is not None:
            raise ClientClosedError(closed_text if closed_text and self._unusable is self._closed_text
                                    else self._unusable)

    async def log_in(self, close: Callable[[], Awaitable[object]]) -> None:
        """Get the token that the first connections use, if `oauth_cb` gives it: what is wrong with it shows now.

        Args:
            close: closes the client when there is none.

        Raises:
            KafkaException: `SASL_AUTHENTICATION_FAILED`: there is no token.
        """
        if self.config["oauth_cb"] is None or self.config["sasl.mechanism"] != "OAUTHBEARER":
            return
        try:
            async with asyncio.timeout(_LONGEST_LOGIN_S):
                await self.driver.log_in()
        except BaseException as failed:
            await close()
            if not isinstance(failed, (KafkaException, TimeoutError)):
                raise
            why = failed.error.str() if isinstance(failed, KafkaException) else (
                f"oauth_cb gave no token within {_LONGEST_LOGIN_S:g} s")
            raise KafkaException(KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED, why)) from None

    def add(self, machine: Machine) -> None:
        """Run a machine from now on."""
        self.driver.add(machine)

    def remove(self, machine: Machine) -> None:
        """Run a machine no more."""
        self.driver.remove(machine)

    def wake(self) -> None:
        """Something has changed: poll the machines. From the loop's own thread."""
        self.driver.wake()

    def refresh_metadata(self) -> None:
        """Ask for the metadata now: what is known may be outdated. From the loop's own thread."""
        self.metadata.refresh(self._clock())
        self.wake()

    def wake_threadsafe(self) -> None:
        """Poll the machines, for something has changed. From any thread."""
        self.driver.wake_threadsafe()

    async def request(
        self,
        destination: int,
        request: Request,
        timeout_s: float,
        *,
        max_version: int | None = None,
        repeatable: bool = True,
        for_version: ForVersion | None = None,
    ) -> Response:
        """Send one request and wait for the reply; try again while the brokers cannot be reached.

        Args:
            destination: broker id, `ANY_NODE` or `CONTROLLER`.
            request: the message.
            timeout_s: seconds for all attempts together.
            max_version: highest version allowed.
            repeatable: sending it twice does no harm, so it is repeated although it may have been carried out.
            for_version: as of `Send`.

        Raises:
            KafkaException: no reply in time, or none possible.
        """
        _, reply = await self._ask(destination, request, timeout_s, max_version, repeatable, for_version)
        return reply

    async def _ask(
        self, destination: int, request: Request, timeout_s: float, max_version: int | None, repeatable: bool,
        for_version: ForVersion | None = None, closed_text: str | None = None,
    ) -> tuple[int, Response]:
        """As `request`, with the broker's id in front of the reply; it is negative for a bootstrap server."""
        self.check_open(closed_text)
        started, failures = self._clock(), 0
        end = started + timeout_s
        while True:
            send = Send(destination, request, max(end - self._clock(), 0.0), max_version, for_version=for_version)
            try:
                reply = await self.driver.ask(send)
                return send.node_id, reply
            except KafkaException as failed:
                self.check_open(closed_text)  # whoever waits while it is closed hears what a later call hears
                error = failed.error
            failures += 1
            wait_s = self.retries.wait_s(failures)
            hopeful = error.code() in LOST and (repeatable or not error.maybe_applied)
            if not hopeful or self._clock() + wait_s >= end:
                spent = f"{type(request).__name__} failed after {self._clock() - started:.1f} s"
                raise KafkaException(KafkaError(error.code(), f"{spent}: {error.str()}", error.fatal(),
                                                error.retriable(), maybe_applied=error.maybe_applied))
            self.refresh_metadata()  # the brokers may have moved, and only the bootstrap servers be there
            await self.pause(wait_s)
            self.check_open(closed_text)

    async def list_topics(self, topic: str | None, timeout_s: float) -> ClusterMetadata:
        """Ask for one topic, which may make the brokers create it if the client lets them, or with None for all.

        Raises:
            KafkaException: no reply in time.
            TypeError: the topic is not str.
        """
        if topic is not None and not isinstance(topic, str):
            raise TypeError(f"topic must be str or None, not {type(topic).__name__}")
        return await self.list_these(None if topic is None else [topic], timeout_s)

    async def list_these(self, topics: Collection[str] | None, timeout_s: float) -> ClusterMetadata:
        """Ask for some topics in one request; as `list_topics`."""
        wanted = None if topics is None else [MetadataRequestTopic(name=topic) for topic in topics]
        may_create = topics is not None and self._allow_auto_create
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=may_create)
        nodes = dict(self.metadata.cluster.nodes)
        node_id, reply = await self._ask(ANY_NODE, request, timeout_s, None, True, closed_text=HANDLE_CLOSED)
        assert isinstance(reply, MetadataResponse)
        return cluster_metadata(reply, nodes.get(node_id) or self.metadata.cluster.nodes.get(node_id))

    async def cluster_id(self, timeout_s: float) -> str | None:
        """Id of the cluster.

        Raises:
            KafkaException: `_TIMED_OUT`: no broker answered in time.
        """
        try:
            return (await self.list_these([], timeout_s)).cluster_id
        except KafkaException as failed:
            if failed.error.code() not in LOST:
                raise
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, failed.error.str())) from None

    async def wait_for_metadata(self, enough: Callable[[Cluster], bool], timeout_s: float) -> Cluster:
        """Wait until the picture of the cluster satisfies a condition.

        Raises:
            KafkaException: `_TIMED_OUT`.
        """
        self.check_open()
        known = self.metadata.updates > 0
        if not (known and enough(self.metadata.cluster)):
            waiting: asyncio.Future[None] = self.future()
            self._watchers.append((enough, waiting))
            try:
                await in_time(waiting, timeout_s)
            except TimeoutError:
                raise KafkaException(KafkaError(
                    KafkaError._TIMED_OUT, f"no usable metadata after {timeout_s:g} s{self._last_error()}")) from None
            finally:
                self._watchers = [watcher for watcher in self._watchers if watcher[1] is not waiting]
        return self.metadata.cluster

    def future(self) -> asyncio.Future[Any]:
        """A future for calls that wait for brokers: it fails once they refuse this client, or the client is closed."""
        made: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._unusable is not None:
            made.set_exception(ClientClosedError(self._unusable))
            return made
        self._waiting.add(made)
        made.add_done_callback(self._waiting.discard)
        return made

    async def pause(self, wait_s: float) -> None:
        """Wait between two attempts: until the time is up, the client is closed, or brokers refuse it."""
        if self._unusable is None:
            over = self.future()
            await asyncio.wait((over,), timeout=wait_s)
            if over.done():
                over.exception()  # what comes next says it
            else:
                over.cancel()

    def fail_waiting(self, error: Exception) -> None:
        """Let all calls that wait for brokers raise: there is nothing to wait for. On the loop."""
        for waiting in [future for future in self._waiting if not future.done()]:
            waiting.set_exception(error)

    async def coordinator(self, kind: int, key: str, timeout_s: float) -> int:
        """Broker id of the coordinator of a group or transactional id. Rides out elections.

        Raises:
            KafkaException: it was not found in time, or must not be used.
        """
        from headrace.machines.cluster.coordinator import ELECTING, coordinator_of, find_coordinator
        from headrace.wire.messages.groups.classic_groups import FindCoordinatorResponse

        end, failures = self._clock() + timeout_s, 0
        while True:
            send = find_coordinator(kind, key, max(end - self._clock(), 0.0))
            reply = await self.request(ANY_NODE, send.request, send.timeout_s, max_version=send.max_version)
            assert isinstance(reply, FindCoordinatorResponse)
            node_id, error = coordinator_of(reply)
            if node_id is not None:
                await self._known(node_id, end - self._clock())
                return node_id
            failures += 1
            wait_s = self.retries.wait_s(failures)
            assert error is not None
            if error.code() not in ELECTING or self._clock() + wait_s >= end:
                raise KafkaException(error)
            await self.pause(wait_s)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with another user and password from now on. From any thread.

        Raises:
            ConfigError: one is empty, or has a NUL character.
            TypeError: one is not str.
        """
        self.config.set_sasl_credentials(username, password)
        self.driver.log_in_anew()

    async def close(self) -> None:
        """Close all connections. The second call does nothing."""
        if self._unusable is None:
            self._unusable, self.closed = self._closed_text, True
            self.on_closed()
            try:
                await self.driver.close()  # what is on its way hears so from its connection
            finally:
                self.fail_waiting(ClientClosedError(self._unusable))
                self._unattended.forget()

    def abandon(self) -> None:
        """The client was let go without being closed: end it without waiting. On the loop."""
        self._closed_text = _LET_GO
        self._unattended.begin()

    async def _known(self, node_id: int, timeout_s: float) -> None:
        if node_id not in self.metadata.cluster.nodes:
            self.refresh_metadata()
        await self.wait_for_metadata(lambda cluster: node_id in cluster.nodes, timeout_s)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, ErrorEvent):
            self._report(event.error)
        elif isinstance(event, MetadataFailed):
            self.fail_waiting(KafkaException(event.error))
        elif isinstance(event, MetadataChanged) and self._watchers:
            for enough, waiting in self._watchers:
                if not waiting.done() and enough(event.cluster):
                    waiting.set_result(None)
        if self._hand_out is not None:
            self._hand_out(event)

    def _report(self, error: KafkaError) -> None:
        self._reported = error
        try:
            self.on_error(error)
        except Exception:
            self.log.log(logging.ERROR, "error_cb raised", exc_info=True)

    def _log_error(self, error: KafkaError) -> None:
        self.log.log(logging.WARNING, "%s", error.str())

    _reported: KafkaError | None = None

    def _last_error(self) -> str:
        return f": {self._reported.str()}" if self._reported is not None else ""


class ClosesByItself:
    """Closes a client that nobody closes, on the running loop: once it is let go, or the loop is about to be closed.

    asyncio tells of that nobody but asynchronous generators that have begun; so one begins with the client. When it is
    let go may be too late: from Python 3.13 on, a task that `asyncio.run` cancels keeps it until the collector comes.

    Args:
        close: what closes the client. It begins in any case: where all tasks of the loop are cancelled in the turn in
            which the client is let go, as by `asyncio.run`, a task would be cancelled before its first step. The end of
            the loop cancels it, and waits for it.

    Attributes:
        task: it runs here, once it has begun.
    """

    task: asyncio.Task[object] | None = None

    def __init__(self, close: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._close, self._is_over = close, False
        self._watch = cast("AsyncGeneratorType[None, None]", self._until_the_loop_ends())
        _step(self._watch.asend(None))

    def begin(self) -> None:
        """Close the client. The second call does nothing."""
        if self.task is None and not self._is_over:
            self._start()

    def forget(self) -> None:
        """The client is closed: watch the loop no more."""
        if self.task is None:
            self._over()

    def _start(self) -> asyncio.Task[object]:
        has_begun = False

        async def close() -> None:
            nonlocal has_begun
            has_begun = True
            await self._close()

        def on_done(_: asyncio.Task[object]) -> None:
            if has_begun:
                self._over()
            else:
                self._start()

        self.task = asyncio.get_running_loop().create_task(close())
        self.task.add_done_callback(on_done)
        return self.task

    def _over(self) -> None:
        self._is_over = True
        if not self._watch.ag_running:
            _step(self._watch.aclose())

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            while not self._is_over:
                task = self.task or self._start()
                await asyncio.sleep(0)  # its first step
                task.cancel()
                await asyncio.wait((task,))


def _step(work: Coroutine[Any, Any, object]) -> None:
    """Do what is done without waiting."""
    with suppress(StopIteration):
        work.send(None)


def _nothing() -> None:
    """For clients that need not know."""


def _abandon_after_fork() -> None:
    for core in list(_living):
        core._unusable, core.closed = FORKED, True
        core.on_forked()
        core.on_closed()
        core._unattended.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_after_fork)
