"""The clients that Python has under confluent_kafka's names: librdkafka through confluent_kafka, and headrace."""

from __future__ import annotations

import base64
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from .client import PATIENCE_S, ForeignError, Place, Record
from .members import GroupMember, Member, ShareMember


class PythonClient:
    """A client of one of the two modules.

    Args:
        kafka: `confluent_kafka` or `headrace`.
        admin: its module `admin`.
        properties: what all its clients are configured with.
    """

    def __init__(self, kafka: ModuleType, admin: ModuleType, properties: Mapping[str, Any]) -> None:
        self._kafka = kafka
        self._admin = admin
        self._properties = dict(properties)
        self._members: dict[str, Member] = {}
        self._admins: dict[str, Any] = {}
        self._producers: dict[tuple[Any, ...], Any] = {}

    def produce(self, servers: str, topic: str, records: Sequence[Record], *, codec: str = "none", acks: str = "all",
                idempotent: bool = False) -> list[int]:
        producer = self._producer(servers, codec, acks, idempotent)
        reports: dict[int, Any] = {}

        def report(index: int) -> Callable[[Any, Any], None]:
            return lambda error, message: reports.update({index: error or message.offset()})

        for index, record in enumerate(records):
            producer.produce(topic, record.value, record.key, record.partition, on_delivery=report(index),
                             timestamp=record.timestamp, headers=list(record.headers) or None)
        if left := producer.flush(PATIENCE_S):
            raise ForeignError(None, f"{left} records were not delivered")
        for outcome in reports.values():
            if not isinstance(outcome, int | None):
                raise ForeignError(outcome.code(), outcome.str())
        return [reports[index] for index in range(len(records))]

    def _producer(self, *how: Any) -> Any:
        """The one producer for a cluster and a way to produce; librdkafka needs half a second to become idempotent."""
        if how not in self._producers:
            servers, codec, acks, idempotent = how
            self._producers[how] = self._kafka.Producer({
                **self._properties, "bootstrap.servers": servers, "compression.type": codec, "acks": acks,
                "enable.idempotence": idempotent, "linger.ms": 20, "message.max.bytes": 2 << 20,
                "message.timeout.ms": int(PATIENCE_S * 500)})
        return self._producers[how]

    def consume(self, servers: str, topics: Sequence[str], count: int, *,
                group: str | None = None) -> dict[Place, Record]:
        consumer = self._kafka.Consumer({
            **self._properties, "bootstrap.servers": servers, "group.id": group or "none", "check.crcs": True,
            "auto.offset.reset": "earliest", "enable.auto.commit": False, "fetch.wait.max.ms": 200})
        with closing(consumer):
            if group is None:
                known = consumer.list_topics(timeout=PATIENCE_S).topics
                consumer.assign([self._kafka.TopicPartition(topic, partition, self._kafka.OFFSET_BEGINNING)
                                 for topic in topics for partition in known[topic].partitions])
            else:
                consumer.subscribe(list(topics))
            found = _read(consumer, count)
            if group is not None:
                consumer.commit(asynchronous=False)
        return found

    def transact(self, servers: str, topic: str, records: Sequence[Record], transactional_id: str, *,
                 commit: bool) -> None:
        with self._transactional(servers, transactional_id) as producer:
            producer.begin_transaction()
            for record in records:
                producer.produce(topic, record.value, record.key, record.partition, timestamp=record.timestamp)
            self._end(producer, commit)

    @contextmanager
    def _transactional(self, servers: str, transactional_id: str) -> Iterator[Any]:
        producer = self._kafka.Producer({
            **self._properties, "bootstrap.servers": servers, "transactional.id": transactional_id, "linger.ms": 0})
        try:
            producer.init_transactions(PATIENCE_S)
            yield producer
        finally:
            if hasattr(producer, "close"):
                producer.close()

    def _end(self, producer: Any, commit: bool) -> None:
        if not commit:
            producer.flush(PATIENCE_S)  # so that there is something to leave out
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)

    def _copy(self, servers: str, source: str, topic: str, group: str, transactional_id: str, count: int,
              commit: bool) -> None:
        consumer = self._kafka.Consumer({
            **self._properties, "bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "fetch.wait.max.ms": 200})
        with closing(consumer), self._transactional(servers, transactional_id) as producer:
            consumer.subscribe([source])
            records = _read(consumer, count)
            producer.begin_transaction()
            for (_, partition, _), record in records.items():
                producer.produce(topic, record.value, record.key, partition)
            producer.send_offsets_to_transaction(consumer.position(consumer.assignment()),
                                                 consumer.consumer_group_metadata(), PATIENCE_S)
            self._end(producer, commit)

    def ask(self, op: str, **arguments: Any) -> Any:
        try:
            return getattr(self, f"_{op}")(**arguments)
        except self._kafka.KafkaException as error:
            reason = error.args[0]
            raise ForeignError(reason.code() if reason.code() > 0 else None, reason.str()) from error

    def close(self) -> None:
        for member in self._members.values():
            member.leave()
        for client in (*self._admins.values(), *self._producers.values()):
            if hasattr(client, "close"):
                client.close()

    # Groups

    def _join(self, servers: str, group: str, topics: Sequence[str], member: str, *, protocol: str = "classic",
              **how: Any) -> None:
        properties = {**self._properties, "bootstrap.servers": servers, "group.id": group, "client.id": member}
        if protocol == "share":
            self._members[member] = ShareMember(self._kafka, properties, topics, explicit=how.get("explicit", False),
                                                releases=how.get("releases", False))
        else:
            more = _classic(**how) if protocol == "classic" else _planned(**how)
            pattern = how.get("pattern")
            self._members[member] = GroupMember(self._kafka, {**properties, **more},
                                                [f"^{pattern}"] if pattern else topics)

    def _assignment(self, member: str) -> list[list[Any]]:
        return self._members[member].assignment()

    def _received(self, member: str) -> list[bytes]:
        return self._members[member].received()

    def _errors(self, member: str) -> list[int]:
        return self._members[member].errors()

    def _leave(self, member: str) -> list[bytes]:
        return self._members.pop(member).leave()

    # Administration

    def _client(self, servers: str) -> Any:
        """The one client for a cluster; it stays open, as a program's would."""
        if servers not in self._admins:
            self._admins[servers] = self._admin.AdminClient({**self._properties, "bootstrap.servers": servers})
        return self._admins[servers]

    def _create_topic(self, servers: str, topic: str, partitions: int, replicas: int = 1,
                      configs: Mapping[str, str] | None = None) -> None:
        new = self._admin.NewTopic(topic, partitions, replicas, config=dict(configs or {}))
        self._client(servers).create_topics([new])[topic].result(PATIENCE_S)

    def _list_topics(self, servers: str) -> list[str]:
        return sorted(self._client(servers).list_topics(timeout=PATIENCE_S).topics)

    def _describe_topic(self, servers: str, topic: str) -> dict[str, Any]:
        found = self._client(servers).list_topics(topic, PATIENCE_S).topics[topic]
        if found.error is not None:
            raise ForeignError(found.error.code(), found.error.str())
        return {"partitions": [
            {"partition": number, "leader": each.leader, "replicas": sorted(each.replicas), "isr": sorted(each.isrs)}
            for number, each in sorted(found.partitions.items())]}

    def _delete_topic(self, servers: str, topic: str) -> None:
        self._client(servers).delete_topics([topic])[topic].result(PATIENCE_S)

    def _create_partitions(self, servers: str, topic: str, partitions: int) -> None:
        self._client(servers).create_partitions([self._admin.NewPartitions(topic, partitions)])[topic].result(
            PATIENCE_S)

    def _resource(self, topic: str, **more: Any) -> Any:
        return self._admin.ConfigResource(self._admin.ConfigResource.Type.TOPIC, topic, **more)

    def _describe_configs(self, servers: str, topic: str) -> dict[str, Any]:
        (future,) = self._client(servers).describe_configs([self._resource(topic)]).values()
        return {name: {"value": each.value, "source": getattr(each.source, "value", each.source),
                       "sensitive": each.is_sensitive} for name, each in future.result(PATIENCE_S).items()}

    def _alter_configs(self, servers: str, topic: str, **changes: Any) -> None:
        kinds = self._admin.AlterConfigOpType
        entries = [self._admin.ConfigEntry(name, value, incremental_operation=kinds[kind.upper()])
                   for kind in ("set", "append", "subtract") for name, value in changes.get(kind, {}).items()]
        entries += [self._admin.ConfigEntry(name, None, incremental_operation=kinds.DELETE)
                    for name in changes.get("delete", ())]
        resource = self._resource(topic, incremental_configs=entries)
        (future,) = self._client(servers).incremental_alter_configs([resource]).values()
        future.result(PATIENCE_S)

    def _replace_configs(self, servers: str, topic: str, configs: Mapping[str, str]) -> None:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            (future,) = self._client(servers).alter_configs([self._resource(topic, set_config=dict(configs))]).values()
        future.result(PATIENCE_S)

    def _delete_records(self, servers: str, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        wanted = [self._kafka.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        return {where.partition: future.result(PATIENCE_S).low_watermark
                for where, future in self._client(servers).delete_records(wanted).items()}

    def _list_offsets(self, servers: str, topic: str, at: str) -> dict[int, int]:
        specs = self._admin.OffsetSpec
        spec = getattr(specs, at)() if not at.isdigit() else specs.for_timestamp(int(at))
        partitions = self._client(servers).list_topics(topic, PATIENCE_S).topics[topic].partitions
        wanted = {self._kafka.TopicPartition(topic, number): spec for number in partitions}
        return {where.partition: future.result(PATIENCE_S).offset
                for where, future in self._client(servers).list_offsets(wanted).items()}

    def _describe_cluster(self, servers: str) -> dict[str, Any]:
        found = self._client(servers).describe_cluster().result(PATIENCE_S)
        return {"brokers": sorted(node.id for node in found.nodes), "controller": found.controller.id,
                "has_id": bool(found.cluster_id)}

    def _list_groups(self, servers: str) -> list[str]:
        return sorted(each.group_id for each in self._client(servers).list_consumer_groups().result(PATIENCE_S).valid)

    def _describe_group(self, servers: str, group: str) -> dict[str, Any]:
        found = self._client(servers).describe_consumer_groups([group])[group].result(PATIENCE_S)
        return {"state": found.state.name, "protocol": found.partition_assignor, "members": [
            {"client_id": each.client_id,
             "assignment": sorted(f"{part.topic}-{part.partition}" for part in each.assignment.topic_partitions)}
            for each in found.members]}

    def _delete_group(self, servers: str, group: str) -> None:
        self._client(servers).delete_consumer_groups([group])[group].result(PATIENCE_S)

    def _fetch_offsets(self, servers: str, group: str, topic: str) -> dict[int, int]:
        wanted = [self._kafka.ConsumerGroupTopicPartitions(group)]
        found = self._client(servers).list_consumer_group_offsets(wanted)[group].result(PATIENCE_S)
        return {each.partition: each.offset for each in found.topic_partitions
                if each.topic == topic and each.offset >= 0}

    def _alter_offsets(self, servers: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        wanted = [self._kafka.ConsumerGroupTopicPartitions(
            group, [self._kafka.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])]
        done = self._client(servers).alter_consumer_group_offsets(wanted)[group].result(PATIENCE_S)
        for each in done.topic_partitions:
            if each.error is not None:
                raise ForeignError(each.error.code(), each.error.str())

    def _delete_offsets(self, servers: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        partitions = [self._kafka.TopicPartition(topic, partition) for partition in offsets]
        for future in self._client(servers).delete_consumer_group_offsets(group, partitions).values():
            future.result(PATIENCE_S)


def _classic(assignor: str, session_ms: int = 10_000, **how: Any) -> dict[str, Any]:
    """Properties of a member of a classic group."""
    return {"partition.assignment.strategy": assignor, "session.timeout.ms": session_ms, "heartbeat.interval.ms": 200,
            **_static(**how)}


def _planned(assignor: str = "", **how: Any) -> dict[str, Any]:
    """Properties of a member of a group that the coordinator plans for (KIP-848)."""
    chosen = {"group.remote.assignor": assignor} if assignor else {}
    return {"group.protocol": "consumer", **chosen, **_static(**how)}


def _static(instance: str = "", **how: Any) -> dict[str, Any]:
    return {"group.instance.id": instance} if instance else {}


def _read(consumer: Any, count: int) -> dict[Place, Record]:
    found: dict[Place, Record] = {}
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count:
        if time.monotonic() > deadline:
            raise ForeignError(None, f"{len(found)} records of {count}")
        for message in consumer.consume(count - len(found), 0.2):
            if message.error() is not None:
                raise ForeignError(message.error().code(), message.error().str())
            record = Record(message.partition(), message.timestamp()[1], message.key(), message.value(),
                            tuple(message.headers() or ()))
            found[message.topic(), message.partition(), message.offset()] = record.shown()
    return found


def main(name: str) -> None:
    """One of the two in a process of its own, told as the clients of other languages are: about members alone."""
    kafka, admin = import_module(name), import_module(f"{name}.admin")
    client = PythonClient(kafka, admin, {"log_level": 0} if name != "headrace" else {})
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer: dict[str, Any] = {"ok": client.ask(command.pop("op"), **command)}
        except ForeignError as error:
            answer = {"error": {"code": error.code, "message": str(error)}}
        print(json.dumps(answer, default=lambda value: base64.b64encode(value).decode()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
