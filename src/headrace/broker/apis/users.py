"""SCRAM credentials (KIP-554) and quotas (KIP-546): they are checked, kept and shown, and nothing follows from them.

Read next: `broker.storage.accounts`, which keeps them.
"""

from __future__ import annotations

import ipaddress
from collections import Counter

from headrace.broker.cluster import ApiCall
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError
from headrace.wire.messages.admin.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredQuotaEntity,
    AlteredQuotaEntry,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuotaEntity,
    DescribedQuotaEntry,
    DescribedQuotaValue,
    QuotaFilterComponent,
    QuotaOperation,
)
from headrace.wire.messages.admin.security import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

__all__ = ["SERVES", "alter_client_quotas", "alter_user_scram_credentials", "describe_client_quotas",
           "describe_user_scram_credentials"]

_FEWEST_ITERATIONS, _MOST_ITERATIONS = 4096, 16384
_MECHANISMS = (1, 2)
"""SCRAM-SHA-256 and SCRAM-SHA-512."""
_USER, _CLIENT, _IP = "user", "client-id", "ip"
_NAMED, _DEFAULT, _ANY = 0, 1, 2
_RATES = {"producer_byte_rate": True, "consumer_byte_rate": True, "request_percentage": False,
          "controller_mutation_rate": False}
"""Quotas of users and clients, and whether they are whole numbers."""
_CONNECTIONS = {"connection_creation_rate": True}
"""Quotas of addresses."""
_ROUNDING = 1e-6
_HIGHEST = (1 << 63) - 1
_HIGHEST_OF_ADDRESSES = (1 << 31) - 1


_Change = ScramCredentialDeletion | ScramCredentialUpsertion


