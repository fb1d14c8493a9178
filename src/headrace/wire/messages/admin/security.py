"""Access rules, delegation tokens and SCRAM credentials.

Read next: `wire.messages.admin.replicas`.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bytes, Int8, Int16, Int32, Int64, Request, Response, String, Struct, field

__all__ = [
    "AclCreation", "AclCreationResult", "AclDescription", "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse", "AlterUserScramCredentialsResult", "CreatableRenewers", "CreateAclsRequest",
    "CreateAclsResponse", "CreateDelegationTokenRequest", "CreateDelegationTokenResponse", "CredentialInfo",
    "DeleteAclsFilter", "DeleteAclsFilterResult", "DeleteAclsMatchingAcl", "DeleteAclsRequest", "DeleteAclsResponse",
    "DescribeAclsRequest", "DescribeAclsResource", "DescribeAclsResponse", "DescribeDelegationTokenOwner",
    "DescribeDelegationTokenRequest", "DescribeDelegationTokenResponse", "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse", "DescribeUserScramCredentialsResult", "DescribedDelegationToken",
    "DescribedDelegationTokenRenewer", "ExpireDelegationTokenRequest", "ExpireDelegationTokenResponse",
    "RenewDelegationTokenRequest", "RenewDelegationTokenResponse", "ScramCredentialDeletion",
    "ScramCredentialUpsertion", "UserName",
]


class DescribeAclsRequest(Request, key=29, versions="0-3", flexible="2+"):
    """Ask for the access rules that fit a filter (KIP-140).

    v1: patterns (KIP-290). v3: users as resources (KIP-373).
    """

    resource_type_filter: Int8 = field()
    """Type of the resource: 1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user."""
    resource_name_filter: String | None = field()
    """Name of the resource; null for any."""
    pattern_type_filter: Int8 = field("1+", default=3)
    """How the name is meant: 1 any, 2 rules that match it, 3 literal, 4 as a prefix."""
    principal_filter: String | None = field()
    """Who the rule is for; null for anyone."""
    host_filter: String | None = field()
    """Host of the rule; null for any."""
    operation: Int8 = field()
    """Operation: 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, and more."""
    permission_type: Int8 = field()
    """Permission: 1 any, 2 deny, 3 allow."""


class AclDescription(Struct):
    """Who may, or may not, do what from where."""

    principal: String = field()
    """Who the rule is for, for example User:alice."""
    host: String = field()
    """Host that the rule is for; * for any."""
    operation: Int8 = field()
    """Operation: 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, and more."""
    permission_type: Int8 = field()
    """Permission: 1 any, 2 deny, 3 allow."""


class DescribeAclsResource(Struct):
    """A resource and its rules."""

    resource_type: Int8 = field()
    """Type of the resource: 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user."""
    resource_name: String = field()
    """Name of the resource, for example of a topic."""
    pattern_type: Int8 = field("1+", default=3)
    """How the name is meant: 3 literal, 4 as a prefix."""
    acls: Array[AclDescription] = field()
    """One entry for each rule."""


class DescribeAclsResponse(Response, to=DescribeAclsRequest):
    """The rules that fit."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    resources: Array[DescribeAclsResource] = field()
    """One entry for each resource."""


class AclCreation(Struct):
    """A rule to make."""

    resource_type: Int8 = field()
    """Type of the resource: 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user."""
    resource_name: String = field()
    """Name of the resource, for example of a topic."""
    resource_pattern_type: Int8 = field("1+", default=3)
    """How the name is meant: 3 literal, 4 as a prefix."""
    principal: String = field()
    """Who the rule is for, for example User:alice."""
    host: String = field()
    """Host that the rule is for; * for any."""
    operation: Int8 = field()
    """Operation: 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, and more."""
    permission_type: Int8 = field()
    """Permission: 1 any, 2 deny, 3 allow."""


class CreateAclsRequest(Request, key=30, versions="0-3", flexible="2+"):
    """Make access rules (KIP-140)."""

    creations: Array[AclCreation] = field()
    """One entry for each rule."""


class AclCreationResult(Struct):
    """Whether one rule was made."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""


class CreateAclsResponse(Response, to=CreateAclsRequest):
    """Whether each rule was made, in the order of the request."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    results: Array[AclCreationResult] = field()
    """One entry for each that was asked for."""


