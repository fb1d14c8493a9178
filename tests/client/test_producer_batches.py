"""What is written into the batches of a producer, and what is left to brokers."""

import pytest

from headrace import Producer
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.produce import ProduceRequest

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
