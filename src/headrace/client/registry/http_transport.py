"""HTTP to one or several registries: retries, failover, one time for the whole call, answers of bounded size.

An answer is JSON, or an error; what comes instead of one is an error as well, and never a hang (decision 0033). The
HTTP library is httpx2. Read next: `client.registry.registry_engine`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from headrace.client.registry.registry_settings import RegistrySettings, TlsFiles
from headrace.errors import ConfigError, DependencyError, SchemaRegistryError

__all__ = ["MOST_ANSWER_BYTES", "Answer", "HttpTransport", "RegistryRequest", "Transport", "bounded", "httpx",
           "jittered_s", "read", "refusal", "retriable", "tls_of"]

MOST_ANSWER_BYTES = 32 * 1024 * 1024
"""Bytes of the largest answer that is read: a hundred thousand subjects with names of three hundred bytes."""

_JSON = "application/vnd.schemaregistry.v1+json"
_READ = {
    "Accept": f"{_JSON}, application/vnd.schemaregistry+json, application/json",
    "Accept-Encoding": "identity",  # what is read is what counts for its size
    "User-Agent": f"headrace/{sys.modules['headrace'].__version__}",
}
_WRITE = {**_READ, "Content-Type": _JSON, "Confluent-Accept-Unknown-Properties": "true"}
_RETRIABLE = {408, 429, 500, 502, 503, 504}
_SHOWN_CHARACTERS = 200
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


class Answer(NamedTuple):
    """What came back.

    Args:
        status: of HTTP.
        body: all of it.
        headers: by name.
    """

    status: int
    body: bytes
    headers: Mapping[str, str]


class Transport(Protocol):
    """Carries requests to a registry."""

    @property
    def connected(self) -> bool:
        """Whether there may be something to close."""

    async def send(self, request: RegistryRequest, headers: Mapping[str, str]) -> Any:
        """The JSON that answers a request, None for an empty answer.

        Raises:
            SchemaRegistryError: the registry refused, or there is no answer that can be read.
        """

    async def aclose(self) -> None:
        """Close what is open."""


def jittered_s(first_s: float, limit_s: float, failures: int, chance: float) -> float:
    """Seconds to wait before the next try: any part of a time that doubles with each failure.

    Args:
        first_s: that time after the first failure.
        limit_s: its limit.
        failures: in a row, from 1.
        chance: a number in [0, 1).
    """
    return chance * min(first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), limit_s)


def retriable(status: int) -> bool:
    """Whether an answer is that of a server that may do better soon."""
    return status in _RETRIABLE


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


class HttpTransport:
    """Sends requests to the first registry that answers, and stays with it.

    Args:
        settings: of the client.
        sleep: waits for so many seconds.
        chance: gives numbers in [0, 1).
    """

    def __init__(self, settings: RegistrySettings, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
                 chance: Callable[[], float] = random.random) -> None:
        self._settings, self._sleep, self._chance = settings, sleep, chance
        self._http = httpx()
        secured = any((url or "").startswith("https:") for url in (*settings.urls, settings.proxy))
        self._tls = tls_of(settings.tls) if secured or any(settings.tls) else False  # False: nothing to verify
        self._sessions: dict[asyncio.AbstractEventLoop, Any] = {}
        self._first = 0

    @property
    def connected(self) -> bool:
        """See `Transport`."""
        return bool(self._sessions)

    async def send(self, request: RegistryRequest, headers: Mapping[str, str]) -> Any:
        """See `Transport`."""
        urls, left = self._settings.urls, _TimeLeft(self._settings.timeout_s)
        failed: SchemaRegistryError | None = None
        for place in range(len(urls)):
            index = (self._first + place) % len(urls)
            try:
                answer = await self._ask(urls[index], request, headers, left.share(len(urls) - place))
                if not retriable(answer.status):
                    self._first = index
                    return read(answer)
                failed = refusal(answer)
            except SchemaRegistryError as error:
                if error.http_status_code != SchemaRegistryError.UNKNOWN:
                    raise
                failed = error
        assert failed is not None  # there is at least one URL
        raise failed

    async def aclose(self) -> None:
        """See `Transport`. A later request opens anew."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.aclose()

    async def _ask(
        self, url: str, request: RegistryRequest, headers: Mapping[str, str], share_s: float | None
    ) -> Answer:
        """One registry's answer, after retries.

        Raises:
            SchemaRegistryError: there is none.
        """
        try:
            async with asyncio.timeout(share_s):
                return await self._with_retries(f"{url}/{request.target()}", request, headers)
        except TimeoutError:
            why = f"no answer from {url} within {share_s:.3g} seconds (timeout)"
            raise SchemaRegistryError(-1, SchemaRegistryError.UNKNOWN, why) from None
        except (self._http.HTTPError, self._http.InvalidURL, OSError) as error:
            why = f"no answer from {url}: {str(error) or type(error).__name__}"
            raise SchemaRegistryError(-1, SchemaRegistryError.UNKNOWN, why) from error

    async def _with_retries(self, url: str, request: RegistryRequest, headers: Mapping[str, str]) -> Answer:
        for failures in range(1, self._settings.retries + 2):
            last, asked_s = failures > self._settings.retries, 0.0
            try:
                answer = await self._once(url, request, headers)
                if last or not retriable(answer.status):
                    return answer
                asked_s = _asked_to_wait_s(answer)
            except self._http.TransportError as error:
                if last or _for_good(error):
                    raise
            first_s, limit_s = self._settings.retry_first_s, self._settings.retry_limit_s
            await self._sleep(max(jittered_s(first_s, limit_s, failures, self._chance()), min(asked_s, limit_s)))
        raise AssertionError("the last try returns or raises")

    async def _once(self, url: str, request: RegistryRequest, headers: Mapping[str, str]) -> Answer:
        body = None if request.body is None else json.dumps(request.body).encode()
        named = {**(_READ if body is None else _WRITE), **headers}
        async with self._session().stream(request.method, url, params=dict(request.query) or None, content=body,
                                          headers=named) as response:
            return Answer(response.status_code, await bounded(response), response.headers)

    def _session(self) -> Any:
        """The connections of this loop: those of another cannot be used, nor those from before a fork."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = self._http.AsyncClient(verify=self._tls, auth=self._settings.basic, timeout=None,
                                             proxy=self._settings.proxy)
            self._sessions = {loop: session}
        return session


class _TimeLeft:
    """The time of a call, of which each registry that may be asked gets an equal part of what is left."""

    def __init__(self, timeout_s: float | None) -> None:
        self._end = math.inf if timeout_s is None else time.monotonic() + timeout_s

    def share(self, registries: int) -> float | None:
        return None if self._end == math.inf else max(self._end - time.monotonic(), 0.0) / registries


async def bounded(response: Any) -> bytes:
    """The body of a response.

    Raises:
        SchemaRegistryError: it is too large, or in an encoding that was not asked for.
    """
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise SchemaRegistryError(response.status_code, SchemaRegistryError.UNKNOWN,
                                  f"the registry answered in the encoding {encoding:.40}, which it was not asked for")
    read_so_far, size = [], 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > MOST_ANSWER_BYTES:
            raise SchemaRegistryError(response.status_code, SchemaRegistryError.UNKNOWN,
                                      f"the registry's answer is larger than {MOST_ANSWER_BYTES} bytes")
        read_so_far.append(chunk)
    return b"".join(read_so_far)


def read(answer: Answer) -> Any:
    """The JSON of an answer, None where it is empty.

    Raises:
        SchemaRegistryError: the registry refused, or it is not JSON.
    """
    if not 200 <= answer.status <= 299:
        raise refusal(answer)
    if answer.status == 204 or not answer.body:
        return None
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else "it is not JSON"
        raise SchemaRegistryError(answer.status, SchemaRegistryError.UNKNOWN,
                                  f"the registry's answer cannot be read, {why}: {_shown(answer.body)}") from None


def refusal(answer: Answer) -> SchemaRegistryError:
    """The error that an answer says."""
    try:
        said = json.loads(answer.body)
        message, code = said["message"], said.get("error_code")
        if isinstance(message, str):
            return SchemaRegistryError(answer.status, code if isinstance(code, int) else SchemaRegistryError.UNKNOWN,
                                       message)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        pass
    where = f" (it points to {answer.headers['Location']})" if "Location" in answer.headers else ""
    return SchemaRegistryError(answer.status, SchemaRegistryError.UNKNOWN,
                               f"Unknown Schema Registry Error: {_shown(answer.body)}{where}")


def _shown(body: bytes) -> str:
    text = body[:_SHOWN_CHARACTERS].decode(errors="replace")
    return repr(text) + ("..." if len(body) > _SHOWN_CHARACTERS else "")


def _asked_to_wait_s(answer: Answer) -> float:
    """What the header Retry-After says in seconds; a date is not read."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else 0.0


def _for_good(error: BaseException | None) -> bool:
    """Whether the next try would fail as well, for a certificate is not trusted."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
