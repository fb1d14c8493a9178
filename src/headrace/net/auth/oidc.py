"""Tokens from an OpenID Connect token endpoint, by the client credentials grant.

One attempt here is one HTTP request; `net.auth.tokens` decides when there is another. Source: RFC 6749 section 4.4,
KIP-768 (Java: `HttpJwtRetriever`).
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, quote_plus, unquote, urlencode, urlsplit

from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.sasl.exchange import one_line, refused
from headrace.net.auth.tls import RenewedContext, trusting_context
from headrace.net.auth.tokens import Token, jwt_expiry

__all__ = ["token_endpoint"]

_MOST_REPLY_BYTES = 1_048_576
_OK, _TOO_MANY, _SERVER_FAILS = 200, 429, 500
_ELSEWHERE = (*range(300, 400), 404, 405, 410)
"""Statuses that say that the endpoint is not there; nobody is followed, for the secret goes to one address."""


def token_endpoint(config: Mapping[str, Any], extensions: Mapping[str, str]) -> Callable[[], Awaitable[Token]]:
    """What gets one token from the endpoint that the properties name.

    Raises:
        ConfigError: the CA certificates cannot be loaded.
    """
    url = urlsplit(config["sasl.oauthbearer.token.endpoint.url"])
    tls = None if url.scheme != "https" else RenewedContext(
        lambda: trusting_context(config, "https.ca.location", "https.ca.pem"), [config["https.ca.location"]])
    form = {"grant_type": "client_credentials"}
    if config["sasl.oauthbearer.scope"]:
        form["scope"] = config["sasl.oauthbearer.scope"]
    encoded = quote_plus if config["sasl.oauthbearer.header.urlencode"] else str
    credentials = ":".join(encoded(config[f"sasl.oauthbearer.client.{part}"]) for part in ("id", "secret"))
    headers = {
        "Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    where = f"{url.hostname}{f':{url.port}' if url.port else ''}{url.path}"
    dial_s, read_s = config["sasl.login.connect.timeout.ms"] / 1000.0, config["sasl.login.read.timeout.ms"] / 1000.0

    def ask() -> tuple[int, bytes]:
        from http.client import HTTPConnection, HTTPSConnection  # slow to import

        proxy = _proxy_of(url)
        host, port = (url.hostname or "", url.port) if proxy is None else (proxy.hostname or "", proxy.port or 1080)
        connection = HTTPConnection(host, port, timeout=dial_s) if tls is None else \
            HTTPSConnection(host, port, timeout=dial_s, context=tls())
        sent_to, sent = target, headers
        if proxy is not None and tls is None:
            sent_to, sent = f"http://{url.netloc}{target}", headers | _login(proxy)
        elif proxy is not None:
            connection.set_tunnel(url.hostname or "", url.port, _login(proxy))
        try:
            connection.connect()
            connection.sock.settimeout(read_s)
            connection.request("POST", sent_to, urlencode(form), sent)
            reply = connection.getresponse()
            return reply.status, reply.read(_MOST_REPLY_BYTES)
        finally:
            connection.close()

    async def fetch() -> Token:
        from http.client import HTTPException

        try:
            status, body = await asyncio.get_running_loop().run_in_executor(None, ask)
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate is not trusted ({error.verify_message}): set \"https.ca.location\" to its CA"
            raise _failed(KafkaError._SSL, where, why) from None
        except (OSError, HTTPException, UnicodeError) as error:
            why = one_line(str(error)) or type(error).__name__
            raise _failed(KafkaError._TRANSPORT, where, f"{why}: check \"sasl.oauthbearer.token.endpoint.url\" and "
                                                        "that it can be reached") from None
        return _token(where, status, body, extensions, config["sasl.oauthbearer.client.secret"])

    return fetch


def _proxy_of(url: SplitResult) -> SplitResult | None:
    """The HTTP proxy that the environment names for a URL (`https_proxy`, `no_proxy` ...), as librdkafka takes it."""
    from urllib.request import getproxies, proxy_bypass  # slow to import

    proxies = getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    if not named or proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    proxy = urlsplit(named if "//" in named else f"http://{named}")
    if proxy.scheme != "http":
        raise OSError(f"the environment's proxy is one for {proxy.scheme}, and must be http://HOST:PORT; or name the "
                      "endpoint's host in no_proxy")
    return proxy


def _login(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    given = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(given.encode()).decode()}"}


def _token(where: str, status: int, body: bytes, extensions: Mapping[str, str], secret: str) -> Token:
    try:
        answer = json.loads(body)
        if not isinstance(answer, dict):
            answer = {}
    except (ValueError, RecursionError):
        answer = {}
    if status != _OK:
        said = " ".join(str(answer[name]) for name in ("error", "error_description") if answer.get(name))
        reason = one_line(said.replace(secret, "[hidden]"))  # an endpoint may well repeat what is wrong with it
        passing = status >= _SERVER_FAILS or status == _TOO_MANY
        remedy = "" if passing else ': check "sasl.oauthbearer.token.endpoint.url"' if status in _ELSEWHERE else \
            ': check "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret" and "sasl.oauthbearer.scope"'
        raise _failed(KafkaError._TRANSPORT if passing else KafkaError._AUTHENTICATION, where,
                      f"HTTP status {status}{f' ({reason})' if reason else ''}{remedy}")
    value = answer.get("access_token")
    if not isinstance(value, str) or not value:
        raise refused(f"the token endpoint {where} gave no access_token: is it really a token endpoint?")
    now = time.time()
    expires_at = jwt_expiry(value)
    if expires_at is None:
        life_s = answer.get("expires_in")
        # A token that does not say how long it lives is used once.
        expires_at = now + (float(life_s) if isinstance(life_s, (int, float)) and life_s > 0 else 1.0)
    return Token(value, expires_at, extensions)


def _failed(code: int, where: str, why: str) -> KafkaException:
    return KafkaException(KafkaError(code, f"no OAuth token from {where}: {why}"))
