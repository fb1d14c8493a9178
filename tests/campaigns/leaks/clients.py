"""Clients that are opened, used and closed: producers, consumers, and members of share groups."""

from __future__ import annotations

import asyncio
import gc
import itertools
import uuid
from collections.abc import Callable
from typing import Any

from headrace import OFFSET_BEGINNING, Consumer, DeserializingConsumer, Producer, ShareConsumer, TopicPartition
from headrace.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from headrace.aio import AIOConsumer, AIOProducer, AsyncDeserializingConsumer
from headrace.records import Message
from tests.campaigns.leaks.brokers import FULL
from tests.campaigns.leaks.rounds import SETTLING_S, Rounds
from tests.support.threaded_broker import TOPIC


class Producers(Rounds):
    """The ways to use a producer."""

    def ways(self) -> tuple[Callable[[], None], ...]:
        self._plain = {"bootstrap.servers": self._brokers["plain"], "linger.ms": 0}
        self._tls = {"bootstrap.servers": self._brokers["secure"], "linger.ms": 0, "security.protocol": "ssl",
                     "ssl.ca.pem": self._brokers["pem"]}
        return (self.plain, self.plain, self.tls, self.transaction, self.asynchronous)

    def plain(self) -> None:
        _deliver(Producer(self._plain))

    def tls(self) -> None:
        _deliver(Producer(self._tls))

    def transaction(self) -> None:
        with Producer({**self._plain, "transactional.id": "one and the same"}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.produce(TOPIC, b"value")
            producer.commit_transaction()

    def asynchronous(self) -> None:
        async def deliver() -> None:
            async with AIOProducer(self._plain) as producer:
                await (await producer.produce(TOPIC, b"value"))

        self._loop.run_until_complete(deliver())


class Consumers(Rounds):
    """The ways to use a consumer. Each is the only member of its group."""

    def ways(self) -> tuple[Callable[[], None], ...]:
        self._numbers = itertools.count()
        return (self.assigned, self.member, self.planned_member, self.deserializing, self.let_go, self.asynchronous,
                self.asynchronous_deserializing, self.asynchronous_let_go)

    def _conf(self, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": self._brokers["plain"], "group.id": f"group {next(self._numbers)}",
                "auto.offset.reset": "earliest", **more}

    def assigned(self) -> None:
        with Consumer(self._conf(**{"group.id": ""})) as reader:
            reader.assign([TopicPartition(FULL, 0, OFFSET_BEGINNING)])
            _read(reader.poll(SETTLING_S))

    def member(self) -> None:
        with Consumer(self._conf()) as reader:
            reader.subscribe([FULL])
            _read(reader.poll(SETTLING_S))
            reader.commit(asynchronous=False)

    def planned_member(self) -> None:
        """A member of a group for which the coordinator plans (KIP-848)."""
        with Consumer(self._conf(**{"group.protocol": "consumer"})) as reader:
            reader.subscribe([FULL])
            _read(reader.poll(SETTLING_S))
            reader.commit(asynchronous=False)

    def deserializing(self) -> None:
        conf = self._conf(**{"value.deserializer": lambda value, _: value.decode()})
        with DeserializingConsumer[None, str](conf) as reader:
            reader.subscribe([FULL])
            _read(reader.poll(SETTLING_S))

    def let_go(self) -> None:
        def read() -> None:
            told: list[object] = []
            reader = Consumer(self._conf(error_cb=lambda error: told.append(reader)))
            reader.subscribe([FULL], on_assign=lambda face, _: told.append(face))
            _read(reader.poll(SETTLING_S))
            assert told == [reader]

        read()
        gc.collect()

    def asynchronous(self) -> None:
        async def read() -> None:
            async with AIOConsumer(self._conf()) as reader:
                await reader.subscribe([FULL])
                _read(await reader.poll(SETTLING_S))

        self._loop.run_until_complete(read())

    def asynchronous_deserializing(self) -> None:
        async def read() -> None:
            conf = self._conf(**{"value.deserializer": lambda value, _: value.decode()})
            async with await AsyncDeserializingConsumer[None, str](conf) as reader:
                await reader.subscribe([FULL])
                _read(await reader.poll(SETTLING_S))

        self._loop.run_until_complete(read())

    def asynchronous_let_go(self) -> None:
        async def read() -> None:
            reader = AIOConsumer(self._conf())
            await reader.subscribe([FULL])
            _read(await reader.poll(SETTLING_S))
            del reader
            await asyncio.sleep(0.001)
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.001)

        self._loop.run_until_complete(read())


class ShareConsumers(Rounds):
    """Members of one share group, one after the other; a real broker from 4.1 on has such groups."""

    def ways(self) -> tuple[Callable[[], None], ...]:
        self._topic = f"shared-{uuid.uuid4().hex[:8]}"
        connection = {"bootstrap.servers": self._brokers["plain"]}
        self._conf = {**connection, "group.id": self._topic}
        begins = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        with AdminClient(connection) as admin:
            admin.create_topics([NewTopic(self._topic, 1)])[self._topic].result(30)
            resource = ConfigResource(ResourceType.GROUP, self._topic, incremental_configs=[begins])
            admin.incremental_alter_configs([resource])[resource].result(30)
        self._source = Producer({**connection, "linger.ms": 0})
        return (self.acknowledging, self.released)

    def acknowledging(self) -> None:
        """Takes a record and acknowledges it with the next call."""
        self._source.produce(self._topic, b"value")
        with ShareConsumer(self._conf) as reader:
            self._take(reader)
            reader.commit_sync(SETTLING_S)

    def released(self) -> None:
        """Leaves with a record that the next member gets."""
        self._source.produce(self._topic, b"value")
        with ShareConsumer(self._conf) as reader:
            self._take(reader)

    def _take(self, reader: ShareConsumer) -> None:
        reader.subscribe([self._topic])
        _read(next(iter(reader.poll(6 * SETTLING_S)), None))

    def close(self) -> None:
        self._source.close()
        super().close()


def _deliver(producer: Producer) -> None:
    errors: list[object] = []
    with producer:
        producer.produce(TOPIC, b"value", on_delivery=lambda error, message: errors.append(error))
    assert errors == [None], errors


def _read(message: Message | None) -> None:
    assert message is not None
    assert message.error() is None
