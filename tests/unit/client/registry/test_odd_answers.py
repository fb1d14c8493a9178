"""Whatever a registry answers, a call returns or raises SchemaRegistryError: JSON of every shape, for every call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.client.registry.answers import Answer, read
from headrace.client.registry.http_transport import RegistryRequest, Sessions
from headrace.errors import SchemaRegistryError
from headrace.schema_registry import AssociationCreateOrUpdateRequest, Schema, SchemaRegistryClient, ServerConfig

TEXT = Schema('"string"')
CALLS: dict[str, tuple[Any, ...]] = {
    "register_schema": ("s", TEXT), "register_schema_full_response": ("s", TEXT), "get_schema": (1,),
    "get_schema_by_guid": ("g",), "get_schema_types": (), "get_subjects_by_schema_id": (1,),
    "get_schema_versions": (1,),
    "lookup_schema": ("s", TEXT), "get_subjects": (), "delete_subject": ("s",), "get_latest_version": ("s",),
    "get_latest_with_metadata": ("s", {}), "get_version": ("s", 1), "get_referenced_by": ("s", 1),
    "get_versions": ("s",), "delete_version": ("s", 1), "set_compatibility": ("s", "FULL"), "get_compatibility": ("s",),
    "test_compatibility": ("s", TEXT), "test_compatibility_all_versions": ("s", TEXT),
    "set_config": ("s", ServerConfig()), "delete_config": ("s",), "get_config": ("s",), "get_mode": ("s",),
    "update_mode": ("s", "IMPORT"), "delete_mode": ("s",), "get_global_mode": (), "update_global_mode": ("IMPORT",),
    "get_contexts": (), "get_associations_by_resource_name": ("t", "-"),
    "create_association": (AssociationCreateOrUpdateRequest(),), "delete_associations": ("u",),
}
NAMES = ("id", "version", "subject", "guid", "schema", "schemaType", "references", "metadata", "ruleSet", "mode",
         "compatibilityLevel", "is_compatible", "defaultMetadata", "overrideRuleSet", "associations", "frozen")
VALUES: tuple[Any, ...] = (None, True, -1, 1.5, "text", [], [None], [3], ["x"], [[]], [{}], {}, {"tags": 3},
                           {"domainRules": [{"kind": "X"}]}, {"properties": []}, {"associations": [3]},
                           {"tags": {"a": None}}, {"tags": {"a": [[]]}}, {"properties": {"a": []}},
                           {"domainRules": [{"expr": []}]}, {"domainRules": [{"params": {"a": {}}}]})
PLACE = {"id": 1, "version": 1, "subject": "s", "guid": "g"}
ODD: tuple[Any, ...] = (*VALUES, *({name: value} for name in NAMES for value in VALUES),
                        *({**PLACE, name: value} for name in NAMES for value in VALUES), b"", b"x", b"\0", b"[[[",
                        b'{"id": 1e999}', b'{"id": NaN}', b'{"a": "\\ud800"}')


class Odd:
    """Answers with what it was given last."""

    def __init__(self) -> None:
        self.body, self.sessions = b"", Sessions()

    async def send(self, request: RegistryRequest, headers: Mapping[str, str]) -> Any:
        return read(Answer(200, self.body, {}))


def test_every_call_is_tried() -> None:
    public = {name for name in vars(SchemaRegistryClient) if not name.startswith("_")}
    assert public - set(CALLS) == {"clear_caches", "clear_latest_caches", "close", "config", "new_client"}


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_answer_is_a_result_or_a_registry_error(name: str) -> None:
    client = SchemaRegistryClient({"url": "mock://", "cache.capacity": 0})
    client._engine._transport = registry = Odd()
    refused = set()
    for odd in ODD:
        registry.body = odd if isinstance(odd, bytes) else json.dumps(odd).encode()
        try:
            getattr(client, name)(*CALLS[name])
        except SchemaRegistryError as error:
            refused.add((error.http_status_code, error.error_code))
    assert refused == {(200, -1)}
