"""What a registry client is made with: the properties, checked. confluent_kafka's names, defaults and errors.

Knows no HTTP. Read next: `client.registry.credentials`, for the properties that begin with bearer.auth, and
`client.registry.http_transport`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from headrace.config.property import close_matches
from headrace.errors import ConfigError

__all__ = ["BEARER", "KNOWN", "MOCK", "RegistrySettings", "TlsFiles", "with_mock_url"]

MOCK = "mock://"
"""How the URL of a registry within the process begins."""

BEARER = "bearer.auth."
"""How the names of the properties about tokens begin."""
_NUMBERS: dict[str, float | None] = {
    "timeout": 60.0, "cache.capacity": 1000, "cache.latest.ttl.sec": None, "max.retries": 3, "retries.wait.ms": 1000,
    "retries.max.wait.ms": 20000,
}
"""Numbers and their defaults. confluent_kafka waits for an answer without end unless `timeout` is given."""
_TEXTS = ("url", "basic.auth.user.info", "proxy", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
          "ssl.key.password")
_BEARER_NAMES = ("credentials.source", "logical.cluster", "identity.pool.id", "token", "client.id", "client.secret",
                 "scope", "issuer.endpoint.url", "issuer.endpoint.query", "custom.provider.function",
                 "custom.provider.config")
KNOWN = (*_TEXTS, *_NUMBERS, *(f"{BEARER}{name}" for name in _BEARER_NAMES))
"""Every property."""


class TlsFiles(NamedTuple):
    """What TLS needs; paths of PEM files.

    Args:
        ca: certificates that are trusted, a file or a folder; None for the system's, False to trust everybody.
        certificate: this client's, None without one.
        key: its key; None when it is in the same file.
        password: of the key.
    """

    ca: str | bool | None
    certificate: str | None
    key: str | None
    password: str | None


class RegistrySettings:
    """The properties of a registry client. Shows nothing but the URLs, for the rest may be secret.

    Args:
        conf: properties by name.

    Attributes:
        urls: of the registries that may be asked, without credentials and without a slash at the end.
        basic: user name and password, or None.
        bearer: the properties that begin with bearer.auth.
        tls: what TLS needs.
        proxy: URL of a proxy, or None.
        timeout_s: bound of a whole call.
        cache_capacity: the most schemas that are kept of each kind.
        latest_life_s: how long a latest version is kept, None until the caches are cleared.
        retries: how often a failed request is sent once more to the same URL.
        retry_first_s: longest wait before the first retry.
        retry_limit_s: longest wait before any.

    Raises:
        ConfigError: a property is unknown, missing, or contradicts another; it is a ValueError.
        TypeError: a property is of another type.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        if not isinstance(conf, Mapping):
            raise TypeError(f"the properties of a registry client must be a dict, not {type(conf).__name__}")
        addresses = _addresses(conf)
        self.urls = tuple(map(_bare, addresses))
        self.basic = _basic(conf, addresses[0])
        self.bearer = {name: value for name, value in conf.items() if str(name).startswith(BEARER)}
        self.tls = _tls(conf)
        self.proxy = _text(conf, "proxy")
        self.timeout_s = _number(conf, "timeout") or 0.0
        self.cache_capacity = int(_number(conf, "cache.capacity") or 0)
        self.latest_life_s = _number(conf, "cache.latest.ttl.sec")
        self.retries = int(_number(conf, "max.retries") or 0)
        self.retry_first_s = (_number(conf, "retries.wait.ms") or 0.0) / 1000.0
        self.retry_limit_s = (_number(conf, "retries.max.wait.ms") or 0.0) / 1000.0
        _check_names(conf)

    def __repr__(self) -> str:
        return f"RegistrySettings(urls={self.urls!r})"


def with_mock_url(conf: Mapping[str, Any]) -> Mapping[str, Any]:
    """Properties of a client of a registry within the process."""
    url = conf.get("url")
    return conf if isinstance(url, str) and url.startswith(MOCK) else {**conf, "url": MOCK}