class DeleteAclsFilter(Struct):
    """Which rules to delete."""

    resource_type_filter: Int8 = field()
    """Type of the resource: 1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user."""
    resource_name_filter: String | None = field()
    """Name of the resource; null for any."""
    pattern_type_filter: Int8 = field("1+", default=3)
    """How the name is meant: 1 any, 2 rules that match it, 3 literal, 4 as a prefix."""
    principal_filter: String | None = field()
    """Who the rule is for; null for anyone."""
    host_filter: String | None = field()
    """Host of the rule; null for any."""
    operation: Int8 = field()
    """Operation: 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, and more."""
    permission_type: Int8 = field()
    """Permission: 1 any, 2 deny, 3 allow."""


class DeleteAclsRequest(Request, key=31, versions="0-3", flexible="2+"):
    """Delete the access rules that fit filters (KIP-140)."""

    filters: Array[DeleteAclsFilter] = field()
    """One entry for each filter."""


class DeleteAclsMatchingAcl(Struct):
    """A rule that was, or should have been, deleted."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    resource_type: Int8 = field()
    """Type of the resource: 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user."""
    resource_name: String = field()
    """Name of the resource, for example of a topic."""
    pattern_type: Int8 = field("1+", default=3)
    """How the name is meant: 3 literal, 4 as a prefix."""
    principal: String = field()
    """Who the rule is for, for example User:alice."""
    host: String = field()
    """Host that the rule is for; * for any."""
    operation: Int8 = field()
    """Operation: 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, and more."""
    permission_type: Int8 = field()
    """Permission: 1 any, 2 deny, 3 allow."""


class DeleteAclsFilterResult(Struct):
    """What one filter did."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    matching_acls: Array[DeleteAclsMatchingAcl] = field()
    """Rules that fit the filter."""


class DeleteAclsResponse(Response, to=DeleteAclsRequest):
    """What each filter did, in the order of the request."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    filter_results: Array[DeleteAclsFilterResult] = field()
    """One entry for each filter."""


class CreatableRenewers(Struct):
    """Who may renew the token."""

    principal_type: String = field()
    """Type of the user, for example User."""
    principal_name: String = field()
    """Name of the user, for example alice."""


class CreateDelegationTokenRequest(Request, key=38, versions="0-3", flexible="2+"):
    """Ask for a delegation token (KIP-48). v3: for another owner (KIP-373)."""

    owner_principal_type: String | None = field("3+")
    """Type of the owner; null for the user who asks."""
    owner_principal_name: String | None = field("3+")
    """Name of the owner; null for the user who asks."""
    renewers: Array[CreatableRenewers] = field()
    """Who may renew the token."""
    max_lifetime_ms: Int64 = field()
    """Longest life in milliseconds; -1 for as long as the cluster allows."""


class CreateDelegationTokenResponse(Response, to=CreateDelegationTokenRequest):
    """The token and how long it lives."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    principal_type: String = field()
    """Type of the user, for example User."""
    principal_name: String = field()
    """Name of the user, for example alice."""
    token_requester_principal_type: String = field("3+")
    """Type of the user who asked."""
    token_requester_principal_name: String = field("3+")
    """Name of the user who asked."""
    issue_timestamp_ms: Int64 = field()
    """When it was made, in milliseconds since 1970."""
    expiry_timestamp_ms: Int64 = field()
    """When it expires, in milliseconds since 1970."""
    max_timestamp_ms: Int64 = field()
    """Until when it can be renewed, in milliseconds since 1970."""
    token_id: String = field()
    """Id of the token."""
    hmac: Bytes = field()
    """The secret part of the token."""
    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""


class RenewDelegationTokenRequest(Request, key=39, versions="0-2", flexible="2+"):
    """Let a token live longer."""

    hmac: Bytes = field()
    """The secret part of the token."""
    renew_period_ms: Int64 = field()
    """Milliseconds to live on from now; -1 for the cluster's default."""


class RenewDelegationTokenResponse(Response, to=RenewDelegationTokenRequest):
    """How long the token lives now."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    expiry_timestamp_ms: Int64 = field()
    """When it expires, in milliseconds since 1970."""
    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""


class ExpireDelegationTokenRequest(Request, key=40, versions="0-2", flexible="2+"):
    """Let a token expire sooner, or now."""

    hmac: Bytes = field()
    """The secret part of the token."""
    expiry_time_period_ms: Int64 = field()
    """Milliseconds to live on from now; below 0 ends it at once."""


class ExpireDelegationTokenResponse(Response, to=ExpireDelegationTokenRequest):
    """How long the token lives now."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    expiry_timestamp_ms: Int64 = field()
    """When it expires, in milliseconds since 1970."""
    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""


