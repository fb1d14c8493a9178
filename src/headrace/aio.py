"""asyncio clients: `AIOProducer`, `AIOConsumer`, `AIOAdminClient` and others, on the loop that makes them.

Names load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.client.admin.aio_admin_client import AIOAdminClient
    from headrace.client.consumer.aio_consumer import AIOConsumer
    from headrace.client.consumer.deserializing_consumers import AsyncDeserializingConsumer
    from headrace.client.producer.aio_producer import AIOProducer
    from headrace.client.producer.serializing_producers import AsyncSerializingProducer
    from headrace.client.share.aio_share_consumer import AIOShareConsumer

__path__: list[str] = []
"""Modules may be imported from below (`headrace.client.peer_modules`), and none is a file."""
_HOME_OF = {
    "AIOAdminClient": "headrace.client.admin.aio_admin_client",
    "AIOConsumer": "headrace.client.consumer.aio_consumer",
    "AIOProducer": "headrace.client.producer.aio_producer",
    "AIOShareConsumer": "headrace.client.share.aio_share_consumer",
    "AsyncDeserializingConsumer": "headrace.client.consumer.deserializing_consumers",
    "AsyncSerializingProducer": "headrace.client.producer.serializing_producers",
}

__all__ = ["AIOAdminClient", "AIOConsumer", "AIOProducer", "AIOShareConsumer", "AsyncDeserializingConsumer",
           "AsyncSerializingProducer"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'headrace.aio' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value
