"""Keys from AWS, found as all its programs find them: in variables, files, metadata services; or those of a role.

That is botocore's matter, which is loaded where it is needed and asks in a thread. Source: the options of
IAMLoginModule in aws-msk-iam-auth. Read next: `machines.cluster.sasl.aws_msk_iam`, `net.auth.web_identity`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any

from headrace.errors import DependencyError, KafkaError, KafkaException
from headrace.machines.cluster.sasl.aws_msk_iam import AwsKeys
from headrace.machines.cluster.sasl.exchange import one_line, refused

__all__ = ["AwsSession", "asked_once", "aws_failure", "require_botocore"]

_REGION = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.")
_TOO_MANY, _SERVER_FAILS = 429, 500
_SLOW_DOWN = ("Throttling", "ThrottlingException", "RequestLimitExceeded")
"""Codes of refusals that pass by."""


def require_botocore(needed_by: str) -> str:
    """See that botocore is there.

    Args:
        needed_by: a property and its value.

    Returns:
        What to say where it turns out to be too old.

    Raises:
        DependencyError: it is not installed.
    """
    needed = f"{needed_by} needs the package botocore, 1.42.25 or later: pip install 'headrace[aws]'"
    if find_spec("botocore") is None:
        raise DependencyError(needed)
    return needed


def aws_failure(what: str, error: Exception) -> KafkaException:
    """What AWS or botocore said when they gave no `what`: `_AUTHENTICATION`, or `_TRANSPORT` where that may pass."""
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

    passes = isinstance(error, (ConnectionError, HTTPClientError))
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = error.response.get("Error", {}).get("Code", "")
        passes = status >= _SERVER_FAILS or status == _TOO_MANY or code in _SLOW_DOWN
    why = one_line(str(error)) or type(error).__name__
    return KafkaException(KafkaError(KafkaError._TRANSPORT if passes else KafkaError._AUTHENTICATION,
                                     f"no {what} from AWS: {why}"))


def asked_once(config: Mapping[str, Any]) -> Any:
    """How botocore asks a service: for no longer than a login may take, and once. Who needs the answer asks again."""
    from botocore.config import Config

    dial_ms, read_ms = config["sasl.login.connect.timeout.ms"], config["sasl.login.read.timeout.ms"]
    return Config(connect_timeout=dial_ms / 1000.0, read_timeout=read_ms / 1000.0, retries={"total_max_attempts": 1})


class AwsSession:
    """One client's way to AWS. Called from threads.

    Args:
        config: the client's properties.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._of_role: Any = None
        require_botocore('"sasl.mechanism": "AWS_MSK_IAM"')

    def keys(self, host: str) -> tuple[AwsKeys, str]:
        """Keys that hold now, and the region to sign for.

        Args:
            host: the broker's, whose name says where it is unless it is an alias.

        Raises:
            KafkaException: `_AUTHENTICATION`: there are none, or nothing says the region; `_TRANSPORT`: no answer.
        """
        try:
            region = self._region_of(host)
            found = self._credentials(region)
            frozen = found.get_frozen_credentials() if found is not None else None
        except KafkaException:
            raise
        except Exception as error:  # botocore's have many classes
            raise aws_failure("keys", error) from None
        if frozen is None:
            raise refused("no keys from AWS: neither variables nor files nor a metadata service have any: set "
                          'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "sasl.aws.profile"')
        return AwsKeys(frozen.access_key, frozen.secret_key, frozen.token), region

    @cached_property
    def _session(self) -> Any:
        from botocore.session import Session

        return Session(profile=self._config["sasl.aws.profile"] or None)

    def _region_of(self, host: str) -> str:
        named = _REGION.search(host)
        region = self._config["sasl.aws.region"] or (named[1] if named else self._session.get_config_variable("region"))
        if not region:
            raise refused(f'the name of broker {host} does not say its AWS region: set "sasl.aws.region"')
        return str(region)

    def _credentials(self, region: str) -> Any:
        if not self._config["sasl.aws.role.arn"]:
            return self._session.get_credentials()
        if self._of_role is None:
            self._of_role = self._assumed(self._config["sasl.aws.sts.region"] or region)
        return self._of_role

    def _assumed(self, region: str) -> Any:
        from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

        config = self._config
        extra = {"RoleSessionName": config["sasl.aws.role.session.name"]}
        if config["sasl.aws.role.external.id"]:
            extra["ExternalId"] = config["sasl.aws.role.external.id"]
        own = self._session.get_credentials()
        if own is None:
            return None
        client = partial(self._session.create_client, region_name=region, config=asked_once(config))
        fetcher = AssumeRoleCredentialFetcher(client, own, config["sasl.aws.role.arn"], extra_args=extra)
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
