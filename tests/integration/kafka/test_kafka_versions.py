"""The whole way on the older versions: produce, every codec, a group, administration."""

from collections.abc import Iterator

import pytest

from headrace import Producer
from headrace.admin import AdminClient, NewTopic
from tests.support.configuration import OLDER, Configuration
from tests.support.real_kafka import read_all, running
from tools.kafka import KafkaCluster

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[OLDER, "4.3.1"])
def older(request: pytest.FixtureRequest, configured: Configuration) -> Iterator[KafkaCluster]:
    yield from running(configured.cluster(request.param, 3 if request.param == OLDER else 1))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_go_out_and_come_back(older: KafkaCluster, codec: str) -> None:
    topic = f"way-{codec}"
    with AdminClient(older.connection) as admin:
        admin.create_topics([NewTopic(topic, 4, len(older.nodes))])[topic].result(20)
    with Producer({**older.connection, "compression.type": codec}) as producer:
        for i in range(5_000):
            producer.produce(topic, str(i), str(i % 10), headers={"n": str(i)})
        assert producer.flush(30) == 0
    found = read_all(older, topic, 5_000)
    assert sorted(int(m.value()) for m in found) == list(range(5_000))
    assert all(m.headers() == [("n", m.value())] for m in found)
