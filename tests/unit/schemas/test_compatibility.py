"""The seven levels."""

import pytest

from headrace.schemas.compatibility import LEVELS, incompatibilities
from headrace.schemas.parsing import parse

INT, LONG, TEXT = (parse("AVRO", f'"{kind}"') for kind in ("int", "long", "string"))
BACKWARD, FORWARD = [INT, LONG], [LONG, INT]
"""Old versions, and the new one last."""


@pytest.mark.parametrize(("level", "backward", "forward"), [
    ("NONE", True, True), ("BACKWARD", True, False), ("BACKWARD_TRANSITIVE", True, False),
    ("FORWARD", False, True), ("FORWARD_TRANSITIVE", False, True), ("FULL", False, False),
    ("FULL_TRANSITIVE", False, False)])
def test_a_level_compares_in_its_directions(level: str, backward: bool, forward: bool) -> None:
    assert (incompatibilities(level, BACKWARD[-1], BACKWARD[:-1]) is None) is backward
    assert (incompatibilities(level, FORWARD[-1], FORWARD[:-1]) is None) is forward


@pytest.mark.parametrize("level", LEVELS)
def test_a_transitive_level_looks_at_all_versions(level: str) -> None:
    conflict = incompatibilities(level, INT, [TEXT, INT])
    assert (conflict is not None) is level.endswith("TRANSITIVE")
    assert conflict is None or conflict.position == 0


@pytest.mark.parametrize("level", LEVELS)
def test_the_first_version_is_compatible(level: str) -> None:
    assert incompatibilities(level, INT, []) is None


def test_another_type_of_schema_is_not_compatible() -> None:
    conflict = incompatibilities("BACKWARD", parse("JSON", '{"type": "integer"}'), [INT])
    assert conflict is not None
    assert conflict.found[0].type == "SCHEMA_TYPE_CHANGED"
    assert incompatibilities("NONE", parse("JSON", '{"type": "integer"}'), [INT]) is None
