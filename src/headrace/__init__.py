"""Kafka for Python and PySpark, from `pip install` alone.

The names are confluent_kafka's, so that a program changes by its import alone: `from headrace import Producer,
Consumer`. asyncio twins are in `headrace.aio`, administration in `headrace.admin`. `read_topic()` and
`write_topic()` are for frames of pandas, Polars and pyarrow. Names load on first use, which keeps
`import headrace` cheap.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the cost of importing typing
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

    from headrace.client.consumer.consumer import Consumer
    from headrace.client.consumer.deserializing_consumers import DeserializingConsumer
    from headrace.client.producer.interceptors import ProducerInterceptor
    from headrace.client.producer.kafka_producers import (
        EventsPollingOption,
        KafkaAsyncProducer,
        KafkaSyncProducer,
        SendOption,
    )
    from headrace.client.producer.producer import Producer
    from headrace.client.producer.serializing_producers import SerializingProducer
    from headrace.client.share.deserializing_share_consumer import DeserializingShareConsumer
    from headrace.client.share.polled_messages import Messages
    from headrace.client.share.share_consumer import ShareConsumer
    from headrace.errors import (
        ConcurrentModificationException,
        IllegalStateException,
        KafkaError,
        KafkaException,
    )
    from headrace.frames import read_topic, write_topic
    from headrace.records import Message
    from headrace.records.columns.arrow_batch import ArrowBatch
    from headrace.records.key_hashes import consistent, fnv1a, murmur2
    from headrace.types.admin import IsolationLevel
    from headrace.types.cluster import (
        ConsumerGroupState,
        ConsumerGroupTopicPartitions,
        ConsumerGroupType,
        ElectionType,
        Node,
        TopicCollection,
        TopicPartitionInfo,
    )
    from headrace.types.records import (
        OFFSET_BEGINNING,
        OFFSET_END,
        OFFSET_INVALID,
        OFFSET_STORED,
        TIMESTAMP_CREATE_TIME,
        TIMESTAMP_LOG_APPEND_TIME,
        TIMESTAMP_NOT_AVAILABLE,
        ProducerRecord,
        RecordMetadata,
        ThrottleEvent,
        TopicPartition,
        Uuid,
    )
    from headrace.types.share import AcknowledgeType

__version__ = "0.1.0"
__release__ = __version__
"""What brokers and registries are told; `headrace.as_confluent_kafka` sets the other to what libraries look for."""

_HOMES = {
    "headrace.client.producer.interceptors": ("ProducerInterceptor",),
    "headrace.client.producer.kafka_producers": (
        "EventsPollingOption", "KafkaAsyncProducer", "KafkaSyncProducer", "SendOption",
    ),
    "headrace.client.producer.producer": ("Producer",),
    "headrace.client.producer.serializing_producers": ("SerializingProducer",),
    "headrace.client.consumer.consumer": ("Consumer",),
    "headrace.client.consumer.deserializing_consumers": ("DeserializingConsumer",),
    "headrace.client.share.deserializing_share_consumer": ("DeserializingShareConsumer",),
    "headrace.client.share.polled_messages": ("Messages",),
    "headrace.client.share.share_consumer": ("ShareConsumer",),
    "headrace.errors": (
        "ConcurrentModificationException", "IllegalStateException", "KafkaError", "KafkaException",
    ),
    "headrace.frames": ("read_topic", "write_topic"),
    "headrace.records": ("Message",),
    "headrace.records.columns.arrow_batch": ("ArrowBatch",),
    "headrace.records.key_hashes": ("consistent", "fnv1a", "murmur2"),
    "headrace.types.admin": ("IsolationLevel",),
    "headrace.types.cluster": (
        "ConsumerGroupState", "ConsumerGroupTopicPartitions", "ConsumerGroupType", "ElectionType", "Node",
        "TopicCollection", "TopicPartitionInfo",
    ),
    "headrace.types.records": (
        "OFFSET_BEGINNING", "OFFSET_END", "OFFSET_INVALID", "OFFSET_STORED", "TIMESTAMP_CREATE_TIME",
        "TIMESTAMP_LOG_APPEND_TIME", "TIMESTAMP_NOT_AVAILABLE", "ProducerRecord", "RecordMetadata", "ThrottleEvent",
        "TopicPartition", "Uuid",
    ),
    "headrace.types.share": ("AcknowledgeType",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("deserializing_consumer", "deserializing_share_consumer", "error", "serialization", "serializing_producer")
"""What `import confluent_kafka` brings along as well."""

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "AcknowledgeType",
    "ArrowBatch",
    "ConcurrentModificationException",
    "Consumer",
    "ConsumerGroupState",
    "ConsumerGroupTopicPartitions",
    "ConsumerGroupType",
    "DeserializingConsumer",
    "DeserializingShareConsumer",
    "ElectionType",
    "EventsPollingOption",
    "IllegalStateException",
    "IsolationLevel",
    "KafkaAsyncProducer",
    "KafkaError",
    "KafkaException",
    "KafkaSyncProducer",
    "Message",
    "Messages",
    "Node",
    "Producer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RecordMetadata",
    "SendOption",
    "SerializingProducer",
    "ShareConsumer",
    "ThrottleEvent",
    "TopicCollection",
    "TopicPartition",
    "TopicPartitionInfo",
    "Uuid",
    "consistent",
    "fnv1a",
    "libversion",
    "murmur2",
    "read_topic",
    "version",
    "write_topic",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF and name not in _MODULES:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"headrace.{name}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


class _ModulesOfThePeer:
    """Asked for modules that no other finder has found: `headrace.client.peer_modules` knows some (decision 0049)."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("headrace."):
            return None
        from headrace.client.peer_modules import PeerModules

        return PeerModules.spec_of(name)


sys.meta_path.append(_ModulesOfThePeer)


def __dir__() -> list[str]:
    return sorted(__all__)


def version() -> str:
    """Version of the package, as text."""
    return __version__


def libversion() -> tuple[str, int]:
    """Version of the protocol core, as text and as 0xMMmmrrff. It is the package's own: there is no C library."""
    major, minor, patch = (int(part) for part in __version__.split("."))
    return __version__, (major << 24) | (minor << 16) | (patch << 8) | 0xFF
