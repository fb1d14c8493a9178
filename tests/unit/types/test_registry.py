"""Schemas and what belongs to them: the same values, from and to the same JSON, as confluent_kafka's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import confluent_kafka.schema_registry.common.schema_registry_client as common
import confluent_kafka.schema_registry.schema_registry_client as theirs
import pytest

from headrace.types import associations, contracts, registry

RULE = {"name": "r", "doc": "d", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "ENCRYPT", "tags": ["PII"],
        "params": {"k": "v"}, "expr": "e", "onSuccess": "NONE", "onFailure": "ERROR", "disabled": False}
METADATA = {"tags": {"a.b": ["PII"]}, "properties": {"owner": "x"}, "sensitive": ["owner"]}
RULE_SET = {"migrationRules": [{"name": "m"}], "domainRules": [RULE], "encodingRules": [RULE], "enableAt": "now"}
REFERENCE = {"name": "n", "subject": "s", "version": 3}
SCHEMA = {"schema": '"string"', "schemaType": "JSON", "references": [REFERENCE], "metadata": METADATA,
          "ruleSet": RULE_SET}
INFO = {"subject": "s", "associationType": "value", "lifecycle": "STRONG", "frozen": True, "schema": SCHEMA}
RESOURCE = {"resourceName": "t", "resourceNamespace": "lkc", "resourceId": "u", "resourceType": "topic"}

DESCRIPTIONS: dict[str, list[dict[str, Any]]] = {
    "RuleParams": [{}, {"k": "v"}],
    "Rule": [{}, RULE, {**RULE, "unknown": 1}],
    "RuleSet": [{}, RULE_SET, {"domainRules": None}],
    "MetadataTags": [{}, {"a": ["x", "y"]}],
    "MetadataProperties": [{}, {"a": "x"}],
    "Metadata": [{}, METADATA, {"sensitive": None}],
    "SchemaReference": [{}, REFERENCE],
    "ServerConfig": [{}, {"compatibility": "FULL"}, {"compatibilityLevel": "NONE", "compatibilityGroup": "g",
                     "defaultMetadata": METADATA, "overrideMetadata": METADATA, "defaultRuleSet": RULE_SET,
                     "overrideRuleSet": RULE_SET}],
    "Schema": [{}, SCHEMA, {"schema": "x", "schemaType": None, "references": None}],
    "RegisteredSchema": [{}, {"id": 7}, {**SCHEMA, "id": 7, "guid": "g", "subject": "s", "version": 2}],
    "Association": [{}, {"subject": "s", "guid": "g", "associationType": "key", "frozen": True, **RESOURCE}],
    "AssociationInfo": [{}, INFO],
    "AssociationCreateOrUpdateInfo": [{}, INFO, {**INFO, "normalize": True}],
    "AssociationCreateOrUpdateRequest": [{}, RESOURCE, {**RESOURCE, "associations": [INFO]}],
    "AssociationResponse": [{}, {"associations": []}, {**RESOURCE, "associations": [INFO]}],
}
CASES = [pytest.param(name, given, id=f"{name}-{place}") for name, several in DESCRIPTIONS.items()
         for place, given in enumerate(several)]


def ours_of(name: str) -> Any:
    return getattr(associations if name.startswith("Association") else registry, name)


@pytest.mark.parametrize(("name", "given"), CASES)
def test_json_is_read_and_written_as_confluent_kafka_does(name: str, given: dict[str, Any]) -> None:
    before = copy.deepcopy(given)
    ours, peers = ours_of(name).from_dict(given), getattr(theirs, name).from_dict(given)
    assert ours.to_dict() == peers.to_dict()
    assert repr(ours).replace("SchemaMetadata(", "Metadata(") == repr(peers)
    assert given == before


@pytest.mark.parametrize(("name", "given"), CASES)
def test_equal_values_are_equal_copies_and_keys_where_confluent_kafkas_are(name: str, given: dict[str, Any]) -> None:
    ours, again = ours_of(name).from_dict(given), ours_of(name).from_dict(copy.deepcopy(given))
    assert ours == again == pickle.loads(pickle.dumps(ours)) == copy.deepcopy(ours)
    assert ours != ours_of(name)
    peer = getattr(theirs, name).from_dict(given)
    try:
        hash(peer)
    except TypeError:
        with pytest.raises(TypeError, match="unhashable"):
            hash(ours)
    else:
        assert hash(ours) == hash(again)


@pytest.mark.parametrize("name", [*DESCRIPTIONS, "SchemaVersion"])
def test_arguments_have_confluent_kafkas_names_in_its_order(name: str) -> None:
    names = tuple(field.name for field in getattr(common, name).__attrs_attrs__)
    assert ours_of(name).__match_args__ == names


@pytest.mark.parametrize("name", ["RuleKind", "RuleMode", "RulePhase", "ConfigCompatibilityLevel"])
def test_lists_of_names_are_confluent_kafkas(name: str) -> None:
    ours, peers = getattr(registry, name), getattr(common, name)
    assert [(one.name, one.value, str(one), repr(one)) for one in ours] == \
        [(one.name, one.value, str(one), repr(one)) for one in peers]


def test_values_that_are_frozen_in_confluent_kafka_are_frozen() -> None:
    with pytest.raises(AttributeError, match="Schema is frozen"):
        registry.Schema("x").schema_type = "JSON"  # type: ignore[misc]
    config = registry.ServerConfig()
    config.compatibility = registry.ConfigCompatibilityLevel.FULL
    assert config.to_dict() == {"compatibility": "FULL"}


def test_a_level_may_be_its_name() -> None:
    config: Any = registry.ServerConfig
    given = config(compatibility="FULL", compatibility_level="NONE")
    assert given.to_dict() == {"compatibility": "FULL", "compatibilityLevel": "NONE"}
    assert given == registry.ServerConfig.from_dict(given.to_dict())
    with pytest.raises(ValueError, match="'SOMEWHAT' is not a valid ConfigCompatibilityLevel"):
        config(compatibility="SOMEWHAT").to_dict()


def test_a_schema_is_of_avro_with_no_references_unless_said() -> None:
    assert registry.Schema("x") == registry.Schema("x", "AVRO", [], None, None)
    assert registry.Schema("x", references=None).to_dict()["references"] == []


def test_what_a_registry_leaves_out_of_a_registered_schema_is_none() -> None:
    found = registry.RegisteredSchema.from_dict({"id": 7})
    assert (found.schema_id, found.subject, found.version, found.schema.schema_str) == (7, None, None, None)
    assert found == registry.RegisteredSchema(subject=None, version=None, schema_id=7)


def test_a_dict_in_the_place_of_metadata_is_passed_on() -> None:
    config: Any = registry.ServerConfig
    assert config(default_metadata=METADATA).to_dict() == {"defaultMetadata": METADATA}


@pytest.mark.parametrize(("kind", "given"), [
    (registry.Schema, []), (registry.Schema, {"references": "abc"}), (registry.Schema, {"metadata": 3}),
    (registry.RegisteredSchema, None), (contracts.RuleParams, "x"), (registry.Metadata, {"sensitive": "x"}),
    (contracts.MetadataTags, 1), (contracts.MetadataProperties, 1),
])
def test_json_of_another_shape_is_a_type_error(kind: Any, given: Any) -> None:
    with pytest.raises(TypeError, match=r"described by a dict|a list was expected"):
        kind.from_dict(given)


def test_a_level_that_does_not_exist_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="'SOMEWHAT' is not a valid ConfigCompatibilityLevel"):
        registry.ServerConfig.from_dict({"compatibility": "SOMEWHAT"})
