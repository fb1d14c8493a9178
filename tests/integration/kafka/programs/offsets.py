"""Offsets of a topic by place and by time."""

import sys

from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

servers, _, topic = sys.argv[1:]
producer = Producer({"bootstrap.servers": servers})
for number in range(30):
    producer.produce(topic, str(number), partition=number % 3, timestamp=1_000_000 + 1_000 * number)
producer.flush(30)
admin = AdminClient({"bootstrap.servers": servers})
for spec in (OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.max_timestamp(),
             OffsetSpec.for_timestamp(1_012_500)):
    asked = {TopicPartition(topic, number): spec for number in range(3)}
    for partition, future in admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED).items():
        found = future.result(30)
        print(partition.partition, found.offset, found.timestamp)
consumer = Consumer({"bootstrap.servers": servers, "group.id": topic})
times = [TopicPartition(topic, number, 1_020_000) for number in range(3)]
print([(each.partition, each.offset) for each in consumer.offsets_for_times(times, 30)])
print(consumer.get_watermark_offsets(TopicPartition(topic, 1), 30))
print(sorted(consumer.list_topics(topic, 30).topics[topic].partitions))
deleted = admin.delete_records([TopicPartition(topic, 0, 4)])
print([(each.partition, future.result(30).low_watermark) for each, future in deleted.items()])
print(consumer.get_watermark_offsets(TopicPartition(topic, 0), 30))
consumer.close()
