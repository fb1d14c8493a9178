"""Read in a group from its beginning to the ends, commit, and read on from there with another member."""

import sys

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

servers, _, topic = sys.argv[1:]
config = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False,
          "enable.partition.eof": True}


def write(first, last):
    producer = Producer({"bootstrap.servers": servers})
    for number in range(first, last):
        producer.produce(topic, str(number), partition=number % 3)
    assert producer.flush(30) == 0


def read(consumer):
    found, ends = [], set()
    while len(ends) < 3:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is None:
            found.append((message.partition(), message.offset(), message.value()))
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ends.add(message.partition())
        else:
            raise SystemExit(message.error())
    return found


write(0, 30)
for _ in range(2):
    consumer = Consumer(config)
    consumer.subscribe([topic], on_assign=lambda _, partitions: print("assigned", sorted(
        (each.partition, each.offset) for each in partitions)), on_revoke=lambda _, partitions: print(
            "revoked", sorted(each.partition for each in partitions)))
    print(*sorted(read(consumer)), sep="\n")
    print("position", sorted((each.partition, each.offset) for each in consumer.position(consumer.assignment())))
    committed = consumer.commit(asynchronous=False)
    print("committed", sorted((each.partition, each.offset, each.error) for each in committed))
    print("watermarks", [consumer.get_watermark_offsets(TopicPartition(topic, number), 10) for number in range(3)])
    consumer.close()
    write(30, 36)
