"""Producers that stay open between uses, in processes that do many short tasks one after the other (decision 0014).

A taken producer belongs to one task until it is given back. It must not know what the tasks are: Spark's are in
`headrace.spark.column_writer`. Read next: `client.producer.producer`.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any, Final

from headrace.client.producer.producer import Producer, calls_of
from headrace.client.producer.producer_engine import ProducerEngine
from headrace.errors import KafkaException
from headrace.machines.cluster.metadata import TopicInfo
from headrace.net.thread import loop_thread

__all__ = ["KeptProducers"]

_IDLE_S: Final = 60.0
"""Spark ends workers that did nothing for a minute."""
_OLD_S: Final = 300.0
"""A producer reads files of certificates and keys when it is made."""
_FRESH_S: Final = 1.0
"""Age up to which the brokers' answer about topics is trusted."""
_ANSWER_S: Final = 1.0
"""Longest wait for brokers here; a longer one belongs into a new producer, which knows how to wait."""
_clock = time.monotonic

Key = frozenset[tuple[str, Any]]


class _Kept:
    """One producer, in use or not.

    Attributes:
        key: the properties that it was made with.
        engine: the producer's.
        made_at: monotonic seconds.
        confirmed_at: when brokers were last asked for its topics.
        idle_since: when it was given back.
        is_watched: a timer will look at it.
    """

    __slots__ = ("confirmed_at", "engine", "idle_since", "is_watched", "key", "made_at", "producer")

    def __init__(self, key: Key, producer: Producer) -> None:
        self.key = key
        self.producer = producer
        self.engine = calls_of(producer).engine
        self.made_at = self.confirmed_at = self.idle_since = _clock()
        self.is_watched = False

    def is_good(self) -> bool:
        """Whether it may be used again; asks brokers unless they confirmed it a moment ago."""
        if not self.engine.accumulators.is_taking:
            return False
        if _clock() - self.confirmed_at >= _FRESH_S:
            self.confirmed_at = _clock()
            return loop_thread().call(_confirm(self.engine))
        return True

    def may_be_kept(self) -> bool:
        """Whether it has delivered everything, can go on, and is young."""
        return not len(self.producer) and self.engine.accumulators.is_taking and _clock() - self.made_at < _OLD_S


class KeptProducers:
    """The producers that a process keeps.

    Args:
        idle_s: seconds after which an unused one is closed.
        make: the class of producers.
    """

    def __init__(self, idle_s: float = _IDLE_S, make: type[Producer] = Producer) -> None:
        self._idle_s = idle_s
        self._make = make
        self._lock = threading.Lock()
        self._idle: dict[Key, list[_Kept]] = {}
        self._used: dict[Producer, _Kept] = {}
        self._closed = False
        _ALL.add(self)

    def take(self, properties: Mapping[str, Any]) -> Producer:
        """A producer with these properties, for the caller alone.

        One that was kept has its topics as brokers had them a second ago, or later.

        Raises:
            ConfigError: a property is unknown, malformed or contradicts another.
        """
        key = frozenset(properties.items())
        while (kept := self._next(key)) is not None:
            if kept.is_good():
                break
            kept.producer.close()
        else:
            kept = _Kept(key, self._make(properties))
        with self._lock:
            self._used[kept.producer] = kept
        return kept.producer

    def _next(self, key: Key) -> _Kept | None:
        """The one that was given back last."""
        with self._lock:
            kept = self._idle.get(key)
            return kept.pop() if kept else None

    def give_back(self, producer: Producer) -> None:
        """Keep a producer, if it has delivered all its records; close any other."""
        with self._lock:
            kept = self._used.pop(producer)
            keeps = not self._closed and kept.may_be_kept()
            if keeps:
                kept.idle_since = _clock()
                self._idle.setdefault(kept.key, []).append(kept)
        if not keeps:
            _close(producer)
        elif not kept.is_watched:
            kept.is_watched = True
            loop_thread().call_soon(self._watch, kept)

    def discard(self, producer: Producer) -> None:
        """Close a producer, and give up what it has not delivered."""
        with self._lock:
            del self._used[producer]
        _close(producer)

    def _watch(self, kept: _Kept) -> None:
        """On the loop: close a producer that was not used for long, or look again when it may be so."""
        with self._lock:
            idle = self._idle.get(kept.key, [])
            left_s = kept.idle_since + self._idle_s - _clock()
            kept.is_watched = kept in idle and left_s > 0
            if kept.is_watched:
                asyncio.get_running_loop().call_later(left_s, self._watch, kept)
            elif kept in idle:
                idle.remove(kept)
                kept.engine.refuse()
                kept.engine.abandon()

    def close(self) -> None:
        """Close those that are not in use, and those that are given back from now on."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, {}, True
        for kept in [kept for group in idle.values() for kept in group]:
            kept.producer.close()

    def after_fork(self) -> None:
        """In a forked child: another thread may have held the lock, and the producers are the parent's."""
        self._lock = threading.Lock()
        self._idle, self._used = {}, {}


def _close(producer: Producer) -> None:
    if not calls_of(producer).engine.closed:
        producer.purge()
    producer.close()


async def _confirm(engine: ProducerEngine) -> bool:
    """Ask brokers for a producer's topics; whether they are the same, with no fewer partitions."""
    client = engine.client
    before = client.metadata.cluster.topics
    client.metadata.refresh(time.monotonic())
    client.wake()
    try:
        now = await client.wait_for_metadata(lambda cluster: cluster.topics is not before, _ANSWER_S)
    except KafkaException:
        return False
    return all(_is_same(before.get(topic), now.topics.get(topic)) for topic in engine.accumulators.all)


def _is_same(before: TopicInfo | None, now: TopicInfo | None) -> bool:
    if before is None or now is None or now.error is not None:
        return False
    return before.topic_id == now.topic_id and len(before.partitions) <= len(now.partitions)


_ALL: weakref.WeakSet[KeptProducers] = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(_ALL):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
