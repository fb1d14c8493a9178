"""How commands end: exit statuses, and the one line that says why.

`docs/reference/command-line.md` shows the table. Read next: `headrace.cli`, which runs every command under `guarded`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from headrace.error_codes import lacking
from headrace.errors import ConfigError, DependencyError, KafkaError, KafkaException, SchemaRegistryError

__all__ = ["CONFLICT", "DONE", "FAILED", "INTERRUPTED", "MEANINGS", "NOT_ALLOWED", "NOT_FOUND", "TERMINATED",
           "UNREACHABLE", "USAGE", "RefusedError", "complain", "guarded", "leave_echo", "meant", "needing", "status_of",
           "text_of", "text_with_right"]

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
NOT_ALLOWED: Final = 4
NOT_FOUND: Final = 5
CONFLICT: Final = 6
INTERRUPTED: Final = 130
TERMINATED: Final = 143

MEANINGS: Final = {
    DONE: "done; also when who reads standard output has seen enough and closed it",
    FAILED: "failed, wholly or in part, for a reason without a number of its own",
    USAGE: "wrong usage: an option, a property, a file of properties or a profile; or a package is missing",
    UNREACHABLE: "the cluster or the registry cannot be reached, or did not answer in time",
    NOT_ALLOWED: "not authenticated, or not authorised",
    NOT_FOUND: "a topic, partition, group, broker, subject or anything else that was named does not exist",
    CONFLICT: "it exists already, or is in use: a group has members, for example",
    INTERRUPTED: "stopped by Ctrl-C",
    TERMINATED: "stopped by SIGTERM",
}
"""Every exit status of `headrace`."""

_BY_CODE: Final = {
    **dict.fromkeys((
        KafkaError._TRANSPORT, KafkaError._RESOLVE, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT,
        KafkaError._SSL, KafkaError.REQUEST_TIMED_OUT, KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
    ), UNREACHABLE),
    **dict.fromkeys((
        KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaError.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ), NOT_ALLOWED),
    **dict.fromkeys((
        KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_GROUP,
        KafkaError._UNKNOWN_BROKER, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.GROUP_ID_NOT_FOUND, KafkaError.RESOURCE_NOT_FOUND, KafkaError.TRANSACTIONAL_ID_NOT_FOUND,
        KafkaError.BROKER_ID_NOT_REGISTERED, KafkaError.NO_REASSIGNMENT_IN_PROGRESS,
    ), NOT_FOUND),
    **dict.fromkeys((
        KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.NON_EMPTY_GROUP, KafkaError.GROUP_SUBSCRIBED_TO_TOPIC,
        KafkaError.DUPLICATE_RESOURCE, KafkaError.REASSIGNMENT_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID,
    ), CONFLICT),
    KafkaError._INVALID_ARG: USAGE,
}
_BY_HTTP_STATUS: Final = {-1: UNREACHABLE, 401: NOT_ALLOWED, 403: NOT_ALLOWED, 404: NOT_FOUND, 409: CONFLICT,
                          502: UNREACHABLE, 503: UNREACHABLE, 504: UNREACHABLE}


class RefusedError(Exception):
    """A command will not do that, or cannot: one line, and the exit status.

    Args:
        text: what is the matter, and what to do.
        status: of the process.
    """

    def __init__(self, text: str, status: int = USAGE) -> None:
        super().__init__(text)
        self.status = status


def status_of(error: BaseException) -> int:
    """The exit status that an error stands for."""
    if isinstance(error, RefusedError):
        return error.status
    if isinstance(error, (ConfigError, DependencyError)):
        return USAGE
    if isinstance(error, KafkaException):
        return _BY_CODE.get(error.error.code(), FAILED)
    if isinstance(error, SchemaRegistryError):
        return _BY_HTTP_STATUS.get(error.http_status_code, FAILED)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED


def text_of(error: BaseException) -> str:
    """An error as one line."""
    if isinstance(error, KafkaException):
        text = error.error.str()
    elif isinstance(error, SchemaRegistryError) and error.http_status_code < 0:
        text = error.error_message
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())


def complain(program: str, text: str) -> None:
    """One line on standard error."""
    print(f"{program}: {text}", file=sys.stderr, flush=True)


def text_with_right(error: KafkaError, right: str, topics: Collection[str]) -> str:
    """The text of an error, with the right on topics where that is what is missing."""
    if error != KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return error.str()
    names = " and ".join(f'"{name}"' for name in topics)
    return lacking(error.str(), f"{right} on topic {names}")


@contextmanager
def needing(right: str, topics: Collection[str]) -> Iterator[None]:
    """Have errors inside name the right on topics that is missing.

    Raises:
        KafkaException: the error from inside.
    """
    try:
        yield
    except KafkaException as failure:
        if failure.error != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise
        text = text_with_right(failure.error, right, topics)
        raise KafkaException(KafkaError(failure.error.code(), text)) from failure


def leave_echo() -> None:
    """Begin a line of one's own after Ctrl-C: a terminal has written ^C where it came."""
    if sys.stderr.isatty():
        print(file=sys.stderr)


def meant(given: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` with the nearest of some names, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(given, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


def guarded(program: str, work: Callable[[], int]) -> int:
    """Run a command: whatever ends it becomes one line on standard error and an exit status.

    Args:
        program: what the line begins with.
        work: the command; it gives its exit status.

    Returns:
        The exit status.
    """
    try:
        status = work()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Who reads has seen enough. Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt as interrupt:
        # It may have come between a call and the loop that was to begin it: that this never began is no news.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            interrupt.__traceback__ = interrupt.__context__ = None
        leave_echo()
        return INTERRUPTED
    except (RefusedError, KafkaException, DependencyError, SchemaRegistryError, OSError) as error:
        complain(program, text_of(error))
        return status_of(error)