class DescribeDelegationTokenOwner(Struct):
    """An owner whose tokens are asked for."""

    principal_type: String = field()
    """Type of the user, for example User."""
    principal_name: String = field()
    """Name of the user, for example alice."""


class DescribeDelegationTokenRequest(Request, key=41, versions="0-3", flexible="2+"):
    """Ask for delegation tokens."""

    owners: Array[DescribeDelegationTokenOwner] | None = field()
    """Whose tokens; null for all."""


class DescribedDelegationTokenRenewer(Struct):
    """Who may renew the token."""

    principal_type: String = field()
    """Type of the user, for example User."""
    principal_name: String = field()
    """Name of the user, for example alice."""


class DescribedDelegationToken(Struct):
    """One token."""

    principal_type: String = field()
    """Type of the user, for example User."""
    principal_name: String = field()
    """Name of the user, for example alice."""
    token_requester_principal_type: String = field("3+")
    """Type of the user who asked."""
    token_requester_principal_name: String = field("3+")
    """Name of the user who asked."""
    issue_timestamp: Int64 = field()
    """When it was made, in milliseconds since 1970."""
    expiry_timestamp: Int64 = field()
    """When it expires, in milliseconds since 1970."""
    max_timestamp: Int64 = field()
    """Until when it can be renewed, in milliseconds since 1970."""
    token_id: String = field()
    """Id of the token."""
    hmac: Bytes = field()
    """The secret part of the token."""
    renewers: Array[DescribedDelegationTokenRenewer] = field()
    """Who may renew the token."""


class DescribeDelegationTokenResponse(Response, to=DescribeDelegationTokenRequest):
    """The tokens that the user may see."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    tokens: Array[DescribedDelegationToken] = field()
    """One entry for each token."""
    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""


class UserName(Struct):
    """A user to look up."""

    name: String = field()
    """Name of the user."""


class DescribeUserScramCredentialsRequest(Request, key=50, versions="0", flexible="0+"):
    """Ask which SCRAM credentials users have (KIP-554)."""

    users: Array[UserName] | None = field()
    """Users to describe; null or empty for all."""


class CredentialInfo(Struct):
    """A credential, without its secret."""

    mechanism: Int8 = field()
    """SCRAM mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    iterations: Int32 = field()
    """Rounds of hashing."""


class DescribeUserScramCredentialsResult(Struct):
    """The credentials of one user."""

    user: String = field()
    """Name of the user."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    credential_infos: Array[CredentialInfo] = field()
    """One entry for each mechanism."""


class DescribeUserScramCredentialsResponse(Response, to=DescribeUserScramCredentialsRequest):
    """The credentials of each user."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    results: Array[DescribeUserScramCredentialsResult] = field()
    """One entry for each that was asked for."""


class ScramCredentialDeletion(Struct):
    """A credential to delete."""

    name: String = field()
    """Name of the user."""
    mechanism: Int8 = field()
    """SCRAM mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""


class ScramCredentialUpsertion(Struct):
    """A credential to make or replace. The password itself does not travel."""

    name: String = field()
    """Name of the user."""
    mechanism: Int8 = field()
    """SCRAM mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    iterations: Int32 = field()
    """Rounds of hashing."""
    salt: Bytes = field()
    """Random bytes."""
    salted_password: Bytes = field()
    """The password, hashed with the salt."""


class AlterUserScramCredentialsRequest(Request, key=51, versions="0", flexible="0+"):
    """Make, replace and delete SCRAM credentials (KIP-554)."""

    deletions: Array[ScramCredentialDeletion] = field()
    """Credentials to delete."""
    upsertions: Array[ScramCredentialUpsertion] = field()
    """Credentials to make or replace."""


class AlterUserScramCredentialsResult(Struct):
    """Whether one user's credentials were changed."""

    user: String = field()
    """Name of the user."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""


class AlterUserScramCredentialsResponse(Response, to=AlterUserScramCredentialsRequest):
    """Whether each user's credentials were changed."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    results: Array[AlterUserScramCredentialsResult] = field()
    """One entry for each that was asked for."""