def _check_names(conf: Mapping[str, Any]) -> None:
    unknown = [str(name) for name in conf if name not in KNOWN]
    if unknown:
        close = close_matches(unknown[0], list(KNOWN))
        raise ConfigError(f"Unrecognized properties: {', '.join(unknown)}" +
                          (f'; did you mean "{close[0]}"?' if close else ""))
    if not conf.get(f"{BEARER}credentials.source"):
        lonely = [name for name in conf if name.startswith(BEARER) and conf[name] is not None]
        if lonely:
            raise ConfigError(f"Unrecognized properties: {', '.join(lonely)}: they need bearer.auth.credentials.source")


def _text(conf: Mapping[str, Any], name: str) -> str | None:
    given = conf.get(name)
    if given is not None and not isinstance(given, str):
        raise TypeError(f"{name} must be a str, not {type(given)}")
    return given


def _number(conf: Mapping[str, Any], name: str) -> float | None:
    given = conf.get(name)
    if given is None:
        return _NUMBERS[name]
    if not isinstance(given, int | float):
        raise TypeError(f"{name} must be a number, not {type(given)}")
    if not given >= 0:  # NaN is not either
        raise ConfigError(f"{name} must be 0 or more, not {given}")
    return given


def _addresses(conf: Mapping[str, Any]) -> list[SplitResult]:
    given = _text(conf, "url")
    if given is None:
        _check_names(conf)  # perhaps it was misspelt
        raise ConfigError("Missing required configuration property url")
    found = [_address(url.strip().rstrip("/")) for url in given.split(",")]
    if len({address.scheme == "mock" for address in found}) > 1:
        raise ConfigError("url names a registry within the process (mock://) beside others: give one kind")
    return found


def _address(url: str) -> SplitResult:
    url = MOCK if url == "mock:" else url
    try:
        address = urlsplit(url)
        _ = address.port  # 0 will do, as in confluent_kafka: tests of programs name so what is never asked
    except ValueError:
        raise ConfigError(f"Invalid url {_shown(url)}") from None
    if address.scheme != "mock" and not (address.scheme in ("http", "https") and address.hostname):
        raise ConfigError(f"Invalid url {_shown(url)}: expected http://HOST:PORT, https://HOST:PORT or mock://NAME")
    return address


def _shown(url: str) -> str:
    """A URL without credentials."""
    before, at, after = url.rpartition("@")
    return after if at and before else url


def _bare(address: SplitResult) -> str:
    """A URL without credentials."""
    if address.scheme == "mock":
        return f"{MOCK}{address.netloc}{address.path}"
    return urlunsplit(address._replace(netloc=address.netloc.rpartition("@")[2], query="", fragment=""))


def _basic(conf: Mapping[str, Any], address: SplitResult) -> tuple[str, str] | None:
    within = None
    if address.username or address.password:
        within = (unquote(address.username or ""), unquote(address.password or ""))
    given = _text(conf, "basic.auth.user.info")
    if given is None:
        return within
    if within is not None:
        raise ConfigError("basic.auth.user.info configured with userinfo credentials in the URL. Remove userinfo "
                          "credentials from the url or remove basic.auth.user.info from the configuration")
    user, colon, password = given.partition(":")
    if not colon:
        raise ConfigError("basic.auth.user.info must be in the form of {username}:{password}")
    return user, password


def _tls(conf: Mapping[str, Any]) -> TlsFiles:
    ca = conf.get("ssl.ca.location")
    files = TlsFiles(ca if isinstance(ca, bool) else _text(conf, "ssl.ca.location"),
                     *(_text(conf, f"ssl.{part}") for part in ("certificate.location", "key.location", "key.password")))
    if files.certificate is None and (files.key is not None or files.password is not None):
        raise ConfigError("ssl.certificate.location required when configuring ssl.key.location or ssl.key.password")
    return files
