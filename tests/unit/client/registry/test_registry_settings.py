"""The properties of a registry client: what is taken, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.client.registry.registry_settings import KNOWN, RegistrySettings, TlsFiles
from headrace.errors import ConfigError

URL = {"url": "http://localhost:8081"}


def test_a_url_is_enough() -> None:
    settings = RegistrySettings(URL)
    assert settings.urls == ("http://localhost:8081",)
    assert (settings.basic, settings.bearer, settings.proxy) == (None, {}, None)
    assert (settings.cache_capacity, settings.latest_life_s) == (1000, None)
    assert (settings.retries, settings.retry_first_s, settings.retry_limit_s) == (3, 1.0, 20.0)
    assert settings.timeout_s == 60.0
    assert settings.tls == TlsFiles(None, None, None, None)


def test_several_urls_are_separated_by_commas() -> None:
    settings = RegistrySettings({"url": "http://a:1/, https://b:2/registry/ ,http://[::1]:3"})
    assert settings.urls == ("http://a:1", "https://b:2/registry", "http://[::1]:3")


@pytest.mark.parametrize(("url", "kept"), [("mock://", "mock://"), ("mock://a", "mock://a"), ("mock://a/b/", "mock://a/b")])
def test_a_mock_url_stays_one(url: str, kept: str) -> None:
    assert RegistrySettings({"url": url}).urls == (kept,)


def test_credentials_in_the_url_are_taken_out_of_it() -> None:
    settings = RegistrySettings({"url": "http://us%40er:p%3Ass@a:1,http://other:pass@b"})
    assert settings.urls == ("http://a:1", "http://b")
    assert settings.basic == ("us@er", "p:ss")


def test_a_password_may_have_colons() -> None:
    assert RegistrySettings({**URL, "basic.auth.user.info": "user:a:b"}).basic == ("user", "a:b")


def test_secrets_are_not_shown() -> None:
    settings = RegistrySettings({"url": "http://user:secret@a", "ssl.certificate.location": "c",
                                 "ssl.key.password": "secret", "bearer.auth.credentials.source": "STATIC_TOKEN",
                                 "bearer.auth.token": "secret"})
    assert repr(settings) == "RegistrySettings(urls=('http://a',))"


def test_nothing_is_a_default() -> None:
    assert RegistrySettings({**URL, **{name: None for name in KNOWN if name != "url"}}).retries == 3


def test_port_0_is_taken_for_a_registry_that_is_never_asked() -> None:
    assert RegistrySettings({"url": "http://127.0.0.1:0"}).urls == ("http://127.0.0.1:0",)


@pytest.mark.parametrize(("conf", "message"), [
    ({}, "Missing required configuration property url"),
    ({"url": None}, "Missing required configuration property url"),
    ({"url": ""}, "Invalid url "), ({"url": "localhost:8081"}, "Invalid url localhost:8081: expected http"),
    ({"url": "http://a,,http://b"}, "Invalid url "), ({"url": "ftp://a"}, "Invalid url ftp://a"),
    ({"url": "http://"}, "Invalid url"), ({"url": "http://a:port"}, "Invalid url http://a:port"),
    ({"url": "http://a:99999"}, "Invalid url http://a:99999"), ({"url": "http://[::1"}, "Invalid url"),
    ({"url": "mock://a,http://b"}, "beside others"),
    ({**URL, "max.retry": 3}, 'Unrecognized properties: max.retry; did you mean "max.retries"?'),
    ({"urls": "http://a"}, 'Unrecognized properties: urls; did you mean "url"?'),
    ({**URL, "a.b": 3, "c.d": 4}, "Unrecognized properties: a.b, c.d"),
    ({**URL, 3: 4}, "Unrecognized properties: 3"),
    ({**URL, "bearer.auth.token": "t"}, "bearer.auth.token: they need bearer.auth.credentials.source"),
    ({**URL, "max.retries": -1}, "max.retries must be 0 or more, not -1"),
    ({**URL, "timeout": float("nan")}, "timeout must be 0 or more, not nan"),
    ({**URL, "basic.auth.user.info": "user"}, "in the form of {username}:{password}"),
    ({"url": "http://u:p@a", "basic.auth.user.info": "user:p"}, "userinfo credentials in the URL"),
    ({**URL, "ssl.key.location": "k"}, "ssl.certificate.location required"),
    ({**URL, "ssl.key.password": "p"}, "ssl.certificate.location required"),
])
def test_what_cannot_be_is_a_value_error(conf: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        RegistrySettings(conf)
    assert message in str(raised.value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(("name", "value"), [
    ("url", 3), ("timeout", "3"), ("cache.capacity", "3"), ("cache.latest.ttl.sec", []), ("max.retries", "3"),
    ("retries.wait.ms", "3"), ("retries.max.wait.ms", "3"), ("proxy", 3), ("basic.auth.user.info", 3),
    ("ssl.ca.location", 3), ("ssl.certificate.location", 3),
])
def test_a_property_of_another_type_is_a_type_error(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} must be a (str|number), not <class"):
        RegistrySettings({**URL, name: value})


def test_properties_are_a_dict() -> None:
    with pytest.raises(TypeError, match="must be a dict, not str"):
        RegistrySettings("http://localhost:8081")  # type: ignore[arg-type]


def test_a_wrong_url_is_told_without_its_password() -> None:
    with pytest.raises(ConfigError) as raised:
        RegistrySettings({"url": "gopher://user:secret@a"})
    assert "secret" not in str(raised.value)


def test_an_error_of_an_unknown_property_does_not_tell_its_value() -> None:
    with pytest.raises(ConfigError) as raised:
        RegistrySettings({**URL, "password": "secret"})
    assert "secret" not in str(raised.value)
