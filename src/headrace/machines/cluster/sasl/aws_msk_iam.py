"""AWS_MSK_IAM: who one is by AWS's word, at Amazon's brokers. A request that is never sent is signed, and shown.

Source: the README of aws-msk-iam-auth; AWS, "Create a signed AWS API request" (Signature Version 4, by query string).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from urllib.parse import quote

from headrace.machines.cluster.sasl.exchange import refused

__all__ = ["AwsKeys", "AwsMskIam"]

_ACTION, _SERVICE, _ALGORITHM = "kafka-cluster:Connect", "kafka-cluster", "AWS4-HMAC-SHA256"
_VERSION = "2020_10_22"
_VALID_S = 900
_OF_NOTHING = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """What AWS signs by.

    Attributes:
        access_key: the id of the key; it is shown to brokers.
        secret_key: the key itself.
        session_token: goes with keys that are temporary; it is shown to brokers.
    """

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


class AwsMskIam:
    """One authentication by a signature.

    Args:
        host: the broker's, as it was dialled.
        region: of the brokers, such as ``eu-central-1``.
        keys: to sign with.
        moment: the time in UTC, such as ``20260203T040506Z``; what is signed holds for 15 minutes.
        user_agent: for AWS's records and conditions.
    """

    name = "AWS_MSK_IAM"
    slow = False
    remedy = "check that the identity may do kafka-cluster:Connect, the region, and the clocks"

    def __init__(self, host: str, region: str, keys: AwsKeys, moment: str, user_agent: str) -> None:
        self.done = False
        signed = _signed(host, region, keys, moment)
        shown = {name.lower(): value for name, value in signed.items()}
        self._shown = json.dumps({"version": _VERSION, "host": host, "user-agent": user_agent, **shown}).encode()

    def first(self) -> bytes:
        """The request with its signature."""
        return self._shown

    def step(self, challenge: bytes) -> bytes | None:
        """The broker says which of its requests this was, once it believes the signature."""
        try:
            answer = json.loads(challenge)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("version") != _VERSION:
            raise refused(f"{self.name}: the broker's answer is none of version {_VERSION}: {self.remedy}")
        self.done = True
        return None


def _signed(host: str, region: str, keys: AwsKeys, moment: str) -> Mapping[str, str]:
    scope = (moment[:8], region, _SERVICE, "aws4_request")
    query = {"Action": _ACTION, "X-Amz-Algorithm": _ALGORITHM, "X-Amz-Credential": "/".join((keys.access_key, *scope)),
             "X-Amz-Date": moment, "X-Amz-Expires": str(_VALID_S)}
    if keys.session_token:
        query["X-Amz-Security-Token"] = keys.session_token
    query["X-Amz-SignedHeaders"] = "host"
    asked = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(query.items()))
    request = "\n".join(("GET", "/", asked, f"host:{host}", "", "host", _OF_NOTHING))
    text = "\n".join((_ALGORITHM, moment, "/".join(scope), hashlib.sha256(request.encode()).hexdigest()))
    key = reduce(_mac, scope, f"AWS4{keys.secret_key}".encode())
    return query | {"X-Amz-Signature": _mac(key, text).hex()}


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
