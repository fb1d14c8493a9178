"""What protoc's code imports for the .proto files that Confluent's registries bring, under confluent_kafka's names."""
