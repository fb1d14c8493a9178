"""What deserializers of all formats do."""

import asyncio

import pytest

from headrace.client.registry.schema_ids import header_schema_id_serializer
from headrace.client.schema_serdes.avro_serdes import AsyncAvroDeserializer, AvroDeserializer, AvroSerializer
from headrace.errors import SerializationError
from headrace.serialization import MessageField, SerializationContext
from headrace.types.registry import Rule, RuleKind, RuleMode, RuleSet, Schema
from tests.support.kept_registry import AsyncKeptRegistry, KeptRegistry, NotThereError

VALUE = SerializationContext("orders", MessageField.VALUE)
OLD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
NEW = '{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"b","type":"string","default":"-"}]}'
OF_OLD = b"\0\0\0\0\1\2"


@pytest.fixture
def registry() -> KeptRegistry:
    made = KeptRegistry()
    made.register_schema("orders-value", Schema(OLD))
    made.calls.clear()
    return made


def test_none_stays_none(registry) -> None:
    assert AvroDeserializer(registry)(None, VALUE) is None


def test_the_registry_is_asked_for_the_first_message_of_a_schema_only(registry) -> None:
    deserializer = AvroDeserializer(registry)
    for _ in range(1000):
        assert deserializer(OF_OLD, VALUE) == {"a": 1}
    assert registry.calls == {"get_schema": 1, "associations": 1}


@pytest.mark.parametrize("strategy", ["RECORD", "TOPIC_RECORD"])
def test_what_leads_to_the_latest_version_is_looked_up_once_where_the_subject_has_the_records_name(strategy) -> None:
    subject = {"RECORD": "R", "TOPIC_RECORD": "orders-R"}[strategy]
    registry = KeptRegistry()
    registry.register_schema(subject, Schema(OLD))
    deserializer = AvroDeserializer(registry, conf={"use.latest.version": True, "subject.name.strategy.type": strategy})
    for _ in range(5):
        assert deserializer(OF_OLD, VALUE) == {"a": 1}
    assert registry.calls["lookup"] == 1
    registry.register_schema(subject, Schema(NEW))
    for _ in range(5):
        assert deserializer(OF_OLD, VALUE) == {"a": 1, "b": "-"}
    assert registry.calls["lookup"] == 2


@pytest.mark.parametrize("headers", [[("trace", b"1")], {"trace": b"1"}, (("trace", b"1"),)])
def test_other_headers_change_nothing(registry, headers) -> None:
    deserializer = AvroDeserializer(registry)
    context = SerializationContext("orders", MessageField.VALUE, headers)
    for _ in range(3):
        assert deserializer(OF_OLD, context) == {"a": 1}
    assert registry.calls["get_schema"] == 1


@pytest.mark.parametrize("headers", [[], {}])
def test_an_id_in_a_header_goes_before_one_in_front(registry, headers) -> None:
    context = SerializationContext("orders", MessageField.VALUE, headers)
    serializer = AvroSerializer(registry, OLD, conf={"schema.id.serializer": header_schema_id_serializer})
    payload = serializer({"a": 1}, context)
    assert payload == b"\2"
    deserializer = AvroDeserializer(registry)
    for _ in range(3):
        assert deserializer(payload, context) == {"a": 1}
        assert deserializer(OF_OLD, VALUE) == {"a": 1}
    assert registry.calls["get_schema"] == 2


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0", b"\2abcdef", b"\1short", b"\0\0\0\0\1", b"\0\0\0\0\1\xff"])
def test_bytes_without_a_frame_or_a_value_are_an_error(registry, data) -> None:
    deserializer = AvroDeserializer(registry)
    for _ in range(2):
        with pytest.raises(SerializationError):
            deserializer(data, VALUE)
    assert deserializer(OF_OLD, VALUE) == {"a": 1}


@pytest.mark.parametrize(("data", "headers", "said"), [
    (b"", None, "more but total data size is 0 bytes: Invalid magic byte: it is empty"),
    (b"\0\0\0", None, "more but total data size is 3 bytes: the message ends within a schema id: 2 of 4 bytes"),
    (b"\0\0\0\0\1", None, "more but total data size is 5 bytes: "),
    (b"\0\0\0\0\1\xff", None, "the bytes do not fit"),
    (b"\xff", [("__value_schema_id", b"\2")], "Invalid magic byte: the first byte is 2"),
])
def test_a_message_that_is_too_short_is_told_how_long_it_is(registry, data, headers, said) -> None:
    context = SerializationContext("orders", MessageField.VALUE, headers)
    wanted = "Expecting data framing of length 6 bytes or " * said.startswith("more") + said

    async def awaited() -> None:
        asked = AsyncKeptRegistry()
        asked.kept = registry
        await (await AsyncAvroDeserializer(asked))(data, context)

    deserializer = AvroDeserializer(registry)
    for prepared in (False, True):
        with pytest.raises(SerializationError) as raised:
            deserializer(data, context)
        assert str(raised.value).startswith(wanted), prepared
        deserializer(OF_OLD, VALUE)
    with pytest.raises(SerializationError) as raised:
        asyncio.run(awaited())
    assert str(raised.value).startswith(wanted)


