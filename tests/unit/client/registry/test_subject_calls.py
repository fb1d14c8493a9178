"""What a registry is asked about subjects, and what is not asked twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient
from tests.support.scripted_registry import Said, ScriptedRegistry

TEXT = Schema('"string"')
SAID = {"subject": "s", "version": 2, "id": 7, "guid": "g", "schema": '"string"'}
FOUND = RegisteredSchema("s", 2, 7, "g", TEXT)


@pytest.fixture
def client(registry: ScriptedRegistry) -> Iterator[SchemaRegistryClient]:
    registry.otherwise = lambda asked: SAID if asked.method == "GET" else [2]
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def test_a_version_is_asked_for_once_and_the_latest_each_time(
    client: SchemaRegistryClient, registry: ScriptedRegistry
) -> None:
    for _ in range(2):
        assert client.get_version("s", 2) == client.get_version("s") == FOUND
    assert [asked.path for asked in registry.asked] == [
        "/subjects/s/versions/2", "/subjects/s/versions/latest", "/subjects/s/versions/latest"]
    assert (client.get_schema(7, "s"), client.get_schema_by_guid("g"), client.register_schema("s", TEXT)) == (
        TEXT, TEXT, 7)
    assert len(registry.asked) == 3


def test_a_version_that_may_be_deleted_says_nothing_of_what_is_registered(
    client: SchemaRegistryClient, registry: ScriptedRegistry
) -> None:
    client.get_version("s", 2, deleted=True)
    client.get_version("s", 2)
    assert [asked.query["deleted"] for asked in registry.asked] == [["true"], ["false"]]


def test_a_version_that_may_be_deleted_is_kept_for_who_asks_for_such_ones_until_it_is_deleted(
    client: SchemaRegistryClient, registry: ScriptedRegistry
) -> None:
    for _ in range(3):
        assert client.get_version("s", 2, deleted=True) == FOUND
    assert len(registry.asked) == 1
    registry.answers(2)
    client.delete_version("s", 2)
    client.get_version("s", 2, deleted=True)
    assert [asked.method for asked in registry.asked] == ["GET", "DELETE", "GET"]
    client.clear_caches()
    for deleted in (False, True):
        client.get_version("s", 2, deleted=deleted)
    assert len(registry.asked) == 4, "one that is there is also one that may be deleted"


def test_the_latest_version_is_kept_until_the_subject_changes_or_it_is_forgotten(
    client: SchemaRegistryClient, registry: ScriptedRegistry
) -> None:
    def asked_now() -> int:
        before = len(registry.asked)
        assert client.get_latest_version("s") == client.get_latest_with_metadata("s", {"a": "b"}) == FOUND
        return len(registry.asked) - before

    assert (asked_now(), asked_now()) == (2, 0)
    client.clear_latest_caches()
    assert (asked_now(), asked_now()) == (2, 0)
    registry.answers({"id": 8})
    client.register_schema("s", Schema('"long"'))
    assert (asked_now(), asked_now()) == (2, 0)
    client.clear_caches()
    assert (asked_now(), asked_now()) == (2, 0)


def test_who_has_registered_a_version_finds_it_though_others_ask_for_an_earlier_one(
    client: SchemaRegistryClient, registry: ScriptedRegistry
) -> None:
    go, newer = threading.Event(), {**SAID, "version": 3}
    registry.answers(Said(SAID, until=go), {"id": 8}, newer)
    with ThreadPoolExecutor(1) as pool:
        earlier = pool.submit(client.get_latest_version, "s")
        registry.came.acquire()
        client.register_schema("s", Schema('"long"'))
        assert client.get_latest_version("s").version == 3
        go.set()
        assert earlier.result().version == 2
    assert client.get_latest_version("s").version == 3, "the earlier answer is not kept"
    assert len(registry.asked) == 3


def test_metadata_is_sent_as_keys_and_values(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    client.get_latest_with_metadata("s", {"a b": "c&d", "e": "é"}, True, "resolved")
    client.get_latest_with_metadata("s", {})
    assert [asked.query for asked in registry.asked] == [
        {"deleted": ["true"], "format": ["resolved"], "key": ["a b", "e"], "value": ["c&d", "é"]},
        {"deleted": ["false"]}]


@pytest.mark.parametrize("permanent", [False, True])
def test_what_is_deleted_is_forgotten(
    client: SchemaRegistryClient, registry: ScriptedRegistry, permanent: bool
) -> None:
    for delete in (lambda: client.delete_subject("s", permanent), lambda: client.delete_version("s", 2, permanent)):
        client.get_version("s", 2)
        client.get_latest_version("s")
        registry.answers(*([[2]] if not registry.asked[2:] else [2]))
        assert delete() in ([2], 2)
        asked = registry.asked[-1]
        assert (asked.method, asked.query) == ("DELETE", {"permanent": ["true"]} if permanent else {})
        before = len(registry.asked)
        client.get_version("s", 2)
        client.get_latest_version("s")
        assert len(registry.asked) == before + 2


def test_lists_are_not_kept(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers(["a"], [1, 2], [7])
    assert client.get_subjects("p", True, True, 1, 2) == ["a"]
    assert client.get_versions("s", deleted=True) == [1, 2]
    assert client.get_referenced_by("s", 1) == [7]
    assert registry.asked[0].query == {"deleted": ["true"], "deleted_only": ["true"], "offset": ["1"], "limit": ["2"],
                                       "subjectPrefix": ["p"]}
    assert registry.asked[2].path == "/subjects/s/versions/1/referencedby"


def test_a_subject_has_a_name(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    with pytest.raises(ValueError, match="subject_name is empty"):
        client.delete_subject("")
    with pytest.raises(TypeError, match="subject_name must be a str"):
        client.get_versions(None)  # type: ignore[arg-type]
    assert registry.asked == []
