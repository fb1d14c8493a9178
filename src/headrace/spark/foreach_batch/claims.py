"""Who may write, and what they have written: tasks ask the driver before they write, and tell it when they are done.

Spark may run a task twice, one attempt behind the other or beside it, and cannot tell a task so. Two attempts that
wrote into one transaction would share sequences, and a broker would take the records of one for those of the other.
So each piece of work is given to the first attempt that asks, and to no other; and a commit needs the report of each
piece that was given. Tasks find the driver by its address, and show a token that only they know.

This module knows neither Spark nor Kafka. Read next: `headrace.spark.foreach_batch.transaction_sink`.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import socketserver
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from headrace.errors import KafkaError, KafkaException
from headrace.interpreter import SteadyLock
from headrace.spark.plan import Tp

__all__ = ["Claims", "ClaimsServer"]

_TIMEOUT_S: Final = 30.0
_LONGEST: Final = 16 * 1024 * 1024
"""Bytes of a question: a report names each partition that a task has written."""
_GRANTED, _TAKEN, _UNKNOWN = b"granted\n", b"taken\n", b"unknown\n"


@dataclass(frozen=True, slots=True)
class Claims:
    """Where to ask. Plain values: it travels to tasks.

    Attributes:
        host: of the driver.
        port: of the server.
        token: shows that a task belongs to the transaction.
    """

    host: str
    port: int
    token: str = field(repr=False)

    def take(self, write: int, task: int, attempt: int) -> None:
        """Take one piece of work; an attempt that has it gets it again.

        Args:
            write: which write of the transaction.
            task: number of the task in its stage.
            attempt: id of the attempt, unique in the application.

        Raises:
            KafkaException: another attempt has it, or the driver's transaction is over.
        """
        answer = self._ask(task, {"work": [write, task], "attempt": attempt})
        if answer == _TAKEN:
            raise _refused(task, "another attempt may have written some of its rows. The micro-batch is written again "
                                 "as a whole, in a new transaction")
        if answer != _GRANTED:
            raise _refused(task, "its transaction is over")

    def report(self, write: int, task: int, attempt: int, written: Mapping[Tp, int]) -> None:
        """Tell the driver that a piece of work is done.

        Args:
            write: which write of the transaction.
            task: number of the task in its stage.
            attempt: id of the attempt, which has taken the work.
            written: records by topic and partition.

        Raises:
            KafkaException: the attempt has not taken this work, or the driver's transaction is over.
        """
        rows = [[*partition, count] for partition, count in written.items()]
        if self._ask(task, {"work": [write, task], "attempt": attempt, "written": rows}) != _GRANTED:
            raise _refused(task, "its transaction is over")

    def _ask(self, task: int, question: dict[str, Any]) -> bytes:
        line = json.dumps({"token": self.token, **question}).encode() + b"\n"
        try:
            with socket.create_connection((self.host, self.port), _TIMEOUT_S) as connection:
                connection.sendall(line)
                return connection.makefile("rb").readline(_LONGEST)
        except OSError as error:
            raise _refused(task, f"the driver does not answer at {self.host}:{self.port} ({error})") from error


def _refused(task: int, why: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._STATE, f"task {task} may not write: {why}"))


class ClaimsServer:
    """Answers the tasks of one transaction; a context manager that listens until it is left.

    Args:
        host: the driver's address, as executors reach it.
        bind: the address to listen on; `host` if None.
    """

    def __init__(self, host: str, bind: str | None = None) -> None:
        self._host, self._bind = host, bind or host
        self._token = secrets.token_urlsafe(24)
        self._owners: dict[tuple[int, int], int] = {}
        self._reports: dict[tuple[int, int], dict[Tp, int]] = {}
        self._lock = SteadyLock()
        self._over = False

    def __enter__(self) -> Self:
        family, _, _, _, address = socket.getaddrinfo(self._bind, 0, type=socket.SOCK_STREAM)[0]
        kind = type("_Server", (_Server,), {"address_family": family})
        self._server: socketserver.ThreadingTCPServer = kind(address, _handler(self))
        self._port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._serve, name="headrace claims", daemon=True)
        self._thread.start()
        return self

    def _serve(self) -> None:
        while not self._over:
            self._server.handle_request()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over = True
        with suppress(OSError), socket.create_connection((self._bind, self._port), _TIMEOUT_S):
            pass  # it waits for a connection
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port

    @property
    def claims(self) -> Claims:
        """What tasks need to ask."""
        return Claims(self._host, self._port, self._token)

    def reports(self, write: int) -> list[dict[Tp, int]]:
        """What each task of a write has written, once its job has succeeded.

        Raises:
            KafkaException: a task has taken its work, and not said what became of it.
        """
        with self._lock:
            silent = sorted(work[1] for work in self._owners.keys() - self._reports.keys() if work[0] == write)
            if silent:
                raise KafkaException(KafkaError(KafkaError._STATE, f"tasks {silent} have not reported what they wrote"))
            return [report for work, report in self._reports.items() if work[0] == write]

    def answer(self, line: bytes) -> bytes:
        """The answer to one question."""
        try:
            asked: dict[str, Any] = json.loads(line)
            token, (write, task), attempt = str(asked["token"]), asked["work"], int(asked["attempt"])
            written = asked.get("written")
            report = {(str(topic), int(number)): int(count) for topic, number, count in written or ()}
        except (ValueError, TypeError, LookupError, AttributeError):
            return _UNKNOWN
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return _UNKNOWN
        work = (int(write), int(task))
        with self._lock:
            if written is None:
                return _GRANTED if self._owners.setdefault(work, attempt) == attempt else _TAKEN
            if self._owners.get(work) != attempt:
                return _TAKEN
            self._reports[work] = report
            return _GRANTED


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512  # the tasks of a stage may begin at once


def _handler(claims: ClaimsServer) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        timeout = _TIMEOUT_S

        def handle(self) -> None:
            with suppress(OSError):  # the task is gone
                self.wfile.write(claims.answer(self.rfile.readline(_LONGEST)))

    return Handler
