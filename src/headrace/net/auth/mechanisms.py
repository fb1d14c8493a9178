"""Where authentication comes from: the SASL mechanism that the properties ask for, made anew for each connection.

Knows no sockets. Read next: `machines.cluster.sasl` for the messages, `net.auth.tokens` for OAUTHBEARER,
`net.auth.kerberos`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from headrace.machines.cluster.sasl.exchange import Mechanism
from headrace.net.timers import Clock
from headrace.types.records import NodeAddress

__all__ = ["MechanismSource", "mechanism_source"]

MechanismSource = Callable[[NodeAddress], Awaitable[Mechanism]]
"""Gives what authenticates once at a broker, or raises KafkaException."""

_NONCE_BYTES = 24


def mechanism_source(config: Mapping[str, Any], clock: Clock, jitter: Callable[[], float]) -> MechanismSource | None:
    """The source that a client's properties ask for; None without SASL. One serves all connections of a client.

    Args:
        config: the client's properties.
        clock: monotonic seconds.
        jitter: gives numbers in [0, 1).

    Raises:
        ConfigError: a property cannot be used.
        DependencyError: the mechanism needs a package that is not installed.
    """
    if not config["security.protocol"].startswith("sasl"):
        return None
    name = config["sasl.mechanism"]
    if name == "OAUTHBEARER":
        return _oauth(config, clock, jitter)
    if name == "GSSAPI":
        return _kerberos(config)
    if name == "AWS_MSK_IAM":
        return _aws(config)
    return _password(name, config)


def _password(name: str, config: Mapping[str, Any]) -> MechanismSource:
    from headrace.machines.cluster.sasl.plain import Plain
    from headrace.machines.cluster.sasl.scram import Scram

    async def make(node: NodeAddress) -> Mechanism:
        username, password = config["sasl.username"], config["sasl.password"]  # they may be replaced
        if name == Plain.name:
            return Plain(username, password)
        from secrets import token_urlsafe

        nonce = token_urlsafe(_NONCE_BYTES)
        return Scram(name, username, password, nonce, delegation_token=config["sasl.scram.tokenauth"])

    return make


def _oauth(config: Mapping[str, Any], clock: Clock, jitter: Callable[[], float]) -> MechanismSource:
    from headrace.config.named_values import AWS_IAM, IDENTITY, named_values
    from headrace.machines.cluster.sasl.oauthbearer import OAuthBearer
    from headrace.net.auth.tokens import TokenSource, from_callback, unsecured

    extensions = named_values(config["sasl.oauthbearer.extensions"])
    OAuthBearer("t", extensions)  # what cannot be sent shows now
    if config["sasl.oauthbearer.method"] == "oidc" and config[IDENTITY] == AWS_IAM:
        from headrace.net.auth.web_identity import web_identity

        fetch = web_identity(config, extensions)
    elif config["sasl.oauthbearer.method"] == "oidc":
        from headrace.net.auth.oidc import token_endpoint

        fetch = token_endpoint(config, extensions)
    elif config["oauth_cb"] is not None:
        fetch = from_callback(config["oauth_cb"], config["sasl.oauthbearer.config"], extensions)
    else:
        fetch = unsecured(config["sasl.oauthbearer.config"], extensions)
    source = TokenSource(
        fetch, clock, jitter,
        refresh_factor=config["sasl.login.refresh.window.factor"],
        backoff_s=(config["sasl.login.retry.backoff.ms"] / 1000.0, config["sasl.login.retry.backoff.max.ms"] / 1000.0),
    )

    async def make(node: NodeAddress) -> Mechanism:
        token = await source.get()
        return OAuthBearer(token.value, token.extensions)

    return make


def _kerberos(config: Mapping[str, Any]) -> MechanismSource:
    from headrace.net.auth.kerberos import Kerberos, require_gssapi

    require_gssapi()

    async def make(node: NodeAddress) -> Mechanism:
        return Kerberos(
            config["sasl.kerberos.service.name"], node.host, config["sasl.kerberos.principal"],
            config["sasl.kerberos.keytab"],
        )

    return make


def _aws(config: Mapping[str, Any]) -> MechanismSource:
    import asyncio
    from datetime import UTC, datetime

    from headrace.machines.cluster.sasl.aws_msk_iam import AwsMskIam
    from headrace.net.auth.aws_session import AwsSession

    session = AwsSession(config)

    async def make(node: NodeAddress) -> Mechanism:
        keys, region = await asyncio.get_running_loop().run_in_executor(None, session.keys, node.host)
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        return AwsMskIam(node.host, region, keys, moment, config["client.id"])

    return make
