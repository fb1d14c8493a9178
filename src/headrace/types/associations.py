"""Associations: which subjects of a Schema Registry belong to a resource, for example to a topic.

confluent_kafka's classes and names. Read next: `types.registry`, whose schemas they may have.
"""

from __future__ import annotations

from typing import Any, ClassVar

from headrace.slotted import slotted
from headrace.types.json_values import FromJson, Json, list_or_none, object_of
from headrace.types.registry import Schema

__all__ = [
    "Association",
    "AssociationCreateOrUpdateInfo",
    "AssociationCreateOrUpdateRequest",
    "AssociationInfo",
    "AssociationResponse",
]

_ABOUT_RESOURCE = (
    Json("resource_name", "resourceName"),
    Json("resource_namespace", "resourceNamespace"),
    Json("resource_id", "resourceId"),
    Json("resource_type", "resourceType"),
)


@slotted(frozen=True)
class Association(FromJson):
    """A subject and the resource that it belongs to.

    Args:
        subject: the subject's name.
        guid: number of the association, as a text.
        resource_name: for example a topic's name.
        resource_namespace: where that name is one, for example a cluster's id.
        resource_id: number of the resource, as a text.
        resource_type: for example "topic".
        association_type: what the subject is for: "key" or "value".
        frozen: it cannot be changed.
    """

    subject: str | None
    guid: str | None
    resource_name: str | None
    resource_namespace: str | None
    resource_id: str | None
    resource_type: str | None
    association_type: str | None
    frozen: bool = False

    JSON: ClassVar[tuple[Json, ...]] = (
        Json("subject", "subject"),
        Json("guid", "guid"),
        *_ABOUT_RESOURCE,
        Json("association_type", "associationType"),
        Json("frozen", "frozen", absent=False),
    )


@slotted()
class AssociationInfo(FromJson):
    """An association, as a registry answers.

    Args:
        subject: the subject's name.
        association_type: what the subject is for: "key" or "value".
        lifecycle: "STRONG", the subject goes with the resource, or "WEAK".
        frozen: it cannot be changed.
        schema: the subject's schema.
    """

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool = False
    schema: Schema | None = None

    JSON: ClassVar[tuple[Json, ...]] = (
        Json("subject", "subject"),
        Json("association_type", "associationType"),
        Json("lifecycle", "lifecycle"),
        Json("frozen", "frozen", absent=False),
        object_of(Schema, "schema", "schema"),
    )


@slotted()
class AssociationCreateOrUpdateInfo(FromJson):
    """An association to make or to change; what is None stays as it is.

    Args:
        subject: the subject's name.
        association_type: what the subject is for: "key" or "value".
        lifecycle: "STRONG", the subject goes with the resource, or "WEAK".
        frozen: it cannot be changed afterwards.
        schema: to register under the subject.
        normalize: the schema is brought into its normal form before.
    """

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: Schema | None = None
    normalize: bool | None = None

    JSON: ClassVar[tuple[Json, ...]] = (
        Json("subject", "subject"),
        Json("association_type", "associationType"),
        Json("lifecycle", "lifecycle"),
        Json("frozen", "frozen"),
        object_of(Schema, "schema", "schema"),
        Json("normalize", "normalize"),
    )


def _some_of(kind: type[FromJson]) -> Json:
    """The associations of a resource; none are None."""
    return Json("associations", "associations",
                lambda given: [kind.from_dict(one) for one in list_or_none(given)] or None, _all_written)


def _all_written(values: list[FromJson]) -> list[dict[str, Any]]:
    return [value.to_dict() for value in values]


@slotted()
class AssociationCreateOrUpdateRequest(FromJson):
    """The associations of a resource that are to be made or changed.

    Args:
        resource_name: for example a topic's name.
        resource_namespace: where that name is one, for example a cluster's id.
        resource_id: number of the resource, as a text.
        resource_type: for example "topic".
        associations: what to make or change.
    """

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationCreateOrUpdateInfo] | None = None

    JSON: ClassVar[tuple[Json, ...]] = (*_ABOUT_RESOURCE, _some_of(AssociationCreateOrUpdateInfo))


@slotted()
class AssociationResponse(FromJson):
    """The associations of a resource, after a change.

    Args:
        resource_name: for example a topic's name.
        resource_namespace: where that name is one, for example a cluster's id.
        resource_id: number of the resource, as a text.
        resource_type: for example "topic".
        associations: what there is now.
    """

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationInfo] | None = None

    JSON: ClassVar[tuple[Json, ...]] = (*_ABOUT_RESOURCE, _some_of(AssociationInfo))
