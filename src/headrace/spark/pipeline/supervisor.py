"""The supervisor of a pipeline's queries: one that fails begins again where its checkpoint stands, after a while.

The wait is random, between nothing and a bound that doubles with each failure in a row, so that queries and pipelines
that failed together do not come back together. A mistake that no restart can mend ends the run at once.

This module knows no Spark: queries are what a function starts. Read next: `headrace.spark.pipeline.run`.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from headrace.errors import ConfigError, KafkaException, SchemaRegistryError
from headrace.spark.pipeline.declared import RestartRule
from headrace.values.value_format import malformed_remedy

__all__ = ["JavaEndedError", "NotNowError", "PipelineError", "Supervisor", "first_line"]

_VERDICTS: Final = (409, 422)
"""A registry that says so has looked at the schema, and will not have it."""
_LASTING: Final = re.compile(
    r"(headrace\.\S*)?((ConfigError|DataLossError|MissingJavaError|SerializationError)\b"
    rf"|SchemaRegistryError: .*\(HTTP status code ({'|'.join(map(str, _VERDICTS))}), )")
"""Errors that come again however often the query begins: it has the same rows and schemas then."""
_OTHER_QUERY: Final = re.compile(r"assertion failed: There are \[\d+\] sources in the checkpoint")
"""So Spark says that a checkpoint is of a query with more or fewer sources."""
_OTHER_RUN: Final = "[CONCURRENT_STREAM_LOG_UPDATE]"
"""So Spark says that it found notes in a checkpoint that are not its own."""
_OF_PY4J: Final = "An error occurred while calling "
_BEGINNING: Final = "Initializing"
"""So Spark's status messages begin until a query has its sources."""

_OF_OPTIONS: Final = malformed_remedy("value")
_OF_THE_FILE: Final = ('Set malformed of the source to "keep" to read such values as null, to "drop" to leave them '
                       'out, or to "dead-letter" to set the records aside')


class PipelineError(RuntimeError):
    """A query of the pipeline failed for good. One line; the whole story is in Spark's log."""


class JavaEndedError(PipelineError):
    """Spark's JVM is gone, and all queries with it."""


class NotNowError(RuntimeError):
    """A query cannot begin for now: what it reads first cannot be had. One line."""


@dataclass(slots=True)
class _Life:
    """What is known of one query: its failures in a row, and when it began or is to begin again."""

    began_s: float
    failures: int = 0
    due_s: float | None = None


