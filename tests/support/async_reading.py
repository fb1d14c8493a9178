"""What tests of asyncio clients read."""

from __future__ import annotations

from headrace.aio import AIOConsumer

__all__ = ["read_values"]


async def read_values(consumer: AIOConsumer, count: int, patience_s: float = 30.0) -> list[bytes | None]:
    """The values of so many messages.

    Args:
        patience_s: longest wait for the next of them, in seconds.
    """
    values: list[bytes | None] = []
    while len(values) < count:
        messages = await consumer.consume(count - len(values), patience_s)
        assert messages, f"{len(values)} of {count} have come"
        values += [message.value() for message in messages]
    return values
