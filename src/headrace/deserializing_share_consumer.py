"""`DeserializingShareConsumer` under the name of confluent_kafka's module; it is in `headrace` as well."""

from __future__ import annotations

from headrace.client.share.deserializing_share_consumer import DeserializingShareConsumer

__all__ = ["DeserializingShareConsumer"]
