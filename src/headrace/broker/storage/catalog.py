"""The topics of a cluster, where their partitions live, and the file that keeps this over a restart.

All nodes share one catalogue and one log per partition; what differs between nodes is who leads. On disk a topic's
partition `n` is the folder `topics/NAME-n`, and everything else is `cluster.json`, which is replaced as a whole.

Read next: `broker.cluster`, which adds nodes and groups.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from headrace.broker.purgatory import Purgatory
from headrace.broker.storage.accounts import Accounts
from headrace.broker.storage.log import Log
from headrace.broker.storage.partition import ApiError, Partition
from headrace.broker.storage.topic_configs import default_configs, invalid_config
from headrace.errors import KafkaError

__all__ = ["Catalog", "Topic", "check_name"]

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_PRODUCER_ID_BLOCK = 1000
_MAX_PARTITIONS = 10_000


@dataclass(slots=True, eq=False)
class Topic:
    """A topic.

    Attributes:
        overrides: settings that were given.
        configs: all settings, overrides included.
    """

    name: str
    id: UUID
    partitions: list[Partition] = field(default_factory=list)
    overrides: dict[str, str] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=default_configs)

    def configure(self, overrides: dict[str, str]) -> None:
        """Replace the settings that were given."""
        self.overrides = overrides
        self.configs = default_configs() | overrides


class Catalog:
    """Topics by name and by id.

    Args:
        node_ids: the cluster's nodes, for placing partitions.
        purgatory: where fetches wait for partitions.
        new_uuid: makes the ids of the cluster and of topics.
        directory: where everything is kept; None keeps it in memory.
    """

    def __init__(self, node_ids: list[int], purgatory: Purgatory, new_uuid: Callable[[], UUID],
                 directory: Path | None = None) -> None:
        self._purgatory = purgatory
        self._new_uuid = new_uuid
        self.cluster_id = "headrace-" + new_uuid().hex[:13]
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[UUID, Topic] = {}
        self._names_by_metric: dict[str, list[str]] = {}
        self.group_overrides: dict[str, dict[str, str]] = {}
        self.accounts = Accounts()
        self._node_ids = node_ids
        self._directory = directory
        self._next_producer_id = 0
        self._producer_ids_end = 0
        self._gone: list[Topic] = []
        """Topics that are no more, whose logs go once this is written."""
        self._is_held = self._is_unsaved = False
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            self._load()

    def create(
        self, name: str, partition_count: int, replication_factor: int, overrides: dict[str, str] | None = None,
        assignment: list[list[int]] | None = None, *, validate_only: bool = False, beside: Collection[str] = (),
    ) -> Topic:
        """Make a topic.

        Args:
            name: legal Kafka topic name.
            partition_count: how many partitions.
            replication_factor: nodes per partition, at most the number of nodes.
            overrides: settings that differ from the defaults.
            assignment: node ids of each partition instead of count and factor.
            validate_only: check, and make nothing.
            beside: topics that are no collision; see `collision`.

        Raises:
            ApiError: the name, a number or a setting is not allowed, or the topic exists.
        """
        overrides = overrides or {}
        self._check_new(name, overrides, beside)
        placed = self._placed(partition_count, replication_factor, assignment)
        topic = Topic(name, self._new_uuid())
        topic.configure(dict(overrides))
        if not validate_only:
            self._add(topic)
            topic.partitions = [self._new_partition(name, index, nodes) for index, nodes in enumerate(placed)]
            self.save()
        else:
            topic.partitions = [Partition(index, Log(), nodes, nodes[0], self._purgatory)
                                for index, nodes in enumerate(placed)]
        return topic

    def delete(self, topic: Topic) -> None:
        """Remove a topic and its data; fetches that wait for it learn of it."""
        del self.topics[topic.name], self.by_id[topic.id]
        self._names_by_metric[_as_metric(topic.name)].remove(topic.name)
        self._gone.append(topic)
        self.save()

    def collision(self, name: str, beside: Collection[str] = ()) -> str | None:
        """A topic, if there is one, whose name differs from this one in nothing but `.` and `_`.

        Kafka makes no topic beside such a one: their metrics would have the same name. It looks before it carries a
        request out, so topics that the same request has made do not count: `beside`.
        """
        return next((each for each in self._names_by_metric.get(_as_metric(name), ()) if each not in beside), None)

    def grow(self, topic: Topic, count: int, assignment: list[list[int]] | None = None, *,
             validate_only: bool = False) -> None:
        """Give a topic more partitions.

        Raises:
            ApiError: there would not be more than now, or the assignment does not fit.
        """
        present = len(topic.partitions)
        if count <= present:
            raise ApiError(KafkaError.INVALID_PARTITIONS, f"{count} partition(s) would be no more than the {present} "
                          "that there are")
        if assignment is not None and len(assignment) != count - present:
            raise ApiError(KafkaError.INVALID_REPLICA_ASSIGNMENT, f"{count - present} partition(s) more need as many "
                          f"assignments; {len(assignment)} are given")
        factor = len(topic.partitions[0].replicas)
        placed = self._placed(count - present, factor, assignment, first=present)
        if not validate_only:
            topic.partitions += [self._new_partition(topic.name, present + extra, nodes)
                                 for extra, nodes in enumerate(placed)]
            self.save()

    def reassign(self, partition: Partition, replicas: list[int], *, may_change_factor: bool) -> None:
        """Put a partition's replicas elsewhere. Who leads it, and saving, is the caller's matter.

        Raises:
            ApiError: a node is not known or named twice, or the number of replicas must stay.
        """
        self._assigned([replicas])
        if len(replicas) != len(partition.replicas) and not may_change_factor:
            raise ApiError(KafkaError.INVALID_REPLICATION_FACTOR, f"There are {len(partition.replicas)} replica(s); "
                           f"their number must not change to {len(replicas)}")
        partition.replicas = replicas

    def new_producer_id(self) -> int:
        """A producer id that was never given out, also over restarts."""
        if self._next_producer_id >= self._producer_ids_end:
            self._producer_ids_end = self._next_producer_id + _PRODUCER_ID_BLOCK
            self.save()
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def save(self) -> None:
        """Write `cluster.json` through to the operating system, whole or not at all; then deleted logs go."""
        if self._is_held:
            self._is_unsaved = True
            return
        if self._directory is not None:
            self._write(self._directory / "cluster.json")
        gone, self._gone = self._gone, []
        for topic in gone:
            for partition in topic.partitions:
                partition.log.delete()
                partition.wake()

    @contextmanager
    def saved_once(self) -> Iterator[None]:
        """Save once, at the end of what is inside: the file names all topics, so one write for each grows as n²."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            if self._is_unsaved:
                self._is_unsaved = False
                self.save()

    def _write(self, path: Path) -> None:
        state = {
            "cluster_id": self.cluster_id,
            "next_producer_id": self._producer_ids_end,
            "topics": [_topic_state(topic) for topic in self.topics.values()],
            "groups": self.group_overrides,
            "accounts": self.accounts.state(),
        }
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(state))  # json's encoder in C, for thousands of topics, knows no indent
        os.replace(draft, path)

    def close(self) -> None:
        """Close every log."""
        for topic in self.topics.values():
            for partition in topic.partitions:
                partition.log.close()

    def _load(self) -> None:
        assert self._directory is not None
        path = self._directory / "cluster.json"
        if not path.exists():
            return
        state = json.loads(path.read_text())
        self.cluster_id = state["cluster_id"]
        self._next_producer_id = self._producer_ids_end = state["next_producer_id"]
        self.group_overrides = state.get("groups", {})  # files of earlier versions have none
        if "accounts" in state:
            self.accounts.restore(state["accounts"])
        for entry in state["topics"]:
            topic = Topic(entry["name"], UUID(entry["id"]))
            topic.configure(entry["configs"])
            self._add(topic)
            topic.partitions = [self._restored(topic.name, index, each)
                                for index, each in enumerate(entry["partitions"])]

    def _restored(self, name: str, index: int, state: dict[str, Any]) -> Partition:
        """A partition as it was before the restart; led anew where its nodes are other ones now."""
        replicas = [node for node in state["replicas"] if node in self._node_ids] or self._place(index, 1)
        partition = self._partition(name, index, replicas)
        partition.leader_epoch = state["leader_epoch"]
        partition.recover(state["start_offset"])
        partition.leader_id = state["leader_id"]
        partition.lead(state["leader_id"] if state["leader_id"] in replicas else replicas[0])
        return partition

    def _add(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self.by_id[topic.id] = topic
        self._names_by_metric.setdefault(_as_metric(topic.name), []).append(topic.name)

    def _new_partition(self, name: str, index: int, replicas: list[int]) -> Partition:
        if (folder := self._folder(name, index)) is not None:
            shutil.rmtree(folder, ignore_errors=True)  # left by a deletion that was cut short
        return self._partition(name, index, replicas)

    def _partition(self, name: str, index: int, replicas: list[int]) -> Partition:
        return Partition(index, Log(self._folder(name, index)), replicas, replicas[0], self._purgatory)

    def _folder(self, name: str, index: int) -> Path | None:
        return None if self._directory is None else self._directory / "topics" / f"{name}-{index}"

    @property
    def place(self) -> str:
        """Where the data lies, for those who ask."""
        return "memory" if self._directory is None else str(self._directory)

    def volume_bytes(self) -> tuple[int, int]:
        """Size and free bytes of the volume with the data; -1 for memory."""
        if self._directory is None:
            return -1, -1
        usage = shutil.disk_usage(self._directory)
        return usage.total, usage.free

    def _check_new(self, name: str, overrides: dict[str, str], beside: Collection[str]) -> None:
        check_name(name)
        if name in self.topics:
            raise ApiError(KafkaError.TOPIC_ALREADY_EXISTS, f"There is a topic '{name}' already")
        if (other := self.collision(name, beside)) is not None:
            raise ApiError(KafkaError.TOPIC_EXCEPTION, f"Topic name '{name}' differs from that of topic '{other}' in "
                           "nothing but '.' and '_'")
        if wrong := invalid_config(overrides):
            raise ApiError(KafkaError.INVALID_CONFIG, wrong)

    def _placed(self, count: int, factor: int, assignment: list[list[int]] | None, first: int = 0) -> list[list[int]]:
        if assignment is not None:
            return self._assigned(assignment)
        if not 1 <= count <= _MAX_PARTITIONS:
            code = KafkaError.POLICY_VIOLATION if count > 1 else KafkaError.INVALID_PARTITIONS
            raise ApiError(code, f"Number of partitions was {count}; 1 to {_MAX_PARTITIONS} "
                          "are possible")
        if not 1 <= factor <= len(self._node_ids):
            raise ApiError(KafkaError.INVALID_REPLICATION_FACTOR, f"Replication factor {factor} is not possible with "
                          f"{len(self._node_ids)} node(s)")
        return [self._place(index, factor) for index in range(first, first + count)]

    def _assigned(self, assignment: list[list[int]]) -> list[list[int]]:
        known, sizes = set(self._node_ids), {len(nodes) for nodes in assignment}
        if not assignment or any(not nodes or not set(nodes) <= known or len(set(nodes)) < len(nodes)
                                 for nodes in assignment):
            raise ApiError(KafkaError.INVALID_REPLICA_ASSIGNMENT, "The assignment names no, unknown or repeated nodes")
        if len(sizes) > 1:
            raise ApiError(KafkaError.INVALID_REPLICA_ASSIGNMENT, f"Partitions would have {sorted(sizes)} replicas; "
                           "all must have the same number")
        return assignment

    def _place(self, index: int, factor: int) -> list[int]:
        nodes = self._node_ids
        return [nodes[(index + step) % len(nodes)] for step in range(factor)]


def check_name(name: str) -> None:
    """Refuse what cannot be a topic's name."""
    if not _LEGAL_NAME.fullmatch(name) or name in (".", ".."):
        raise ApiError(KafkaError.TOPIC_EXCEPTION, f"Topic name {name[:260]!r} is illegal: 1 to 249 letters, digits, "
                      "'.', '_' and '-' are allowed, and not '.' or '..'")


def _as_metric(name: str) -> str:
    return name.replace(".", "_")


def _topic_state(topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name, "id": str(topic.id), "configs": topic.overrides,
        "partitions": [
            {"replicas": p.replicas, "leader_id": p.leader_id, "leader_epoch": p.leader_epoch,
             "start_offset": p.log.start_offset} for p in topic.partitions
        ],
    }
