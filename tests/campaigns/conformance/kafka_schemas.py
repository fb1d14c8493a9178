"""Kafka's own message schemas, read out of the jar of its Java client, and where a class of ours differs from them."""

from __future__ import annotations

import json
import os
import re
import zipfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from headrace.wire.layout import UNSET, ZERO_UUID, FieldColumn, columns
from headrace.wire.schema import ApiMessage
from headrace.wire.versions import NEVER, Versions

JARS = ("4.4.0", "4.3.1", "3.9.2")
"""The newest; the one before it; and the last that knows every version back to 0."""

Schema = dict[str, Any]

_FOLDER = "common/message/"
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_ZEROS: dict[str, Any] = {"String": "", "ShortString": "", "Bytes": b"", "Bool": False, "Float64": 0.0,
                          "Uuid": ZERO_UUID}

NOT_IN_JARS = {"StickyAssignorUserData", "CooperativeStickyAssignorUserData"}
"""Messages that Java writes by hand: there is no schema to compare with, only bytes."""

OLD_NAMES = {
    "ListConfigResourcesRequest": "ListClientMetricsResourcesRequest",
    "ListConfigResourcesResponse": "ListClientMetricsResourcesResponse",
}
"""Messages by another name in older jars."""

_EPOCH = {"TxnOffsetCommitRequest.generation_id": "generation_id_or_member_epoch"}
OLD_FIELDS = {
    "4.3.1": {"StreamsGroupHeartbeatResponse.acceptable_recovery_lag": "acceptable_recovery_lag_legacy", **_EPOCH},
    "3.9.2": {"ListConfigResourcesResponse.client_metrics_resources": "config_resources",
              "ListConfigResourcesResponse.name": "resource_name", "VoteRequest.candidate_epoch": "replica_epoch",
              "VoteRequest.candidate_id": "replica_id", "VoteRequest.candidate_directory_id": "replica_directory_id",
              **_EPOCH},
}
"""Fields by another name in older jars, under that name: as they are called now."""

NOW_IGNORABLE = {
    "3.9.2": {"ProduceRequest.topic_data.name", "ProduceResponse.responses.name", "OffsetCommitRequest.topics.name",
              "OffsetCommitResponse.topics.name", "OffsetFetchRequest.groups.topics.name",
              "OffsetFetchResponse.groups.topics.name", "TxnOffsetCommitRequest.topics.name",
              "TxnOffsetCommitResponse.topics.name", "UpdateFeaturesResponse.results"},
    "4.3.1": {"TxnOffsetCommitRequest.topics.name", "TxnOffsetCommitResponse.topics.name"},
}
"""Fields that became ignorable after this jar, when a newer version no longer had them (KIP-516, KIP-1319, KIP-584)."""

NO_LONGER_IGNORABLE = {"3.9.2": {"RequestHeader.client_id"}}
"""Fields that Kafka 4 stopped to ignore: header version 0 is gone there."""


@dataclass
class Comparison:
    """What was compared and what differs."""

    jar: str
    messages: int = 0
    structs: int = 0
    fields: int = 0
    differences: list[str] = field(default_factory=list)


def clients_jar(version: str) -> Path:
    """The jar of Kafka's client. Without a network the test is skipped; with `CI=true` that is a failure."""
    artifacts = pytest.importorskip("tools.kafka.artifacts")
    try:
        jars: list[Path] = artifacts.jars(f"kafka-{version}")
    except artifacts.RegistryError as error:
        unavailable(str(error))
    return next(jar for jar in jars if jar.name.startswith("kafka-clients-"))


def unavailable(reason: str) -> None:
    """Something that this machine lacks: skip, or fail where everything has to be there."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


def read_schemas(clients_jar: Path) -> dict[str, Schema]:
    """Every schema by the message's name."""
    with zipfile.ZipFile(clients_jar) as jar:
        names = [name for name in jar.namelist() if name.startswith(_FOLDER) and name.endswith(".json")]
        schemas = [json.loads(_COMMENT.sub("", jar.read(name).decode())) for name in names]
    return {schema["name"]: schema for schema in schemas}


def stable_versions(name: str, schemas: dict[str, Schema]) -> range:
    """Versions of a message that a release serves: without the newest one when Kafka still works on it."""
    schema = schemas[name]
    if schema["validVersions"] == "none":
        return range(0)
    low, high = Versions.parse(schema["validVersions"])
    key = schema.get("apiKey")
    unstable = any(other.get("latestVersionUnstable") for other in schemas.values()
                   if key is not None and other.get("apiKey") == key)
    return range(low, high + 1 - unstable)


def compare_all(jar: str, schemas: dict[str, Schema], classes: list[type[ApiMessage]]) -> Comparison:
    """Every message of a jar beside every class of ours, both ways."""
    found = Comparison(jar)
    ours = {cls.__name__: cls for cls in classes}
    for now, before in OLD_NAMES.items():
        ours.setdefault(before, ours[now])
    for name in schemas:
        versions = stable_versions(name, schemas)
        if versions and name not in ours:
            found.differences.append(f"{name}: is missing")
        elif versions:
            compare(found, ours[name], schemas[name], versions)
    return found


def unknown_versions(schemas: list[dict[str, Schema]], classes: list[type[ApiMessage]]) -> list[str]:
    """Versions of ours that no jar has."""
    found = []
    for cls in classes:
        if cls.__name__ in NOT_IN_JARS:
            continue
        names = (cls.__name__, OLD_NAMES.get(cls.__name__, ""))
        known = {v for jar in schemas for name in names if name in jar for v in stable_versions(name, jar)}
        odd = set(range(cls.min_version, cls.max_version + 1)) - known
        found += [f"{cls.__name__}: versions {sorted(odd)} are only here"] if odd else []
    return found


