"""The same function over confluent_kafka and headrace: what it returns or raises, in a form that can be compared."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import confluent_kafka.aio
import confluent_kafka.error
import confluent_kafka.serialization
import pytest

import headrace
import headrace.admin
import headrace.aio
import headrace.error
import headrace.serialization

QUIET = logging.Logger("quiet", logging.CRITICAL)
BUILTIN = (TypeError, ValueError, BufferError, OverflowError, RuntimeError, NotImplementedError, AttributeError)


def outcome(function: Callable[[ModuleType], Any], kafka: ModuleType) -> Any:
    """What a function returns for a package; or the error that it raises: its code and flags, or its builtin class."""
    try:
        return function(kafka)
    except Exception as error:
        first = error.args[0] if error.args else None
        if isinstance(first, kafka.KafkaError) and not isinstance(error, (BufferError, RuntimeError, TypeError)):
            return ("KafkaException", first.code(), first.fatal(), first.txn_requires_abort())
        return next((kind.__name__ for kind in BUILTIN if isinstance(error, kind)), type(error).__name__)


def same(function: Callable[[ModuleType], Any], *, side_by_side: bool = False) -> Any:
    """Assert that both packages do the same; returns what they do.

    Args:
        function: called with a package.
        side_by_side: call it for both at the same time, where most of it is waiting. What differs is done once more,
            by one behind the other: time is no part of the comparison, and a machine may stop in the midst.
    """
    theirs = ours = None
    if side_by_side:
        with ThreadPoolExecutor(2) as pool:
            theirs, ours = pool.map(partial(outcome, function), (confluent_kafka, headrace))
    if ours != theirs or not side_by_side:
        theirs, ours = outcome(function, confluent_kafka), outcome(function, headrace)
    assert ours == theirs, f"ours: {ours}\ntheirs: {theirs}"
    return ours


def by_name(cases: Mapping[str, Any]) -> pytest.MarkDecorator:
    """The argument `case`, case by case."""
    return pytest.mark.parametrize("case", list(cases.values()), ids=list(cases))


def error_of(kafka: ModuleType, call: Callable[[], Any]) -> Any:
    """Class, code, name, cause and bases of what is raised."""
    try:
        return call()
    except kafka.KafkaException as error:
        first = error.args[0]
        told = (first.code(), first.str(), error.code, error.name) if isinstance(first, kafka.KafkaError) else first
        return type(error).__name__, told, type(getattr(error, "exception", None)).__name__
