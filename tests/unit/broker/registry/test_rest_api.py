"""The REST API of the embedded registry, call by call: results, and errors with Confluent's codes."""

import hashlib
import json
from typing import Any

import pytest

from headrace.broker.cluster import BrokerCluster
from headrace.broker.registry.rest_api import RegistryApi
from tests.unit.broker.registry.conftest import Ask, asking

INT, LONG, TEXT = ({"schema": f'"{kind}"'} for kind in ("int", "long", "string"))
RECORD = {"schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'}
WIDER = {"schema": RECORD["schema"].replace("]}", ',{"name":"b","type":"int","default":0}]}')}
NARROW = {"schema": '{"type":"record","name":"R","fields":[{"name":"c","type":"int"}]}'}


def registered(ask: Ask, subject: str, *schemas: dict[str, Any]) -> list[int]:
    replies = [ask("POST", f"/subjects/{subject}/versions", schema) for schema in schemas]
    assert [status for status, _ in replies] == [200] * len(schemas), replies
    return [reply["id"] for _, reply in replies]


def code(reply: tuple[int, Any]) -> int:
    status, body = reply
    assert set(body) == {"error_code", "message"}
    assert str(body["error_code"]).startswith(str(status))
    return int(body["error_code"])


def test_a_schema_is_registered_once_and_found_again(ask: Ask) -> None:
    assert registered(ask, "s", INT, INT, {"schema": ' {"type" : "int"} '}) == [1, 1, 1]
    assert registered(ask, "t", INT) == [1]
    assert registered(ask, "s", LONG) == [2]
    assert ask("GET", "/subjects") == (200, ["s", "t"])
    assert ask("GET", "/subjects/s/versions") == (200, [1, 2])
    status, found = ask("POST", "/subjects/s", LONG)
    assert (status, found["subject"], found["version"], found["id"]) == (200, "s", 2, 2)
    assert ask("GET", "/subjects/s/versions/2") == (200, found)
    assert ask("GET", "/subjects/s/versions/latest") == ask("GET", "/subjects/s/versions/-1") == (200, found)
    assert ask("GET", "/subjects/s/versions/1/schema") == (200, "int")
    status, by_id = ask("GET", "/schemas/ids/2?fetchMaxId=true")
    assert (status, by_id["schema"], by_id["maxId"]) == (200, '"long"', 2)
    assert ask("GET", "/schemas/ids/1/subjects") == (200, ["s", "t"])
    assert ask("GET", "/schemas/ids/1/versions") == (
        200, [{"subject": "s", "version": 1}, {"subject": "t", "version": 1}])
    assert ask("GET", f"/schemas/guids/{found['guid']}")[1]["schema"] == '"long"'
    assert ask("GET", f"/schemas/guids/{found['guid']}/ids") == (200, [{"context": ".", "id": 2}])


@pytest.mark.parametrize(("method", "target", "body", "expected"), [
    ("GET", "/subjects/none/versions", None, 40401),
    ("GET", "/subjects/none/versions/1", None, 40401),
    ("GET", "/subjects/s/versions/9", None, 40402),
    ("GET", "/subjects/s/versions/0", None, 42202),
    ("GET", "/subjects/s/versions/x", None, 42202),
    ("GET", "/subjects/s/versions/99999999999", None, 42202),
    ("POST", "/subjects/none", INT, 40401),
    ("POST", "/subjects/s", TEXT, 40403),
    ("POST", "/subjects/s", {"schema": "{"}, 42201),
    ("GET", "/schemas/ids/9", None, 40403),
    ("GET", "/schemas/ids/x", None, 404),
    ("GET", "/schemas/guids/x", None, 40403),
    ("DELETE", "/subjects/none", None, 40401),
    ("DELETE", "/subjects/s?permanent=true", None, 40405),
    ("DELETE", "/subjects/s/versions/9", None, 40402),
    ("DELETE", "/subjects/s/versions/1?permanent=true", None, 40407),
    ("POST", "/subjects/s/versions", {"schema": '"nope"'}, 42201),
    ("POST", "/subjects/s/versions", {"schema": ""}, 42201),
    ("POST", "/subjects/s/versions", {}, 42201),
    ("POST", "/subjects/s/versions", {"schema": '"int"', "schemaType": "XML"}, 42201),
    ("POST", "/subjects/s/versions", {"schema": '"int"', "schemaType": 1}, 42201),
    ("POST", "/subjects/s/versions", {"schema": '"int"', "references": [{"name": "a"}]}, 42201),
    ("POST", "/subjects/s/versions", {"schema": '"int"', "metadata": 1}, 42201),
    ("POST", "/subjects/s/versions", {"schema": "[" * 10_000}, 42201),
    ("POST", "/subjects/s/versions", {**LONG, "version": 7}, 42201),
    ("POST", "/subjects/s/versions", TEXT, 409),
    ("POST", "/subjects/s/versions", {**LONG, "id": 7}, 42205),
    ("POST", "/subjects/s%0a/versions", INT, 42208),
    ("POST", "/subjects/__GLOBAL/versions", INT, 42208),
    ("POST", "/subjects/s/versions", [1], 422),
    ("PUT", "/config", {"compatibility": "SOME"}, 42203),
    ("PUT", "/config/s", {}, 42203),
    ("GET", "/config/s", None, 40408),
    ("DELETE", "/config/s", None, 40401),
    ("PUT", "/mode", {"mode": "WRITE"}, 42204),
    ("PUT", "/mode", {"mode": "IMPORT"}, 42205),
    ("GET", "/mode/s", None, 40409),
    ("DELETE", "/mode/s", None, 40401),
    ("POST", "/compatibility/subjects/s/versions/9", INT, 40402),
    ("POST", "/compatibility/subjects/none/versions/1", INT, 40401),
    ("POST", "/compatibility/subjects/s/versions/latest", {"schema": "{"}, 42201),
    ("GET", "/nothing/here", None, 404),
    ("PATCH", "/subjects", None, 405),
    ("GET", "/schemas?limit=x", None, 400),
    ("DELETE", "/contexts/.", None, 42211),
])
def test_what_fails_says_so_with_its_code(
    ask: Ask, method: str, target: str, body: Any, expected: int
) -> None:
    registered(ask, "s", INT)
    assert code(ask(method, target, body)) == expected


def test_a_body_that_is_no_json_is_refused(cluster: BrokerCluster) -> None:
    api = RegistryApi(cluster)
    for body in (b"", b"{", b"\xff", b"[" * 100_000):
        assert api.handle("POST", "/subjects/s/versions", body, 0).status == 400


@pytest.mark.parametrize(("level", "verdicts"), [
    ("NONE", (True, True)), ("BACKWARD", (True, False)), ("FORWARD", (True, False)), ("FULL", (True, False)),
    ("BACKWARD_TRANSITIVE", (True, False)), ("FORWARD_TRANSITIVE", (True, False)), ("FULL_TRANSITIVE", (True, False)),
])
def test_compatibility_is_checked_at_the_level_that_is_set(ask: Ask, level: str, verdicts: tuple[bool, bool]) -> None:
    registered(ask, "s", RECORD)
    assert ask("PUT", "/config/s", {"compatibility": level.lower()})[0] == 200
    for schema, verdict in zip((WIDER, {"schema": '"string"'}), verdicts, strict=True):
        for version in ("latest", "1", "-1"):
            assert ask("POST", f"/compatibility/subjects/s/versions/{version}", schema) == (
                200, {"is_compatible": verdict})
        status, reply = ask("POST", "/compatibility/subjects/s/versions?verbose=true", schema)
        assert (status, reply["is_compatible"], bool(reply["messages"])) == (200, verdict, not verdict)
        assert ask("POST", "/subjects/s/versions", schema)[0] == (200 if verdict else 409)


def test_a_subject_without_versions_is_compatible_with_anything(ask: Ask) -> None:
    for path in ("/compatibility/subjects/new/versions", "/compatibility/subjects/new/versions/latest"):
        assert ask("POST", path, INT) == (200, {"is_compatible": True})


def test_the_reasons_name_type_place_and_version(ask: Ask) -> None:
    registered(ask, "s", RECORD)
    _, reply = ask("POST", "/compatibility/subjects/s/versions/latest?verbose=true", NARROW)
    assert reply["messages"][0] == (
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'c' at path '/fields/0' in the "
        "reader's schema has no default value and is missing in the writer's schema', additionalInfo:'c'}")
    assert reply["messages"][1:] == ["{oldSchemaVersion: 1}", f"{{oldSchema: '{RECORD['schema']}'}}",
                                     "{compatibility: 'BACKWARD'}"]
    _, error = ask("POST", "/subjects/s/versions", NARROW)
    assert 'incompatible with an earlier schema for subject "s"' in error["message"]
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in error["message"]


def test_a_softly_deleted_subject_is_hidden_and_can_be_used_again(ask: Ask) -> None:
    registered(ask, "s", INT, LONG)
    assert ask("DELETE", "/subjects/s") == (200, [1, 2])
    assert code(ask("DELETE", "/subjects/s")) == 40404
    assert ask("GET", "/subjects") == (200, [])
    assert ask("GET", "/subjects?deleted=true") == ask("GET", "/subjects?deletedOnly=true") == (200, ["s"])
    assert code(ask("GET", "/subjects/s/versions")) == 40401
    assert ask("GET", "/subjects/s/versions?deleted=true") == (200, [1, 2])
    assert ask("GET", "/subjects/s/versions/1?deleted=true")[1]["deleted"] is True
    assert ask("GET", "/schemas/ids/1")[1]["schema"] == '"int"'
    assert ask("GET", "/schemas/ids/1/subjects") == (200, [])
    assert ask("GET", "/schemas/ids/1/subjects?deleted=true") == (200, ["s"])
    assert code(ask("POST", "/subjects/s", INT)) == 40401
    assert ask("POST", "/subjects/s?deleted=true", INT)[1]["version"] == 1
    assert registered(ask, "s", INT, LONG) == [1, 2]
    assert ask("GET", "/subjects/s/versions") == (200, [3, 4])
    assert ask("GET", "/subjects/s/versions?deletedOnly=true") == (200, [1, 2])


def test_a_permanently_deleted_subject_is_gone(ask: Ask) -> None:
    registered(ask, "s", INT, LONG)
    ask("DELETE", "/subjects/s")
    assert ask("DELETE", "/subjects/s?permanent=true") == (200, [1, 2])
    assert ask("GET", "/subjects?deleted=true") == (200, [])
    assert code(ask("GET", "/schemas/ids/1")) == 40403
    assert code(ask("DELETE", "/subjects/s?permanent=true")) == 40401
    assert registered(ask, "s", INT) == [3]


def test_a_softly_deleted_version_is_hidden_beside_those_that_are_not_and_read_by_what_refers_to_it(ask: Ask) -> None:
    registered(ask, "s", RECORD, WIDER)
    using = {"schema": '{"type":"record","name":"U","fields":[{"name":"r","type":"R"}]}',
             "references": [{"name": "R", "subject": "s", "version": 1}]}
    registered(ask, "u", using)
    assert code(ask("DELETE", "/subjects/s/versions/1")) == 42206
    assert ask("DELETE", "/subjects/u") == (200, [1])
    assert ask("DELETE", "/subjects/s/versions/1") == (200, 1)
    assert code(ask("GET", "/subjects/s/versions/1")) == 40402
    assert ask("GET", "/subjects/s/versions/1?deleted=true")[1]["version"] == 1
    assert ask("GET", "/subjects/s/versions/latest")[1]["version"] == 2
    assert code(ask("POST", "/subjects/u/versions", using)) == 42201
    resolved = ask("GET", "/subjects/u/versions/1?deleted=true&format=resolved")
    assert (resolved[0], '"name":"R"' in resolved[1]["schema"]) == (200, True), resolved


def test_an_id_that_the_context_does_not_know_is_that_of_the_subject_elsewhere(ask: Ask) -> None:
    registered(ask, ":.c:s", INT)
    registered(ask, ":.d:t", LONG)
    found = [ask("GET", f"/schemas/ids/1?subject={subject}")[1]["schema"] for subject in ("s", "t", ":.c:x", ":.d:")]
    assert found == ['"int"', '"long"', '"int"', '"long"']
    for subject in ("u", ":.e:", ""):
        assert code(ask("GET", f"/schemas/ids/1?subject={subject}")) == 40403


def test_versions_are_deleted_one_by_one(ask: Ask) -> None:
    registered(ask, "s", INT, LONG)
    assert ask("DELETE", "/subjects/s/versions/latest") == (200, 2)
    assert code(ask("DELETE", "/subjects/s/versions/2")) == 40406
    assert ask("GET", "/subjects/s/versions") == (200, [1])
    assert ask("DELETE", "/subjects/s/versions/2?permanent=true") == (200, 2)
    assert ask("GET", "/subjects/s/versions?deleted=true") == (200, [1])


def test_deleting_the_last_version_forgets_the_subject_s_settings(ask: Ask) -> None:
    registered(ask, "s", INT)
    ask("PUT", "/config/s", {"compatibility": "FULL"})
    assert ask("DELETE", "/subjects/s/versions/1") == (200, 1)
    assert code(ask("GET", "/config/s")) == 40408


def test_references_are_resolved_counted_and_protected(ask: Ask) -> None:
    registered(ask, "a", {"schema": '{"type":"fixed","name":"x.F","size":4}'})
    using = {"schema": '{"type":"record","name":"x.R","fields":[{"name":"f","type":"F"}]}',
             "references": [{"name": "x.F", "subject": "a", "version": -1}]}
    assert registered(ask, "b", using) == [2]
    _, found = ask("GET", "/subjects/b/versions/1")
    assert found["references"] == [{"name": "x.F", "subject": "a", "version": 1}]
    assert ask("GET", "/subjects/b/versions/1?format=resolved")[1]["schema"] == json.dumps(
        {"type": "record", "name": "R", "namespace": "x", "fields": [
            {"name": "f", "type": {"type": "fixed", "name": "F", "size": 4}}]}, separators=(",", ":"))
    assert ask("GET", "/subjects/a/versions/1/referencedby") == (200, [2])
    assert code(ask("DELETE", "/subjects/a")) == code(ask("DELETE", "/subjects/a/versions/1")) == 42206
    ask("DELETE", "/subjects/b")
    assert ask("DELETE", "/subjects/a") == (200, [1])
    missing = using | {"references": [{"name": "x.F", "subject": "c", "version": 1}]}
    assert code(ask("POST", "/subjects/d/versions", missing)) == 42201


def test_settings_hold_for_everything_a_context_or_a_subject(ask: Ask) -> None:
    assert ask("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert ask("PUT", "/config", {"compatibility": "FULL"}) == (200, {"compatibility": "FULL"})
    ask("PUT", "/config/:.c:", {"compatibility": "NONE"})
    ask("PUT", "/config/s", {"compatibility": "FORWARD", "normalize": True})
    assert ask("GET", "/config/s") == (200, {"compatibilityLevel": "FORWARD", "normalize": True})
    assert ask("GET", "/config/t?defaultToGlobal=true")[1] == {"compatibilityLevel": "FULL"}
    assert ask("GET", "/config/:.c:t?defaultToGlobal=true")[1] == {"compatibilityLevel": "NONE"}
    assert ask("DELETE", "/config/s")[1]["compatibilityLevel"] == "FORWARD"
    assert ask("DELETE", "/config") == (200, {"compatibilityLevel": "FULL"})
    assert ask("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})


def test_read_only_mode_refuses_changes_and_nothing_else(ask: Ask) -> None:
    registered(ask, "s", INT)
    assert ask("GET", "/mode") == (200, {"mode": "READWRITE"})
    assert ask("PUT", "/mode/s", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    for call in (("POST", "/subjects/s/versions", LONG), ("DELETE", "/subjects/s"),
                 ("DELETE", "/subjects/s/versions/1"), ("PUT", "/config/s", {"compatibility": "NONE"})):
        assert code(ask(*call)) == 42205
    assert ask("GET", "/subjects/s/versions/1")[0] == 200
    assert registered(ask, "s", INT) == registered(ask, "t", INT) == [1]
    assert ask("DELETE", "/mode/s") == (200, {"mode": "READONLY"})
    assert registered(ask, "s", LONG) == [2]


def test_a_read_only_override_holds_whatever_a_subject_says(ask: Ask) -> None:
    ask("PUT", "/mode/s", {"mode": "READWRITE"})
    ask("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
    assert code(ask("POST", "/subjects/s/versions", INT)) == 42205


def test_import_mode_takes_the_ids_and_versions_that_are_given(ask: Ask) -> None:
    ask("PUT", "/mode/s", {"mode": "IMPORT"})
    assert code(ask("POST", "/subjects/s/versions", INT)) == 42205
    status, made = ask("POST", "/subjects/s/versions", {**INT, "id": 42, "version": 7})
    assert (status, made["id"], made["version"]) == (200, 42, 7)
    assert code(ask("POST", "/subjects/s/versions", {**TEXT, "id": 42})) == 42205
    assert ask("POST", "/subjects/s/versions", {**TEXT, "id": 43})[1]["version"] == 8
    assert registered(ask, "t", LONG) == [44]


def test_import_mode_can_be_forced_on_what_is_in_use(ask: Ask) -> None:
    registered(ask, "s", INT)
    assert code(ask("PUT", "/mode/s", {"mode": "IMPORT"})) == 42205
    assert ask("PUT", "/mode/s?force=true", {"mode": "IMPORT"})[0] == 200


def test_contexts_have_ids_of_their_own(ask: Ask) -> None:
    assert registered(ask, "s", INT, LONG) == [1, 2]
    assert registered(ask, ":.c:s", TEXT) == [1]
    assert registered(ask, ":.:s", INT) == [1]
    assert ask("GET", "/contexts") == (200, [".", ".c"])
    assert ask("GET", "/subjects") == (200, [":.c:s", "s"])
    assert ask("GET", "/subjects?subjectPrefix=:.:") == (200, ["s"])
    assert ask("GET", "/subjects?subjectPrefix=:.c:") == (200, [":.c:s"])
    assert ask("GET", "/schemas/ids/1?subject=:.c:s")[1]["schema"] == '"string"'
    assert ask("GET", "/schemas/ids/1?subject=:.c:")[1]["schema"] == '"string"'
    assert ask("GET", "/schemas/ids/1")[1]["schema"] == '"int"'
    assert ask("GET", "/contexts/.c/subjects/s/versions/1")[1]["schema"] == '"string"'
    assert ask("GET", "/contexts/.c/schemas/ids/1")[1]["schema"] == '"string"'
    assert ask("GET", "/contexts/.c/subjects") == (200, [":.c:s"])
    assert code(ask("DELETE", "/contexts/.c")) == 42211


def test_normalising_makes_one_schema_of_texts_that_mean_the_same(ask: Ask) -> None:
    first = {"schema": '{"type":"record","name":"R","namespace":"x","fields":[]}'}
    second = {"schema": '{"type":"record","name":"x.R","doc":"d","fields":[]}'}
    third = {"schema": '{"type":"record","doc":"d","name":"R","namespace":"x","fields":[]}'}
    assert registered(ask, "s", first, second) == [1, 2]
    normal = [ask("POST", "/subjects/t/versions?normalize=true", schema)[1]["id"] for schema in (second, third)]
    assert normal == [3, 3]
    ask("PUT", "/config/u", {"normalize": True})
    assert registered(ask, "u", third) == [3]
    assert ask("POST", "/subjects/t?normalize=true", third)[1]["id"] == 3


def test_metadata_and_rules_are_kept_and_make_another_schema(ask: Ask) -> None:
    more = {"metadata": {"properties": {"owner": "me"}}, "ruleSet": {"domainRules": []}}
    assert registered(ask, "s", INT, INT | more, INT | more) == [1, 2, 2]
    assert ask("GET", "/subjects/s/versions/2")[1].items() >= more.items()
    assert ask("GET", "/schemas/ids/2")[1].items() >= more.items()
    assert ask("GET", "/subjects/s/metadata?key=owner&value=me")[1]["version"] == 2
    assert code(ask("GET", "/subjects/s/metadata?key=owner&value=you")) == 40403


def test_the_latest_version_with_metadata_has_all_of_it_and_comes_in_the_format_that_is_asked_for(ask: Ask) -> None:
    text = {"schema": 'syntax = "proto3"; message A {}', "schemaType": "PROTOBUF"}
    registered(ask, "s", *(text | {"metadata": {"properties": more}} for more in (
        {"owner": "me", "stage": "done"}, {"owner": "me", "stage": "new"}, {"stage": "done"})))
    for asked, version in (
            ("?key=owner&value=me&key=stage&value=done", 1), ("?key=stage&value=done&key=owner&value=me", 1),
            ("?key=owner&value=me", 2), ("?key=stage&value=done", 3), ("", 3)):
        assert ask("GET", f"/subjects/s/metadata{asked}")[1]["version"] == version
    encoded = ask("GET", "/subjects/s/metadata?key=owner&value=me&format=serialized")[1]["schema"]
    assert encoded == ask("GET", "/subjects/s/versions/2?format=serialized")[1]["schema"] != text["schema"]


def test_metadata_and_rules_that_are_not_given_are_those_of_the_version_before(ask: Ask) -> None:
    rule = {"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}
    more = {"metadata": {"properties": {"owner": "me"}}, "ruleSet": {"domainRules": [rule]}}
    registered(ask, "else", RECORD)
    first, again, wider = registered(ask, "s", RECORD | more, RECORD, WIDER)
    assert first == again
    found = ask("GET", "/subjects/s/versions/2")[1]
    assert found["id"] == wider
    assert found.items() >= more.items()
    registered(ask, "s", WIDER | {"metadata": {}, "ruleSet": {}})
    assert ask("GET", "/subjects/s/versions/3")[1].items() >= {"metadata": {}, "ruleSet": {}}.items()


def test_default_and_overriding_metadata_and_rules_are_added(ask: Ask) -> None:
    rules = [{"name": name, "expr": name} for name in "abc"]
    ask("PUT", "/config/s", {
        "defaultMetadata": {"properties": {"owner": "nobody", "team": "us"}, "sensitive": ["team"]},
        "overrideMetadata": {"properties": {"level": "gold"}, "sensitive": ["team", "level"]},
        "defaultRuleSet": {"domainRules": rules[:2]}, "overrideRuleSet": {"migrationRules": rules[2:]}})
    registered(ask, "s", INT | {"metadata": {"properties": {"owner": "me", "level": "tin"}},
                                "ruleSet": {"domainRules": [{"name": "a", "expr": "mine"}]}})
    found = ask("GET", "/subjects/s/versions/1")[1]
    assert found["metadata"] == {
        "properties": {"owner": "me", "team": "us", "level": "gold"}, "sensitive": ["team", "level"]}
    assert found["ruleSet"] == {"domainRules": [rules[1], {"name": "a", "expr": "mine"}], "migrationRules": rules[2:]}


def test_all_types_of_schemas_are_kept_and_compared(ask: Ask) -> None:
    kinds = {
        "JSON": ('{"type": "object", "properties": {}, "additionalProperties": false}', '{"type": "string"}'),
        "PROTOBUF": ('syntax = "proto3"; message A { int32 a = 1; }', 'syntax = "proto3"; message A { string a = 1; }'),
        "AVRO": ('"long"', '"string"'),
    }
    for kind, (first, second) in kinds.items():
        (number,) = registered(ask, kind, {"schema": first, "schemaType": kind})
        found = ask("GET", f"/schemas/ids/{number}")[1]
        assert found.get("schemaType", "AVRO") == kind
        again = {"schema": found["schema"], "schemaType": kind}
        assert registered(ask, kind, again) == [number]
        assert code(ask("POST", f"/subjects/{kind}/versions", {"schema": second, "schemaType": kind})) == 409
        changed = "AVRO" if kind == "JSON" else "JSON"
        other = {"schema": kinds[changed][0], "schemaType": changed}
        assert code(ask("POST", f"/subjects/{kind}/versions", other)) == 409


def test_a_protobuf_schema_comes_as_text_and_as_a_descriptor(ask: Ask) -> None:
    registered(ask, "other.proto", {"schema": 'syntax = "proto3"; message B {}', "schemaType": "PROTOBUF"})
    schema = {"schema": 'syntax = "proto3"; import "other.proto"; message A { B b = 1; }', "schemaType": "PROTOBUF",
              "references": [{"name": "other.proto", "subject": "other.proto", "version": 1}]}
    (number,) = registered(ask, "s", schema)
    encoded = ask("GET", f"/schemas/ids/{number}?format=serialized")[1]["schema"]
    assert registered(ask, "s", {**schema, "schema": encoded}) == [number]
    assert ask("GET", f"/schemas/ids/{number}")[1]["schema"].startswith('syntax = "proto3";\n')


def test_lists_come_in_pages(ask: Ask) -> None:
    for subject in "abcd":
        registered(ask, subject, INT)
    assert ask("GET", "/subjects?offset=1&limit=2") == (200, ["b", "c"])
    assert ask("GET", "/subjects?limit=0") == (200, [])
    registered(ask, "a", LONG)
    assert [each["version"] for each in ask("GET", "/schemas?subjectPrefix=a")[1]] == [1, 2]
    assert [each["version"] for each in ask("GET", "/schemas?latestOnly=true")[1]] == [2, 1, 1, 1]
    assert ask("GET", "/subjects/a/versions?offset=1") == (200, [2])


def test_what_every_registry_says_is_said(ask: Ask) -> None:
    assert ask("GET", "/") == (200, {})
    assert ask("GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])
    assert ask("GET", "/v1/metadata/version")[0] == ask("GET", "/v1/metadata/id")[0] == 200


def test_the_guid_is_the_md5_of_the_schema(ask: Ask) -> None:
    expected = hashlib.md5(b'"int"', usedforsecurity=False).hexdigest()
    assert ask("POST", "/subjects/s/versions", INT)[1]["guid"].replace("-", "") == expected


def test_another_registry_over_the_same_log_knows_the_same(cluster: BrokerCluster, ask: Ask) -> None:
    registered(ask, "s", INT, LONG)
    ask("PUT", "/config/s", {"compatibility": "FULL"})
    ask("PUT", "/mode/t", {"mode": "READONLY"})
    registered(ask, ":.c:s", TEXT)
    ask("DELETE", "/subjects/s/versions/1")
    other = asking(RegistryApi(cluster))
    for target in ("/schemas?deleted=true", "/config/s", "/mode/t", "/contexts", "/subjects"):
        assert other("GET", target) == ask("GET", target)
    registered(other, "u", TEXT)
    assert ask("GET", "/subjects/u/versions/1") == other("GET", "/subjects/u/versions/1")
