"""Send records with keys, headers and times, and tell what became of each."""

import sys

from confluent_kafka import KafkaError, KafkaException, Producer

servers, _, topic = sys.argv[1:]
told = []


def delivered(error, message):
    if error is not None:
        told.append(f"{message.topic()} failed: {error.name()}")
    else:
        told.append(f"{message.partition()}@{message.offset()} {message.key()} {message.value()} {message.timestamp()}")


producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "partitioner": "consistent"})
for number in range(20):
    producer.produce(topic, key=f"key {number % 7}", value=str(number), headers={"n": str(number)},
                     timestamp=1_000 + number, on_delivery=delivered)
    producer.poll(0)
producer.produce(topic, b"to a partition", partition=2, callback=delivered, timestamp=5_000)
print("left", producer.flush(30))
try:
    producer.produce(topic, b"x" * 2_000_000)
except KafkaException as error:
    print("refused", error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE)
try:
    producer.produce(topic, 5)
except TypeError:
    print("refused: no bytes")
print(*sorted(told), sep="\n")
