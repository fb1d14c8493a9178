"""An HTTPS server that makes tokens out for the listener OIDC, as an identity provider does (RFC 6749, 4.4).

It knows no client: everybody that asks is alice, for a minute. Read next: `tools.kafka.security`.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from tools.kafka.security import ISSUER, Certificates, Issuer

TOKEN_LIFE_S: Final = 60


class TokenEndpoint:
    """Serves from the moment it is made, in a thread of its own, until `close`.

    Args:
        issuer: who signs.
        certificates: its certificate is the brokers'.

    Attributes:
        url: where it is asked for tokens.
        asked: the body of each request.
    """

    def __init__(self, issuer: Issuer, certificates: Certificates) -> None:
        self.asked: list[str] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.broker_chain, certificates.broker_key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(issuer, context, self.asked))
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/token"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(issuer: Issuer, context: ssl.SSLContext, asked: list[str]) -> type[BaseHTTPRequestHandler]:
    class Endpoint(BaseHTTPRequestHandler):
        timeout = 10  # a client that does not speak must not keep its thread for ever

        def setup(self) -> None:
            # Here and not at the listening socket: a client that is slow with its handshake keeps nobody waiting.
            self.request.settimeout(self.timeout)
            self.request = context.wrap_socket(self.request, server_side=True)
            super().setup()

        def finish(self) -> None:
            super().finish()
            self.request.close()

        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            now = time.time()
            claims = {"sub": "alice", "iss": ISSUER, "aud": "kafka", "scope": "x", "iat": now,
                      "exp": now + TOKEN_LIFE_S}
            body = json.dumps({"access_token": issuer.sign(claims), "token_type": "Bearer",
                               "expires_in": TOKEN_LIFE_S}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Endpoint
