"""Who a registry client is, by tokens: given, asked for by a function, or fetched from a server and kept for a while.

Each source is a rule (`client.waits`), for a function of the application may wait or be a coroutine function. Basic
authentication is in `client.registry.registry_settings`. Read next: `client.registry.http_transport`.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from headrace.client.registry.answers import Answer, bounded, json_of, retriable
from headrace.client.registry.http_transport import httpx, jittered_s, renewed_tls_of
from headrace.client.registry.registry_settings import BEARER, RegistrySettings
from headrace.client.registry.shared_calls import SharedCalls
from headrace.client.waits import Steps
from headrace.errors import ConfigError, OAuthTokenError, SchemaRegistryError

__all__ = ["AskedToken", "Bearer", "FetchedToken", "GivenToken", "bearer_of", "headers_of"]

_LIFE_USED = 0.8
"""Part of a token's life after which it is not used any more."""
_LIFE_UNKNOWN_S = 1.0
"""Life of a token that does not say how long it lives: it is used once."""
_SHOWN_CHARACTERS = 200


class Bearer(Protocol):
    """Where the fields of a bearer's request come from."""

    def fields(self) -> Steps[Mapping[str, Any]]:
        """A rule: the properties bearer.auth.token, .logical.cluster and perhaps .identity.pool.id."""

    def refused(self) -> None:
        """The registry did not take the last token."""


def bearer_of(settings: RegistrySettings) -> Bearer | None:
    """What the properties of a client say; None where they say nothing.

    Raises:
        ConfigError: a property is missing, unknown or wrong.
        TypeError: one is of another type.
    """
    given = {name.removeprefix(BEARER): value for name, value in settings.bearer.items()}
    source = given.pop("credentials.source", None)
    if source is None:
        return None
    make = _SOURCES.get(source)
    if make is None:
        raise ConfigError(f"Unrecognized bearer.auth.credentials.source: {source!r}, expected one of "
                          f"{', '.join(_SOURCES)}")
    made = make(given, settings)
    if given:
        unknown = ", ".join(f"{BEARER}{name}" for name in given)
        raise ConfigError(f"Unrecognized properties: {unknown}: {source} does not use them")
    return made


def headers_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a request.

    Raises:
        ConfigError: a field is missing.
    """
    missing = [name for name in (f"{BEARER}token", f"{BEARER}logical.cluster") if name not in fields]
    if missing:
        raise ConfigError("Missing required bearer auth fields, needs to be set in config or custom function: "
                          f"{', '.join(missing)}")
    headers = {"Authorization": f"Bearer {fields[f'{BEARER}token']}",
               "target-sr-cluster": str(fields[f"{BEARER}logical.cluster"])}
    pool = _pools(fields.get(f"{BEARER}identity.pool.id"))
    return headers if pool is None else {**headers, "Confluent-Identity-Pool-Id": pool}


def _pools(given: Any) -> str | None:
    """One identity pool or several, as one text."""
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, list):
        raise TypeError(f"identity pool id must be a str or list, not {type(given)}")
    if not all(isinstance(one, str) for one in given):
        raise TypeError("All items in identity pool list must be strings")
    return ",".join(given)


def _required(given: dict[str, Any], what: str, *names: str) -> list[str]:
    """Take texts that must be there."""
    missing = [f"{BEARER}{name}" for name in names if given.get(name) is None]
    if missing:
        raise ConfigError(f"Missing required {what} configuration properties: {', '.join(missing)}")
    return [_text(given, name) or "" for name in names]


def _text(given: dict[str, Any], name: str) -> str | None:
    value = given.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{BEARER}{name} must be a str, not {type(value)}")
    return value


def _cluster(given: dict[str, Any]) -> dict[str, str]:
    """The fields beside the token."""
    cluster = given.get("logical.cluster")
    if cluster is not None and not isinstance(cluster, str):
        raise TypeError(f"{BEARER}logical.cluster: logical cluster must be a str, not {type(cluster)}")
    (cluster,) = _required(given, "bearer", "logical.cluster")
    pool = _pools(given.pop("identity.pool.id", None))
    fields = {f"{BEARER}logical.cluster": cluster}
    return fields if pool is None else {**fields, f"{BEARER}identity.pool.id": pool}


class GivenToken:
    """A token that does not change.

    Args:
        fields: all of them.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def fields(self) -> Steps[Mapping[str, Any]]:
        """See `Bearer`."""
        yield from ()
        return self._fields

    def refused(self) -> None:
        """There is no other token."""


class AskedToken:
    """A function of the application, a coroutine function too, gives the fields for each request.

    Args:
        function: gets `config`.
        config: as given.
    """

    def __init__(self, function: Callable[[dict[str, Any]], Any], config: dict[str, Any]) -> None:
        self._function, self._config = function, config

    def fields(self) -> Steps[Mapping[str, Any]]:
        """See `Bearer`."""
        found = self._function(self._config)
        if inspect.isawaitable(found):
            found = yield _awaited(found)
        if not isinstance(found, Mapping):
            raise TypeError(f"bearer.auth.custom.provider.function must return a dict, not {type(found)}")
        return found

    def refused(self) -> None:
        """The function is asked for the next request anyway."""


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found