def describe_user_scram_credentials(
    call: ApiCall, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """The mechanisms of the users asked for, or of all that have any."""
    kept = call.cluster.catalog.accounts.credentials
    counts = Counter(each.name for each in request.users or ()) or Counter(list(kept))
    return DescribeUserScramCredentialsResponse(error_code=0, error_message="", results=[
        _described_user(name, kept.get(name), count) for name, count in counts.items()])


def _described_user(name: str, found: dict[int, int] | None, count: int) -> DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResult(user=name, error_code=0, error_message="", credential_infos=[])
    if count > 1:
        result.error_code, result.error_message = KafkaError.DUPLICATE_RESOURCE, f"User {name!r} is named twice"
    elif found is None:
        result.error_code, result.error_message = KafkaError.RESOURCE_NOT_FOUND, f"User {name!r} has no credentials"
    else:
        result.credential_infos = [CredentialInfo(mechanism=each, iterations=found[each]) for each in sorted(found)]
    return result


def alter_user_scram_credentials(
    call: ApiCall, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Make, replace and delete credentials, one of each user in a request."""
    accounts = call.cluster.catalog.accounts
    changes: list[_Change] = [*request.deletions, *request.upsertions]
    pending: dict[str, _Change] = {}
    results: dict[str, AlterUserScramCredentialsResult] = {}
    for each in changes:
        result = results.setdefault(each.name, AlterUserScramCredentialsResult(user=each.name, error_code=0,
                                                                                error_message=None))
        if result.error_code == 0:
            try:
                if pending.pop(each.name, None) is not None:
                    raise ApiError(KafkaError.DUPLICATE_RESOURCE, f"User {each.name!r} is changed twice")
                _check_credential(each, accounts.credentials.get(each.name, {}))
                pending[each.name] = each
            except ApiError as error:
                result.error_code, result.error_message = error.code, error.reason
    for user, change in pending.items():
        iterations = change.iterations if isinstance(change, ScramCredentialUpsertion) else None
        accounts.set_credential(user, change.mechanism, iterations)
    call.cluster.catalog.save()
    return AlterUserScramCredentialsResponse(results=list(results.values()))


def _check_credential(change: _Change, present: dict[int, int]) -> None:
    if not change.name:
        raise ApiError(KafkaError.UNACCEPTABLE_CREDENTIAL, "A user without a name has no credentials")
    if change.mechanism not in _MECHANISMS:
        raise ApiError(KafkaError.UNSUPPORTED_SASL_MECHANISM, f"SCRAM mechanism {change.mechanism} is not known")
    if isinstance(change, ScramCredentialDeletion):
        if change.mechanism not in present:
            raise ApiError(KafkaError.RESOURCE_NOT_FOUND, f"User {change.name!r} does not have this credential")
    elif not _FEWEST_ITERATIONS <= change.iterations <= _MOST_ITERATIONS:
        raise ApiError(KafkaError.UNACCEPTABLE_CREDENTIAL, f"{change.iterations} iterations are not between "
                       f"{_FEWEST_ITERATIONS} and {_MOST_ITERATIONS}")


def describe_client_quotas(call: ApiCall, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """The quotas of all entities that fit the filter."""
    try:
        _check_filter(request.components)
    except ApiError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.reason, entries=None)
    return DescribeClientQuotasResponse(error_code=0, error_message="", entries=[
        DescribedQuotaEntry(
            entity=[DescribedQuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[DescribedQuotaValue(key=key, value=value) for key, value in values.items()])
        for entity, values in call.cluster.catalog.accounts.quotas.items()
        if _fits(dict(entity), request.components, strict=request.strict)])


def _check_filter(components: list[QuotaFilterComponent]) -> None:
    kinds = [each.entity_type for each in components]
    for each in components:
        if not each.entity_type:
            raise ApiError(KafkaError.INVALID_REQUEST, "An entity has no type")
        if kinds.count(each.entity_type) > 1:
            raise ApiError(KafkaError.INVALID_REQUEST, f"{each.entity_type!r} stands twice in the filter")
        if each.entity_type not in (_USER, _CLIENT, _IP):
            raise ApiError(KafkaError.UNSUPPORTED_VERSION, f"Entities have no type {each.entity_type!r}")
        if each.match_type not in (_NAMED, _DEFAULT, _ANY):
            raise ApiError(KafkaError.INVALID_REQUEST, f"Match type {each.match_type} is not known")
        if (each.match is not None) != (each.match_type == _NAMED):
            raise ApiError(KafkaError.INVALID_REQUEST, "A name is for match type 0, and only for this")
    if _IP in kinds and len(kinds) > 1:
        raise ApiError(KafkaError.INVALID_REQUEST, "Addresses cannot be combined with users and clients")


def _fits(entity: dict[str, str | None], components: list[QuotaFilterComponent], *, strict: bool) -> bool:
    if strict and len(entity) != len(components):
        return False
    return all(each.entity_type in entity and (each.match_type == _ANY or entity[each.entity_type] == each.match)
               for each in components)


def alter_client_quotas(call: ApiCall, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Set and remove quotas: all that is asked of an entity, or nothing."""
    accounts, entries = call.cluster.catalog.accounts, []
    for each in request.entries:
        parts = {part.entity_type: part.entity_name for part in each.entity}
        result = AlteredQuotaEntry(error_code=0, error_message=None, entity=[
            AlteredQuotaEntity(entity_type=kind, entity_name=name) for kind, name in parts.items()])
        try:
            _check_entity(parts)
            for one in each.ops:
                _check_quota(one, is_address=_IP in parts)
            for one in each.ops if not request.validate_only else ():
                accounts.set_quota(tuple(sorted(parts.items())), one.key, None if one.remove else one.value)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.reason
        entries.append(result)
    call.cluster.catalog.save()
    return AlterClientQuotasResponse(entries=entries)


def _check_entity(parts: dict[str, str | None]) -> None:
    if not parts:
        raise ApiError(KafkaError.INVALID_REQUEST, "An entity has no parts")
    if not parts.keys() <= {_USER, _CLIENT} and parts.keys() != {_IP}:
        raise ApiError(KafkaError.INVALID_REQUEST, "An entity is of a user, a client id or both, or of an address")
    if "" in parts.values():
        raise ApiError(KafkaError.INVALID_REQUEST, "The name of an entity is empty")
    address = parts.get(_IP)
    if address is not None and not _is_address(address):
        raise ApiError(KafkaError.INVALID_REQUEST, f"{address!r} is no address")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_quota(quota: QuotaOperation, *, is_address: bool) -> None:
    if quota.remove:
        return
    known = _CONNECTIONS if is_address else _RATES
    if quota.key not in known:
        raise ApiError(KafkaError.INVALID_REQUEST, f"There is no quota {quota.key!r} of such an entity")
    if not quota.value > 0:
        raise ApiError(KafkaError.INVALID_REQUEST, f"{quota.key} cannot be {quota.value}: it must be more than 0")
    if known[quota.key]:
        highest = _HIGHEST_OF_ADDRESSES if is_address else _HIGHEST
        if quota.value > highest or abs(quota.value - round(quota.value)) > _ROUNDING:
            raise ApiError(KafkaError.INVALID_REQUEST, f"{quota.key} cannot be {quota.value}: it must be a whole "
                           f"number, {highest} at most")


SERVES = (
    ServedApi(DescribeUserScramCredentialsRequest, describe_user_scram_credentials),
    ServedApi(AlterUserScramCredentialsRequest, alter_user_scram_credentials,
              "Credentials are kept without their secrets: nobody logs in."),
    ServedApi(DescribeClientQuotasRequest, describe_client_quotas),
    ServedApi(AlterClientQuotasRequest, alter_client_quotas,
              "Kept and shown: nothing is throttled. Addresses are numbers, not host names."),
)
