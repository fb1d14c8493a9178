"""Kafka's own codecs as a child process: Conformance.java on the class path of a Kafka distribution."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from kafka_schemas import snake

from headrace.wire.layout import Type, columns
from headrace.wire.schema import Message

_RENAMED = {"generation_id": "generation_id_or_member_epoch"}
"""Fields whose names Kafka has changed since."""

_SOURCE = Path(__file__).with_name("Conformance.java")


class JavaCodecs:
    """Writes messages again with Java's codecs. A context manager.

    Args:
        java: a `java` of a JDK; it compiles the program.
        class_path: the jars of Kafka's clients and of Jackson.
    """

    def __init__(self, java: str, class_path: str) -> None:
        self._process = subprocess.Popen(
            [java, "-XX:TieredStopAtLevel=1", "-cp", class_path, str(_SOURCE)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
            env={**os.environ, "JAVA_TOOL_OPTIONS": "-Dfile.encoding=UTF-8"},
        )

    def __enter__(self) -> JavaCodecs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def versions(self, key: int, name: str) -> range:
        """Versions of an API that this Kafka's codecs know under this name."""
        java_name, low, high = self._ask(f"API {key}").split(" ")
        return range(int(low), int(high) + 1) if java_name == snake(name).upper() else range(0)

    def echo(self, message: type[Message], version: int, data: bytes) -> tuple[bytes, dict[str, Any]]:
        """What Java writes after reading `data`, and what it has read.

        Raises:
            ValueError: Java can not read the bytes.
        """
        first, _, rest = self._ask(f"{message.__name__} {version} {data.hex()}").partition(" ")
        if first == "ERROR":
            raise ValueError(rest)
        read: dict[str, Any] = json.loads(rest)
        return bytes.fromhex(first), read

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the Java process has ended")
        return answer.rstrip("\n")


def differences(struct: Any, read: dict[str, Any], version: int, path: str = "") -> list[str]:
    """Fields in which a message differs from what Java has read, by name."""
    values = {snake(key): value for key, value in read.items()}
    for old, new in _RENAMED.items():
        if old in values and new in struct.fields:
            values[new] = values.pop(old)
    found: list[str] = []
    for column in columns(type(struct)):
        if not column.versions.holds(version):
            continue
        value, here = getattr(struct, column.name), f"{path}.{column.name}"
        if column.name in values:
            found += _compare(value, values.pop(column.name), column.type, version, here)
        elif column.is_tagged(version):
            default = getattr(type(struct)(), column.name)
            found += [] if value == default else [f"{here}: Java read the default"]
        elif f"{column.name}_size_in_bytes" in values:
            size = values.pop(f"{column.name}_size_in_bytes")
            found += [] if size == len(value or b"") else [f"{here}: {len(value)} bytes, Java read {size}"]
        else:
            found.append(f"{here}: Java has no such field")
    return found + [f"{path}.{name}: only Java has it" for name in values]


def _compare(value: Any, read: Any, type_: Type, version: int, path: str) -> list[str]:
    if value is None or read is None:
        same = value is None and read is None
    elif type_.is_array:
        if len(value) != len(read):
            return [f"{path}: {len(value)} elements, Java read {len(read)}"]
        pairs = enumerate(zip(value, read, strict=True))
        return [text for i, (a, b) in pairs for text in _compare(a, b, type_.item, version, f"{path}[{i}]")]
    elif type_.name == "Records":
        same = True  # Java shows nothing of them; the bytes that it writes are compared
    elif type_.struct is not None:
        return differences(value, read, version, path)
    elif type_.name == "Bytes":
        same = value == base64.b64decode(read)
    elif type_.name == "Uuid":
        same = value.bytes == base64.urlsafe_b64decode(read + "==")
    else:
        same = value == read
    return [] if same else [f"{path}: {value!r}, Java read {read!r}"]
