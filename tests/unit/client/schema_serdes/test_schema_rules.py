"""Rules that are not run."""

import pytest

from headrace.client.schema_serdes.schema_rules import check_no_rule, has_migrations
from headrace.errors import SerializationError
from headrace.types.registry import Rule, RuleKind, RuleMode, RulePhase, RuleSet, Schema


def ruled(mode: RuleMode, enable_at=None, phase: str = "domain", **rule) -> Schema:
    made = Rule(**{"name": "mask", "doc": None, "kind": RuleKind.TRANSFORM, "mode": mode, "type": "CEL", "tags": None,
                   "params": None, "expr": None, "on_success": None, "on_failure": None, "disabled": False} | rule)
    rules = {"migration_rules": None, "domain_rules": None, "encoding_rules": None, f"{phase}_rules": [made]}
    return Schema("{}", rule_set=RuleSet(enable_at=enable_at, **rules))


@pytest.mark.parametrize(("schema", "mode"), [
    (ruled(RuleMode.WRITE), RuleMode.WRITE), (ruled(RuleMode.WRITEREAD), RuleMode.WRITE),
    (ruled(RuleMode.WRITEREAD), RuleMode.READ), (ruled(RuleMode.READ, "CLIENT"), RuleMode.READ),
    (ruled(RuleMode.WRITEREAD, on_failure="NONE,ERROR"), RuleMode.READ),
    (ruled(RuleMode.WRITE, on_failure="DLQ"), RuleMode.WRITE)])
def test_a_rule_that_is_due_is_an_error_that_names_it(schema, mode) -> None:
    with pytest.raises(SerializationError, match="'mask' of type CEL"):
        check_no_rule(schema, mode, [RulePhase.DOMAIN])


@pytest.mark.parametrize(("schema", "mode"), [
    (None, RuleMode.WRITE), (Schema("{}"), RuleMode.WRITE), (ruled(RuleMode.READ), RuleMode.WRITE),
    (ruled(RuleMode.WRITE, disabled=True), RuleMode.WRITE), (ruled(RuleMode.WRITE, "SERVER"), RuleMode.WRITE),
    (ruled(RuleMode.WRITE, on_failure="NONE"), RuleMode.WRITE),
    (ruled(RuleMode.WRITEREAD, on_failure="NONE,ERROR"), RuleMode.WRITE),
    (ruled(RuleMode.WRITE, phase="encoding"), RuleMode.WRITE)])
def test_other_rules_are_passed_by(schema, mode) -> None:
    check_no_rule(schema, mode, [RulePhase.DOMAIN])


def test_rules_between_versions() -> None:
    assert has_migrations(ruled(RuleMode.UPGRADE, phase="migration"), RuleMode.UPGRADE)
    assert has_migrations(ruled(RuleMode.UPDOWN, phase="migration"), RuleMode.DOWNGRADE)
    assert not has_migrations(ruled(RuleMode.UPGRADE, phase="migration"), RuleMode.DOWNGRADE)
    assert not has_migrations(ruled(RuleMode.UPGRADE), RuleMode.UPGRADE)
