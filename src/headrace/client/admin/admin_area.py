"""What the calls of all areas have in common: arguments that many take, times, and results by key.

A call that concerns several things gives `ByKey`, of which a face makes a dict of futures; one that has a single result
gives a coroutine. What is wrong with the arguments is raised before there is either. It must not know the faces.
Read next: `client.admin.topic_calls` for an area, `client.admin.admin_engine`, which does the work.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping
from numbers import Real
from typing import Any, Generic, TypeVar

from headrace.arguments import instance_of, list_of
from headrace.client.admin.admin_engine import AdminEngine
from headrace.client.core import ClientCore
from headrace.client.result_future import Ends, end_each
from headrace.client.waits import seconds
from headrace.errors import KafkaError, KafkaException
from headrace.types.records import TopicPartition

__all__ = ["AdminArea", "ByKey", "Single", "check_numbers", "flag", "partitions_of", "seconds_of", "texts_of",
           "value_of", "without_duplicates"]

_K = TypeVar("_K")
_V = TypeVar("_V")
_Results = Mapping[_K, _V | KafkaError]
Single = Coroutine[Any, Any, _V]
"""Work that has one result."""
_LONGEST_S = 3600
_NOT_MENTIONED = KafkaError(KafkaError._FAIL, "the broker's answer does not mention it")


class ByKey(Generic[_K, _V]):
    """Work that has a result for each of several things.

    Args:
        keys: the things.
        work: gives results by key; a `KafkaError` as a result is a failure. It is not called without keys. Of several,
            each gives the results of some keys, and waits for no other.
    """

    def __init__(self, keys: Iterable[_K], *work: Callable[[], Awaitable[_Results[_K, _V]]]) -> None:
        self.keys = list(keys)
        self._work = work if self.keys else ()

    async def results(self) -> _Results[_K, _V]:
        """Do the work, all of it."""
        parts = await asyncio.gather(*(work() for work in self._work))
        return {key: result for part in parts for key, result in part.items()}

    async def settle(self, futures: Mapping[_K, Any], end: Callable[[Ends], None] = end_each) -> None:
        """Do the work and hand each result, or its error, to the future of its key as soon as it is there.

        Args:
            futures: asyncio's or concurrent.futures' futures by key.
            end: hands all of them over.
        """
        left = dict(futures)

        async def settle_some(work: Callable[[], Awaitable[_Results[_K, _V]]]) -> None:
            try:
                results: Mapping[_K, Any] = await work()
            except Exception as error:
                results = dict.fromkeys(left, error)
            end([(left.pop(key), results[key]) for key in [*left] if key in results])

        await asyncio.gather(*map(settle_some, self._work))
        end([(future, _NOT_MENTIONED) for future in left.values()])


class AdminArea:
    """A family of calls.

    `request_timeout` bounds the whole call, and is socket.timeout.ms when it is None; `operation_timeout`, which is how
    long the brokers may take to carry it out, is as long when it is None.

    Args:
        core: metadata and connections.
    """

    def __init__(self, core: ClientCore) -> None:
        self.core = core
        self.engine = AdminEngine(core)

    def limit(self, request_timeout: float | None) -> float:
        """Seconds that a call may take.

        Raises:
            ClientClosedError: the client is closed.
            TypeError: not a number.
            ValueError: less than 0, or more than an hour.
        """
        self.core.check_open()
        if request_timeout is None:
            return self.core.config.seconds("socket.timeout.ms")
        return seconds_of(request_timeout, "request_timeout")

    def limit_of(self, timeout: float | None) -> float:
        """As `limit`, of a `timeout` without a bound; one that is negative, or None, stands for the client's own."""
        wanted_s, own_s = seconds(timeout), self.limit(None)
        return own_s if wanted_s == math.inf else wanted_s

    def times(self, request_timeout: float | None, operation_timeout: float | None) -> tuple[float, float]:
        """Seconds that a call may take, and its work on the brokers; as `limit`."""
        limit_s = self.limit(request_timeout)
        return limit_s, limit_s if operation_timeout is None else seconds_of(operation_timeout, "operation_timeout")


def seconds_of(given: Any, name: str, longest_s: int = _LONGEST_S) -> float:
    """An argument in seconds.

    Raises:
        TypeError: not a number.
        ValueError: less than 0, or more than the longest.
    """
    if not isinstance(given, Real):
        raise TypeError(f"{name} must be a number of seconds, not {type(given).__name__}")
    seconds = float(given)
    if not 0 <= seconds <= longest_s:
        raise ValueError(f"{name} is {given}: expected 0 to {longest_s} seconds")
    return seconds


def value_of(found: _Results[_K, _V], key: _K) -> _V:
    """The result of one of several things.

    Raises:
        KafkaException: it is an error, or there is none.
    """
    value = found.get(key, _NOT_MENTIONED)
    if isinstance(value, KafkaError):
        raise KafkaException(value)
    return value


def flag(given: bool, name: str) -> bool:
    """An argument that says yes or no.

    Raises:
        TypeError: it is not bool: what is not empty would be taken for yes.
    """
    return instance_of(bool, given, name)


def texts_of(given: Any, name: str, *, filled: bool = True) -> list[str]:
    """An argument that is a list of names.

    Raises:
        ArgumentError: it is none.
        ValueError: it is empty.
    """
    return list_of(str, given, name, filled=filled)


def partitions_of(given: Any, name: str, *, filled: bool = False) -> list[TopicPartition]:
    """An argument that is a list of partitions.

    Raises:
        ArgumentError: it is none.
        ValueError: it is empty and must not be, or one has no number.
    """
    found = list_of(TopicPartition, given, name, filled=filled)
    check_numbers(found)
    return found


def without_duplicates(given: Iterable[Hashable], things: str) -> None:
    """Check that nothing is asked for twice. The work begins with it: in confluent_kafka, too, it is futures that fail.

    Raises:
        KafkaException: something is.
    """
    for each, times in Counter(given).items():
        if times > 1:
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, f"Duplicate {things} not allowed: {each}"))


def check_numbers(partitions: Iterable[TopicPartition], *, named: bool = False) -> None:
    """Check that partitions are numbered and, with `named`, that their topics have a name.

    Raises:
        ValueError: one is not.
    """
    for tp in partitions:
        if named and not tp.topic:
            raise ValueError("a partition has no topic: its name is empty")
        if tp.partition < 0:
            raise ValueError(f"{tp.topic}[{tp.partition}] is no partition: they are numbered from 0")
