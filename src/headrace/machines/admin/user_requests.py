"""Requests about SCRAM credentials, quotas and delegation tokens, and what their replies mean: pure functions.

Read next: `client.admin.user_calls`, which sends them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.errors import KafkaError
from headrace.machines.admin.admin_results import failure, raise_failure
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
from headrace.wire.messages.admin import quotas, security

__all__ = [
    "alter_quotas",
    "alter_users",
    "create_token",
    "describe_quotas",
    "describe_tokens",
    "describe_users",
    "expire_token",
    "read_altered_quotas",
    "read_altered_users",
    "read_created_token",
    "read_quotas",
    "read_token_time",
    "read_tokens",
    "read_users",
    "renew_token",
]

_ALTER = "ALTER on the cluster"
_PARTS = (("user", "user"), ("client-id", "client_id"), ("ip", "ip"))
_NAMED, _DEFAULT, _ANY = 0, 1, 2


def describe_users(users: Sequence[str] | None) -> security.DescribeUserScramCredentialsRequest:
    """Ask for the credentials of users; None for all."""
    names = None if users is None else [security.UserName(name=user) for user in users]
    return security.DescribeUserScramCredentialsRequest(users=names)


def read_users(
    reply: security.DescribeUserScramCredentialsResponse,
) -> dict[str, UserScramCredentialsDescription | KafkaError]:
    """The credentials of each user.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("SCRAM credentials", reply.error_code, reply.error_message, "DESCRIBE on the cluster")
    return {
        each.user: failure(f'user "{each.user}"', each.error_code, each.error_message, "DESCRIBE on the cluster")
        or UserScramCredentialsDescription(each.user, [
            ScramCredentialInfo(_mechanism(info.mechanism), info.iterations) for info in each.credential_infos])
        for each in reply.results
    }


def _mechanism(number: int) -> ScramMechanism:
    return ScramMechanism(number) if number in (1, 2) else ScramMechanism.UNKNOWN


def alter_users(
    alterations: Iterable[UserScramCredentialAlteration], salts: Iterable[bytes]
) -> security.AlterUserScramCredentialsRequest:
    """Ask to make, replace and delete credentials. Passwords are hashed here: that takes a while.

    Args:
        alterations: what to do.
        salts: random bytes for each, for those that come without.
    """
    deletions, upsertions = [], []
    for each, salt in zip(alterations, salts, strict=True):
        if isinstance(each, UserScramCredentialDeletion):
            deletions.append(security.ScramCredentialDeletion(name=each.user, mechanism=each.mechanism.value))
        elif isinstance(each, UserScramCredentialUpsertion):
            upsertions.append(_upsertion(each, each.salt or salt))
    return security.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)


def _upsertion(given: UserScramCredentialUpsertion, salt: bytes) -> security.ScramCredentialUpsertion:
    info = given.scram_credential_info
    kind = "sha256" if info.mechanism is ScramMechanism.SCRAM_SHA_256 else "sha512"
    return security.ScramCredentialUpsertion(
        name=given.user, mechanism=info.mechanism.value, iterations=info.iterations, salt=salt,
        salted_password=hashlib.pbkdf2_hmac(kind, given.password, salt, info.iterations))


def read_altered_users(reply: security.AlterUserScramCredentialsResponse) -> dict[str, KafkaError | None]:
    """How it ended for each user."""
    return {each.user: failure(f'user "{each.user}"', each.error_code, each.error_message, _ALTER)
            for each in reply.results}


# Quotas


def describe_quotas(wanted: QuotaFilter) -> quotas.DescribeClientQuotasRequest:
    """Ask for the quotas that fit."""
    components = []
    for kind, attribute in _PARTS:
        name = getattr(wanted, attribute)
        if name is not None:
            match = _ANY if name == QuotaFilter.ANY else _NAMED if name else _DEFAULT
            components.append(quotas.QuotaFilterComponent(
                entity_type=kind, match_type=match, match=name if match == _NAMED else None))
    return quotas.DescribeClientQuotasRequest(components=components, strict=wanted.strict)


def read_quotas(reply: quotas.DescribeClientQuotasResponse) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas of each entity.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("quotas", reply.error_code, reply.error_message, "DESCRIBE_CONFIGS on the cluster")
    return {_entity(each.entity): {value.key: value.value for value in each.values} for each in reply.entries or ()}