def test_five_bytes_that_are_a_whole_message_are_read(registry) -> None:
    registry.register_schema("nothing-value", Schema('"null"'))
    assert AvroDeserializer(registry)(b"\0\0\0\0\2", SerializationContext("nothing", MessageField.VALUE)) is None


def test_a_schema_that_the_registry_does_not_know_is_its_error(registry) -> None:
    with pytest.raises(NotThereError):
        AvroDeserializer(registry)(b"\0\0\0\0\x09\2", VALUE)


def test_a_value_becomes_one_of_the_schema_that_is_given(registry) -> None:
    assert AvroDeserializer(registry, NEW)(OF_OLD, VALUE) == {"a": 1, "b": "-"}


def test_a_value_becomes_one_of_the_latest_schema_which_is_followed(registry) -> None:
    deserializer = AvroDeserializer(registry, conf={"use.latest.version": True})
    assert deserializer(OF_OLD, VALUE) == {"a": 1}
    registry.register_schema("orders-value", Schema(NEW))
    assert deserializer(OF_OLD, VALUE) == {"a": 1, "b": "-"}
    known = dict(registry.calls)
    assert deserializer(OF_OLD, VALUE) == {"a": 1, "b": "-"}
    assert registry.calls == {**known, "latest": known["latest"] + 1}


def test_the_record_names_the_subject_where_the_strategy_says_so(registry) -> None:
    registry.register_schema("R", Schema(NEW))
    registry.register_schema("R", Schema(OLD))
    registry.register_schema("R", Schema(NEW.replace('"-"', '"+"')))
    deserializer = AvroDeserializer(registry, conf={"subject.name.strategy.type": "RECORD", "use.latest.version": True})
    assert deserializer(OF_OLD, VALUE) == deserializer(OF_OLD, VALUE) == {"a": 1, "b": "+"}


def test_without_a_context_the_schema_in_front_is_read(registry) -> None:
    deserializer = AvroDeserializer(registry)
    assert deserializer(OF_OLD) == deserializer(OF_OLD) == {"a": 1}
    assert registry.calls == {"get_schema": 1}


def test_from_dict_is_called_behind_and_its_errors_are_its_own(registry) -> None:
    calls = []

    def from_dict(value, ctx):
        calls.append(value)
        raise KeyError(ctx.topic)

    deserializer = AvroDeserializer(registry, None, from_dict)
    for _ in range(2):
        with pytest.raises(KeyError, match="orders"):
            deserializer(OF_OLD, VALUE)
    assert calls == [{"a": 1}] * 2
    with pytest.raises(TypeError, match="from_dict"):
        deserializer(OF_OLD)


def test_a_frame_of_the_applications_own_is_asked_each_time(registry) -> None:
    def split(payload, ctx, schema_id):
        schema_id.id = 1
        return payload[1:]

    deserializer = AvroDeserializer(registry, conf={"schema.id.deserializer": split})
    assert deserializer(b"!\2", VALUE) == deserializer(b"!\2", VALUE) == {"a": 1}
    assert registry.calls["get_schema"] == 1


def rule(mode: RuleMode) -> Rule:
    return Rule("mask", None, RuleKind.TRANSFORM, mode, "CEL", None, None, None, None, None, False)


@pytest.mark.parametrize("rules", [RuleSet(None, [rule(RuleMode.READ)]),
                                   RuleSet(None, None, [rule(RuleMode.WRITEREAD)])])
def test_a_schema_with_a_rule_that_is_due_is_refused(rules) -> None:
    registry = KeptRegistry()
    registry.register_schema("orders-value", Schema(OLD, rule_set=rules))
    with pytest.raises(SerializationError, match="'mask' of type CEL"):
        AvroDeserializer(registry)(OF_OLD, VALUE)


def test_a_version_with_migration_rules_between_is_refused(registry) -> None:
    registry.register_schema("orders-value", Schema(NEW, rule_set=RuleSet([rule(RuleMode.UPGRADE)], None)))
    registry.register_schema("orders-value", Schema(NEW))
    with pytest.raises(SerializationError, match="version 2 of orders-value has migration rules"):
        AvroDeserializer(registry, conf={"use.latest.version": True})(OF_OLD, VALUE)


def test_bytes_may_be_a_bytearray(registry) -> None:
    deserializer = AvroDeserializer(registry)
    assert deserializer(bytearray(OF_OLD), VALUE) == deserializer(bytearray(OF_OLD), VALUE) == {"a": 1}


def test_awaited_it_does_the_same() -> None:
    async def read() -> None:
        registry = AsyncKeptRegistry()
        registry.kept.register_schema("orders-value", Schema(OLD))
        deserializer = await AsyncAvroDeserializer(registry, NEW)
        for _ in range(3):
            assert await deserializer(OF_OLD, VALUE) == {"a": 1, "b": "-"}
        assert await deserializer(None, VALUE) is None
        assert registry.kept.calls["get_schema"] == 1

    asyncio.run(read())
