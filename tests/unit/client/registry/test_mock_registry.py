"""The registry within the process: it answers as one does over HTTP."""

from __future__ import annotations

import gc
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.client.registry.http_transport import RegistryRequest
from headrace.client.registry.mock_registry import MockRegistry, mock_registry
from headrace.errors import SchemaRegistryError
from headrace.schema_registry import ConfigCompatibilityLevel, Schema, SchemaRegistryClient
from headrace.testing import EmbeddedBroker


@pytest.fixture
def mock() -> MockRegistry:
    return MockRegistry()


def ask(mock: MockRegistry, method: str, path: str, body: Any = None, **query: Any) -> Any:
    return mock.answer(RegistryRequest(method, tuple(path.split("/")), query, body))


def register(mock: MockRegistry, subject: str, text: str, **more: Any) -> Any:
    return ask(mock, "POST", f"subjects/{subject}/versions", {"schema": text, **more})


def test_versions_count_from_one_and_a_schema_has_one_id() -> None:
    mock = MockRegistry()
    found = [register(mock, *each) for each in (("a", "1"), ("a", "2"), ("a", "1"), ("b", "2"))]
    assert [(each["subject"], each["version"], each["id"]) for each in found] == [
        ("a", 1, 1), ("a", 2, 2), ("a", 1, 1), ("b", 1, 2)]
    assert len({each["guid"] for each in found}) == 2
    assert ask(mock, "GET", "subjects") == ["a", "b"]
    assert ask(mock, "GET", "subjects/a/versions") == [1, 2]
    assert ask(mock, "GET", "subjects/a/versions/latest")["schema"] == "2"
    assert ask(mock, "GET", "schemas/ids/2")["schema"] == "2"
    assert ask(mock, "GET", f"schemas/guids/{found[0]['guid']}")["schema"] == "1"
    assert ask(mock, "POST", "subjects/a", {"schema": "1"})["version"] == 1


def test_a_version_that_follows_a_deleted_one_has_the_next_number(mock: MockRegistry) -> None:
    for text in ("1", "2", "3"):
        register(mock, "a", text)
    assert ask(mock, "DELETE", "subjects/a/versions/2") == 2
    assert ask(mock, "GET", "subjects/a/versions") == [1, 3]
    assert register(mock, "a", "4")["version"] == 4
    assert ask(mock, "DELETE", "subjects/a") == [1, 3, 4]
    assert ask(mock, "DELETE", "subjects/a") == []


def test_lists_have_pages_and_subjects_prefixes(mock: MockRegistry) -> None:
    for subject in ("a1", "a2", "b1"):
        register(mock, subject, "1")
    assert ask(mock, "GET", "subjects", subjectPrefix="a") == ["a1", "a2"]
    assert ask(mock, "GET", "subjects", offset=1, limit=1) == ["a2"]
    assert ask(mock, "GET", "schemas/ids/1/subjects", offset=2, limit=-1) == ["b1"]
    assert ask(mock, "GET", "schemas/ids/1/versions", subject="a1") == [{"subject": "a1", "version": 1}]


@pytest.mark.parametrize(("method", "path", "body"), [
    ("GET", "schemas/ids/9", None), ("GET", "schemas/guids/9", None), ("GET", "subjects/a/versions/latest", None),
    ("GET", "subjects/a/versions/1", None), ("GET", "subjects/a/versions/one", None), ("POST", "subjects/a", {}),
    ("DELETE", "subjects/a/versions/1", None), ("GET", "subjects/a/metadata", None),
])
def test_what_is_not_there_is_a_404(mock: MockRegistry, method: str, path: str, body: Any) -> None:
    with pytest.raises(SchemaRegistryError, match="Schema Not Found") as raised:
        ask(mock, method, path, body)
    assert (raised.value.http_status_code, raised.value.error_code) == (404, 40400)


@pytest.mark.parametrize(("method", "path"), [
    ("GET", "elsewhere"), ("PUT", "subjects/a"), ("GET", "compatibility/subjects/a/versions"),
    ("PUT", "schemas/types"), ("PUT", "associations/x")])
def test_a_request_that_there_is_not_says_so(mock: MockRegistry, method: str, path: str) -> None:
    with pytest.raises(SchemaRegistryError, match=f"does not know {method} {path}"):
        ask(mock, method, path)


