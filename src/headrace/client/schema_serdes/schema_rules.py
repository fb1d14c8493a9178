"""Rules of a data contract: none is run. Where one would have been, the message is refused (decision 0034).

As in confluent_kafka without an engine for them, a rule that is disabled, or whose `on_failure` is NONE, is passed by.
Read next: `types.contracts`.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import SerializationError
from headrace.types.registry import Rule, RuleMode, RulePhase, Schema

__all__ = ["check_no_rule", "has_migrations"]

_BOTH_WAYS = {RuleMode.READ: RuleMode.WRITEREAD, RuleMode.WRITE: RuleMode.WRITEREAD,
              RuleMode.UPGRADE: RuleMode.UPDOWN, RuleMode.DOWNGRADE: RuleMode.UPDOWN}
_BOTH = {RuleMode.WRITEREAD, RuleMode.UPDOWN}
_SECOND = {RuleMode.READ, RuleMode.DOWNGRADE}
_HERE = {None, "", "ALL", "CLIENT"}


def check_no_rule(schema: Schema | None, mode: RuleMode, phases: Sequence[RulePhase]) -> None:
    """Make sure that a schema asks for nothing that is not done.

    Args:
        schema: the schema; None for none.
        mode: which way the message goes.
        phases: whose rules would be due.

    Raises:
        SerializationError: a rule is due.
    """
    rules = None if schema is None else schema.rule_set
    if rules is None or getattr(rules, "enable_at", None) not in _HERE:
        return
    for phase in phases:
        for rule in _rules_of(schema, phase):
            if _is_due(rule, mode):
                raise SerializationError(
                    f"rule {rule.name!r} of type {rule.type} is due ({phase}, {mode}), and rules are not run here: "
                    "disable it, or set its onFailure to NONE to go on without it")


def has_migrations(schema: Schema | None, mode: RuleMode) -> bool:
    """Whether a version of a schema has rules that lead to it from the one before, or back."""
    return any(rule.mode in (mode, _BOTH_WAYS[mode]) for rule in _rules_of(schema, RulePhase.MIGRATION))


def _rules_of(schema: Schema | None, phase: RulePhase) -> list[Rule]:
    rules = None if schema is None else schema.rule_set
    found = None if rules is None else getattr(rules, f"{phase.lower()}_rules", None)
    return found or []


def _is_due(rule: Rule, mode: RuleMode) -> bool:
    if rule.disabled or rule.mode not in (mode, _BOTH_WAYS[mode]):
        return False
    action = rule.on_failure or "ERROR"
    if rule.mode in _BOTH and "," in action:
        action = action.split(",")[mode in _SECOND]
    return action != "NONE"
