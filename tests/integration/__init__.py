"""Real Apache Kafka, real Spark, other clients."""