def test_the_latest_version_with_some_metadata_is_found(mock: MockRegistry) -> None:
    for number, owner in ((1, "x"), (2, "x"), (3, "y")):
        register(mock, "a", str(number), metadata={"properties": {"owner": owner, "n": str(number)}})
    register(mock, "a", "4")
    assert ask(mock, "GET", "subjects/a/metadata", key=["owner"], value=["x"])["version"] == 2
    assert ask(mock, "GET", "subjects/a/metadata")["version"] == 3


def test_references_are_found_backwards(mock: MockRegistry) -> None:
    register(mock, "a", "1")
    register(mock, "b", "2", references=[{"name": "n", "subject": "a", "version": 1}])
    assert ask(mock, "GET", "subjects/a/versions/1/referencedby") == [2]
    assert ask(mock, "GET", "subjects/b/versions/latest/referencedby") == []


def test_configurations_are_of_the_registry_or_of_a_subject(mock: MockRegistry) -> None:
    assert ask(mock, "GET", "config") == {"compatibilityLevel": "BACKWARD"}
    assert ask(mock, "PUT", "config/a", {"compatibility": "FULL"}) == {"compatibility": "FULL"}
    ask(mock, "PUT", "config/a", {"compatibilityGroup": "g"})
    assert ask(mock, "GET", "config/a") == {"compatibilityLevel": "FULL", "compatibilityGroup": "g"}
    ask(mock, "DELETE", "config/a")
    with pytest.raises(SchemaRegistryError, match="'a' does not have subject-level compatibility") as raised:
        ask(mock, "GET", "config/a")
    assert raised.value.error_code == 40408
    ask(mock, "PUT", "config", {"compatibility": "NONE"})
    assert ask(mock, "DELETE", "config") == {"compatibilityLevel": "NONE"}
    assert ask(mock, "GET", "config") == {"compatibilityLevel": "BACKWARD"}
    with pytest.raises(SchemaRegistryError, match="Invalid compatibility level: SOME") as raised:
        ask(mock, "PUT", "config", {"compatibility": "SOME"})
    assert (raised.value.http_status_code, raised.value.error_code) == (422, 42203)


def test_modes_are_of_the_registry_or_of_a_subject(mock: MockRegistry) -> None:
    assert ask(mock, "GET", "mode") == {"mode": "READWRITE"}
    assert ask(mock, "PUT", "mode/a", {"mode": "IMPORT"}) == ask(mock, "GET", "mode/a") == {"mode": "IMPORT"}
    assert ask(mock, "DELETE", "mode/a") == {"mode": "IMPORT"}
    with pytest.raises(SchemaRegistryError, match="'a' does not have subject-level mode"):
        ask(mock, "GET", "mode/a")


def test_there_are_three_types_and_one_context(mock: MockRegistry) -> None:
    assert sorted(ask(mock, "GET", "schemas/types")) == ["AVRO", "JSON", "PROTOBUF"]
    assert ask(mock, "GET", "contexts") == ["."]


def record(*fields: str, kind: str = "int") -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name in fields]})


FILE = 'syntax = "proto3"; message A {{ {} a = 1; }}'
PAIRS = {
    "a field fewer": ("AVRO", record("a", "b"), record("a")),
    "a field more": ("AVRO", record("a"), record("a", "b")),
    "the same": ("AVRO", record("a"), record("a")),
    "a wider number": ("AVRO", '"int"', '"long"'),
    "a wider type": ("JSON", '{"type": "integer"}', '{"type": "number"}'),
    "a closed object": ("JSON", '{"type": "object"}', '{"type": "object", "additionalProperties": false}'),
    "another scalar": ("PROTOBUF", FILE.format("int32"), FILE.format("string")),
}


@pytest.fixture(scope="module")
def embedded() -> Iterator[SchemaRegistryClient]:
    with EmbeddedBroker(registry=True) as broker, SchemaRegistryClient({"url": broker.registry_url}) as client:
        yield client


@pytest.mark.parametrize("level", ConfigCompatibilityLevel.__members__)
@pytest.mark.parametrize(("kind", "old", "new"), PAIRS.values(), ids=PAIRS)
def test_it_compares_as_the_embedded_registry_does(
    embedded: SchemaRegistryClient, level: str, kind: str, old: str, new: str
) -> None:
    verdicts = []
    for client in (embedded, SchemaRegistryClient({"url": "mock://"})):
        subject = str(uuid.uuid4())
        client.register_schema(subject, Schema(old, kind))
        client.set_compatibility(subject, level)
        verdicts.append((client.test_compatibility(subject, Schema(new, kind)),
                         client.test_compatibility(subject, Schema(new, kind), 1),
                         client.test_compatibility_all_versions(subject, Schema(new, kind)),
                         client.test_compatibility(subject + "?", Schema(new, kind))))
    assert verdicts[0] == verdicts[1]


