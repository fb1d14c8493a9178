"""`DeserializingConsumer` under the name of confluent_kafka's module; it is in `headrace` as well."""

from __future__ import annotations

from headrace.client.consumer.deserializing_consumers import DeserializingConsumer

__all__ = ["DeserializingConsumer"]
