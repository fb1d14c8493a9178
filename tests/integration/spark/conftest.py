"""What tests with a real Spark share: a broker, a session, fresh topics."""

import os
import uuid

import pytest

from headrace.errors import DependencyError


@pytest.fixture(scope="session")
def brokers():
    """Brokers for Spark's tests: an embedded one, or those that HEADRACE_TEST_BROKERS names."""
    named = os.environ.get("HEADRACE_TEST_BROKERS")
    if named:
        yield named
        return
    from headrace.testing import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def java():
    """A Java for Spark, or a skip that says what is missing; in CI that is a failure."""
    from headrace.spark.java import prepare_java

    try:
        return prepare_java()
    except DependencyError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(java, tmp_path_factory):
    """One Spark session for all tests."""
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("tests")
    settings = {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")), "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def make_topic(brokers):
    """Makes topics with names of their own."""
    from headrace.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": brokers})

    def make(partitions=2):
        name = f"t-{uuid.uuid4().hex[:12]}"
        for done in admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1)]).values():
            done.result()
        return name

    return make


@pytest.fixture
def produce(brokers):
    """Produces records; waits until they are stored."""
    from headrace import Producer

    def run(topic, records):
        with Producer({"bootstrap.servers": brokers}) as producer:
            for record in records:
                producer.produce(topic, **record)
            assert producer.flush(30) == 0

    return run


@pytest.fixture
def values_of(brokers):
    """Reads all values of a topic, at read_committed."""
    from headrace import Consumer, TopicPartition

    def run(topic):
        with Consumer({"bootstrap.servers": brokers, "group.id": "g", "enable.auto.commit": False}) as consumer:
            known = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            partitions = [TopicPartition(topic, number, 0) for number in known]
            ends = {each.partition: consumer.get_watermark_offsets(each, 30)[1] for each in partitions}
            consumer.assign(partitions)
            found = []
            # Positions, not counts: offsets of markers and of what was aborted hold no record.
            while any(max(tp.offset, 0) < ends[tp.partition] for tp in consumer.position(partitions)):
                found += [message.value() for message in consumer.consume(1000, 1)]
        return [value.decode() for value in found]

    return run


@pytest.fixture(scope="module")
def world():
    """A broker with a registry."""
    from headrace.testing import EmbeddedBroker

    with EmbeddedBroker(registry=True) as broker:
        yield broker


@pytest.fixture
def topic(world):
    """The name of a fresh topic of two partitions at `world`, and beside it one for dead letters."""
    from headrace.admin import AdminClient, NewTopic

    name = f"values-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": world.bootstrap_servers})
    for done in admin.create_topics([NewTopic(name, 2, 1), NewTopic(f"{name}-dead", 1, 1)]).values():
        done.result()
    return name
