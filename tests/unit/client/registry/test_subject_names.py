"""Under which subject a schema is registered: the same names as confluent_kafka's."""

from __future__ import annotations

import confluent_kafka.schema_registry as theirs
import pytest
from confluent_kafka.serialization import SerializationContext as PeersContext

from headrace.client.registry import subject_names
from headrace.client.registry.subject_names import record_subject_name_strategy, reference_subject_name_strategy
from headrace.serialization import MessageField, SerializationContext
from headrace.types.registry import SchemaReference

NAMES = ["topic_subject_name_strategy", "topic_record_subject_name_strategy", "record_subject_name_strategy"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize("record_name", ["org.example.Order", None])
def test_names_are_confluent_kafkas(name: str, part: str, record_name: str | None) -> None:
    ours = getattr(subject_names, name)(SerializationContext("orders", MessageField(part)), record_name)
    assert ours == getattr(theirs, name)(PeersContext("orders", part), record_name)


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_name_with_a_topic_needs_a_context(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} needs a SerializationContext"):
        getattr(subject_names, name)(None, "org.example.Order")


def test_other_names_need_none() -> None:
    reference = SchemaReference("a.proto", "s", 1)
    assert record_subject_name_strategy(None, "org.example.Order") == "org.example.Order"
    assert (reference_subject_name_strategy(None, reference), reference_subject_name_strategy(None, None)) == \
        ("a.proto", None)
