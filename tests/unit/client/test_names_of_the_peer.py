"""Every public name of confluent_kafka: those of 1.8 with their arguments, and what came since, to 2.16.1.

`names_of_1_8.txt` has one a line, below the package's name; arguments in brackets, newer ones of the same calls too.
`names_since_1_8.txt` has those that are newer; for each that is not here `WITHOUT` has the reason.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = Path(__file__).with_name("names_of_1_8.txt").read_text().splitlines()
NEWER = Path(__file__).with_name("names_since_1_8.txt").read_text().splitlines()
RULES = "rules in schemas are kept and passed on, and not carried out: a message for which one is due is refused"
OWN_WAY = "a part of how the peer does it, which has no counterpart"
WITHOUT = {
    r"schema_registry\.serde\.(DLQ|ErrorAction|Field|Migration|NoneAction|Rule|ValidationRule(?!s)|VALIDATION_RULES"
    r"|\w+_validation_rule|\w+_original_key).*": RULES,
    r"schema_registry\.serde\.(ParsedSchemaCache.*|T)": OWN_WAY,
    r"schema_registry\.(avro|json_schema|protobuf)\.(get_inline_tags|get_type|transform|validate_message"
    r"|is_cel_leaf_message|is_map_field|rebuild_value_type)": RULES,
    r"schema_registry\.protobuf\.(\w*(DECIMAL|TIMESTAMP|VARIANT|COEFFICIENT)\w*|\w*(decimal|variant|timestamp)\w*)":
        "helpers for Confluent's own message types, which are not part of Kafka",
    r"schema_registry\.avro\.(LocalSchemaRepository.*|parse_schema_with_repo)": OWN_WAY,
    r"schema_registry\.json_schema\.DEFAULT_SPEC|schema_registry\.protobuf\.PROTOBUF_MAJOR_VERSION": OWN_WAY,
    r"schema_registry\.schema_registry_client\.(T|full_jitter|is_retriable|is_success)": OWN_WAY,
    r"aio\.producer\.(BufferTimeoutManager|MessageBatch|ProducerBatch|create_message_batch).*": OWN_WAY,
    r"aio\.(AsyncLogger.*|ReentryContext.*|T|async_call|wrap_\w+)": OWN_WAY,
    r"ShareConsumer\.on_commit": "the peer's callback is given to `set_acknowledgement_commit_callback`, here as there",
}
"""Names that are not here, and why."""
OF_INSTANCES = {f"admin.{name}" for name in (
    "NewPartitions.new_total_count", "NewPartitions.replica_assignment", "NewPartitions.topic", "NewTopic.config",
    "NewTopic.num_partitions", "NewTopic.replica_assignment", "NewTopic.replication_factor", "NewTopic.topic")}
"""Attributes that each instance has."""


def found(package: str, name: str) -> Any:
    """What a name stands for: as a program would write it, below any module that can be imported."""
    for at in _splits(name.split(".")):
        try:
            value: Any = importlib.import_module(".".join((package, *at[0])))
        except ImportError:
            continue
        try:
            for part in at[1]:
                value = getattr(value, part)
        except AttributeError:
            continue
        return value
    raise LookupError(name)


def _splits(parts: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    for count in range(len(parts), -1, -1):
        yield parts[:count], parts[count:]


def test_the_list_is_whole() -> None:
    assert len(NAMES) == len(set(NAMES)) == 228


@pytest.mark.parametrize("line", NAMES)
def test_a_name_is_there_with_its_arguments(line: str) -> None:
    name, _, rest = line.partition("(")
    if name in OF_INSTANCES:
        import headrace.admin

        kind, attribute = name.split(".")[1:]
        assert hasattr(getattr(headrace.admin, kind)("t", 1), attribute)
        return
    value = found("headrace", name)
    if rest and not inspect.ismethoddescriptor(value):  # native methods do not say: `Message` is compared elsewhere
        parameters = inspect.signature(value).parameters
        takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        missing = set(re.findall(r"\w+", rest)) - parameters.keys()
        assert not missing or takes_any, f"{name} has no argument {missing}"


@pytest.mark.parametrize("name", NEWER)
def test_a_newer_name_is_there_or_has_a_reason(name: str) -> None:
    reasons = [reason for pattern, reason in WITHOUT.items() if re.fullmatch(pattern, name)]
    try:
        found("headrace", name)
    except LookupError:
        assert reasons, f"{name} is neither here nor has it a reason"
    else:
        assert not reasons, f"{name} is here: it needs no reason"


def test_modules_are_there_without_being_imported_by_name() -> None:
    import headrace

    for name in ("error", "serialization", "serializing_producer", "deserializing_consumer"):
        assert getattr(headrace, name) is sys.modules[f"headrace.{name}"]
    with pytest.raises(AttributeError, match="no attribute 'serialisation'"):
        _ = headrace.serialisation
