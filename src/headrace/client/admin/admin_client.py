"""`AdminClient`: administration for synchronous programs, under confluent_kafka's names and behaviour.

It signs the calls of `client.admin.admin_calls` and has them done on the process's loop thread (decision 0036). It must
not know what a call does. Read next: `client.admin.admin_calls`.
"""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import Future
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from headrace.arguments import given_properties
from headrace.client.admin.admin_area import ByKey
from headrace.client.admin.admin_calls import AdminCalls, signed
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.core import HANDLE_CLOSED, ClientCore, LiveClient
from headrace.client.result_future import ResultFuture, end_together
from headrace.client.waits import ThreadWaits, Wait, deadline, submit
from headrace.config import ADMIN, Config
from headrace.errors import ClientClosedError, KafkaError
from headrace.interpreter import SteadyLock, uncollected
from headrace.net.thread import loop_thread

__all__ = ["AdminClient", "list_these"]

_K = TypeVar("_K")
_V = TypeVar("_V")
_W = TypeVar("_W")
_P = ParamSpec("_P")


def _by_key(
    call: Callable[Concatenate[Any, _P], ByKey[_K, _V]]
) -> Callable[Concatenate[AdminClient, _P], dict[_K, Future[_V]]]:
    """The method that begins a call and gives a future for each of several things."""
    def method(self: AdminClient, /, *given: _P.args, **named: _P.kwargs) -> dict[_K, Future[_V]]:
        return self._futures(call(self._calls, *given, **named))

    return signed(method, call, "", "Future[{}]")


def _single(
    call: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _V]]
) -> Callable[Concatenate[AdminClient, _P], Future[_V]]:
    """The method that begins a call and gives a future."""
    def method(self: AdminClient, /, *given: _P.args, **named: _P.kwargs) -> Future[_V]:
        return self._future(call(self._calls, *given, **named))

    return signed(method, call, "Future[{}]")


def _either(
    call: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _W] | ByKey[_K, _V]]
) -> Callable[Concatenate[AdminClient, _P], Any]:
    """The method that begins a call and gives a future, or one for each of several things."""
    def method(self: AdminClient, /, *given: _P.args, **named: _P.kwargs) -> Any:
        begun = call(self._calls, *given, **named)
        return self._futures(begun) if isinstance(begun, ByKey) else self._future(begun)

    return signed(method, call, "Future[{}]", "Future[{}]")


def _waited(
    call: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _V]]
) -> Callable[Concatenate[AdminClient, _P], _V]:
    """The method that makes a call and waits for its result."""
    def method(self: AdminClient, /, *given: _P.args, **named: _P.kwargs) -> _V:
        self._check_handle()
        return self._thread.call(call(self._calls, *given, **named))

    return signed(method, call, "{}")


def _deprecated(method: Callable[_P, _V], text: str) -> Callable[_P, _V]:
    """A method that confluent_kafka warns of, in its words; the warning shows the line that calls it."""
    @wraps(method)
    def warning(*given: _P.args, **named: _P.kwargs) -> _V:
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return method(*given, **named)

    return warning


