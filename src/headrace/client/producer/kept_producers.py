"""Producers that stay open between uses: what a kept client is for a producer (decision 0014).

It must not know what the tasks are: Spark's are in `headrace.spark.column_writer`.
Read next: `client.kept_clients`, `client.producer.producer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headrace.client.kept_clients import KeptClients
from headrace.client.producer.producer import Producer, calls_of
from headrace.client.producer.producer_engine import ProducerEngine
from headrace.errors import KafkaException
from headrace.machines.cluster.metadata import TopicInfo
from headrace.net.thread import loop_thread

__all__ = ["KeptProducers"]

_ANSWER_S: Final = 1.0
"""Longest wait for brokers here; a longer one belongs into a new producer, which knows how to wait."""


class KeptProducers(KeptClients[Producer]):
    """The producers that a process keeps."""

    def make(self, properties: Mapping[str, Any]) -> Producer:
        """A new producer."""
        return Producer(properties)

    def is_usable(self, client: Producer) -> bool:
        """Whether it takes records."""
        return calls_of(client).engine.accumulators.is_taking

    def has_finished(self, client: Producer) -> bool:
        """Whether it has delivered all records."""
        return not len(client)

    def confirm(self, client: Producer) -> bool:
        """Ask brokers for its topics; whether they are the same, with no fewer partitions."""
        return loop_thread().call(_confirm(calls_of(client).engine))

    def end(self, client: Producer) -> None:
        """Close it; records that are not delivered are given up."""
        if not calls_of(client).engine.closed:
            client.purge()
        client.close()

    def abandon(self, client: Producer) -> None:
        """Close it without waiting."""
        engine = calls_of(client).engine
        engine.refuse()
        engine.client.abandon()


async def _confirm(engine: ProducerEngine) -> bool:
    client = engine.client
    before = client.metadata.cluster.topics
    client.refresh_metadata()
    try:
        now = await client.wait_for_metadata(lambda cluster: cluster.topics is not before, _ANSWER_S)
    except KafkaException:
        return False
    return all(_is_same(before.get(topic), now.topics.get(topic)) for topic in engine.accumulators.all)


def _is_same(before: TopicInfo | None, now: TopicInfo | None) -> bool:
    if before is None or now is None or now.error is not None:
        return False
    return before.topic_id == now.topic_id and len(before.partitions) <= len(now.partitions)
