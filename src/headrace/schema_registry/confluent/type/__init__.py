"""Types of the .proto files in `confluent/type`."""
