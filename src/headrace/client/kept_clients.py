"""Clients that stay open between uses, in processes that do many short tasks one after the other (decision 0014).

A taken client belongs to one task until it is given back. What a client is comes from a subclass. It must not know what
the tasks are: Spark's are in `headrace.spark`. Read next: `client.producer.kept_producers`.
"""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

from headrace.interpreter import SteadyLock
from headrace.net.thread import loop_thread

__all__ = ["KeptClients"]

_IDLE_S: Final = 60.0
"""Spark ends workers that did nothing for a minute."""
_OLD_S: Final = 300.0
"""A client reads files of certificates and keys when it is made."""
_FRESH_S: Final = 1.0
"""Age up to which the brokers' answer about topics is trusted."""
_clock = time.monotonic

Key = frozenset[tuple[str, Any]]
C = TypeVar("C")


class _Kept(Generic[C]):
    """One client, in use or not.

    Attributes:
        key: the properties that it was made with.
        made_at: monotonic seconds.
        confirmed_at: when brokers were last asked for its topics.
        idle_since: when it was given back.
        is_watched: a timer will look at it.
    """

    __slots__ = ("client", "confirmed_at", "idle_since", "is_watched", "key", "made_at")

    def __init__(self, key: Key, client: C) -> None:
        self.key = key
        self.client = client
        self.made_at = self.confirmed_at = self.idle_since = _clock()
        self.is_watched = False


class KeptClients(ABC, Generic[C]):
    """The clients of one kind that a process keeps.

    Args:
        idle_s: seconds after which an unused one is closed.
    """

    def __init__(self, idle_s: float = _IDLE_S) -> None:
        self._idle_s = idle_s
        self._lock = SteadyLock()
        self._idle: dict[Key, list[_Kept[C]]] = {}
        self._used: dict[C, _Kept[C]] = {}
        self._closed = False
        _ALL.add(self)

    @abstractmethod
    def make(self, properties: Mapping[str, Any]) -> C:
        """A new client."""

    @abstractmethod
    def is_usable(self, client: C) -> bool:
        """Whether nothing has happened to a client that forbids its next use."""

    @abstractmethod
    def has_finished(self, client: C) -> bool:
        """Whether a client has done all that it was given."""

    @abstractmethod
    def confirm(self, client: C) -> bool:
        """Ask brokers whether what a client knows of its topics still holds."""

    @abstractmethod
    def end(self, client: C) -> None:
        """Close a client, and give up what it has not done."""

    @abstractmethod
    def abandon(self, client: C) -> None:
        """Close a client without waiting, and give up what it has not done. On the loop."""

    def take(self, properties: Mapping[str, Any]) -> C:
        """A client with these properties, for the caller alone.

        One that was kept has its topics as brokers had them a second ago, or later.

        Raises:
            ConfigError: a property is unknown, malformed or contradicts another.
        """
        key = frozenset(properties.items())
        while (kept := self._next(key)) is not None:
            if self._is_good(kept):
                break
            self.end(kept.client)
        else:
            kept = _Kept(key, self.make(properties))
        with self._lock:
            self._used[kept.client] = kept
        return kept.client

    def _next(self, key: Key) -> _Kept[C] | None:
        """The one that was given back last."""
        with self._lock:
            kept = self._idle.get(key)
            return kept.pop() if kept else None

    def _is_good(self, kept: _Kept[C]) -> bool:
        """Whether it may be used again; asks brokers unless they confirmed it a moment ago."""
        if not self.is_usable(kept.client):
            return False
        if _clock() - kept.confirmed_at >= _FRESH_S:
            kept.confirmed_at = _clock()
            return self.confirm(kept.client)
        return True

    def give_back(self, client: C) -> None:
        """Keep a client, if it has done all that it was given, can go on, and is young; close any other."""
        with self._lock:
            kept = self._used.pop(client)
            keeps = (not self._closed and self.has_finished(client) and self.is_usable(client)
                     and _clock() - kept.made_at < _OLD_S)
            if keeps:
                kept.idle_since = _clock()
                self._idle.setdefault(kept.key, []).append(kept)
        if not keeps:
            self._let_go(client)
        elif not kept.is_watched:
            kept.is_watched = True
            loop_thread().call_soon(self._watch, kept)

    def discard(self, client: C) -> None:
        """Close a client, and give up what it has not done."""
        with self._lock:
            del self._used[client]
        self._let_go(client)

    def _let_go(self, client: C) -> None:
        """Close a client; without waiting on the loop, where the collector may end a generator that has one."""
        if loop_thread().is_here():
            self.abandon(client)
        else:
            self.end(client)

    def _watch(self, kept: _Kept[C]) -> None:
        """On the loop: close a client that was not used for long, or look again when it may be so."""
        with self._lock:
            idle = self._idle.get(kept.key, [])
            left_s = kept.idle_since + self._idle_s - _clock()
            kept.is_watched = kept in idle and left_s > 0
            if kept.is_watched:
                asyncio.get_running_loop().call_later(left_s, self._watch, kept)
            elif kept in idle:
                idle.remove(kept)
                self.abandon(kept.client)

    def close(self) -> None:
        """Close those that are not in use, and those that are given back from now on."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, {}, True
        for kept in [kept for group in idle.values() for kept in group]:
            self.end(kept.client)

    def after_fork(self) -> None:
        """In a forked child: another thread may have held the lock, and the clients are the parent's."""
        self._lock = SteadyLock()
        self._idle, self._used = {}, {}


_ALL: weakref.WeakSet[KeptClients[Any]] = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(_ALL):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
