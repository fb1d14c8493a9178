"""Calls that try until their time is up, on machines that stop now and then for longer than that time."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace.errors import KafkaError, KafkaException

TIMES_S = (0.5, 2.0, 8.0, 32.0)


async def failure_given_time(call: Callable[[float], Awaitable[Any]]) -> KafkaError:
    """The reason for which a call fails that has as much time as it needs to find that reason out.

    Args:
        call: gets its time in seconds.
    """
    for time_s in TIMES_S:
        with pytest.raises(KafkaException) as failed:
            await call(time_s)
        error: KafkaError = failed.value.error
        if error != KafkaError._TIMED_OUT:
            break
    return error
