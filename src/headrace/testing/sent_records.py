"""What was sent to a topic of an embedded broker, read back whole: for assertions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headrace.types.records import TopicPartition

if TYPE_CHECKING:
    from headrace.records import Message
    from headrace.testing.embedded import EmbeddedBroker

__all__ = ["sent_records"]

_STEP_S = 0.2


def sent_records(
    broker: EmbeddedBroker, topic: str, count: int | None = None, timeout: float = 10.0
) -> list[Message]:
    """The records of a topic from its beginning: by partition and offset.

    Args:
        broker: the topic's broker.
        topic: topic name.
        count: wait until there are so many; None takes what is there now.
        timeout: longest wait, in seconds.

    Raises:
        AssertionError: there are fewer when time is up, or more; the text shows them.
        KafkaException: there is no such topic.
    """
    from headrace.client.consumer.consumer import Consumer
    from headrace.errors import KafkaError, KafkaException

    give_up_at = time.monotonic() + timeout
    properties = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "headrace-sent",
                  "enable.auto.commit": False, "enable.partition.eof": True, "allow.auto.create.topics": False}
    found: list[Message] = []
    with Consumer(properties) as consumer:
        described = consumer.list_topics(topic, timeout).topics[topic]
        if described.error is not None:
            raise KafkaException(described.error)
        consumer.assign([TopicPartition(topic, number, 0) for number in described.partitions])
        unread = set(described.partitions)
        while (unread if count is None else len(found) < count) and time.monotonic() < give_up_at:
            for message in consumer.consume(10_000, _STEP_S if count is not None and not unread else 0.05):
                error = message.error()
                if error is None:
                    found.append(message)
                elif error == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition() or 0)
                else:
                    raise KafkaException(error)
    found.sort(key=lambda message: (message.partition() or 0, message.offset() or 0))
    if count is not None and len(found) != count:
        raise AssertionError(f"{topic} has {len(found)} records after {timeout:g} s, {count} were expected: "
                             f"{found[:20]}")
    return found
