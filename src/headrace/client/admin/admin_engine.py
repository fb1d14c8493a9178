"""Where the admin client's requests go: the right broker is found and asked, and again while brokers move.

It has one way for each kind of broker: the controller or any (`at`), leaders of partitions, coordinators, each broker.
What is asked for several things gives a dict from each of them to its result, or to the `KafkaError` that it ended
with. It must not know the calls. Read next: `client.admin.topic_calls`, `machines.admin.admin_error_actions`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from headrace.client.core import ClientCore
from headrace.errors import KafkaError, KafkaException
from headrace.interpreter import uncollected
from headrace.machines.admin.admin_error_actions import AdminErrorAction, admin_error_action
from headrace.machines.admin.admin_results import failure, key_of
from headrace.machines.cluster.coordinator import GROUP
from headrace.machines.machine import ANY_NODE, CONTROLLER, LOST, ForVersion
from headrace.types.cluster import Node
from headrace.types.records import TopicPartition
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
from headrace.wire.schema import Request

__all__ = ["ANY_NODE", "CONTROLLER", "AdminEngine"]

_K = TypeVar("_K")
_V = TypeVar("_V")
_W = TypeVar("_W")
_Read = Callable[[Any], _V]
_TOO_OLD = (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION)


class AdminEngine:
    """The ways to the brokers, on the event loop of their client.

    Args:
        core: metadata and connections.
    """

    def __init__(self, core: ClientCore) -> None:
        self._core = core

    def node(self, node_id: int) -> Node | None:
        """A broker as users see it."""
        found = self._core.metadata.cluster.nodes.get(node_id)
        return None if found is None else Node(found.id, found.host, found.port, found.rack)

    # One broker

    async def at(
        self, destination: int, request: Request, timeout_s: float, read: _Read[dict[_K, _V]], *,
        max_version: int | None = None, repeatable: bool = True, for_version: ForVersion | None = None,
    ) -> dict[_K, _V]:
        """Ask one broker for several things.

        Args:
            destination: broker id, `ANY_NODE` or `CONTROLLER`.
            request: the message.
            timeout_s: seconds for all attempts together.
            read: makes results of the reply.
            max_version: highest version allowed.
            repeatable: sending it twice does no harm.
            for_version: makes of it what an older broker understands, or says that it cannot be had there.

        Raises:
            KafkaException: no reply in time, or one that is an error as a whole.
        """
        async def attempt(settled: Collection[_K], left_s: float) -> dict[_K, _V]:
            return _understood(read, await self._core.request(
                destination, request, left_s, max_version=max_version, repeatable=repeatable, for_version=for_version))

        return await self.until_settled(attempt, timeout_s)

    async def single(
        self, destination: int, request: Request, timeout_s: float, read: _Read[_V], *,
        max_version: int | None = None, repeatable: bool = True, for_version: ForVersion | None = None,
    ) -> _V:
        """Ask one broker for one thing; as `at`."""
        found = await self.at(destination, request, timeout_s, lambda reply: {None: read(reply)},
                              max_version=max_version, repeatable=repeatable, for_version=for_version)
        return found[None]

    # Each broker

    async def at_brokers(
        self, request: Request, timeout_s: float, read: _Read[_V], brokers: Sequence[int] | None = None
    ) -> tuple[dict[int, _V], dict[int, KafkaError]]:
        """Ask some brokers, or all, at the same time: what each says, and the errors of the others."""
        if brokers is None:
            cluster = await self._core.wait_for_metadata(lambda cluster: True, timeout_s)
            brokers = list(cluster.nodes)
        async def ask(node_id: int) -> _V:
            return _understood(read, await self._core.request(node_id, request, timeout_s))

        outcomes = await asyncio.gather(*map(ask, brokers), return_exceptions=True)
        found: dict[int, _V] = {}
        errors: dict[int, KafkaError] = {}
        for node_id, outcome in zip(brokers, outcomes, strict=True):
            if isinstance(outcome, KafkaException):
                errors[node_id] = _late(outcome.error)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                found[node_id] = outcome
        return found, errors

    # Leaders

    async def at_leaders(
        self,
        wanted: Mapping[TopicPartition, _W],
        timeout_s: float,
        ask: Callable[[Mapping[TopicPartition, _W], float], Request],
        read: _Read[dict[TopicPartition, _V | KafkaError]],
    ) -> dict[TopicPartition, _V | KafkaError]:
        """Ask the leader of each partition.

        Args:
            wanted: partitions, and what is wanted of each.
            timeout_s: seconds for all attempts together.
            ask: makes the request for one leader, given the seconds that are left.
            read: makes results of a reply.
        """
        async def attempt(settled: Collection[TopicPartition], left_s: float) -> dict[TopicPartition, _V | KafkaError]:
            open_ones = {tp: value for tp, value in wanted.items() if tp not in settled}
            errors, leaders = await self._leaders(open_ones, left_s)
            results: dict[TopicPartition, _V | KafkaError] = dict(errors)
            parts = [(part, self._core.driver.request(node_id, ask(part, left_s), left_s))
                     for node_id, part in leaders.items()]
            replies = await asyncio.gather(*(reply for _, reply in parts), return_exceptions=True)
            for (part, _), reply in zip(parts, replies, strict=True):
                # Where a leader could not be asked, another broker may lead when the metadata is fresh.
                results.update(_results(part, reply, read))
            return results

        try:
            return await self.until_settled(attempt, timeout_s)
        finally:
            self._core.metadata.unwant({tp.topic for tp in wanted})

    async def _leaders(
        self, wanted: Mapping[TopicPartition, _W], timeout_s: float
    ) -> tuple[dict[TopicPartition, KafkaError], dict[int, dict[TopicPartition, _W]]]:
        """Sort partitions by leader; those without one get their error."""
        topics = {tp.topic for tp in wanted}
        self._core.metadata.want_topics(topics)
        self._core.wake()
        await self._core.wait_for_metadata(lambda cluster: topics <= cluster.topics.keys(), timeout_s)
        errors: dict[TopicPartition, KafkaError] = {}
        leaders: dict[int, dict[TopicPartition, _W]] = defaultdict(dict)
        for tp, value in wanted.items():
            error = self._trouble(tp)
            leader, _ = self._core.metadata.leader(tp.topic, tp.partition)
            if error is not None or leader is None:
                errors[tp] = error or KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"{tp.topic}[{tp.partition}] has no "
                                                                                  "leader at the moment")
            else:
                leaders[leader][tp] = value
        return errors, leaders

    def _trouble(self, tp: TopicPartition) -> KafkaError | None:
        topic = self._core.metadata.cluster.topics[tp.topic]
        if topic.error is not None:
            return failure(key_of(tp), topic.error.code(), topic.error.str(), f'DESCRIBE on topic "{tp.topic}"')
        if tp.partition not in topic.partitions:
            return KafkaError(KafkaError._UNKNOWN_PARTITION,
                              f'topic "{tp.topic}" has partitions 0 to {len(topic.partitions) - 1}, not {tp.partition}')
        return None

    # Coordinators

    async def at_coordinators(
        self,
        keys: Iterable[str],
        timeout_s: float,
        ask: Callable[[list[str]], Request],
        read: Callable[[Any, int], dict[str, _V | KafkaError]],
        *,
        kind: int = GROUP,
        max_version: int | None = None,
    ) -> dict[str, _V | KafkaError]:
        """Ask the coordinator of each group, or of each transactional id.

        Args:
            keys: groups or transactional ids.
            timeout_s: seconds for all attempts together.
            ask: makes the request for some of them.
            read: makes results of a reply, given the coordinator's id.
            kind: what the keys are, as the request FindCoordinator counts.
            max_version: highest version allowed.
        """
        names = list(dict.fromkeys(keys))

        async def ask_one(node_id: int, part: list[str], left_s: float) -> dict[str, _V | KafkaError]:
            reply: Any
            try:
                reply = await self._core.request(node_id, ask(part), left_s, max_version=max_version)
            except KafkaException as failed:
                reply = failed
            return _results(part, reply, lambda found: read(found, node_id))

        async def attempt(settled: Collection[str], left_s: float) -> dict[str, _V | KafkaError]:
            open_ones = [name for name in names if name not in settled]
            errors, nodes = await self._coordinators(open_ones, kind, left_s)
            results: dict[str, _V | KafkaError] = dict(errors)
            for found in await asyncio.gather(*(ask_one(*each, left_s) for each in nodes.items())):
                results.update(found)
            return results

        return await self.until_settled(attempt, timeout_s)

    async def _coordinators(
        self, names: Sequence[str], kind: int, timeout_s: float
    ) -> tuple[dict[str, KafkaError], dict[int, list[str]]]:
        """Sort keys by coordinator; those without one get their error."""
        if len(names) > 1:
            try:
                return await self._coordinators_at_once(names, kind, timeout_s)
            except KafkaException as failed:
                if failed.error.code() not in _TOO_OLD:
                    raise
        outcomes = await asyncio.gather(*(self._core.coordinator(kind, name, timeout_s) for name in names),
                                        return_exceptions=True)
        errors: dict[str, KafkaError] = {}
        nodes: dict[int, list[str]] = defaultdict(list)
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, KafkaException):
                error, thing = outcome.error, f'{"group" if kind == GROUP else "transactional id"} "{name}"'
                errors[name] = failure(thing, error.code(), error.str(), f"DESCRIBE on {thing}") or error
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                nodes[outcome].append(name)
        return errors, nodes

    async def _coordinators_at_once(
        self, names: Sequence[str], kind: int, timeout_s: float
    ) -> tuple[dict[str, KafkaError], dict[int, list[str]]]:
        """As `_coordinators`, in one request (KIP-699)."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(names))
        reply = await self._core.request(ANY_NODE, request, timeout_s)
        assert isinstance(reply, FindCoordinatorResponse)
        errors: dict[str, KafkaError] = {}
        nodes: dict[int, list[str]] = defaultdict(list)
        for found in reply.coordinators:
            thing = f'{"group" if kind == GROUP else "transactional id"} "{found.key}"'
            error = failure(thing, found.error_code, found.error_message, f"DESCRIBE on {thing}")
            if error is not None:
                errors[found.key] = error
            else:
                nodes[found.node_id].append(found.key)
        return errors, nodes

    async def until_settled(
        self, attempt: Callable[[Collection[_K], float], Awaitable[dict[_K, _V]]], timeout_s: float
    ) -> dict[_K, _V]:
        """Repeat a call for what failed because a leader, coordinator or controller is moving, until it is settled.

        Args:
            attempt: makes results of what is not settled, given the seconds that are left.
            timeout_s: seconds for all attempts together.

        Raises:
            KafkaException: there is no result at all.
        """
        clock = asyncio.get_running_loop().time
        end, failures = clock() + timeout_s, 0
        settled: dict[_K, _V] = {}
        results: dict[_K, _V] = {}
        while True:
            failed: KafkaException | None = None
            moving: Collection[_K] = ()
            errors: dict[_K, KafkaError] = {}
            try:
                results = await attempt(settled, max(end - clock(), 0.0))
            except KafkaException as error:
                if results and clock() >= end:
                    return {**results, **settled}  # there was no time for another answer: the last one stands
                failed = error
            else:
                errors = {key: value for key, value in results.items() if isinstance(value, KafkaError)}
                if not errors:
                    return {**results, **settled}
                moving = {key for key, error in errors.items() if _moved(error)}
                # The first answer stands: asked again, a topic that was made is one that is there already.
                settled = {**{key: value for key, value in results.items() if key not in moving}, **settled}
            failures += 1
            wait_s = self._core.retries.wait_s(failures)
            late = clock() + wait_s >= end
            if failed is not None and (late or failed.error.code() < 0 or not _moved(failed.error)):
                raise _late(failed)  # negative codes: `request` has tried again where that does no harm
            if failed is None and (late or not moving):
                late_ones: Any = {key: _late(error) for key, error in errors.items()}
                return {**results, **late_ones, **settled}
            self._core.refresh_metadata()
            await self._core.pause(wait_s)


