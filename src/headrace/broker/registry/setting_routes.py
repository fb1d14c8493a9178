"""`/config` and `/mode`, of everything, of a context (`:.context:`) and of a subject. Read next:
`broker.registry.rest_api`.
"""

from __future__ import annotations

from typing import Any, Final

from headrace.broker.registry.registrations import IMPORT, MODES, SchemaRegistry
from headrace.broker.registry.registry_state import key_of
from headrace.broker.registry.rest_call import RestCall
from headrace.broker.registry.rest_errors import RestError, not_permitted, subject_not_found
from headrace.broker.registry.subject_names import context_of, plain_name
from headrace.schemas.compatibility import LEVELS

__all__ = ["ROUTES"]

_KEPT: Final = ("alias", "normalize", "compatibilityGroup", "validateFields", "validateNames", "validateRules",
                "defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")
"""What a configuration may have beside the level. Of `alias`, `compatibilityGroup` and what is to be validated nothing
follows.
"""


def _config(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    subject = call.subject
    own = registry.state.configs.get(subject)
    if subject and own is None and not call.flag("defaultToGlobal"):
        raise RestError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")
    return registry.config_of(subject) if own is None or not subject or call.flag("defaultToGlobal") else dict(own)


def _set_config(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    subject, body = call.subject, call.body
    level = body.get("compatibility", body.get("compatibilityLevel"))
    kept = {key: body[key] for key in _KEPT if body.get(key) is not None}
    if level is None and not kept:
        raise RestError(42203, "Invalid compatibility level. Valid values are none, backward, forward, full, "
                        "backward_transitive, forward_transitive, and full_transitive")
    if level is not None:
        if not isinstance(level, str) or level.upper() not in LEVELS:
            raise RestError(42203, "Invalid compatibility level. Valid values are none, backward, forward, full, "
                            "backward_transitive, forward_transitive, and full_transitive")
        kept["compatibilityLevel"] = level.upper()
    registry.check_writable(subject)
    own = registry.state.configs.get(subject, {})
    registry.write(key_of("CONFIG", subject), {"subject": subject or None, **own, **kept}, call.now_ms)
    return dict(body)


def _delete_config(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    subject = call.subject
    old = registry.state.configs.get(subject)
    if old is None and subject:
        raise subject_not_found(subject)
    shown = registry.config_of(subject) if old is None else dict(old)
    registry.check_writable(subject)
    if old is not None:
        registry.write(key_of("CONFIG", subject), None, call.now_ms)
    return shown


def _mode(registry: SchemaRegistry, call: RestCall) -> dict[str, str]:
    subject = call.subject
    if subject and subject not in registry.state.modes and not call.flag("defaultToGlobal"):
        raise RestError(40409, f"Subject '{subject}' does not have subject-level mode configured")
    return {"mode": registry.mode_of(subject)}


def _set_mode(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    subject, mode = call.subject, call.body.get("mode")
    if not isinstance(mode, str) or mode.upper() not in MODES:
        raise RestError(42204, f"Invalid mode. Valid values are {', '.join(MODES)}")
    mode = mode.upper()
    begins = mode == IMPORT and registry.mode_of(subject) != IMPORT
    if begins and not call.flag("force") and _is_used(registry, subject):
        raise not_permitted("Cannot import since found existing subjects")
    registry.write(key_of("MODE", subject), {"subject": subject or None, "mode": mode}, call.now_ms)
    return {"mode": mode}


def _is_used(registry: SchemaRegistry, subject: str) -> bool:
    """Whether a scope has versions that are not deleted."""
    if plain_name(subject):
        return bool(registry.state.versions(subject))
    context = context_of(subject)
    return any(not subject or each.context == context for each in registry.state.all() if not each.is_deleted)


def _delete_mode(registry: SchemaRegistry, call: RestCall) -> dict[str, str]:
    subject = call.subject
    old = registry.state.modes.get(subject)
    if old is None and subject:
        raise subject_not_found(subject)
    shown = old or registry.mode_of(subject)
    if old is not None:
        registry.write(key_of("MODE", subject), None, call.now_ms)
    return {"mode": shown}


ROUTES: Final = tuple(
    (method, path, handler) for first, rows in (
        ("config", (("GET", _config), ("PUT", _set_config), ("DELETE", _delete_config))),
        ("mode", (("GET", _mode), ("PUT", _set_mode), ("DELETE", _delete_mode))),
    ) for path in (first, f"{first}/{{subject}}") for method, handler in rows)
