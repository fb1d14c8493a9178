"""Topics that are looked for before Spark starts, at the brokers that a source or sink names."""

from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.spark.pipeline.endpoints import Endpoints
from headrace.spark.pipeline.preflight.topics import check_sinks, check_sources, check_tables
from headrace.spark.pipeline.spec import parse_pipeline
from headrace.spark.pipeline.supervisor import PipelineError
from headrace.testing import EmbeddedBroker

TEXT = """
[pipeline]
name = "shop"
checkpoint = "cp"
guarantee = "exactly_once"
[kafka]
bootstrap.servers = "{here}"
[[source]]
name = "sales"
topic = "sales"
[[sink]]
from = "sales"
topic = "sums"
options."{option}" = "{value}"
[[transaction]]
name = "both"
from = "sales"
options."kafka.bootstrap.servers" = "{there}"
options.maxAttempts = 2
[[transaction.write]]
topic = "sums"
"""


@pytest.fixture(scope="module")
def here():
    with EmbeddedBroker(topics={"sales": 1, "other": 1}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def there():
    with EmbeddedBroker(topics={"sums": 1}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def endpoints(here, there):
    def make(option, value):
        text = TEXT.format(here=here, there=there, option=option, value=value)
        return Endpoints(parse_pipeline(text), Path())

    return make


def test_a_sink_of_other_brokers_has_its_topic_there(endpoints, there):
    check_sinks(endpoints("kafka.bootstrap.servers", there))


def test_a_topic_that_an_option_names_is_the_one_that_is_looked_for(endpoints, there):
    check_sinks(endpoints("topic", "other"))


def test_a_topic_that_is_not_where_the_sink_writes_is_named(endpoints, here):
    with pytest.raises(ConfigError, match="sink sales: topic sums does not exist"):
        check_sinks(endpoints("kafka.bootstrap.servers", here))


def test_a_source_without_its_topic_is_named(endpoints, there):
    wanted = endpoints("kafka.linger.ms", "5")
    check_sources(wanted)
    wanted.kafka["bootstrap.servers"] = there
    with pytest.raises(PipelineError, match="source sales: topic sales does not exist"):
        check_sources(wanted)


TABLES = """
[pipeline]
name = "shop"
checkpoint = "cp"
[kafka]
bootstrap.servers = "{here}"
[[source]]
name = "sales"
topic = "made later"
[[table]]
name = "others"
topic = "{table}"
[[table]]
name = "items"
file = "items.csv"
format = "csv"
[[sink]]
from = "sales"
topic = "made later"
[[sink]]
from = "sales"
name = "archive"
path = "out"
"""


def test_of_tables_the_topics_are_looked_for_and_of_sinks_those_that_are_written_exactly_once(here):
    good = Endpoints(parse_pipeline(TABLES.format(here=here, table="other")), Path())
    check_tables(good)
    check_sinks(good)  # at least once, brokers may make it with the first record
    with pytest.raises(ConfigError, match="table others: topic gone does not exist"):
        check_tables(Endpoints(parse_pipeline(TABLES.format(here=here, table="gone")), Path()))
