"""`LogView`: what the leaders of many partitions say about their logs, over connections that stay.

For those who plan reads and do not read themselves, as the driver of a Spark query: which partitions there are, where
they begin and end, where a leader's term ended, and whether something new has come. One request for each broker
answers for all of its partitions. It must not know what is planned. Read next: `client.consumer.arrivals`;
`machines.admin.partition_requests` for the messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final, TypeVar

from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.core import ClientCore
from headrace.client.waits import ThreadWaits, submit
from headrace.config import CONSUMER, Config
from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import partition_requests
from headrace.machines.cluster.metadata import HostsUnknown, TopicInfo
from headrace.machines.consumer.subscription import Key
from headrace.machines.machine import Event
from headrace.net.thread import loop_thread
from headrace.types.admin import ListOffsetsResultInfo
from headrace.types.records import TopicPartition
from headrace.wire.schema import Request

__all__ = ["LogView", "patiently"]

_T = TypeVar("_T")
_NEVER: Final = float("-inf")
_AGAIN_S: Final = 0.1
_NEW_S: Final = 1.0
"""How long a topic that was just made may be unknown to a broker."""


class LogView:
    """A view of partitions. It connects at the first question and belongs to one process.

    Args:
        config: a consumer's properties.
        names: topics to know; None for all.

    Raises:
        ConfigError: an unknown property or a bad value.
    """

    def __init__(self, config: Mapping[str, Any], names: Collection[str] | None) -> None:
        self._config = Config(CONSUMER, {**config, "group.id": ""})
        self._given = ApplicationCallbacks(self)
        self._waits = ThreadWaits(loop_thread())
        self._names = None if names is None else frozenset(names)
        self._looked_at = _NEVER
        self._watch: Callable[[Mapping[Key, int], float], bool] | None = None
        self._core = self._waits.call(self._start())

    async def _start(self) -> ClientCore:
        def on_event(event: Event) -> None:  # knows the client, not the view, which may be dropped
            if isinstance(event, HostsUnknown):
                core.fail_waiting(KafkaException(event.error))

        core = ClientCore(self._config, on_event=on_event)
        self._given.when_let_go(lambda: not core.closed, core.abandon)
        core.metadata.want_only(self._names or (), every=self._names is None)
        return core

    def topics(self, timeout_s: float, *, max_age_s: float = 0.0) -> Mapping[str, TopicInfo]:
        """The topics as brokers describe them; one that does not exist has its error.

        Args:
            timeout_s: longest wait, in seconds.
            max_age_s: seconds up to which an earlier answer is good enough.

        Raises:
            KafkaException: no broker answered in time; sooner, `_RESOLVE`, before any has ever answered, when no host
                name of "bootstrap.servers" can be resolved. Asked again, it may be by then.
        """
        if time.monotonic() - self._looked_at > max_age_s:
            began = time.monotonic()
            self._run(self._look(timeout_s))
            self._looked_at = began
        return self._core.metadata.cluster.topics

    @property
    def answered(self) -> bool:
        """Whether any broker has ever described the topics."""
        return self._core.metadata.updates > 0

    def forget_topics(self) -> None:
        """Brokers said something else than `topics`: ask again at the next call."""
        self._looked_at = _NEVER

    async def _look(self, timeout_s: float) -> None:
        core, names = self._core, self._names or frozenset()
        metadata, before = core.metadata, core.metadata.updates
        core.refresh_metadata()
        await core.wait_for_metadata(
            lambda cluster: metadata.updates > before and names <= cluster.topics.keys(), timeout_s)

    def offsets(
        self, wanted: Mapping[Key, int], timeout_s: float, *, uncommitted: bool = False
    ) -> dict[Key, ListOffsetsResultInfo]:
        """The first offset of each partition whose record is at a time or later: -1, or none, if there is no such.

        Args:
            wanted: milliseconds by partition, or -2 for the beginning and -1 for the end of the log; with
                read_committed that of the last committed record.
            timeout_s: longest wait, in seconds.
            uncommitted: the end of the log is that of its last record, whatever the isolation level.

        Raises:
            KafkaException: a leader did not answer, refused, or is not known at the moment.
        """
        level = 0 if uncommitted else self._config["isolation.level"]
        asked = {TopicPartition(*key): timestamp for key, timestamp in wanted.items()}
        return self._run(self._at_leaders(
            asked, timeout_s, lambda part: partition_requests.list_offsets(part, level, timeout_s),
            partition_requests.read_offsets))

    def epoch_ends(self, epochs: Mapping[Key, int], timeout_s: float) -> dict[Key, int]:
        """Where the log of each leader ends for records of a term or an earlier one (KIP-320); -1 where it cannot say.

        Args:
            epochs: leader epoch by partition.
            timeout_s: longest wait, in seconds.

        Raises:
            KafkaException: as `offsets`.
        """
        from headrace.machines.consumer.epoch_ends import ask_epoch_ends, read_epoch_ends

        asked = {TopicPartition(*key): epoch for key, epoch in epochs.items()}
        return self._run(self._at_leaders(asked, timeout_s, ask_epoch_ends, read_epoch_ends))

    async def _at_leaders(
        self, wanted: Mapping[TopicPartition, int], timeout_s: float,
        ask: Callable[[Mapping[TopicPartition, int]], Request],
        read: Callable[[Any], Mapping[TopicPartition, _T | KafkaError]],
    ) -> dict[Key, _T]:
        """Ask each leader once; after an error that passes, others may lead."""
        try:
            return await self._ask_leaders(wanted, timeout_s, ask, read)
        except KafkaException as failed:
            if failed.error.retriable():
                self._core.refresh_metadata()
            raise

    async def _ask_leaders(
        self, wanted: Mapping[TopicPartition, int], timeout_s: float,
        ask: Callable[[Mapping[TopicPartition, int]], Request],
        read: Callable[[Any], Mapping[TopicPartition, _T | KafkaError]],
    ) -> dict[Key, _T]:
        driver = self._core.driver
        parts = self._by_leader(wanted)
        replies = await asyncio.gather(*(driver.request(node, ask(part), timeout_s) for node, part in parts.items()))
        found: dict[Key, _T] = {}
        for reply in replies:
            for tp, answer in read(reply).items():
                if isinstance(answer, KafkaError):
                    raise KafkaException(answer)
                found[tp.topic, tp.partition] = answer
        if missing := [f"{tp.topic}[{tp.partition}]" for tp in wanted if (tp.topic, tp.partition) not in found]:
            raise KafkaException(KafkaError(KafkaError._BAD_MSG, f"a broker left out {', '.join(missing)}"))
        return found

    def _by_leader(self, wanted: Mapping[TopicPartition, int]) -> dict[int, dict[TopicPartition, int]]:
        found: dict[int, dict[TopicPartition, int]] = {}
        for tp, value in wanted.items():
            leader, _ = self._core.metadata.leader(tp.topic, tp.partition)
            if leader is None:
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"{tp.topic}[{tp.partition}] has no "
                                                                                 "leader at the moment"))
            found.setdefault(leader, {})[tp] = value
        return found

    def wait_for_records(self, ends: Mapping[Key, int], timeout_s: float) -> bool:
        """Wait until there may be records behind the ends of logs; brokers hold the questions (KIP-74's wait).

        Args:
            ends: where each log ended.
            timeout_s: longest wait, in seconds.

        Returns:
            False when nothing has come.
        """
        if self._watch is None:
            from headrace.client.consumer.arrivals import Arrivals

            self._watch = Arrivals(self._core, self._waits, self._config["isolation.level"]).wait
        return self._watch(ends, timeout_s)

    def commit(self, group_id: str, offsets: Mapping[Key, int], timeout_s: float) -> Callable[[float], None]:
        """Begin to set offsets of a group that has no members.

        Args:
            group_id: the group.
            offsets: the next offset to read, by partition.
            timeout_s: longest wait for the coordinator, in seconds.

        Returns:
            A function that waits until it is done, at most for so many seconds; it raises KafkaException when a
            coordinator refused, TimeoutError when it takes longer.
        """
        return submit(self._waits.thread, self._commit(group_id, offsets, timeout_s)).result

    async def _commit(self, group_id: str, offsets: Mapping[Key, int], timeout_s: float) -> None:
        from headrace.client.admin.admin_engine import AdminEngine
        from headrace.machines.admin import offset_requests as requests

        partitions = [TopicPartition(*key, offset) for key, offset in offsets.items()]
        outcome = await AdminEngine(self._core).at_coordinators(
            [group_id], timeout_s, lambda _: requests.alter_offsets(group_id, partitions),
            lambda reply, _: {group_id: requests.read_altered_offsets(reply, group_id, partitions)},
            max_version=requests.LAST_COMMIT_BY_NAME)
        committed = outcome[group_id]
        errors = [committed] if isinstance(committed, KafkaError) else [tp.error for tp in committed if tp.error]
        if errors:
            raise KafkaException(errors[0])

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._waits.call(work)

    def close(self) -> None:
        """Close the connections. Closing twice does no harm."""
        self._waits.call(self._core.close())

    def __enter__(self) -> LogView:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def patiently(ask: Callable[[float], _T], until: float) -> _T:
    """Ask brokers again while what is wrong may pass: leaders move, and a new topic has none for a moment.

    Args:
        ask: asks once; it is given how many seconds are left.
        until: monotonic seconds; then it is said what is wrong.

    Returns:
        The answer.

    Raises:
        KafkaException: what was wrong last, or does not pass.
    """
    began = time.monotonic()
    while True:
        try:
            return ask(max(until - time.monotonic(), 0.001))
        except KafkaException as failed:
            unknown = failed.error == KafkaError.UNKNOWN_TOPIC_OR_PART
            end = min(until, began + _NEW_S) if unknown else until
            if not failed.error.retriable() or time.monotonic() + _AGAIN_S > end:
                raise
        time.sleep(_AGAIN_S)
