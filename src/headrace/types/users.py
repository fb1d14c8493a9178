"""Users: SCRAM credentials, quotas and delegation tokens. Classes and names of SCRAM are confluent_kafka's.

Plain values without behaviour: what a call cannot use, the call refuses. Read next: `machines.admin.user_requests`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.slotted import hashed_by
from headrace.types.cluster import OrderedEnum

__all__ = [
    "DelegationToken",
    "QuotaEntity",
    "QuotaFilter",
    "ScramCredentialInfo",
    "ScramMechanism",
    "UserScramCredentialAlteration",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "UserScramCredentialsDescription",
]


class ScramMechanism(OrderedEnum):
    """How a password is hashed."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


@hashed_by("mechanism")
@dataclass
class ScramCredentialInfo:
    """A mechanism and how often it hashes: 4096 times at least, or brokers refuse it.

    Attributes:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        iterations: how often it hashes.
    """

    mechanism: ScramMechanism
    iterations: int


@hashed_by("user")
@dataclass
class UserScramCredentialsDescription:
    """The credentials of a user, without secrets.

    Attributes:
        user: whose.
        scram_credential_infos: one for each mechanism.
    """

    user: str
    scram_credential_infos: list[ScramCredentialInfo]


@hashed_by("user")
@dataclass
class UserScramCredentialAlteration:
    """What happens to a user: see the subclasses."""

    user: str


@hashed_by("user")
@dataclass
class UserScramCredentialUpsertion(UserScramCredentialAlteration):
    """A credential to make or replace.

    Args:
        user: its name.
        scram_credential_info: how the password is hashed.
        password: it never leaves the client, and does not show.
        salt: mixed into the hash; random bytes when it is None.
    """

    scram_credential_info: ScramCredentialInfo
    password: bytes = field(repr=False)
    salt: bytes | None = field(default=None, repr=False)


@hashed_by("user")
@dataclass
class UserScramCredentialDeletion(UserScramCredentialAlteration):
    """A credential to delete.

    Attributes:
        user: whose.
        mechanism: of which mechanism.
    """

    mechanism: ScramMechanism


@dataclass(slots=True, frozen=True)
class QuotaEntity:
    """Whom a quota is for: a user, a client id, both, or an address. An empty name stands for all others.

    Attributes:
        user: name of the user.
        client_id: what clients call themselves.
        ip: address of clients.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None


@dataclass(slots=True, frozen=True)
class QuotaFilter:
    """Whose quotas are asked for: a part is a name, empty for the default, or `ANY`; None for parts not asked for.

    Args:
        user: name, or `ANY`.
        client_id: name, or `ANY`.
        ip: address, or `ANY`.
        strict: leave out entities that have further parts.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    strict: bool = False

    ANY = "*"


@dataclass
class DelegationToken:
    """A token that logs in like its owner. Times are milliseconds since the epoch.

    Attributes:
        token_id: name to log in with, by SCRAM.
        owner: whose rights it has, for example ``User:alice``.
        requester: who asked for it.
        issued, expires, ends: when it was made, until when it is valid, and until when it can be renewed.
        hmac: the secret, which does not show. Its base64 text is the password.
        renewers: who else may renew it.
    """

    token_id: str
    owner: str
    requester: str
    issued: int
    expires: int
    ends: int
    hmac: bytes = field(repr=False)
    renewers: list[str] = field(default_factory=list)


Quotas = Mapping[str, float]
"""Quotas by name, for example producer_byte_rate."""
