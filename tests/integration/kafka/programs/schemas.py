"""Values with schemas in three formats: registered, written, found again and read."""

import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError, StringSerializer
from google.protobuf.struct_pb2 import Value

servers, url, topic = sys.argv[1:]
registry = SchemaRegistryClient({"url": url})
AVRO = """{"type": "record", "name": "User", "namespace": "n", "fields": [{"name": "name", "type": "string"},
           {"name": "number", "type": ["null", "long"], "default": null}]}"""
NEWER = AVRO.replace('"default": null}]', '"default": null}, {"name": "colour", "type": "string", "default": "blue"}]')
JSON = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "User", "type": "object", "properties": {
           "name": {"type": "string"}, "number": {"type": "integer", "minimum": 0}}, "required": ["name"]}"""
users = [{"name": f"u{number}", "number": number} for number in range(5)]
formats = {
    "avro": (AvroSerializer(registry, AVRO), AvroDeserializer(registry, NEWER), users, {"name": 5}),
    "json": (JSONSerializer(JSON, registry), JSONDeserializer(JSON), users, {"name": "x", "number": -1}),
    "protobuf": (ProtobufSerializer(Value, registry, {"use.deprecated.format": False}),
                 ProtobufDeserializer(Value, {"use.deprecated.format": False}),
                 [Value(string_value=str(number)) for number in range(5)], None),
}
key = StringSerializer()
producer = Producer({"bootstrap.servers": servers})
for name, (serialize, _, values, wrong) in formats.items():
    for value in values:
        context = SerializationContext(f"{topic}-{name}", MessageField.VALUE)
        producer.produce(f"{topic}-{name}", key=key(name), value=serialize(value, context), partition=0)
    if wrong is not None:
        try:
            serialize(wrong, SerializationContext(f"{topic}-{name}", MessageField.VALUE))
        except (SerializationError, TypeError):
            print(name, "refused")
assert producer.flush(30) == 0
consumer = Consumer({"bootstrap.servers": servers, "group.id": topic})
for name, (_, deserialize, values, _) in formats.items():
    consumer.assign([TopicPartition(f"{topic}-{name}", 0, 0)])
    found = []
    while len(found) < len(values):
        found += consumer.consume(5, 1.0)
    for message in found:
        context = SerializationContext(message.topic(), MessageField.VALUE)
        print(name, message.value()[5:], str(deserialize(message.value(), context)).strip())
consumer.close()
print([subject for subject in registry.get_subjects() if subject.startswith(topic)])
latest = registry.get_latest_version(f"{topic}-avro-value")
print(latest.version, latest.schema.schema_type, registry.get_versions(f"{topic}-avro-value"))
print(registry.test_compatibility(f"{topic}-avro-value", Schema(NEWER, "AVRO")),
      registry.test_compatibility(f"{topic}-avro-value", Schema('"string"', "AVRO")))
for wrong in (lambda: registry.get_latest_version("nobody"), lambda: registry.get_schema(99_999),
              lambda: registry.register_schema(f"{topic}-avro-value", Schema('"string"', "AVRO")),
              lambda: registry.register_schema(f"{topic}-other", Schema("{", "AVRO"))):
    try:
        wrong()
    except SchemaRegistryError as error:
        print(error.http_status_code, error.error_code)
print(registry.delete_subject(f"{topic}-json-value"))
