"""`SerializingProducer` under the name of confluent_kafka's module; it is in `headrace` as well."""

from __future__ import annotations

from headrace.client.producer.serializing_producers import SerializingProducer

__all__ = ["SerializingProducer"]
