"""Quotas of clients: what is allowed to whom (KIP-546).

Read next: `wire.messages.admin.configs`.
"""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    String,
    Struct,
    field,
)

__all__ = [
    "AlterClientQuotasRequest", "AlterClientQuotasResponse", "AlterableQuotaEntity", "AlterableQuotaEntry",
    "AlteredQuotaEntity", "AlteredQuotaEntry", "DescribeClientQuotasRequest", "DescribeClientQuotasResponse",
    "DescribedQuotaEntity", "DescribedQuotaEntry", "DescribedQuotaValue", "QuotaFilterComponent", "QuotaOperation",
]


class QuotaFilterComponent(Struct):
    """What an entity must have to fit."""

    entity_type: String = field()
    """Type of the entity: user, client-id or ip."""
    match_type: Int8 = field()
    """Which names fit: 0 this one, 1 the default, 2 any."""
    match: String | None = field()
    """The name, for `match_type` 0; null for the others."""


class DescribeClientQuotasRequest(Request, key=48, versions="0-1", flexible="1+"):
    """Ask for quotas (KIP-546)."""

    components: Array[QuotaFilterComponent] = field()
    """What the name of an entity must have."""
    strict: Bool = field()
    """Leave out entities that have more than the filter names."""


class DescribedQuotaEntity(Struct):
    """A part of an entity: a user, a client id or an address."""

    entity_type: String = field()
    """Type of the entity: user, client-id or ip."""
    entity_name: String | None = field()
    """Name of the entity; null for the default."""


class DescribedQuotaValue(Struct):
    """One quota."""

    key: String = field()
    """Name of the quota, for example producer_byte_rate."""
    value: Float64 = field()
    """Value of the quota."""


class DescribedQuotaEntry(Struct):
    """The quotas of one entity."""

    entity: Array[DescribedQuotaEntity] = field()
    """The parts that make the entity."""
    values: Array[DescribedQuotaValue] = field()
    """The quotas."""


class DescribeClientQuotasResponse(Response, to=DescribeClientQuotasRequest):
    """The quotas that fit."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    entries: Array[DescribedQuotaEntry] | None = field()
    """One entry for each entity; null after an error."""


class AlterableQuotaEntity(Struct):
    """A part of an entity: a user, a client id or an address."""

    entity_type: String = field()
    """Type of the entity: user, client-id or ip."""
    entity_name: String | None = field()
    """Name of the entity; null for the default."""


class QuotaOperation(Struct):
    """One quota to set or remove."""

    key: String = field()
    """Name of the quota, for example producer_byte_rate."""
    value: Float64 = field()
    """Value of the quota."""
    remove: Bool = field()
    """Remove the quota rather than set it."""


class AlterableQuotaEntry(Struct):
    """An entity and what happens to its quotas."""

    entity: Array[AlterableQuotaEntity] = field()
    """The parts that make the entity."""
    ops: Array[QuotaOperation] = field()
    """Quotas to set or remove."""


class AlterClientQuotasRequest(Request, key=49, versions="0-1", flexible="1+"):
    """Set and remove quotas (KIP-546)."""

    entries: Array[AlterableQuotaEntry] = field()
    """One entry for each entity."""
    validate_only: Bool = field()
    """Check the request and change nothing."""


class AlteredQuotaEntity(Struct):
    """A part of an entity: a user, a client id or an address."""

    entity_type: String = field()
    """Type of the entity: user, client-id or ip."""
    entity_name: String | None = field()
    """Name of the entity; null for the default."""


class AlteredQuotaEntry(Struct):
    """Whether the quotas of one entity were changed."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    entity: Array[AlteredQuotaEntity] = field()
    """The parts that make the entity."""


class AlterClientQuotasResponse(Response, to=AlterClientQuotasRequest):
    """Whether the quotas of each entity were changed."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    entries: Array[AlteredQuotaEntry] = field()
    """One entry for each entity."""
