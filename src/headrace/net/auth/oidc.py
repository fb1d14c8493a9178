"""Tokens from an OpenID Connect token endpoint: for a client's secret, or for an assertion of who it is; or from the
metadata service of an Azure machine, which knows who runs there.

One attempt here is one HTTP request; `net.auth.tokens` decides when there is another. Source: RFC 6749 section 4.4,
RFC 7523, KIP-768, KIP-1139, KIP-1258 (Java: `HttpJwtRetriever`), librdkafka's ``azure_imds``. Read next:
`net.auth.assertions`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote_plus, unquote, urlencode, urlsplit

from headrace.config.named_values import AZURE_IMDS, AZURE_TOKENS, IDENTITY, azure_query
from headrace.config.security_properties import JWT_BEARER, by_assertion
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.machines.cluster.sasl.exchange import one_line, refused
from headrace.net.auth.assertions import assertion_source
from headrace.net.auth.tls import RenewedContext, trusting_context
from headrace.net.auth.tokens import Token, jwt_expiry

__all__ = ["token_endpoint"]

_MOST_REPLY_BYTES = 1_048_576
_MOST_DIGITS = 12
_OK, _TOO_MANY, _SERVER_FAILS = 200, 429, 500
_ELSEWHERE = (*range(300, 400), 404, 405, 410)
"""Statuses that say that the endpoint is not there; nobody is followed, for the secret goes to one address."""

_OF_SECRETS = '"sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret" and "sasl.oauthbearer.scope"'
_OF_ASSERTIONS = 'what "sasl.oauthbearer.assertion.*" says and signs with, and "sasl.oauthbearer.scope"'
_OF_MACHINES = '"sasl.oauthbearer.config": "query=...", and that this machine has the identity'
_JWT_OF_A_CLIENT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_SHOWN_ONCE = ("assertion", "client_assertion")
"""Fields of a form that let whoever sees them in."""


@dataclass(frozen=True)
class _Question:
    """What an endpoint is asked.

    Attributes:
        method: of HTTP.
        url: where it is.
        headers: of all requests.
        form_of: makes the form of each, empty where there is none.
        by_proxy: by way of the environment's proxy, if there is one for the URL.
        advice: what is to be looked at when it is refused.
    """

    method: str
    url: SplitResult
    headers: dict[str, str]
    form_of: Callable[[], dict[str, str]]
    by_proxy: bool
    advice: str


def token_endpoint(config: Mapping[str, Any], extensions: Mapping[str, str]) -> Callable[[], Awaitable[Token]]:
    """What gets one token from the endpoint that the properties name.

    Raises:
        ConfigError: the CA certificates, or what an assertion is made of, cannot be loaded.
        DependencyError: an assertion is to be signed and the package cryptography is not installed.
    """
    asked = _of_azure(config) if config[IDENTITY] == AZURE_IMDS else _of_a_client(config)
    url = asked.url
    tls = None if url.scheme != "https" else RenewedContext(
        lambda: trusting_context(config, "https.ca.location", "https.ca.pem"), [config["https.ca.location"]])
    secret = config["sasl.oauthbearer.client.secret"]
    by_grant_alone = config["sasl.oauthbearer.grant.type"] == JWT_BEARER
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    where = f"{url.hostname}{f':{url.port}' if url.port else ''}{url.path}"
    dial_s, read_s = config["sasl.login.connect.timeout.ms"] / 1000.0, config["sasl.login.read.timeout.ms"] / 1000.0

    def ask() -> tuple[int, bytes, dict[str, str]]:
        from http.client import HTTPConnection, HTTPSConnection  # slow to import

        form = asked.form_of()
        proxy = _proxy_of(url) if asked.by_proxy else None
        host, port = (url.hostname or "", url.port) if proxy is None else (proxy.hostname or "", proxy.port or 1080)
        connection = HTTPConnection(host, port, timeout=dial_s) if tls is None else \
            HTTPSConnection(host, port, timeout=dial_s, context=tls())
        sent_to, sent = target, asked.headers
        if proxy is not None and tls is None:
            sent_to, sent = f"http://{url.netloc}{target}", sent | _login(proxy)
        elif proxy is not None:
            connection.set_tunnel(url.hostname or "", url.port, _login(proxy))
        try:
            connection.connect()
            connection.sock.settimeout(read_s)
            connection.request(asked.method, sent_to, urlencode(form) if form else None, sent)
            reply = connection.getresponse()
            return reply.status, reply.read(_MOST_REPLY_BYTES), form
        finally:
            connection.close()

    async def fetch() -> Token:
        from http.client import HTTPException

        try:
            status, body, form = await asyncio.get_running_loop().run_in_executor(None, ask)
        except ConfigError as error:  # of files that have changed
            raise _failed(KafkaError._AUTHENTICATION, where, str(error)) from None
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate is not trusted ({error.verify_message}): set \"https.ca.location\" to its CA"
            raise _failed(KafkaError._SSL, where, why) from None
        except (OSError, HTTPException, UnicodeError) as error:
            why = one_line(str(error)) or type(error).__name__
            raise _failed(KafkaError._TRANSPORT, where, f"{why}: check \"sasl.oauthbearer.token.endpoint.url\" and "
                                                        "that it can be reached") from None
        if status != _OK:
            hidden = [secret, *(form[name] for name in _SHOWN_ONCE if name in form)]
            raise _refusal(where, status, _fields(body), hidden, asked.advice)
        return _token(where, _fields(body), extensions, or_identity=by_grant_alone)

    return fetch


def _of_azure(config: Mapping[str, Any]) -> _Question:
    """It is on the machine itself, where no proxy leads: that would ask for a token of its own."""
    url = urlsplit(config["sasl.oauthbearer.token.endpoint.url"] or AZURE_TOKENS)
    query = "&".join(filter(None, (url.query, azure_query(config["sasl.oauthbearer.config"]))))
    return _Question("GET", url._replace(query=query), {"Metadata": "true", "Accept": "application/json"}, dict,
                     by_proxy=False, advice=_OF_MACHINES)


def _of_a_client(config: Mapping[str, Any]) -> _Question:
    headers, form_of = _request(config)
    return _Question("POST", urlsplit(config["sasl.oauthbearer.token.endpoint.url"]), headers, form_of, by_proxy=True,
                     advice=_OF_ASSERTIONS if by_assertion(config) else _OF_SECRETS)


def _request(config: Mapping[str, Any]) -> tuple[dict[str, str], Callable[[], dict[str, str]]]:
    """The headers of all requests, and what makes the form of each."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    grant, scope = config["sasl.oauthbearer.grant.type"], config["sasl.oauthbearer.scope"]
    form = {"grant_type": grant} | ({"scope": scope} if scope else {})
    client = config["sasl.oauthbearer.client.id"]
    if not by_assertion(config):
        encoded = quote_plus if config["sasl.oauthbearer.header.urlencode"] else str
        credentials = f"{encoded(client)}:{encoded(config['sasl.oauthbearer.client.secret'])}"
        headers["Authorization"] = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        return headers, lambda: form
    assertion = assertion_source(config)
    if grant == JWT_BEARER:
        return headers, lambda: form | {"assertion": assertion()}
    form |= {"client_assertion_type": _JWT_OF_A_CLIENT} | ({"client_id": client} if client else {})
    return headers, lambda: form | {"client_assertion": assertion()}


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


