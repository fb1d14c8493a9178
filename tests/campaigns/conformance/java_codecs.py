"""Kafka's own codecs as a child process: Conformance.java on the class path of a Kafka distribution."""

from __future__ import annotations

import atexit
import base64
import json
import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any

import pytest

from headrace.wire.layout import Type, columns
from tests.campaigns.conformance.kafka_schemas import JARS, current_name, snake, unavailable
from tools.jvm_options import SHORT_LIVED

_SOURCE = Path(__file__).with_name("Conformance.java")


def class_path(jar: str) -> str:
    """The jars of a release of Kafka."""
    artifacts = pytest.importorskip("tools.kafka.artifacts")
    try:
        found: str = artifacts.class_path(jar)
    except artifacts.RegistryError as error:
        unavailable(str(error))
    return found


@cache
def _compiled() -> tuple[str, str]:
    """The `java` of a JDK, and a folder with the compiled program."""
    compiler = shutil.which("javac")
    if compiler is None:
        unavailable("the test compiles a small Java program and needs a JDK (javac) on the PATH")
    assert compiler is not None
    folder = tempfile.mkdtemp(prefix="headrace-conformance-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [compiler, "-nowarn", "-encoding", "UTF-8", "-cp", class_path(JARS[-1]), "-d", folder, str(_SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{_SOURCE.name} does not compile: {done.stderr}")
    return str(Path(compiler).with_name("java")), folder


class JavaCodecs:
    """Reads, writes and makes messages with Java's codecs. A context manager.

    Args:
        jar: release of Kafka.
    """

    def __init__(self, jar: str) -> None:
        self.jar = jar
        java, folder = _compiled()
        self._process = subprocess.Popen(
            [java, *SHORT_LIVED, "-Xmx512m", "-cp", f"{folder}:{class_path(jar)}", "Conformance"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
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
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass

    def ask(self, lines: Sequence[str]) -> Iterator[str]:
        """One answer for each line; all are sent at once, so that neither side waits for the other.

        Raises:
            RuntimeError: the process has ended.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None

        def send() -> None:
            try:
                stdin.writelines(f"{line}\n" for line in lines)
                stdin.flush()
            except (BrokenPipeError, ValueError):
                pass  # the reader below tells it

        sender = Thread(target=send)
        sender.start()
        for line in lines:
            answer = stdout.readline()
            if not answer:
                raise RuntimeError(f"the Java process has ended at {line[:200]}")
            yield answer.rstrip("\n")
        sender.join()

    def errors(self) -> dict[int, tuple[str, bool, str]]:
        """Java's table of errors: name, retriable and message by code."""
        rows = (row.split(" ", 3) for row in next(self.ask(["ERRORS"])).split("\t"))
        return {int(code): (name, retriable == "true", message) for code, name, retriable, message in rows}


def parse(answer: str) -> tuple[bytes, dict[str, Any]]:
    """Bytes that Java has written, and the values in them.

    Raises:
        ValueError: Java could not read or write the message.
    """
    first, _, rest = answer.partition(" ")
    if first == "ERROR":
        raise ValueError(rest)
    read: dict[str, Any] = json.loads(rest)
    return bytes.fromhex(first), read


def differences(struct: Any, read: dict[str, Any], version: int, jar: str, path: str = "") -> list[str]:
    """Fields in which a message differs from what Java says of it, by name."""
    path = path or type(struct).__name__
    values = {current_name(jar, path, snake(key)): value for key, value in read.items()}
    found: list[str] = []
    for column in columns(type(struct)):
        if not column.versions.holds(version):
            continue
        value, here = getattr(struct, column.name), f"{path}.{column.name}"
        if column.name in values:
            found += _compare(value, values.pop(column.name), column.type, version, jar, here)
        elif column.is_tagged(version):
            default = getattr(type(struct)(), column.name)
            found += [] if value == default else [f"{here}: Java has the default"]
        elif f"{column.name}_size_in_bytes" in values:
            size = values.pop(f"{column.name}_size_in_bytes")
            found += [] if size == len(value or b"") else [f"{here}: {len(value)} bytes, Java has {size}"]
        else:
            found.append(f"{here}: Java has no such field")
    return found + [f"{path}.{name}: only Java has it" for name in values]


def _compare(value: Any, read: Any, type_: Type, version: int, jar: str, path: str) -> list[str]:
    if value is None or read is None:
        same = value is None and read is None
    elif type_.is_array:
        if len(value) != len(read):
            return [f"{path}: {len(value)} elements, Java has {len(read)}"]
        pairs = enumerate(zip(value, read, strict=True))
        return [text for i, (a, b) in pairs for text in _compare(a, b, type_.item, version, jar, f"{path}[{i}]")]
    elif type_.name == "Records":
        same = True  # Java shows nothing of them; the bytes that it writes are compared
    elif type_.struct is not None:
        return differences(value, read, version, jar, path)
    elif type_.name == "Bytes":
        same = value == base64.b64decode(read)
    elif type_.name == "Uuid":
        same = value.bytes == base64.urlsafe_b64decode(read + "==")
    elif type_.name == "Float64" and math.isnan(value):
        same = math.isnan(float(read))
    else:
        same = value == (float(read) if type_.name == "Float64" else read)
    return [] if same else [f"{path}: {value!r:.200}, Java has {read!r:.200}"]
