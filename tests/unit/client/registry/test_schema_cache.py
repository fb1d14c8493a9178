"""What a registry client remembers, for how long, and how much of it."""

from __future__ import annotations

import threading

import pytest

from headrace.client.registry.schema_cache import AS_REGISTERED, LruCache, SchemaCache, SchemaForm
from headrace.types.registry import RegisteredSchema, Schema

TEXT = Schema('"string"')
FOUND = RegisteredSchema("s", 2, 7, "guid", TEXT)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def cache() -> SchemaCache:
    return SchemaCache(10, None)


def test_the_one_that_was_not_asked_for_longest_goes() -> None:
    cache = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache)) == (1, None, 3, 2)


def test_no_room_keeps_nothing() -> None:
    cache = LruCache(0)
    cache.put("a", 1)
    assert (cache.get("a"), len(cache)) == (None, 0)


def test_a_value_lives_for_its_time() -> None:
    clock = Clock()
    cache = LruCache(2, 5.0, clock)
    cache.put("a", 1)
    clock.now = 4.9
    assert cache.get("a") == 1
    clock.now = 5.0
    assert (cache.get("a"), len(cache)) == (None, 0)


def test_threads_may_put_get_and_drop_at_once() -> None:
    cache, failed = LruCache(3), []

    def work(start: int) -> None:
        try:
            for number in range(start, start + 3000):
                cache.put(number % 7, number)
                cache.get((number + 3) % 7)
                cache.drop(lambda key, _: key == 2)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(cache) <= 3


def test_a_version_that_may_be_deleted_is_none_to_write_with(cache: SchemaCache) -> None:
    cache.put_version("s", FOUND, None, may_be_deleted=True)
    assert (cache.version("s", 2, None), cache.version("s", 2, None, may_be_deleted=True)) == (None, FOUND)
    assert (cache.registered("s", TEXT, False), cache.schema("s", 7, AS_REGISTERED)) == (None, None)
    cache.put_version("s", FOUND, None)
    assert (cache.registered("s", TEXT, False), cache.schema("s", 7, AS_REGISTERED)) == (FOUND, TEXT)


def test_forms_of_a_schema_are_kept_apart(cache: SchemaCache) -> None:
    cache.put_schema("s", 7, "guid", TEXT, SchemaForm("resolved"))
    assert cache.schema("s", 7, AS_REGISTERED) is None
    assert cache.schema("s", 7, SchemaForm("resolved")) == TEXT
    assert (cache.schema_of_guid("guid", None), cache.schema_of_guid("guid", "resolved")) == (None, TEXT)


def test_an_id_is_of_a_subject_for_its_context_has_ids_of_its_own(cache: SchemaCache) -> None:
    cache.put_schema("s", 7, None, TEXT, AS_REGISTERED)
    assert cache.schema(None, 7, AS_REGISTERED) is None
    assert cache.schema("other", 7, AS_REGISTERED) is None


def test_what_was_registered_is_found_by_schema_id_and_guid(cache: SchemaCache) -> None:
    cache.put_registered("s", TEXT, False, FOUND)
    assert cache.registered("s", TEXT, False) == FOUND
    assert cache.registered("s", TEXT, True) is None
    assert (cache.schema("s", 7, AS_REGISTERED), cache.schema_of_guid("guid", None)) == (TEXT, TEXT)


def test_a_version_answers_for_its_schema_too(cache: SchemaCache) -> None:
    cache.put_version("s", FOUND, None)
    assert cache.version("s", 2, None) == cache.registered("s", TEXT, False) == FOUND
    assert cache.version("s", 2, "resolved") is None


def test_a_version_in_another_form_says_nothing_of_what_is_registered(cache: SchemaCache) -> None:
    cache.put_version("s", FOUND, "resolved")
    assert cache.registered("s", TEXT, False) is None
    assert cache.version("s", 2, "resolved") == FOUND


def test_schemas_that_differ_in_references_alone_are_kept_apart(cache: SchemaCache) -> None:
    other = Schema.from_dict({"schema": '"string"', "references": [{"name": "a", "subject": "b", "version": 1}]})
    assert hash(other) == hash(TEXT)
    cache.put_looked_up("s", TEXT, False, FOUND)
    assert cache.registered("s", other, False) is None


