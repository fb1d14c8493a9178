"""Kafka's own message schemas, read out of the jar of its Java client, and what a class of ours lacks beside them."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

from headrace.wire.layout import UNSET, ZERO_UUID, Column, columns
from headrace.wire.schema import Message
from headrace.wire.versions import NEVER, Versions

_FOLDER = "common/message/"
_RENAMED = {"generation_id": "generation_id_or_member_epoch"}
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_ZEROS: dict[str, Any] = {"String": "", "Bytes": b"", "Bool": False, "Float64": 0.0, "Uuid": ZERO_UUID}


def read_schemas(clients_jar: Path) -> dict[str, dict[str, Any]]:
    """Every schema by the message's name."""
    with zipfile.ZipFile(clients_jar) as jar:
        names = [name for name in jar.namelist() if name.startswith(_FOLDER) and name.endswith(".json")]
        schemas = [json.loads(_COMMENT.sub("", jar.read(name).decode())) for name in names]
    return {schema["name"]: schema for schema in schemas}


def differences(cls: type[Message], schema: dict[str, Any], *, in_full: bool) -> list[str]:
    """What a class says otherwise than the schema, in the versions that both have.

    Args:
        cls: class of a message.
        schema: Kafka's schema of it.
        in_full: compare defaults and what is ignorable too; older schemas differ there.
    """
    if schema["validVersions"] == "none":
        return []
    theirs = Versions.parse(schema["validVersions"])
    shared = range(max(theirs.low, cls.min_version), min(theirs.high, cls.max_version) + 1)
    commons = {common["name"]: common["fields"] for common in schema.get("commonStructs", [])}
    found = _compare(cls, schema["fields"], commons, shared, cls.__name__, in_full)
    flexible = None if schema["flexibleVersions"] == "none" else Versions.parse(schema["flexibleVersions"]).low
    if flexible != cls.flexible_version:
        found.append(f"{cls.__name__}: flexible from {flexible}, here from {cls.flexible_version}")
    return found


def _compare(
    cls: type[Any], fields: list[dict[str, Any]], commons: dict[str, Any], shared: range, path: str, in_full: bool
) -> list[str]:
    ours = {column.name: column for column in columns(cls)}
    found, order = [], []
    for field in fields:
        name = snake(field["name"])
        column = ours.pop(name, None) or ours.pop(_RENAMED.get(name, ""), None)
        here = f"{path}.{name}"
        if column is None:
            found += [f"{here}: is missing"] if _held(field["versions"], shared) else []
            continue
        order.append(column.name)
        found += [f"{here}: {text}" for text in _field(column, field, shared, in_full)]
        if column.type.struct is not None:
            inner = field.get("fields") or commons[field["type"].removeprefix("[]")]
            found += _compare(column.type.struct, inner, commons, shared, here, in_full)
    extra = [name for name, column in ours.items() if any(column.versions.holds(v) for v in shared)]
    here_order = [name for name in cls.fields if name in order]
    return found + [f"{path}.{name}: only here" for name in extra] + ([] if order == here_order else [f"{path}: order"])


def _field(column: Column, field: dict[str, Any], shared: range, in_full: bool) -> list[str]:
    held = _held(field["versions"], shared)
    found = []
    if held != [v for v in shared if column.versions.holds(v)]:
        found.append(f"versions {field['versions']}, here {column.versions}")
    nullable = [v for v in _held(field.get("nullableVersions"), shared) if v in held]
    if nullable != [v for v in held if column.nullable.holds(v)]:
        found.append(f"nullable in {field.get('nullableVersions')}, here in {column.nullable}")
    tagged = [v for v in _held(field.get("taggedVersions"), shared) if v in held]
    if (tagged, field.get("tag") if tagged else None) != (
            [v for v in held if column.is_tagged(v)], column.tag if tagged else None):
        found.append(f"tag {field.get('tag')} in {field.get('taggedVersions')}, here {column.tag} in {column.tagged}")
    if _type(field["type"], column) != field["type"]:
        found.append(f"type {field['type']}, here {column.type}")
    if in_full and bool(field.get("ignorable")) != column.ignorable:
        found.append(f"ignorable {field.get('ignorable')}, here {column.ignorable}")
    if in_full and _default(field, column) != column.default:
        found.append(f"default {field.get('default')!r}, here {column.default!r}")
    return found


def _held(versions: str | None, shared: range) -> list[int]:
    parsed = Versions.parse(versions) if versions and versions != "none" else NEVER
    return [version for version in shared if parsed.holds(version)]


def _type(theirs: str, column: Column) -> str:
    """Our type as Kafka writes it; names of structures may differ."""
    name = column.type.name.lower() or theirs.removeprefix("[]")
    return f"[]{name}" if column.type.is_array else name


def _default(field: dict[str, Any], column: Column) -> Any:
    given = field.get("default")
    if column.type.name == "Records":
        return None if "nullableVersions" in field and column.nullable != NEVER else b""
    if given == "null":
        return None
    if column.type.is_array or column.type.struct is not None:
        return UNSET
    if given is None:
        return _ZEROS.get(column.type.name, 0)
    if column.type.name == "Bool":
        return str(given).lower() == "true"
    return int(str(given), 0) if column.type.name not in _ZEROS else given


def snake(name: str) -> str:
    """Kafka's name of a field as it is written here."""
    return re.sub(r"(?<=[A-Z])([A-Z][a-z])", r"_\1", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)).lower()
