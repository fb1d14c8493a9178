"""How the properties of security belong together: Java's JAAS line taken apart, contradictions refused.

Works on plain mappings. Read next: `config.rules`, which calls it; `net.auth.tls` and `net.auth.mechanisms`, which
act on the properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headrace.errors import ConfigError

__all__ = ["GRANTS", "JWT_BEARER", "MECHANISMS", "by_assertion", "settle_security", "unheeded_security"]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM")
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
GRANTS = ("client_credentials", JWT_BEARER)
"""Values of "sasl.oauthbearer.grant.type"."""
_SASL_ONLY = ("sasl.mechanism", "sasl.username", "sasl.password", "sasl.jaas.config", "oauth_cb")
_WITH_PASSWORD = MECHANISMS[:3]
_ASSERTION = "sasl.oauthbearer.assertion."
_OF_SIGNING = ("private.key.file", "private.key.pem", "private.key.passphrase", "jwt.template.file", "claim.aud",
               "claim.iss", "claim.sub")
_OF_EACH_ASSERTION = ("claim.exp.seconds", "claim.nbf.seconds", "claim.jti.include")

_OPTION = r'[\w.-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;"]+)'
_JAAS = rf"\s*(?:([\w.$]+)\s+)?(?:required|requisite|sufficient|optional)((?:\s+{_OPTION})*)\s*;\s*"
_EACH_OPTION = r'([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))'
_MODULES = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
    "Krb5LoginModule": ("GSSAPI",),
    "IAMLoginModule": ("AWS_MSK_IAM",),
}
_MEANINGS = {
    "username": "sasl.username", "password": "sasl.password", "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret", "scope": "sasl.oauthbearer.scope",
    "serviceName": "sasl.kerberos.service.name", "keyTab": "sasl.kerberos.keytab",
    "principal": "sasl.kerberos.principal", "awsProfileName": "sasl.aws.profile", "awsRoleArn": "sasl.aws.role.arn",
    "awsRoleSessionName": "sasl.aws.role.session.name", "awsRoleExternalId": "sasl.aws.role.external.id",
    "awsStsRegion": "sasl.aws.sts.region",
}
"""Options of Java's login modules by the property that means the same."""
_DEFAULTS = ("kafka", "headrace")
"""Of "sasl.kerberos.service.name" and of "sasl.aws.role.session.name"."""


def settle_security(given: Mapping[str, Any], values: dict[str, Any]) -> None:
    """Fill in what ``sasl.jaas.config`` and other properties imply, and refuse what cannot work.

    Args:
        given: what the user gave.
        values: every property's value; completed here.

    Raises:
        ConfigError: the properties contradict each other, or one is missing.
    """
    if not values["security.protocol"].startswith("sasl"):
        return
    if "sasl.mechanism" not in given and any(name in given for name in _SASL_ONLY):
        raise ConfigError(f'"sasl.mechanism" is missing: give one of {", ".join(MECHANISMS)}')
    if values["sasl.jaas.config"]:
        _read_jaas(values)
    mechanism = values["sasl.mechanism"]
    if mechanism in _WITH_PASSWORD:
        _check_password(mechanism, values)
    elif mechanism == "OAUTHBEARER":
        _check_oauth(given, values)
    elif mechanism == "GSSAPI" and not values["sasl.kerberos.service.name"]:
        raise ConfigError('"sasl.kerberos.service.name" is empty: give the first part of the brokers\' principal')


def unheeded_security(given: Mapping[str, Any], protocol: str) -> str | None:
    """What to warn of where credentials are given and never used; other clients begin without them, too.

    Args:
        given: what the user gave.
        protocol: the value of "security.protocol".
    """
    name = next((name for name in _SASL_ONLY if name in given), None)
    if name is None or protocol.startswith("sasl"):
        return None
    wanted = '"sasl_ssl"' if protocol == "ssl" else '"sasl_ssl" (or "sasl_plaintext")'
    return (f'"{name}" is given and has no effect: "security.protocol" is "{protocol}", which is without SASL: set it '
            f"to {wanted}")