def alter_quotas(
    changes: Mapping[QuotaEntity, Mapping[str, float | None]], validate_only: bool
) -> quotas.AlterClientQuotasRequest:
    """Ask to set quotas, and to remove those that are None."""
    return quotas.AlterClientQuotasRequest(validate_only=validate_only, entries=[
        quotas.AlterableQuotaEntry(
            entity=[quotas.AlterableQuotaEntity(entity_type=kind, entity_name=getattr(entity, attribute) or None)
                    for kind, attribute in _PARTS if getattr(entity, attribute) is not None],
            ops=[quotas.QuotaOperation(key=name, value=value or 0.0, remove=value is None)
                 for name, value in values.items()])
        for entity, values in changes.items()])


def read_altered_quotas(reply: quotas.AlterClientQuotasResponse) -> dict[QuotaEntity, KafkaError | None]:
    """How it ended for each entity."""
    return {_entity(each.entity): failure(f"quotas of {_entity(each.entity)}", each.error_code, each.error_message,
                                          "ALTER_CONFIGS on the cluster") for each in reply.entries}


def _entity(parts: Iterable[Any]) -> QuotaEntity:
    names = dict(_PARTS)
    return QuotaEntity(**{names[part.entity_type]: part.entity_name or "" for part in parts
                          if part.entity_type in names})


# Delegation tokens


def create_token(
    renewers: Iterable[str], owner: str | None, lifetime_ms: int
) -> security.CreateDelegationTokenRequest:
    """Ask for a token; -1 milliseconds are as long as the cluster allows."""
    kind, name = _principal(owner) if owner is not None else (None, None)
    return security.CreateDelegationTokenRequest(
        owner_principal_type=kind, owner_principal_name=name, max_lifetime_ms=lifetime_ms,
        renewers=[security.CreatableRenewers(principal_type=_principal(each)[0], principal_name=_principal(each)[1])
                  for each in renewers])


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    return (kind, name) if colon else ("User", text)


def read_created_token(reply: security.CreateDelegationTokenResponse, renewers: Iterable[str]) -> DelegationToken:
    """The token.

    Raises:
        KafkaException: there is none because of an error.
    """
    raise_failure("the token", reply.error_code, None, "CREATE_TOKENS on the owner")
    owner = f"{reply.principal_type}:{reply.principal_name}"
    requester = f"{reply.token_requester_principal_type}:{reply.token_requester_principal_name}"
    return DelegationToken(
        reply.token_id, owner, owner if requester == ":" else requester, reply.issue_timestamp_ms,
        reply.expiry_timestamp_ms, reply.max_timestamp_ms, bytes(reply.hmac),
        [":".join(_principal(each)) for each in renewers])


def describe_tokens(owners: Iterable[str] | None) -> security.DescribeDelegationTokenRequest:
    """Ask for tokens of some owners; None for all that the client may see."""
    return security.DescribeDelegationTokenRequest(owners=None if owners is None else [
        security.DescribeDelegationTokenOwner(principal_type=_principal(each)[0], principal_name=_principal(each)[1])
        for each in owners])


def read_tokens(reply: security.DescribeDelegationTokenResponse) -> list[DelegationToken]:
    """The tokens.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("tokens", reply.error_code, None, "DESCRIBE on the tokens")
    return [
        DelegationToken(
            each.token_id, f"{each.principal_type}:{each.principal_name}",
            f"{each.token_requester_principal_type}:{each.token_requester_principal_name}", each.issue_timestamp,
            each.expiry_timestamp, each.max_timestamp, bytes(each.hmac),
            [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers])
        for each in reply.tokens
    ]


def renew_token(hmac: bytes, period_ms: int) -> security.RenewDelegationTokenRequest:
    """Ask to let a token live on; -1 milliseconds are the cluster's default."""
    return security.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)


def expire_token(hmac: bytes, period_ms: int) -> security.ExpireDelegationTokenRequest:
    """Ask to end a token in some milliseconds; -1 is at once."""
    return security.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)


def read_token_time(
    reply: security.RenewDelegationTokenResponse | security.ExpireDelegationTokenResponse,
) -> int:
    """Until when the token is valid, in milliseconds since the epoch.

    Raises:
        KafkaException: it was left as it is because of an error.
    """
    raise_failure("the token", reply.error_code)
    return reply.expiry_timestamp_ms
