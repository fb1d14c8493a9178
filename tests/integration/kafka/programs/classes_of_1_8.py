"""The serializing clients and the legacy Avro ones, as programs for 1.8 have them."""

import sys

from confluent_kafka import DeserializingConsumer, SerializingProducer
from confluent_kafka.avro import AvroConsumer, AvroProducer, loads
from confluent_kafka.error import KeyDeserializationError, ValueDeserializationError, ValueSerializationError
from confluent_kafka.serialization import IntegerDeserializer, IntegerSerializer, StringDeserializer, StringSerializer

servers, url, topic = sys.argv[1:]
producer = SerializingProducer({"bootstrap.servers": servers, "key.serializer": IntegerSerializer(),
                                "value.serializer": StringSerializer("utf_8")})
for number in range(6):
    producer.produce(topic, key=number, value=f"é {number}", partition=0)
try:
    producer.produce(topic, key=1, value=5)
except ValueSerializationError as error:
    print("refused", error.name)
producer.flush(30)
config = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
consumer = DeserializingConsumer({**config, "key.deserializer": IntegerDeserializer(),
                                  "value.deserializer": StringDeserializer("utf_8")})
consumer.subscribe([topic])
found = []
while len(found) < 6:
    message = consumer.poll(1.0)
    if message is not None:
        found.append((message.key(), message.value()))
print(found)
consumer.close()
consumer = DeserializingConsumer({**config, "group.id": f"{topic}-2", "key.deserializer": IntegerDeserializer(),
                                  "value.deserializer": IntegerDeserializer()})
consumer.subscribe([topic])
try:
    while consumer.poll(1.0) is None:
        pass
except (KeyDeserializationError, ValueDeserializationError) as error:
    print(type(error).__name__, error.name, error.kafka_message.offset())
consumer.close()

schema = loads('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}')
avro = AvroProducer({"bootstrap.servers": servers, "schema.registry.url": url}, default_value_schema=schema)
for number in range(3):
    avro.produce(topic=f"{topic}-avro", value={"a": number}, partition=0)
avro.flush(30)
reader = AvroConsumer({**config, "group.id": f"{topic}-3", "schema.registry.url": url})
reader.subscribe([f"{topic}-avro"])
values = []
while len(values) < 3:
    message = reader.poll(1.0)
    if message is not None:
        values.append(message.value())
print(values)
reader.close()
