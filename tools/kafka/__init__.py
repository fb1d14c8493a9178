"""Real Apache Kafka as a tool: fetched by version, started, hurt and stopped on loopback ports.

`python -m tools.kafka start --version 4.4.0 --nodes 3` starts one from the shell; `KafkaCluster` does it from Python;
`java_tool` runs Kafka's console and performance programs. Read next: `tools.kafka.cluster`.
"""

from tools.kafka.artifacts import VERSIONS, RegistryError, spark_avro_jars, spark_connector_jars
from tools.kafka.cluster import NEWEST, KafkaCluster
from tools.kafka.java import MissingJavaError, find_java, java_command, java_tool
from tools.kafka.node import KafkaStartError
from tools.kafka.security import USERS

__all__ = [
    "NEWEST",
    "USERS",
    "VERSIONS",
    "KafkaCluster",
    "KafkaStartError",
    "MissingJavaError",
    "RegistryError",
    "find_java",
    "java_command",
    "java_tool",
    "spark_avro_jars",
    "spark_connector_jars",
]
