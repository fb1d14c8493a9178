"""Calls about transactions and producers.

It must not know the faces. Read next: `machines.admin.open_transaction_requests`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from headrace.arguments import list_of
from headrace.client.admin.admin_area import AdminArea, ByKey, Single, partitions_of, texts_of, value_of
from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import open_transaction_requests as requests
from headrace.machines.cluster.coordinator import TRANSACTION
from headrace.types.cluster_parts import PartitionProducer, TransactionDescription, TransactionListing
from headrace.types.records import TopicPartition
from headrace.wire.schema import Request

__all__ = ["OpenTransactionCalls"]


class OpenTransactionCalls(AdminArea):
    """Transactions."""

    def list_transactions(
        self, *, states: Collection[str] = (), producer_ids: Collection[int] = (), longer_than: float | None = None,
        transactional_id_pattern: str | None = None, request_timeout: float | None = None,
    ) -> Single[list[TransactionListing]]:
        """Find transactional ids. The result has each with its producer and state.

        Raises KafkaException when a broker does not answer.

        Args:
            states: only in these states, for example Ongoing.
            producer_ids: only of these producers.
            longer_than: only with transactions that have been open for so many seconds (KIP-994).
            transactional_id_pattern: only ids that fit a pattern of RE2 (KIP-1152).
            request_timeout: seconds for the whole call.
        """
        limit_s = self.limit(request_timeout)
        request = requests.list_transactions(
            texts_of(list(states), "states", filled=False), list_of(int, list(producer_ids), "producer_ids"),
            -1 if longer_than is None else int(longer_than * 1000), transactional_id_pattern)

        async def list_them() -> list[TransactionListing]:
            found, errors = await self.engine.at_brokers(request, limit_s, requests.read_transactions_listed)
            if errors:
                raise KafkaException(next(iter(errors.values())))
            return [each for part in found.values() for each in part]

        return list_them()

    def describe_transactions(
        self, transactional_ids: list[str], *, request_timeout: float | None = None
    ) -> ByKey[str, TransactionDescription]:
        """Find what transactional ids are doing. Futures by transactional id.

        Each resolves to the state of the transaction, its producer, and the partitions that it has written to.
        """
        ids, limit_s = texts_of(transactional_ids, "transactional_ids"), self.limit(request_timeout)
        return ByKey(dict.fromkeys(ids), lambda: self.engine.at_coordinators(
            ids, limit_s, requests.describe_transactions, requests.read_transactions, kind=TRANSACTION))

    def describe_producers(
        self, partitions: list[TopicPartition], *, request_timeout: float | None = None
    ) -> ByKey[TopicPartition, list[PartitionProducer]]:
        """Find which producers the leaders of partitions know (KIP-664). Futures by partition.

        Each resolves to the producers, and where the transaction of each began.
        """
        given = partitions_of(partitions, "partitions", filled=True)
        limit_s = self.limit(request_timeout)
        return ByKey(dict.fromkeys(given), lambda: self._producers(given, limit_s))

    async def _producers(
        self, partitions: list[TopicPartition], limit_s: float
    ) -> dict[TopicPartition, list[PartitionProducer] | KafkaError]:
        return await self.engine.at_leaders(
            dict.fromkeys(partitions), limit_s, lambda part, _: requests.describe_producers(part),
            requests.read_producers)

    def abort_transaction(
        self, partition: TopicPartition, start_offset: int, *, request_timeout: float | None = None
    ) -> Single[None]:
        """End a transaction that hangs: one that a partition waits for, and whose coordinator has forgotten it.

        Records of a transaction that its coordinator still knows must not be ended so: use `fence_producers`.

        Args:
            partition: where it hangs.
            start_offset: where it began, as `describe_producers` tells.
            request_timeout: seconds for the whole call.

        Raises:
            KafkaException: there is no such transaction, or a right is missing.
        """
        (given,) = partitions_of([partition], "partition")
        limit_s = self.limit(request_timeout)

        async def abort() -> None:
            known = value_of(await self._producers([given], limit_s), given)
            producer = _hanging(known, given, start_offset)

            def ask(part: Mapping[TopicPartition, None], _: float) -> Request:
                return requests.abort(given, producer.producer_id, producer.producer_epoch,
                                      max(producer.coordinator_epoch or 0, 0))

            ended: dict[TopicPartition, KafkaError | None] = await self.engine.at_leaders(
                {given: None}, limit_s, ask, requests.read_aborted)
            value_of(ended, given)

        return abort()

    def fence_producers(
        self, transactional_ids: list[str], *, request_timeout: float | None = None
    ) -> ByKey[str, None]:
        """Abort the transactions of transactional ids, and shut their producers out. Futures by transactional id."""
        ids, limit_s = texts_of(transactional_ids, "transactional_ids"), self.limit(request_timeout)

        async def fence() -> dict[str, KafkaError | None]:
            ended = await asyncio.gather(*(self._fence(name, limit_s) for name in dict.fromkeys(ids)))
            return dict(ended)

        return ByKey(dict.fromkeys(ids), fence)

    async def _fence(self, name: str, limit_s: float) -> tuple[str, KafkaError | None]:
        found: dict[str, KafkaError | None] = await self.engine.at_coordinators(
            [name], limit_s, lambda _: requests.fence(name, limit_s),
            lambda reply, _: {name: requests.read_fenced(reply, name)}, kind=TRANSACTION)
        return name, found[name]


def _hanging(known: list[PartitionProducer], partition: TopicPartition, start_offset: int) -> PartitionProducer:
    for producer in known:
        if producer.transaction_start_offset == start_offset:
            return producer
    raise KafkaException(KafkaError(
        KafkaError.INVALID_TXN_STATE,
        f"{partition.topic}[{partition.partition}]: no transaction is open that began at offset {start_offset}"))
