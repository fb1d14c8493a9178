"""Generated Avro schemas and values, through our codec, fastavro, Apache's avro and confluent_kafka's serializers."""
