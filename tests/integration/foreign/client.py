"""One way to tell each client what to do: `Client.ask(operation, ...)`, whatever language it is written in."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from tools.foreign import Program

PATIENCE_S = 30.0
SHOWN_BYTES = 4096
"""A value that is longer is shown as its size and its SHA-256."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is given to a producer, or as a consumer gave it. A long value that was read is a `Digest`."""

    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | Digest | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def shown(self) -> Record:
        """As it will be read."""
        value = self.value
        if isinstance(value, bytes) and len(value) > SHOWN_BYTES:
            value = Digest(len(value), hashlib.sha256(value).hexdigest())
        return Record(self.partition, self.timestamp, self.key, value, self.headers)


@dataclass(frozen=True, slots=True)
class Digest:
    """A long value."""

    size: int
    sha256: str


Place = tuple[str, int, int]
"""Topic, partition and offset."""


class ForeignError(Exception):
    """A client could not do what it was told.

    Args:
        code: Kafka's error code; None when the error is the client's own.
        message: what the client says.
    """

    def __init__(self, code: int | None, message: str) -> None:
        super().__init__(f"{message} (code {code})")
        self.code = code


class Client(Protocol):
    """What each client can do."""

    def produce(self, servers: str, topic: str, records: Sequence[Record], **how: Any) -> list[int]:
        """Write records to their partitions; the offset of each."""

    def consume(self, servers: str, topics: Sequence[str], count: int, **how: Any) -> dict[Place, Record]:
        """Read so many records of topics, from their beginning."""

    def transact(self, servers: str, topic: str, records: Sequence[Record], transactional_id: str, *,
                 commit: bool) -> None:
        """Write records in a transaction, and end it."""

    def ask(self, op: str, **arguments: Any) -> Any:
        """Carry out another operation.

        Raises:
            ForeignError: it was refused, or failed.
        """

    def close(self) -> None:
        """End the client."""


class ProcessClient:
    """A client in a process of its own, told by JSON lines. Bytes are base64 there.

    Args:
        program: how to run it.
    """

    def __init__(self, program: Program) -> None:
        self._process = subprocess.Popen(program.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, env={**os.environ, **program.environment})

    def ask(self, op: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ForeignError(None, f"the process ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise ForeignError(**answer["error"])
        return answer["ok"]

    def produce(self, servers: str, topic: str, records: Sequence[Record], **how: Any) -> list[int]:
        offsets: list[int] = self.ask("produce", servers=servers, topic=topic, records=list(map(_to_json, records)),
                                      **{"codec": "none", "acks": "all", "idempotent": False, **how})
        return offsets

    def consume(self, servers: str, topics: Sequence[str], count: int, **how: Any) -> dict[Place, Record]:
        read = self.ask("consume", servers=servers, topics=list(topics), count=count, **how)
        return {(each["topic"], each["partition"], each["offset"]): _from_json(each) for each in read}

    def transact(self, servers: str, topic: str, records: Sequence[Record], transactional_id: str, *,
                 commit: bool) -> None:
        self.ask("transact", servers=servers, topic=topic, records=list(map(_to_json, records)),
                 transactional_id=transactional_id, commit=commit)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()


def _to_json(record: Record) -> dict[str, Any]:
    value = record.value
    assert not isinstance(value, Digest)
    headers = [{"name": name, "value": _text(each)} for name, each in record.headers]
    return {**asdict(record), "key": _text(record.key), "value": _text(value), "headers": headers}


def _from_json(read: dict[str, Any]) -> Record:
    digest = read.get("digest")
    return Record(read["partition"], read["timestamp"], _bytes(read["key"]),
                  Digest(**digest) if digest else _bytes(read["value"]),
                  tuple((each["name"], _bytes(each["value"])) for each in read["headers"]))


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
