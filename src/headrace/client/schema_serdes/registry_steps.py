"""How a serializer asks its registry: a rule, which is a generator, yields calls and gets their results.

So each rule is written once; a blocking serializer makes the calls, one for asyncio awaits what they return (as
decision 0017 has it for waiting). It must not know what is asked. Read next: `client.schema_serdes.schema_serializers`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeVar

__all__ = ["Steps", "run", "run_async"]

T = TypeVar("T")

Steps = Generator[Callable[[], Any], Any, T]
"""A rule: it yields functions without arguments, is given what they return, and returns a `T`."""


def run(steps: Steps[T]) -> T:
    """Run a rule to its end.

    Args:
        steps: the rule.

    Returns:
        What it returns.

    Raises:
        Exception: what the rule raises, or what it lets pass of what a call raises.
    """
    try:
        call = next(steps)
        while True:
            try:
                result = call()
            except BaseException as error:  # the rule cleans up, whatever it was
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as ended:
        value: T = ended.value
        return value


async def run_async(steps: Steps[T]) -> T:
    """As `run`; what a call returns is awaited, if it can be."""
    try:
        call = next(steps)
        while True:
            try:
                result = call()
                if inspect.isawaitable(result):
                    result = await result
            except BaseException as error:  # the rule cleans up, whatever it was
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as ended:
        value: T = ended.value
        return value
