"""`AIOAdminClient`: administration for asyncio programs, under confluent_kafka's names.

Each method that changes or asks for several things returns a dict of awaitable futures at once, one for each thing:

    await admin.create_topics([NewTopic("flights", 4)])["flights"]

It signs the calls of `client.admin.admin_calls` and has them done on the running loop (decision 0036). It must not know
what a call does. Read next: `client.admin.admin_calls`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from headrace.arguments import given_properties
from headrace.client.admin.admin_area import ByKey
from headrace.client.admin.admin_calls import AdminCalls, signed
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.core import ClientCore, LiveClient
from headrace.client.coroutine_callbacks import with_started
from headrace.client.waits import LoopWaits, running_loop
from headrace.config import ADMIN, Config

__all__ = ["AIOAdminClient"]

_K = TypeVar("_K")
_V = TypeVar("_V")
_W = TypeVar("_W")
_P = ParamSpec("_P")


def _by_key(
    call: Callable[Concatenate[Any, _P], ByKey[_K, _V]]
) -> Callable[Concatenate[AIOAdminClient, _P], dict[_K, asyncio.Future[_V]]]:
    """The method that begins a call and gives a future for each of several things."""
    def method(self: AIOAdminClient, /, *given: _P.args, **named: _P.kwargs) -> dict[_K, asyncio.Future[_V]]:
        return self._futures(call(self._calls, *given, **named))

    return signed(method, call, "", "asyncio.Future[{}]")


def _single(
    call: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _V]]
) -> Callable[Concatenate[AIOAdminClient, _P], asyncio.Future[_V]]:
    """The method that begins a call and gives a future."""
    def method(self: AIOAdminClient, /, *given: _P.args, **named: _P.kwargs) -> asyncio.Future[_V]:
        return self._task(call(self._calls, *given, **named))

    return signed(method, call, "asyncio.Future[{}]")


def _either(
    call: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _W] | ByKey[_K, _V]]
) -> Callable[Concatenate[AIOAdminClient, _P], Any]:
    """The method that begins a call and gives a future, or one for each of several things."""
    def method(self: AIOAdminClient, /, *given: _P.args, **named: _P.kwargs) -> Any:
        begun = call(self._calls, *given, **named)
        return self._futures(begun) if isinstance(begun, ByKey) else self._task(begun)

    return signed(method, call, "asyncio.Future[{}]", "asyncio.Future[{}]")


class AIOAdminClient(LiveClient):
    """Creates, describes, changes and deletes what a cluster has: `AdminClient` for asyncio.

    Methods that concern several things return a dict of `asyncio.Future` at once, one for each thing; the others return
    one future. So each is awaited, and what is wrong with arguments is raised at once (TypeError, ValueError).

    Times are seconds. `request_timeout` bounds the whole call, attempts at other brokers included, and is
    socket.timeout.ms by default; `operation_timeout` is how long the brokers may take to carry it out.

    A future raises `KafkaException`; where a right is missing, its text says which.

    Args:
        conf: properties, see `headrace.config`; `bootstrap.servers` is enough.
        logger: logging.Logger to use instead of `headrace`.
        properties: further properties.

    Raises:
        ConfigError: a property is unknown or wrong.
    """

    def __init__(self, conf: Mapping[str, Any], logger: Any = None, **properties: Any) -> None:
        self._waits = LoopWaits(running_loop())
        self._given = ApplicationCallbacks(self)
        given = self._given.lend_properties(with_started(given_properties(conf, logger, properties)))
        self._core = core = ClientCore(
            Config(ADMIN, given, servers_needed=False), closed_text="AIOAdminClient has been closed: make a new one")
        self._given.when_let_go(lambda: not core.closed, core.abandon)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._all_calls = AdminCalls(core)

    @property
    def _calls(self) -> AdminCalls:
        """The calls, for tasks of the client's own loop."""
        self._waits.running_loop()
        return self._all_calls

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
    alter_configs = _by_key(AdminCalls.alter_configs)
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

    list_topics = _single(AdminCalls.list_topics)
    cluster_id = _single(AdminCalls.cluster_id)
    list_groups = _single(AdminCalls.list_groups)

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """As `AdminClient.set_sasl_credentials`."""
        self._waits.running_loop()
        self._core.check_open()
        self._core.set_sasl_credentials(username, password)

    def __len__(self) -> int:
        """Calls that are under way."""
        return len(self._tasks)

    async def close(self) -> None:
        """As `AdminClient.close`, awaited."""
        self._waits.running_loop()
        await self._core.close()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> AIOAdminClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _futures(self, call: ByKey[_K, _V]) -> dict[_K, asyncio.Future[_V]]:
        loop = asyncio.get_running_loop()
        futures: dict[_K, asyncio.Future[_V]] = {key: loop.create_future() for key in call.keys}
        self._task(call.settle(futures))
        return dict(futures)  # as `AdminClient`

    def _task(self, work: Coroutine[Any, Any, _V]) -> asyncio.Task[_V]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
