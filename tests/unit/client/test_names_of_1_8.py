"""Every public name of confluent_kafka 1.8, with the arguments that it has: a program of that time finds all of them.

`names_of_1_8.txt` has one a line, below the package's name; arguments in brackets, newer ones of the same calls too.
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


def test_modules_are_there_without_being_imported_by_name() -> None:
    import headrace

    for name in ("error", "serialization", "serializing_producer", "deserializing_consumer"):
        assert getattr(headrace, name) is sys.modules[f"headrace.{name}"]
    with pytest.raises(AttributeError, match="no attribute 'serialisation'"):
        _ = headrace.serialisation
