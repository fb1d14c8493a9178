"""Associations: what JSON leaves out. Their JSON is compared with confluent_kafka's in `test_registry`."""

from __future__ import annotations

from headrace.types.associations import AssociationCreateOrUpdateInfo, AssociationInfo, AssociationResponse
from headrace.types.registry import Schema


def test_what_is_to_stay_is_not_written() -> None:
    assert AssociationCreateOrUpdateInfo("s").to_dict() == {"subject": "s"}
    assert AssociationInfo("s").to_dict() == {"subject": "s", "frozen": False}


def test_no_associations_are_none() -> None:
    assert AssociationResponse.from_dict({"associations": []}).associations is None


def test_schemas_are_made_of_what_is_answered() -> None:
    answer = AssociationResponse.from_dict({"resourceName": "t", "associations": [{"schema": {"schema": "x"}}]})
    assert answer.associations == [AssociationInfo(schema=Schema("x"))]
