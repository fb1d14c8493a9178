"""An HTTP server for tests of registry clients: it answers as the test says, and keeps what it was asked."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

CUT = "close the connection in the middle of the answer"
CLOSE = "close the connection instead of an answer"


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    query: dict[str, list[str]]
    body: Any
    headers: dict[str, str]


class Said(NamedTuple):
    """One answer: JSON, or bytes as they are; after `until`, where it is given."""

    body: Any = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    until: threading.Event | None = None


Script = Callable[[Asked], Any]


class ScriptedRegistry:
    """Answers from a list, then by a function; all requests are kept in `asked`.

    What may be answered: a `Said`, JSON for 200, `CUT` or `CLOSE`.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.next: deque[Any] = deque()
        self.otherwise: Script = lambda asked: Said({"error_code": 404, "message": "HTTP 404 Not Found"}, 404)
        self.connections = 0
        self.came = threading.Semaphore(0)
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.002,), daemon=True)
        self._thread.start()

    def answers(self, *answers: Any) -> None:
        """What the next requests get."""
        self.next.extend(answers)

    def answer(self, asked: Asked) -> Said | str:
        self.asked.append(asked)
        self.came.release()
        found = self.next.popleft() if self.next else self.otherwise(asked)
        return found if isinstance(found, Said | str) else Said(found)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no error of the test."""


def _handler_of(registry: ScriptedRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            registry.connections += 1

        def handle_any(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            text = self.rfile.read(size)
            where = urlsplit(self.path)
            try:
                body = json.loads(text) if text else None
            except ValueError:
                body = text.decode()
            said = registry.answer(Asked(self.command, where.path, parse_qs(where.query, keep_blank_values=True), body,
                                         {name.lower(): value for name, value in self.headers.items()}))
            self.say(said)

        def say(self, said: Said | str) -> None:
            if isinstance(said, str):
                if said == CUT:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                    self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if said.until is not None:
                said.until.wait(30)
            body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
            if said.status == 204:
                body = b""
            self.send_response(said.status)
            for name, value in said.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    for method in ("GET", "POST", "PUT", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_any)
    return Handler


@contextmanager
def scripted_registry(tls: ssl.SSLContext | None = None) -> Iterator[ScriptedRegistry]:
    """A server, for as long as the block lasts."""
    registry = ScriptedRegistry(tls)
    try:
        yield registry
    finally:
        registry.close()