def _fields(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _refusal(
    where: str, status: int, answer: Mapping[str, Any], hidden: Iterable[str], advice: str
) -> KafkaException:
    said = " ".join(str(answer[name]) for name in ("error", "error_description") if answer.get(name))
    for secret in filter(None, hidden):  # an endpoint may well repeat what is wrong with it
        said = said.replace(secret, "[hidden]")
    reason = one_line(said)
    passing = status >= _SERVER_FAILS or status == _TOO_MANY
    remedy = "" if passing else ': check "sasl.oauthbearer.token.endpoint.url"' if status in _ELSEWHERE else \
        f": check {advice}"
    return _failed(KafkaError._TRANSPORT if passing else KafkaError._AUTHENTICATION, where,
                   f"HTTP status {status}{f' ({reason})' if reason else ''}{remedy}")


def _token(where: str, answer: Mapping[str, Any], extensions: Mapping[str, str], *, or_identity: bool) -> Token:
    """The token of an answer.

    Args:
        where: the endpoint, for people.
        answer: what it said.
        extensions: those of the token.
        or_identity: an id_token is taken where there is no access_token that brokers can look into, as from Google.
    """
    value = answer.get("access_token")
    identity = answer.get("id_token") if or_identity else None
    if isinstance(identity, str) and jwt_expiry(identity) and not (isinstance(value, str) and jwt_expiry(value)):
        value = identity
    if not isinstance(value, str) or not value:
        raise refused(f"the token endpoint {where} gave no access_token: is it really a token endpoint?")
    now = time.time()
    expires_at = jwt_expiry(value)
    if expires_at is None:
        # A token that does not say how long it lives is used once.
        expires_at = now + (_life_s(answer.get("expires_in")) or 1.0)
    return Token(value, expires_at, extensions)


def _life_s(said: object) -> float:
    """Seconds, which Azure says as text; 0 where nothing is said that makes sense."""
    if isinstance(said, str) and said.isascii() and said.isdecimal():
        said = int(said[:_MOST_DIGITS])
    return float(said) if isinstance(said, (int, float)) and said > 0 else 0.0


def _failed(code: int, where: str, why: str) -> KafkaException:
    return KafkaException(KafkaError(code, f"no OAuth token from {where}: {why}"))
