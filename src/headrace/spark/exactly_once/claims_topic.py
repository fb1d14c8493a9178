"""Claims that are records of a topic: of the attempts that claim the same work, the first one in the log has it.

A task appends its claim and reads all claims from where the transaction began up to its own. The log has one order for
everybody, so exactly one attempt finds itself first, whatever was late or was sent twice (decision 0037). This module
does not import pyspark. Read next: `headrace.spark.exactly_once.task_transaction`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headrace.client.consumer.kept_readers import KeptReaders
from headrace.client.consumer.range_reader import OffsetRange
from headrace.client.producer.kept_producers import KeptProducers
from headrace.errors import KafkaError, KafkaException

if TYPE_CHECKING:
    from headrace.records.message import Message

__all__ = ["ClaimsTopic", "check_first", "open_claims"]

_NOT_FOR_CLAIMS: Final = frozenset((
    "interceptor.classes", "partitioner", "delivery.report.only.error", "dr_cb", "transactional.id"))
_PRODUCER: Final = {"acks": "all", "enable.idempotence": "true", "linger.ms": "0", "allow.auto.create.topics": "false"}
"""A topic that brokers make of themselves has neither one partition nor the retention of claims."""
_RETENTION_MS: Final = "86400000"
"""Brokers end a transaction after a quarter of an hour, and nobody asks for its claims after that."""
_PATIENCE_S: Final = 120.0
_BEGIN: Final = b"begin"
_PRODUCERS: Final = KeptProducers()
_READERS: Final = KeptReaders()


@dataclass(frozen=True, slots=True)
class ClaimsTopic:
    """Where the claims of one transaction are. Plain values: it travels to tasks.

    Attributes:
        topic: that holds claims of any number of transactions, in partition 0.
        start: offset from which on those of this one are.
    """

    topic: str
    start: int

    def take(self, client: Mapping[str, str], work: str) -> None:
        """Claim work; it is the caller's alone when this returns.

        Args:
            client: a producer's properties.
            work: names the work among all of all transactions.

        Raises:
            KafkaException: another attempt was first, or the brokers refuse or did not answer in time.
        """
        own = uuid.uuid4().bytes
        offset = _append(client, self.topic, work.encode(), own)
        check_first(self._claims(client, offset + 1), work, own)

    def _claims(self, client: Mapping[str, str], stop: int) -> Iterator[tuple[bytes, bytes]]:
        from headrace.spark.range_columns import rows_of

        reader = _READERS.take(_shared(client))
        try:
            for fetched in reader.read([OffsetRange(self.topic, 0, self.start, stop)], _PATIENCE_S):
                for rows in rows_of(fetched, stop, ["key", "value"]):
                    keys, values = rows.column("key").to_pylist(), rows.column("value").to_pylist()
                    yield from zip(keys, values, strict=True)
        finally:
            _READERS.give_back(reader)


def check_first(claims: Iterable[tuple[bytes, bytes]], work: str, own: bytes) -> None:
    """Refuse work that another attempt has claimed before.

    Args:
        claims: keys and values of the topic's records in their order, up to this attempt's.
        work: as `ClaimsTopic.take` is told.
        own: value of this attempt's claim.

    Raises:
        KafkaException: another one was first.
    """
    wanted = work.encode()
    found = [value for key, value in claims if key == wanted]  # to the end: else their reader would not be kept
    if found[0] != own:
        raise KafkaException(KafkaError(
            KafkaError._STATE, f"{work}: another attempt has claimed it and may have written some of its rows. The "
            "micro-batch is written again as a whole when the query restarts"))


def open_claims(client: Mapping[str, str], topic: str) -> ClaimsTopic:
    """Begin to take claims, after the transaction was begun; the topic is created where there is none.

    Args:
        client: a producer's properties.
        topic: where claims are.

    Raises:
        KafkaException: the brokers refuse, or did not answer in time.
    """
    return ClaimsTopic(topic, _append(client, topic, _BEGIN, b"", may_create=True) + 1)


def _append(client: Mapping[str, str], topic: str, key: bytes, value: bytes, *, may_create: bool = False) -> int:
    """The offset of a record that all replicas in sync have."""
    told: list[tuple[KafkaError | None, int]] = []

    def tell(error: KafkaError | None, message: Message) -> None:
        told.append((error, message.offset() or 0))

    producer = _PRODUCERS.take({**_shared(client), **_PRODUCER})
    try:
        if may_create and producer.list_topics(topic, timeout=_PATIENCE_S).topics[topic].error is not None:
            _create(client, topic)
        producer.produce(topic, value, key, partition=0, on_delivery=tell)
        producer.flush()
    finally:
        _PRODUCERS.give_back(producer)
    ((error, offset),) = told
    if error is not None:
        raise KafkaException(error)
    return offset


def _create(client: Mapping[str, str], topic: str) -> None:
    from headrace.admin import AdminClient, NewTopic

    with AdminClient(_shared(client)) as admin:
        made = admin.create_topics([NewTopic(topic, num_partitions=1, config={"retention.ms": _RETENTION_MS})])
        try:
            made[topic].result(_PATIENCE_S)
        except KafkaException as failed:
            if failed.error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise KafkaException(KafkaError(
                    failed.error.code(), f"the topic for claims does not exist and cannot be created; create {topic} "
                    f"with one partition, or name another by exactlyOnce.claimsTopic: {failed.error.str()}")) from None


def _shared(client: Mapping[str, str]) -> dict[str, Any]:
    return {name: value for name, value in client.items() if name not in _NOT_FOR_CLAIMS}
