"""An HTTPS server that makes tokens out for the listener OIDC, as an identity provider does (RFC 6749, 4.4; RFC 7523).

It knows no client: everybody that asks is alice, for a minute, unless an assertion says who it is. Read next:
`tools.kafka.security`.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl

from tools.kafka.security import ISSUER, Certificates, Issuer

TOKEN_LIFE_S: Final = 60
_OK, _BAD_REQUEST = 200, 400


class TokenEndpoint:
    """Serves from the moment it is made, in a thread of its own, until `close`.

    Args:
        issuer: who signs.
        certificates: its certificate is the brokers'.

    Attributes:
        url: where it is asked for tokens.
        asked: the body of each request.
        verify: gives what an assertion says, or raises where it is not to be believed; without it none is.
    """

    def __init__(self, issuer: Issuer, certificates: Certificates) -> None:
        self.asked: list[str] = []
        self.verify: Callable[[str], Mapping[str, Any]] | None = None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.broker_chain, certificates.broker_key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(issuer, context, self))
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/token"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


    def answer(self, issuer: Issuer, body: str) -> tuple[int, dict[str, Any]]:
        """Status and fields of the answer to a request."""
        self.asked.append(body)
        form, now = dict(parse_qsl(body)), time.time()
        assertion, subject = form.get("assertion", form.get("client_assertion")), "alice"
        if assertion is not None:
            try:
                said = self.verify(assertion) if self.verify is not None else {}
                if said["aud"] != self.url or not said["nbf"] <= now < said["exp"]:
                    raise ValueError(said)
                subject = said["sub"]
            except Exception as error:  # of any kind: it is not to be believed
                return _BAD_REQUEST, {"error": "invalid_grant", "error_description": type(error).__name__}
        claims = {"sub": subject, "iss": ISSUER, "aud": "kafka", "scope": "x", "iat": now, "exp": now + TOKEN_LIFE_S}
        return _OK, {"access_token": issuer.sign(claims), "token_type": "Bearer", "expires_in": TOKEN_LIFE_S}


def _handler(issuer: Issuer, context: ssl.SSLContext, endpoint: TokenEndpoint) -> type[BaseHTTPRequestHandler]:
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
            status, fields = endpoint.answer(issuer, self.rfile.read(int(self.headers["Content-Length"])).decode())
            body = json.dumps(fields).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Endpoint
