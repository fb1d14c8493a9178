"""Who a registry client is, by tokens."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from headrace.client.registry.credentials import FetchedToken, bearer_of, headers_of
from headrace.client.registry.registry_settings import RegistrySettings
from headrace.client.waits import LoopWaits
from headrace.errors import ConfigError, OAuthTokenError
from tests.support.scripted_registry import CLOSE, Said, ScriptedRegistry

CLUSTER = {"logical.cluster": "lsrc-1"}
OAUTH = {"credentials.source": "OAUTHBEARER", **CLUSTER, "client.id": "me", "client.secret": "s3cret", "scope": "all"}


def settings(**more: Any) -> RegistrySettings:
    bearer = {f"bearer.auth.{name}": value for name, value in more.pop("bearer", {}).items()}
    return RegistrySettings({"url": "http://registry", "retries.wait.ms": 0, **more, **bearer})


def headers(bearer: Any, times: int = 1) -> dict[str, str]:
    """The headers of so many requests, which must be the same."""
    async def main() -> list[dict[str, str]]:
        return [headers_of(await LoopWaits().run(bearer.fields())) for _ in range(times)]

    found = asyncio.run(main())
    assert all(one == found[0] for one in found)
    return found[0]


def oauth(registry: ScriptedRegistry, **more: Any) -> Any:
    return bearer_of(settings(bearer={**OAUTH, "issuer.endpoint.url": f"{registry.url}/token?x=y"}, **more))


def test_nothing_is_said_without_a_source() -> None:
    assert bearer_of(settings()) is None


@pytest.mark.parametrize(("pool", "sent"), [("a", "a"), (["a", "b"], "a,b"), ("a,b", "a,b")])
def test_a_token_may_be_given(pool: Any, sent: str) -> None:
    given = {"credentials.source": "STATIC_TOKEN", "token": "t", **CLUSTER}
    assert headers(bearer_of(settings(bearer=given))) == {"Authorization": "Bearer t", "target-sr-cluster": "lsrc-1"}
    assert headers(bearer_of(settings(bearer={**given, "identity.pool.id": pool}))) == {
        "Authorization": "Bearer t", "target-sr-cluster": "lsrc-1", "Confluent-Identity-Pool-Id": sent}


@pytest.mark.parametrize("waits", [False, True])
def test_a_function_of_the_application_is_asked_for_each_request(waits: bool) -> None:
    asked = []

    def plain(config: dict[str, Any]) -> dict[str, Any]:
        asked.append(config)
        return {"bearer.auth.token": "t", "bearer.auth.logical.cluster": "c",
                "bearer.auth.identity.pool.id": ["p", "q"]}

    async def waiting(config: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return plain(config)

    given = {"credentials.source": "CUSTOM", "custom.provider.function": waiting if waits else plain,
             "custom.provider.config": {"a": 1}}
    assert headers(bearer_of(settings(bearer=given)), 2) == {
        "Authorization": "Bearer t", "target-sr-cluster": "c", "Confluent-Identity-Pool-Id": "p,q"}
    assert asked == [{"a": 1}] * 2


@pytest.mark.parametrize(("answer", "error", "message"), [
    ({}, ConfigError, "Missing required bearer auth fields, .* bearer.auth.token, bearer.auth.logical.cluster"),
    ({"bearer.auth.token": "t"}, ConfigError, "function: bearer.auth.logical.cluster"),
    (None, TypeError, "return a dict"),
])
def test_a_function_that_returns_something_else_is_told_so(answer: Any, error: type, message: str) -> None:
    given = {"credentials.source": "CUSTOM", "custom.provider.function": lambda config: answer,
             "custom.provider.config": {}}
    with pytest.raises(error, match=message):
        headers(bearer_of(settings(bearer=given)))


def test_a_token_is_fetched_once_by_the_client_credentials_grant(registry: ScriptedRegistry) -> None:
    registry.answers({"access_token": "t1", "expires_in": 3600})
    assert headers(oauth(registry), 3) == {"Authorization": "Bearer t1", "target-sr-cluster": "lsrc-1"}
    (asked,) = registry.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/token", "grant_type=client_credentials&scope=all")
    assert asked.headers["authorization"] == "Basic bWU6czNjcmV0"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"


def test_many_who_need_a_token_fetch_one(registry: ScriptedRegistry) -> None:
    registry.answers({"access_token": "t1", "expires_in": 3600})
    bearer = oauth(registry)

    async def main() -> None:
        await asyncio.gather(*(LoopWaits().run(bearer.fields()) for _ in range(5)))

    asyncio.run(main())
    assert len(registry.asked) == 1


def test_a_token_is_fetched_anew_when_most_of_its_life_is_over_or_when_it_was_refused(
    registry: ScriptedRegistry
) -> None:
    clock = [0.0]
    request = {"method": "GET", "url": registry.url}
    token = FetchedToken({"bearer.auth.logical.cluster": "c"}, request, settings(), lambda: clock[0])
    registry.answers(*[{"access_token": f"t{n}", "expires_in": 100} for n in range(3)])

    def at(now: float) -> str:
        clock[0] = now
        return headers(token)["Authorization"]

    assert [at(1000.0), at(1079.0), at(1081.0), at(1082.0)] == ["Bearer t0", "Bearer t0", "Bearer t1", "Bearer t1"]
    token.refused()
    assert at(1083.0) == "Bearer t2"


def test_a_server_of_tokens_that_may_do_better_is_asked_again(registry: ScriptedRegistry) -> None:
    registry.answers(Said({}, 503), CLOSE, {"access_token": "t"})
    assert headers(oauth(registry))["Authorization"] == "Bearer t"


def test_who_is_refused_a_token_is_told_why_at_once_and_without_the_secret(registry: ScriptedRegistry) -> None:
    registry.answers(Said({"error": "invalid_client"}, 401))
    with pytest.raises(OAuthTokenError, match="Failed to retrieve token after 1 attempts due to error: ") as raised:
        headers(oauth(registry))
    assert raised.value.status_code == 401
    assert raised.value.response_text == '{"error": "invalid_client"}'
    assert "s3cret" not in str(raised.value)
    assert len(registry.asked) == 1


def test_a_server_of_tokens_that_is_always_out_of_order_is_an_error(registry: ScriptedRegistry) -> None:
    registry.otherwise = lambda asked: CLOSE
    with pytest.raises(OAuthTokenError, match="Failed to retrieve token after 2 attempts due to error: the token "):
        headers(oauth(registry, **{"max.retries": 2}))
    assert len(registry.asked) == 3


def test_a_server_of_tokens_that_says_nothing_is_an_error_in_time(registry: ScriptedRegistry) -> None:
    never = threading.Event()
    registry.answers(Said({}, until=never))
    try:
        with pytest.raises(OAuthTokenError, match=r"no token within 0\.05 seconds \(timeout\)"):
            headers(oauth(registry, timeout=0.05))
    finally:
        never.set()


@pytest.mark.parametrize("answer", [b"<html>", [], {"access_token": 3}, {}, {"access_token": "t", "expires_in": [1]}])
def test_an_answer_without_a_token_is_an_error(registry: ScriptedRegistry, answer: Any) -> None:
    registry.answers(Said(answer))
    with pytest.raises(OAuthTokenError, match="the token endpoint gave"):
        headers(oauth(registry))


def test_the_instance_metadata_service_of_azure_gives_a_token(registry: ScriptedRegistry) -> None:
    registry.answers({"access_token": "t", "expires_in": "3600", "expires_on": "99999999999"})
    given = {"credentials.source": "OAUTHBEARER_AZURE_IMDS", **CLUSTER, "issuer.endpoint.url": f"{registry.url}/x?a=b",
             "issuer.endpoint.query": "resource=r"}
    assert headers(bearer_of(settings(bearer=given)), 2)["Authorization"] == "Bearer t"
    (asked,) = registry.asked
    assert (asked.method, asked.path, asked.query, asked.headers["metadata"]) == (
        "GET", "/x", {"resource": ["r"]}, "true")


@pytest.mark.parametrize(("bearer", "error", "message"), [
    ({"credentials.source": "MAGIC"}, ConfigError, "Unrecognized bearer.auth.credentials.source: 'MAGIC'"),
    ({"credentials.source": "STATIC_TOKEN"}, ConfigError, "Missing required bearer .* bearer.auth.logical.cluster"),
    ({"credentials.source": "STATIC_TOKEN", **CLUSTER}, ConfigError, "Missing bearer.auth.token"),
    ({"credentials.source": "STATIC_TOKEN", **CLUSTER, "token": 3}, TypeError, "bearer.auth.token must be a str"),
    ({"credentials.source": "STATIC_TOKEN", "logical.cluster": 3}, TypeError, "logical cluster must be a str"),
    ({"credentials.source": "STATIC_TOKEN", **CLUSTER, "token": "t", "scope": "s"}, ConfigError,
     "Unrecognized properties: bearer.auth.scope: STATIC_TOKEN does not use them"),
    ({"credentials.source": "STATIC_TOKEN", **CLUSTER, "token": "t", "identity.pool.id": 3}, TypeError, "str or list"),
    ({"credentials.source": "STATIC_TOKEN", **CLUSTER, "token": "t", "identity.pool.id": [3]}, TypeError, "strings"),
    ({"credentials.source": "CUSTOM"}, ConfigError, "Missing required custom OAuth"),
    ({"credentials.source": "CUSTOM", "custom.provider.function": 3, "custom.provider.config": {}}, TypeError,
     "must be a callable"),
    ({"credentials.source": "CUSTOM", "custom.provider.function": print, "custom.provider.config": 3}, TypeError,
     "must be a dict"),
    (OAUTH, ConfigError, "Missing required OAuth configuration properties: bearer.auth.issuer.endpoint.url"),
    ({"credentials.source": "OAUTHBEARER_AZURE_IMDS", **CLUSTER}, ConfigError, "endpoint.query must be provided"),
])
def test_what_cannot_be_is_told_when_the_client_is_made(bearer: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        bearer_of(settings(bearer=bearer))
