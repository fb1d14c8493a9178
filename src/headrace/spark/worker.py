"""Spark's Python workers, made ready for many short tasks (decision 0015).

Spark hands a task to its worker in two pieces: what to do, then the rows. It leaves Nagle's algorithm on, so the second
piece waits until the kernel of the worker has acknowledged the first; and that kernel delays this for 40 ms, in the
hope of an answer that could carry it. And behind each task the worker looks through all of its objects for garbage, for
50 ms of CPU. A micro-batch of a few rows takes no longer than that for all the rest.

This module knows neither Kafka nor pyspark's classes, and does nothing in other processes.
"""

from __future__ import annotations

import gc
import socket
import sys
from types import FrameType

__all__ = ["acknowledge_at_once", "spare_collections"]

_TIMES = 2
"""What the first task imports while it runs, as Arrow does pandas if it is there, is there when the second begins."""
_spared = 0


def acknowledge_at_once() -> bool:
    """Acknowledge what Spark has sent so far.

    Returns:
        True in a worker that Spark has connected to by TCP.
    """
    connection = _connection(sys._getframe())
    option = getattr(socket, "TCP_QUICKACK", None)
    if connection is None or option is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False  # a Unix socket needs no acknowledgements
    try:
        connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    except OSError:
        return False
    return True


def spare_collections() -> bool:
    """Keep the collector from looking at what is there by now: modules, above all. To be called when they are imported.

    It happens at the beginning of the first two tasks of a process only: Spark has just collected what there was, and
    garbage of the tasks that follow is none of it.

    Returns:
        True in a worker.
    """
    global _spared
    if _connection(sys._getframe()) is None:
        return False
    if _spared < _TIMES:
        _spared += 1
        gc.freeze()
    return True


def _connection(frame: FrameType | None) -> socket.socket | None:
    """The worker's connection to Spark: an argument of `pyspark.daemon.worker`, which calls all that runs there."""
    while frame is not None:
        if frame.f_code.co_name == "worker" and frame.f_globals.get("__name__") in ("pyspark.daemon", "__main__"):
            found = frame.f_locals.get("sock")
            return found if isinstance(found, socket.socket) else None
        frame = frame.f_back
    return None
