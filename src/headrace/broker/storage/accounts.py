"""What is kept of users and clients: which SCRAM credentials they have, and their quotas.

Nothing follows from either: nobody logs in here, and nothing is throttled. Of a credential the rounds of hashing are
kept and no secret. `broker.storage.catalog` writes them with the topics.

Read next: `broker.apis.users`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["Accounts", "QuotaEntity"]

_Owner = TypeVar("_Owner")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: type and name of each part, ordered by type; the default has no name."""


@dataclass(slots=True)
class Accounts:
    """Credentials and quotas of a cluster.

    Attributes:
        credentials: rounds of hashing by user and number of the SCRAM mechanism; users without one are not named.
        quotas: values by entity and name of the quota; entities without one are not named.
    """

    credentials: dict[str, dict[int, int]] = field(default_factory=dict)
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)

    def set_credential(self, user: str, mechanism: int, iterations: int | None) -> None:
        """Make or replace a credential, or with None delete it."""
        _put(self.credentials, user, mechanism, iterations)

    def set_quota(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """Set a quota, or with None remove it."""
        _put(self.quotas, entity, key, value)

    def state(self) -> dict[str, Any]:
        """All of it in values that JSON has."""
        return {
            "credentials": [[user, mechanism, iterations] for user, each in self.credentials.items()
                            for mechanism, iterations in each.items()],
            "quotas": [[entity, values] for entity, values in self.quotas.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take what `state` gave."""
        for user, mechanism, iterations in state["credentials"]:
            self.set_credential(user, mechanism, iterations)
        self.quotas = {tuple((kind, name) for kind, name in entity): values for entity, values in state["quotas"]}


def _put(kept: dict[_Owner, dict[_Key, _Value]], owner: _Owner, key: _Key, value: _Value | None) -> None:
    values = kept.setdefault(owner, {})
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value
    if not values:
        del kept[owner]
