"""Read, change and write in transactions: all of an input comes out once, and what was aborted does not."""

import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

servers, _, topic = sys.argv[1:]
out = f"{topic}-out"
source = Producer({"bootstrap.servers": servers})
for number in range(40):
    source.produce(topic, str(number), partition=number % 3)
source.flush(30)

consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest",
                     "enable.auto.commit": False, "isolation.level": "read_committed"})
consumer.subscribe([topic])
producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
try:
    producer.begin_transaction()
except KafkaException as error:
    print("too early:", error.args[0].name())
producer.init_transactions(30)
done, aborted = 0, False
while done < 40:
    messages = [each for each in consumer.consume(7, 1.0) if each.error() is None]
    if not messages:
        continue
    producer.begin_transaction()
    for message in messages:
        producer.produce(out, str(int(message.value()) * 2), partition=0)
    if not aborted and done > 10:
        aborted = True
        producer.abort_transaction(30)
        for each in consumer.committed(consumer.assignment(), 10):
            consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))
        continue
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    done += len(messages)
print("aborted", aborted, "committed", sorted((each.partition, each.offset) for each in consumer.committed(
    consumer.assignment(), 10)))
consumer.close()

reader = Consumer({"bootstrap.servers": servers, "group.id": f"{topic}-reader", "isolation.level": "read_committed"})
reader.assign([TopicPartition(out, 0, 0)])
found = []
while len(found) < 40:
    found += [int(each.value()) for each in reader.consume(100, 1.0)]
print(sorted(found) == [2 * number for number in range(40)])
reader.close()