class AdminClient(LiveClient):
    """Creates, describes, changes and deletes what a cluster has: topics, configurations, rules, groups, users.

    Methods that concern several things return a dict of `concurrent.futures.Future` at once, one for each thing; most
    others return one future:

        admin = AdminClient({"bootstrap.servers": "localhost:9092"})
        admin.create_topics([NewTopic("t", 4)])["t"].result()

    A client that is let go is closed, and what it was asked for fails: keep it until the futures are done.

    What is to be given as a list must be one, with members of the right kind, and in most cases not be empty; what is
    wrong with arguments is raised at once (TypeError, ValueError).

    Times are seconds. `request_timeout` bounds the whole call, attempts at other brokers included, and is
    socket.timeout.ms by default; `operation_timeout` is how long the brokers may take to carry it out.

    A future raises `KafkaException`; where a right is missing, its text says which.

    Args:
        conf: properties, see `headrace.config`; `bootstrap.servers` is enough.
        logger: logging.Logger to use instead of `headrace`.
        properties: further properties.

    Raises:
        ConfigError: a property is unknown or wrong.
        RuntimeError: it was made already, and is not closed.
    """

    _core: ClientCore

    def __init__(self, conf: Mapping[str, Any], logger: Any = None, **properties: Any) -> None:
        if "_core" in self.__dict__ and not self._core.closed:
            raise RuntimeError("Admin already __init__:ialized")
        self._given = given = ApplicationCallbacks(self)
        config = Config(
            ADMIN, given.lend_properties(given_properties(conf, logger, properties)), servers_needed=False)
        self._thread = loop_thread()
        self._waits = ThreadWaits(self._thread)
        self._errors: deque[KafkaError] = deque()
        self._begun: set[Future[Any]] = set()
        self._error_cb = config["error_cb"]
        self._core = self._thread.call(_make_core(config, given, self._errors, self._waits))
        self._calls = AdminCalls(self._core)

    if not TYPE_CHECKING:  # a type checker would take every name for one of a client's

        def __getattr__(self, name: str) -> Any:
            if name in ("_calls", "_core"):  # as in `Consumer`
                raise ClientClosedError("AdminClient has been closed: its __init__() was not called, or failed")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # Topics

    create_topics = _by_key(AdminCalls.create_topics)
    delete_topics = _by_key(AdminCalls.delete_topics)
    create_partitions = _by_key(AdminCalls.create_partitions)
    describe_topics = _by_key(AdminCalls.describe_topics)

    # Partitions

    list_offsets = _by_key(AdminCalls.list_offsets)
    delete_records = _by_key(AdminCalls.delete_records)
    elect_leaders = _single(AdminCalls.elect_leaders)
    alter_partition_reassignments = _by_key(AdminCalls.alter_partition_reassignments)
    list_partition_reassignments = _single(AdminCalls.list_partition_reassignments)

    # Configurations

    describe_configs = _by_key(AdminCalls.describe_configs)
    alter_configs = _deprecated(
        _by_key(AdminCalls.alter_configs),
        "alter_configs has been deprecated. Use incremental_alter_configs instead.")
    incremental_alter_configs = _by_key(AdminCalls.incremental_alter_configs)
    list_config_resources = _single(AdminCalls.list_config_resources)

    # Access rules

    create_acls = _by_key(AdminCalls.create_acls)
    describe_acls = _single(AdminCalls.describe_acls)
    delete_acls = _by_key(AdminCalls.delete_acls)

    # Groups

    list_consumer_groups = _single(AdminCalls.list_consumer_groups)
    describe_consumer_groups = _by_key(AdminCalls.describe_consumer_groups)
    delete_consumer_groups = _by_key(AdminCalls.delete_consumer_groups)
    remove_members_from_consumer_group = _single(AdminCalls.remove_members_from_consumer_group)

    # Offsets of groups

    list_consumer_group_offsets = _by_key(AdminCalls.list_consumer_group_offsets)
    alter_consumer_group_offsets = _by_key(AdminCalls.alter_consumer_group_offsets)
    delete_consumer_group_offsets = _by_key(AdminCalls.delete_consumer_group_offsets)
    reset_consumer_group_offsets = _single(AdminCalls.reset_consumer_group_offsets)

    # Share groups

    list_share_groups = _single(AdminCalls.list_share_groups)
    describe_share_groups = _by_key(AdminCalls.describe_share_groups)
    delete_share_groups = _by_key(AdminCalls.delete_share_groups)
    list_share_group_offsets = _single(AdminCalls.list_share_group_offsets)
    alter_share_group_offsets = _by_key(AdminCalls.alter_share_group_offsets)
    delete_share_group_offsets = _by_key(AdminCalls.delete_share_group_offsets)

    # The cluster

    describe_cluster = _single(AdminCalls.describe_cluster)
    describe_features = _single(AdminCalls.describe_features)
    describe_api_versions = _single(AdminCalls.describe_api_versions)
    update_features = _by_key(AdminCalls.update_features)
    describe_metadata_quorum = _single(AdminCalls.describe_metadata_quorum)
    add_raft_voter = _single(AdminCalls.add_raft_voter)
    remove_raft_voter = _single(AdminCalls.remove_raft_voter)
    unregister_broker = _single(AdminCalls.unregister_broker)
    describe_log_dirs = _by_key(AdminCalls.describe_log_dirs)
    alter_replica_log_dirs = _by_key(AdminCalls.alter_replica_log_dirs)

    # Transactions

    list_transactions = _single(AdminCalls.list_transactions)
    describe_transactions = _by_key(AdminCalls.describe_transactions)
    describe_producers = _by_key(AdminCalls.describe_producers)
    abort_transaction = _single(AdminCalls.abort_transaction)
    fence_producers = _by_key(AdminCalls.fence_producers)

    # Users

    describe_user_scram_credentials = _either(AdminCalls.describe_user_scram_credentials)
    alter_user_scram_credentials = _by_key(AdminCalls.alter_user_scram_credentials)
    describe_client_quotas = _single(AdminCalls.describe_client_quotas)
    alter_client_quotas = _by_key(AdminCalls.alter_client_quotas)
    create_delegation_token = _single(AdminCalls.create_delegation_token)
    describe_delegation_tokens = _single(AdminCalls.describe_delegation_tokens)
    renew_delegation_token = _single(AdminCalls.renew_delegation_token)
    expire_delegation_token = _single(AdminCalls.expire_delegation_token)

    # Answers that are waited for

    list_topics = _waited(AdminCalls.list_topics)
    cluster_id = _waited(AdminCalls.cluster_id)
    list_groups = _deprecated(
        _waited(AdminCalls.list_groups),
        "list_groups() is deprecated, use list_consumer_groups() and describe_consumer_groups() instead.")

    def poll(self, timeout: float | None = -1) -> int:
        """Wait for errors and call `error_cb` with those that have come.

        Args:
            timeout: seconds to wait while there are none; None or a negative number waits until there is one.

        Returns:
            How many there were.
        """
        until = deadline(timeout)
        self._core.check_open()
        self._waits.wait(Wait(lambda: self._errors or self._core.closed, until))
        served = 0
        while self._errors:
            self._error_cb(self._errors.popleft())
            served += 1
        return served

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with another user and password from the next connection on, for PLAIN and SCRAM.

        Raises:
            TypeError: they are not text.
            ValueError: one is empty.
        """
        self._check_handle()
        self._core.set_sasl_credentials(username, password)

    def __len__(self) -> int:
        """Calls that are under way, and errors that wait for `poll()`; 0 once it is closed."""
        if "_core" not in self.__dict__ or self._core.closed:
            return 0
        return sum(not future.done() for future in list(self._begun)) + len(self._errors)

    def close(self) -> None:
        """Close all connections; what is not settled yet fails. The second call does nothing."""
        if "_core" in self.__dict__ and not (self._core.closed or sys.is_finalizing()):
            self._thread.call(self._core.close())
            self._waits.notify()

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _check_handle(self) -> None:
        if "_core" not in self.__dict__:
            raise ClientClosedError(HANDLE_CLOSED)
        self._core.check_open(HANDLE_CLOSED)

    @uncollected
    def _futures(self, call: ByKey[_K, _V]) -> dict[_K, Future[_V]]:
        lock = SteadyLock()
        futures: dict[_K, Future[_V]] = {key: ResultFuture(lock) for key in call.keys}
        self._future(call.settle(futures, partial(end_together, lock)))
        return dict(futures)  # an application may take out what it does not wait for

    def _future(self, work: Coroutine[Any, Any, _V]) -> Future[_V]:
        future = submit(self._thread, work)
        self._begun.add(future)
        future.add_done_callback(self._begun.discard)
        return future


def list_these(admin: AdminClient, topics: Collection[str] | None, timeout_s: float) -> ClusterMetadata:
    """As `AdminClient.list_topics`, of several topics in one request; of all with None.

    Raises:
        KafkaException: no broker answered in time.
    """
    return admin._thread.call(admin._core.list_these(topics, timeout_s))


async def _make_core(
    config: Config, given: ApplicationCallbacks, errors: deque[KafkaError], waits: ThreadWaits
) -> ClientCore:
    def on_error(error: KafkaError) -> None:
        errors.append(error)
        waits.notify()

    core = ClientCore(config, closed_text="AdminClient has been closed: make a new one")
    if config["error_cb"] is not None:
        core.on_error = on_error
    await core.log_in(core.close)
    given.when_let_go(lambda: not core.closed, core.abandon)
    return core
