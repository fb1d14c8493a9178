"""Build the programs of `tests/integration/foreign` with the libraries that their lock files pin: npm, go and javac do
the work.

Each result lies in `.cache/foreign/NAME-HASH`, where the hash covers everything that it was made from: what is there is
right, and a change of a source or of a lock makes another one. It appears in one step, so that two runs do not meet.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.jvm_options import SHORT_LIVED
from tools.kafka import NEWEST, MissingJavaError, RegistryError, find_java
from tools.kafka.artifacts import class_path

_ROOT: Final = Path(__file__).parents[2]
_SOURCES: Final = _ROOT / "tests" / "integration" / "foreign"
_CACHE: Final = _ROOT / ".cache" / "foreign"
_TIMEOUT_S: Final = 600
_SHOWN_LINES: Final = 5


class MissingClientError(RuntimeError):
    """A client cannot be had on this machine: its language is missing, or its registry. The text says which."""


@dataclass(frozen=True, slots=True)
class Program:
    """How to run an installed client.

    Attributes:
        command: the command line.
        environment: variables that it needs beside those of this process.
    """

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def program(name: str) -> Program:
    """The program of a client, installed now if it is not yet.

    Args:
        name: one of `CLIENTS`.

    Raises:
        MissingClientError: its language or its registry is missing.
    """
    return CLIENTS[name]()


def _kafkajs() -> Program:
    source = _SOURCES / "kafkajs"
    node, npm = _tool("node", "Node.js"), _tool("npm", "Node.js")

    def build(target: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, target)
        _run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], target)

    made = _made("kafkajs", sorted(source.glob("package*.json")), build)
    return Program([node, str(source / "client.js")], {"NODE_PATH": str(made / "node_modules")})


def _franz_go() -> Program:
    source = _SOURCES / "franz_go"
    go = _tool("go", "Go")
    sources = [path for pattern in ("*.go", "go.*") for path in sorted(source.glob(pattern))]

    def build(target: Path) -> None:
        _run([go, "build", "-mod=readonly", "-buildvcs=false", "-o", str(target / "client"), "."], source)

    return Program([str(_made("franz-go", sources, build) / "client")])


def _java() -> Program:
    javac = _tool("javac", "a JDK")
    try:
        jars, java = class_path(NEWEST), find_java()
    except (MissingJavaError, RegistryError) as error:
        raise MissingClientError(str(error)) from error
    sources = sorted((_SOURCES / "java").glob("*.java"))
    lock = _ROOT / "tools" / "kafka" / "locks" / f"kafka-{NEWEST}.lock"

    def build(target: Path) -> None:
        _run([javac, "-Xlint:all,-processing,-classfile,-path", "-Werror", "-d", str(target), "-cp", jars,
              *map(str, sources)], target)

    classes = _made("java", [lock, *sources], build)
    return Program([java, "-Xmx512m", *SHORT_LIVED, "-cp",
                    os.pathsep.join((str(classes), jars)), "Clients"])


CLIENTS: Final[Mapping[str, Callable[[], Program]]] = {"kafkajs": _kafkajs, "franz-go": _franz_go, "java": _java}
"""The clients that are installed here, by name."""


def _tool(name: str, provider: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise MissingClientError(f"there is no {name}: install {provider}")
    return found


def _made(name: str, sources: Sequence[Path], build: Callable[[Path], None]) -> Path:
    """The directory with what `build` makes of the sources, made when it is not there."""
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    finished = _CACHE / f"{name}-{digest.hexdigest()[:12]}"
    if not finished.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE, prefix="draft-") as directory:
            draft = Path(directory) / "made"
            draft.mkdir()
            build(draft)
            try:
                draft.rename(finished)
            except OSError:
                if not finished.exists():  # else another run was first, with the same
                    raise
    return finished


def _run(command: Sequence[str], directory: Path) -> None:
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingClientError(f"{Path(command[0]).name}: {error}") from error
    if done.returncode != 0:
        printed = (done.stdout + done.stderr).strip().splitlines()[-_SHOWN_LINES:]
        raise MissingClientError(f"{Path(command[0]).name} {command[1]} failed: " + " / ".join(printed))
