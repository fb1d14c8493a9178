"""What is written into the batches of a producer, and what is left to brokers."""

from collections import Counter

import pytest

from headrace import Producer
from headrace.records import scan
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
ATTRIBUTES = slice(21, 23)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("stamped", ["CreateTime", "LogAppendTime"])
def test_the_attributes_of_a_batch_leave_the_brokers_time_to_the_broker(codec, stamped):
    sent = []
    with EmbeddedBroker() as broker:
        broker.create_topic("t", configs={"message.timestamp.type": stamped})
        broker.add_fault(Fault(action=Action.DROP, request=ProduceRequest, times=None, when=lambda request: sent.append(
            bytes(request.topic_data[0].partition_data[0].records)) or False))
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}) as producer:
            producer.produce("t", b"v" * 100, timestamp=1_700_000_000_000)
    (batch,) = sent
    assert batch[16] == 2  # the format
    assert int.from_bytes(batch[ATTRIBUTES], "big") == CODECS.index(codec)  # no LogAppendTime, which would be 8


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_request_has_one_entry_for_each_of_its_partitions_and_one_batch_in_it(idempotent):
    requests = []

    def note(request):
        requests.append([(data.index, bytes(data.records))
                         for topic in request.topic_data for data in topic.partition_data])

    with EmbeddedBroker(topics={"t": 3}) as broker:
        # The first one is answered late: meanwhile batches pile up, which could go together.
        broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.3, when=lambda request: note(
            request) or len(requests) == 1, times=None))
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.num.messages": 10, "linger.ms": 1,
                       "enable.idempotence": idempotent}) as producer:
            for number in range(600):
                producer.produce("t", b"%d" % number, partition=number % 3)
            assert producer.flush(30) == 0
        assert broker.end_offsets("t") == [200, 200, 200]
    assert max(map(len, requests)) == 3  # partitions do share requests
    assert all(max(Counter(index for index, _ in request).values()) == 1 for request in requests)
    batches = [(index, scan(records)) for request in requests for index, records in request]
    assert [(len(found), found[0].magic) for _, found in batches] == [(1, 2)] * len(batches)
    assert Counter(index for index, _ in batches) == {0: 20, 1: 20, 2: 20}
