"""Loaded by each Python process of a query under test, which has this folder on its path: stops it where it is told to.

A point is a place in the sink. The campaign arms one by a file; the first process that comes there takes the file away,
waits for the campaign's word, and goes on or raises. Points:

    begun      the driver has begun the micro-batch, and no task runs yet
    task       a task has handed over its first rows, and asks for more
    commit     the driver has been told that all rows are written
    marked     the marker is in the transaction, and EndTxn is next
    committed  the transaction is committed, and Spark does not know yet

Nothing of it is in the package: functions and methods are wrapped when their modules are imported.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

_DIRECTORY = os.environ.get("HEADRACE_ONCE_POINTS", "")
_MUTATION = os.environ.get("HEADRACE_ONCE_MUTATION", "")
"""A rule of the protocol that is left out, so that the campaign shows that it sees what comes of that."""
_PATIENCE_S = 900.0


def reach(point: str) -> None:
    """Stay here until the campaign says how to go on, if the point is armed."""
    try:
        os.rename(f"{_DIRECTORY}/armed-{point}", f"{_DIRECTORY}/caught-{point}-{os.getpid()}")
    except FileNotFoundError:
        return
    give_up_at = time.monotonic() + _PATIENCE_S
    word = f"{_DIRECTORY}/go-{point}"
    while not os.path.exists(word):
        if time.monotonic() > give_up_at:
            os._exit(3)
        time.sleep(0.01)
    with open(word) as file:
        how = file.read()
    os.unlink(word)
    if how == "raise":
        raise RuntimeError(f"injected at {point}")


def _watch_sink(module: ModuleType) -> None:
    writer: Any = module.StreamWriter
    write, commit = writer.write, writer.commit

    def watched_write(self: Any, iterator: Iterator[Any]) -> Any:
        if self.options.exactly_once:
            return write(self, iterator)
        _log_task()
        return write(self, _stopping(iterator))

    def watched_commit(self: Any, messages: Any, batchId: int) -> None:  # noqa: N803 - Spark's name
        reach("commit")
        commit(self, messages, batchId)
        reach("committed")

    writer.write, writer.commit = watched_write, watched_commit


def _watch_driver(module: Any) -> None:
    _wrap(module, "begin", behind="begun")
    _wrap(module, "mark", before="commit")
    _wrap(module, "end", before="marked", behind="committed")


def _wrap(module: Any, name: str, *, before: str = "", behind: str = "") -> None:
    original = getattr(module, name)

    def wrapped(*arguments: Any) -> Any:
        if before:
            reach(before)
        result = original(*arguments)
        if behind:
            reach(behind)
        return result

    setattr(module, name, wrapped)


def _watch_task(module: Any) -> None:
    """A task of an exactly-once write hands over its rows here."""
    writer: Any = module.JoinedColumnWriter
    append = writer.append

    def watched(self: Any, *arguments: Any) -> Any:
        if not hasattr(self, "_times"):
            self._times = 0
            _log_task()
        self._times += 1
        if self._times > 1:
            reach("task")
        return append(self, *arguments)

    writer.append = watched
    if _MUTATION == "no marker":
        module.verdict = lambda last, wanted: module.BatchVerdict.WRITE


def _stopping(rows: Iterator[Any]) -> Iterator[Any]:
    for number, batch in enumerate(rows):
        if number:
            reach("task")
        yield batch


def _log_task() -> None:
    from pyspark import TaskContext

    import headrace

    task = TaskContext.get()
    if task is not None:
        with open(f"{_DIRECTORY}/tasks", "a") as log:
            log.write(f"{os.environ['HEADRACE_ONCE_RUN']} {task.stageId()} {task.partitionId()} "
                      f"{task.attemptNumber()} {os.path.dirname(headrace.__file__)}\n")


_WATCHED: dict[str, Callable[[ModuleType], None]] = {
    "headrace.spark.sink": _watch_sink,
    "headrace.spark.exactly_once.driver_transaction": _watch_driver,
    "headrace.spark.exactly_once.task_transaction": _watch_task,
}


class _Watching(importlib.abc.MetaPathFinder):
    """Finds a watched module as always, and wraps what is in it when it has been executed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        watch = _WATCHED.pop(name, None)
        if watch is None:
            return None
        spec = importlib.util.find_spec(name)
        assert spec is not None
        loader: Any = spec.loader
        execute = loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            watch(module)

        loader.exec_module = executed
        return spec


if _DIRECTORY:
    sys.meta_path.insert(0, _Watching())