def _check_password(mechanism: str, values: Mapping[str, Any]) -> None:
    for name in ("sasl.username", "sasl.password"):
        if not values[name]:
            raise ConfigError(f'"{name}" is missing: SASL mechanism {mechanism} needs it')
        if "\0" in values[name]:
            raise ConfigError(f'"{name}" must not contain a NUL character')


def _check_oauth(given: Mapping[str, Any], values: dict[str, Any]) -> None:
    from headrace.config.named_values import IDENTITY

    callback, unsecured = values["oauth_cb"] is not None, values["enable.sasl.oauthbearer.unsecure.jwt"]
    endpoint, identity = values["sasl.oauthbearer.token.endpoint.url"], values[IDENTITY]
    if not values["sasl.oauthbearer.method"]:
        asked = (endpoint or identity != "none") and not callback and not unsecured
        values["sasl.oauthbearer.method"] = "oidc" if asked else "default"
    if values["sasl.oauthbearer.method"] == "oidc":
        if callback or unsecured:
            other = "oauth_cb" if callback else "enable.sasl.oauthbearer.unsecure.jwt"
            raise ConfigError(f'"{other}" and "sasl.oauthbearer.method": "oidc" exclude each other: give one of them')
        if identity == "none":
            _settle_grant(given, values)
        else:
            _check_identity(identity, values)
        if endpoint and not _is_address(endpoint):
            raise ConfigError('"sasl.oauthbearer.token.endpoint.url" is no address: expected https://host/path')
    elif callback and unsecured:
        raise ConfigError('"oauth_cb" and "enable.sasl.oauthbearer.unsecure.jwt" exclude each other: give one of them')
    elif not callback and not unsecured:
        raise ConfigError('SASL mechanism OAUTHBEARER needs a source of tokens: "oauth_cb", or '
                          '"sasl.oauthbearer.method": "oidc" with "sasl.oauthbearer.token.endpoint.url"')


def _check_identity(identity: str, values: Mapping[str, Any]) -> None:
    from headrace.config.named_values import AWS_IAM, IDENTITY, aws_identity, azure_query

    if identity == AWS_IAM:
        aws_identity(values["sasl.oauthbearer.config"])
    elif not azure_query(values["sasl.oauthbearer.config"]) and not values["sasl.oauthbearer.token.endpoint.url"]:
        raise ConfigError(f'"sasl.oauthbearer.config" is missing: "{IDENTITY}": "{identity}" needs '
                          'query=api-version=...&resource=..., or "sasl.oauthbearer.token.endpoint.url" with all of it')


def _settle_grant(given: Mapping[str, Any], values: dict[str, Any]) -> None:
    """Take Java's class for the grant type that it is, and look whether all is there that the grant needs."""
    grant = values["sasl.oauthbearer.jwt.retriever.class"]
    if grant:
        if given.get("sasl.oauthbearer.grant.type", grant) != grant:
            raise ConfigError('"sasl.oauthbearer.grant.type" and "sasl.oauthbearer.jwt.retriever.class" contradict '
                              "each other: give one of them")
        values["sasl.oauthbearer.grant.type"] = grant
    _require("token.endpoint.url", values)
    if by_assertion(values):
        _check_assertion(given, values)
    else:
        _require("client.id", values)
        _require("client.secret", values, f', or "{_ASSERTION}private.key.file" in its place')


def _require(name: str, values: Mapping[str, Any], instead: str = "") -> None:
    if not values[f"sasl.oauthbearer.{name}"]:
        raise ConfigError(f'"sasl.oauthbearer.{name}" is missing: "sasl.oauthbearer.method": "oidc" needs it{instead}')


def by_assertion(values: Mapping[str, Any]) -> bool:
    """Whether a token endpoint is shown an assertion: by the grant that is nothing else, or in a secret's place.

    Where there is a secret as well, that choice is Java's (KIP-1258); librdkafka sends the secret.
    """
    if values["sasl.oauthbearer.grant.type"] == JWT_BEARER or values[f"{_ASSERTION}file"]:
        return True
    key = values[f"{_ASSERTION}private.key.file"] or values[f"{_ASSERTION}private.key.pem"]
    return bool(key and (values[f"{_ASSERTION}claim.iss"] or not values["sasl.oauthbearer.client.secret"]))


