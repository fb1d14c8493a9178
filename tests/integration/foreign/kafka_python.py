"""kafka-python, held to the requests of a release of Kafka by its `api_version`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import closing

from .client import PATIENCE_S, ForeignError, Place, Record

with warnings.catch_warnings(action="ignore"):  # what it does while it is imported is not ours to judge
    import kafka


class KafkaPythonClient:
    """kafka-python at a broker that it takes for an old one.

    Args:
        release: the release.
    """

    def __init__(self, release: tuple[int, ...]) -> None:
        self._release = release

    def produce(self, servers: str, topic: str, records: Sequence[Record], *, codec: str = "none",
                idempotent: bool = False) -> list[int]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=servers, api_version=self._release, acks="all", linger_ms=20,
            compression_type=None if codec == "none" else codec, enable_idempotence=idempotent)
        try:
            sent = [producer.send(topic, record.value, record.key, list(record.headers) or None, record.partition,
                                  record.timestamp) for record in records]
            return [future.get(PATIENCE_S).offset for future in sent]
        finally:
            producer.close(PATIENCE_S)

    def consume(self, servers: str, topics: Sequence[str], count: int, *,
                group: str | None = None) -> dict[Place, Record]:
        with closing(kafka.KafkaConsumer(
                bootstrap_servers=servers, api_version=self._release, group_id=group, auto_offset_reset="earliest",
                enable_auto_commit=False, fetch_max_wait_ms=200)) as consumer:
            if group is None:
                consumer.assign([kafka.TopicPartition(topic, partition) for topic in topics
                                 for partition in consumer.partitions_for_topic(topic)])
            else:
                consumer.subscribe(list(topics))
            found: dict[Place, Record] = {}
            deadline = time.monotonic() + PATIENCE_S
            while len(found) < count:
                if time.monotonic() > deadline:
                    raise ForeignError(None, f"{len(found)} records of {count}")
                # A shorter one may end while the client joins; its assignment is lost then.
                for records in consumer.poll(5000).values():
                    for each in records:
                        found[each.topic, each.partition, each.offset] = Record(
                            each.partition, each.timestamp, each.key, each.value, tuple(each.headers)).shown()
            if group is not None:
                consumer.commit()
            return found
