"""Send and read under asyncio."""

import asyncio
import sys

from confluent_kafka import TopicPartition
from confluent_kafka.aio import AIOConsumer, AIOProducer

servers, _, topic = sys.argv[1:]


async def main():
    producer = AIOProducer({"bootstrap.servers": servers})
    sent = [await producer.produce(topic, value=str(number), key=str(number % 3), partition=number % 3)
            for number in range(12)]
    await producer.flush()
    for message in await asyncio.gather(*sent):
        print(message.partition(), message.offset(), message.value(), message.key())
    await producer.close()
    consumer = AIOConsumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest",
                            "enable.auto.commit": False})
    await consumer.subscribe([topic])
    found = []
    while len(found) < 12:
        found += await consumer.consume(num_messages=5, timeout=1.0)
    print(sorted((each.partition(), each.offset(), each.value()) for each in found))
    committed = await consumer.commit(asynchronous=False)
    print(sorted((each.partition, each.offset) for each in committed))
    print(sorted((each.partition, each.offset) for each in await consumer.committed(
        [TopicPartition(topic, number) for number in range(3)], timeout=10)))
    await consumer.close()


asyncio.run(main())
