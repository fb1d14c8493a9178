"""What a pipeline file asks of the source and the sink: options by name, checked, and shown without secrets."""

from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.spark.pipeline.declared import EXACTLY_ONCE, Input, Sink, Write
from headrace.spark.pipeline.endpoints import HIDDEN, Endpoints, shown
from headrace.spark.pipeline.spec import parse_pipeline

TEXT = """
[pipeline]
name = "shop floor"
checkpoint = "cp"
[kafka]
bootstrap.servers = "there:9092"
[registry]
url = "http://registry:8081"
basic.auth.user.info = "me:hush"
[[source]]
name = "sales"
topic = "sales"
format = "avro"
schema_file = "sale.avsc"
subject = "sale"
malformed = "dead-letter"
dead_letters = "sales-bad"
group = "shop-lag"
options.maxOffsetsPerTrigger = 10
[[table]]
name = "items"
topic = "items"
[[sink]]
from = "sales"
topic = "out"
format = "avro"
guarantee = "exactly_once"
[[sink]]
from = "items"
name = "plain"
topic = "plain"
options.topic = "other"
"""


@pytest.fixture
def endpoints():
    return Endpoints(parse_pipeline(TEXT), Path("/base"))


def test_a_source_of_a_registry_gets_brokers_registry_and_what_its_keys_say(endpoints):
    assert endpoints.reading(endpoints.spec.inputs[0]) == {
        "startingOffsets": "earliest", "kafka.bootstrap.servers": "there:9092", "subscribe": "sales",
        "schema.registry.url": "http://registry:8081", "schema.registry.basic.auth.user.info": "me:hush",
        "value.format": "avro", "value.schema.file": "/base/sale.avsc", "value.subject": "sale",
        "value.malformed": "dead-letter", "deadLetterTopic": "sales-bad", "groupId": "shop-lag",
        "maxOffsetsPerTrigger": "10",
    }


def test_a_transaction_names_the_group_and_no_topic_for_each_write_has_its_own(endpoints):
    sink = Sink("both", "sales", guarantee=EXACTLY_ONCE, writes=(Write("a"), Write("b")), group="job")
    asked = endpoints.writing(sink)
    assert (asked["groupId"], asked["delivery.guarantee"], asked["sinkId"]) == (
        "job", "exactly_once", endpoints.sink_id(sink))
    assert "topic" not in asked
    assert endpoints.written(sink).exactly_once  # its own check passes over what only `transactional` reads


@pytest.mark.parametrize(("malformed", "asked"), [
    ("keep", {}), ("drop", {}),
    ("fail", {"value.format": "json", "value.schema": "n INT", "value.malformed": "fail"}),
    ("dead-letter", {"value.format": "json", "value.schema": "n INT", "value.malformed": "dead-letter",
                     "deadLetterTopic": "bad"}),
])
def test_json_is_decoded_by_the_source_unless_its_text_may_be_wanted(endpoints, malformed, asked):
    each = Input("sales", topic="sales", format="json", schema="n INT", malformed=malformed,
                 dead_letters="bad" if malformed == "dead-letter" else "")
    assert endpoints.reading(each) == {
        "startingOffsets": "earliest", "kafka.bootstrap.servers": "there:9092", "subscribe": "sales", **asked}


@pytest.mark.parametrize(("form", "asked"), [("Avro", True), ("json", False), ("string", False)])
def test_keys_whose_format_has_a_registry_get_it_whatever_the_values_are(endpoints, form, asked):
    options = {"Key.Format": form}
    source = Input("sales", topic="sales", format="text", options=options, streaming=True)
    sink = Sink("sales", "sales", topic="out", options=options)
    for told in (endpoints.reading(source), endpoints.writing(sink)):
        assert (told.get("schema.registry.url") == "http://registry:8081") is asked


def test_what_needs_no_registry_hears_nothing_of_it(endpoints):
    assert endpoints.reading(endpoints.spec.inputs[1]) == {
        "startingOffsets": "earliest", "kafka.bootstrap.servers": "there:9092", "subscribe": "items"}


def test_a_sink_has_its_guarantee_and_the_same_id_in_each_run(endpoints):
    first, second = endpoints.spec.sinks
    written = endpoints.writing(first)
    assert (written["delivery.guarantee"], written["sinkId"]) == ("exactly_once", "shop-floor-sales")
    assert written["value.format"] == "avro"
    assert endpoints.writing(second) == {"kafka.bootstrap.servers": "there:9092", "topic": "other"}


def test_ids_of_sinks_are_of_letters_that_brokers_and_shells_take(endpoints):
    assert endpoints.sink_id(Sink("a b/c", "x")) == "shop-floor-a-b-c"


def test_other_brokers_go_before_those_of_the_file():
    given = Endpoints(parse_pipeline(TEXT), Path(), bootstrap="here:1", registry="http://here:2")
    assert (given.kafka["bootstrap.servers"], given.registry["url"]) == ("here:1", "http://here:2")
    embedded = TEXT.replace("there:9092", "embedded").replace("http://registry:8081", "embedded")
    with pytest.raises(ConfigError, match="name the registry of the brokers that you gave"):
        Endpoints(parse_pipeline(embedded), Path(), bootstrap="here:1")


@pytest.mark.parametrize(("old", "new", "said"), [
    ('topic = "items"', 'topic = "items"\noptions.maxBytesPerTrigger = 5', "table items: option maxBytesPer"),
    ('options.topic = "other"', "options.topics = 1", "sink plain: unknown option 'topics'. Did you mean 'topic'?"),
])
def test_a_mistake_in_an_option_names_its_section(old, new, said):
    given = Endpoints(parse_pipeline(_plain(TEXT.replace(old, new))), Path())
    with pytest.raises(ConfigError) as caught:
        given.check()
    assert said in str(caught.value)


def _plain(text):
    """The file without formats and guarantees."""
    keys = ("format", "schema_file", "subject", "malformed", "dead_letters", "group", "guarantee")
    return "\n".join(line for line in text.splitlines() if not line.startswith(keys))


def test_secrets_are_hidden_whatever_prefix_they_have():
    given = {
        "kafka.sasl.password": "hush", "schema.registry.basic.auth.user.info": "me:hush", "sasl.jaas.config": "hush",
        "spark.hadoop.fs.s3a.secret.key": "hush", "kafka.my.interceptor.token": "hush",
        "kafka.ssl.key.password": "hush",
        "schema.registry.url": "https://me:hush@registry:8081", "kafka.bootstrap.servers": "there:9092",
    }
    told = shown(given)
    assert "hush" not in str(told)
    assert told["schema.registry.url"] == "https://registry:8081"
    assert told["kafka.bootstrap.servers"] == "there:9092"
    assert list(told.values()).count(HIDDEN) == 6