class Supervisor:
    """Starts queries and those that failed again.

    Args:
        start: starts the query of a name.
        rule: how often, and when.
        tell: takes one line for people.
        clock: monotonic seconds.
        chance: a random number from 0 up to 1.

    Attributes:
        queries: the queries by name, as they were last started.
        restarts: how often each was started again after a failure.
    """

    def __init__(
        self, start: Callable[[str], Any], rule: RestartRule, tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random,
    ) -> None:
        self.queries: dict[str, Any] = {}
        self.restarts: dict[str, int] = {}
        self._start = start
        self._rule = rule
        self._tell = tell
        self._clock = clock
        self._chance = chance
        self._lives: dict[str, _Life] = {}
        self._begun_s = clock()
        self._working_s: float | None = None

    def begin(self, names: Iterable[str]) -> None:
        """Start the queries, or start anew those that were stopped; failures in a row stay counted.

        Raises:
            PipelineError: one cannot begin anew, and has failed as often as the rule allows. What the first beginning
                raises is not caught.
        """
        self._begun_s, self._working_s = self._clock(), None
        for name in names:
            life = self._lives.get(name)
            if life is None:
                self._lives[name] = _Life(self._clock())
                self.queries[name] = self._start(name)
            else:
                self._count_healthy(life)
                self._begin(name, life)

    def stop(self) -> None:
        """Stop all that run, the last one first."""
        for query in reversed(self.queries.values()):
            query.stop()

    @property
    def running(self) -> bool:
        """True while a query runs, and while one that failed waits for its restart, or to be seen to by `look`."""
        # In this order: one that fails between the two questions would be noticed by neither.
        return any(query.isActive for query in self.queries.values()) or any(
            life.due_s is not None or self._failure(name) for name, life in self._lives.items())

    @property
    def settled(self) -> bool:
        """True once the queries have worked for as long as they took to begin.

        Who stops them sooner to begin them anew, again and again, keeps them from their work.
        """
        now = self._clock()
        if any(life.due_s is not None for life in self._lives.values()):
            return False
        if self._working_s is None:
            if any(query.status["message"].startswith(_BEGINNING) for query in self.queries.values()):
                return False
            self._working_s = now
        return now - self._working_s >= self._working_s - self._begun_s

    def look(self, *, restart: bool = True) -> None:
        """See to each query: count its failure, and start it again when it is time.

        Args:
            restart: False when the run is to end: what fails now stays as it is.

        Raises:
            PipelineError: one failed as often as the rule allows, or in a way that no restart mends.
        """
        for name, life in self._lives.items():
            if life.due_s is None:
                failure = self._failure(name)
                if failure:
                    self._failed(name, life, failure, restart)
            elif restart and self._clock() >= life.due_s:
                self._restart(name, life)

    def _failure(self, name: str) -> str:
        query = self.queries[name]
        found = None if query.isActive else query.exception()
        return "" if found is None else first_line(found)

    def _failed(self, name: str, life: _Life, failure: str, restart: bool) -> None:
        self._count_healthy(life)
        life.failures += 1
        if _OTHER_QUERY.match(failure):
            raise PipelineError(f"sink {name} failed: its checkpoint is of a query that reads more or fewer sources: "
                                "give the sink another name, or name another checkpoint, and it begins anew "
                                f"({failure})")
        if failure.startswith(_OTHER_RUN):  # one that is about to end, as where runs are rolled over, is waited for
            failure = ("its checkpoint is used by another run at the same time: end one of the two, or let each name "
                       f"a checkpoint of its own ({failure})")
        if not restart or _LASTING.match(failure) or self._rule.attempts == 0:
            raise PipelineError(f"sink {name} failed: {failure}")
        if life.failures > self._rule.attempts:
            raise PipelineError(f"sink {name} failed {life.failures} times in a row, the last time: {failure}")
        # No shift overflows, and no wait, whatever the number of attempts.
        bound = min(self._rule.longest_s, self._rule.first_s * 2.0 ** min(life.failures - 1, 60))
        wait_s = self._chance() * bound
        life.due_s = self._clock() + wait_s
        self._tell(f"sink {name} failed: {failure}; restart {life.failures} of {self._rule.attempts} in {wait_s:.1f} s")

    def _restart(self, name: str, life: _Life) -> None:
        if self._begin(name, life):
            self.restarts[name] = self.restarts.get(name, 0) + 1
            self._tell(f"sink {name} runs again")

    def _begin(self, name: str, life: _Life) -> bool:
        """Start a query anew; one that cannot begin for now has failed once more."""
        life.began_s, life.due_s = self._clock(), None
        try:
            self.queries[name] = self._start(name)
        except ConfigError as error:  # it comes again however often the query begins
            raise PipelineError(str(error)) from None
        except KafkaException as error:
            failure = error.error.str()
        except SchemaRegistryError as error:
            failure = error.error_message
            if error.http_status_code in _VERDICTS:
                raise PipelineError(f"sink {name} failed: {failure}") from None
        except NotNowError as error:
            failure = str(error)
        else:
            return True
        self._failed(name, life, failure, restart=True)
        return False

    def _count_healthy(self, life: _Life) -> None:
        if life.due_s is None and self._clock() - life.began_s >= self._rule.healthy_s:
            life.failures = 0


def first_line(error: Any) -> str:
    """The line that explains, in words for who has the pipeline's file.

    Of a failed Python data source it is the error itself, not the Java frames round it.
    """
    # Of a Java error Py4J says first which call it came of, and opens the second line, Java's own, with a colon.
    said = (line.strip().removeprefix(": ") for line in str(error).splitlines())
    lines = [line for line in said if line and not line.startswith(_OF_PY4J)]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)(: |$)", line) and "org.apache." not in line]
    line = (errors or lines or [type(error).__name__])[-1 if errors else 0]
    return line.replace(_OF_OPTIONS, _OF_THE_FILE)