def test_latest_versions_live_for_their_time_and_others_stay() -> None:
    clock = Clock()
    cache = SchemaCache(10, 1.0, clock)
    cache.put_version("s", FOUND, None)
    cache.put_latest("s", None, FOUND, cache.changes)
    cache.put_latest_with("s", {"a": "b"}, False, None, FOUND, cache.changes)
    assert cache.latest("s", None) == cache.latest_with("s", {"a": "b"}, False, None) == FOUND
    clock.now = 1.0
    assert (cache.latest("s", None), cache.latest_with("s", {"a": "b"}, False, None)) == (None, None)
    assert cache.version("s", 2, None) == FOUND


def test_what_changes_a_subject_makes_its_latest_version_unknown(cache: SchemaCache) -> None:
    for change in (lambda: cache.put_registered("s", TEXT, False, FOUND), lambda: cache.drop_version("s", 1),
                   lambda: cache.drop_subject("s")):
        cache.put_latest("s", None, FOUND, cache.changes)
        cache.put_latest("other", None, FOUND, cache.changes)
        change()
        assert (cache.latest("s", None), cache.latest("other", None)) == (None, FOUND)


def test_a_subject_that_is_dropped_is_forgotten_and_the_guid_is_not(cache: SchemaCache) -> None:
    cache.put_version("s", FOUND, None)
    cache.drop_subject("s")
    assert (cache.version("s", 2, None), cache.registered("s", TEXT, False), cache.schema("s", 7, AS_REGISTERED)) == (
        None, None, None)
    assert cache.schema_of_guid("guid", None) == TEXT


def test_a_version_that_is_dropped_may_be_registered_anew(cache: SchemaCache) -> None:
    cache.put_version("s", FOUND, None)
    other = Schema('"int"')
    cache.put_looked_up("s", other, False, RegisteredSchema("s", 3, 8, None, other))
    cache.put_registered("s", Schema('"long"'), False, RegisteredSchema("s", None, 9, None, Schema('"long"')))
    cache.drop_version("s", 2)
    assert (cache.version("s", 2, None), cache.registered("s", TEXT, False)) == (None, None)
    assert cache.registered("s", Schema('"long"'), False) is None, "it may have been that version"
    assert cache.registered("s", other, False) is not None


def test_what_was_dropped_while_it_was_found_again_stays_dropped(cache: SchemaCache) -> None:
    cache.put_registered("s", TEXT, False, FOUND)
    cache.put_looked_up_again("s", TEXT, False, FOUND, cache.changes)
    assert cache.version("s", 2, None) == FOUND
    for drop in (lambda: cache.drop_version("s", 2), lambda: cache.drop_subject("s"), cache.clear):
        since = cache.changes
        drop()
        cache.put_looked_up_again("s", TEXT, False, FOUND, since)
        assert (cache.version("s", 2, None), cache.registered("s", TEXT, False)) == (None, None)


def test_all_can_be_forgotten(cache: SchemaCache) -> None:
    cache.put_version("s", FOUND, None)
    cache.put_latest("s", None, FOUND, cache.changes)
    cache.clear()
    assert (cache.version("s", 2, None), cache.latest("s", None), cache.schema_of_guid("guid", None)) == (
        None, None, None)


def test_a_latest_version_that_was_asked_for_before_a_change_is_not_kept(cache: SchemaCache) -> None:
    since = cache.changes
    cache.put_registered("s", TEXT, False, FOUND)
    cache.put_latest("s", None, FOUND, since)
    cache.put_latest_with("s", {}, False, None, FOUND, since)
    assert (cache.latest("s", None), cache.latest_with("s", {}, False, None)) == (None, None)


@pytest.mark.parametrize(("text", "kept"), [("CgF0", True), ("CgFhIg==", True), ('syntax = "proto3";', False)])
@pytest.mark.parametrize("found", ["registered", "looked_up"])
def test_a_descriptor_that_was_registered_is_what_is_asked_for_in_serialized_form(
    cache: SchemaCache, found: str, text: str, kept: bool
) -> None:
    given, serialized = Schema(text, "PROTOBUF"), SchemaForm("serialized")
    getattr(cache, f"put_{found}")("s", given, False, RegisteredSchema("s", 2, 7, "guid", given))
    assert (cache.schema("s", 7, serialized) == given) is kept
    assert (cache.schema_of_guid("guid", "serialized") == given) is kept
    assert cache.schema("s", 7, AS_REGISTERED) == given