def test_some_of_what_it_compares_is_compatible_and_some_is_not(mock: MockRegistry) -> None:
    def verdict(subject: str, text: str, version: str = "/latest") -> bool:
        answer = ask(mock, "POST", f"compatibility/subjects/{subject}/versions{version}", {"schema": text})
        return bool(answer["is_compatible"])

    register(mock, "a", record("a", kind="string"))
    register(mock, "a", record("a"))
    assert verdict("a", record("a", kind="long"))
    assert not verdict("a", record("a", kind="string"))
    assert verdict("a", record("a", kind="string"), "/1")
    assert verdict("a", record("a"), "")
    ask(mock, "PUT", "config", {"compatibilityLevel": "BACKWARD_TRANSITIVE"})
    assert not verdict("a", record("a"), "")
    ask(mock, "PUT", "config/a", {"compatibility": "NONE"})
    assert verdict("a", record("b"), "")


def test_what_is_compared_may_refer_to_others(mock: MockRegistry) -> None:
    inner = json.dumps({"type": "fixed", "name": "F", "size": 2})
    register(mock, "inner", inner)
    body = {"schema": record("a", kind="F"), "references": [{"name": "F", "subject": "inner", "version": 1}]}
    ask(mock, "POST", "subjects/a/versions", body)
    path = "compatibility/subjects/a/versions"
    assert ask(mock, "POST", path, body) == {"is_compatible": True}
    assert ask(mock, "POST", path, {"schema": record("a", kind="long")}) == {"is_compatible": False}


@pytest.mark.parametrize("body", [
    {"schema": "nonsense"}, {}, {"schema": '"int"', "schemaType": "XML"},
    {"schema": '"F"', "references": [{"name": "F", "subject": "nobody's", "version": 1}]}])
def test_what_cannot_be_read_cannot_be_compared(mock: MockRegistry, body: Any) -> None:
    with pytest.raises(SchemaRegistryError, match="Invalid schema: ") as raised:
        ask(mock, "POST", "compatibility/subjects/a/versions", body)
    assert (raised.value.http_status_code, raised.value.error_code) == (422, 42201)


def test_associations_are_found_by_name_and_deleted_by_id(mock: MockRegistry) -> None:
    about = {"resourceName": "t", "resourceNamespace": "lkc", "resourceId": "u", "resourceType": "topic"}
    kinds = [{"subject": f"t-{kind}", "associationType": kind, "lifecycle": "STRONG"} for kind in ("key", "value")]
    assert ask(mock, "POST", "associations", {**about, "associations": kinds}) == {
        **about, "associations": [{**kind, "frozen": False} for kind in kinds]}
    assert len(ask(mock, "GET", "associations/resources/-/t")) == 2
    assert ask(mock, "GET", "associations/resources/other/t") == []
    assert ask(mock, "GET", "associations/resources/lkc/t", associationType=["key"]) == [
        {**about, "subject": "t-key", "associationType": "key", "frozen": False}]
    ask(mock, "DELETE", "associations/resources/u", associationType=["key"])
    assert [one["subject"] for one in ask(mock, "GET", "associations/resources/-/t")] == ["t-value"]
    ask(mock, "DELETE", "associations/resources/u", resourceType="cluster")
    assert len(ask(mock, "GET", "associations/resources/-/t")) == 1
    ask(mock, "DELETE", "associations/resources/u")
    assert ask(mock, "GET", "associations/resources/-/t") == []


def test_a_name_is_one_registry_for_as_long_as_somebody_has_it() -> None:
    first = mock_registry("mock://shop")
    assert mock_registry("mock://shop") is first
    assert mock_registry("mock://other") is not first
    register(first, "a", "1")
    del first
    gc.collect()
    assert ask(mock_registry("mock://shop"), "GET", "subjects") == []


def test_without_a_name_each_client_has_a_registry_of_its_own() -> None:
    assert mock_registry("mock://") is not mock_registry("mock://")


def test_what_was_sent_may_change_afterwards(mock: MockRegistry) -> None:
    body: dict[str, Any] = {"schema": "1", "metadata": {"tags": {"a": ["x"]}}}
    ask(mock, "POST", "subjects/a/versions", body)
    body["metadata"]["tags"]["a"].append("y")
    assert ask(mock, "GET", "subjects/a/versions/1")["metadata"]["tags"] == {"a": ["x"]}
