"""Schemas that refer to others."""

import pytest

from headrace.client.schema_serdes.registry_steps import run
from headrace.client.schema_serdes.schema_references import MAX_REFERENCES, referenced
from headrace.errors import SerializationError
from headrace.types.registry import RegisteredSchema, Schema, SchemaReference
from tests.support.kept_registry import KeptRegistry


def to(*names: str) -> list[SchemaReference]:
    return [SchemaReference(name, name, 1) for name in names]


def registry_of(**references: list[str]) -> KeptRegistry:
    registry = KeptRegistry()
    for number, (name, others) in enumerate(references.items()):
        registry.versions[name] = [RegisteredSchema(name, 1, number, None, Schema(name, references=to(*others)))]
    return registry


def test_each_is_asked_for_once_and_stands_behind_what_it_refers_to() -> None:
    registry = registry_of(left=["base"], right=["base"], base=[])
    found = run(referenced(Schema("root", references=to("left", "right")), registry))
    assert list(found) == ["base", "left", "right"]
    assert registry.calls["get_version"] == 3


def test_a_circle_is_an_error() -> None:
    registry = registry_of(a=["b"], b=["c"], c=["a"])
    with pytest.raises(SerializationError, match="circle"):
        run(referenced(Schema("root", references=to("a")), registry))


def test_a_long_line_is_an_error_before_it_is_followed_to_its_end() -> None:
    registry = registry_of(**{f"n{at}": [f"n{at + 1}"] for at in range(2 * MAX_REFERENCES)})
    with pytest.raises(SerializationError, match="more than"):
        run(referenced(Schema("root", references=to("n0")), registry))
    assert registry.calls["get_version"] <= MAX_REFERENCES


@pytest.mark.parametrize("reference", [SchemaReference(None, "s", 1), SchemaReference("n", None, 1),
                                       SchemaReference("n", "s", None)])
def test_a_reference_with_a_part_missing_is_an_error(reference) -> None:
    with pytest.raises(SerializationError, match="needs a name"):
        run(referenced(Schema("root", references=[reference]), KeptRegistry()))


def test_without_a_registry_nothing_can_be_referred_to() -> None:
    with pytest.raises(SerializationError, match="no Schema Registry client"):
        run(referenced(Schema("root", references=to("a")), None))


def test_without_references_nobody_is_asked() -> None:
    assert run(referenced(Schema("root", references=None), None)) == {}
