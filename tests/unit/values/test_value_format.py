"""Options of formats: what is accepted, and the one line that each mistake gives."""

import pickle

import pytest

from headrace.errors import ConfigError
from headrace.spark.options import SinkOptions, SourceOptions
from headrace.values.value_format import ValueFormat, has_formats

SERVERS = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t"}
AVRO = {"value.format": "avro", "schema.registry.url": "http://localhost:8081"}


def source(**given):
    return SourceOptions.parse({**SERVERS, **given}, streaming=True)


def test_bytes_are_raw_unless_a_format_is_named():
    options = source()
    assert (options.value, options.key) == (ValueFormat("value"), ValueFormat("key"))
    assert not options.value.has_schema
    assert not has_formats({})
    assert not has_formats({"value.format": "RAW"})
    assert has_formats({"key.format": "string"})


def test_a_side_has_its_own_options_and_both_have_one_registry():
    options = source(**AVRO, **{"key.format": "string", "value.subject": "s", "value.schema.version": "3",
                                "value.malformed": "NULL", "value.subject.strategy": "topic_record",
                                "value.message": "shop.Order", "schema.registry.timeout": "5"})
    value = options.value
    assert (value.name, value.subject, value.version, value.malformed) == ("avro", "s", 3, "null")
    assert (value.strategy, value.message, value.framed) == ("topic_record", "shop.Order", True)
    assert value.registry_properties == {"url": "http://localhost:8081", "timeout": 5.0}
    assert options.key == ValueFormat("key", "string")


def test_a_schema_without_a_registry_means_payloads_without_framing_unless_it_is_asked_for():
    schema = {"value.format": "avro", "value.schema": '"int"'}
    assert not source(**schema).value.framed
    assert source(**schema, **{"value.framing": "confluent"}).value.framed
    assert not source(**AVRO, **{"value.framing": "none"}).value.framed


def test_a_schema_comes_from_a_file(tmp_path):
    file = tmp_path / "order.avsc"
    file.write_text('"int"')
    assert source(**AVRO, **{"value.schema.file": str(file)}).value.schema == '"int"'


def test_the_sink_may_register_unless_told_otherwise():
    options = SinkOptions.parse({"kafka.bootstrap.servers": "a:1", "topic": "t", **AVRO})
    assert (options.value.auto_register, options.value.use_latest) == (True, False)
    options = SinkOptions.parse({"kafka.bootstrap.servers": "a:1", "topic": "t", **AVRO, "value.auto.register": "false",
                                 "value.use.latest": "true"})
    assert (options.value.auto_register, options.value.use_latest) == (False, True)


@pytest.mark.parametrize(("given", "said"), [
    ({"value.format": "avor"}, "option value.format must be raw, string, json, avro, protobuf, json-schema, not 'avor'."
                               " Did you mean 'avro'?"),
    ({"value.fromat": "avro"}, "Did you mean 'value.format'?"),
    ({**AVRO, "value.malformed": "skip"}, "option value.malformed must be fail, null, dead-letter, not 'skip'."),
    ({**AVRO, "value.schema.version": "0"}, "must be latest or a number from 1, not '0'"),
    ({**AVRO, "value.schema": "1", "value.schema.file": "2"}, "give one of value.schema and value.schema.file"),
    ({**AVRO, "value.schema.file": "/no/such"}, "option value.schema.file cannot be read"),
    ({"value.schema": "x"}, "option value.schema has no meaning with value.format raw"),
    ({"value.format": "avro", "schema.registry.timeout": "5"}, "option schema.registry.url is missing"),
    ({**AVRO, "schema.registry.timeout": "soon"}, "option schema.registry.timeout must be a number, not 'soon'"),
    ({**AVRO, "value.malformed": "dead-letter"}, "name the topic by option deadLetterTopic"),
    ({**AVRO, "deadLetterTopic": "d"}, "deadLetterTopic has no use without value.malformed"),
    ({**AVRO, "value.malformed": "dead-letter", "deadLetterTopic": "t"}, "dead-letter topic t is among"),
    ({"value.format": "json", "value.framing": "confluent"}, "plain JSON has no framing"),
    ({**AVRO, "value.use.latest": "true"}, "unknown option 'value.use.latest'"),
])
def test_each_mistake_gives_one_line(given, said):
    with pytest.raises(ConfigError) as caught:
        source(**given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_credentials_are_not_shown_and_travel_to_the_tasks():
    options = source(**AVRO, **{"schema.registry.basic.auth.user.info": "me:s3cr3t"})
    assert "s3cr3t" not in repr(options) + str(options.value)
    assert pickle.loads(pickle.dumps(options)).value.registry_properties["basic.auth.user.info"] == "me:s3cr3t"
