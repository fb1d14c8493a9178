"""Calls about users: SCRAM credentials, quotas and delegation tokens.

It must not know the faces. Read next: `machines.admin.user_requests`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from headrace.arguments import instance_of, list_of, mapping_of
from headrace.client.admin.admin_area import AdminArea, ByKey, Single, flag, seconds_of, texts_of, without_duplicates
from headrace.client.admin.admin_engine import ANY_NODE, CONTROLLER
from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import user_requests as requests
from headrace.types.users import (
    DelegationToken,
    QuotaEntity,
    QuotaFilter,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)

__all__ = ["UserCalls"]

_SALT_BYTES = 64
_DEFAULT_MS = -1
_LONGEST_TOKEN_S = 100 * 366 * 86_400


class UserCalls(AdminArea):
    """Users."""

    def describe_user_scram_credentials(
        self, users: list[str] | None = None, *, request_timeout: float | None = None
    ) -> Single[dict[str, UserScramCredentialsDescription]] | ByKey[str, UserScramCredentialsDescription]:
        """Find which SCRAM credentials users have. Futures by user; with None one future, of all by user.

        Args:
            users: names; None for all users that have some.
            request_timeout: seconds for the whole call.
        """
        names, limit_s = None if users is None else texts_of(users, "users", filled=False), self.limit(request_timeout)
        if names is not None and "" in names:
            raise ValueError("users has an empty name")
        request = requests.describe_users(names)

        async def describe() -> dict[str, UserScramCredentialsDescription | KafkaError]:
            without_duplicates(names or (), "users")
            return await self.engine.at(CONTROLLER, request, limit_s, requests.read_users)

        async def describe_all() -> dict[str, UserScramCredentialsDescription]:
            found: dict[str, UserScramCredentialsDescription] = {}
            for user, each in (await describe()).items():
                if isinstance(each, KafkaError):
                    raise KafkaException(each)
                found[user] = each
            return found

        return describe_all() if names is None else ByKey(dict.fromkeys(names), describe)

    def alter_user_scram_credentials(
        self, alterations: list[UserScramCredentialAlteration], *, request_timeout: float | None = None
    ) -> ByKey[str, None]:
        """Make, replace and delete SCRAM credentials. Futures by user.

        Args:
            alterations: what to do, at most one thing for each user and mechanism.
            request_timeout: seconds for the whole call.
        """
        given = list_of(UserScramCredentialAlteration, alterations, "alterations", filled=True)
        for each in given:
            _check_alteration(each)
        limit_s = self.limit(request_timeout)

        async def alter() -> dict[str, KafkaError | None]:
            for each in given:
                _check_mechanism(each)
            salts = [os.urandom(_SALT_BYTES) for _ in given]
            request = await asyncio.to_thread(requests.alter_users, given, salts)  # hashing a million times takes long
            return await self.engine.at(CONTROLLER, request, limit_s, requests.read_altered_users)

        return ByKey(dict.fromkeys(each.user for each in given), alter)

    def describe_client_quotas(
        self, quota_filter: QuotaFilter | None = None, *, request_timeout: float | None = None
    ) -> Single[dict[QuotaEntity, dict[str, float]]]:
        """Find quotas that fit a filter or, with None, all. The result has them by whom they are for, and by name."""
        wanted = QuotaFilter() if quota_filter is None else instance_of(QuotaFilter, quota_filter, "quota_filter")
        limit_s = self.limit(request_timeout)
        return self.engine.single(ANY_NODE, requests.describe_quotas(wanted), limit_s, requests.read_quotas)

    def alter_client_quotas(
        self, changes: dict[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False,
        request_timeout: float | None = None,
    ) -> ByKey[QuotaEntity, None]:
        """Set and remove quotas. Futures by whom they are for.

        Args:
            changes: quotas by whom they are for and by name, for example producer_byte_rate; None removes one.
            validate_only: check whether it could be done, and do nothing.
            request_timeout: seconds for the whole call.
        """
        given = mapping_of(QuotaEntity, Mapping, changes, "changes")  # type: ignore[type-abstract]
        for entity in given:
            if entity == QuotaEntity():
                raise ValueError("a QuotaEntity has neither user, client_id nor ip")
        limit_s = self.limit(request_timeout)
        request = requests.alter_quotas(given, flag(validate_only, "validate_only"))
        return ByKey(given, lambda: self.engine.at(CONTROLLER, request, limit_s, requests.read_altered_quotas))

    def create_delegation_token(
        self, *, renewers: list[str] | None = None, owner: str | None = None, max_lifetime: float | None = None,
        request_timeout: float | None = None,
    ) -> Single[DelegationToken]:
        """Make a token that logs in like its owner. The result is the token with its secret.

        Args:
            renewers: who else may renew it, as ``User:alice``.
            owner: whose rights it has; None for this client's user.
            max_lifetime: seconds, more than 0; None for as long as the cluster allows.
            request_timeout: seconds for the whole call.
        """
        others = texts_of(list(renewers or ()), "renewers", filled=False)
        limit_s = self.limit(request_timeout)
        lifetime_ms = _milliseconds(max_lifetime, "max_lifetime")
        if not lifetime_ms:
            raise ValueError("max_lifetime is 0: give more, or None for as long as the cluster allows")
        request = requests.create_token(others, owner, lifetime_ms)
        return self.engine.single(CONTROLLER, request, limit_s,
                                  lambda reply: requests.read_created_token(reply, others), repeatable=False)

    def describe_delegation_tokens(
        self, owners: list[str] | None = None, *, request_timeout: float | None = None
    ) -> Single[list[DelegationToken]]:
        """Find tokens of some owners or, with None, all that this client may see. The result is the list of them."""
        given = None if owners is None else texts_of(owners, "owners", filled=False)
        limit_s = self.limit(request_timeout)
        return self.engine.single(ANY_NODE, requests.describe_tokens(given), limit_s, requests.read_tokens)

    def renew_delegation_token(
        self, hmac: bytes, *, period: float | None = None, request_timeout: float | None = None
    ) -> Single[int]:
        """Let a token live on. The result is until when it is valid, in milliseconds since the epoch.

        Args:
            hmac: its secret.
            period: seconds from now; None for the cluster's default.
            request_timeout: seconds for the whole call.
        """
        request = requests.renew_token(instance_of(bytes, hmac, "hmac"), _milliseconds(period, "period"))
        return self.engine.single(CONTROLLER, request, self.limit(request_timeout), requests.read_token_time)

    def expire_delegation_token(
        self, hmac: bytes, *, after: float | None = None, request_timeout: float | None = None
    ) -> Single[int]:
        """End a token. The result is until when it is valid, in milliseconds since the epoch.

        Args:
            hmac: its secret.
            after: seconds from now; None ends it at once.
            request_timeout: seconds for the whole call.
        """
        request = requests.expire_token(instance_of(bytes, hmac, "hmac"), _milliseconds(after, "after"))
        return self.engine.single(CONTROLLER, request, self.limit(request_timeout), requests.read_token_time)


def _milliseconds(given: Any, name: str) -> int:
    """Brokers take what is negative for their own default, and tokens would live longer than was meant."""
    return _DEFAULT_MS if given is None else int(seconds_of(given, name, _LONGEST_TOKEN_S) * 1000)


def _check_alteration(each: UserScramCredentialAlteration) -> None:
    if not instance_of(str, each.user, "user"):
        raise ValueError("the name of a user is empty")
    if isinstance(each, UserScramCredentialDeletion):
        instance_of(ScramMechanism, each.mechanism, "mechanism")
    elif isinstance(each, UserScramCredentialUpsertion):
        _check_upsertion(each)
    else:
        raise TypeError("each of alterations must be a UserScramCredentialUpsertion or a UserScramCredentialDeletion")


def _check_mechanism(each: UserScramCredentialAlteration) -> None:
    """Refuse the whole call, but by its futures, as confluent_kafka does."""
    found = each.scram_credential_info if isinstance(each, UserScramCredentialUpsertion) else each
    if isinstance(found, ScramCredentialInfo | UserScramCredentialDeletion) and (
            found.mechanism is ScramMechanism.UNKNOWN):
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, f'user "{each.user}": the SCRAM mechanism is UNKNOWN'))


def _check_upsertion(each: UserScramCredentialUpsertion) -> None:
    if not instance_of(bytes, each.password, "password"):
        raise ValueError("password is empty")
    if each.salt is not None and not instance_of(bytes, each.salt, "salt"):
        raise ValueError("salt is empty: give bytes, or None for random ones")
    info = instance_of(ScramCredentialInfo, each.scram_credential_info, "scram_credential_info")
    if instance_of(int, info.iterations, "iterations") < 1:
        raise ValueError(f"iterations must be at least 1, not {info.iterations}")
    instance_of(ScramMechanism, info.mechanism, "mechanism")
