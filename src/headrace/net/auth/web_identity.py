"""Tokens in which AWS says who this client is: by the role of its machine, pod or function, without a secret.

One attempt here is one request; `net.auth.tokens` decides when there is another. Where AWS's credentials come from is
botocore's matter: its variables, files and metadata services. Source: AWS STS, GetWebIdentityToken; librdkafka's
``aws_iam``. Read next: `config.named_values`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any

from headrace.config.named_values import AWS_IAM, IDENTITY, AwsIdentity, aws_identity
from headrace.errors import KafkaException
from headrace.machines.cluster.sasl.exchange import refused
from headrace.net.auth.aws_session import asked_once, aws_failure, require_botocore
from headrace.net.auth.tokens import Token

__all__ = ["web_identity"]


def web_identity(config: Mapping[str, Any], extensions: Mapping[str, str]) -> Callable[[], Awaitable[Token]]:
    """What gets one token from AWS.

    Raises:
        ConfigError: "sasl.oauthbearer.config" does not say for whom the token is.
        DependencyError: the package botocore is not installed.
    """
    needed = require_botocore(f'"{IDENTITY}": "{AWS_IAM}"')
    service = _SecurityTokenService(aws_identity(config["sasl.oauthbearer.config"]), needed, config)

    async def fetch() -> Token:
        value, expires_at = await asyncio.get_running_loop().run_in_executor(None, service.ask)
        return Token(value, expires_at, extensions)

    return fetch


class _SecurityTokenService:
    """AWS's side, called from a thread: making botocore's client takes a good part of a second."""

    def __init__(self, identity: AwsIdentity, needed: str, config: Mapping[str, Any]) -> None:
        self._identity, self._needed, self._config = identity, needed, config

    @cached_property
    def _client(self) -> Any:
        from botocore.session import Session

        session, identity = Session(), self._identity
        if identity.debug:
            session.set_stream_logger("botocore", logging.DEBUG)
        return session.create_client("sts", region_name=identity.region, endpoint_url=identity.sts_endpoint,
                                     config=asked_once(self._config))

    def ask(self) -> tuple[str, float]:
        """A token, and when it expires in seconds since the epoch.

        Raises:
            KafkaException: `_AUTHENTICATION` when AWS gives none, `_TRANSPORT` when it does not answer.
        """
        identity = self._identity
        tags = {"Tags": [{"Key": name, "Value": value} for name, value in identity.tags.items()]}
        try:
            if not hasattr(self._client, "get_web_identity_token"):
                raise refused(self._needed)  # an older botocore
            answer = self._client.get_web_identity_token(
                Audience=[identity.audience], SigningAlgorithm=identity.signing_algorithm,
                DurationSeconds=identity.duration_seconds, **(tags if identity.tags else {}))
            return answer["WebIdentityToken"], answer["Expiration"].timestamp()
        except KafkaException:
            raise
        except Exception as error:  # of many classes: no credentials, a region or URL that is none, an odd answer
            raise aws_failure("OAuth token", error) from None
