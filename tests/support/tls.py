"""Both sides of TLS for tests without a broker."""

from __future__ import annotations

import ssl
from functools import cache

import trustme

__all__ = ["tls_contexts"]


@cache
def tls_contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a client, and of a server at "localhost" that it trusts."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return client, server
