"""HTTP to one or several registries: retries, failover, one time for the whole call, answers of bounded size.

An answer is JSON, or an error; what comes instead of one is an error as well, and never a hang (decision 0033). The
HTTP library is httpx2. Read next: `client.registry.registry_engine`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import random
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from headrace.client.registry.answers import Answer, bounded, read, refusal, retriable
from headrace.client.registry.registry_settings import RegistrySettings, TlsFiles
from headrace.errors import ConfigError, DependencyError, SchemaRegistryError
from headrace.net.auth.tls import RenewedContext

__all__ = ["HttpTransport", "RegistryRequest", "Transport", "httpx", "jittered_s", "renewed_tls_of", "tls_of"]

_log = logging.getLogger("headrace")
_JSON = "application/vnd.schemaregistry.v1+json"
_READ = {
    "Accept": f"{_JSON}, application/vnd.schemaregistry+json, application/json",
    "Accept-Encoding": "identity",  # what is read is what counts for its size
    "User-Agent": f"headrace/{sys.modules['headrace'].__release__}",
    "Confluent-Client-Version": f"python/{sys.modules['headrace'].__release__}",
}
_WRITE = {**_READ, "Content-Type": _JSON, "Confluent-Accept-Unknown-Properties": "true"}
_MOST_DOUBLINGS = 30


class RegistryRequest(NamedTuple):
    """What a registry is asked.

    Args:
        method: GET, POST, PUT or DELETE.
        path: its parts, not escaped.
        query: values by name; a list is a name several times.
        body: what becomes JSON, None for none.
    """

    method: str
    path: tuple[str, ...]
    query: Mapping[str, Any]
    body: Any = None

    def target(self) -> str:
        """The path, escaped. A part that is dots alone would be a way up."""
        return "/".join(quote(part, safe="") if part.strip(".") else part.replace(".", "%2E") for part in self.path)


class RegistrySession:
    """The connections of one loop, which were opened with what the files of TLS held at one time.

    Args:
        client: of the HTTP library.
        tls: its settings for TLS, False for none.
        before: whose place it takes; that is closed behind its last request.
    """

    def __init__(self, client: Any, tls: ssl.SSLContext | bool, before: RegistrySession | None) -> None:
        self.tls = tls
        self._client, self._before = client, before
        self._requests, self._retired = 0, False

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Any]:
        """The HTTP library's client, for one request."""
        self._requests += 1
        try:
            if self._before is not None:
                before, self._before = self._before, None
                before._retired = True
                await before._close_retired()
            yield self._client
        finally:
            self._requests -= 1
            await self._close_retired()

    async def aclose(self) -> None:
        """Close it now."""
        await self._client.aclose()

    async def _close_retired(self) -> None:
        if self._retired and not self._requests:
            await self._client.aclose()


class Sessions(dict[asyncio.AbstractEventLoop, RegistrySession]):
    """What is open, by loop. It leads back to no client: it is closed when its client is let go."""

    async def aclose(self) -> None:
        """Close what is open on the running loop. A later request opens anew."""
        session = self.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.aclose()


class Transport(Protocol):
    """Carries requests to a registry.

    Attributes:
        sessions: what is open, if anything may be.
    """

    sessions: Sessions

    async def send(self, request: RegistryRequest, headers: Mapping[str, str]) -> Any:
        """The JSON that answers a request, None for an empty answer.

        Raises:
            SchemaRegistryError: the registry refused, or there is no answer that can be read.
        """


def jittered_s(first_s: float, limit_s: float, failures: int, chance: float) -> float:
    """Seconds to wait before the next try: any part of a time that doubles with each failure.

    Args:
        first_s: that time after the first failure.
        limit_s: its limit.
        failures: in a row, from 1.
        chance: a number in [0, 1).
    """
    return chance * min(first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), limit_s)


def httpx() -> Any:
    """The HTTP library.

    Raises:
        DependencyError: it is not installed.
    """
    try:
        import httpx2
    except ImportError:
        raise DependencyError("the Schema Registry client needs the package httpx2: pip install headrace[registry]"
                              ) from None
    return httpx2