def _check_assertion(given: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse what librdkafka refuses: no source of assertions, two of them, claims for one that is ready."""
    ready, key, text = (f"{_ASSERTION}{name}" for name in ("file", "private.key.file", "private.key.pem"))
    if not any(values[name] for name in (ready, key, text)):
        raise ConfigError(f'"{key}" is missing: "sasl.oauthbearer.grant.type": "{JWT_BEARER}" needs it, or "{text}", '
                          f'or "{ready}"')
    if values["sasl.oauthbearer.grant.type"] != JWT_BEARER and values["sasl.oauthbearer.client.secret"]:
        return  # several ways are given, and the best is taken
    if values[ready]:
        others = [name for name in _OF_SIGNING if values[f"{_ASSERTION}{name}"]]
        others += [name for name in _OF_EACH_ASSERTION if f"{_ASSERTION}{name}" in given]
        if others:
            raise ConfigError(f'"{ready}" and "{_ASSERTION}{others[0]}" exclude each other: what is in the file is '
                              "sent as it is; give one of them")
    elif values[key] and values[text]:
        raise ConfigError(f'"{key}" and "{text}" exclude each other: give one of them')


def _is_address(url: str) -> bool:
    from urllib.parse import urlsplit  # slow to import

    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 \
            and re.fullmatch(r"[!-~]+", url) is not None
    except ValueError:  # a port that is none, brackets that do not match
        return False


def _read_jaas(values: dict[str, Any]) -> None:
    """Take the JAAS line's options over into the properties that they mean."""
    found = re.fullmatch(_JAAS, values["sasl.jaas.config"], re.IGNORECASE | re.DOTALL)
    if found is None:
        raise ConfigError('"sasl.jaas.config" cannot be read: expected one entry such as org.apache.kafka.common.'
                          'security.plain.PlainLoginModule required username="..." password="...";')
    mechanism = values["sasl.mechanism"]
    if found[1] is not None:  # the module's name; some guides leave it out
        module = found[1].rpartition(".")[2]
        if module not in _MODULES:
            raise ConfigError(f'"sasl.jaas.config" names {module}, which is not known: expected one of '
                              f"{', '.join(_MODULES)}")
        if mechanism not in _MODULES[module]:
            raise ConfigError(f'"sasl.jaas.config" names {module}, which does not go with "sasl.mechanism": '
                              f'"{mechanism}": expected {" or ".join(_MODULES[module])}')
    options = {name: re.sub(r"\\(.)", r"\1", quoted) if quoted or not bare else bare
               for name, quoted, bare in re.findall(_EACH_OPTION, found[2], re.DOTALL)}
    for option, value in options.items():
        name = _MEANINGS.get(option)
        if name is not None:
            if values[name] not in ("", *_DEFAULTS, value):
                raise ConfigError(f'"sasl.jaas.config" and "{name}" have different values: give one of them')
            values[name] = value
    if options.get("tokenauth", "").lower() == "true":
        values["sasl.scram.tokenauth"] = True
    _read_oauth_options(options, values)


def _read_oauth_options(options: Mapping[str, str], values: dict[str, Any]) -> None:
    from headrace.config.named_values import escaped

    extensions = [f"{name.removeprefix('extension_')}={escaped(value)}" for name, value in options.items()
                  if name.startswith("extension_")]
    if extensions and not values["sasl.oauthbearer.extensions"]:
        values["sasl.oauthbearer.extensions"] = ",".join(extensions)
    subject = options.get("unsecuredLoginStringClaim_sub")
    if subject is not None:
        values["enable.sasl.oauthbearer.unsecure.jwt"] = True
        life = options.get("unsecuredLoginLifetimeSeconds")
        values["sasl.oauthbearer.config"] = f"principal={subject}" + (f" lifeSeconds={life}" if life else "")
