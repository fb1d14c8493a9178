"""Java's Avro library as a child process: small programs with it on their class path."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.jvm_options import SHORT_LIVED
from tools.kafka.artifacts import jars
from tools.kafka.java import MissingJavaError, find_java

_SOURCE = Path(__file__).with_name("AvroVerdicts.java")
_LOCK = "avro-1.12.1"
_TIMEOUT_S = 300


class NoCompilerError(MissingJavaError):
    """There is no JDK."""


def verdicts(pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """What Java says of pairs of a reader's and a writer's schema.

    Returns:
        For each pair: `reader` and `writer`, each with `text`, `form` and `fingerprint`, or `readerError` and
        `writerError`; and `found`, with type, location and message of each incompatibility.

    Raises:
        NoCompilerError, RegistryError, MissingJavaError: as `answers`.
    """
    return answers(_SOURCE, [{"reader": reader, "writer": writer} for reader, writer in pairs])


def answers(source: Path, questions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a small Java program, with Avro on its class path, answers.

    Args:
        source: its one class; it takes an object in JSON on each line, and writes one for each.
        questions: the objects.

    Raises:
        NoCompilerError: there is no javac.
        RegistryError: the jars cannot be had.
        MissingJavaError: there is no Java.
    """
    compiler = shutil.which("javac")
    if compiler is None:
        raise NoCompilerError("a small Java program is compiled: install a JDK (javac)")
    class_path = os.pathsep.join(str(jar) for jar in jars(_LOCK))
    given = "".join(json.dumps(question) + "\n" for question in questions)
    with tempfile.TemporaryDirectory(prefix="headrace-avro-") as folder:
        subprocess.run([compiler, "-nowarn", "-encoding", "UTF-8", "-cp", class_path, "-d", folder, str(source)],
                       check=True, capture_output=True, timeout=_TIMEOUT_S)
        command = [find_java(), *SHORT_LIVED, "-cp",
                   os.pathsep.join((folder, class_path)), source.stem]
        done = subprocess.run(command, input=given.encode(), capture_output=True, check=False, timeout=_TIMEOUT_S)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
    return [json.loads(line) for line in done.stdout.decode().splitlines()]
