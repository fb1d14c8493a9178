"""Generated Avro schemas, read and compared by us and by Java's Avro library."""
