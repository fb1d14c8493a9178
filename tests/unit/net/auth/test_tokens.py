"""Tokens for OAUTHBEARER: how long they are kept, where they come from, and what a failing source does."""

import asyncio
import base64
import json
from typing import Any

import pytest

from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.net.auth.tokens import Token, TokenSource, from_callback, jwt_expiry, unsecured_token


def jwt(**claims: Any) -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims))
    return ".".join((*parts, "sig"))


class Provider:
    """Gives numbered tokens that live 100 s, or fails."""

    def __init__(self) -> None:
        self.now = self.set_back = 0.0
        self.asked = 0
        self.failure: KafkaException | None = None
        self.source = TokenSource(self.fetch, lambda: self.now, lambda: 0.5, wall=self.wall,
                                  backoff_s=(1.0, 4.0))

    def wall(self) -> float:
        return self.now - self.set_back

    async def fetch(self) -> Token:
        await asyncio.sleep(0)
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return Token(f"t{self.asked}", self.wall() + 100)

    def get(self) -> str:
        return asyncio.run(self.source.get()).value


def refusal(code: int = KafkaError._AUTHENTICATION) -> KafkaException:
    return KafkaException(KafkaError(code, "no"))


def test_a_token_is_shared_until_80_percent_of_its_life_is_over() -> None:
    provider = Provider()
    assert provider.get() == "t1"
    provider.now = 79.9
    assert provider.get() == "t1"
    provider.now = 80
    assert provider.get() == "t2"


@pytest.mark.parametrize("set_back", [3600.0, -79.0])
def test_a_token_is_renewed_in_time_although_the_machines_clock_was_set_meanwhile(set_back: float) -> None:
    provider = Provider()
    assert provider.get() == "t1"
    provider.set_back = set_back
    provider.now = 1 if set_back < 0 else 80
    assert provider.get() == "t2"
    provider.now += 79
    assert provider.get() == "t2"


def test_many_who_ask_at_once_cause_one_request() -> None:
    provider = Provider()

    async def run() -> list[Token]:
        return await asyncio.gather(*(provider.source.get() for _ in range(10)))

    assert {token.value for token in asyncio.run(run())} == {"t1"}


def test_an_old_token_serves_while_the_source_fails_and_it_still_lives() -> None:
    provider = Provider()
    provider.get()
    provider.failure, provider.now = refusal(), 90
    assert provider.get() == "t1"
    provider.now = 100
    with pytest.raises(KafkaException):
        provider.get()


def test_a_source_that_fails_is_left_alone_for_a_while_and_everybody_gets_its_error() -> None:
    provider = Provider()
    provider.failure = refusal()
    asked = []
    for provider.now in (0, 0.5, 1.0, 2.0, 3.0, 10.0):
        with pytest.raises(KafkaException):
            provider.get()
        asked.append(provider.asked)
    assert asked == [1, 1, 2, 2, 3, 4]
    provider.failure, provider.now = None, 14.0
    assert provider.get() == "t5"


def test_a_token_that_has_expired_already_is_an_error_that_names_the_clocks() -> None:
    async def run() -> None:
        source = TokenSource(from_callback(lambda config: ("t", 3600), "", {}), lambda: 0.0, lambda: 0.5)
        with pytest.raises(KafkaException, match="seconds since the epoch"):
            await source.get()

    asyncio.run(run())


@pytest.mark.parametrize("answer", [None, "secret", ("secret",), ("secret", "soon"), (1, 2), ("secret", 9e9, "p", 7),
                                    ("secret", 9e9, "p", {"a": 1}), ("secret", 9e9, "p", {}, 5)])
def test_a_callback_that_returns_something_else_is_told_what_is_expected_and_the_token_is_not_shown(
    answer: Any
) -> None:
    with pytest.raises(KafkaException, match="must return") as failed:
        asyncio.run(from_callback(lambda config: answer, "", {})())
    assert "secret" not in failed.value.error.str()


def test_a_token_does_not_show_itself() -> None:
    assert "secret" not in repr(Token("secret", 1.0, {"key": "secret"}))


def test_an_unsecured_token_says_what_its_description_says() -> None:
    token = unsecured_token("principal='a b' scope=x,y lifeSeconds=60 extension_traceId=7", {"more": "8"}, 1000.0)
    head, claims, signature = token.value.split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}
    assert json.loads(base64.urlsafe_b64decode(claims + "==")) == {
        "sub": "a b", "iat": 1000.0, "exp": 1060.0, "scope": ["x", "y"]}
    assert signature == ""
    assert (token.expires_at, token.extensions) == (1060.0, {"more": "8", "traceId": "7"})


@pytest.mark.parametrize("config", ["", "scope=x", "principal=a lifeSeconds=soon", "principal=a lifeSeconds=0",
                                    "principal=a x=y", "principal='a"])
def test_a_description_that_cannot_be_read_is_refused(config: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.config"):
        unsecured_token(config, {}, 0.0)


@pytest.mark.parametrize(("token", "expected"), [
    (jwt(exp=12), 12.0), (jwt(exp=12.5), 12.5), (jwt(), None), (jwt(exp="12"), None), (jwt(exp=True), None),
    ("opaque", None), ("a.b.c", None), ("a.W10.c", None), ("..", None), ("a.\xff.c", None),
])
def test_the_expiry_of_a_jwt_is_read_and_nothing_else_is(token: str, expected: float | None) -> None:
    assert jwt_expiry(token) == expected