def _moved(error: KafkaError) -> bool:
    return admin_error_action(error.code()) is AdminErrorAction.MOVED


@uncollected
def _understood(read: _Read[_V], reply: Any) -> _V:
    """What a reply says. One that does not fit its request is an error of the broker, and no defect of ours."""
    try:
        return read(reply)
    except (LookupError, TypeError, ValueError) as error:
        text = f"{type(reply).__name__} does not answer what was asked: {error}"
        raise KafkaException(KafkaError(KafkaError._BAD_MSG, text)) from error


def _late(result: _V) -> _V:
    """A way that was not found until time was over is a time that is over, as in confluent_kafka; it says what failed.

    Where a request may have been carried out, it stays what it is.
    """
    error = result.error if isinstance(result, KafkaException) and not isinstance(result, KafkaError) else result
    if not isinstance(error, KafkaError) or error.code() not in LOST or error.maybe_applied:
        return result
    late: Any = KafkaError(KafkaError._TIMED_OUT, error.str())
    return late if error is result else KafkaException(late)  # type: ignore[return-value]


def _results(
    keys: Iterable[_K], reply: Any, read: _Read[dict[_K, _V | KafkaError]]
) -> dict[_K, _V | KafkaError]:
    """The results of some things from a reply, or from what was raised in its place."""
    try:
        if isinstance(reply, BaseException):
            raise reply
        return _understood(read, reply)
    except KafkaException as failed:
        return dict.fromkeys(keys, failed.error)