def compare(found: Comparison, cls: type[ApiMessage], schema: Schema, versions: range) -> None:
    """One message: its number, its versions, and its fields in the versions that a jar has."""
    name = cls.__name__
    found.messages += 1
    absent = [v for v in versions if not cls.min_version <= v <= cls.max_version]
    if absent:
        found.differences.append(f"{name}: versions {absent} are missing")
    if schema.get("apiKey") != getattr(cls, "api_key", None):
        found.differences.append(f"{name}: API key {schema.get('apiKey')}, here {getattr(cls, 'api_key', None)}")
    flexible = None if schema["flexibleVersions"] == "none" else Versions.parse(schema["flexibleVersions"]).low
    if flexible != cls.flexible_version:
        found.differences.append(f"{name}: flexible from {flexible}, here from {cls.flexible_version}")
    commons = {common["name"]: common["fields"] for common in schema.get("commonStructs", [])}
    _fields(found, cls, schema["fields"], commons, versions, name)


def _fields(
    found: Comparison, cls: type[Any], fields: list[Schema], commons: dict[str, Any], versions: range, path: str
) -> None:
    ours = {column.name: column for column in columns(cls)}
    order = []
    found.structs += 1
    for field_ in fields:
        name = current_name(found.jar, path, snake(field_["name"]))
        here = f"{path}.{name}"
        held = _held(field_["versions"], versions)
        column = ours.pop(name, None)
        if column is None:
            found.differences += [f"{here}: is missing"] if held else []
            continue
        order.append(column.name)
        if held or any(column.versions.holds(v) for v in versions):
            found.fields += 1
            found.differences += [f"{here}: {text}" for text in _field(column, field_, versions, found.jar, here)]
        if column.type.struct is not None:
            inner = field_.get("fields") or commons[field_["type"].removeprefix("[]")]
            _fields(found, column.type.struct, inner, commons, versions, here)
    extra = [name for name, column in ours.items() if any(column.versions.holds(v) for v in versions)]
    found.differences += [f"{path}.{name}: only here" for name in extra]
    if [name for name in cls.fields if name in order] != order:
        found.differences.append(f"{path}: order of the fields")


def _field(column: FieldColumn, field_: Schema, versions: range, jar: str, path: str) -> list[str]:
    held = _held(field_["versions"], versions)
    found = []
    if held != [v for v in versions if column.versions.holds(v)]:
        found.append(f"versions {field_['versions']}, here {column.versions}")
    nullable = [v for v in _held(field_.get("nullableVersions"), versions) if v in held]
    if nullable != [v for v in held if column.nullable.holds(v)]:
        found.append(f"nullable in {field_.get('nullableVersions')}, here in {column.nullable}")
    tagged = [v for v in _held(field_.get("taggedVersions"), versions) if v in held]
    if (tagged, int(field_["tag"]) if tagged else None) != (
            [v for v in held if column.is_tagged(v)], column.tag if tagged else None):
        found.append(f"tag {field_.get('tag')} in {field_.get('taggedVersions')}, here {column.tag} in {column.tagged}")
    if _type(field_["type"], column) != field_["type"]:
        found.append(f"type {field_['type']}, here {column.type}")
    if (column.type.name == "ShortString") != (field_.get("flexibleVersions") == "none"):
        found.append(f"flexible in {field_.get('flexibleVersions')}, here {column.type}")
    if _ignorable(field_, jar, path) != column.ignorable:
        found.append(f"ignorable {field_.get('ignorable')}, here {column.ignorable}")
    if _default(field_, column) != column.default:
        found.append(f"default {field_.get('default')!r}, here {column.default!r}")
    return found


def _held(text: str | None, versions: range) -> list[int]:
    parsed = Versions.parse(text) if text and text != "none" else NEVER
    return [version for version in versions if parsed.holds(version)]


def _type(theirs: str, column: FieldColumn) -> str:
    """Our type as Kafka writes it; names of structures may differ."""
    name = column.type.name.lower().removeprefix("short") or theirs.removeprefix("[]")
    return f"[]{name}" if column.type.is_array else name


def _ignorable(field_: Schema, jar: str, path: str) -> bool:
    if path in NOW_IGNORABLE.get(jar, ()):
        return True
    return bool(field_.get("ignorable")) and path not in NO_LONGER_IGNORABLE.get(jar, ())


def _default(field_: Schema, column: FieldColumn) -> Any:
    given = field_.get("default")
    if column.type.name == "Records":
        return None if "nullableVersions" in field_ and column.nullable != NEVER else b""
    if given == "null":
        return None
    if column.type.is_array or column.type.struct is not None:
        return UNSET
    if given is None:
        return _ZEROS.get(column.type.name, 0)
    if column.type.name == "Bool":
        return str(given).lower() == "true"
    return int(str(given), 0) if column.type.name not in _ZEROS else given


def current_name(jar: str, path: str, name: str) -> str:
    """A field's name now; `path` begins with the message."""
    return OLD_FIELDS.get(jar, {}).get(f"{path.partition('.')[0]}.{name}", name)


@cache
def snake(name: str) -> str:
    """Kafka's name of a field as it is written here."""
    return re.sub(r"(?<=[A-Z])([A-Z][a-z])", r"_\1", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)).lower()
