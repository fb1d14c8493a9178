"""What of the package is public, and on which page of the reference each name is described.

A name may be imported from several modules, as from confluent_kafka's; it is described in one, the first that has it in
`MODULES`, and the others refer to it. `docs/conf.py` builds the pages with it, `tests/quality/test_reference.py` reads
the docstrings.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

MODULES = {
    "headrace.errors": "errors",
    "headrace": "headrace",
    "headrace.aio": "aio",
    "headrace.admin": "admin",
    "headrace.serialization": "serialization",
    "headrace.schema_registry": "schema-registry",
    "headrace.schema_registry.schema_registry_client": "schema-registry",
    "headrace.schema_registry.mock_schema_registry_client": "schema-registry",
    "headrace.schema_registry.avro": "schema-serializers",
    "headrace.schema_registry.json_schema": "schema-serializers",
    "headrace.schema_registry.protobuf": "schema-serializers",
    "headrace.schema_registry.serde": "schema-serializers",
    "headrace.avro": "avro",
    "headrace.spark": "spark",
    "headrace.testing": "testing",
    "headrace.opentelemetry": "opentelemetry",
    "headrace.as_confluent_kafka": "as-confluent-kafka",
}
"""Public modules, and the pages in `docs/reference/api` that describe them."""
ALIASES = (
    "headrace.error", "headrace.serializing_producer", "headrace.deserializing_consumer",
    "headrace.deserializing_share_consumer", "headrace.schema_registry.error",
)
"""Modules that have only names of others, where confluent_kafka has them."""


def public_names(module: str) -> dict[str, object]:
    """What a module offers, by name."""
    imported = import_module(module)
    return {name: getattr(imported, name) for name in imported.__all__}


@cache
def homes() -> dict[tuple[str, str], str]:
    """By module and name, the module that describes it. Constants are described where they are."""
    first: dict[int, str] = {}
    found = {}
    for module in MODULES:
        for name, value in public_names(module).items():
            described = is_described(value)
            found[module, name] = first.setdefault(id(value), module) if described else module
    return found


def is_described(value: object) -> bool:
    """Whether a name has a docstring of its own: classes and functions have, constants have a value."""
    return callable(value) and not isinstance(value, ModuleType)


def directive(module: str) -> str:
    """The lines by which Sphinx describes a module: what is described elsewhere, and constants, are listed below it."""
    elsewhere, constants = [], []
    for name, value in public_names(module).items():
        if not is_described(value):
            constants.append(f"``{name}`` = ``{value!r}``")
        elif (home := homes()[module, name]) != module:
            elsewhere.append((name, f":py:obj:`{name} <{home}.{name}>`"))
    lines = [f".. automodule:: {module}"]
    if module == "headrace.errors":
        lines.append("   :show-inheritance:")
    if elsewhere:
        lines.append(f"   :exclude-members: {', '.join(name for name, _ in elsewhere)}")
        lines += ["", "Described elsewhere: " + ", ".join(link for _, link in elsewhere) + "."]
    if constants:
        lines += ["", "Constants: " + ", ".join(constants) + "."]
    return "\n".join(lines) + "\n"