class FetchedToken:
    """A server gives a token, which is kept until most of its life is over.

    Args:
        others: the fields beside the token.
        request: arguments of the request: method, url, and what else it needs.
        settings: of the client, whose retries and certificates are used.
        clock: seconds since 1970.
    """

    def __init__(self, others: Mapping[str, str], request: Mapping[str, Any], settings: RegistrySettings,
                 clock: Callable[[], float] = time.time) -> None:
        self._others, self._request, self._settings, self._clock = others, request, settings, clock
        self._tls = renewed_tls_of(settings.tls, others=True) if str(request["url"]).startswith("https:") else None
        self._token, self._until = "", 0.0
        self._calls = SharedCalls()

    def fields(self) -> Steps[Mapping[str, Any]]:
        """See `Bearer`."""
        if self._clock() >= self._until:
            yield self._calls.once("token", self._fetch)
        return {**self._others, f"{BEARER}token": self._token}

    def refused(self) -> None:
        """The next request takes a new token."""
        self._until = 0.0

    async def _fetch(self) -> None:
        """Fetch a token, in the time that a call may take."""
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                await self._fetch_with_retries()
        except TimeoutError:
            raise OAuthTokenError(f"no token within {self._settings.timeout_s:g} seconds (timeout)") from None

    async def _fetch_with_retries(self) -> None:
        retries = self._settings.retries
        for failures in range(1, retries + 2):
            try:
                self._keep(await self._ask())
                return
            except (httpx().HTTPError, OSError, SchemaRegistryError) as error:
                why = OAuthTokenError("the token endpoint does not answer: " + (str(error) or type(error).__name__))
            except OAuthTokenError as error:
                why = error
                if not retriable(error.status_code or 0):
                    retries = failures
                    break
            if failures <= retries:
                await asyncio.sleep(jittered_s(self._settings.retry_first_s, self._settings.retry_limit_s, failures,
                                               random.random()))
        raise OAuthTokenError(f"Failed to retrieve token after {retries} attempts due to error: "
                              f"{why.message}", why.status_code, why.response_text)

    async def _ask(self) -> Answer:
        tls = self._tls is not None and self._tls()
        async with (httpx().AsyncClient(verify=tls, timeout=None, proxy=self._settings.proxy) as session,
                    session.stream(**self._request) as response):
            return Answer(response.status_code, await bounded(response), response.headers)

    def _keep(self, answer: Answer) -> None:
        said = answer.body[:_SHOWN_CHARACTERS].decode(errors="replace")
        if answer.status != 200:
            raise OAuthTokenError("the token endpoint refused", answer.status, said)
        try:
            found = json_of(answer.body)
            token, life_s = found["access_token"], float(found.get("expires_in") or _LIFE_UNKNOWN_S)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise OAuthTokenError("the token endpoint gave no access_token: is it really one?", answer.status) \
                from None
        if not isinstance(token, str):
            raise OAuthTokenError("the token endpoint gave an access_token that is no text", answer.status)
        self._token, self._until = token, self._clock() + _LIFE_USED * life_s


def _static(given: dict[str, Any], settings: RegistrySettings) -> Bearer:
    fields = _cluster(given)
    token = _text(given, "token")
    if token is None:
        raise ConfigError(f"Missing {BEARER}token")
    return GivenToken({**fields, f"{BEARER}token": token})


def _custom(given: dict[str, Any], settings: RegistrySettings) -> Bearer:
    names = ("custom.provider.function", "custom.provider.config")
    missing = [f"{BEARER}{name}" for name in names if given.get(name) is None]
    if missing:
        raise ConfigError(f"Missing required custom OAuth configuration properties: {', '.join(missing)}")
    function, config = (given.pop(name) for name in names)
    if not callable(function):
        raise TypeError(f"{BEARER}{names[0]} must be a callable, not {type(function)}")
    if not isinstance(config, dict):
        raise TypeError(f"{BEARER}{names[1]} must be a dict, not {type(config)}")
    return AskedToken(function, config)


def _client_credentials(given: dict[str, Any], settings: RegistrySettings) -> Bearer:
    """RFC 6749, section 4.4."""
    others = _cluster(given)
    client, secret, scope, url = _required(given, "OAuth", "client.id", "client.secret", "scope",
                                           "issuer.endpoint.url")
    form = {"grant_type": "client_credentials", "scope": scope}
    return FetchedToken(others, {"method": "POST", "url": url, "data": form, "auth": (client, secret),
                                 "headers": {"Accept": "application/json", "Accept-Encoding": "identity"}}, settings)


def _azure(given: dict[str, Any], settings: RegistrySettings) -> Bearer:
    """The instance metadata service of a virtual machine."""
    from headrace.config.named_values import AZURE_TOKENS

    others = _cluster(given)
    own = _text(given, "issuer.endpoint.url")
    query = _text(given, "issuer.endpoint.query")
    if not query and own is None:
        raise ConfigError("bearer.auth.issuer.endpoint.query must be provided when bearer.auth.issuer.endpoint.url "
                          "isn't overridden")
    url = urlsplit(own or AZURE_TOKENS)
    target = urlunsplit(url._replace(query=query, fragment="") if query else url)
    return FetchedToken(others, {"method": "GET", "url": target,
                                 "headers": {"Metadata": "true", "Accept-Encoding": "identity"}}, settings)


_SOURCES: Mapping[str, Callable[[dict[str, Any], RegistrySettings], Bearer]] = {
    "OAUTHBEARER": _client_credentials, "OAUTHBEARER_AZURE_IMDS": _azure, "STATIC_TOKEN": _static, "CUSTOM": _custom}
