"""Measures memory in a child process: what other threads of this one take meanwhile would be counted as well."""

from __future__ import annotations

import os
import traceback
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from multiprocessing import Pipe


def peak_bytes(action: Callable[[], object]) -> int:
    """The most that Python's allocators hold while something is done, in bytes.

    Args:
        action: done in a forked child, which has this thread alone: it can call no client.

    Raises:
        AssertionError: it raised; the text is the traceback.
    """
    ours, theirs = Pipe()
    child = os.fork()
    if child == 0:
        try:
            tracemalloc.start()
            try:
                action()
                theirs.send(tracemalloc.get_traced_memory()[1])
            except BaseException:
                theirs.send(traceback.format_exc())
        finally:
            os._exit(0)
    theirs.close()
    with closing(ours):
        try:
            told = ours.recv()
        except EOFError:
            told = "the child process ended"
        os.waitpid(child, 0)
    assert isinstance(told, int), told
    return told
