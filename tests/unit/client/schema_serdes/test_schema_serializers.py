"""What serializers of all formats do."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.client.registry.schema_ids import header_schema_id_serializer
from headrace.client.registry.subject_names import record_subject_name_strategy
from headrace.client.schema_serdes.avro_serdes import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from headrace.client.schema_serdes.json_serdes import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from headrace.client.schema_serdes.schema_serializers import MAX_KEPT
from headrace.errors import SerializationError
from headrace.serialization import MessageField, SerializationContext
from headrace.types.registry import (
    Metadata,
    MetadataProperties,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
)
from tests.support.kept_registry import AsyncKeptRegistry, KeptRegistry, NotThereError

VALUE = SerializationContext("orders", MessageField.VALUE)
KEY = SerializationContext("orders", MessageField.KEY)
INT = '{"type":"int"}'
FOLLOWING = {"auto.register.schemas": False, "use.latest.version": True}


def test_none_stays_none_and_nobody_is_asked() -> None:
    registry = KeptRegistry()
    assert AvroSerializer(registry, INT)(None, VALUE) is None
    assert not registry.calls


def test_the_registry_is_asked_for_the_first_message_of_a_subject_only() -> None:
    registry = KeptRegistry()
    serializer = AvroSerializer(registry, INT)
    assert {serializer(at, VALUE) for at in range(3)} == {b"\0\0\0\0\1\0", b"\0\0\0\0\1\2", b"\0\0\0\0\1\4"}
    before = dict(registry.calls)
    assert before == {"register": 1, "associations": 1}
    for at in range(1000):
        serializer(at, VALUE)
    assert registry.calls == before
    serializer(1, KEY)
    assert registry.calls == {"register": 2, "associations": 2}


def test_no_schema_is_read_again_for_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    import headrace.client.schema_serdes.avro_serdes as avro

    read = []
    parsed = avro.parsed
    monkeypatch.setattr(avro, "parsed", lambda *arguments: read.append(1) or parsed(*arguments))
    serializer = AvroSerializer(KeptRegistry(), INT)
    for at in range(100):
        serializer(at, VALUE)
        serializer(at, KEY)
    assert len(read) == 1


def test_each_subject_has_the_id_of_its_own_schema() -> None:
    registry = KeptRegistry()
    registry.register_schema("elsewhere", Schema('"string"'))
    serializer = AvroSerializer(registry, INT)
    other = SerializationContext("bills", MessageField.VALUE)
    registry.versions["bills-value"] = []
    assert serializer(1, VALUE) == serializer(1, other) == b"\0\0\0\0\2\2"


def test_what_is_not_registered_automatically_is_looked_up() -> None:
    registry = KeptRegistry()
    serializer = AvroSerializer(registry, INT, conf={"auto.register.schemas": False})
    with pytest.raises(NotThereError):
        serializer(1, VALUE)
    registry.register_schema("orders-value", Schema(INT))
    assert serializer(1, VALUE) == b"\0\0\0\0\1\2"
    assert registry.calls["lookup"] == 2


def test_the_latest_schema_is_followed() -> None:
    registry = KeptRegistry()
    registry.register_schema("orders-value", Schema(INT))
    serializer = AvroSerializer(registry, conf=FOLLOWING)
    assert serializer(1, VALUE) == b"\0\0\0\0\1\2"
    registry.register_schema("orders-value", Schema('"string"'))
    assert serializer("a", VALUE) == b"\0\0\0\0\2\2a"
    assert registry.calls["register"] == 2


def test_a_schema_is_chosen_by_its_metadata_or_its_id() -> None:
    registry = KeptRegistry()
    major = Metadata(None, MetadataProperties({"major": "1"}), None)
    registry.register_schema("orders-value", Schema(INT, metadata=major))
    registry.register_schema("orders-value", Schema('"string"'))
    by_metadata = AvroSerializer(registry, conf={"use.latest.with.metadata": {"major": "1"}})
    assert by_metadata(1, VALUE) == b"\0\0\0\0\1\2"
    by_id = AvroSerializer(registry, conf={"use.schema.id": 1})
    assert by_id(1, VALUE) == b"\0\0\0\0\1\2"
    before = dict(registry.calls)
    by_id(2, VALUE)
    assert registry.calls == before


def test_without_any_schema_there_is_a_clear_error() -> None:
    with pytest.raises(SerializationError, match="no schema to write"):
        AvroSerializer(KeptRegistry())(1, VALUE)


def test_a_strategy_that_names_no_subject_is_an_error() -> None:
    serializer = AvroSerializer(KeptRegistry(), '["null","int"]',
                                conf={"subject.name.strategy": record_subject_name_strategy})
    with pytest.raises(SerializationError, match="no subject"):
        serializer(1, VALUE)


def test_a_strategy_that_needs_no_context_works_without_one() -> None:
    registry = KeptRegistry()
    serializer = AvroSerializer(registry, INT, conf={"subject.name.strategy.type": "RECORD"})
    assert serializer(1) == b"\0\0\0\0\1\2"
    assert list(registry.versions) == ["int"]
    with pytest.raises(ValueError, match="SerializationContext"):
        AvroSerializer(registry, INT)(1)


def test_an_applications_strategy_is_asked_for_each_message() -> None:
    registry = KeptRegistry()
    serializer = AvroSerializer(
        registry, INT, conf={"subject.name.strategy": lambda ctx, name: dict(ctx.headers)["tenant"].decode()})
    for tenant in (b"a", b"b", b"a"):
        serializer(1, SerializationContext("t", MessageField.VALUE, [("tenant", tenant)]))
    assert list(registry.versions) == ["a", "b"]
    assert registry.calls == {"register": 2}


def test_a_schema_that_is_chosen_by_its_id_is_looked_up_once_for_a_subject() -> None:
    registry = KeptRegistry()
    registry.register_schema("all", Schema(INT))
    registry.calls.clear()
    conf = {"use.schema.id": 1, "subject.name.strategy": lambda ctx, name: "all"}
    serializer = AvroSerializer(registry, conf=conf)
    for topic in "aab":
        assert serializer(1, SerializationContext(topic, MessageField.VALUE)) == b"\0\0\0\0\1\2"
    assert registry.calls == {"get_schema": 1, "lookup": 1}


def test_to_dict_is_called_before_and_gets_the_context() -> None:
    serializer = AvroSerializer(KeptRegistry(), INT, lambda obj, ctx: obj + len(ctx.topic))
    assert serializer(1, VALUE) == b"\0\0\0\0\1\x0e"
    with pytest.raises(TypeError, match="to_dict"):
        serializer(1)
    with pytest.raises(ValueError, match="to_dict must be callable"):
        AvroSerializer(KeptRegistry(), INT, "nothing")  # type: ignore[arg-type]


def test_the_id_may_stand_in_a_header() -> None:
    serializer = AvroSerializer(KeptRegistry(), INT, conf={"schema.id.serializer": header_schema_id_serializer})
    context = SerializationContext("orders", MessageField.KEY, [])
    assert serializer(1, context) == b"\2"
    assert context.headers == [("__key_schema_id", b"\1" + bytes(15) + b"\1")]


def test_a_framing_of_the_applications_own_gets_bytes() -> None:
    got = []
    serializer = AvroSerializer(KeptRegistry(), INT, conf={
        "schema.id.serializer": lambda payload, ctx, schema_id: got.append((payload, schema_id.id)) or b"!"})
    assert serializer(1, VALUE) == b"!"
    assert got == [(b"\2", 1)]
    assert type(got[0][0]) is bytes


def test_a_schema_with_a_rule_that_is_due_is_refused() -> None:
    rule = Rule("mask", None, RuleKind.TRANSFORM, RuleMode.WRITE, "CEL", None, None, None, None, None, False)
    registry = KeptRegistry()
    registry.register_schema("orders-value", Schema(INT, rule_set=RuleSet(None, [rule])))
    with pytest.raises(SerializationError, match="'mask' of type CEL"):
        AvroSerializer(registry, conf=FOLLOWING)(1, VALUE)


@pytest.mark.parametrize("kind", [
    AvroSerializer, AsyncAvroSerializer, AvroDeserializer, AsyncAvroDeserializer, JSONSerializer, AsyncJSONSerializer,
    JSONDeserializer, AsyncJSONDeserializer])
def test_an_engine_for_rules_cannot_be_given(kind: Any) -> None:
    with pytest.raises(ValueError, match="rule_registry"):
        kind(schema_str=INT, schema_registry_client=KeptRegistry(), rule_registry=object())


def test_what_is_kept_of_many_topics_does_not_grow_without_end() -> None:
    serializer = AvroSerializer(KeptRegistry(), INT)
    for at in range(2 * MAX_KEPT + 10):
        serializer(1, SerializationContext(f"t{at}", MessageField.VALUE))
    assert len(serializer._ready) <= MAX_KEPT


def test_threads_that_begin_together_register_once() -> None:
    registry = KeptRegistry()
    serializer = AvroSerializer(registry, INT)
    together = threading.Barrier(8)

    def begin() -> None:
        together.wait()
        assert serializer(1, VALUE) == b"\0\0\0\0\1\2"

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert registry.calls["register"] == 1


def test_tasks_that_begin_together_register_once() -> None:
    async def begin() -> None:
        registry = AsyncKeptRegistry()
        serializer = await AsyncAvroSerializer(registry, INT)
        assert await asyncio.gather(*(serializer(1, VALUE) for _ in range(8))) == [b"\0\0\0\0\1\2"] * 8
        assert registry.kept.calls["register"] == 1
        assert await serializer(None, VALUE) is None

    asyncio.run(begin())


def test_a_failure_to_register_does_not_block_the_next_message() -> None:
    registry = KeptRegistry()
    register, registry.register_schema_full_response = registry.register_schema_full_response, None  # type: ignore
    serializer = AvroSerializer(registry, INT)
    with pytest.raises(TypeError):
        serializer(1, VALUE)
    registry.register_schema_full_response = register  # type: ignore[method-assign]
    assert serializer(1, VALUE) == b"\0\0\0\0\1\2"


def test_the_registry_client_is_closed_only_if_it_is_the_serializers_own() -> None:
    registry = KeptRegistry()
    serializer = AvroSerializer(registry, INT)
    serializer.close()
    assert not registry.closed
    serializer.own_schema_registry_client()
    serializer.close()
    serializer.close()
    assert registry.closed


def test_the_clusters_id_is_asked_for_where_it_is_needed() -> None:
    asked = []
    registry = KeptRegistry()
    registry.associations = [SimpleNamespace(subject="theirs")]
    serializer = AvroSerializer(registry, INT)
    serializer.set_cluster_id_resolver(lambda: asked.append(1) or "cluster")
    assert not asked
    serializer(1, VALUE)
    serializer(1, VALUE)
    assert asked == [1]
    assert list(registry.versions) == ["theirs"]


def test_a_strategy_may_be_configured_later() -> None:
    registry = KeptRegistry()
    serializer = AvroSerializer(registry, INT)
    serializer.configure_subject_name_strategy("RECORD")
    serializer(1, VALUE)
    assert list(registry.versions) == ["int"]
    with pytest.raises(ValueError, match="can only be DISABLED"):
        serializer.configure_validation_rules({"validation.rules.execution": "BEFORE_DOMAIN_RULES"})
    left = {"validation.rules.fail.fast": True, "other": 1}
    serializer.configure_validation_rules(left)
    assert left == {"other": 1}
