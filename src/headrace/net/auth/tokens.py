"""Tokens for OAUTHBEARER: got when a connection needs one, shared by all of a client, renewed before they expire.

They come from the application (`oauth_cb`), from a token endpoint (`net.auth.oidc`), or are made unsigned, for tests. A
source that fails is left alone for a while; until then every caller gets its last error. Nothing runs without
a caller. Source: KIP-255, KIP-768 (Java: `ExpiringCredentialRefreshingLogin`).

Read next: `net.auth.oidc`.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import math
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import ConfigError, KafkaException
from headrace.machines.backoff import backoff_s
from headrace.machines.cluster.sasl.exchange import one_line, refused
from headrace.net.timers import Clock

__all__ = [
    "Token", "TokenSource", "from_callback", "jwt_expiry", "unsecured", "unsecured_token",
]

_JWT_PARTS = 3
_UNSECURED_LIFE_S = 3600


@dataclass(frozen=True, slots=True)
class Token:
    """A token and how long it lives.

    Attributes:
        value: the token itself; never shown.
        expires_at: seconds since the epoch.
        extensions: SASL extensions that go with it.
    """

    value: str = field(repr=False)
    expires_at: float
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


class TokenSource:
    """Keeps one token and gets the next.

    Args:
        fetch: gets a new token, or raises KafkaException.
        clock: monotonic seconds.
        jitter: gives numbers in [0, 1).
        wall: seconds since the epoch.
        refresh_factor: part of a token's life after which a new one is got.
        backoff_s: first and longest wait after failures, seconds.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Token]],
        clock: Clock,
        jitter: Callable[[], float],
        *,
        wall: Clock = time.time,
        refresh_factor: float = 0.8,
        backoff_s: tuple[float, float] = (0.1, 10.0),
    ) -> None:
        self._fetch, self._clock, self._jitter, self._wall = fetch, clock, jitter, wall
        self._refresh_factor, self._backoff = refresh_factor, backoff_s
        self._lock = asyncio.Lock()
        self._token: Token | None = None
        self._refresh_at = -math.inf  # wall clock
        self._grows_old_at = -math.inf  # the same by the clock that nobody sets back; that one may stop in a sleep
        self._retry_at = -math.inf
        self._failures = 0
        self._error: KafkaException | None = None

    async def get(self) -> Token:
        """A token that is not about to expire.

        Raises:
            KafkaException: there is none: `_AUTHENTICATION` when it was refused, `_TRANSPORT` when there was no answer.
        """
        async with self._lock:
            if self._wall() >= self._refresh_at or self._clock() >= self._grows_old_at:
                await self._renew()
            assert self._token is not None
            return self._token

    async def _renew(self) -> None:
        if self._clock() >= self._retry_at:
            asked_at, started_at = self._wall(), self._clock()
            try:
                token = await self._fetch()
                if token.expires_at <= self._wall():
                    raise refused("the OAuth token has expired already: does its source give expiry in seconds since "
                                  "the epoch, and do the clocks agree?")
            except KafkaException as error:
                self._failures += 1
                self._error = error
                self._retry_at = self._clock() + backoff_s(self._failures, *self._backoff, self._jitter())
            else:
                self._token, self._failures, self._error = token, 0, None
                use_s = (token.expires_at - asked_at) * self._refresh_factor
                self._refresh_at, self._grows_old_at = asked_at + use_s, started_at + use_s
                return
        if self._token is None or self._token.expires_at <= self._wall():
            assert self._error is not None
            raise self._error.with_traceback(None)  # else it remembers the frames of each call that it failed


def from_callback(
    callback: Callable[[str], Any], argument: str, extensions: Mapping[str, str]
) -> Callable[[], Awaitable[Token]]:
    """What gets one token from the application's ``oauth_cb``."""
    async def fetch() -> Token:
        try:
            if inspect.iscoroutinefunction(callback):
                answer = await callback(argument)
            else:
                answer = await asyncio.get_running_loop().run_in_executor(None, callback, argument)
        except (Exception, SystemExit) as error:  # which would end the loop that all clients share
            raise refused(f"oauth_cb raised {type(error).__name__}: {one_line(str(error))}") from None
        return _checked(answer, extensions)

    return fetch


def _checked(answer: Any, extensions: Mapping[str, str]) -> Token:
    """What a callback returned, if it is of the right shape. The values are not shown: one is the token."""
    value, expires_at, *rest = answer if isinstance(answer, tuple) and 2 <= len(answer) <= 4 else (None, None)
    own = rest[1] if len(rest) > 1 else {}
    right = isinstance(value, str) and isinstance(expires_at, (int, float)) and isinstance(own, Mapping)
    if not right or not all(isinstance(part, str) for pair in own.items() for part in pair):
        raise refused("oauth_cb must return (token, expiry as seconds since the epoch[, principal[, extensions]]): "
                      "str, float, str, dict of str")
    return Token(value, float(expires_at), {**extensions, **own})


def unsecured(config: str, extensions: Mapping[str, str]) -> Callable[[], Awaitable[Token]]:
    """What makes one unsigned token after the other.

    Raises:
        ConfigError: `config` cannot be read.
    """
    unsecured_token(config, extensions, 0.0)  # what is wrong with it shows now

    async def fetch() -> Token:
        return unsecured_token(config, extensions, time.time())

    return fetch


def unsecured_token(config: str, extensions: Mapping[str, str], now: float) -> Token:
    """An unsigned JWT as librdkafka's ``sasl.oauthbearer.config`` describes it.

    Args:
        config: ``principal=alice scope=a,b lifeSeconds=3600 principalClaimName=sub scopeClaimName=scope
            extension_x=y``.
        extensions: further extensions.
        now: seconds since the epoch.

    Raises:
        ConfigError: it cannot be read, or names no principal.
    """
    bad = ConfigError('"sasl.oauthbearer.config" cannot be read: expected principal=NAME, and possibly scope=A,B '
                      "lifeSeconds=SECONDS principalClaimName=NAME scopeClaimName=NAME extension_NAME=VALUE")
    known = {"principal": "", "scope": "", "lifeSeconds": str(_UNSECURED_LIFE_S), "principalClaimName": "sub",
             "scopeClaimName": "scope"}
    own = dict(extensions)
    try:
        for name, sign, value in (part.partition("=") for part in shlex.split(config)):
            if name.startswith("extension_"):
                own[name.removeprefix("extension_")] = value
            elif sign and name in known:
                known[name] = value
            else:
                raise bad
        life_s = int(known["lifeSeconds"])
    except ValueError:  # of shlex or int; ConfigError is one too
        raise bad from None
    if not known["principal"] or life_s <= 0:
        raise bad
    claims: dict[str, Any] = {known["principalClaimName"]: known["principal"], "iat": now, "exp": now + life_s}
    if known["scope"]:
        claims[known["scopeClaimName"]] = known["scope"].split(",")
    return Token(f"{_part({'alg': 'none'})}.{_part(claims)}.", now + life_s, own)


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def jwt_expiry(token: str) -> float | None:
    """When a JWT expires, seconds since the epoch; None when it does not say, or is no JWT. It is not verified."""
    parts = token.split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        expiry = claims.get("exp")
    except (ValueError, AttributeError, RecursionError):
        return None
    return float(expiry) if isinstance(expiry, (int, float)) and not isinstance(expiry, bool) else None
