"""Properties whose value is a list of ``name=value``: SASL extensions, and who a client is by Azure's or AWS's word.

Loaded where OAUTHBEARER is used. Read next: `net.auth.oidc`, `net.auth.web_identity`.
Source: CONFIGURATION.md of librdkafka; AWS STS, GetWebIdentityToken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.config.property import close_matches
from headrace.errors import ConfigError

__all__ = ["AWS_IAM", "AZURE_IMDS", "AZURE_TOKENS", "IDENTITY", "AwsIdentity", "aws_identity", "azure_query", "escaped",
           "named_values"]

IDENTITY: Final = "sasl.oauthbearer.metadata.authentication.type"
AZURE_IMDS, AWS_IAM = "azure_imds", "aws_iam"
AZURE_TOKENS: Final = "http://169.254.169.254/metadata/identity/oauth2/token"
"""Where the metadata service of an Azure machine gives tokens."""
_CONFIG: Final = "sasl.oauthbearer.config"
_EXTENSIONS: Final = "sasl.oauthbearer.extensions"
_BLANK = " \t\n\v\f\r"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0"}
_LIFE_S = range(60, 3601)
_ALGORITHMS = ("ES384", "RS256")
_MOST_TAGS = 50
_TAG = "tag_"
_OF_AWS = ("region", "audience", "duration_seconds", "signing_algorithm", "sts_endpoint", "aws_debug")


def named_values(text: str, name: str = _EXTENSIONS) -> dict[str, str]:
    """``name=value,name=value`` as a mapping; a comma that belongs to a value has a backslash in front.

    Args:
        text: the property's value. `\\t`, `\\n`, `\\r` and `\\0` are what they are in C.
        name: the property's name.

    Raises:
        ConfigError: it is not of this form. What it holds is not shown.
    """
    pairs = {}
    for field in re.findall(r"(?:[^\\,]|\\.?)+", text, re.DOTALL):
        field = re.sub(r"\\(.?)", lambda found: _ESCAPES.get(found[1], found[1]), field.lstrip(_BLANK), flags=re.DOTALL)
        if field := field.rstrip(_BLANK):
            key, sign, value = field.partition("=")
            if not sign or not key.strip(_BLANK):
                raise ConfigError(f'"{name}" cannot be read: expected name=value,name=value')
            pairs[key.strip(_BLANK)] = value.strip(_BLANK)
    return pairs


def escaped(value: str) -> str:
    """A value as `named_values` reads it."""
    return re.sub(r"([\\,])", r"\\\1", value)


def azure_query(config: str) -> str:
    """What the metadata service of an Azure machine is asked for, of ``query=api-version=...&resource=...``.

    Args:
        config: value of "sasl.oauthbearer.config".

    Raises:
        ConfigError: it cannot be read.
    """
    return named_values(config, _CONFIG).get("query", "")


@dataclass(frozen=True, slots=True)
class AwsIdentity:
    """How AWS is asked for a token that says who this client is.

    Attributes:
        region: of the service, such as ``eu-central-1``.
        audience: for whom the token is.
        duration_seconds: how long it lives, 60 to 3,600.
        signing_algorithm: ``ES384`` or ``RS256``.
        sts_endpoint: URL of the service where it is not the region's own one.
        debug: log what is said to AWS.
        tags: claims of one's own.
    """

    region: str
    audience: str
    duration_seconds: int
    signing_algorithm: str
    sts_endpoint: str | None
    debug: bool
    tags: Mapping[str, str]


def aws_identity(config: str) -> AwsIdentity:
    """What ``region=...,audience=...`` says, with ``tag_NAME=...`` for claims of one's own.

    Args:
        config: value of "sasl.oauthbearer.config".

    Raises:
        ConfigError: it cannot be read, a name is not known or missing, or a value is none that AWS takes.
    """
    given = named_values(config, _CONFIG)
    tags = {name.removeprefix(_TAG): given.pop(name) for name in list(given) if name.startswith(_TAG)}
    for name in given:
        if name not in _OF_AWS:
            close = close_matches(name, list(_OF_AWS))
            raise _wrong(f"has an unknown name {name!r}; " + (f"did you mean {close[0]!r}?" if close else
                                                              f"there are {', '.join(_OF_AWS)} and {_TAG}NAME"))
        if not given[name]:
            raise _wrong(f"has no value for {name!r}")
    for name in ("region", "audience"):
        if name not in given:
            raise _wrong(f'lacks {name!r}: "{IDENTITY}": "{AWS_IAM}" needs region=...,audience=...')
    algorithm = given.get("signing_algorithm", _ALGORITHMS[0])
    if algorithm not in _ALGORITHMS:
        raise _wrong(f"has another 'signing_algorithm' than {' or '.join(_ALGORITHMS)}")
    life_s = given.get("duration_seconds", "300")
    if not life_s.isascii() or not life_s.isdecimal() or int(life_s) not in _LIFE_S:
        raise _wrong(f"has a 'duration_seconds' that is not {_LIFE_S[0]} to {_LIFE_S[-1]}")
    debug = given.get("aws_debug", "none").lower()
    if debug not in ("none", "console"):
        raise _wrong("has another 'aws_debug' than none or console")
    if "" in tags:
        raise _wrong(f"has a tag without a name: {_TAG}NAME=...")
    if len(tags) > _MOST_TAGS:
        raise _wrong(f"has more than {_MOST_TAGS} tags")
    return AwsIdentity(given["region"], given["audience"], int(life_s), algorithm, given.get("sts_endpoint"),
                       debug == "console", tags)


def _wrong(what: str) -> ConfigError:
    return ConfigError(f'"{_CONFIG}" {what}')