def tls_of(files: TlsFiles, *, others: bool = False) -> ssl.SSLContext:
    """The TLS settings of a client.

    Args:
        files: what it needs.
        others: whom the system trusts is trusted besides.

    Raises:
        ConfigError: a file cannot be loaded.
    """
    try:
        context = ssl.create_default_context()
        if files.ca is False:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        elif isinstance(files.ca, str):
            context = context if others else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(**{"capath" if os.path.isdir(files.ca) else "cafile": files.ca})
        if files.certificate is not None:
            context.load_cert_chain(files.certificate, files.key, files.password or "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        named = ", ".join(str(one) for one in files[:3] if one not in (None, True, False))
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise ConfigError(f"TLS files of the registry client ({named}) cannot be loaded ({reason}): expected PEM") \
            from None
    return context


def renewed_tls_of(files: TlsFiles, *, others: bool = False) -> RenewedContext:
    """`tls_of`, made anew when a file has changed.

    Raises:
        ConfigError: as by `tls_of`.
    """
    return RenewedContext(lambda: tls_of(files, others=others), [one for one in files[:3] if isinstance(one, str)])


class HttpTransport:
    """Sends requests to the first registry that answers, and stays with it.

    Args:
        settings: of the client.
        sleep: waits for so many seconds.
        chance: gives numbers in [0, 1).

    Raises:
        ConfigError: the proxy, or a file for TLS, cannot be used.
        DependencyError: the HTTP library is not installed.
    """

    def __init__(self, settings: RegistrySettings, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
                 chance: Callable[[], float] = random.random) -> None:
        self._settings, self._sleep, self._chance = settings, sleep, chance
        self._http = httpx()
        self._check_proxy()
        secured = any((url or "").startswith("https:") for url in (*settings.urls, settings.proxy))
        self._tls = renewed_tls_of(settings.tls) if secured or any(settings.tls) else None  # None: nothing to verify
        self.sessions = Sessions()
        self._first = 0

    async def send(self, request: RegistryRequest, headers: Mapping[str, str]) -> Any:
        """See `Transport`."""
        urls, first, until = self._settings.urls, self._first, time.monotonic() + self._settings.timeout_s
        failed: SchemaRegistryError | None = None
        for place in range(len(urls)):
            index = (first + place) % len(urls)
            share_s = max(until - time.monotonic(), 0.0) / (len(urls) - place)
            try:
                answer = await self._ask(urls[index], request, headers, share_s)
                if not retriable(answer.status):
                    self._first = index
                    return read(answer)
                failed = refusal(answer)
            except SchemaRegistryError as error:
                if error.http_status_code != SchemaRegistryError.UNKNOWN:
                    raise
                failed = error
            _log.debug("%s; %d other registries are left", failed, len(urls) - place - 1)
        assert failed is not None  # there is at least one URL
        raise failed

    def _check_proxy(self) -> None:
        if self._settings.proxy is not None:
            try:
                self._http.Proxy(self._settings.proxy)
            except (ValueError, self._http.InvalidURL):
                raise ConfigError("proxy cannot be used: expected http://HOST:PORT, https:// or socks5://") from None

    async def _ask(
        self, url: str, request: RegistryRequest, headers: Mapping[str, str], share_s: float
    ) -> Answer:
        """One registry's answer, after retries.

        Raises:
            SchemaRegistryError: there is none.
        """
        try:
            async with asyncio.timeout(share_s):
                return await self._with_retries(f"{url}/{request.target()}", request, headers,
                                                time.monotonic() + share_s)
        except TimeoutError:
            why = f"no answer from {url} within {share_s:.3g} seconds (timeout)"
            raise SchemaRegistryError(-1, SchemaRegistryError.UNKNOWN, why) from None
        except (self._http.HTTPError, self._http.InvalidURL, OSError) as error:
            why = f"no answer from {url}: {_why(error)}"
            raise SchemaRegistryError(-1, SchemaRegistryError.UNKNOWN, why) from error

    async def _with_retries(
        self, url: str, request: RegistryRequest, headers: Mapping[str, str], until: float
    ) -> Answer:
        """The first answer that is not retriable, or the last; no wait is begun that would outlast the time."""
        for failures in itertools.count(1):
            outcome = await self._tried(url, request, headers)
            if isinstance(outcome, Answer) and not retriable(outcome.status):
                break
            pause_s = self._pause_s(failures, outcome)
            if failures > self._settings.retries or time.monotonic() + pause_s >= until:
                break
            why = f"HTTP status {outcome.status}" if isinstance(outcome, Answer) else _why(outcome)
            _log.debug("%s %s: %s; it is tried again", request.method, url, why)
            await self._sleep(pause_s)
        if isinstance(outcome, Answer):
            return outcome
        raise outcome

    async def _tried(self, url: str, request: RegistryRequest, headers: Mapping[str, str]) -> Answer | Exception:
        """An answer, or why there is none, if the next try may bring one."""
        try:
            return await self._once(url, request, headers)
        except self._http.TransportError as error:
            if _untrusted(error) is not None:
                raise
            lost: Exception = error
            return lost

    def _pause_s(self, failures: int, outcome: Answer | Exception) -> float:
        first_s, limit_s = self._settings.retry_first_s, self._settings.retry_limit_s
        asked_s = min(_asked_to_wait_s(outcome), limit_s) if isinstance(outcome, Answer) else 0.0
        return max(jittered_s(first_s, limit_s, failures, self._chance()), asked_s)

    async def _once(self, url: str, request: RegistryRequest, headers: Mapping[str, str]) -> Answer:
        body = None if request.body is None else json.dumps(request.body).encode()
        named = {**(_READ if body is None else _WRITE), **headers}
        async with self._session().client() as client, client.stream(
                request.method, url, params=dict(request.query) or None, content=body, headers=named) as response:
            return Answer(response.status_code, await bounded(response), response.headers)

    def _session(self) -> RegistrySession:
        """The connections of this loop: those of another cannot be used, nor those from before a fork.

        The HTTP library takes its settings for TLS once: where their files have changed, all is opened anew.
        """
        loop = asyncio.get_running_loop()
        session, tls = self.sessions.get(loop), self._tls is not None and self._tls()
        if session is not None and session.tls is tls:
            return session
        opened = self.sessions[loop] = RegistrySession(self._http.AsyncClient(
            verify=tls, auth=self._settings.basic, timeout=None, proxy=self._settings.proxy), tls, session)
        for other in list(self.sessions):
            if other.is_closed():
                self.sessions.pop(other, None)
        return opened


def _asked_to_wait_s(answer: Answer) -> float:
    """What the header Retry-After says in seconds; a date is not read."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else 0.0


def _why(error: BaseException) -> str:
    """Why there is no answer, and what to do about it."""
    untrusted = _untrusted(error)
    if untrusted is not None:
        return f"its certificate is not trusted ({untrusted.verify_message}): set ssl.ca.location to its authority's"
    text = str(error) or type(error).__name__
    if type(error).__name__ == "ConnectError":
        return f"{text}: is the registry running, and is url right?"
    return text


def _untrusted(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """The refusal of a certificate, if that is what an error comes from."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error
        error = error.__cause__ or error.__context__
    return None
