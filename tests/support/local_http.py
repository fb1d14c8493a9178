"""HTTP servers of a test's own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    """Writes no line for each request."""

    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def serving(server: HTTPServer) -> Iterator[int]:
    """Have a server answer, from a thread of its own, and close it in the end; gives its port."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    with server:
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
