"""The metadata and rules that a schema gets when it is registered: those of the request or else of the version before,
with what the subject's configuration has as default below them, and what overrides above.

Source: Confluent's documentation of data contracts. Read next: `broker.registry.registrations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.broker.registry.registry_state import SchemaEntity

__all__ = ["with_contract"]

Contract = Mapping[str, Any]


def with_contract(given: SchemaEntity, before: SchemaEntity | None, config: Contract) -> SchemaEntity:
    """A schema with all the metadata and rules that it is to have.

    Args:
        given: what is to be registered.
        before: the subject's latest version.
        config: the configuration that holds for the subject.
    """
    metadata, rules = given.metadata, given.rule_set
    if before is not None:
        metadata = before.metadata if metadata is None else metadata
        rules = before.rule_set if rules is None else rules
    return SchemaEntity(
        given.schema_type, given.text, given.references,
        _merged(config.get("defaultMetadata"), metadata, config.get("overrideMetadata")),
        _merged(config.get("defaultRuleSet"), rules, config.get("overrideRuleSet")))


def _merged(*layers: Any) -> Contract | None:
    """All layers in one, the later above the earlier: what is named alike is the later one's."""
    found = [each for each in layers if isinstance(each, dict)]
    if len(found) < 2:  # kept as it came
        return found[0] if found else None
    merged: dict[str, Any] = {}
    for layer in found:
        for key, value in layer.items():
            merged[key] = _above(merged.get(key), value)
    return merged


def _above(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return below | above
    if isinstance(below, list) and isinstance(above, list):
        names = [_name(each) for each in above]
        return [*(each for each in below if _name(each) not in names), *above]
    return below if above is None else above


def _name(entry: Any) -> Any:
    """What a rule is called; an entry that is no rule, such as the name of a sensitive property, is its own name."""
    return entry.get("name") if isinstance(entry, dict) else entry
